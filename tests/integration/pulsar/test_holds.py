"""Holds on a broker that keeps nothing by itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.errors import InvalidRequest, SourceNotFound, StartTrimmed
from airflow_provider_streams.model.plan.plan import PlanRequest
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.hold import HoldRequest
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.client.admin import changes
from airflow_provider_streams.systems.pulsar.client.admin.client import AdminClient
from airflow_provider_streams.systems.pulsar.client.admin.responses import EntryId
from airflow_provider_streams.systems.pulsar.client.queries import ask
from airflow_provider_streams.systems.pulsar.operations import hold
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from stream_servers.waiting import wait_until

pytestmark = pytest.mark.pulsar

# two ledgers and a part of a third
ENTRIES = 120


class Holding:
    """A topic without retention, and what a test does to it."""

    def __init__(self, bench, admin):
        self.bench, self.admin = bench, admin
        self.topic = bench.topic()
        self.source = PulsarSource(self.topic)
        self.system = PulsarSystem(bench.endpoint)
        bench.server.set_retention(bench.namespace, minutes=0, megabytes=0)

    def write(self, count):
        self.bench.write(self.topic, [b"%d" % number for number in range(count)])

    def do(self, question):
        return ask(self.admin, question)

    def place(self, cut, **more):
        return self.do(hold.place(HoldRequest(self.source, "orders", "d.read", cut, **more)))

    def move(self, cut, **more):
        return self.do(hold.move(HoldRequest(self.source, "orders", "d.read", cut, **more)))

    def earliest(self):
        return self.do(hold.cut_at_head(self.source))

    def ledgers(self):
        return [span.run for span in self.bench.spans(self.topic)]

    def trim(self):
        self.admin(changes.trim(self.topic))
        return self.ledgers()

    def trim_until(self, count):
        """The broker answers before it deletes, and passes over a trim while another one is under way."""
        wait_until(lambda: len(self.trim()) <= count, f"at most {count} ledgers are left")
        return self.ledgers()

    def chained(self, start_cut):
        now = datetime.now(UTC)
        window = Window(now - timedelta(seconds=1), now)
        return self.system.plan(PlanRequest(self.source, window, "d.read", basis="chained", start_cut=start_cut))


@pytest.fixture
def holding(bench):
    with AdminClient(bench.endpoint) as admin:
        yield Holding(bench, admin)


def test_a_hold_is_nobody_elses(holding):
    """Two readers of one name, or one reader of two sources: who is ahead would let go what the other needs."""
    holding.write(1)
    holding.place(holding.earliest())
    other = PulsarSource([holding.topic, holding.bench.topic()])
    for source, reader in ((holding.source, "d.other"), (other, "d.read")):
        request = HoldRequest(source, "orders", reader, holding.earliest())
        for question in (hold.place(request), hold.move(request), hold.release(source, "orders", reader)):
            with pytest.raises(InvalidRequest, match=r"hold orders on .* belongs to reader d.read of pulsar:.*own"):
                holding.do(question)
    assert holding.do(hold.release(holding.source, "orders", "d.read"))["released"] == [holding.topic]


def test_without_a_hold_full_ledgers_go_and_with_one_they_stay(holding):
    holding.write(1)
    assert holding.place(holding.earliest())["placed"] == [holding.topic]
    holding.write(ENTRIES)
    assert len(holding.trim()) == 3
    assert holding.do(hold.release(holding.source, "orders", "d.read"))["released"] == [holding.topic]
    assert len(holding.trim_until(1)) == 1, "only the open ledger is left"


def test_a_chain_of_windows_reads_everything_with_a_hold_alone(holding):
    """Each window ends in another place of a ledger: inside, at its end, in an empty one."""
    holding.place(holding.earliest())
    cut, read = None, 0
    for count in (30, 20, 50, 100, 1, 0, 99):
        holding.write(count)
        holding.trim()
        plan = holding.chained(cut)
        read += sum(split.entries or 0 for split in plan.splits)
        cut = plan.end_cut
        holding.move(cut, plan=plan.fingerprint)
    assert read == 300
    assert holding.chained(cut).is_empty


def test_a_moved_hold_lets_go_of_what_lies_before_it(holding):
    holding.write(1)
    holding.place(holding.earliest())
    holding.write(ENTRIES)
    before = holding.trim()
    holding.move(holding.chained(None).end_cut)
    assert holding.trim_until(1) == before[-1:]
    # an older end cut, as a late retry has it, moves nothing back
    first = Cut.from_json({holding.topic: f"{before[0]}:0:-1"})
    assert holding.move(first)["moved"] == []


def test_a_hold_at_a_ledgers_begin_holds_the_end_of_the_one_before(holding):
    """So that a window which begins there can be planned with nothing but the hold."""
    holding.write(1)
    holding.place(holding.earliest())
    holding.write(2 * ENTRIES)
    ledgers = holding.trim()
    border = Cut.from_json({holding.topic: f"{ledgers[2]}:0:-1"})
    holding.move(border)
    assert holding.trim_until(len(ledgers) - 1) == ledgers[1:]
    assert not holding.chained(border).is_empty


def test_placing_and_releasing_twice_changes_nothing_more(holding):
    holding.write(5)
    cut = holding.chained(None).end_cut
    assert holding.place(cut)["placed"] == [holding.topic]
    (found,) = holding.do(hold.subscriptions(holding.source))
    assert holding.place(cut)["placed"] == []
    assert holding.do(hold.subscriptions(holding.source)) == (found,)
    holding.do(hold.release(holding.source, "orders", "d.read"))
    assert holding.do(hold.release(holding.source, "orders", "d.read"))["released"] == []
    assert holding.bench.subscriptions(holding.topic) == []


def test_a_hold_says_whom_it_serves_and_since_when(holding):
    since = datetime(2026, 11, 20, tzinfo=UTC)
    holding.write(5)
    cut = holding.chained(None).end_cut
    before = datetime.now(UTC)
    holding.place(cut, since=since, plan="f" * 32)
    (found,) = holding.do(hold.subscriptions(holding.source))
    assert (found.name, found.mark.reader, found.mark.since, found.mark.plan) == ("orders", "d.read", since, "f" * 32)
    assert found.mark.position == cut[holding.topic]
    assert timedelta(0) <= datetime.now(UTC) - found.mark.placed <= datetime.now(UTC) - before + timedelta(seconds=1)


def test_loss_in_spite_of_a_hold_is_still_seen(holding):
    """A TTL acknowledges for a hold; the next window must not be planned as if it were whole."""
    holding.write(30)
    cut = holding.chained(None).end_cut
    holding.place(cut)
    holding.write(ENTRIES)
    last = holding.bench.spans(holding.topic)[-1]
    holding.admin(changes.acknowledge_up_to(holding.topic, "streams-hold-orders", EntryId(last.run, 3)))
    assert holding.trim_until(1) == [last.run]
    with pytest.raises(StartTrimmed):
        holding.chained(cut)


def test_a_hold_that_is_not_there_cannot_be_moved(holding):
    holding.write(5)
    with pytest.raises(SourceNotFound, match="hold orders on"):
        holding.move(holding.chained(None).end_cut)
