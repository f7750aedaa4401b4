"""Plans of windows by event time, without what the journal's receipts prove to hold nothing of them."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.plan.range_pruning import narrowed
from airflow_provider_streams.model.window.basis import SLACK
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.registry import declaration_of

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal

_log = logging.getLogger(__name__)

_SLACKS = 4
"""A window's range is at most so many slacks wider than what belongs to it, on both sides of both windows."""
_EARLIEST, _LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def narrowed_by_receipts(
    journal: Journal, source_key: str, plan: Plan, *, lateness: timedelta, slack: timedelta
) -> Plan:
    """A fresh plan without what earlier windows of its reader have read, and proven to be none of this one's."""
    declared = declaration_of(plan.source.system)
    columns = declared.payload_columns
    if plan.basis != "event" or plan.filter is None or columns is None or not columns.stored_unit:
        return plan
    proofs = journal.proofs(source_key, plan.reader, _around(plan.window, lateness + _SLACKS * slack))
    less = narrowed(plan, proofs, declared.position_of)
    for piece in less.skipped:
        _log.debug("%s: %s to %s is skipped: %s", piece.shard, piece.start, piece.end, piece.because)
    return less


def slack_of(plan: Plan) -> timedelta:
    """With which a pinned plan was made."""
    slack = plan.terms.slack if plan.terms else None
    return SLACK if slack is None else slack


def _around(window: Window, reach: timedelta) -> Window:
    """Windows that share time with this one may have read what it would read."""
    start = window.start - min(reach, window.start - _EARLIEST)
    return Window(start, window.end + min(reach, _LATEST - window.end))
