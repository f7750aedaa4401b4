"""Read one window of a stream with Spark, exactly, and prove it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, BaseOperator

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.workplace import workplace
from airflow_provider_streams.model.basis import MAX_SKEW, BasisLike, check_basis, default_basis
from airflow_provider_streams.model.landing import Landed, Landing
from airflow_provider_streams.model.plan import DEFAULT_SPLIT_BYTES, OnLoss, OnUnproven, Plan
from airflow_provider_streams.model.plan_table import plan_table
from airflow_provider_streams.model.receipt import Receipt
from airflow_provider_streams.model.sink import Sink
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.operators.announcing import KEY_FORMAT, announce, withhold
from airflow_provider_streams.operators.landing import UNSAID, check_landing, rendered_landing
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.timetables import run_facts
from airflow_provider_streams.windows.acts import Acts, Overlap
from airflow_provider_streams.windows.landing import Ask, Entered, check, enter, grid_of, refuse_overlaps
from airflow_provider_streams.windows.of_run import ResolvedWindow, resolve_window
from airflow_provider_streams.windows.planning import WindowRead, pinned_plan
from airflow_provider_streams.windows.readiness import WindowQuestion
from airflow_provider_streams.windows.reading import Begin, RunIds, land, recorded_planning, summary
from airflow_provider_streams.windows.workplace import Workplace

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context

    from airflow_provider_streams.journal.store import Journal


class ReadWindowOperator(BaseOperator):
    """Reads a window of a source with Spark and lands it; a re-run reads the same positions.

    Before reading, the plan is pinned in the journal and logged as a table. After it, the receipt is compared with
    the plan; only then is the table replaced, the window recorded as covered, and the sink's asset updated.

    Args:
        source: what to read.
        window: an explicit window, or its text `start/end` (templated). Default: the run's partition, then its
            data interval.
        window_length: the length of the run's partition, where the DAG's timetable does not tell where the next one
            starts, as when assets trigger it: a time, or its text (`1h`, `1d Europe/Berlin`, see `model.grid`).
        basis: how a time becomes a position: `publish`, `append`, `event`, `chained`, or the user's own
            `Cuts(start, end)`. Default: the system's, `publish` for Pulsar and `append` for Pravega.
        slack: how far publish times may be out of order; read on both sides of the window, then filtered exactly.
        max_skew: basis `append`: how much later than the window's edges their cuts may have been recorded.
        sink: where the rows land. None: the window is read and proven only. Must be said, but for a dry run.
        transform: `package.module:function` (templated), imported by Spark's driver program, that takes a Spark
            DataFrame, or one and a `TransformContext`, and gives one. It runs no action.
        columns: the columns to read (templated); None: the system's default ones.
        spark_conn_id: a connection of type `spark` or `spark_connect`; None: Spark inside the task, `local[*]`.
        spark: Spark's settings by the Spark provider's names, `{"driver_memory": "4g", "conf": {..}}` (templated); they
            count more than those of the connection's extra `spark`.
        reader: the name under which windows are covered; default `dag_id.task_id`.
        on_loss: `fail`, or `record` to land what the stream still holds and say so.
        on_unproven: `land`, and say so, or `fail`, where nobody can say whether the window's start is still held: the
            stream dropped events before anybody looked.
        dry_run: plan, pin, log and return the plan; read nothing.
        replan: an explicit act: make a new plan, although one is pinned.
        reland: an explicit act: land something else, elsewhere or on another grid than the reader did so far. What its
            table holds is set aside, and every window is missing again.
        accept_fewer: an explicit act: replace a window by one that holds fewer rows.
        overlap: `refuse`; or `replace`, an explicit act: covered windows that share time with this one are taken out of
            the table as a whole.
        target_split_bytes: stored bytes that one Spark task reads.

    Returns (XCom):
        `fingerprint, reader, window, start_cut, end_cut, rows, written, bytes, splits, verdict, window_rule, seconds,
        target` and more.
    """

    template_fields: Sequence[str] = ("window", "reader", "transform", "columns", "spark_conn_id", "spark")
    ui_color = "#d3ecf0"

    def __init__(
        self,
        *,
        source: Source,
        window: Window | str | None = None,
        window_length: timedelta | str | None = None,
        basis: BasisLike | None = None,
        slack: timedelta = timedelta(seconds=60),
        max_skew: timedelta = MAX_SKEW,
        sink: Sink | None = UNSAID,
        transform: str | None = None,
        columns: Sequence[str] | None = None,
        spark_conn_id: str | None = None,
        spark: Mapping[str, Any] | None = None,
        reader: str | None = None,
        on_loss: OnLoss = "fail",
        on_unproven: OnUnproven = "land",
        dry_run: bool = False,
        replan: bool = False,
        reland: bool = False,
        accept_fewer: bool = False,
        overlap: Overlap = "refuse",
        target_split_bytes: int = DEFAULT_SPLIT_BYTES,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choices(source=source, basis=basis, on_loss=on_loss, on_unproven=on_unproven)
        self.source = source
        self.window = window
        self.window_length = window_length
        self.basis = basis or default_basis(source.system)
        self.slack = slack
        self.max_skew = max_skew
        self.sink = check_landing(
            source=source, sink=sink, transform=transform, columns=columns, spark=spark, dry_run=dry_run
        )
        self.transform = transform
        self.columns = columns
        self.spark_conn_id = spark_conn_id
        self.spark = spark
        self.reader = reader
        self.on_loss = on_loss
        self.on_unproven = on_unproven
        self.dry_run_only = dry_run
        self.acts = Acts(replan, reland, accept_fewer, overlap)
        self.target_split_bytes = target_split_bytes
        self._last_read: tuple[Plan, Receipt | None] | None = None
        add_assets(self, source, self.sink)

    def execute(self, context: Context) -> dict[str, Any]:
        """Plan, pin, read, compare, land, record.

        Raises:
            StreamsError: typed; a terminal one also is an `AirflowFailException`, so that no retry is spent on it.
        """
        with terminal_errors():
            landing = rendered_landing(self)
            resolved = resolve_window(self.window, self.window_length, run_facts(context))
            self.log.info("Window %s, from the run's %s", resolved.window, resolved.rule)
            plan, landed = self._read(resolved, landing, context)
        self._last_read = plan, landed.receipt if landed else None
        return summary(plan, landed, self.sink) | {"window_rule": resolved.rule}

    def on_kill(self) -> None:
        """Cancel the Spark work of this task."""
        from airflow_provider_streams.hooks.spark import cancel  # noqa: PLC0415

        cancel()

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage | None:  # noqa: ARG002
        """What OpenLineage learns: the ranges read of each topic, the table, the window. None: nothing was planned."""
        from airflow.providers.openlineage.extractors import OperatorLineage  # noqa: PLC0415 - its listener asks

        from airflow_provider_streams.operators.lineage import datasets, run_facets  # noqa: PLC0415

        if self._last_read is None:
            return None
        inputs, outputs = datasets(self.source, [self._last_read], self.sink)
        return OperatorLineage(inputs=inputs, outputs=outputs, run_facets=run_facets([self._last_read]))

    def _read(self, resolved: ResolvedWindow, landing: Landing, context: Context) -> tuple[Plan, Landed | None]:
        read, ids = self._window_read(resolved, context), run_ids(context)
        ask = Ask(self.source, read.reader, landing, read.basis, resolved.grid)
        with workplace(self.source, self.spark_conn_id, self.spark) as place:
            entered = self._enter(place, ask, resolved.window)
            with recorded_planning(place.journal, read, ids), closing(place.stream.system()) as system:
                plan = pinned_plan(place.journal, system, read, replan=self.acts.replan)
            self.log.info("Pinned plan\n%s", plan_table(plan))
            if entered is None:
                self._withhold()
                return plan, None
            landed = land(place, read, plan, landing, Begin(entered, ids, self.acts))
            if self.sink is not None:
                key_format = KEY_FORMAT if context.get("partition_key") else None
                announce_landed(place.journal, context, ask, self.sink, key_format)
        receipt = landed.receipt
        self.log.info("Covered %s: %s rows in %.1f s, %s", plan.window, receipt.rows, receipt.seconds, receipt.verdict)
        return plan, landed

    def _enter(self, place: Workplace, ask: Ask, window: Window) -> Entered | None:
        """Under which landing the window is read; None: a dry run, which lands nothing."""
        entered = None if self.dry_run_only else enter(place.journal, ask, [window], self.acts)
        if entered is None and not self.acts.reland:
            check(place.journal, ask, [window])
        if entered is not None or not self.acts.reland:
            refuse_overlaps(place.journal, ask, window, self.acts)
        return entered

    def _window_read(self, resolved: ResolvedWindow, context: Context) -> WindowRead:
        question = WindowQuestion(self.source, resolved.window, self.basis, self.slack, self.max_skew)
        reader = reader_name(self.reader, context)
        return WindowRead(question, reader, self.on_loss, self.target_split_bytes, self.on_unproven)

    def _withhold(self) -> None:
        """A dry run lands nothing: nobody is told."""
        if self.sink is not None:
            withhold(self, Asset(uri=self.sink.asset_uri))


def announce_landed(journal: Journal, context: Context, ask: Ask, sink: Sink, key_format: str | None) -> int:
    """Send the events of what the reader has landed; see `announcing.announce`."""
    grid = grid_of(journal, ask.source.key, ask.reader)
    asset = Asset(uri=sink.asset_uri)
    whose = {"source_key": ask.source.key, "reader": ask.reader}
    return announce(journal, context, asset, **whose, grid=grid, key_format=key_format)


def check_choices(*, source: object, basis: object, on_loss: str = "fail", on_unproven: str = "land") -> None:
    """Refuse what cannot work when the DAG is parsed, not when it runs.

    Raises:
        InvalidRequest: not a source, or an unknown choice.
    """
    if not isinstance(source, Source):
        raise InvalidRequest(f"source must be one like PulsarSource('topic'), got {type(source).__name__}")
    if basis is not None:
        check_basis(source.system, basis)
    if on_loss not in ("fail", "record"):
        raise InvalidRequest(f"on_loss must be 'fail' or 'record', got {on_loss!r}")
    if on_unproven not in ("land", "fail"):
        raise InvalidRequest(f"on_unproven must be 'land' or 'fail', got {on_unproven!r}")


def add_assets(task: BaseOperator, source: Source, sink: Sink | None) -> None:
    """The source becomes a task's inlet, the sink its outlet: beside what the user gave."""
    task.inlets = _with_asset(task.inlets, source.asset_uri)
    if sink is not None:
        task.outlets = _with_asset(task.outlets, sink.asset_uri)


def _with_asset(assets: Any, uri: str) -> list[Any]:
    asset = Asset(uri=uri)
    given = list(assets) if isinstance(assets, list | tuple) else [assets] if assets else []
    return given if asset in given else [*given, asset]


def reader_name(given: str | None, context: Context) -> str:
    """The name under which windows are covered; default `dag_id.task_id`.

    Raises:
        InvalidRequest: a template that gave no name.
    """
    if given is None:
        ti = context["ti"]
        return f"{ti.dag_id}.{ti.task_id}"
    # a template that renders to nothing gives these: they would be one reader of many DAGs
    if given.strip() in ("", "None"):
        raise InvalidRequest(f"reader must be a name, and its template gave {given!r}: leave it out for dag_id.task_id")
    return given


def run_ids(context: Context) -> RunIds:
    """Who reads, as the journal records it."""
    ti = context["ti"]
    mapped = getattr(ti, "map_index", None)
    return RunIds(ti.dag_id, ti.run_id, ti.task_id, ti.try_number, -1 if mapped is None else mapped)
