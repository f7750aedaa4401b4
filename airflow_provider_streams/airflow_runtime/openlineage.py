"""What a read tells OpenLineage: the exact ranges it read, per topic or stream. Needs `openlineage-python`."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.plan.receipt import Receipt, SplitReceipt
from airflow_provider_streams.model.sinks.landing import Landed, sum_of_written
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.sinks.table_sink import SCHEME
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.version import __version__

if TYPE_CHECKING:
    from openlineage.client.event_v2 import Dataset, InputDataset, OutputDataset

    from airflow_provider_streams.windows.plan.planning import WindowRead

_FACETS = "https://pypi.org/project/airflow-provider-streams"
"""Where our facets' names begin: OpenLineage wants an address, which is never fetched."""


MOST_TABLES = 100
"""Of so many topics or streams an event tells every range: it is sent as one message."""

Read = tuple["WindowRead", Plan, Landed | None]
"""A window with what was landed of it; None: it was planned only."""


def datasets(source: Source, reads: Sequence[Read]) -> tuple[list[InputDataset], list[OutputDataset]]:
    """The topics or streams read, and the table of each.

    Each input has the facet `streamsRanges`: `window, shard, start, end` (half-open, as in the plan), `entries, rows,
    bytes`. The inputs of very many tables have no facets.
    """
    from openlineage.client.event_v2 import InputDataset  # noqa: PLC0415

    by_table: dict[tuple[str, Sink | None], list[Read]] = {}
    for one in reads:
        by_table.setdefault((one[0].source_key, one[0].landing.sink), []).append(one)
    has_facets = len(by_table) <= MOST_TABLES
    inputs: list[InputDataset] = []
    outputs: list[OutputDataset] = []
    for (_, sink), some in by_table.items():
        for name, ranges in _by_name(some).items():
            facets = {"streamsRanges": _facet("DatasetFacet")(ranges)} if has_facets else {}
            inputs.append(InputDataset(_namespace(source), name, facets=facets))
        if sink is not None:
            outputs.append(_table(sink, [landed for *_, landed in some if landed is not None]))
    return inputs, outputs


def table_name(sink: Sink) -> tuple[str, str]:
    """How OpenLineage names a table: namespace and name.

    A folder in a bucket is `s3://bucket` and `shop/orders`, one of a file system `file` and `/lake/orders`; a table of
    an Iceberg catalog is `iceberg://<connection or catalog>` and `shop.orders`, one of Spark's catalogs
    `spark-table://<catalog>` and `shop.orders`.
    """
    return _named(urlsplit(sink.location))


def _named(uri: SplitResult) -> tuple[str, str]:
    path = unquote(uri.path)
    if not uri.netloc:
        return uri.scheme, path or "/"
    name = path.strip("/")
    return f"{uri.scheme}://{uri.netloc}", name.replace("/", ".") if uri.scheme in _CATALOGS else name or "/"


_CATALOGS = ("iceberg", SCHEME)
"""Whose tables are named with points."""


def _table(sink: Sink, landed: Sequence[Landed]) -> OutputDataset:
    """What was written: its columns, and how many rows; nothing of what is not known."""
    from openlineage.client.event_v2 import OutputDataset  # noqa: PLC0415
    from openlineage.client.facet_v2 import output_statistics_output_dataset, schema_dataset  # noqa: PLC0415

    facets: dict[str, Any] = {}
    statistics: dict[str, Any] = {}
    rows = sum_of_written(landed)
    if landed and rows is not None:
        facet = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet
        statistics["outputStatistics"] = facet(rowCount=rows)
    columns = next((one.schema for one in reversed(landed) if one.schema), None)
    if columns is not None:
        told = (*columns, *_EDGES) if sink.kind in _WITH_EDGES else columns
        fields = [schema_dataset.SchemaDatasetFacetFields(name=name, type=type_) for name, type_ in told]
        facets["schema"] = schema_dataset.SchemaDatasetFacet(fields=fields)
    return OutputDataset(*table_name(sink), facets=facets, outputFacets=statistics)


