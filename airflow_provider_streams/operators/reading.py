"""The steps of reading a window, without Airflow's context: plan and pin, record the run, report."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.configuration import conf

from airflow_provider_streams.errors import DataLoss, InvalidRequest, StreamsError
from airflow_provider_streams.hooks import metrics
from airflow_provider_streams.hooks.readiness import WindowQuestion, plan_request
from airflow_provider_streams.model.plan import DEFAULT_SPLIT_BYTES, OnLoss, Plan, PlanRequest
from airflow_provider_streams.model.receipt import Receipt
from airflow_provider_streams.model.sink import Sink
from airflow_provider_streams.model.window import Window

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.systems.base import StreamSystem

_log = logging.getLogger(__name__)

_ALWAYS = Window(datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class WindowRead:
    """One window to read, for whom, and how."""

    question: WindowQuestion
    reader: str
    on_loss: OnLoss = "fail"
    target_split_bytes: int = DEFAULT_SPLIT_BYTES

    @property
    def source_key(self) -> str:
        """The source's identity in the journal."""
        return self.question.source.key


@dataclass(frozen=True, slots=True)
class RunIds:
    """Who reads: as the journal records it."""

    dag_id: str
    run_id: str
    task_id: str
    try_number: int
    map_index: int = -1


def fresh_plan(journal: Journal, system: StreamSystem, read: WindowRead) -> Plan:
    """A plan made now, pinned nowhere.

    Raises:
        WindowNotReady, StartTrimmed, AccessError, SystemUnavailable: as `StreamSystem.plan`.
        InvalidRequest: basis `chained`, and a later window of this reader is covered already.
        NoCutNearby: basis `append`, and no cut was recorded near enough to an edge.
    """
    request = replace(
        plan_request(system, read.question, read.reader),
        on_loss=read.on_loss,
        target_split_bytes=read.target_split_bytes,
    )
    if request.basis == "append":
        return _between_recorded_cuts(journal, system, request, read.question.max_skew)
    if request.basis == "chained":
        request = _chained(journal, request)
    return system.plan(request)


def pinned_plan(journal: Journal, system: StreamSystem, read: WindowRead, *, replan: bool) -> Plan:
    """The plan that every run of this window reads: the pinned one, else a fresh one, pinned now.

    Args:
        journal: keeps the pins.
        system: plans.
        read: which window.
        replan: an explicit act: a fresh plan takes the pin's place.

    Raises:
        StreamsError: as `fresh_plan`.
    """
    if replan:
        return journal.replan(read.source_key, fresh_plan(journal, system, read))
    pinned = journal.pinned(read.source_key, read.reader, read.question.window)
    return pinned or journal.pin(read.source_key, fresh_plan(journal, system, read))


def _between_recorded_cuts(journal: Journal, system: StreamSystem, request: PlanRequest, max_skew: timedelta) -> Plan:
    """The plan between the recorded cuts of a window's edges, marked with how much later these were sampled.

    Raises:
        WindowNotReady: the window has not ended, or no cut was recorded since.
        NoCutNearby: an edge's cut is further off than `max_skew`.
    """
    from airflow_provider_streams.journal.append import recorded_edges  # noqa: PLC0415 - SQL when used

    edges = recorded_edges(journal, request.source, request.window, max_skew)
    plan = system.plan(replace(request, start_cut=edges.start.cut, end_cut=edges.end.cut))
    return replace(plan, skew_seconds=edges.skew_seconds)


def _chained(journal: Journal, request: PlanRequest) -> PlanRequest:
    """The request with its start cut: where the previous covered window of this reader ended."""
    last = journal.last_covered(request.source.key, request.reader)
    if last is None:
        return request
    if last.window == request.window:
        return replace(request, start_cut=last.start_cut)
    if last.window.end > request.window.start:
        raise InvalidRequest(
            f"{request.source}: basis 'chained' reads windows in order, but {request.reader} has covered "
            f"{last.window} already, which ends after {request.window} starts. "
            "Set max_active_runs=1, and backfill with basis='publish'"
        )
    return replace(request, start_cut=last.end_cut)


def covered_without_gap(journal: Journal, source_key: str, reader: str) -> Plan | None:
    """The plan of the last window before the first one of this reader that is not covered; None: none is.

    A later covered window does not count: what lies before it is still unread.
    """
    last: Window | None = None
    for item in journal.coverage(source_key, reader, _ALWAYS.start, _ALWAYS.end).windows:
        if last is None and item.state == "missing" and not item.fingerprint:
            continue  # the time before its first window
        if item.state != "covered" or (last is not None and item.window.start > last.end):
            break
        last = item.window if last is None or item.window.end > last.end else last
    return None if last is None else journal.pinned(source_key, reader, last)


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
def recorded_run(journal: Journal, source_key: str, plan: Plan, ids: RunIds) -> Iterator[int]:
    """A run in the journal; whatever ends it early is recorded, and raised again."""
    run = journal.start_run(source_key, plan, **asdict(ids))
    try:
        yield run
    except BaseException as error:
        with noting_on(error):
            journal.fail_run(run, type(error).__name__, recordable(error), lost=isinstance(error, DataLoss))
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


@dataclass(frozen=True, slots=True)
class Landing:
    """Where the rows of a read go, and through which Spark."""

    sink: Sink | None = None
    transform: str | None = None
    columns: tuple[str, ...] | None = None
    spark_conn_id: str | None = None


def land(
    journal: Journal, read: WindowRead, plan: Plan, landing: Landing, *, options: Mapping[str, str], ids: RunIds
) -> Receipt:
    """Read a pinned plan with Spark, compare, land, and record the window as covered.

    Raises:
        StreamsError: what the read met; recorded in the journal.
    """
    from airflow_provider_streams.hooks.spark import launch  # noqa: PLC0415 - Spark is loaded when it is used
    from airflow_provider_streams.spark.spec import SMALL_PLAN_BYTES, JobSpec  # noqa: PLC0415

    spec = JobSpec(
        plan=plan,
        sink=landing.sink,
        columns=landing.columns,
        transform=landing.transform,
        on_loss=read.on_loss,
        options=dict(options),
        small_plan_bytes=conf.getint("streams", "small_plan_bytes", fallback=SMALL_PLAN_BYTES),
    )
    with recorded_run(journal, read.source_key, plan, ids) as run:
        receipt = launch(spec, landing.spark_conn_id)
        journal.finish_run(run, receipt)
    metrics.covered(read.source_key, plan, receipt)
    return receipt


def summary(plan: Plan, receipt: Receipt | None, sink: Sink | None) -> dict[str, Any]:
    """What a read returns as XCom; plain JSON values, no secret. Without a receipt: what a dry run shows."""
    return {
        "fingerprint": plan.fingerprint,
        "reader": plan.reader,
        "window": plan.window.to_json(),
        "basis": plan.basis,
        "start_cut": plan.start_cut.to_json(),
        "end_cut": plan.end_cut.to_json(),
        "splits": len(plan.splits),
        "rows": receipt.rows if receipt else None,
        "bytes": receipt.bytes if receipt else plan.estimate.bytes,
        "seconds": round(receipt.seconds, 3) if receipt else None,
        "verdict": receipt.verdict if receipt else "planned",
        "totals": receipt.totals if receipt else {},
        "losses": len(plan.losses),
        "skew_seconds": list(plan.skew_seconds) if plan.skew_seconds else None,
        "target": sink.asset_uri if sink else None,
    }
