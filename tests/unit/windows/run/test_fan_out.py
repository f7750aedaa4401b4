"""Many streams into many tables: each on its own, whatever becomes of the others."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest

from airflow_provider_streams import ParquetSink, Window
from airflow_provider_streams.errors import (
    AuthenticationFailed,
    EventsLost,
    FanOutIncomplete,
    InvalidRequest,
    InvalidWindow,
    PreflightFailed,
    SourceNotFound,
    SystemUnavailable,
    WindowNotReady,
)
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.sinks.landing import Landing
from airflow_provider_streams.model.window.backfill import Limits, Selection, parse_select
from airflow_provider_streams.model.window.basis import PublishTime
from airflow_provider_streams.model.window.window_schedule import parse_schedule
from airflow_provider_streams.testing.fake import EPOCH, FakeSource, FakeSystem
from airflow_provider_streams.windows.claim.overrides import Overrides
from airflow_provider_streams.windows.claim.table_coverage import compare
from airflow_provider_streams.windows.run.outcome import Outcome
from airflow_provider_streams.windows.run.request import OneWindow, ReadRequest, WindowsOfSpan
from airflow_provider_streams.windows.run.window_run import WindowRun
from tests.unit.windows.conftest import MINUTE, World

GRID = parse_schedule("1m")
SLACK = PublishTime(timedelta(0))


def minute(number: int, end: int | None = None) -> Window:
    return Window(EPOCH + number * MINUTE, EPOCH + (number + 1 if end is None else end) * MINUTE)


@dataclass
class Tried:
    """What one run of a task did."""

    request: ReadRequest
    outcome: Outcome
    chunks: list[Any]

    @property
    def read(self) -> list[str]:
        """The streams that were read, by name."""
        return [name for chunk in self.chunks for spec in chunk.specs for name in spec.plan.source.names]

    @property
    def failed(self) -> dict[str, str]:
        """Error types by stream."""
        return {name: one.error_type for (name, _), one in self.outcome.failures.items()}


@dataclass
class Fan:
    """A world whose streams have a table each."""

    world: World
    source: FakeSource

    def sink(self) -> ParquetSink:
        return ParquetSink(f"{self.world.path}/{{stream}}")

    def place(self, chunks: list[Any]) -> Any:
        from dataclasses import replace

        place = self.world.place(self.source)

        def spark(work: Any) -> Any:
            chunks.append(work)
            return place.spark(work)

        return replace(place, spark=spark)

    def read(self, window: Window, run: str = "run", attempt: int = 1, **asked: Any) -> Tried:
        overrides = Overrides(**asked.pop("overrides", {}))
        windows = OneWindow(window, lambda other: other.run_id == run)
        landing, on_loss = Landing(columns=asked.get("columns")), asked.get("on_loss", "fail")
        ids = TaskInstanceKey("dag", run, "read", attempt)
        request = ReadRequest(
            *(self.source, "reader", windows, ids, landing, SLACK, GRID, on_loss),
            overrides=overrides,
            tables=self.sink(),
        )
        return self._run(request)

    def fill(self, span: Window, length: str | None = "1m", limits: Limits | None = None, **how: Any) -> Tried:
        lookback = how.pop("lookback", None)
        windows = WindowsOfSpan(span, Selection(parse_select("missing")), length, lookback, limits or Limits())
        ids = TaskInstanceKey("dag", "fill", "fill", 1)
        request = ReadRequest(self.source, "reader", windows, ids, basis=SLACK, tables=self.sink(), **how)
        return self._run(request)

    def _run(self, request: ReadRequest) -> Tried:
        chunks: list[Any] = []
        run = WindowRun(self.place(chunks), request)
        return Tried(request, run.land(run.prepare(), lambda *_: None), chunks)

    def states(self, stream: str, span: Window) -> list[str]:
        return self.world.states(span, "reader", stream)

    def holds(self, stream: str, *minutes: int) -> bool:
        """Whether a stream's table has each of its events of these minutes once, and no other."""
        expected = {
            f"{stream}-{shard}:{number}".encode()
            for shard in range(2)
            for one in minutes
            for number in range(one * 60, one * 60 + 60)
        }
        found = Counter({value.rstrip(b"."): n for value, n in self.world.values(stream).items()})
        return found == Counter(expected)


@pytest.fixture
def fan(world: World) -> Fan:
    world.hold(streams="orders,clicks,views")
    return Fan(world, FakeSource("*"))