_WITH_EDGES = ("delta", "iceberg", "table")
"""Kinds of sinks whose tables keep a window's edges as columns; a folder has them in the names of its folders."""

_EDGES = (("window_start", "timestamp"), ("window_end", "timestamp"))


def run_facets(reads: Sequence[Read]) -> dict[str, Any]:
    """The facet `streamsWindow` of a run, of several windows `streamsWindows`: window, reader, plan and verdict.

    Of very many windows of several tables there is none.
    """
    if len(reads) > MOST_TABLES and len({read.target for read, *_ in reads}) > 1:
        return {}
    facts = [
        {
            "window": plan.window.to_json(),
            "reader": plan.reader,
            "basis": plan.basis,
            "fingerprint": plan.fingerprint,
            "cluster": plan.source.cluster,
            "verdict": landed.receipt.verdict if landed else "planned",
            "rows": landed.receipt.rows if landed else None,
            "quarantined": landed.receipt.totals["quarantined"] if landed else None,
            "dropped": landed.receipt.totals["dropped"] if landed else None,
        }
        for _, plan, landed in reads
    ]
    if len(facts) == 1:
        return {"streamsWindow": _facet("RunFacet")(facts[0])}
    return {"streamsWindows": _facet("RunFacet")(facts)}


def dataset_of_asset(asset: Any, lineage_context: Any) -> Dataset | None:  # noqa: ARG001 - Airflow's signature
    """The dataset of an asset `pulsar://..`, `pravega://..` or `iceberg://..`: the same name as a read gives to it.

    None: it is several topics or streams, of which a read names each.
    """
    from openlineage.client.event_v2 import Dataset  # noqa: PLC0415

    uri = urlsplit(asset.uri)
    name = uri.path.strip("/")
    if not uri.netloc or not name or name.count("/") > _SLASHES.get(uri.scheme, name.count("/")):
        return None
    return Dataset(*_named(uri))


_SLASHES = {"pulsar": 2, "pravega": 1}
"""In the name of one topic or stream."""


def _namespace(source: Source) -> str:
    uri = urlsplit(source.asset_uri)
    return f"{uri.scheme}://{uri.netloc}"


def _by_name(reads: Sequence[Read]) -> dict[str, list[dict[str, Any]]]:
    """Ranges by topic or stream."""
    named: dict[str, list[dict[str, Any]]] = {}
    for _, plan, landed in reads:
        read = _reports(plan, landed.receipt if landed else None)
        for one in plan.ranges:
            rows = sum(report.rows for report in read.get(one.shard, [])) if landed else None
            name = declaration_of(plan.source.system).dataset(plan.source.names, one.shard)
            named.setdefault(name, []).append(
                {
                    "window": str(plan.window),
                    "shard": one.shard,
                    "start": str(one.start),
                    "end": str(one.end),
                    "entries": one.entries,
                    "bytes": one.bytes,
                    "rows": rows,
                }
            )
    return named


def _reports(plan: Plan, receipt: Receipt | None) -> dict[str, list[SplitReceipt]]:
    shards = {split.index: split.shard for split in plan.splits}
    found: dict[str, list[SplitReceipt]] = {}
    reports: Iterable[SplitReceipt] = receipt.splits if receipt else ()
    for report in reports:
        found.setdefault(shards[report.index], []).append(report)
    return found


@functools.cache
def _facet(base: str) -> Any:
    """A facet of ours, of one of OpenLineage's kinds, whose one field is `facts`."""
    import attrs  # noqa: PLC0415
    from openlineage.client.generated import base as kinds  # noqa: PLC0415

    def schema() -> str:
        return f"{_FACETS}/{__version__}/#{base}"

    made = attrs.make_class(
        f"Streams{base}", {"facts": attrs.field()}, bases=(getattr(kinds, base),), class_body={"_get_schema": None}
    )
    made._get_schema = staticmethod(schema)  # type: ignore[attr-defined]  # noqa: SLF001 - how facets name theirs
    return made
