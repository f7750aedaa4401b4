"""What the operators that land windows share: their arguments, assets and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, BaseOperator

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.basis import BasisLike
from airflow_provider_streams.model.landing import Landed
from airflow_provider_streams.model.placeholders import SourceTable, is_fan_out
from airflow_provider_streams.model.plan import DEFAULT_SPLIT_BYTES, OnLoss, OnUnproven, Plan
from airflow_provider_streams.model.sink import Sink
from airflow_provider_streams.model.source import Source, check_source
from airflow_provider_streams.model.undecodable import OnUndecodable, Undecodable
from airflow_provider_streams.operators.announcing import MOST_EVENTS, withhold
from airflow_provider_streams.operators.landing import UNSAID, check_landing, check_undecodable
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.windows.acts import Acts, Overlap
from airflow_provider_streams.windows.expansion import expand_named
from airflow_provider_streams.windows.reading import RunIds

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context


class LandingOperator(BaseOperator):
    """Lands windows of a source.

    Args:
        source: what to read.
        basis: how a time becomes a position: `PublishTime(slack=..)`, `RecordedCuts(max_skew=..)`, `EventTime(..)`,
            `Chained()`, the user's own `Cuts(start, end)`, or the name of one for its defaults: `publish`, `append`,
            `event`, `chained`. Default: the system's, `publish` for Pulsar and `append` for Pravega.
        sink: where the rows land, each window replaced on its own; with placeholders (`IcebergSink("lake.{topic}")`) a
            table for each topic or stream of the source. None: windows are read and proven only. Must be said, but for
            a dry run.
        transform: `package.module:function` (templated), imported by Spark's driver program, that takes a Spark
            DataFrame of one window, or one and a `TransformContext`, and gives one. It runs no action.
        columns: the columns to read (templated); None: the system's default ones.
        spark_conn_id: a connection of type `spark` or `spark_connect`; None: Spark inside the task, `local[*]`.
        spark: Spark's settings by the Spark provider's names, `{"driver_memory": "4g", "conf": {..}}` (templated); they
            count more than those of the connection's extra `spark`.
        reader: the name under which windows are covered (templated); default `dag_id.task_id`.
        on_loss: `fail`, or `record` to land what the stream still holds and say so.
        on_unproven: `land`, and say so, or `fail`, where nobody can say whether a window's start is still held: the
            stream dropped events before anybody looked.
        on_undecodable: what becomes of events that the source's `value` cannot decode: `fail`; `quarantine` lands them
            beside the table with position, cause and bytes; `drop` counts them and leaves them out.
        max_undecodable: of these two, which share of a window's events they may be, 0 to 1; more of them fail it.
        dry_run: plan, see whether the table takes the rows, say what would be read, and stop.
        replan: an explicit act: make a new plan, although one is pinned. A dry run only shows it.
        reland: an explicit act: land something else, elsewhere or on another grid than the reader did so far, or rows
            that its table cannot take. What that holds is set aside, and every window is missing again. Where nothing
            of this changed, it does nothing: a window that is to be read anew takes `replan`.
        accept_fewer: an explicit act: replace a window by one that holds fewer rows.
        overlap: `refuse`; or `replace`, an explicit act: covered windows that share time with a new one are taken out
            of the table as a whole.
        target_split_bytes: stored bytes that one Spark task reads.
    """

    template_fields: Sequence[str] = ("reader", "transform", "columns", "spark_conn_id", "spark")
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
        on_undecodable: OnUndecodable = "fail",
        max_undecodable: float | None = None,
        dry_run: bool = False,
        replan: bool = False,
        reland: bool = False,
        accept_fewer: bool = False,
        overlap: Overlap = "refuse",
        target_split_bytes: int = DEFAULT_SPLIT_BYTES,
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
        self.undecodable = Undecodable(on_undecodable, max_undecodable)
        check_undecodable(self.sink, self.undecodable)
        self.dry_run_only = dry_run
        self.acts = Acts(replan, reland, accept_fewer, overlap)
        self.target_split_bytes = target_split_bytes
        self._planned: Sequence[tuple[Plan, Landed | None]] = ()
        self._tables: Sequence[tuple[SourceTable, Plan, Landed | None]] = ()
        add_assets(self, source, self.sink)

    def on_kill(self) -> None:
        """Cancel the Spark work of this task."""
        from airflow_provider_streams.hooks.spark import cancel  # noqa: PLC0415

        cancel()

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage | None:  # noqa: ARG002
        """What OpenLineage learns: the ranges read of each topic for each window, and the table. None: nothing was."""
        from airflow.providers.openlineage.extractors import OperatorLineage  # noqa: PLC0415 - its listener asks

        from airflow_provider_streams.operators.lineage import (  # noqa: PLC0415
            MOST_TABLES,
            datasets,
            run_facets,
            table_datasets,
        )

        if self._tables:
            inputs, outputs = table_datasets(self.source, self._tables)
            facets = run_facets([(plan, landed) for _, plan, landed in self._tables], most=MOST_TABLES)
            return OperatorLineage(inputs=inputs, outputs=outputs, run_facets=facets)
        if not self._planned:
            return None
        inputs, outputs = datasets(self.source, self._planned, self.sink)
        return OperatorLineage(inputs=inputs, outputs=outputs, run_facets=run_facets(self._planned))

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> OperatorLineage | None:
        """As when it succeeds: what was landed stays so, whatever became of the others."""
        return self.get_openlineage_facets_on_complete(task_instance)

    @property
    def is_fan_out(self) -> bool:
        """Whether each topic or stream has a table of its own."""
        return is_fan_out(self.sink)

    @property
    def table_sink(self) -> Sink:
        """Where the rows land, where there must be a table.

        Raises:
            InvalidRequest: none was named.
        """
        if self.sink is None:
            raise InvalidRequest("say where the rows go: sink is None")
        return self.sink

    def _withhold(self) -> None:
        """Nothing was landed: nobody is told."""
        if self.sink is not None:
            withhold(self, Asset(uri=self.sink.asset_uri))


def _check_choices(on_loss: str, on_unproven: str) -> None:
    if on_loss not in ("fail", "record"):
        raise InvalidRequest(f"on_loss must be 'fail' or 'record', got {on_loss!r}")
    if on_unproven not in ("land", "fail"):
        raise InvalidRequest(f"on_unproven must be 'land' or 'fail', got {on_unproven!r}")


def add_assets(task: BaseOperator, source: Source, sink: Sink | None) -> None:
    """The source becomes a task's inlet, the sink its outlet: beside what the user gave.

    Of a table for each topic or stream: one asset for all tables, and of named ones each table's, unless they are many.
    """
    task.inlets = _with_asset(task.inlets, source.asset_uri)
    if sink is None:
        return
    task.outlets = _with_asset(task.outlets, sink.asset_uri)
    named = expand_named(source, sink) if is_fan_out(sink) else None
    if named is not None and len(named) <= MOST_EVENTS:
        for table in named.tables:
            task.outlets = _with_asset(task.outlets, table.sink.asset_uri)


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
