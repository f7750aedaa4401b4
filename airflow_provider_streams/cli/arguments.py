"""What a command is to read: as its arguments say, as a DAG's task does, or as a reader did so far."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_streams.cli.sink_arguments import names_sink, pairs_of, sink_of, sink_options_of, sink_with
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.doctor.setup import DEFAULT_READER
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.base import hook_of
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.model.plan.plan import OnLoss, OnUnproven
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.schema.payload import Payload
from airflow_provider_streams.model.schema.payload_options import PAYLOAD_PARTS, payload_of_options
from airflow_provider_streams.model.sinks.landing import Landing, columns_of
from airflow_provider_streams.model.sinks.placeholders import is_fan_out, sink_for
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.basis import Basis, BasisLike
from airflow_provider_streams.model.window.window import Window, length_of_seconds
from airflow_provider_streams.model.window.window_schedule import WindowSchedule
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.source_json import decoded_source, payloads_of, source_from_json
from airflow_provider_streams.windows.claim.landing_defaults import basis_of, stored_landing, stored_payloads
from airflow_provider_streams.windows.claim.overrides import Overrides
from airflow_provider_streams.windows.plan.planning import WindowRead
from airflow_provider_streams.windows.plan.readiness import WindowQuestion
from airflow_provider_streams.windows.run.request import OneWindow, ReadRequest, WindowsOfSpan

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
    """As `windows.claim.landing_defaults.basis_of` takes it."""
    refined: Mapping[str, Any]
    """Parameters of the basis, by name."""
    on_loss: OnLoss
    on_unproven: OnUnproven
    spark_conn_id: str | None
    spark: Mapping[str, Any] | None = field(default=None, repr=False)
    """Spark's settings, see `spark.settings.spark_settings`; may hold secrets."""
    window_schedule: WindowSchedule | None = None
    """How the DAG's runs tile time; None: it is not known."""
    undecodable: DecodeErrorPolicy = field(default_factory=DecodeErrorPolicy)
    whole: Source | None = None
    """As `PlanRequest.whole`: the source of a task that lands each topic or stream in its own table."""
    sink_options: Mapping[str, str] = field(default_factory=dict)
    """Options that this command sets on the reader's own sink."""
    is_of_task: bool = False
    """Whether a DAG's task defines the read: how payloads are decoded, and where rows land."""

    def as_landed(self, journal: Journal) -> Reading:
        """The same, with the reader's stored choices for what the command leaves open.

        Raises:
            InvalidRequest: options of a sink, and the reader has none.
        """
        if self.is_of_task:
            return self
        is_open = not any(payloads_of(self.source).values())
        payloads = stored_payloads(journal, self.source.key, self.reader) if is_open else {}
        landing = self._with_options(journal) if self.sink_options else self.landing
        return replace(self, source=decoded_source(self.source, payloads), landing=landing)

    def _with_options(self, journal: Journal) -> Landing:
        kept = stored_landing(journal, self.source.key, self.reader)
        if kept is None or kept.sink is None:
            raise InvalidRequest(
                f"--sink-option needs --sink: reader {self.reader!r} of {self.source} has landed nothing yet"
            )
        return replace(kept, sink=sink_with(kept.sink, self.sink_options))

    @classmethod
    def of(cls, args: Namespace) -> Reading:
        """By `reading_of` and `as_landed`; it comes first, as the source decides which connections are opened."""
        with open_journal() as journal:
            return reading_of(args).as_landed(journal)

    def landing_in(self, journal: Journal) -> Landing:
        """Where the rows go.

        Raises:
            InvalidRequest: neither the command nor the journal names a table.
        """
        found = self.landing or stored_landing(journal, self.source.key, self.reader)
        if found is None:
            raise InvalidRequest(
                f"say where the rows go with --path or --sink: reader {self.reader!r} of {self.source} has landed "
                "nothing yet"
            )
        return found

    def basis_in(self, journal: Journal) -> Basis:
        """How times become positions.

        Raises:
            InvalidRequest: the system has no such basis, or a parameter belongs to another basis.
        """
        return basis_of(journal, self.source, self.reader, self.basis, self.refined)

    def request(
        self,
        windows: OneWindow | WindowsOfSpan,
        task: TaskInstanceKey,
        landing: Landing,
        basis: Basis,
        overrides: Overrides,
    ) -> ReadRequest:
        """What a command reads and lands."""
        return ReadRequest(
            self.source,
            self.reader,
            windows,
            task,
            landing,
            basis,
            self.window_schedule,
            self.on_loss,
            self.on_unproven,
            self.undecodable,
            overrides=overrides,
            whole=self.whole,
        )

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
        args.reader or DEFAULT_READER,
        _landing(args),
        args.basis,
        refined_of(args),
        args.on_loss,
        args.on_unproven,
        getattr(args, "spark_conn_id", None),
        spark_of(args),
        undecodable=_undecodable(args, DecodeErrorPolicy()),
        sink_options={} if getattr(args, "sink", None) else sink_options_of(args),
    )


