"""Many tables as a text for logs, and as a value of bounded size. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from airflow_provider_streams.model.landing import Landed
from airflow_provider_streams.model.placeholders import SourceTable
from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.model.plan_table import bytes_text

Read = tuple[SourceTable, Plan, Landed | None]

MOST_NAMED: Final = 20
"""So many tables are told by name: the largest ones."""


def plans_text(plans: Sequence[tuple[SourceTable, Plan]]) -> str:
    """The largest plans, and their sums."""
    ordered = sorted(plans, key=lambda one: -one[1].estimate.bytes)
    lines = [
        f" {table}  {bytes_text(plan.estimate.bytes)}  {len(plan.splits)} tasks  -> {table.sink.asset_uri}"
        for table, plan in ordered[:MOST_NAMED]
    ]
    if len(ordered) > MOST_NAMED:
        lines.append(f" .. and {len(ordered) - MOST_NAMED:,} smaller ones")
    size = sum(plan.estimate.bytes for _, plan in plans)
    tasks = sum(len(plan.splits) for _, plan in plans)
    lines.append(f" total {len(plans):,} tables, {bytes_text(size)}, {tasks:,} tasks")
    return "\n".join(lines)


def summary(reads: Sequence[Read]) -> dict[str, Any]:
    """What a task returns of many tables as XCom: sums, and the largest ones. Of what is planned only, no rows."""
    landed = [one for _, _, one in reads if one is not None]
    totals = [one.receipt.totals for one in landed]
    is_planned = bool(reads) and not landed
    ordered = sorted(reads, key=lambda one: -(one[2].receipt.rows if one[2] else one[1].estimate.bytes))
    return {
        "tables": len({table.sink.asset_uri for table, _, _ in reads}),
        "windows": len(reads),
        "rows": None if is_planned else sum(one.receipt.rows for one in landed),
        "written": None if is_planned else sum(one.written or 0 for one in landed),
        "bytes": sum(one.receipt.bytes if one else plan.estimate.bytes for _, plan, one in reads),
        "splits": sum(len(plan.splits) for _, plan, _ in reads),
        "quarantined": sum(one["quarantined"] for one in totals),
        "dropped": sum(one["dropped"] for one in totals),
        "losses": sum(len(plan.losses) for _, plan, _ in reads),
        "unproven": sum(len(plan.unproven) for _, plan, _ in reads),
        "largest": [
            {
                "source": str(table),
                "target": table.sink.asset_uri,
                "window": str(plan.window),
                "rows": one.receipt.rows if one else None,
            }
            for table, plan, one in ordered[:MOST_NAMED]
        ],
    }
