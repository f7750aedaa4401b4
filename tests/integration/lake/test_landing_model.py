"""Random sequences of landings in one table, of each kind, end with the table that their receipts say."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, ClassVar
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from airflow_provider_streams.errors import ConcurrentCommit, WindowsOverlap
from airflow_provider_streams.lake.compaction import compact
from airflow_provider_streams.lake.delta.writer import storage_of
from airflow_provider_streams.lake.iceberg import commit
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.lake.registry import table_state
from airflow_provider_streams.model.sinks.landing import TableState
from airflow_provider_streams.model.window.window import Window
from tests.integration.lake import delta_reading, iceberg_reading
from tests.integration.lake.kept_tables import TERMS, KeptTable, compactable, table_in
from tests.integration.lake.killed_landing import ACTS
from tests.integration.lake.landing import SCHEMA, Attempt, hour, land, rows_of
from tests.seeds import examples

WINDOWS = st.builds(hour, st.integers(0, 3), st.integers(1, 2))
COUNTS = st.sampled_from([0, 1, 7])


class Landings(RuleBasedStateMachine):
    """What the table must hold, next to the table."""

    kind: ClassVar[str]
    options: ClassVar[dict[str, Any]] = {}
    tells_empty: ClassVar[bool] = True
    """Whether a window without rows differs from one that was never landed."""
    is_overtaken: ClassVar[bool] = False
    """Whether an attempt is refused that began before another one landed its time; otherwise the last one counts."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(mkdtemp(prefix=f"{self.kind}-model-"))
        self.stack = ExitStack()
        self.table = self.opened(self.stack.enter_context(table_in(self.kind, self.folder, **self.options)))
        self.sink = self.table.sink
        self.held: dict[Window, list[int]] = {}
        self.first = 0
        self.paused: list[Attempt] = []
        self.overtaken: dict[int, list[Window]] = {}

    def opened(self, table: KeptTable) -> KeptTable:
        return table

    def attempt(self, window: Window, count: int) -> Attempt:
        self.first += 100
        return Attempt(self.sink, window, rows_of(self.first, count))

    def blocked(self, window: Window) -> bool:
        return any(other != window and other.overlaps(window) for other in self.held)

    def told(self, attempt: Attempt, act: Callable[[], object], *, replace: bool = False) -> None:
        """What an attempt's end means for the table."""
        window = attempt.window
        late = any(window.overlaps(other) for other in self.overtaken.get(id(attempt), []))
        try:
            act()
        except ConcurrentCommit:
            assert late
            return
        except WindowsOverlap:
            assert self.blocked(window)
            assert not replace
            return
        assert not late
        assert replace or not self.blocked(window)
        self.held = {one: ids for one, ids in self.held.items() if not one.overlaps(window)}
        ids = attempt.rows["id"].to_pylist()
        if ids or self.tells_empty:
            self.held[window] = ids
        for other in self.paused if self.is_overtaken else ():
            self.overtaken.setdefault(id(other), []).append(window)

    @rule(window=WINDOWS, count=COUNTS)
    def lands(self, window, count):
        attempt = self.attempt(window, count)
        self.told(attempt, attempt.land)

    @rule(window=WINDOWS, count=COUNTS)
    def replaces_what_shares_time(self, window, count):
        attempt = self.attempt(window, count)
        self.told(attempt, lambda: land(self.sink, window, attempt.rows, replace_overlaps=True), replace=True)

    @rule(window=WINDOWS, count=COUNTS)
    def begins(self, window, count):
        self.paused.append(self.attempt(window, count).write())

    @precondition(lambda self: self.paused)
    @rule(data=st.data())
    def goes_on(self, data):
        attempt = self.paused.pop(data.draw(st.integers(0, len(self.paused) - 1)))
        self.told(attempt, attempt.commit)
        attempt.writer.discard()

    @precondition(lambda self: self.paused)
    @rule(data=st.data())
    def gives_up(self, data):
        self.paused.pop(data.draw(st.integers(0, len(self.paused) - 1))).writer.discard()

    @rule(window=WINDOWS, count=COUNTS)
    def is_killed_before_the_commit(self, window, count):
        self.dies(self.attempt(window, count).write())

    def dies(self, attempt: Attempt) -> None:
        """What else ends with its process."""

    @rule(number=st.integers(0, 2))
    def gets_a_column(self, number):
        schema = SCHEMA.append(SCHEMA.field("value").with_name(f"more{number}"))
        attempt = Attempt(self.sink, hour(9), rows_of(number, 2, schema))
        self.told(attempt, attempt.land)

    @precondition(lambda self: self.held)
    @rule(ahead=st.sampled_from([timedelta(0), timedelta(seconds=5)]))
    def loses_its_past(self, ahead):
        """All of it, or what a landing does not need."""
        begun = min((attempt.begun for attempt in self.paused), default=datetime.now(UTC) + ahead)
        self.table.expire(begun)
        if begun > datetime.now(UTC):
            self.holds_its_files_alone()

    def holds_its_files_alone(self) -> None:
        """Nothing is left in its folder but what it is now."""
        raise NotImplementedError

    @invariant()
    def the_table_is_what_the_receipts_say(self):
        if self.held:
            assert self.table.ids() == self.held
            assert table_state(self.sink) == TableState(TERMS.mark, frozenset(self.held), tells_empty=self.tells_empty)

    def teardown(self) -> None:
        self.stack.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def answer_lost(kind: str) -> Iterator[None]:
    """Of the first commit meanwhile."""
    module, owner, name = ACTS[kind]
    holder = getattr(importlib.import_module(module), owner)
    original = getattr(holder, name)

    def act(*arguments: Any, **named: Any) -> None:
        setattr(holder, name, original)
        original(*arguments, **named)
        raise TimeoutError("no answer")

    with patch.object(holder, name, act), patch.object(commit, "_PAUSES_SECONDS", (0.0, 0.0)):
        yield


