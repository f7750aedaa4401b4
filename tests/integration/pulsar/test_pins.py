"""Pin subscriptions on a broker that keeps nothing by itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.errors import StartTrimmed
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import PlanRequest
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.systems.pulsar import hold
from airflow_provider_streams.systems.pulsar.admin import changes
from airflow_provider_streams.systems.pulsar.admin.client import AdminClient
from airflow_provider_streams.systems.pulsar.hold import Placement
from airflow_provider_streams.systems.pulsar.questions import ask
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem

pytestmark = pytest.mark.pulsar

# two ledgers and a part of a third
ENTRIES = 120


class Pinning:
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
        return self.do(hold.place(Placement("orders", "d.read", cut, **more)))

    def move(self, cut, **more):
        return self.do(hold.move(Placement("orders", "d.read", cut, **more)))

    def earliest(self):
        return self.do(hold.cut_at_head(self.source))

    def trim(self):
        self.admin(changes.trim(self.topic))
        return [span.run for span in self.bench.spans(self.topic)]

    def chained(self, start_cut):
        now = datetime.now(UTC)
        window = Window(now - timedelta(seconds=1), now)
        return self.system.plan(PlanRequest(self.source, window, "d.read", basis="chained", start_cut=start_cut))


@pytest.fixture
def pinning(bench):
    with AdminClient(bench.endpoint) as admin:
        yield Pinning(bench, admin)


def test_without_a_pin_full_ledgers_go_and_with_one_they_stay(pinning):
    pinning.write(1)
    assert pinning.place(pinning.earliest())["placed"] == [pinning.topic]
    pinning.write(ENTRIES)
    assert len(pinning.trim()) == 3
    assert pinning.do(hold.drop(pinning.source, "orders"))["dropped"] == [pinning.topic]
    assert len(pinning.trim()) == 1, "only the open ledger is left"


def test_a_chain_of_windows_reads_everything_with_a_pin_alone(pinning):
    """Each window ends in another place of a ledger: inside, at its end, in an empty one."""
    pinning.place(pinning.earliest())
    cut, read = None, 0
    for count in (30, 20, 50, 100, 1, 0, 99):
        pinning.write(count)
        pinning.trim()
        plan = pinning.chained(cut)
        read += sum(split.entries or 0 for split in plan.splits)
        cut = plan.end_cut
        pinning.move(cut, plan=plan.fingerprint)
    assert read == 300
    assert pinning.chained(cut).is_empty


def test_a_moved_pin_lets_go_of_what_lies_before_it(pinning):
    pinning.write(1)
    pinning.place(pinning.earliest())
    pinning.write(ENTRIES)
    before = pinning.trim()
    pinning.move(pinning.chained(None).end_cut)
    assert pinning.trim() == before[-1:]
    # an older end cut, as a late retry has it, moves nothing back
    first = Cut.from_json({pinning.topic: f"{before[0]}:0:-1"})
    assert pinning.move(first)["moved"] == []


def test_a_pin_at_a_ledgers_begin_holds_the_end_of_the_one_before(pinning):
    """So that a window which begins there can be planned with nothing but the pin."""
    pinning.write(1)
    pinning.place(pinning.earliest())
    pinning.write(2 * ENTRIES)
    ledgers = pinning.trim()
    border = Cut.from_json({pinning.topic: f"{ledgers[2]}:0:-1"})
    pinning.move(border)
    assert pinning.trim() == ledgers[1:]
    assert not pinning.chained(border).is_empty


def test_placing_and_dropping_twice_changes_nothing_more(pinning):
    pinning.write(5)
    cut = pinning.chained(None).end_cut
    assert pinning.place(cut)["placed"] == [pinning.topic]
    (pin,) = pinning.do(hold.pins_of(pinning.source))
    assert pinning.place(cut)["placed"] == []
    assert pinning.do(hold.pins_of(pinning.source)) == (pin,)
    pinning.do(hold.drop(pinning.source, "orders"))
    assert pinning.do(hold.drop(pinning.source, "orders"))["dropped"] == []
    assert pinning.bench.subscriptions(pinning.topic) == []


def test_a_pin_says_whom_it_serves_and_since_when(pinning):
    since = datetime(2026, 11, 20, tzinfo=UTC)
    pinning.write(5)
    cut = pinning.chained(None).end_cut
    before = datetime.now(UTC)
    pinning.place(cut, since=since, plan="f" * 32)
    (pin,) = pinning.do(hold.pins_of(pinning.source))
    assert (pin.name, pin.mark.reader, pin.mark.since, pin.mark.plan) == ("orders", "d.read", since, "f" * 32)
    assert pin.mark.position == cut[pinning.topic]
    assert timedelta(0) <= pin.age(datetime.now(UTC)) <= datetime.now(UTC) - before + timedelta(seconds=1)


def test_loss_in_spite_of_a_pin_is_still_seen(pinning):
    """A TTL acknowledges for a pin; the next window must not be planned as if it were whole."""
    pinning.write(30)
    cut = pinning.chained(None).end_cut
    pinning.place(cut)
    pinning.write(ENTRIES)
    last = pinning.bench.spans(pinning.topic)[-1]
    from airflow_provider_streams.systems.pulsar.admin.answers import MessageId

    pinning.admin(changes.acknowledge_up_to(pinning.topic, "streams-pin-orders", MessageId(last.run, 3)))
    assert pinning.trim() == [last.run]
    with pytest.raises(StartTrimmed):
        pinning.chained(cut)
