"""What a command is to read: as its arguments say, as a DAG's task does, or as a reader did so far."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_streams.cli.pairs import pairs_of
from airflow_provider_streams.cli.sinks import names_sink, sink_of
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.base import hook_of
from airflow_provider_streams.hooks.journal import open_journal
from airflow_provider_streams.model.basis import Basis, BasisLike
from airflow_provider_streams.model.grid import Grid
from airflow_provider_streams.model.landing import Landing, columns_of
from airflow_provider_streams.model.payload import Payload, payload_of_options
from airflow_provider_streams.model.placeholders import is_fan_out, sink_for
from airflow_provider_streams.model.plan import OnLoss, OnUnproven
from airflow_provider_streams.model.sink import Sink
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.model.undecodable import Undecodable
from airflow_provider_streams.model.window import Window, length_of_seconds
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.sources import decoded_source, payloads_of, source_from_json
from airflow_provider_streams.windows.acts import Acts
from airflow_provider_streams.windows.kept_landing import basis_of, kept_landing
from airflow_provider_streams.windows.planning import WindowRead
from airflow_provider_streams.windows.readiness import WindowQuestion

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.operators.backfill import BackfillWindowsOperator
    from airflow_provider_streams.operators.read import ReadWindowOperator


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read, for whom, and where it lands."""

    source: Source
    reader: str
    landing: Landing | None
    """None: as the reader landed so far."""
    basis: BasisLike | None
    """As `windows.kept_landing.basis_of` takes it."""
    refined: Mapping[str, Any]
    """What is said of the basis beside its name."""
    on_loss: OnLoss
    on_unproven: OnUnproven
    spark_conn_id: str | None
    spark: Mapping[str, Any] | None = field(default=None, repr=False)
    """Spark's settings, see `spark.settings`; may hold secrets."""
    grid: Grid | None = None
    """How the DAG's runs tile time; None: it does not tell."""
    undecodable: Undecodable = field(default_factory=Undecodable)
    whole: Source | None = None
    """See `PlanRequest`: what a task reads that lands each topic or stream in its own table."""

    def as_landed(self, journal: Journal) -> Reading:
        """The same; of who says not where the rows go, values and keys are decoded as the reader's were so far."""
        kept = None if self.landing or any(payloads_of(self.source).values()) else self._kept(journal)
        if kept is None:
            return self
        payloads = {"value": kept.value, "key": kept.key}
        return replace(self, source=decoded_source(self.source, {name: one for name, one in payloads.items() if one}))

    @classmethod
    def of(cls, args: Namespace) -> Reading:
        """See `reading_of` and `as_landed`: what is read decides which connections are used, so it is known first."""
        with open_journal() as journal:
            return reading_of(args).as_landed(journal)

    def _kept(self, journal: Journal) -> Landing | None:
        return kept_landing(journal, self.source.key, self.reader)

    def landing_in(self, journal: Journal) -> Landing:
        """Where the rows go.

        Raises:
            InvalidRequest: nobody says it.
        """
        found = self.landing or self._kept(journal)
        if found is None:
            raise InvalidRequest(
                f"say where the rows go with --path or --sink: reader {self.reader!r} of {self.source} has landed "
                "nothing yet"
            )
        return found

    def basis_in(self, journal: Journal) -> Basis:
        """How times become positions.

        Raises:
            InvalidRequest: not a way of this system, or what is said of it belongs to another.
        """
        return basis_of(journal, self.source, self.reader, self.basis, self.refined)

    def window(self, window: Window, journal: Journal) -> WindowRead:
        """One of its windows."""
        question = WindowQuestion(self.source, window, self.basis_in(journal), self.whole)
        return WindowRead(
            question, self.reader, self.on_loss, on_unproven=self.on_unproven, undecodable=self.undecodable
        )


def reading_of(args: Namespace) -> Reading:
    """From a command's arguments.

    Raises:
        InvalidRequest: they name no source, or contradict each other.
    """
    if args.dag_id or args.task_id:
        return _of_task(args)
    source = source_of_args(args)
    return Reading(
        source,
        args.reader or "cli",
        _landing(args),
        args.basis,
        _refined(args),
        args.on_loss,
        args.on_unproven,
        getattr(args, "spark_conn_id", None),
        spark_of(args),
        undecodable=_undecodable(args, Undecodable()),
    )


_UNASKED: Final = {
    **dict.fromkeys(("basis", "slack", "max_skew", "max_lateness", "event_time", "unit", "rows")),
    **dict.fromkeys(("on_undecodable", "max_undecodable")),
    "on_loss": "fail",
    "on_unproven": "land",
}
"""How to read, for commands that read nothing."""


def reader_of(args: Namespace) -> Reading:
    """From the arguments of a command that is about a reader, and reads nothing of its stream.

    Raises:
        InvalidRequest: they name no source, or contradict each other.
    """
    return reading_of(Namespace(**{**_UNASKED, **vars(args)}))


def _undecodable(args: Namespace, otherwise: Undecodable) -> Undecodable:
    then, most = args.on_undecodable, args.max_undecodable
    if then is None and most is None:
        return otherwise
    return Undecodable(then or otherwise.then, otherwise.most if most is None else most)


def _refined(args: Namespace) -> dict[str, Any]:
    lengths = {"slack": args.slack, "max_skew": args.max_skew, "max_lateness": args.max_lateness}
    texts = {"event_time": args.event_time, "unit": args.unit, "rows": args.rows}
    given = {
        name: _length(f"--{name.replace('_', '-')}", value) for name, value in lengths.items() if value is not None
    }
    return {**given, **{name: value for name, value in texts.items() if value is not None}}


