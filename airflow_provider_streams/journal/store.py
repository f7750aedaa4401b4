"""The journal: which plans are pinned, which windows are covered, where a source's tail was."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection

from airflow_provider_streams.errors import PlanMismatch
from airflow_provider_streams.journal import chains, cuts, history, landings, names, pins, pruning, runs, sightings
from airflow_provider_streams.journal.chains import Chain
from airflow_provider_streams.journal.cuts import CutHistory, GoOn, RecordedCut
from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.landings import KeptLanding, NewLanding
from airflow_provider_streams.journal.pruning import Pruned
from airflow_provider_streams.journal.runs import Failure, Run, Started, Task
from airflow_provider_streams.model.coverage import Coverage
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.grid import Grid
from airflow_provider_streams.model.landing import Landed
from airflow_provider_streams.model.narrowing import Proof
from airflow_provider_streams.model.plan import Plan, Terms
from airflow_provider_streams.model.sighting import Identity, Sighting
from airflow_provider_streams.model.window import Window

_log = logging.getLogger(__name__)

MOST_PROOFS = 64
"""So many receipts are looked at to narrow one plan."""


class Journal:
    """The SQL memory of every reader. Safe to share between threads and forks, and between any number of processes.

    Connects when first used, and then makes or migrates its tables; nothing stays open between two calls.
    Every method raises `JournalUnavailable` (retryable) if the database does not answer and `JournalError` if it
    cannot be used; messages never hold the URL's password.

    Args:
        url: a SQLAlchemy URL: `sqlite:////path/journal.db`, `postgresql://user:password@host/database`, `mysql://..`.
        keep: how long history is kept: once a day, the next window that a reader covers prunes it; None: for ever.

    Raises:
        InvalidRequest: history is kept for a day at least.
        JournalError: a URL that is none, of an asynchronous driver, or of a database in memory.
        MissingDependency: the database's driver is not installed.
    """

    def __init__(self, url: str, *, keep: timedelta | None = None) -> None:
        self._database = Database(url)
        self._keep = None if keep is None else pruning.check_age(keep)

    @classmethod
    def open(cls, url: str, *, keep: timedelta | None = None) -> Self:
        """The journal at `url`, its tables made or migrated now. Any number of processes may open an empty one."""
        journal = cls(url, keep=keep)
        journal._database.prepare()
        return journal

    def close(self) -> None:
        """Nothing stays open."""
        self._database.close()

    def kept_open(self) -> AbstractContextManager[None]:
        """For hundreds of small changes in a row: they cost less while this lasts. The process is not to fork."""
        return self._database.kept_open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Journal({self._database.name!r})"

    # Sources and readers

    def introduce(self, source_key: str, source: Mapping[str, Any]) -> None:
        """Keep the source behind a key, as plain JSON values: who has only the key can then ask the stream."""
        names.write_source(self._database, source_key, json.dumps(source, sort_keys=True))

    def source(self, source_key: str) -> dict[str, Any] | None:
        """The source behind a key as plain JSON values; None: nobody who knew it wrote yet."""
        with self._database.reading() as connection:
            written = names.written_source(connection, source_key)
        return None if written is None else dict(json.loads(written))

    def watched_from(self, source_key: str, reader: str, newest: datetime) -> datetime:
        """Since when windows of a reader are waited for: its first one, or the newest when this was first asked."""
        reader_id = names.ensure_reader(self._database, source_key, reader)
        with self._database.reading() as connection:
            since, first = names.watched_from(connection, reader_id), history.first_start(connection, reader_id)
        if since is None:
            with self._database.writing() as connection:
                since = names.watch_from(connection, reader_id, newest)
        return since if first is None else min(first, since)

    def forget(self, source_key: str, reader: str) -> bool:
        """Forget a reader: its landing, plans and runs. Its table stays; whether there was such a reader."""
        with self._database.writing() as connection:
            reader_id = names.find_reader(connection, source_key, reader)
            if reader_id is not None:
                names.forget_reader(connection, reader_id)
        return reader_id is not None

    # Landings

    def landing(self, source_key: str, reader: str) -> KeptLanding | None:
        """What a reader lands; None: nothing yet."""
        with self._database.reading() as connection:
            return landings.current(connection, names.find_reader(connection, source_key, reader))

    def land_as(self, source_key: str, reader: str, new: NewLanding, *, after: KeptLanding | None) -> KeptLanding:
        """Make this the reader's landing, in place of the one it is known to have; windows are missing from then on.

        Of several at the same moment one wins, and all return it.
        """
        reader_id = names.ensure_reader(self._database, source_key, reader)
        generation = after.generation + 1 if after else 1

        def replacement(connection: Connection) -> KeptLanding | None:
            kept = landings.current(connection, reader_id)
            return kept if kept and kept.generation >= generation else None

        inserted = landings.insertion(reader_id, new, generation)
        return self._database.winner(replacement, lambda: inserted, change=names.change(reader_id))

    def correct_landing(self, source_key: str, reader: str, kept: KeptLanding, new: NewLanding) -> KeptLanding | None:
        """As `land_as`, for the table's mark as it is; None: a window is covered, or being read, under the one kept."""
        with self._database.writing() as connection:
            reader_id = names.find_reader(connection, source_key, reader)
            if reader_id is None:
                return None
            runs.lock(connection, reader_id)
            return landings.correct(connection, reader_id, kept, new)

    def is_landed(self, kept: KeptLanding) -> bool:
        """Whether a window is covered, or being read, under a landing."""
        with self._database.reading() as connection:
            return landings.is_used(connection, kept.id)

    def adopt_landing(self, source_key: str, reader: str, new: NewLanding) -> KeptLanding | None:
        """Fill in what was not known of the reader's landing; None: it has none."""
        with self._database.writing() as connection:
            reader_id = names.find_reader(connection, source_key, reader)
            if reader_id is None:
                return None
            runs.lock(connection, reader_id)
            kept = landings.current(connection, reader_id)
            return None if kept is None else landings.adopt(connection, kept, new)

    # Plans

    def pin(self, source_key: str, plan: Plan) -> Plan:
        """The plan everyone reads for this window: this one if it is the first, else the one pinned before.

        Raises:
            PlanMismatch: the pinned plan is of another release, or was changed in the database.
        """
        plan.check()
        reader_id = names.ensure_reader(self._database, source_key, plan.reader)
        with self._database.reading() as connection:
            before = pins.newest(connection, reader_id, plan.window)
        if before is not None and before.void:
            return self.replan(source_key, plan)
        return self._database.winner(
            lambda connection: pins.newest(connection, reader_id, plan.window),
            lambda: pins.insertion(reader_id, plan, generation=1),
            change=names.change(reader_id),
        ).plan

    def pinned(self, source_key: str, reader: str, window: Window) -> Plan | None:
        """The plan that counts for this window; None: it was never planned, or a later window took its place.

        Raises:
            PlanMismatch: it is of another release, or was changed in the database.
        """
        with self._database.reading() as connection:
            pin = pins.counting(connection, names.find_reader(connection, source_key, reader), window)
        return pin.plan if pin else None

    def last_terms(self, source_key: str, reader: str, basis: str) -> Terms | None:
        """What was asked of a reader last, of a basis, and stands; None: nothing, or it is not known. See `pins`."""
        with self._database.reading() as connection:
            return pins.last_terms(connection, names.find_reader(connection, source_key, reader), basis)

    def beside(self, source_key: str, reader: str, window: Window) -> tuple[Plan | None, Plan | None]:
        """The plans that count for the windows that end where this one begins, and begin where it ends.

        Raises:
            PlanMismatch: one is of another release, or was changed in the database.
        """
        with self._database.reading() as connection:
            before, behind = pins.beside(connection, names.find_reader(connection, source_key, reader), window)
        return before.plan if before else None, behind.plan if behind else None

    def replan(self, source_key: str, plan: Plan) -> Plan:
        """Replace the pin by a new generation; the window is covered no more until a run of it is.

        Of replans at the same moment one wins, and all return it. Earlier plans and runs stay as history.

        Raises:
            PlanMismatch: the winner's plan is of another release, or was changed in the database.
        """
        plan.check()
        reader_id = names.ensure_reader(self._database, source_key, plan.reader)
        with self._database.reading() as connection:
            replaced = pins.newest(connection, reader_id, plan.window)
        generation = replaced.generation + 1 if replaced else 1

        def replacement(connection: Connection) -> pins.Pin | None:
            pin = pins.newest(connection, reader_id, plan.window)
            return pin if pin and pin.generation >= generation else None

        inserted = pins.insertion(reader_id, plan, generation)
        return self._database.winner(replacement, lambda: inserted, change=names.change(reader_id)).plan

    def plan_read(self, source_key: str, reader: str, window: Window, fingerprint: str) -> Plan | None:
        """A plan that is or was pinned for a window, by its fingerprint; None: there is none, or it was pruned.

        Raises:
            PlanMismatch: it is of another release, or was changed in the database.
        """
        with self._database.reading() as connection:
            reader_id = names.find_reader(connection, source_key, reader)
            pin = pins.read_by(connection, reader_id, window, fingerprint)
        return pin.plan if pin else None

    def is_of_earlier_landing(self, source_key: str, plan: Plan) -> bool:
        """Whether a pinned plan was pinned for an earlier landing of its reader, and nobody read it for this one."""
        with self._database.reading() as connection:
            reader_id = names.find_reader(connection, source_key, plan.reader)
            kept, pin = landings.current(connection, reader_id), pins.counting(connection, reader_id, plan.window)
            if kept is None or pin is None or pin.fingerprint != plan.fingerprint:
                return False
            return pins.is_of_earlier_landing(connection, pin, kept.id)

    def later_columns(self, source_key: str, plan: Plan) -> tuple[str, ...]:
        """The columns that its reader's table got after a pinned plan was pinned."""
        with self._database.reading() as connection:
            reader_id = names.find_reader(connection, source_key, plan.reader)
            kept, pin = landings.current(connection, reader_id), pins.counting(connection, reader_id, plan.window)
            return () if kept is None or pin is None else landings.columns_since(connection, kept.id, pin.id)

    def decode_pinned(self, source_key: str, plan: Plan) -> Plan:
        """Pin a plan in the place of one of the same positions whose payloads became columns otherwise.

        The window is covered no more until a run of it is.

        Raises:
            PlanMismatch: the window was planned anew meanwhile.
        """
        plan.check()
        reader_id = names.ensure_reader(self._database, source_key, plan.reader)
        with self._database.writing() as connection:
            runs.lock(connection, reader_id)
            pins.redecode(connection, reader_id, plan)
        return plan

    def redecode(self, source_key: str, plan: Plan, landing_id: int, payloads: Mapping[str, Any]) -> None:
        """As `decode_pinned`; and what the reader lands is decoded so from now on.

        Args:
            source_key: the source.
            plan: with the new decoding.
            landing_id: the reader's landing as the caller knows it.
            payloads: its new `value` and `key`, as JSON.

        Raises:
            PlanMismatch: the window was planned anew meanwhile, or the reader lands something else.
        """
        plan.check()
        reader_id = names.ensure_reader(self._database, source_key, plan.reader)
        with self._database.writing() as connection:
            runs.lock(connection, reader_id)
            kept = landings.current(connection, reader_id)
            if kept is None or kept.id != landing_id:
                raise PlanMismatch(f"reader {plan.reader!r} of {source_key} lands something else since a moment ago")
            pins.redecode(connection, reader_id, plan)
            landings.redecode(connection, kept, payloads)

    def decode_as(self, source_key: str, reader: str, landing_id: int, payloads: Mapping[str, Any]) -> KeptLanding:
        """What a reader lands is decoded so from now on; what is pinned stays as it is.

        Args:
            source_key: the source.
            reader: whose.
            landing_id: its landing as the caller knows it.
            payloads: its new `value` and `key`, as JSON.

        Raises:
            PlanMismatch: the reader lands something else since.
        """
        with self._database.writing() as connection:
            reader_id = names.find_reader(connection, source_key, reader)
            kept = None if reader_id is None else landings.current(connection, reader_id)
            if reader_id is None or kept is None or kept.id != landing_id:
                raise PlanMismatch(f"reader {reader!r} of {source_key} lands something else since a moment ago")
            runs.lock(connection, reader_id)
            landings.redecode(connection, kept, payloads)
            return landings.current(connection, reader_id) or kept

    def chain(self, source_key: str, reader: str, window: Window) -> Chain:
        """What lies around a window of a chained reader."""
        with self._database.reading() as connection:
            reader_id = names.find_reader(connection, source_key, reader)
            return Chain(None, (), (), None) if reader_id is None else chains.around(connection, reader_id, window)

    def pin_chained(self, source_key: str, plan: Plan, seen: Chain, *, replan: bool = False) -> Plan | None:
        """Pin a window of a chain, if what lies around it is what was seen when it was planned; None: it is not.

        Args:
            source_key: the source.
            plan: starts where the window before it ends.
            seen: from `chain`; without a later window.
            replan: in the place of its pin, and of the open windows before it, whose plans become void.

        Raises:
            PlanMismatch: the plan pinned meanwhile is of another release.
        """
        plan.check()
        reader_id = names.ensure_reader(self._database, source_key, plan.reader)
        with self._database.writing() as connection:
            runs.lock(connection, reader_id)
            if chains.around(connection, reader_id, plan.window) != seen:
                return None
            pin = pins.newest(connection, reader_id, plan.window)
            if pin is not None and not pin.void and not replan:
                return pin.plan
            pins.make_void(connection, reader_id, list(seen.open) if replan else [])
            follows = seen.before.id if seen.before else None
            generation = pin.generation + 1 if pin else 1
            connection.execute(pins.insertion(reader_id, plan, generation, follows))
        return plan

    def last_covered(self, source_key: str, reader: str, *, before: datetime | None = None) -> Plan | None:
        """The plan of the covered window with the greatest end.

        Args:
            source_key: the source.
            reader: the reader.
            before: only windows that end at or before this time; None: all.
        """
        with self._database.reading() as connection:
            reader_id = names.find_reader(connection, source_key, reader)
            if reader_id is None:
                return None
            kept = landings.current(connection, reader_id)
            pin = pins.last_covered(connection, reader_id, kept.id if kept else None, before)
        return pin.plan if pin else None

    # Runs

    def start_run(
        self,
        source_key: str,
        plan: Plan,
        *,
        dag_id: str,
        run_id: str,
        task_id: str,
        try_number: int,
        map_index: int = -1,
        landing_id: int | None = None,
        replace_overlaps: bool = False,
        accept_fewer: bool = False,
    ) -> Started:
        """Note that a task begins to read a pinned plan.

        Runs of this window that still look running (they were killed) become `failed`, cause `Superseded`; one that
        is alive after all may still finish.

        It counts under the landing `landing_id`; None: what is read is proven only. With `replace_overlaps`, covered
        windows that share time with it give way. With `accept_fewer`, its plan need not be able to hold what the
        window's last one held.

        Raises:
            FewerRows: it is not able to: since that was read, events were removed, or the source was made again.
            PlanMismatch: the plan is not the pinned one (pin it first, or somebody replanned), or the reader lands
                something else by now. Run the task again.
            WindowsOverlap: covered windows share time with it, and shall stay.
        """
        reader_id = names.ensure_reader(self._database, source_key, plan.reader)
        task = Task(dag_id, run_id, task_id, try_number, map_index)
        with self._database.writing() as connection:
            return runs.start(
                connection,
                reader_id,
                plan,
                task,
                landing_id,
                replace_overlaps=replace_overlaps,
                accept_fewer=accept_fewer,
            )

    def finish_run(self, run: int, landed: Landed) -> None:
        """The run's receipt agrees and its table is committed: the window is covered. Doing it again does nothing.

        If somebody replanned meanwhile and had already covered the window, that is undone: this run's rows, of the
        earlier plan, replaced the later ones.

        Raises:
            PlanMismatch: the receipt is of another plan than the run.
        """
        with self._database.writing() as connection:
            reader_id = runs.finish(connection, run, landed)
        if self._keep is not None:
            pruning.prune_once_a_day(self._database, reader_id, self._keep)

    def fail_run(self, run: int, error_type: str, message: str, lost: bool = False) -> None:  # noqa: FBT001, FBT002 - the state it reports
        """The run failed; `lost` if the stream no longer holds what the window needs.

        Does nothing if the run covered its window before. Passwords in URLs of the message are masked.
        """
        with self._database.writing() as connection:
            runs.fail(connection, run, Failure(error_type, message, lost))

    def take_back_plans(self, source_key: str, reader: str, landing_id: int | None, window: Window) -> None:
        """A window's plan was refused (`FewerRows`): that by which it is in the table counts again.

        Of a run, `fail_run` does so.
        """
        if landing_id is None:
            return
        reader_id = names.ensure_reader(self._database, source_key, reader)
        with self._database.writing() as connection:
            runs.lock(connection, reader_id)
            runs.take_back_plans(connection, reader_id, landing_id, window)

    def fail_window(
        self,
        source_key: str,
        reader: str,
        window: Window,
        *,
        error_type: str,
        message: str,
        lost: bool,
        dag_id: str,
        run_id: str,
        task_id: str,
        try_number: int,
        map_index: int = -1,
    ) -> int:
        """A task failed before it had a plan, for example with `StartTrimmed`; the number of the run it becomes."""
        reader_id = names.ensure_reader(self._database, source_key, reader)
        task = Task(dag_id, run_id, task_id, try_number, map_index)
        with self._database.writing() as connection:
            return runs.fail_unplanned(connection, reader_id, window, task, Failure(error_type, message, lost))

    def uncover(self, source_key: str, reader: str, landing_id: int, windows: Iterable[Window], cause: str) -> None:
        """Somebody took the rows of these windows out of the table: they are covered no more."""
        with self._database.writing() as connection:
            reader_id = names.find_reader(connection, source_key, reader)
            if reader_id is not None:
                runs.uncover(connection, reader_id, landing_id, windows, cause)

    def count_late(self, run: int, rows: int) -> None:
        """Note how many rows of its window appeared after a covered run had read it; a later count replaces it.

        Raises:
            JournalError: no such run.
        """
        with self._database.writing() as connection:
            runs.count_late(connection, run, rows)

    def runs(self, source_key: str, reader: str, window: Window) -> tuple[Run, ...]:
        """Every run of a window with its receipt or cause, oldest first."""
        with self._database.reading() as connection:
            return runs.of_window(connection, names.find_reader(connection, source_key, reader), window)

    def running(self, source_key: str, reader: str) -> dict[Window, datetime]:
        """The windows whose runs have not ended, with the time since when; some of them may have been killed."""
        with self._database.reading() as connection:
            return runs.running(connection, names.find_reader(connection, source_key, reader))

    def proofs(self, source_key: str, reader: str, window: Window) -> tuple[Proof, ...]:
        """What covered the windows that share time with one, where their receipts tell between which times events lie.

        Of many windows the nearest. A journal that holds plans of another release proves nothing.
        """
        try:
            with self._database.reading() as connection:
                reader_id = names.find_reader(connection, source_key, reader)
                return runs.proofs(connection, reader_id, window, MOST_PROOFS)
        except PlanMismatch as error:
            _log.warning("what earlier windows of %s have read is not used: %s", reader, error)
            return ()

    def unannounced(self, source_key: str, reader: str) -> tuple[Run, ...]:
        """Covered runs under the reader's landing whose asset events were never sent, in order of their windows."""
        with self._database.reading() as connection:
            reader_id = names.find_reader(connection, source_key, reader)
            kept = landings.current(connection, reader_id)
            return () if reader_id is None or kept is None else runs.unannounced(connection, reader_id, kept.id)

    def announce(self, numbers: Iterable[int]) -> None:
        """The asset events of these runs are on their way."""
        with self._database.writing() as connection:
            runs.announce(connection, numbers)

    # Coverage

    def coverage(
        self,
        source_key: str,
        reader: str,
        start: datetime,
        end: datetime,
        grid: Grid | timedelta | None = None,
        *,
        landing: KeptLanding | None = None,
    ) -> Coverage:
        """What is covered of `[start, end)`; see `Coverage.of` for what a grid does with blank time.

        With a landing: as if the reader landed that.

        Raises:
            InvalidWindow: `end` is not after `start`, a naive time, or a length that is not positive.
        """
        span = Window(start, end)
        with self._database.reading() as connection:
            reader_id = names.find_reader(connection, source_key, reader)
            known = [] if reader_id is None else list(history.window_states(connection, reader_id, span, landing))
        return Coverage.of(known, start, end, grid)

    def stretches(
        self, source_key: str, reader: str, start: datetime, end: datetime, grid: Grid | timedelta | None = None
    ) -> Coverage:
        """As `coverage`, but covered windows that touch are shown as one: quick, however many there are."""
        span = Window(start, end)
        with self._database.reading() as connection:
            reader_id = names.find_reader(connection, source_key, reader)
            known = [] if reader_id is None else list(history.stretches(connection, reader_id, span))
        return Coverage.of(known, start, end, grid)

    def sources(self) -> list[tuple[str, str]]:
        """Every (source key, reader) the journal has heard of, in order."""
        with self._database.reading() as connection:
            return names.list_readers(connection)

    def forget_reader(self, source_key: str, reader: str) -> bool:
        """Forget all windows, plans, runs and landings of a reader; False: it was not known.

        Its table stays, and is nobody's from then on. A task that is reading for it at this moment fails.
        """
        with self._database.writing() as connection:
            reader_id = names.find_reader(connection, source_key, reader)
            if reader_id is not None:
                runs.lock(connection, reader_id)
                names.forget_reader(connection, reader_id)
        return reader_id is not None

    # Pruning

    def prune(self, keep: timedelta, *, dry_run: bool = False) -> list[Pruned]:
        """Forget what is older and decides nothing, see `pruning`; what of each reader, where there is anything.

        Args:
            keep: what ended, or was pinned, so long ago or earlier may go.
            dry_run: forget nothing.

        Raises:
            InvalidRequest: history is kept for a day at least.
        """
        return pruning.prune(self._database, keep, dry_run=dry_run)

    # Recorded cuts

    def record_cut(
        self,
        source_key: str,
        cut: Cut,
        *,
        sampled_from: datetime,
        sampled_to: datetime,
        recorder: str,
        identity: Identity = (),
        go_on: GoOn | None = Cut.extend,
    ) -> int | None:
        """Remember a source's tail, sampled between two times, as its next entry; its number, from 1.

        None: another recorder has been quicker, so it is not needed. `identity` is the life it is a cut of. `go_on` is
        the source's rule of order, its system's `go_on`; None takes the cut whatever came before.

        Raises:
            InvalidRequest: it ended before it began, a naive time, or a tail before one that was sampled earlier.
        """
        return cuts.record(
            self._database,
            source_key,
            cut,
            sampled_from=sampled_from,
            sampled_to=sampled_to,
            recorder=recorder,
            identity=identity,
            go_on=go_on,
        )

    def cut_at(self, source_key: str, moment: datetime) -> RecordedCut | None:
        """The first recorded cut whose sampling began at or after `moment`; None: not recorded yet.

        Everyone who ever asks for a moment gets the same one, so adjacent windows share it. The caller judges its
        `skew`: a recorder that stood still leaves a cut much later than the moment.

        Raises:
            NoCutNearby: it may have been pruned.
        """
        return cuts.cut_at(self._database, source_key, moment)

    def cut_before(self, source_key: str, moment: datetime) -> RecordedCut | None:
        """The last recorded cut whose sampling had ended at `moment`: what is stored later lies behind it."""
        return cuts.cut_before(self._database, source_key, moment)

    def recorded_cuts(self, source_key: str, limit: int) -> list[RecordedCut]:
        """The last cuts recorded of a source, oldest first."""
        with self._database.reading() as connection:
            return cuts.recorded(connection, source_key, limit)

    def cut_histories(self) -> list[CutHistory]:
        """Every source with recorded cuts, by name."""
        with self._database.reading() as connection:
            return cuts.histories(connection)

    def prune_cuts(self, before: datetime, source_key: str | None = None) -> int:
        """Forget cuts sampled before this time, of one source or of all; how many.

        Choose it before the oldest window still to be read. The last cut of a source always stays.
        """
        return cuts.prune(self._database, before, source_key)

    # Sightings

    def note_sighting(self, source_key: str, seen: Sighting) -> bool:
        """Keep where a source ended when somebody looked, unless that was kept shortly before of all of its shards.

        Returns:
            Whether it was kept.
        """
        return sightings.note(self._database, source_key, seen)

    def is_seen_about(self, source_key: str, moment: datetime) -> bool:
        """Whether a sighting at this moment would not be kept: it need not be taken."""
        with self._database.reading() as connection:
            return sightings.is_seen_about(connection, source_key, moment)

    def sighting(self, source_key: str, before: datetime) -> Sighting | None:
        """The newest sighting of a source that is not later; where there is none, the first. None: nobody looked."""
        with self._database.reading() as connection:
            return sightings.before(connection, source_key, before)

    def sightings_around(self, source_key: str, start: datetime, end: datetime) -> list[Sighting]:
        """As `sighting` of `start`, then those up to `end`, and the first one behind it."""
        with self._database.reading() as connection:
            return sightings.around(connection, source_key, start, end)
