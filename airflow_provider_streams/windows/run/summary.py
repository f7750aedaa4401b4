"""What a run shows of its windows, and returns as XCom: plain JSON values without secrets, of bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.model.plan.plan_summary import by_remark, bytes_text, note_lines, plan_table
from airflow_provider_streams.model.sinks.landing import sum_of_written
from airflow_provider_streams.windows.run.request import OneWindow

if TYPE_CHECKING:
    from airflow_provider_streams.model.plan.plan import Plan
    from airflow_provider_streams.model.plan.receipt import Receipt
    from airflow_provider_streams.model.sinks.landing import Landed
    from airflow_provider_streams.model.sinks.sink import Sink
    from airflow_provider_streams.windows.plan.planning import WindowRead
    from airflow_provider_streams.windows.run.outcome import Outcome
    from airflow_provider_streams.windows.run.preparation import PreparedTable
    from airflow_provider_streams.windows.run.window_run import Prepared

Read = tuple["WindowRead", "Plan", "Landed | None"]
"""A window with what was landed of it; None: it was planned only."""

_MOST_NAMED: Final = 20
"""How many tables are named: the largest ones."""
_MOST_IN_NOTES: Final = 3


def preview_text(prepared: Prepared) -> str:
    """What will be read: a plan, the windows of a span, or many tables."""
    if prepared.request.tables is not None:
        return tables_text(prepared.tables, len(prepared.jobs))
    (table,) = prepared.tables
    return "".join(plan_table(plan) for _, plan in table.reads) or table.preview.as_text()


def tables_text(tables: Sequence[PreparedTable], jobs: int) -> str:
    """The largest tables, and their sums."""
    some = sorted((one for one in tables if one.preview.windows), key=lambda one: -one.preview.bytes)
    lines = [
        f" {one.request.source}: {counted(len(one.preview.readable), 'window')}, {bytes_text(one.preview.bytes)}, "
        f"{counted(one.preview.tasks, 'task')} -> {one.request.landing.sink}"
        for one in some[:_MOST_NAMED]
    ]
    if len(some) > _MOST_NAMED:
        lines.append(f" .. and {len(some) - _MOST_NAMED:,} smaller ones")
    lines += note_lines(by_remark((str(one.request.source), one.preview.remarks) for one in some), _first)
    told = _table_sums(tables)
    lines.append(
        f" total {counted(told['windows'], 'window')} of {counted(len(tables), 'table')}, {bytes_text(told['bytes'])}, "
        f"{counted(jobs, 'Spark job')}; {told['not_ready']:,} not ready yet, "
        f"{told['beyond_horizon']:,} beyond the horizon"
    )
    return "\n".join(lines)


def _first(names: Sequence[str]) -> str:
    """A few by name, and how many more there are."""
    distinct = list(dict.fromkeys(names))
    more = len(distinct) - _MOST_IN_NOTES
    return ", ".join(distinct[:_MOST_IN_NOTES]) + (f" and {more:,} more" if more > 0 else "")


def _table_sums(tables: Sequence[PreparedTable]) -> dict[str, int]:
    previews = [one.preview for one in tables]
    return {
        "tables": len(tables),
        "windows": sum(len(one.readable) for one in previews),
        "bytes": sum(one.bytes for one in previews),
        "not_ready": sum(len(one.having("not ready")) for one in previews),
        "beyond_horizon": sum(len(one.having("lost", "part lost")) for one in previews),
    }


def summary(prepared: Prepared, outcome: Outcome | None) -> dict[str, Any]:
    """What a run returns as XCom; without an outcome, what a dry run shows."""
    if prepared.request.tables is not None:
        return _summary_of_tables(prepared, outcome)
    (table,) = prepared.tables
    if not isinstance(prepared.request.windows, OneWindow):
        return _summary_of_span(prepared, outcome)
    landed = outcome.landed[0][2] if outcome is not None else None
    (plan,) = table.plans.values()
    return summary_of_window(plan, landed, table.request.landing.sink)


def summary_of_window(plan: Plan, landed: Landed | None, sink: Sink | None) -> dict[str, Any]:
    """Of a single window; None: it is planned only."""
    receipt: Receipt | None = landed.receipt if landed else None
    return {
        "fingerprint": plan.fingerprint,
        "reader": plan.reader,
        "window": plan.window.to_json(),
        "basis": plan.basis,
        "start_cut": plan.start_cut.to_json(),
        "end_cut": plan.end_cut.to_json(),
        "splits": len(plan.splits),
        "rows": receipt.rows if receipt else None,
        "written": landed.written if landed else None,
        "bytes": receipt.bytes if receipt else plan.estimate.bytes,
        "seconds": round(receipt.seconds, 3) if receipt else None,
        "verdict": receipt.verdict if receipt else "planned",
        "totals": receipt.totals if receipt else {},
        "quarantined": receipt.totals["quarantined"] if receipt else None,
        "dropped": receipt.totals["dropped"] if receipt else None,
        "losses": len(plan.losses),
        "unproven": len(plan.unproven),
        "remarks": list(plan.remarks),
        "skew_seconds": list(plan.skew_seconds) if plan.skew_seconds else None,
        "target": sink.asset_uri if sink else None,
    }


def _summary_of_span(prepared: Prepared, outcome: Outcome | None) -> dict[str, Any]:
    (table,) = prepared.tables
    shown = {**table.preview.to_json(), "late_rows": prepared.late_rows}
    shown.pop("details")
    if outcome is None:
        return {**shown, "verdict": "planned"}
    return {
        **shown,
        "verdict": "complete" if not outcome.failures else "incomplete",
        "covered": [str(window) for window in outcome.covered],
        "rows": outcome.rows,
        "written": outcome.written,
        "bytes_read": outcome.bytes,
        "quarantined": outcome.total("quarantined"),
        "dropped": outcome.total("dropped"),
        "failures": outcome.by_window(),
    }


def _summary_of_tables(prepared: Prepared, outcome: Outcome | None) -> dict[str, Any]:
    request, verdict = prepared.request, "complete" if outcome is not None else "planned"
    if not isinstance(request.windows, OneWindow):
        shown = {**_table_sums(prepared.tables), "jobs": len(prepared.jobs), "verdict": verdict}
        if outcome is None:
            return {**shown, "failed": len(prepared.outcome.failures)}
        return {**shown, **summary_of_reads(outcome.landed)}
    reads: Sequence[Read] = prepared.reads if outcome is None else outcome.landed
    return {
        **summary_of_reads(reads),
        "window": request.windows.window.to_json(),
        "reader": request.reader,
        "basis": request.basis.name,
        "by_earlier_tries": (outcome or prepared.outcome).before,
        "target": request.tables.asset_uri if request.tables is not None else None,
        "verdict": verdict,
    }


def summary_of_reads(reads: Sequence[Read]) -> dict[str, Any]:
    """Sums over the windows of many tables, and the largest ones. Of what is planned only, no rows."""
    landed = [one for _, _, one in reads if one is not None]
    totals = [one.receipt.totals for one in landed]
    is_planned = bool(reads) and not landed
    ordered = sorted(reads, key=lambda one: -(one[2].receipt.rows if one[2] else one[1].estimate.bytes))
    return {
        "tables": len({read.target for read, _, _ in reads}),
        "windows": len(reads),
        "rows": None if is_planned else sum(one.receipt.rows for one in landed),
        "written": None if is_planned else sum_of_written(landed),
        "bytes": sum(one.receipt.bytes if one else plan.estimate.bytes for _, plan, one in reads),
        "splits": sum(len(plan.splits) for _, plan, _ in reads),
        "quarantined": sum(one["quarantined"] for one in totals),
        "dropped": sum(one["dropped"] for one in totals),
        "losses": sum(len(plan.losses) for _, plan, _ in reads),
        "unproven": sum(len(plan.unproven) for _, plan, _ in reads),
        "largest": [
            {
                "source": str(read),
                "target": read.target,
                "window": str(plan.window),
                "rows": one.receipt.rows if one else None,
            }
            for read, plan, one in ordered[:_MOST_NAMED]
        ],
    }
