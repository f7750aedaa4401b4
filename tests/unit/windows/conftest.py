"""A world without servers, Airflow or Spark: a fake stream, a real journal, real tables."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from airflow_provider_streams import ParquetSink, Window
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.sinks.landing import Landed, Landing
from airflow_provider_streams.model.window.backfill import Preview, Selection, parse_select
from airflow_provider_streams.model.window.basis import PublishTime
from airflow_provider_streams.model.window.window_schedule import parse_schedule
from airflow_provider_streams.spark.job import plan_reading
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.testing.fake import FakeSource, FakeSystem
from airflow_provider_streams.testing.landing import context_without_spark, run_without_spark, without_transforms
from airflow_provider_streams.windows.claim.overrides import Overrides
from airflow_provider_streams.windows.run.outcome import Outcome
from airflow_provider_streams.windows.run.request import OneWindow, ReadRequest, WindowsOfSpan
from airflow_provider_streams.windows.run.window_context import WindowContext
from airflow_provider_streams.windows.run.window_run import WindowRun

MINUTE = timedelta(minutes=1)
QUARANTINE = DecodeErrorPolicy("quarantine")


@dataclass
class World:
    """What users do to windows, one act at a time."""

    path: Path
    journal: Journal
    truth: dict[str, str] = field(default_factory=lambda: {"events": "3600"})
    """What the fake server holds; `events` per shard, one a second."""
    before: Callable[[Any], None] = lambda _spec: None
    """Called with each window's spec before it is read: raise in it to fail there."""
    tries: int = 0
    shown: Plan | None = None
    """By the last dry run of a read."""

    def hold(self, **truth: object) -> None:
        """From now on, the server holds this."""
        self.truth |= {name: str(value) for name, value in truth.items()}

    def sink(self, name: str = "lake") -> ParquetSink:
        """A table of this world."""
        return ParquetSink(str(self.path / name))

    def source(self, name: str, value: Any) -> Any:
        """A stream of this world."""
        return FakeSource(name, value=value)

    def options(self, source: Any) -> dict[str, str]:
        """The settings of the system that has it."""
        return {**self.truth, "stream": source.name}

    def place(self, source: Any) -> WindowContext:
        """Where its windows are worked on."""
        run = lambda work: run_without_spark(without_transforms(work))  # noqa: E731
        return replace(context_without_spark(self.journal, source.system, self.options(source)), spark=run)

    def read(
        self,
        window: Window,
        *,
        reader: str = "reader",
        source: str = "numbers",
        sink: str | None = "lake",
        basis: Any = "publish",
        slack: timedelta = timedelta(0),
        window_schedule: str | None = None,
        columns: tuple[str, ...] | None = None,
        transform: str | None = None,
        value: Any = None,
        undecodable: DecodeErrorPolicy = QUARANTINE,
        on_loss: Any = "fail",
        dry_run: bool = False,
        **overrides: Any,
    ) -> Landed | None:
        """One run of a task that reads one window, as the operator does it."""
        self.tries += 1
        stream = self.source(source, value)
        request = ReadRequest(
            stream,
            reader,
            OneWindow(window),
            TaskInstanceKey("dag", f"run-{self.tries}", "read", 1),
            Landing(self.sink(sink) if sink else None, transform, columns),
            PublishTime(slack) if basis == "publish" else declaration_of(stream.system).basis(basis),
            parse_schedule(window_schedule) if window_schedule else None,
            on_loss,
            undecodable=undecodable,
            overrides=Overrides(**overrides),
        )
        run = WindowRun(self.place(stream), request)
        prepared = run.prepare(dry_run=dry_run)
        if dry_run:
            ((_, self.shown, _),) = prepared.reads
            return None
        outcome = run.land(prepared, lambda *_: None)
        outcome.check(request)
        return outcome.landed[0][2]

    def backfill(
        self,
        span: Window,
        *,
        length: Any = MINUTE,
        reader: str = "reader",
        source: str = "numbers",
        sink: str | None = "lake",
        select: str = "missing",
        basis: str = "publish",
        on_loss: Any = "fail",
        lookback: timedelta | None = None,
        columns: tuple[str, ...] | None = None,
        transform: str | None = None,
        value: Any = None,
        dry_run: bool = False,
        is_own: Callable[[Any], bool] = lambda _run: False,
        **overrides: Any,
    ) -> tuple[Preview, Outcome]:
        """One run of a task that backfills."""
        self.tries += 1
        stream = self.source(source, value)
        selection = Selection(parse_select(select), accepts_loss=on_loss == "record", is_own=is_own)
        request = ReadRequest(
            stream,
            reader,
            WindowsOfSpan(span, selection, length, lookback),
            TaskInstanceKey("dag", f"run-{self.tries}", "fill", 1),
            Landing(self.sink(sink) if sink else None, transform, columns),
            PublishTime(timedelta(0)) if basis == "publish" else declaration_of(stream.system).basis(basis),
            on_loss=on_loss,
            overrides=Overrides(**overrides),
        )
        run = WindowRun(self.place(stream), request)
        prepared = run.prepare(dry_run=dry_run)
        return prepared.tables[0].preview, Outcome() if dry_run else run.land(prepared, lambda *_: None)

    def states(self, span: Window, reader: str = "reader", source: str = "numbers") -> list[str]:
        """What the journal says of each window."""
        coverage = self.journal.coverage(FakeSource(source).key, reader, span.start, span.end)
        return [item.state for item in coverage.windows]

    def values(self, sink: str = "lake") -> Counter[bytes]:
        """How often each event is in a table."""
        files = sorted(Path(self.sink(sink).path).glob("window_start=*/window_end=*/*.parquet"))
        return Counter(v for file in files for v in pq.ParquetFile(file).read(["value"])["value"].to_pylist())

    def windows(self, sink: str = "lake") -> list[Window]:
        """What windows a table holds."""
        return sorted(ParquetTable(self.sink(sink).path).windows())


@pytest.fixture(scope="session")
def new_journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a journal that nothing was written to."""
    path = tmp_path_factory.mktemp("journal") / "journal.db"
    Journal.open(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def world(tmp_path: Path, new_journal: Path) -> Iterator[World]:
    read_table = plan_reading.read_table

    def read(spec: Any, systems: Any, progress: Any = None) -> Any:
        made.before(spec)
        return read_table(spec, systems, progress)

    path = tmp_path / "journal.db"
    shutil.copy(new_journal, path)
    with pytest.MonkeyPatch.context() as patched, Journal(f"sqlite:///{path}") as journal, journal.kept_open():
        patched.setattr(plan_reading, "read_table", read)
        made = World(tmp_path, journal)
        yield made


@pytest.fixture
def told(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """What the system tells of its schema from now on."""
    world.hold(events=600, records=1)

    planned = FakeSystem.plan

    def tell(columns: str) -> None:
        def plan(self: FakeSystem, request: Any) -> Any:
            return replace(
                planned(self, request), decoding=decoding_of(Json(columns), None, {str(request.source): {}}, "")
            )

        monkeypatch.setattr(FakeSystem, "plan", plan)

    tell("n long, shard string")
    return tell