def test_every_stream_lands_in_its_own_table_by_one_job(fan: Fan) -> None:
    tried = fan.read(minute(1))
    assert not tried.outcome.failures
    assert len(tried.chunks) == 1
    assert sorted(tried.read) == ["clicks", "orders", "views"]
    for stream in ("orders", "clicks", "views"):
        assert fan.holds(stream, 1)
        assert fan.states(stream, minute(1)) == ["covered"]
        (run,) = fan.world.journal.runs(FakeSource(stream).key, "reader", minute(1))
        assert (run.rows, run.state) == (120, "covered")
    tried.outcome.check(tried.request)


def test_one_that_fails_does_not_hold_up_the_others_and_a_retry_reads_it_alone(fan: Fan) -> None:
    def lose(spec: Any) -> None:
        if spec.plan.source.names == ("clicks",):
            raise EventsLost("clicks-0", 1, 2, "1 entry", "it was deleted")

    fan.world.before = lose
    first = fan.read(minute(1))
    assert first.failed == {"clicks": "EventsLost"}
    assert [fan.states(one, minute(1)) for one in ("orders", "clicks", "views")] == [["covered"], ["lost"], ["covered"]]
    with pytest.raises(FanOutIncomplete, match=r"2 landed, 1 did not\. clicks: EventsLost: .*it was deleted") as caught:
        first.outcome.check(first.request)
    assert not caught.value.retryable
    fan.world.before = lambda _spec: None
    second = fan.read(minute(1), attempt=2)
    assert (second.read, second.outcome.before) == (["clicks"], 2)
    assert all(fan.holds(one, 1) for one in ("orders", "clicks", "views"))
    assert second.outcome.words == "1 window covered, 120 rows, 2 by an earlier try"


def test_a_new_run_reads_all_again_by_the_same_plans(fan: Fan) -> None:
    first, second = fan.read(minute(1)), fan.read(minute(1), run="cleared")
    plans = [{plan.fingerprint for _, plan, _ in tried.outcome.landed} for tried in (first, second)]
    assert plans[0] == plans[1]
    assert len(second.read) == 3
    assert all(fan.holds(one, 1) for one in ("orders", "clicks", "views"))


def test_a_kill_in_the_middle_leaves_what_was_landed_to_the_retry(fan: Fan) -> None:
    def die(spec: Any) -> None:
        if spec.plan.source.names == ("views",):
            raise KeyboardInterrupt

    fan.world.before = die
    with pytest.raises(KeyboardInterrupt):
        fan.read(minute(1))
    fan.world.before = lambda _spec: None
    second = fan.read(minute(1), attempt=2)
    assert not second.outcome.failures
    assert all(fan.holds(one, 1) for one in ("orders", "clicks", "views"))


@pytest.fixture
def orders_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """One stream is not ready."""
    plan = FakeSystem.plan

    def waiting(self: FakeSystem, request: Any) -> Any:
        if str(request.source) == "orders":
            raise WindowNotReady(request.source, request.window, "a transaction is open")
        return plan(self, request)

    monkeypatch.setattr(FakeSystem, "plan", waiting)


@pytest.mark.usefixtures("orders_wait")
def test_one_that_is_not_ready_waits_and_the_others_land(fan: Fan) -> None:
    tried = fan.read(minute(1))
    assert tried.failed == {"orders": "WindowNotReady"}
    assert fan.states("orders", minute(1)) == ["missing"]
    with pytest.raises(FanOutIncomplete) as caught:
        tried.outcome.check(tried.request)
    assert caught.value.retryable


@pytest.mark.usefixtures("orders_wait")
@pytest.mark.parametrize("streams", ["orders,clicks,views", "orders,clicks"])
def test_a_try_that_has_one_table_left_names_all_that_failed(fan: Fan, streams: str) -> None:
    fan.world.hold(streams=streams)
    (fan.world.path / "clicks").mkdir()
    (fan.world.path / "clicks" / "x.parquet").write_text("somebody's")
    for attempt in (1, 2):
        tried = fan.read(minute(1), attempt=attempt)
        assert tried.failed == {"orders": "WindowNotReady", "clicks": "TableOwnedByOther"}
        with pytest.raises(
            FanOutIncomplete, match=r"orders: WindowNotReady: .*; clicks: TableOwnedByOther: "
        ) as caught:
            tried.outcome.check(tried.request)
        assert caught.value.retryable, "one of them may pass by itself"
    assert tried.read == ["clicks"]
    assert fan.states("clicks", minute(1)) == ["failed"]


