"""Several streams in one source, on a real server: windows tile whatever becomes of the streams."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from airflow_provider_streams.errors import StartTrimmed
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.stream.hold import HoldRequest
from airflow_provider_streams.model.window.basis import RecordedCuts
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pravega.client.controller import stream_calls
from airflow_provider_streams.systems.pravega.client.stream_configuration import Retention, RetentionKind, Settings
from airflow_provider_streams.systems.pravega.metadata.stream_cut import by_stream
from airflow_provider_streams.systems.pravega.operations import hold, retention
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.testing.pravega_writer import PravegaWriter
from airflow_provider_streams.windows.plan.cut_recording import sample, store
from airflow_provider_streams.windows.plan.planning import WindowRead, fresh_plan
from airflow_provider_streams.windows.plan.readiness import WindowQuestion

pytestmark = pytest.mark.pravega


@pytest.fixture
def journal(tmp_path):
    with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}") as opened:
        yield opened


class Streams:
    """Streams of one scope, whose events say stream and number; and windows of a source over them."""

    def __init__(self, journal, lab, source) -> None:
        self.journal, self.lab, self.source = journal, lab, source
        self.edges: list[datetime] = []
        self.written: Counter[str] = Counter()
        self.windows: list[Counter[str]] = []
        """What was written to each stream between two edges."""

    def make(self, name: str, *tags: str) -> str:
        stream = f"{self.lab.scope}/{name}"
        assert self.lab.call(stream_calls.create_stream(stream, Settings(tags=tags)))
        return stream

    def write(self, name: str, count: int) -> None:
        with PravegaWriter(self.lab.system.endpoint, f"{self.lab.scope}/{name}") as writer:
            numbers = range(self.written[name], self.written[name] + count)
            writer.write((f"k{number}", f"{name}:{number}".encode()) for number in numbers)
        self.written[name] += count
        self.windows[-1][name] += count

    def delete(self, name: str) -> None:
        assert self.lab.call(stream_calls.seal_stream(f"{self.lab.scope}/{name}"))
        assert self.lab.call(stream_calls.delete_stream(f"{self.lab.scope}/{name}"))

    def record(self) -> None:
        self.edges.append(datetime.now(UTC))
        store(self.journal, self.lab.system, sample(self.lab.system, self.source), "tests")
        self.windows.append(Counter())

    def plan(self, window: Window, on_loss="fail") -> Plan:
        question = WindowQuestion(self.source, window, RecordedCuts())
        return fresh_plan(self.journal, self.lab.system, WindowRead(question, "tests", on_loss))

    def plans(self, on_loss="fail") -> list[Plan]:
        return [self.plan(Window(*pair), on_loss) for pair in pairwise(self.edges)]

    def read(self, plan: Plan) -> list[tuple[str, int]]:
        assert Plan.from_json(plan.to_json()) == plan
        self.lab.system.check_origin(plan)
        events, receipt = self.lab.read(plan, on_loss="record")
        assert receipt.rows == len(events)
        return sorted((name, int(number)) for name, _, number in (event.decode().partition(":") for event in events))


def counted(rows) -> Counter[str]:
    return Counter(name for name, _ in rows)


def whole(tape: Streams, *left_out: str) -> list[tuple[str, int]]:
    """Every event of the streams, once."""
    return sorted((name, n) for name, count in tape.written.items() if name not in left_out for n in range(count))


def test_windows_by_recorded_cuts_tile_while_streams_come_scale_and_go(journal, lab):
    tape = Streams(journal, lab, PravegaSource(scope=lab.scope))
    for name in ("a", "b", "d"):
        tape.make(name)
    tape.record()
    for name in ("a", "b", "d"):
        tape.write(name, 10)
    tape.record()
    tape.make("c")  # its events belong to the window in which they are written
    lab.split(f"{lab.scope}/a")
    for name in ("a", "b", "c"):
        tape.write(name, 20)
    tape.record()
    tape.write("b", 5)
    tape.write("c", 5)
    tape.record()

    plans = tape.plans()
    read = [tape.read(plan) for plan in plans]
    assert [counted(rows) for rows in read] == [window for window in tape.windows if window]
    assert sorted(row for rows in read for row in rows) == whole(tape)
    assert [len(plan.source.names) for plan in plans] == [3, 4, 4]
    assert any("/c: new since" in remark for remark in plans[1].remarks)
    assert all(earlier.end_cut.items() <= later.start_cut.items() for earlier, later in pairwise(plans))

    tape.write("d", 3)  # these are never read
    tape.delete("d")
    tape.write("a", 4)
    tape.record()
    tape.write("a", 4)
    tape.record()
    vanished, later = (Window(*pair) for pair in list(pairwise(tape.edges))[-2:])
    with pytest.raises(StartTrimmed, match="/d/"):
        tape.plan(vanished)
    plan = tape.plan(vanished, "record")
    assert counted(tape.read(plan)) == {"a": 4}
    assert {loss.shard.split("/")[1] for loss in plan.losses} == {"d"}
    after = tape.plan(later)
    assert not after.losses, "it is missed in one window, and no other"
    assert counted(tape.read(after)) == {"a": 4}
    first = tape.plan(Window(*tape.edges[:2]), "record")
    assert counted(tape.read(first)) == {"a": 10, "b": 10}, "what the deleted stream held is lost in its windows"
    with pytest.raises(StartTrimmed, match="/d/"):
        tape.plan(Window(*tape.edges[:2]))


@pytest.mark.parametrize("form", ["list", "pattern", "tags"])
def test_windows_of_a_chain_tile_over_the_streams_that_are_chosen(journal, lab, form):
    source = {
        "list": PravegaSource([f"{lab.scope}/order-a", f"{lab.scope}/order-b"]),
        "pattern": PravegaSource(pattern=f"{lab.scope}/order-.*"),
        "tags": PravegaSource(scope=lab.scope, tags=["orders", "eu"]),
    }[form]
    tape = Streams(journal, lab, source)
    tape.windows.append(Counter())
    for name in ("order-a", "order-b"):
        tape.make(name, "orders", "eu")
    tape.make("other", "orders")
    read, before = [], None
    for step in range(3):
        if step == 1 and form != "list":
            tape.make("order-c", "eu", "orders")
        for name in ("order-a", "order-b", "other", *(["order-c"] if step and form != "list" else [])):
            tape.write(name, 7 + step)
        asked = PlanRequest(source, window_of(step), "tests", basis="chained")
        if before:
            asked = replace(asked, start_cut=before.end_cut, start_incarnation=before.source.incarnation)
        before = lab.system.plan(asked)
        read += tape.read(before)
    assert sorted(read) == whole(tape, "other")
    chosen = ["order-a", "order-b"] if form == "list" else ["order-a", "order-b", "order-c"]
    assert before.source.names == tuple(f"{lab.scope}/{name}" for name in chosen)


def window_of(step: int) -> Window:
    return Window(datetime(2026, 11, 20, 10 + step, tzinfo=UTC), datetime(2026, 11, 20, 11 + step, tzinfo=UTC))


def test_holds_stand_on_each_stream_and_on_those_that_come(journal, lab):
    source = PravegaSource(scope=lab.scope)
    tape = Streams(journal, lab, source)
    tape.windows.append(Counter())
    a, b = tape.make("a"), tape.make("b")
    request = HoldRequest(source, "nightly", "nightly")
    assert lab.run(hold.place_request(request))["placed"] == [a, b]
    for name in "ab":
        tape.write(name, 5)
    tail, c = lab.system.tail(source), tape.make("c")
    moved = lab.run(hold.move_request(replace(request, cut=tail)))
    assert moved["moved"] == [a, b]
    assert set(by_stream(tail)) == {a, b}
    assert [one.reader for one in lab.run(hold.holds(source, ["nightly"]))] == ["nightly"] * 3
    lab.call(stream_calls.update_stream(b, Settings(retention=Retention(RetentionKind.TIME, 60_000))))
    of_any = lab.run(retention.holding(source, None, (), datetime.now(UTC)))
    assert of_any.rules == lab.run(retention.holding(PravegaSource(b), None, (), datetime.now(UTC))).rules
    assert of_any.rules.retention == timedelta(minutes=1)
    assert lab.run(hold.release_named(source, "nightly"))["released"] == [a, b, c]
    assert lab.run(hold.holds(source, ["nightly"])) == ()