_REFINED: Final = ("slack", "max_skew", "allowed_lateness", "event_time", "unit", "rows")
"""Options that are parameters of a basis."""
_UNASKED: Final = {
    **dict.fromkeys(("basis", *_REFINED, "on_decode_error", "max_decode_error_rate")),
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


def _undecodable(args: Namespace, otherwise: DecodeErrorPolicy) -> DecodeErrorPolicy:
    then, most = args.on_decode_error, args.max_decode_error_rate
    if then is None and most is None:
        return otherwise
    return DecodeErrorPolicy(then or otherwise.then, otherwise.most if most is None else most)


def refined_of(args: Namespace) -> dict[str, Any]:
    """The parameters of the basis that a command's arguments say, by name.

    Raises:
        InvalidRequest: a length of time is negative.
    """
    given = {name: value for name in _REFINED if (value := getattr(args, name, None)) is not None}
    return {name: _length(name, value) if isinstance(value, float) else value for name, value in given.items()}


def _length(name: str, seconds: float) -> timedelta:
    option = f"--{name.replace('_', '-')}"
    length = length_of_seconds(option, seconds)
    if length < timedelta(0):
        raise InvalidRequest(f"{option} must not be negative, got {seconds}")
    return length


_DETAILS: Final = (
    *("pattern", "scope", "tags", "partitions", "keys", "key_hash_ranges", "routing_keys", "event_time_unit"),
)
"""Options that are details of a source, next to its names."""


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
    details = {name: value for name, value in given.items() if value is not None}
    for name, value in details.items():
        if isinstance(value, str) and not value.strip():
            raise InvalidRequest(f"--{name.replace('_', '-')} is empty: leave it out, if it should choose nothing")
    source = declaration_of(system).source(hook_of(system, conn_id).full_names(names), conn_id, details)
    return decoded_source(source, _payloads(args))


def _payloads(args: Namespace) -> dict[str, Payload]:
    asked = {
        what: payload_of_options(what, {part: getattr(args, f"{what}_{part}", None) for part in PAYLOAD_PARTS})
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


def overrides_of(args: Namespace) -> Overrides:
    """What the command does on purpose."""
    return Overrides(
        args.replan, args.full_refresh, args.allow_fewer_rows, "replace" if args.replace_overlaps else "refuse"
    )


def _landing(args: Namespace) -> Landing | None:
    sink, columns = sink_of(args), getattr(args, "columns", None)
    if sink is None and columns:
        raise InvalidRequest(
            "--columns belongs to --path or --sink: without it, rows land as the reader landed so far. If it landed "
            "none yet, name its table again with other columns, or forget it with `airflow streams forget`"
        )
    return None if sink is None else Landing(sink, None, columns_of(columns))


def _of_task(args: Namespace) -> Reading:
    """As a DAG's task reads: its source, sink, transform and reader are written in the DAG alone."""
    from airflow_provider_streams.cli.dag_task import load_task  # noqa: PLC0415 - Airflow's DAG files when asked for
    from airflow_provider_streams.timetables.dag_timetable import schedule_of_timetable  # noqa: PLC0415

    lands = names_sink(args) or getattr(args, "columns", None) or _payloads(args)
    if args.source or args.topic or lands or any(getattr(args, name, None) for name in _DETAILS):
        raise InvalidRequest(
            "--dag-id and --task-id define what is read and where it lands: leave out the source, --path, --sink "
            "and --columns"
        )
    if not args.dag_id or not args.task_id:
        raise InvalidRequest("--dag-id and --task-id belong together")
    loaded = load_task(args.dag_id, args.task_id, args.map_index)
    task: ReadWindowOperator | BackfillWindowsOperator = loaded.task
    reader = args.reader or loaded.rendered("reader") or f"{args.dag_id}.{args.task_id}"
    whole, target = loaded.rendered("source"), loaded.rendered("sink")
    source, sink = _one_table(task, whole, target, reader, args.source_key)
    if args.source_key and args.source_key != source.key:
        raise InvalidRequest(f"{args.dag_id}.{args.task_id} reads {whole.key}, not {args.source_key}")
    columns = columns_of(loaded.rendered("columns"))
    return Reading(
        source,
        reader,
        Landing(sink, loaded.rendered("transform"), columns),
        args.basis or task.basis,
        refined_of(args),
        task.on_loss if args.on_loss == "fail" else args.on_loss,
        task.on_unproven if args.on_unproven == "land" else args.on_unproven,
        getattr(args, "spark_conn_id", None) or loaded.rendered("spark_conn_id"),
        {**(loaded.rendered("spark") or {}), **(spark_of(args) or {})} or None,
        schedule_of_timetable(loaded.timetable),
        _undecodable(args, task.undecodable),
        whole if source != whole else None,
        is_of_task=True,
    )


def _one_table(
    task: ReadWindowOperator | BackfillWindowsOperator,
    whole: Source,
    target: Sink | None,
    reader: str,
    source_key: str | None,
) -> tuple[Source, Sink | None]:
    """What a task reads and where that lands; of a task that lands many, the topic or stream that is named."""
    if target is None or not is_fan_out(target):
        return whole, target
    many = f"{task.dag_id}.{task.task_id} lands each topic or stream of {whole} in a table of its own"
    if not source_key:
        raise InvalidRequest(f"{many}: say which one with --source-key, as `airflow streams coverage` shows it")
    with open_journal() as journal:
        written, kept = journal.source(source_key), stored_landing(journal, source_key, reader)
    if written is not None and kept is not None:
        source = source_from_json(written)
        sink = sink_for(target, declaration_of(source.system).placeholder_names(source))
        if kept.sink is not None and kept.sink.asset_uri == sink.asset_uri:
            return source, sink
    raise InvalidRequest(f"{many}, but has not landed {source_key} yet: run the task, or its backfill, first")