def test_a_backfill_that_has_one_table_left_fails_for_its_windows_alone(fan: Fan) -> None:
    (fan.world.path / "clicks").mkdir()
    (fan.world.path / "clicks" / "x.parquet").write_text("somebody's")
    for read in (["clicks", "orders", "views"], ["clicks"]):
        tried = fan.fill(minute(0, 2))
        assert sorted(set(tried.read)) == read
        assert tried.failed == {"clicks": "TableOwnedByOther"}
        assert len(tried.outcome.failures) == 2


@pytest.mark.usefixtures("orders_wait")
def test_what_concerns_all_names_what_had_failed_before_it(fan: Fan) -> None:
    def end(_spec: Any) -> None:
        raise PreflightFailed("there is no Spark")

    fan.world.before = end
    with pytest.raises(PreflightFailed) as caught:
        fan.read(minute(1))
    (note,) = caught.value.__notes__
    assert note.startswith("Failed before this: orders: WindowNotReady: ")


def test_what_concerns_all_names_what_had_failed_in_the_jobs_before_it(fan: Fan) -> None:
    def fail(spec: Any) -> None:
        if spec.plan.window == minute(1):
            raise PreflightFailed("there is no Spark")
        if spec.plan.source.names == ("clicks",):
            raise EventsLost("clicks-0", 1, 2, "1 entry", "it was deleted")

    fan.world.before = fail
    with pytest.raises(PreflightFailed) as caught:
        fan.fill(minute(0, 2), limits=Limits(max_windows=3))
    (note,) = caught.value.__notes__
    assert note.startswith("Failed before this: clicks: EventsLost: ")
    assert fan.holds("orders", 0)


def test_credentials_that_end_during_planning_name_what_had_failed_before(
    fan: Fan, monkeypatch: pytest.MonkeyPatch
) -> None:
    fan.world.hold(streams="orders,clicks,a.b,A_b")
    others = threading.Event()

    def ended(_self: FakeSystem, request: Any) -> Any:
        if str(request.source) == "clicks":
            others.set()
            raise WindowNotReady(request.source, request.window, "a transaction is open")
        others.wait()
        raise AuthenticationFailed("fake", "the token has ended")

    monkeypatch.setattr(FakeSystem, "plan", ended)
    with pytest.raises(AuthenticationFailed) as caught:
        fan.read(minute(1))
    notes = "\n".join(caught.value.__notes__)
    assert "clicks: WindowNotReady: " in notes
    assert "a.b: InvalidRequest: " in notes
    assert "A_b: InvalidRequest: " in notes


def test_streams_that_would_share_a_table_are_not_read(fan: Fan) -> None:
    fan.world.hold(streams="orders,a.b,A_b")
    tried = fan.read(minute(1))
    assert tried.failed == {"a.b": "InvalidRequest", "A_b": "InvalidRequest"}
    assert tried.read == ["orders"]
    assert fan.states("a.b", minute(1)) == ["failed"]
    assert not (fan.world.path / "a_b").exists()


def test_a_stream_that_meets_the_table_of_one_that_is_gone_is_refused(fan: Fan) -> None:
    fan.world.hold(streams="a.b")
    fan.read(minute(1))
    fan.world.hold(streams="A_b,orders")
    tried = fan.read(minute(40))
    assert tried.failed == {"A_b": "TableOwnedByOther"} | {
        name: kind for name, kind in tried.failed.items() if name == "a.b"
    }
    assert fan.states("orders", minute(40)) == ["covered"]


def test_coverage_says_of_a_stream_whose_folder_has_another_owner_that_it_does(fan: Fan) -> None:
    (fan.world.path / "clicks").mkdir()
    (fan.world.path / "clicks" / "x.parquet").write_text("somebody's")
    assert fan.read(minute(1)).failed == {"clicks": "TableOwnedByOther"}
    standings = {}
    for name in ("orders", "clicks"):
        of = (fan.source.only(name).key, "reader")
        known = fan.world.journal.coverage(*of, minute(1).start, minute(1).end)
        coverage, table = compare(fan.world.journal, *of, known)
        standings[name] = (coverage.windows[0].state, table.status)
    assert standings == {"orders": ("covered", "ours"), "clicks": ("failed", "foreign")}


