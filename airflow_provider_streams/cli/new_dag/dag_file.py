"""The DAG file that lands each window of a source: its text, from values alone."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

import airflow_provider_streams
from airflow_provider_streams.cli.new_dag.python_source import (
    WIDTH,
    Expression,
    call,
    classes_in,
    comment,
    expression_of,
    lines,
    literal,
    mapping,
)
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.basis import Basis, RecordedCuts
from airflow_provider_streams.systems.registry import declaration_of

_OURS: Final = airflow_provider_streams.__name__
_RETRY_DELAY: Final = timedelta(minutes=1)
_UTC: Final = "UTC"


@dataclass(frozen=True, slots=True)
class DagFile:
    """A DAG that lands each window of a source.

    Args:
        dag_id: its name.
        source: what is read.
        sink: where its rows land.
        basis: how times become positions.
        schedule: as `window_timetable` takes it.
        timezone: of a cron expression.
        start: the first day.
        remarks: what a person should know of the source, one comment each.
    """

    dag_id: str
    source: Source
    sink: Sink
    basis: Basis
    schedule: str
    timezone: str
    start: date
    remarks: tuple[str, ...] = ()

    @property
    def recorder_id(self) -> str | None:
        """The DAG that records cuts; None: the basis needs none."""
        return f"{self.dag_id}_cuts" if isinstance(self.basis, RecordedCuts) else None

    @property
    def text(self) -> str:
        """The file's text."""
        values = [self._docstring, *self._imports(), "", *map(comment, self.remarks), *self._values()]
        dags = [*self._recorder(), *self._reader()]
        return "\n".join([*values, *dags]) + "\n"

    @property
    def _docstring(self) -> str:
        return '"""Each window of a stream, in a table, once the window is complete."""\n'

    def _imports(self) -> Iterator[str]:
        names = {*self._classes(), _operator("ReadWindowOperator"), _operator("WindowReadySensor")}
        if self.recorder_id:
            names.add(_operator("RecordCutsOperator"))
        yield "from datetime import UTC, datetime, timedelta"
        yield ""
        yield "from airflow.sdk import DAG"
        yield ""
        modules = {
            _module(one): sorted(each.__name__ for each in names if _module(each) == _module(one)) for one in names
        }
        modules[f"{_OURS}.retry"] = ["stream_retry_policy"]
        modules[f"{_OURS}.timetables"] = ["window_timetable"]
        for module in sorted(modules):
            yield _import(module, modules[module])

    def _classes(self) -> Iterator[type]:
        for value in (self.source, self.sink, *([self.basis] if self._says_basis else [])):
            yield from (one for one in classes_in(value) if one is not timedelta)

    @property
    def _says_basis(self) -> bool:
        return self.basis != declaration_of(self.source.system).basis()

    def _values(self) -> Iterator[str]:
        yield lines(expression_of(self.source), "SOURCE = ")
        yield lines(expression_of(self.sink), "SINK = ")
        if self._says_basis:
            yield lines(expression_of(self.basis), "BASIS = ")

    def _recorder(self) -> Iterator[str]:
        if self.recorder_id is None:
            return
        record = call("RecordCutsOperator", task_id=literal("record"), sources="SOURCE")
        yield ""
        yield comment("The events carry no time. A cut each minute tells which of them were there by then.")
        yield lines(self._dag(self.recorder_id, literal("* * * * *")), "with ", ":")
        yield lines(record, indent=4)

    def _reader(self) -> Iterator[str]:
        basis = {"basis": "BASIS"} if self._says_basis else {}
        complete = call(
            "WindowReadySensor", task_id=literal("complete"), source="SOURCE", **basis, deferrable=repr(True)
        )
        read = call("ReadWindowOperator", task_id=literal("read"), source="SOURCE", **basis, sink="SINK")
        zone = {} if self.timezone == _UTC else {"timezone": literal(self.timezone)}
        schedule = call("window_timetable", literal(self.schedule), **zone)
        policy = call("stream_retry_policy", expression_of(_RETRY_DELAY))
        retries = mapping({"retries": "3", "retry_policy": policy})
        yield ""
        yield lines(self._dag(self.dag_id, schedule, default_args=retries), "with ", ":")
        yield lines(complete, "complete = ", indent=4)
        yield lines(read, "read = ", indent=4)
        yield "    complete >> read"

    def _dag(self, dag_id: str, schedule: Expression, **more: Expression) -> Expression:
        day = (str(self.start.year), str(self.start.month), str(self.start.day))
        start = call("datetime", *day, tzinfo=_UTC)
        return call("DAG", literal(dag_id), schedule=schedule, start_date=start, catchup=repr(False), **more)


def _import(module: str, names: list[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"from {module} import (", *(f"    {name}," for name in names), ")"])


def _operator(name: str) -> Any:
    return getattr(importlib.import_module(_OURS), name)


def _module(one: type) -> str:
    """From where users import a class: this package itself, or the module that defines it."""
    return _OURS if getattr(sys.modules[_OURS], one.__name__, None) is one else one.__module__
