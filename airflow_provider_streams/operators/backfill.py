"""Fill what is missing of a span of time, many windows in one Spark job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.airflow_runtime.task_states import AT_WORK, TaskStates
from airflow_provider_streams.model.plan.plan import DEFAULT_SPLIT_BYTES, OnLoss, OnUnproven
from airflow_provider_streams.model.schema.decode_errors import OnDecodeError
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.backfill import MAX_BYTES, MAX_WINDOWS, Limits, Selection, parse_select
from airflow_provider_streams.model.window.basis import BasisLike
from airflow_provider_streams.model.window.coverage import RunRef
from airflow_provider_streams.model.window.missing_rows import OnMissing
from airflow_provider_streams.model.window.partition_key import KEY_FORMAT
from airflow_provider_streams.model.window.window import Window, utc_moment
from airflow_provider_streams.model.window.window_schedule import parse_schedule
from airflow_provider_streams.operators.base import LandingOperator
from airflow_provider_streams.operators.landing_arguments import UNSAID
from airflow_provider_streams.operators.previous_attempts import PreviousAttempts
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.timetables.run_facts import partition_keys
from airflow_provider_streams.windows.claim.overrides import Overlap
from airflow_provider_streams.windows.run.request import WindowsOfSpan, check_any_order

if TYPE_CHECKING:
    from airflow.sdk import Context


class BackfillWindowsOperator(LandingOperator):
    """Reads the windows of a span of time that are not covered yet, many in one Spark job, each proven on its own.

    First it previews: which windows, how many bytes, tasks and minutes, and what is beyond the retention horizon.
    Then it pins every plan, and reads jobs of at most `max_bytes` one after the other. A window is recorded as covered
    as soon as its job's receipts agree. One that fails or is lost does not hold up the others, and fails the task at
    the end. A retry, after a failure or a kill, goes on with what is not covered.

    Args:
        start: where the first window starts: an aware datetime, or its ISO 8601 text (templated).
        end: where the last window ends, at the latest (templated).
        window_length: the length of a window, or its text (`1h`, `1d Europe/Berlin`, see `parse_schedule`). Default:
            the reader's own window schedule.
        select: `missing` (all that are not covered), `failed`, `lost`, `late`, `all`; one or several. Windows that
            another task is reading are left to it.
        lookback: how long after a window's end its late rows may be stored: covered windows are recounted, the late
            rows shown in the coverage, and read again with `select="late"`. None: late rows are not looked for.
        max_bytes: stored bytes that one Spark job reads.
        max_windows: windows that one Spark job reads.
        partition_key_format: how a window's start becomes the partition key of its asset event, until the DAG that
            reads the windows on schedule has told how its timetable writes keys; None: such windows have no event under
            a key. Windows that are partitions of this DAG's own timetable have the keys that it gives them.

    The other arguments are those of `LandingOperator`. `reader` names the reader of the task that reads the windows on
    schedule; `basis` is one whose windows need no order. With `on_loss="record"`, the rest of lost windows is read;
    with `on_unproven="fail"`, unproven windows are left out like lost ones. A `dry_run` pins nothing.

    With placeholders in the sink, the windows of each topic or stream of the source are chosen, planned and recorded on
    their own, and jobs read windows of many of them. The earlier windows of a topic that appeared later are filled.

    Every landed window is announced: one asset event for all of them, and one under the partition key of each. A run
    that has a partition key itself sends only those under keys. A failed task sends no events; the next task of its
    reader that succeeds sends them, or `AnnounceWindowsOperator` as a teardown at once.

    Returns (XCom):
        `windows, bytes, tasks, jobs, minutes, horizon, beyond_horizon, not_ready, verdict, covered, rows, failures,
        late_rows, quarantined, dropped, unannounced` and more; windows by their texts, as
        `ReadWindowOperator(window=..)` takes them.
    """

    template_fields: Sequence[str] = ("start", "end", "select", *LandingOperator.template_fields)

    def __init__(
        self,
        *,
        start: datetime | str,
        end: datetime | str,
        window_length: timedelta | str | None = None,
        select: str | Sequence[str] = "missing",
        lookback: timedelta | None = None,
        max_bytes: int = MAX_BYTES,
        max_windows: int = MAX_WINDOWS,
        partition_key_format: str | None = KEY_FORMAT,
        source: Source,
        basis: BasisLike | None = None,
        sink: Sink | None = UNSAID,
        transform: str | None = None,
        columns: Sequence[str] | None = None,
        spark_conn_id: str | None = None,
        spark: Mapping[str, Any] | None = None,
        reader: str | None = None,
        on_loss: OnLoss = "fail",
        on_unproven: OnUnproven = "land",
        on_decode_error: OnDecodeError = "fail",
        max_decode_error_rate: float | None = None,
        dry_run: bool = False,
        replan: bool = False,
        full_refresh: bool = False,
        allow_fewer_rows: bool = False,
        overlap: Overlap = "refuse",
        target_split_bytes: int = DEFAULT_SPLIT_BYTES,
        on_missing: OnMissing | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            source=source,
            basis=basis,
            sink=sink,
            transform=transform,
            columns=columns,
            spark_conn_id=spark_conn_id,
            spark=spark,
            reader=reader,
            on_loss=on_loss,
            on_unproven=on_unproven,
            on_decode_error=on_decode_error,
            max_decode_error_rate=max_decode_error_rate,
            dry_run=dry_run,
            replan=replan,
            full_refresh=full_refresh,
            allow_fewer_rows=allow_fewer_rows,
            overlap=overlap,
            target_split_bytes=target_split_bytes,
            on_missing=on_missing,
            **kwargs,
        )
        check_any_order(self.basis)
        if window_length is not None:
            parse_schedule(window_length)
        self.start, self.end, self.window_length = start, end, window_length
        self.select = select
        self.lookback = lookback
        self.limits = Limits(max_bytes, max_windows)
        self.partition_key_format = partition_key_format

    def execute(self, context: Context) -> dict[str, Any]:
        """Recount, preview, pin, read, record.

        Raises:
            BackfillIncomplete: some windows are not covered; retried only if some failure may pass by itself.
            StreamsError: what concerns all windows alike.
        """
        with terminal_errors():
            selection = Selection(
                parse_select(self.select),
                accepts_loss=self.on_loss == "record",
                is_own=PreviousAttempts.of(self, context).__contains__,
                is_alive=_RunningTasks(context["ti"]).__contains__,
            )
            span = Window(utc_moment(self.start), utc_moment(self.end))
            windows = WindowsOfSpan(span, selection, self.window_length, self.lookback, self.limits)
            return self._run(context, windows, partition_keys(context, key_format=self.partition_key_format))


class _RunningTasks:
    """The runs whose task instance Airflow still sees at work."""

    def __init__(self, ti: Any) -> None:
        self._states = TaskStates(ti)

    def __contains__(self, run: object) -> bool:
        if not isinstance(run, RunRef):
            return False
        return self._states.state(run.dag_id, run.run_id, run.task_id, run.map_index) in AT_WORK