def test_a_new_stream_gets_a_table_and_a_backfill_finds_its_earlier_windows(fan: Fan) -> None:
    for number in range(3):
        fan.read(minute(number), run=f"run-{number}")
    fan.world.hold(streams="orders,clicks,views,late")
    fan.read(minute(3), run="run-3")
    assert fan.holds("late", 3)
    tried = fan.fill(minute(0, 4), length=None)
    assert sorted(tried.read) == ["late"] * 3
    assert len(tried.chunks) == 1
    assert fan.holds("late", 0, 1, 2, 3)
    assert fan.states("late", minute(0, 4)) == ["covered"] * 4
    assert fan.fill(minute(0, 4)).read == []


def test_a_stream_that_vanished_is_lost_for_its_window_and_its_rows_stay(fan: Fan) -> None:
    fan.world.hold(now=(EPOCH + timedelta(hours=1)).isoformat())
    fan.read(minute(1))
    # seen before the next window, and gone when that is read
    later = Window(EPOCH + timedelta(days=3650), EPOCH + timedelta(days=3650, minutes=1))
    fan.world.hold(streams="orders,clicks", now=later.end.isoformat())
    tried = fan.read(later)
    assert tried.failed == {"views": "StartTrimmed"}
    (cause,) = (one.message for one in tried.outcome.failures.values())
    assert "no longer exists" in cause
    assert f"file://{fan.world.path}/views" in cause
    assert fan.holds("views", 1)
    accepted = fan.read(later, run="again", on_loss="record")
    assert not accepted.outcome.failures


def test_a_stream_that_vanished_before_anybody_looked_at_its_windows_is_lost_for_them(fan: Fan) -> None:
    """Windows of long ago are read one after the other, and a stream is deleted in between."""
    for number in range(2):
        fan.read(minute(number), run=f"run-{number}")
    fan.world.hold(streams="orders,clicks")
    tried = fan.read(minute(2), run="run-2")
    assert tried.failed == {"views": "StartTrimmed"}
    assert fan.states("views", minute(2)) == ["lost"]
    again = fan.read(minute(1), run="cleared")
    assert not again.outcome.failures, "its rows are there, and cannot be read again"
    filled = fan.fill(minute(0, 4), length=None)
    assert filled.failed == {"views": "StartTrimmed"}
    assert fan.states("views", minute(0, 4)) == ["covered", "covered", "lost", "lost"]
    assert fan.fill(minute(0, 4)).failed == {}, "it was told"
    assert fan.holds("views", 0, 1)


def test_a_stream_that_vanished_is_not_missed_after_a_look_without_it(fan: Fan) -> None:
    """That look came shortly after another one."""
    fan.world.hold(now=(EPOCH + timedelta(hours=1)).isoformat())
    fan.read(minute(1))
    later = Window(EPOCH + timedelta(days=3650), EPOCH + timedelta(days=3650, minutes=1))
    fan.world.hold(streams="orders,clicks", now=later.end.isoformat())
    assert fan.read(minute(2), run="run-2").failed == {"views": "StartTrimmed"}
    assert fan.read(later, run="run-3").failed == {}


def test_a_stream_that_vanished_between_a_try_and_its_retry_is_lost(fan: Fan) -> None:
    """It was new to the first try, which came shortly after the look of another window."""
    fan.world.hold(streams="orders", now=(EPOCH + timedelta(hours=1)).isoformat())
    fan.read(minute(0))
    later = Window(EPOCH + timedelta(days=3650), EPOCH + timedelta(days=3650, minutes=1))
    fan.world.hold(streams="orders,views", now=later.end.isoformat())

    def lose(spec: Any) -> None:
        if spec.plan.source.names == ("views",):
            raise EventsLost("views-0", 1, 2, "1 entry", "it was deleted")

    fan.world.before = lose
    assert fan.read(later).failed == {"views": "EventsLost"}
    fan.world.before = lambda _spec: None
    fan.world.hold(streams="orders", now=later.end.isoformat())
    retried = fan.read(later, attempt=2)
    assert retried.failed == {"views": "StartTrimmed"}
    assert fan.states("views", later) == ["lost"]


def test_a_named_stream_that_does_not_exist_fails_alone(fan: Fan) -> None:
    fan.source = FakeSource("orders,nowhere")
    tried = fan.read(minute(1))
    assert tried.failed == {"nowhere": "SourceNotFound"}
    assert fan.holds("orders", 1)


def test_nothing_lands_where_there_is_no_stream(fan: Fan) -> None:
    fan.world.hold(streams="")
    with pytest.raises(SourceNotFound):
        fan.read(minute(1))


