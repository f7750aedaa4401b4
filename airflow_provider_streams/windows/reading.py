"""Read a pinned plan, land it, and record what became of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import DataLoss, FewerRows, StreamsError
from airflow_provider_streams.model.landing import Held, Landed, Landing
from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.model.receipt import Receipt
from airflow_provider_streams.model.sink import Sink
from airflow_provider_streams.model.timeline import undecodable_words
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.windows.acts import Acts
from airflow_provider_streams.windows.ask import Ask
from airflow_provider_streams.windows.fitting import Outgrown, check_room
from airflow_provider_streams.windows.landing import (
    check,
    check_landable,
    enter,
    fitting_foreseen,
    fitting_of,
    land_anew,
    refuse_overlaps,
)
from airflow_provider_streams.windows.own_table import Entered
from airflow_provider_streams.windows.planning import WindowRead, fresh_plan, pinned_plan
from airflow_provider_streams.windows.workplace import Workplace

if TYPE_CHECKING:
    from airflow_provider_streams.journal.runs import Started
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.landing import TableTerms
    from airflow_provider_streams.spark.spec import JobSpec
    from airflow_provider_streams.systems.base import StreamSystem

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunIds:
    """Who reads: as the journal records it."""

    dag_id: str
    run_id: str
    task_id: str
    try_number: int
    map_index: int = -1


@dataclass(frozen=True, slots=True)
class Begin:
    """How runs begin: under which landing, by whom, and what may give way."""

    entered: Entered
    """See `windows.landing.enter`."""
    ids: RunIds
    acts: Acts = field(default_factory=Acts)

    def run(self, journal: Journal, source_key: str, plan: Plan) -> Started:
        """See `Journal.start_run`; a plan that cannot hold what the table holds is not the window's any more."""
        landing_id = self.entered.landing_id
        try:
            return journal.start_run(
                source_key,
                plan,
                **asdict(self.ids),
                landing_id=landing_id,
                replace_overlaps=self.acts.overlap == "replace",
                accept_fewer=self.acts.accept_fewer,
            )
        except FewerRows as error:
            with noting_on(error):
                journal.take_back_plans(source_key, plan.reader, landing_id, plan.window)
            raise

    def finish(self, journal: Journal, source_key: str, plan: Plan, run: int, landed: Landed) -> None:
        """The window is covered; and what it was decoded as is what the reader lands from now on."""
        journal.finish_run(run, landed)
        if self.entered.payloads is not None and self.entered.landing_id is not None:
            journal.decode_as(source_key, plan.reader, self.entered.landing_id, self.entered.payloads)

    def terms(self, started: Started) -> TableTerms | None:
        """What holds for the window in its table; None: there is none."""
        terms = self.entered.terms
        return None if terms is None else replace(terms, later=started.later)

    def held(self, started: Started) -> Held | None:
        """What must not become less; None: it may."""
        return None if self.acts.accept_fewer else started.held


@dataclass(frozen=True, slots=True)
class Entry:
    """A window that is planned and pinned, and may land."""

    read: WindowRead
    plan: Plan
    landing: Landing
    """Where its rows go."""
    begin: Begin

    @property
    def source_key(self) -> str:
        """Its source, in the journal."""
        return self.read.source_key


def read_window(
    place: Workplace, ask: Ask, read: WindowRead, ids: RunIds, acts: Acts, *, planned: Callable[[Plan], None]
) -> tuple[Plan, Landed]:
    """Whatever reads one window does this: may it land there, plan and pin, read, compare, land, record.

    Args:
        place: where.
        ask: what the reader is to land.
        read: which window, and how.
        ids: who reads.
        acts: what may give way.
        planned: told of the pinned plan before it is read.

    Raises:
        LandingMismatch, OffGrid, ForeignTable, WindowsOverlap: it may not land there.
        StreamsError: what planning and reading met; recorded in the journal.
    """
    with closing(place.stream.system()) as system:
        entry = prepare(place.journal, system, ask, read, ids=ids, acts=acts)
    planned(entry.plan)
    return entry.plan, land(place, entry)


def prepare(journal: Journal, system: StreamSystem, ask: Ask, read: WindowRead, *, ids: RunIds, acts: Acts) -> Entry:
    """What comes before a window is read: may it land there, plan and pin.

    Raises:
        LandingMismatch, OffGrid, ForeignTable, WindowsOverlap: it may not land there.
        StreamsError: what planning met; recorded in the journal.
    """
    window = read.question.window
    while True:
        entered = enter(journal, ask, [window], acts, partial(check_room, system, ask, window))
        refuse_overlaps(journal, ask, window, acts)
        fitting = fitting_of(ask, entered, acts)
        try:
            with recorded_planning(journal, read, ids):
                plan = pinned_plan(journal, system, read, replan=acts.replan, fitting=fitting)
        except Outgrown:
            land_anew(journal, ask, entered)  # under a new landing any columns fit
        else:
            return Entry(read, plan, ask.landing, Begin(entered, ids, acts))


def plan_window(place: Workplace, ask: Ask, read: WindowRead, ids: RunIds, acts: Acts) -> Plan:
    """As `read_window`, up to the plan: what a dry run does, which lands nothing. See `plan_only`."""
    with closing(place.stream.system()) as system:
        return plan_only(place.journal, system, ask, read, ids=ids, acts=acts)