class KeptLandings(Landings):
    """In a table whose files can be rewritten, by us and by others."""

    @rule(window=WINDOWS, count=COUNTS)
    def loses_the_answer_of_its_commit(self, window, count):
        """The commit came through, and its try says that this is unknown."""
        attempt = self.attempt(window, count)
        with answer_lost(self.kind):
            self.told(attempt, attempt.land)

    @precondition(lambda self: self.held)
    @rule()
    def is_compacted(self):
        self.compacted_by_others()

    def compacted_by_others(self) -> None:
        """As an engine does that knows of no windows."""
        raise NotImplementedError

    @precondition(lambda self: self.held)
    @rule(by=st.sampled_from([1, 16]))
    def is_kept_in_few_files(self, by):
        """By us, after another engine compacted."""
        rows = {window: len(ids) for window, ids in self.held.items()}
        assert not compact(compactable(self.sink, TERMS.mark), rows, by * 1024).differing

    def holds_its_files_alone(self) -> None:
        contents = compactable(self.sink, TERMS.mark).contents().values()
        stored = {path for path in self.table.files() if not path.startswith("_delta_log/")}
        assert stored == {file.path for content in contents for file in content.files}


class DeltaLandings(KeptLandings):
    kind = "delta"
    options: ClassVar = {"widen": True}

    def compacted_by_others(self) -> None:
        from deltalake import DeltaTable

        DeltaTable(self.sink.path).optimize.compact()
        DeltaTable(self.sink.path).create_checkpoint()

    @invariant()
    def each_attempt_is_committed_once(self):
        if self.held:
            done = [action for actions in delta_reading.commits(storage_of(self.sink)) for action in actions]
            made = [action["commitInfo"].get("streams.attempt") for action in done if "commitInfo" in action]
            attempts = [attempt for attempt in made if attempt is not None]
            assert len(attempts) == len(set(attempts))


class IcebergLandings(KeptLandings):
    kind = "iceberg"
    options: ClassVar = {"widen": True}
    tells_empty = False
    is_overtaken = True

    def opened(self, table: KeptTable) -> KeptTable:
        return replace(table, ids=lambda: iceberg_reading.ids(table.sink))

    def compacted_by_others(self) -> None:
        """Into files of several windows."""
        table = iceberg_reading.table_of(self.sink)
        if any(field.name == "window_start" for field in table.spec().fields):
            with table.update_spec() as spec:
                spec.remove_field("window_start")
        table.overwrite(table.scan().to_arrow())


class ParquetLandings(Landings):
    kind = "parquet"

    def dies(self, attempt: Attempt) -> None:
        attempt.writer._lock.end()  # the system lets go of its lock

    def holds_its_files_alone(self) -> None:
        root = Path(self.sink.path)
        folders = {ParquetTable(self.sink.path).folder_of(window) for window in self.held}
        assert {(root / path).parent for path in self.table.files()} == folders


def landings(count: int, steps: int) -> settings:
    """So many tables, or more by `STREAMS_EXAMPLES`, and the landings on each."""
    return settings(max_examples=examples(count), stateful_step_count=steps, deadline=None)


TestDelta = DeltaLandings.TestCase
TestDelta.settings = landings(6, 20)
TestIceberg = pytest.mark.lake(IcebergLandings.TestCase)
TestIceberg.settings = landings(5, 15)
TestParquet = ParquetLandings.TestCase
TestParquet.settings = landings(6, 20)