def test_credentials_that_are_refused_concern_all(fan: Fan) -> None:
    fan.world.hold(password="another")
    with pytest.raises(AuthenticationFailed):
        fan.read(minute(1))


def test_a_system_that_answers_for_no_stream_is_not_asked_for_hundreds(
    fan: Fan, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def silent(self: FakeSystem, request: Any) -> Any:
        asked.append(str(request.source))
        raise SystemUnavailable("fake", "it says nothing")

    names = [f"s{number}" for number in range(50)]
    fan.world.hold(streams=",".join(names))
    monkeypatch.setattr(FakeSystem, "plan", silent)
    tried = fan.read(minute(1))
    assert set(tried.failed.values()) == {"SystemUnavailable"}
    assert len(tried.failed) == 50
    assert len(asked) <= 6


def test_a_backfill_reads_windows_of_several_streams_in_one_job(fan: Fan) -> None:
    tried = fan.fill(minute(0, 3), limits=Limits(max_windows=4))
    assert [len(chunk.specs) for chunk in tried.chunks] == [4, 4, 1]
    assert all(fan.holds(one, 0, 1, 2) for one in ("orders", "clicks", "views"))


def test_a_backfill_without_a_length_of_windows_says_so(fan: Fan) -> None:
    with pytest.raises(InvalidWindow, match="window_length"):
        fan.fill(minute(0, 3), length=None)


def test_late_rows_are_looked_for_in_one_stream_at_a_time(fan: Fan) -> None:
    with pytest.raises(InvalidRequest, match="leave out lookback"):
        fan.fill(minute(0, 3), lookback=MINUTE)


def test_each_table_takes_windows_from_before_it_got_more_columns(fan: Fan) -> None:
    from dataclasses import replace

    fan.world.hold(records=1)
    for number, (columns, overrides) in enumerate((("n long", {}), ("n long, shard string", {"replan": True}))):
        fan.source = replace(fan.source, value=Json(columns))
        assert not fan.read(minute(number), run=f"run-{number}", overrides=overrides).failed
    assert not fan.read(minute(0), run="cleared").failed
    for name in ("orders", "clicks", "views"):
        folder = ParquetTable(str(fan.world.path / name)).folder_of(minute(0))
        assert all("shard" not in pq.ParquetFile(file).schema_arrow.names for file in folder.glob("*.parquet"))


def test_landing_elsewhere_is_refused_or_an_act(fan: Fan) -> None:
    fan.read(minute(1))
    tried = fan.read(minute(2), run="two", columns=("value", "number"))
    assert set(tried.failed.values()) == {"LandingMismatch"}
    tried = fan.read(minute(2), run="three", columns=("value", "number"), overrides={"full_refresh": True})
    assert not tried.outcome.failures
    assert all(fan.holds(one, 2) for one in ("orders", "clicks", "views"))


def test_a_table_that_cannot_take_the_present_columns_keeps_its_windows_or_is_landed_again(
    fan: Fan, monkeypatch: Any
) -> None:
    from dataclasses import replace

    from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
    from airflow_provider_streams.testing.fake import FakeSystem

    plan, others = FakeSystem.plan, ("orders", "views")

    def tell(self: FakeSystem, request: Any) -> Any:
        """The schema of one of them drops a column; what the task says of values stays the same."""
        columns = "n long" if str(request.source) == "clicks" else "n long, shard string"
        return replace(plan(self, request), decoding=decoding_of(Json(columns), None, {str(request.source): {}}, ""))

    fan.world.hold(records=1)
    fan.source = replace(fan.source, value=Json("n long, shard string"))
    fan.read(minute(0))
    monkeypatch.setattr(FakeSystem, "plan", tell)
    assert fan.read(minute(0), run="replanned", overrides={"replan": True}).failed == {"clicks": "LandingMismatch"}
    assert fan.read(minute(1), run="next").failed == {"clicks": "LandingMismatch"}
    assert fan.world.states(minute(0), source="clicks") == ["covered"]
    assert not fan.read(minute(1), run="refreshed", overrides={"full_refresh": True}).failed
    assert [fan.world.windows(one) for one in others] == [[minute(0), minute(1)]] * 2
    assert fan.world.windows("clicks") == [minute(1)]
    assert not fan.fill(minute(0, 3), overrides=Overrides(full_refresh=True)).failed
    assert [len(fan.world.windows(one)) for one in (*others, "clicks")] == [3, 3, 3]