def _length(option: str, seconds: float) -> timedelta:
    length = length_of_seconds(option, seconds)
    if length < timedelta(0):
        raise InvalidRequest(f"{option} must not be negative, got {seconds}")
    return length


_DETAILS = (
    "pattern",
    "scope",
    "tags",
    "partitions",
    "keys",
    "key_hash_ranges",
    "routing_keys",
    "event_time_unit",
)
"""What a source has beside its names."""


def source_of_args(args: Namespace, **more: object) -> Source:
    """The source that a command's arguments name.

    Args:
        args: of the command.
        more: other details of the source.

    Raises:
        InvalidRequest: none, or no such system.
    """
    system, *names = args.source or ["pulsar"]
    names += args.topic
    conn_id = args.conn_id or f"{system}_default"
    if not names and not args.pattern and not args.scope:
        raise InvalidRequest("name the source, for example: pulsar shop/orders/events")
    given = {name: getattr(args, name, None) for name in _DETAILS} | more
    details = {name: value for name, value in given.items() if value}
    source = declaration_of(system).source(hook_of(system, conn_id).full_names(names), conn_id, details)
    return decoded_source(source, _payloads(args))


def _payloads(args: Namespace) -> dict[str, Payload]:
    asked = {
        what: payload_of_options(what, getattr(args, f"{what}_format", None), getattr(args, f"{what}_schema", None))
        for what in ("value", "key")
    }
    return {what: payload for what, payload in asked.items() if payload is not None}


def spark_of(args: Namespace) -> dict[str, Any] | None:
    """What `--spark` and `--conf` say, as the operators' `spark` takes it; None: nothing.

    Raises:
        InvalidRequest: not written NAME=VALUE.
    """
    conf = pairs_of("--conf", getattr(args, "conf", ()))
    return {**pairs_of("--spark", getattr(args, "spark", ())), **({"conf": conf} if conf else {})} or None


def acts_of(args: Namespace) -> Acts:
    """What is done on purpose."""
    return Acts(args.replan, args.reland, args.accept_fewer, "replace" if args.replace_overlaps else "refuse")


def _landing(args: Namespace) -> Landing | None:
    sink, columns = sink_of(args), getattr(args, "columns", None)
    if sink is None and columns:
        raise InvalidRequest("--columns belongs to --path or --sink: without it, rows land as the reader landed so far")
    return None if sink is None else Landing(sink, None, columns_of(columns))


def _of_task(args: Namespace) -> Reading:
    """As a DAG's task reads: its source, sink, transform and reader are written in the DAG alone."""
    from airflow_provider_streams.cli.dag_task import load_task  # noqa: PLC0415 - Airflow's DAG files when asked for
    from airflow_provider_streams.timetables import grid_of_timetable  # noqa: PLC0415

    lands = names_sink(args) or getattr(args, "columns", None) or _payloads(args)
    if args.source or args.topic or lands or any(getattr(args, name, None) for name in _DETAILS):
        raise InvalidRequest(
            "--dag-id and --task-id say what is read and where it lands: leave the source, --path, --sink and "
            "--columns out"
        )
    if not args.dag_id or not args.task_id:
        raise InvalidRequest("--dag-id and --task-id belong together")
    loaded = load_task(args.dag_id, args.task_id, args.map_index)
    task: ReadWindowOperator | BackfillWindowsOperator = loaded.task
    reader = args.reader or loaded.rendered(task.reader) or f"{args.dag_id}.{args.task_id}"
    source, sink = _one_table(task, reader, args.source_key)
    if args.source_key and args.source_key != source.key:
        raise InvalidRequest(f"{args.dag_id}.{args.task_id} reads {task.source.key}, not {args.source_key}")
    columns = columns_of(loaded.rendered(task.columns))
    return Reading(
        source,
        reader,
        Landing(sink, loaded.rendered(task.transform), columns),
        args.basis or task.basis,
        _refined(args),
        task.on_loss if args.on_loss == "fail" else args.on_loss,
        task.on_unproven if args.on_unproven == "land" else args.on_unproven,
        getattr(args, "spark_conn_id", None) or loaded.rendered(task.spark_conn_id),
        {**(loaded.rendered(task.spark) or {}), **(spark_of(args) or {})} or None,
        grid_of_timetable(loaded.timetable),
        _undecodable(args, task.undecodable),
        task.source if source != task.source else None,
    )


def _one_table(
    task: ReadWindowOperator | BackfillWindowsOperator, reader: str, source_key: str | None
) -> tuple[Source, Sink | None]:
    """What a task reads and where that lands; of a task that lands many, the topic or stream that is named."""
    if not is_fan_out(task.sink):
        return task.source, task.sink
    many = f"{task.dag_id}.{task.task_id} lands each topic or stream of {task.source} in a table of its own"
    if not source_key:
        raise InvalidRequest(f"{many}: say which one with --source-key, as `airflow streams coverage` shows it")
    with open_journal() as journal:
        written, kept = journal.source(source_key), kept_landing(journal, source_key, reader)
    if written is not None and kept is not None:
        source = source_from_json(written)
        sink = sink_for(task.table_sink, declaration_of(source.system).placeholder_names(source))
        if kept.sink is not None and kept.sink.asset_uri == sink.asset_uri:
            return source, sink
    raise InvalidRequest(f"{many}, and landed nothing of {source_key} there: its own run, or its backfill, finds that")
