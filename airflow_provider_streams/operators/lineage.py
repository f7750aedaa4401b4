"""What a read tells OpenLineage: the exact ranges it read, per topic or stream. Needs `openlineage-python`."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

from airflow_provider_streams.model.landing import Landed
from airflow_provider_streams.model.placeholders import SourceTable
from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.model.receipt import Receipt, SplitReceipt
from airflow_provider_streams.model.sink import Sink
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.model.table_sink import SCHEME
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.version import __version__

if TYPE_CHECKING:
    from openlineage.client.event_v2 import Dataset, InputDataset, OutputDataset

_FACETS = "https://pypi.org/project/airflow-provider-streams"
"""Where our facets' names begin: OpenLineage wants an address, and nobody has to fetch it."""


MOST_TABLES = 100
"""Of so many topics or streams an event tells every range: it is sent as one message."""

Reads = Sequence[tuple[Plan, Landed | None]]
"""Windows with what was landed of them; None: they were planned only."""


def datasets(source: Source, reads: Reads, sink: Sink | None) -> tuple[list[InputDataset], list[OutputDataset]]:
    """The topics or the stream read, and the table written.

    Each input has the facet `streamsRanges`: `window, shard, start, end` (half-open, as in the plan), `entries, rows,
    bytes`.
    """
    from openlineage.client.event_v2 import InputDataset  # noqa: PLC0415

    inputs = [
        InputDataset(_namespace(source), name, facets={"streamsRanges": _facet("DatasetFacet")(ranges)})
        for name, ranges in _by_name(reads).items()
    ]
    landed = [one for _, one in reads if one is not None]
    return inputs, [_table(sink, landed)] if sink is not None else []


def table_datasets(
    source: Source, reads: Sequence[tuple[SourceTable, Plan, Landed | None]]
) -> tuple[list[InputDataset], list[OutputDataset]]:
    """The topics or streams read, and the table of each; of very many the inputs have no facets."""
    from openlineage.client.event_v2 import InputDataset  # noqa: PLC0415

    by_table: dict[SourceTable, list[tuple[Plan, Landed | None]]] = {}
    for table, plan, landed in reads:
        by_table.setdefault(table, []).append((plan, landed))
    has_facets = len(by_table) <= MOST_TABLES
    inputs: list[InputDataset] = []
    outputs: list[OutputDataset] = []
    for table, some in by_table.items():
        for name, ranges in _by_name(some).items():
            facets = {"streamsRanges": _facet("DatasetFacet")(ranges)} if has_facets else {}
            inputs.append(InputDataset(_namespace(source), name, facets=facets))
        outputs.append(_table(table.sink, [landed for _, landed in some if landed is not None]))
    return inputs, outputs


def table_name(sink: Sink) -> tuple[str, str]:
    """How OpenLineage names a table: namespace and name.

    A folder in a bucket is `s3://bucket` and `shop/orders`, one of a file system `file` and `/lake/orders`; a table of
    an Iceberg catalog is `iceberg://<connection or catalog>` and `shop.orders`, one of Spark's catalogs
    `spark-table://<catalog>` and `shop.orders`.
    """
    return _named(urlsplit(sink.asset_uri))


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
    if landed:
        rows = sum(one.receipt.rows if one.written is None else one.written for one in landed)
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


def run_facets(reads: Reads, *, most: int | None = None) -> dict[str, Any]:
    """The facet `streamsWindow` of a run, of several windows `streamsWindows`: window, reader, plan and verdict.

    Of more than `most` there is none.
    """
    if most is not None and len(reads) > most:
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
        for plan, landed in reads
    ]
    if len(facts) == 1:
        return {"streamsWindow": _facet("RunFacet")(facts[0])}
    return {"streamsWindows": _facet("RunFacet")(facts)}


def dataset_of_asset(asset: Any, lineage_context: Any) -> Dataset | None:  # noqa: ARG001 - Airflow's signature
    """The dataset of an asset `pulsar://..`, `pravega://..` or `iceberg://..`: the same name as a read gives to it."""
    from openlineage.client.event_v2 import Dataset  # noqa: PLC0415

    uri = urlsplit(asset.uri)
    if not uri.netloc or not uri.path.strip("/"):
        return None
    return Dataset(*_named(uri))


def _namespace(source: Source) -> str:
    uri = urlsplit(source.asset_uri)
    return f"{uri.scheme}://{uri.netloc}"


def _by_name(reads: Reads) -> dict[str, list[dict[str, Any]]]:
    """Ranges by topic or stream."""
    named: dict[str, list[dict[str, Any]]] = {}
    for plan, landed in reads:
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
