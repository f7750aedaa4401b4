"""A world without servers, Airflow or Spark: a fake stream, a real journal, real tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from airflow_provider_streams import ParquetSink, Window
from airflow_provider_streams.formats.resolve import decoding_of
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.model.backfill import Selection, parse_select
from airflow_provider_streams.model.basis import PublishTime, event_time_of
from airflow_provider_streams.model.grid import parse_grid
from airflow_provider_streams.model.landing import Landed, Landing
from airflow_provider_streams.model.payload import Json
from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.model.undecodable import Undecodable
from airflow_provider_streams.spark import reading
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.testing.fake import FakeSource, FakeSystem
from airflow_provider_streams.testing.landing import place_without_spark, run_without_spark, without_transforms
from airflow_provider_streams.windows.acts import Acts
from airflow_provider_streams.windows.ask import Ask
from airflow_provider_streams.windows.backfilling import Backfill, Backfiller, Outcome, Preview, backfill_grid
from airflow_provider_streams.windows.planning import WindowRead
from airflow_provider_streams.windows.readiness import WindowQuestion
from airflow_provider_streams.windows.reading import RunIds, plan_window, read_window
from airflow_provider_streams.windows.workplace import Workplace

MINUTE = timedelta(minutes=1)
QUARANTINE = Undecodable("quarantine")


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

    def place(self, source: FakeSource) -> Workplace:
        """Where its windows are worked on."""

        class Stream:
            def system(stream) -> FakeSystem:  # noqa: N805 - `self` is the world
                return FakeSystem(stream.options())

            def options(stream) -> dict[str, str]:  # noqa: N805
                return {**self.truth, "stream": source.name}

        run = lambda work: run_without_spark(without_transforms(work))  # noqa: E731
        return replace(place_without_spark(self.journal, "fake", {}), stream=Stream(), spark=run)

    def read(
        self,
        window: Window,
        *,
        reader: str = "reader",
        source: str = "numbers",
        sink: str | None = "lake",
        basis: Any = "publish",
        slack: timedelta = timedelta(0),
        grid: str | None = None,
        columns: tuple[str, ...] | None = None,
        transform: str | None = None,
        value: Any = None,
        undecodable: Undecodable = QUARANTINE,
        on_loss: Any = "fail",
        dry_run: bool = False,
        **acts: Any,
    ) -> Landed | None:
        """One run of a task that reads one window, as the operator does it."""
        self.tries += 1
        stream, done = FakeSource(source, value=value), Acts(**acts)
        landing = Landing(self.sink(sink) if sink else None, transform, columns)
        question = WindowQuestion(
            stream, window, PublishTime(slack) if basis == "publish" else declaration_of("fake").basis(basis)
        )
        read = WindowRead(question, reader, on_loss, undecodable=undecodable)
        ids = RunIds("dag", f"run-{self.tries}", "read", 1)
        of_grid = parse_grid(grid) if grid else None
        ask = Ask(stream, reader, landing, read.basis, of_grid, event_time_of(read.question.basis))
        if dry_run:
            self.shown = plan_window(self.place(stream), ask, read, ids, done)
            return None
        return read_window(self.place(stream), ask, read, ids, done, planned=lambda _plan: None)[1]

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
        **acts: Any,
    ) -> tuple[Preview, Outcome]:
        """One run of a task that backfills."""
        self.tries += 1
        stream = FakeSource(source, value=value)
        backfill = Backfill(
            source=stream,
            span=span,
            grid=backfill_grid(self.journal, stream.key, reader, length, span),
            reader=reader,
            selection=Selection(parse_select(select), accepts_loss=on_loss == "record", is_own=is_own),
            landing=Landing(self.sink(sink) if sink else None, transform, columns),
            basis=PublishTime(timedelta(0)) if basis == "publish" else declaration_of("fake").basis(basis),
            on_loss=on_loss,
            lookback=lookback,
            acts=Acts(**acts),
        )
        backfiller = Backfiller(self.place(stream), backfill, RunIds("dag", f"run-{self.tries}", "fill", 1))
        backfiller.recount()
        preview = backfiller.preview(pin=not dry_run)
        return preview, Outcome() if dry_run else backfiller.run(preview, done=lambda *_: None)

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


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    read_table = reading.read_table

    def read(spec: Any) -> Any:
        made.before(spec)
        return read_table(spec)

    with pytest.MonkeyPatch.context() as patched, Journal(f"sqlite:///{tmp_path / 'journal.db'}") as journal:
        patched.setattr(reading, "read_table", read)
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
