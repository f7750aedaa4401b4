"""Window runs: how a try to cover a window begins and ends.

All changes to one reader's runs happen one after another (its row is locked), so that two runs of a window see each
other. A covered run becomes something else only when its rows are no longer in the table: see `run_transitions`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Row, Text, and_, or_, select, type_coerce, update

from airflow_provider_streams.errors import PlanMismatch
from airflow_provider_streams.journal import landings, pruning
from airflow_provider_streams.journal.row_ids import JournalPart
from airflow_provider_streams.journal.runs import run_records as records
from airflow_provider_streams.journal.runs import run_transitions as moves
from airflow_provider_streams.journal.runs.run_records import Announcer, Failure, Run, Started, TaskInstanceKey
from airflow_provider_streams.journal.tables import is_window, pins, runs, shares_time
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.plan.range_pruning import Proof
from airflow_provider_streams.model.plan.receipt import Receipt
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.window.partition_key import NOTHING, KeyRule, Known
from airflow_provider_streams.model.window.window import Window

MOST_PROOFS: Final = 64
"""So many receipts are looked at to narrow one plan."""

_AT_ONCE = 500
_log = logging.getLogger(__name__)


class WindowRuns(JournalPart):
    """The runs of each window."""

    _keep: timedelta | None = None
    """How long history is kept; None: for ever."""

    def start_run(
        self,
        source_key: str,
        plan: Plan,
        task: TaskInstanceKey,
        *,
        landing_id: int | None = None,
        replace_overlaps: bool = False,
        allow_fewer_rows: bool = False,
    ) -> Started:
        """Note that a task begins to read a pinned plan.

        Runs of this window that still look running (they were killed) become `failed`, cause `Superseded`; one that
        is alive after all may still finish.

        It counts under the landing `landing_id`; None: what it reads is proven only. With `replace_overlaps`, covered
        windows that share time with it are covered no longer. With `allow_fewer_rows`, its plan need not be able to
        hold what the window's last one held.

        Raises:
            RowCountDecreased: it is not able to: events were removed since, or the source was made again.
            PlanMismatch: the plan is not the pinned one, the plan that it goes on after was replaced, or the reader
                has another landing by now. Run the task again.
            WindowsOverlap: covered windows share time with it, and must stay.
        """
        with self._beginning(source_key, plan.reader) as (connection, reader_id):
            may = {"replace_overlaps": replace_overlaps, "allow_fewer_rows": allow_fewer_rows}
            return moves.start(connection, reader_id, plan, task, landing_id, **may)

    def finish_run(self, run: int, landed: Landed) -> None:
        """The run's receipt agrees and its table is committed: the window is covered. Doing it again does nothing.

        If a replan meanwhile had already covered the window, that is undone: this run's rows, of the earlier plan,
        replaced the later ones.

        Raises:
            JournalError: no such run.
            PlanMismatch: the receipt is of another plan, or a later window of its chain has read its events.
        """
        with self._database.writing() as connection:
            row = moves.locked(connection, run)
            if moves.is_open(row, landed.receipt):
                moves.cover(connection, row, landed)
        if self._keep is not None:
            pruning.prune_once_a_day(self._database, row["reader_id"], self._keep)

    def fail_run(
        self,
        run: int,
        error_type: str,
        message: str,
        lost: bool = False,  # noqa: FBT001, FBT002 - the state it reports
        *,
        untouched: bool = False,
    ) -> None:
        """The run failed; `lost` if the stream no longer holds what the window needs.

        If it left the table `untouched`, a covered window stays covered, by the plan of its rows there. Does nothing
        if the run covered its window before. Passwords in URLs of the message are masked.

        Raises:
            JournalError: no such run.
        """
        with self._database.writing() as connection:
            row = moves.locked(connection, run)
            if row["state"] == "covered":
                return
            failure = Failure(error_type, message, lost).to_row()
            connection.execute(update(runs).where(runs.c.id == run).values(failure))
            if untouched and row["landing_id"] is not None:
                moves.restore_plans(connection, row["reader_id"], row["landing_id"], moves.window_of(row), failed=run)

    def restore_previous_plans(self, source_key: str, reader: str, landing_id: int | None, window: Window) -> None:
        """A window's plan was refused before a run of it began: the plan of its rows in the table counts again.

        After a run began, `fail_run` does so.
        """
        with self._changing(source_key, reader) as (connection, reader_id):
            if reader_id is not None and landing_id is not None:
                moves.restore_plans(connection, reader_id, landing_id, window)

    def fail_window(
        self,
        source_key: str,
        reader: str,
        window: Window,
        task: TaskInstanceKey,
        *,
        error_type: str,
        message: str,
        lost: bool,
    ) -> int:
        """A task failed before it had a plan, for example with `StartTrimmed`; the number of the run it becomes."""
        with self._beginning(source_key, reader) as (connection, reader_id):
            kept = landings.current(connection, reader_id)
            values = {"started_at": datetime.now(UTC), "landing_id": kept.id if kept else None}
            failure = Failure(error_type, message, lost).to_row()
            return moves.insert_run(connection, reader_id, window, task, **values, **failure)

    def uncover(self, source_key: str, reader: str, landing_id: int, windows: Iterable[Window], cause: str) -> None:
        """The rows of these windows were taken out of the table: they are covered no longer."""
        with self._changing(source_key, reader) as (connection, reader_id):
            failure = Failure(records.REMOVED, cause).to_row()
            for window in windows:
                here = (is_window(runs, reader_id, window), moves.covered_under(landing_id))
                connection.execute(update(runs).where(*here).values(failure))

    def count_late(self, run: int, rows: int) -> None:
        """Note how many rows of its window appeared after a covered run had read it; a later count replaces it.

        Does nothing for a run that does not cover its window.

        Raises:
            JournalError: no such run.
        """
        with self._database.writing() as connection:
            moves.locked(connection, run)
            covered = (runs.c.id == run, runs.c.state == "covered")
            connection.execute(update(runs).where(*covered).values(late_rows=rows))

    def runs(self, source_key: str, reader: str, window: Window) -> tuple[Run, ...]:
        """Every run of a window with its receipt or cause, oldest first."""
        with self._reading(source_key, reader) as (connection, reader_id):
            return records.of_window(connection, reader_id, window)

    def running(self, source_key: str, reader: str) -> dict[Window, datetime]:
        """The windows whose runs have not ended, with the time since when; some of them may have been killed."""
        since = select(runs.c.window_start, runs.c.window_end, runs.c.started_at)
        with self._reading(source_key, reader) as (connection, reader_id):
            found = connection.execute(since.where(runs.c.reader_id == reader_id, runs.c.state == "running"))
            return {Window(row.window_start, row.window_end): row.started_at for row in found}

    def proofs(self, source_key: str, reader: str, window: Window) -> tuple[Proof, ...]:
        """What covered the windows that share time with one, where receipts tell the times of their events.

        Of many windows the nearest. A journal that holds plans of another release proves nothing.
        """
        try:
            with self._reading(source_key, reader) as (connection, reader_id):
                return _proofs(connection, reader_id, window)
        except PlanMismatch as error:
            _log.warning("what earlier windows of %s have read is not used: %s", reader, error)
            return ()

    def unannounced(self, source_key: str, reader: str) -> tuple[Run, ...]:
        """Covered runs under the reader's landing whose asset events Airflow may not have, in order of their windows.

        They were never sent, or by a task instance that is not known to have succeeded: `Run.announced_by`.
        """
        with self._reading(source_key, reader) as (connection, reader_id):
            if (kept := landings.current(connection, reader_id)) is None:
                return ()
            is_open = or_(runs.c.announced_at.is_(None), runs.c.announced_by.is_not(None))
            left = (runs.c.reader_id == reader_id, moves.covered_under(kept.id), is_open)
            return records.found_runs(connection, *left)

    def announce(
        self, numbers: Iterable[int], by: Announcer | None = None, keys: Mapping[int, str | None] | None = None
    ) -> None:
        """The asset events of these runs were given to Airflow, which takes them once that task instance succeeds.

        A window has the partition key that it was announced under last.
        """
        now = datetime.now(UTC)
        with self._database.writing() as connection:
            for number in numbers:
                key = (keys or {}).get(number)
                told = {"announced_at": now, "announced_by": by, "announced_key": key}
                connection.execute(update(runs).where(runs.c.id == number).values(told))
                if key is not None:
                    row = moves.locked(connection, number)
                    others = (is_window(runs, row["reader_id"], moves.window_of(row)), runs.c.id != number)
                    connection.execute(update(runs).where(*others).values(announced_key=None))

    def known_keys(
        self, source_keys: Sequence[str], reader: str, windows: Collection[Window], keys: Sequence[str]
    ) -> Known:
        """How partition keys of a reader's windows are written, and under which ones they were announced.

        Of its present landings of these sources: all windows among these ones, and those of these keys.
        """
        if not windows:
            return NOTHING
        among = runs.c.window_start.between(min(one.start for one in windows), max(one.start for one in windows))
        which = or_(among, *(runs.c.announced_key.in_(some) for some in _parts(keys)))
        announced = select(runs.c.id, runs.c.window_start, runs.c.window_end, runs.c.announced_key).where(
            runs.c.state == "covered", runs.c.announced_key.is_not(None), which
        )
        rules: list[KeyRule | None] = []
        rows: list[Row[Any]] = []
        with self._database.reading() as connection:
            for some in _parts(source_keys):
                kept = landings.current_of(some, reader)
                rules.append(landings.newest_key_rule(connection, kept))
                rows += connection.execute(
                    announced.join(kept, and_(runs.c.reader_id == kept.c.reader_id, runs.c.landing_id == kept.c.id))
                )
        told = [(row.announced_key, Window(row.window_start, row.window_end)) for row in sorted(rows)]
        return Known(next(filter(None, rules), None), {window: key for key, window in told}, dict(told))

    def confirm(self, numbers: Iterable[int]) -> None:
        """Airflow has the asset events of these runs."""
        self._note(numbers, {"announced_by": None})

    def withdraw(self, numbers: Iterable[int]) -> None:
        """Airflow has not got the asset events of these runs: the task instance that gave them did not succeed."""
        self._note(numbers, {"announced_at": None, "announced_by": None})

    def _note(self, numbers: Iterable[int], values: Mapping[str, Any]) -> None:
        with self._database.writing() as connection:
            for number in numbers:
                connection.execute(update(runs).where(runs.c.id == number).values(values))


def _parts(values: Sequence[str]) -> Iterator[Sequence[str]]:
    """So many that a statement of any database takes them as its variables."""
    return (values[at : at + _AT_ONCE] for at in range(0, len(values), _AT_ONCE))


def _proofs(connection: Connection, reader_id: int | None, window: Window) -> tuple[Proof, ...]:
    middle = window.start + window.length / 2
    found = select(runs.c.id, runs.c.window_start).where(
        shares_time(runs, reader_id, window),
        runs.c.state == "covered",
        type_coerce(runs.c.receipt, Text).contains('"times":[[', autoescape=True),
    )
    rows = sorted(connection.execute(found), key=lambda row: abs(row.window_start - middle))[:MOST_PROOFS]
    read = select(pins.c.plan, runs.c.receipt).join(pins, runs.c.pin_id == pins.c.id)
    chosen = connection.execute(read.where(runs.c.id.in_([row.id for row in rows])))
    return tuple(Proof(Plan.from_json(json.loads(row.plan)), Receipt.from_json(row.receipt)) for row in chosen)
