"""Quarantined events of covered windows, and how they become rows after a fix.

| step | a kill after it leaves |
|---|---|
| the window is staged again | the window as it was |
| the plan with the new decoding is pinned | the old rows, and a window to be read again |
| the window's folder is replaced | the new rows, and a run that has not ended |
| the run is recorded | a covered window |

The next replay, or the next run of the task, completes what a kill left open; neither adds a row twice.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidRequest, SinkError
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.plan.receipt import Receipt
from airflow_provider_streams.model.schema.decoding import Decoding
from airflow_provider_streams.model.schema.payload import payload_to_json
from airflow_provider_streams.model.sinks.landing import Landed, Landing, TableMark, TableTerms
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.source_json import payloads_of
from airflow_provider_streams.windows.claim.decision import TableClaim
from airflow_provider_streams.windows.claim.landing_defaults import stored_landing
from airflow_provider_streams.windows.claim.overrides import Overrides
from airflow_provider_streams.windows.plan.payload_decoding import decoding_now, has_declared_schema, with_earlier
from airflow_provider_streams.windows.run.recording import RunStart, recorded_run
from airflow_provider_streams.windows.run.window_context import WindowContext

if TYPE_CHECKING:
    from airflow_provider_streams.journal.landings import StoredLanding
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.window.coverage import WindowState
    from airflow_provider_streams.spark.quarantine.window_quarantine import WindowQuarantine
    from airflow_provider_streams.systems.base import StreamSystem

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of a window's quarantined events."""

    window: Window
    rows: int
    """How many became rows."""
    left: int
    """How many still cannot be decoded."""
    cause: str = ""
    """Why one of them cannot, by the decoding of this replay."""

    def __str__(self) -> str:
        said = f"{self.window}: {counted(self.rows, 'event')} became rows, {self.left:,} cannot be decoded"
        return f"{said} (one of them: {self.cause})" if self.cause else said

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**self.window.to_json(), "rows": self.rows, "left": self.left, "cause": self.cause}


def quarantined_windows(journal: Journal, source_key: str, reader: str, span: Window) -> list[WindowState]:
    """The windows of a span with quarantined events, also those that a killed run or replay has not recorded."""
    known = journal.coverage(source_key, reader, span.start, span.end).windows
    return [item for item in known if item.quarantined or _is_left_open(journal, source_key, reader, item)]


def _is_left_open(journal: Journal, source_key: str, reader: str, item: WindowState) -> bool:
    if item.state == "covered" or not item.fingerprint:
        return False
    try:
        seen = quarantine_of(journal, source_key, reader, item.window)
    except (InvalidRequest, SinkError):
        return False  # it has no table, or one that cannot be read from here
    return seen is not None and bool(seen.files or seen.landed)


def quarantine_of(journal: Journal, source_key: str, reader: str, window: Window) -> WindowQuarantine | None:
    """What a window keeps aside in the reader's table; None: the table does not hold the window.

    Raises:
        InvalidRequest: the reader has no table, or one of another kind.
        SinkError: it cannot be read from here.
    """
    from airflow_provider_streams.spark.quarantine.window_quarantine import WindowQuarantine  # noqa: PLC0415 - where a table is

    landing = stored_landing(journal, source_key, reader)
    if landing is None or landing.sink is None:
        raise InvalidRequest(f"reader {reader!r} of {source_key} has no table")
    return WindowQuarantine.of(landing.sink, window)


def receipt_of(
    journal: Journal, source_key: str, reader: str, seen: WindowQuarantine, window: Window
) -> Receipt | None:
    """The receipt of a window's folder; None: the journal has none, because its run never ended."""
    if seen.landed is not None:
        return seen.landed.receipt
    covered = [run for run in journal.runs(source_key, reader, window) if run.receipt is not None]
    return next((run.receipt for run in reversed(covered) if run.fingerprint == seen.fingerprint), None)