def plan_only(journal: Journal, system: StreamSystem, ask: Ask, read: WindowRead, *, ids: RunIds, acts: Acts) -> Plan:
    """As `prepare`, for a dry run, which takes nothing away: a window keeps the plan that it has.

    So a plan with `replan`, or one that needs a new landing, is shown only: it is pinned by who reads it.

    Raises:
        SinkError: its rows could not be landed, see `check_landable`.
        StreamsError: as `prepare`.
    """
    window = read.question.window
    foreseen = check(journal, ask, [window], acts, partial(check_room, system, ask, window))
    refuse_overlaps(journal, ask, window, acts, foreseen)
    fitting = fitting_foreseen(ask, foreseen, acts)
    try:
        if acts.replan:
            plan = fresh_plan(journal, system, read, replan=True, fitting=fitting)
        else:
            with recorded_planning(journal, read, ids):
                plan = pinned_plan(journal, system, read, replan=False, fitting=fitting)
    except Outgrown as outgrown:
        plan, foreseen = outgrown.plan, foreseen.anew(ask)
    check_landable(journal, system, ask, foreseen, plan)
    return plan


def land(place: Workplace, entry: Entry) -> Landed:
    """Read a pinned plan with Spark, compare, land, and record the window as covered.

    Raises:
        WindowsOverlap: covered windows share time with it.
        StreamsError: what the read met; recorded in the journal.
    """
    from airflow_provider_streams.spark.sinks import connection_properties  # noqa: PLC0415 - Spark's side when used

    with recorded_run(place.journal, entry.source_key, entry.plan, entry.begin) as started:
        table, options = connection_properties(entry.landing.sink), place.stream.options()
        landed: Landed = place.spark(replace(job_spec(place, entry, started), table=table, options=options))
        entry.begin.finish(place.journal, entry.source_key, entry.plan, started.run, landed)
    place.figures.covered(entry.source_key, entry.plan, landed.receipt)
    return landed


def job_spec(place: Workplace, entry: Entry, started: Started) -> JobSpec:
    """What a job is told of a window whose run has begun, but for what connections say."""
    from airflow_provider_streams.spark.spec import JobSpec  # noqa: PLC0415 - Spark's side when used

    return JobSpec(
        plan=entry.plan,
        sink=entry.landing.sink,
        columns=entry.landing.columns,
        transform=entry.landing.transform,
        on_loss=entry.read.on_loss,
        small_plan_bytes=place.small_plan_bytes,
        terms=entry.begin.terms(started),
        held=entry.begin.held(started),
        undecodable=entry.read.undecodable,
    )


@contextmanager
def recorded_planning(journal: Journal, read: WindowRead, ids: RunIds) -> Iterator[None]:
    """Records a window that can never be planned as failed, or lost; one that is only not ready yet is no failure."""
    try:
        yield
    except StreamsError as error:
        if not error.retryable:
            with noting_on(error):
                journal.fail_window(
                    read.source_key,
                    read.reader,
                    read.question.window,
                    error_type=type(error).__name__,
                    message=str(error),
                    lost=isinstance(error, DataLoss),
                    **asdict(ids),
                )
        raise


@contextmanager
def recorded_run(journal: Journal, source_key: str, plan: Plan, begin: Begin) -> Iterator[Started]:
    """A run in the journal; whatever ends it early is recorded, and raised again."""
    started = begin.run(journal, source_key, plan)
    try:
        yield started
    except BaseException as error:
        with noting_on(error):
            journal.fail_run(started.run, type(error).__name__, recordable(error), lost=isinstance(error, DataLoss))
        raise


@contextmanager
def noting_on(error: BaseException) -> Iterator[None]:
    """While a failure is recorded: if that fails too, it is logged and noted on `error`, which stays the one raised.

    The run then stays a running one in the journal, until a later run of its window supersedes it.
    """
    try:
        yield
    except Exception as second:  # noqa: BLE001 - whatever it is, the task failed because of `error`
        note = f"The journal could not record this failure: {type(second).__name__}: {recordable(second)}"
        _log.warning("%s", note)
        error.add_note(note)


def recordable(error: BaseException) -> str:
    """An error's text as the journal may keep it: foreign ones may quote what they were given, secrets included."""
    return str(error) if isinstance(error, StreamsError) else "see the task's log"


def undecodable_sentence(window: Window, receipt: Receipt, sink: Sink | None) -> str:
    """What became of a window's events that could not be decoded, and where they are; empty: all could be."""
    quarantined, dropped = (receipt.totals[name] for name in ("quarantined", "dropped"))
    if not receipt.undecodable:
        return ""
    said = f"{window}: {undecodable_words(quarantined, dropped)}"
    if quarantined and sink is not None:
        said += f". They lie beside its rows in {sink.asset_uri}: see `airflow streams quarantine show`"
    return said


def summary(plan: Plan, landed: Landed | None, sink: Sink | None) -> dict[str, Any]:
    """What a read returns as XCom; plain JSON values, no secret. Without a landing: what a dry run shows."""
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
        "skew_seconds": list(plan.skew_seconds) if plan.skew_seconds else None,
        "target": sink.asset_uri if sink else None,
    }
