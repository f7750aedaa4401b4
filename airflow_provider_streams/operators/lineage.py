"""What a read tells OpenLineage: the exact ranges it read, per topic or stream. Needs `openlineage-python`."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.model.receipt import Receipt, SplitReceipt
from airflow_provider_streams.model.sink import Sink
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.version import __version__

if TYPE_CHECKING:
    from openlineage.client.event_v2 import Dataset, InputDataset, OutputDataset

_FACETS = "https://pypi.org/project/airflow-provider-streams"
"""Where our facets' names begin: OpenLineage wants an address, and nobody has to fetch it."""


Reads = Sequence[tuple[Plan, Receipt | None]]
"""Windows with what was read of them; without a receipt: what was planned."""


def datasets(source: Source, reads: Reads, sink: Sink | None) -> tuple[list[InputDataset], list[OutputDataset]]:
    """The topics or the stream read, and the table written.

    Each input has the facet `streamsRanges`: `window, shard, start, end` (half-open, as in the plan), `entries, rows,
    bytes`.
    """
    from openlineage.client.event_v2 import InputDataset, OutputDataset  # noqa: PLC0415
    from openlineage.client.facet_v2 import output_statistics_output_dataset  # noqa: PLC0415

    inputs = [
        InputDataset(_namespace(source), name, facets={"streamsRanges": _facet("DatasetFacet")(ranges)})
        for name, ranges in _by_name(reads).items()
    ]
    if sink is None:
        return inputs, []
    statistics: dict[str, Any] = {}
    landed = [receipt.rows for _, receipt in reads if receipt is not None]
    if landed:
        facet = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet
        statistics = {"outputStatistics": facet(rowCount=sum(landed))}
    target = urlsplit(sink.asset_uri)
    namespace = f"{target.scheme}://{target.netloc}" if target.netloc else target.scheme
    return inputs, [OutputDataset(namespace, unquote(target.path) or "/", outputFacets=statistics)]


def run_facets(reads: Reads) -> dict[str, Any]:
    """The facet `streamsWindow` of a run, of several windows `streamsWindows`: window, reader, plan and verdict."""
    facts = [
        {
            "window": plan.window.to_json(),
            "reader": plan.reader,
            "basis": plan.basis,
            "fingerprint": plan.fingerprint,
            "cluster": plan.source.cluster,
            "verdict": receipt.verdict if receipt else "planned",
            "rows": receipt.rows if receipt else None,
        }
        for plan, receipt in reads
    ]
    if len(facts) == 1:
        return {"streamsWindow": _facet("RunFacet")(facts[0])}
    return {"streamsWindows": _facet("RunFacet")(facts)}


def dataset_of_asset(asset: Any, lineage_context: Any) -> Dataset | None:  # noqa: ARG001 - Airflow's signature
    """The dataset of an asset `pulsar://..` or `pravega://..`: the same name as a read gives to it."""
    from openlineage.client.event_v2 import Dataset  # noqa: PLC0415

    uri = urlsplit(asset.uri)
    if not uri.netloc or not uri.path.strip("/"):
        return None
    return Dataset(f"{uri.scheme}://{uri.netloc}", unquote(uri.path).lstrip("/"))


def _namespace(source: Source) -> str:
    uri = urlsplit(source.asset_uri)
    return f"{uri.scheme}://{uri.netloc}"


def _by_name(reads: Reads) -> dict[str, list[dict[str, Any]]]:
    """Ranges by topic or stream."""
    named: dict[str, list[dict[str, Any]]] = {}
    for plan, receipt in reads:
        read = _reports(plan, receipt)
        for one in plan.ranges:
            rows = sum(report.rows for report in read.get(one.shard, [])) if receipt else None
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
