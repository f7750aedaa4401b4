"""Whether a table has everything of its source up to a moment."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from airflow_provider_streams.model.window.readiness import Readiness
from airflow_provider_streams.model.window.window import utc_text
from airflow_provider_streams.windows.after_landing.covered_end import covered_end

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.sinks.sink import Sink


def is_fresh(journal: Journal, sink: Sink, until: datetime) -> Readiness:
    """Whether all windows of a table's reader are covered without a gap, from its first one up to a moment.

    Args:
        journal: knows the reader of the table, and its windows.
        sink: the table.
        until: the moment.

    Returns:
        Yes, with the facts `table, reader, source, until, covered_until`; or why not yet.
    """
    uri = sink.asset_uri
    for key, reader in journal.sources():
        kept = journal.landing(key, reader)
        if kept is None or kept.target != uri:
            continue
        end = covered_end(journal, key, reader, None)
        if end is None:
            return Readiness(ready=False, because=f"{uri}: reader {reader!r} of {key} has no covered window yet")
        if end.time < until:
            because = f"{uri} has all of {key} up to {utc_text(end.time)}, where a window is missing or not due yet"
            return Readiness(ready=False, because=because)
        facts = {"table": uri, "reader": reader, "source": key}
        return Readiness(ready=True, facts={**facts, "until": utc_text(until), "covered_until": utc_text(end.time)})
    return Readiness(ready=False, because=f"{uri} is no reader's table: nothing was landed there yet")
