"""Plans for tests: of splits alone, with the ranges and cuts that these tile."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_provider_streams.model.plan.plan import Estimate, Plan, Range, SourceRef, Split
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.window.window import Window

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def plan_of(splits: Sequence[Split], *, reader: str = "reader", **parts: Any) -> Plan:
    """The plan that holds together with these splits, which are in order; any other part may be given."""
    ranges = tuple(_range([split for split in splits if split.shard == shard]) for shard in _shards(splits))
    start, end = Cut({one.shard: one.start for one in ranges}), Cut({one.shard: one.end for one in ranges})
    made: dict[str, Any] = {
        "source": SourceRef("pulsar", "standalone", ("persistent://public/default/orders",)),
        "window": Window(NOON, NOON + timedelta(hours=1)),
        "basis": "cuts",
        "filter": None,
        "start_cut": start,
        "end_cut": end,
        "ranges": ranges,
        "splits": tuple(splits),
        "estimate": Estimate(sum(split.bytes for split in splits)),
        "observed_at": NOON,
        "head": start,
    }
    return Plan(**{"reader": reader, **made, **parts})


def _shards(splits: Sequence[Split]) -> list[str]:
    return list(dict.fromkeys(split.shard for split in splits))


def _range(splits: Sequence[Split]) -> Range:
    counted = [split.entries for split in splits]
    entries = None if None in counted else sum(filter(None, counted))
    return Range(splits[0].shard, splits[0].start, splits[-1].end, sum(split.bytes for split in splits), entries)