class Replayer:
    """Decodes quarantined events of one reader again.

    Args:
        window_context: journal and stream.
        source: with what its values and keys are.
        lasting: whether the reader decodes so from now on. Otherwise only events that it could not decode are decoded
            so, now and whenever their window is read again.
        reader: whose windows.
        task: the task instance that replays.

    Raises:
        InvalidRequest: the reader lands nothing, or through a transform; or the source decodes nothing.
    """

    def __init__(
        self, window_context: WindowContext, source: Source, reader: str, task: TaskInstanceKey, *, lasting: bool = True
    ) -> None:
        self._window_context, self._source, self._reader, self._task = window_context, source, reader, task
        self._journal = window_context.journal
        kept, landing = (
            window_context.journal.landing(source.key, reader),
            stored_landing(window_context.journal, source.key, reader),
        )
        if kept is None or landing is None or landing.sink is None:
            raise InvalidRequest(f"reader {reader!r} of {source.key} has landed nothing yet: there is no quarantine")
        self._kept: StoredLanding = kept
        self._landing: Landing = landing
        self._check()
        kept_payloads = {what: kept.landing.get(what) for what in ("value", "key")} if kept.landing else {}
        asked = {what: payload_to_json(one) for what, one in payloads_of(source).items()}
        self._is_as_kept = all(kept_payloads.get(what) == said for what, said in asked.items())
        self._payloads = asked if lasting else kept_payloads
        self._decoding: Decoding | None = None

    def _check(self) -> None:
        if self._landing.transform is not None:
            raise InvalidRequest(
                f"reader {self._reader!r} of {self._source.key} lands through {self._landing.transform}: its rows are "
                "not rows of events, and none can be added. Read the window again with replan=True"
            )
        if not any(payloads_of(self._source).values()):
            raise InvalidRequest(
                f"{self._source.key}: say what values are, with --value-format or in the DAG's source: nothing is "
                "decoded otherwise"
            )

    def replay(self, window: Window) -> Replayed:
        """Decode the quarantined events of a window again, and add those that can be decoded now to its rows.

        A second replay does nothing: what became a row is no longer in the quarantine.

        Raises:
            InvalidRequest: the window is not in the table, or is not covered.
            PlanMismatch: it was planned again, and not read since.
            LandingMismatch: the rows would lack columns that the table has.
            SinkError: the table cannot be read or written, or another run replaced the window meanwhile.
            StreamsError: the system does not tell its schemas.
        """
        seen = quarantine_of(self._journal, self._source.key, self._reader, window)
        if seen is None:
            raise InvalidRequest(f"the table of reader {self._reader!r} does not hold {window}: read it first")
        receipt = receipt_of(self._journal, self._source.key, self._reader, seen, window)
        plan = self._journal.plan_read(self._source.key, self._reader, window, seen.fingerprint)
        if receipt is None or plan is None or plan.decoding is None:
            raise InvalidRequest(
                f"the journal does not know how the rows of {window} in the table were read: run its task again"
            )
        self._settle(seen, plan)
        return self._replay(plan, receipt)

    def _settle(self, seen: WindowQuarantine, plan: Plan) -> None:
        """Record a window that an earlier replay committed before it was killed."""
        if seen.landed is None or self._is_recorded(seen.landed, plan.window):
            return
        pinned = self._journal.pinned(self._source.key, self._reader, plan.window)
        if pinned is None or pinned.fingerprint != seen.fingerprint:
            return  # planned again since; a window that is not read yet is refused below
        _log.info("window %s was replayed before, and not recorded: recording it", plan.window)
        with recorded_run(self._journal, self._source.key, plan, self._begin()) as started:
            self._journal.finish_run(started.run, seen.landed)

    def _is_recorded(self, landed: Landed, window: Window) -> bool:
        runs = self._journal.runs(self._source.key, self._reader, window)
        told = landed.receipt.to_json()
        return any(run.state == "covered" and run.receipt and run.receipt.to_json() == told for run in runs)

    def _replay(self, plan: Plan, receipt: Receipt) -> Replayed:
        from airflow_provider_streams.spark.quarantine.replay import ParquetReplay, Redecoding  # noqa: PLC0415 - Arrow when used

        before, window = receipt.totals["quarantined"], plan.window
        if not before:
            return Replayed(window, 0, 0)
        with closing(self._window_context.stream.system()) as system:
            changed = replace(plan, decoding=self._new_decoding(system, plan))
            redecoding = Redecoding(changed, receipt, self._landing.columns, self._kept.columns, self._landing.sink)
            writer = ParquetReplay(self._landing.sink, self._terms, redecoding)  # type: ignore[arg-type]  # looked at before
            try:
                landed = writer.decode(system)
                if landed is None:
                    return Replayed(window, 0, before, writer.cause)
                self._put(writer, changed, landed)
            finally:
                writer.discard()
        left = landed.receipt.totals["quarantined"]
        self._window_context.figures.replayed(self._source, self._reader, before - left)
        return Replayed(window, before - left, left, writer.cause)

    def _put(self, writer: Any, plan: Plan, landed: Landed) -> None:
        key = self._source.key
        late = next(iter(self._known(plan.window)), None)
        self._journal.redecode(key, plan, self._kept.id, self._payloads)
        with recorded_run(self._journal, key, plan, self._begin()) as started:
            writer.put()
            self._journal.finish_run(started.run, landed)
        if late is not None and late.late_rows is not None:
            self._journal.count_late(started.run, late.late_rows)  # the positions are the same

    def _known(self, window: Window) -> Iterator[WindowState]:
        seen = self._journal.coverage(self._source.key, self._reader, window.start, window.end)
        return (item for item in seen.windows if item.window == window)

    def _begin(self) -> RunStart:
        return RunStart(TableClaim(self._kept.id, self._terms), self._task, Overrides())

    @property
    def _terms(self) -> TableTerms:
        return TableTerms(TableMark(self._kept.table_id, self._source.key, self._reader), self._kept.columns)

    def _new_decoding(self, system: StreamSystem, plan: Plan) -> Decoding:
        """The system's present decoding, with the versions that only the window's plan has."""
        from airflow_provider_streams.spark.quarantine.replay import check_columns  # noqa: PLC0415 - Arrow when used

        if self._decoding is None:
            self._decoding = _decoding_of(system, self._source, plan)
        if plan.decoding is not None and not self._is_as_kept:
            # its rows were decoded as the plan says, and are when it is read again
            told = replace(plan, decoding=self._decoding)
            check_columns(system, told, self._landing.columns, self._kept.columns, self._landing.sink)
            return plan.decoding.or_else(self._decoding)
        found = self._decoding
        if plan.decoding is not None and has_declared_schema(self._source):
            found = with_earlier(found, plan.decoding)
        # the decodings that earlier replays tried last are still tried
        last = plan.decoding.otherwise if plan.decoding else None
        return found if last is None else found.or_else(last)


def _decoding_of(system: StreamSystem, source: Source, plan: Plan) -> Decoding:
    found = decoding_now(system, source, plan)
    if found is None:
        raise InvalidRequest(
            f"{source}: {system.name} does not decode its values and keys, so nothing that is kept aside of "
            f"{plan.window} can become rows. Is the release of it installed here that planned the window?"
        )
    return found
