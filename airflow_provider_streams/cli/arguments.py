"""What a command is to read: as its arguments say, as a DAG's task does, or as a reader did so far."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.base import hook_of
from airflow_provider_streams.model.basis import Basis
from airflow_provider_streams.model.grid import Grid
from airflow_provider_streams.model.landing import Landing
from airflow_provider_streams.model.plan import OnLoss, OnUnproven
from airflow_provider_streams.model.sink import ParquetSink
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.model.window import Window, length_of_seconds
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.windows.acts import Acts
from airflow_provider_streams.windows.landing import basis_of, kept_landing
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
    basis: Basis | None
    """None: as the reader read so far, or as its system does."""
    refined: Mapping[str, timedelta]
    """What is said of the basis beside its name."""
    on_loss: OnLoss
    on_unproven: OnUnproven
    spark_conn_id: str | None
    spark: Mapping[str, Any] | None = field(default=None, repr=False)
    """Spark's settings, see `spark.settings`; may hold secrets."""
    grid: Grid | None = None
    """How the DAG's runs tile time; None: it does not tell."""

    def landing_in(self, journal: Journal) -> Landing:
        """Where the rows go.

        Raises:
            InvalidRequest: nobody says it.
        """
        found = self.landing or kept_landing(journal, self.source.key, self.reader)
        if found is None:
            raise InvalidRequest(
                f"say where the rows go with --path: reader {self.reader!r} of {self.source} has landed nothing yet"
            )
        return found

    def basis_in(self, journal: Journal) -> Basis:
        """How times become positions.

        Raises:
            InvalidRequest: not a way of this system, or what is said of it belongs to another.
        """
        kept: Any = basis_of(journal, self.source.key, self.reader)
        basis = self.basis or declaration_of(self.source.system).basis(kept)
        for name in self.refined:
            if not hasattr(basis, name):
                raise InvalidRequest(f"--{name.replace('_', '-')} does not belong to basis {basis.name!r}")
        return replace(basis, **self.refined)  # type: ignore[arg-type]  # the names were looked up

    def window(self, window: Window, journal: Journal) -> WindowRead:
        """One of its windows."""
        question = WindowQuestion(self.source, window, self.basis_in(journal))
        return WindowRead(question, self.reader, self.on_loss, on_unproven=self.on_unproven)


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
        args.basis and declaration_of(source.system).basis(args.basis),
        _refined(args),
        args.on_loss,
        args.on_unproven,
        getattr(args, "spark_conn_id", None),
        spark_of(args),
    )


def _refined(args: Namespace) -> dict[str, timedelta]:
    given = {"slack": args.slack, "max_skew": args.max_skew}
    return {name: _length(f"--{name.replace('_', '-')}", value) for name, value in given.items() if value is not None}


def _length(option: str, seconds: float) -> timedelta:
    length = length_of_seconds(option, seconds)
    if length < timedelta(0):
        raise InvalidRequest(f"{option} must not be negative, got {seconds}")
    return length


def source_of_args(args: Namespace) -> Source:
    """The source that a command's arguments name.

    Raises:
        InvalidRequest: none, or no such system.
    """
    system, *names = args.source or ["pulsar"]
    names += args.topic
    conn_id = args.conn_id or f"{system}_default"
    if not names and not args.pattern:
        raise InvalidRequest("name the source, for example: pulsar shop/orders/events")
    given = {"pattern": args.pattern, "event_time_unit": args.event_time_unit}
    details = {name: value for name, value in given.items() if value}
    return declaration_of(system).source(hook_of(system, conn_id).full_names(names), conn_id, details)


def spark_of(args: Namespace) -> dict[str, Any] | None:
    """What `--spark` and `--conf` say, as the operators' `spark` takes it; None: nothing.

    Raises:
        InvalidRequest: not written NAME=VALUE.
    """
    conf = _pairs("--conf", getattr(args, "conf", ()))
    return {**_pairs("--spark", getattr(args, "spark", ())), **({"conf": conf} if conf else {})} or None


def _pairs(flag: str, given: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for one in given:
        name, is_pair, value = one.partition("=")
        if not is_pair or not name:
            raise InvalidRequest(f"{flag} takes NAME=VALUE")
        pairs[name] = value
    return pairs


def acts_of(args: Namespace) -> Acts:
    """What is done on purpose."""
    return Acts(args.replan, args.reland, args.accept_fewer, "replace" if args.replace_overlaps else "refuse")


def _landing(args: Namespace) -> Landing | None:
    path, columns = getattr(args, "path", None), getattr(args, "columns", None)
    if path is None and columns:
        raise InvalidRequest("--columns belongs to --path: without it, rows land as the reader landed so far")
    if path is None:
        return None
    return Landing(ParquetSink(path), None, tuple(name.strip() for name in columns.split(",")) if columns else None)


def _of_task(args: Namespace) -> Reading:
    """As a DAG's task reads: its source, sink, transform and reader are written in the DAG alone."""
    from airflow_provider_streams.cli.dag_task import load_task  # noqa: PLC0415 - Airflow's DAG files when asked for
    from airflow_provider_streams.model.landing import columns_of  # noqa: PLC0415 - the same
    from airflow_provider_streams.timetables import grid_of_timetable  # noqa: PLC0415

    lands = getattr(args, "path", None) or getattr(args, "columns", None)
    if args.source or args.topic or args.pattern or args.event_time_unit or lands:
        raise InvalidRequest(
            "--dag-id and --task-id say what is read and where it lands: leave the source and --path out, and --columns"
        )
    if not args.dag_id or not args.task_id:
        raise InvalidRequest("--dag-id and --task-id belong together")
    loaded = load_task(args.dag_id, args.task_id, args.map_index)
    task: ReadWindowOperator | BackfillWindowsOperator = loaded.task
    if args.source_key and args.source_key != task.source.key:
        raise InvalidRequest(f"{args.dag_id}.{args.task_id} reads {task.source.key}, not {args.source_key}")
    columns = columns_of(loaded.rendered(task.columns))
    return Reading(
        task.source,
        args.reader or loaded.rendered(task.reader) or f"{args.dag_id}.{args.task_id}",
        Landing(task.sink, loaded.rendered(task.transform), columns),
        declaration_of(task.source.system).basis(args.basis) if args.basis else task.basis,
        _refined(args),
        task.on_loss if args.on_loss == "fail" else args.on_loss,
        task.on_unproven if args.on_unproven == "land" else args.on_unproven,
        getattr(args, "spark_conn_id", None) or loaded.rendered(task.spark_conn_id),
        {**(loaded.rendered(task.spark) or {}), **(spark_of(args) or {})} or None,
        grid_of_timetable(loaded.timetable),
    )
