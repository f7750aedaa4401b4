"""Figures of reads, through Airflow's own metrics (StatsD or OpenTelemetry, as `[metrics]` says).

| name | kind | meaning |
|---|---|---|
| `streams.rows`, `streams.bytes` | counter | rows read, before a transform, and bytes of their payload |
| `streams.written` | counter | rows landed in the table, where they were counted |
| `streams.windows` | counter | windows covered, by `verdict` |
| `streams.read` | timer | from the read's begin to its receipt |
| `streams.lag_seconds` | gauge | from the window's end to its receipt: the reader's lag |
| `streams.skew_seconds` | gauge | basis `append`: how much later than its edges the window's cuts were recorded |
| `streams.quarantined`, `streams.dropped` | counter | events that could not be decoded, kept aside or left out |
| `streams.replayed` | counter | quarantined events that became rows after a fix |
| `streams.missing_windows` | counter | covered windows that are missing again: their table or their rows were removed |
| `streams.late_rows` | gauge | rows that appeared after their window was read, of the last recount |
| `streams.horizon_seconds` | gauge | the age of the oldest event still held |
| `streams.retention_room_seconds` | gauge | how much longer events are held than they are needed |

All are tagged with `system`, `source` and `reader`. A figure that cannot be sent is no reason to fail a read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.common.compat.sdk import Stats

from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.stream.retention import Holding, Verdict
from airflow_provider_streams.model.stream.source import Source

log = logging.getLogger(__name__)


def covered(source_key: str, plan: Plan, landed: Landed, now: datetime | None = None) -> None:
    """A window was covered."""
    receipt = landed.receipt
    tags = _tags(plan.source.system, source_key, plan.reader)
    lag = (now or datetime.now(UTC)) - plan.window.end
    _send(Stats.incr, "streams.windows", 1, tags={**tags, "verdict": receipt.verdict.replace(" ", "_")})
    _send(Stats.incr, "streams.rows", receipt.rows, tags=tags)
    _send(Stats.incr, "streams.bytes", receipt.bytes, tags=tags)
    if landed.written is not None:
        _send(Stats.incr, "streams.written", landed.written, tags=tags)
    for name in ("quarantined", "dropped"):
        if receipt.totals[name]:
            _send(Stats.incr, f"streams.{name}", receipt.totals[name], tags=tags)
    _send(Stats.timing, "streams.read", timedelta(seconds=receipt.seconds), tags=tags)
    _send(Stats.gauge, "streams.lag_seconds", lag.total_seconds(), tags=tags)
    if plan.skew_seconds:
        _send(Stats.gauge, "streams.skew_seconds", max(plan.skew_seconds), tags=tags)


def replayed(source: Source, reader: str, rows: int) -> None:
    """Quarantined events became rows."""
    _send(Stats.incr, "streams.replayed", rows, tags=_tags(source.system, source.key, reader))


def missing(source: Source, reader: str, windows: int) -> None:
    """Covered windows are missing again."""
    _send(Stats.incr, "streams.missing_windows", windows, tags=_tags(source.system, source.key, reader))


def recounted(source: Source, reader: str, late_rows: int) -> None:
    """Late rows of covered windows were counted."""
    _send(Stats.gauge, "streams.late_rows", late_rows, tags=_tags(source.system, source.key, reader))


def guarded(source: Source, reader: str | None, verdict: Verdict, holding: Holding) -> None:
    """Retention was compared with a schedule."""
    tags = _tags(source.system, source.key, reader or "any")
    if holding.horizon is not None:
        age = datetime.now(UTC) - holding.horizon
        _send(Stats.gauge, "streams.horizon_seconds", age.total_seconds(), tags=tags)
    if verdict.room is not None:
        _send(Stats.gauge, "streams.retention_room_seconds", verdict.room.total_seconds(), tags=tags)


def _tags(system: str, source_key: str, reader: str) -> dict[str, str]:
    # in StatsD's tags "," and "=" (InfluxDB) or ":" and "|" (Datadog) would end a value
    named = {"system": system, "source": source_key, "reader": reader}
    return {name: value.translate(_PLAIN) for name, value in named.items()}


_PLAIN = str.maketrans(",=:|#", "_____")


def _send(send: Callable[..., Any], *arguments: Any, **named: Any) -> None:
    try:
        send(*arguments, **named)
    except Exception as error:  # noqa: BLE001 - whatever a metrics client does, the read was good
        log.warning("The figure %s could not be sent: %s", arguments[0], type(error).__name__)
