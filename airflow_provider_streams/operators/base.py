"""What the operators that land windows share: their arguments, assets and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, BaseOperator

from airflow_provider_streams.airflow_runtime.asset_events import MOST_EVENTS, Announcement, asset_of, withhold
from airflow_provider_streams.airflow_runtime.window_context import open_context
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.lake.registry import check_undecodable
from airflow_provider_streams.model.booleans import check_booleans
from airflow_provider_streams.model.plan.plan import DEFAULT_SPLIT_BYTES, OnLoss, OnUnproven
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy, OnDecodeError
from airflow_provider_streams.model.sinks.placeholders import SourceTable, is_fan_out
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.stream.source import Source, check_source
from airflow_provider_streams.model.window.basis import BasisLike
from airflow_provider_streams.model.window.coverage_timeline import draw
from airflow_provider_streams.model.window.missing_rows import OnMissing
from airflow_provider_streams.model.window.partition_key import PartitionKeys
from airflow_provider_streams.model.window.window_schedule import WindowSchedule
from airflow_provider_streams.operators.landing_arguments import UNSAID, check_landing, rendered_landing
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.template_rendering import RendersValues, is_late_value
from airflow_provider_streams.windows.claim.overrides import Overlap, Overrides
from airflow_provider_streams.windows.plan.fan_out_sources import expand_named
from airflow_provider_streams.windows.run.outcome import Outcome, other_type_sentence
from airflow_provider_streams.windows.run.request import OneWindow, ReadRequest, WindowsOfSpan
from airflow_provider_streams.windows.run.summary import Read, preview_text, summary
from airflow_provider_streams.windows.run.window_run import Prepared, WindowRun

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context

    from airflow_provider_streams.journal.store import Journal


class LandingOperator(RendersValues, BaseOperator):
    """Lands windows of a source.

    Args:
        source: what to read; its texts are templated: `PulsarSource("shop/orders/{{ params.topic }}")`.
        basis: how a time becomes a position: `PublishTime(slack=..)`, `RecordedCuts(max_skew=..)`, `EventTime(..)`,
            `Chained()`, the user's own `Cuts(start, end)`, or the name of one for its defaults: `publish`, `append`,
            `event`, `chained`. Default: the system's, `publish` for Pulsar and `append` for Pravega.
        sink: where the rows land, each window replaced on its own; its texts are templated. With placeholders
            (`IcebergSink("lake.{topic}")`) a table for each topic or stream of the source. None: windows are read and
            proven only. Required, except for a dry run.
        transform: `package.module:function` (templated), imported by Spark's driver program, that takes a Spark
            DataFrame of one window, or one and a `TransformContext`, and gives one. It runs no action.
        columns: the columns to read (templated); None: the system's default ones.
        spark_conn_id: a connection of type `spark` or `spark_connect`; None: Spark inside the task, `local[*]`.
        spark: Spark's settings by the Spark provider's names, `{"driver_memory": "4g", "conf": {..}}` (templated); they
            count more than those of the connection's extra `spark`.
        reader: the name under which windows are covered (templated); default `dag_id.task_id`.
        on_loss: `fail`, or `record` to land what the stream still holds and record the loss.
        on_unproven: `land`, and say so, or `fail`, if it is unknown whether a window's start is still held: the stream
            dropped events before it was first observed.
        on_decode_error: what becomes of events that the source's `value` cannot decode: `fail`; `quarantine` lands them
            next to the table with position, cause and bytes; `drop` counts them and leaves them out.
        max_decode_error_rate: for the last two, the share of a window's events that they may be, 0 to 1; more fail it.
        dry_run: plan, check that the table takes the rows, say what would be read, and stop.
        replan: an override: make a new plan, even if one is pinned. A dry run only shows it.
        full_refresh: an override: land something else, elsewhere or on another window schedule than the reader did so
            far, or rows that its table cannot take. The table's rows are set aside, and every window is missing again.
            If none of this changed, it does nothing: use `replan` to read a window again.
        allow_fewer_rows: an override: replace a window by one that holds fewer rows.
        overlap: `refuse`; or `replace`, an override: covered windows that share time with a new one are taken out
            of the table as a whole.
        target_split_bytes: stored bytes that one Spark task reads.
        on_missing: called with `MissingWindows` when a run finds that covered windows are missing again, because
            someone dropped the table or removed rows from it. An error in it is logged, and the run goes on.
    """

    template_fields: Sequence[str] = ("source", "sink", "reader", "transform", "columns", "spark_conn_id", "spark")
    ui_color = "#d3ecf0"

    def __init__(
        self,
        *,
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
        super().__init__(**kwargs)
        self.source = check_source(source)
        self.basis = declaration_of(source.system).basis(basis)
        _check_choices(on_loss, on_unproven)
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
        self.undecodable = DecodeErrorPolicy(on_decode_error, max_decode_error_rate)
        check_undecodable(self.sink, self.undecodable)
        check_booleans(type(self).__name__, dry_run=dry_run)
        self.dry_run_only = dry_run
        self.overrides = Overrides(replan, full_refresh, allow_fewer_rows, overlap)
        self.target_split_bytes = target_split_bytes
        self.on_missing = on_missing
        self._reads: Sequence[Read] = ()
        add_assets(self, source, self.sink)

    def on_kill(self) -> None:
        """Cancel the Spark work of this task."""
        from airflow_provider_streams.airflow_runtime.spark_launch import cancel  # noqa: PLC0415

        cancel()

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any] | None:  # noqa: ARG002
        """For OpenLineage: the ranges read of each topic for each window, and the table. None: nothing was read."""
        from airflow.providers.openlineage.extractors import OperatorLineage  # noqa: PLC0415 - its listener asks

        from airflow_provider_streams.airflow_runtime.openlineage import datasets, run_facets  # noqa: PLC0415

        if not self._reads:
            return None
        inputs, outputs = datasets(self.source, self._reads)
        return OperatorLineage(inputs=inputs, outputs=outputs, run_facets=run_facets(self._reads))

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> OperatorLineage[Any, Any] | None:
        """As when it succeeds: what was landed stays so, whatever became of the others."""
        return self.get_openlineage_facets_on_complete(task_instance)

    @property
    def is_fan_out(self) -> bool:
        """Whether each topic or stream has a table of its own."""
        return is_fan_out(self.sink)

    def _run(
        self,
        context: Context,
        windows: OneWindow | WindowsOfSpan,
        keys: PartitionKeys,
        window_schedule: WindowSchedule | None = None,
    ) -> dict[str, Any]:
        """Claim, plan, pin, read, compare, land, record and announce windows; what the task returns.

        Args:
            context: the run's.
            windows: which windows.
            keys: the partition keys of the windows' asset events.
            window_schedule: how the windows tile time; None: it is not known.
        """
        request = self._request(context, windows, window_schedule)
        lands_in = None if self.dry_run_only else self.sink
        with (
            open_context(
                self.source, self.spark_conn_id, self.spark, lands_in=lands_in, on_missing=self.on_missing
            ) as window_context,
            window_context.journal.kept_open() if self.is_fan_out else nullcontext(),
        ):
            run = WindowRun(window_context, request)
            prepared = run.prepare(dry_run=self.dry_run_only)
            self.log.info("%s\n%s", "Plan" if isinstance(windows, OneWindow) else "Preview", preview_text(prepared))
            if self.dry_run_only:
                return self._shown(prepared)
            outcome = run.land(prepared, self._log_job)
            self._reads = outcome.landed
            self._log_outcome(run.request, outcome, prepared, window_context.journal)
            outcome.check(request)
            left = self._announce(window_context.journal, context, prepared, keys)
        return summary(prepared, outcome) | {"unannounced": left}

    def _request(
        self, context: Context, windows: OneWindow | WindowsOfSpan, window_schedule: WindowSchedule | None
    ) -> ReadRequest:
        return ReadRequest(
            self.source,
            reader_name(self.reader, context),
            windows,
            task_instance_key(context),
            rendered_landing(self),
            self.basis,
            window_schedule,
            self.on_loss,
            self.on_unproven,
            self.undecodable,
            self.target_split_bytes,
            self.overrides,
            tables=self.sink if self.is_fan_out else None,
        )

    def _shown(self, prepared: Prepared) -> dict[str, Any]:
        """What a dry run returns: nothing was landed, so no event is sent."""
        self._reads = prepared.reads
        if self.sink is not None:
            withhold(self, (self.sink, *(table.sink for table in prepared.sources)))
        if isinstance(prepared.request.windows, OneWindow):
            prepared.outcome.check(prepared.request, planned=len(prepared.reads))
        return summary(prepared, None)

    def _log_job(self, number: int, outcome: Outcome) -> None:
        self.log.info("Job %d: %s", number, outcome.words)

    def _log_outcome(self, request: ReadRequest, outcome: Outcome, prepared: Prepared, journal: Journal) -> None:
        if isinstance(request.windows, OneWindow):
            for _, plan, landed in outcome.landed:
                if said := other_type_sentence(plan.window, landed.receipt):
                    self.log.info("%s", said)
            for said in outcome.notes():
                self.log.warning("%s", said)
            self.log.info("Window %s: %s", request.windows.window, outcome.words)
        elif request.tables is None:
            horizon = prepared.tables[0].preview.horizon
            self.log.info("Coverage\n%s", draw(request.coverage(journal), str(self.source), horizon=horizon))

    def _announce(self, journal: Journal, context: Context, prepared: Prepared, keys: PartitionKeys) -> int:
        """Announce what the reader landed; how many windows are left to announce."""
        if self.sink is None:
            return 0
        tables = prepared.sources if self.is_fan_out else (SourceTable(self.source, self.sink),)
        announcement = Announcement(journal, self, context, reader=prepared.request.reader, sink=self.sink, keys=keys)
        return announcement.send(tables)


def _check_choices(on_loss: str, on_unproven: str) -> None:
    if on_loss not in ("fail", "record"):
        raise InvalidRequest(f"on_loss must be 'fail' or 'record', got {on_loss!r}")
    if on_unproven not in ("land", "fail"):
        raise InvalidRequest(f"on_unproven must be 'land' or 'fail', got {on_unproven!r}")


def add_assets(task: BaseOperator, source: Source, sink: Sink | None) -> None:
    """Add the source to a task's inlets, and the sink to its outlets.

    A sink with placeholders has one asset for all tables, and one for each table of named topics, unless they are many.
    A value with templates is no asset yet: Airflow must know assets before a run.
    """
    if not is_late_value(source):
        task.inlets = _with_asset(task.inlets, asset_of(source))
    if sink is None or is_late_value(sink):
        return
    task.outlets = _with_asset(task.outlets, asset_of(sink))
    named = expand_named(source, sink) if is_fan_out(sink) and not is_late_value(source) else None
    if named is not None and len(named) <= MOST_EVENTS:
        for table in named.tables:
            task.outlets = _with_asset(task.outlets, asset_of(table.sink))


def _with_asset(assets: Any, asset: Asset) -> list[Any]:
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
    if str(given).strip() in ("", "None"):
        raise InvalidRequest(f"reader must be a name, and its template gave {given!r}: leave it out for dag_id.task_id")
    return given


def task_instance_key(context: Context) -> TaskInstanceKey:
    """Who reads, as the journal records it."""
    ti = context["ti"]
    mapped = getattr(ti, "map_index", None)
    return TaskInstanceKey(ti.dag_id, ti.run_id, ti.task_id, ti.try_number, -1 if mapped is None else mapped)
