"""Windows by recorded cuts over the incarnations of a topic: each message of today's life is in exactly one of them."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from airflow_provider_streams.errors import InvalidRequest, StartTrimmed
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.window.basis import RecordedCuts
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from airflow_provider_streams.windows.plan.cut_recording import sample, store
from airflow_provider_streams.windows.plan.planning import WindowRead, fresh_plan
from airflow_provider_streams.windows.plan.readiness import WindowQuestion
from stream_servers import QUICK_START, PulsarServer

pytestmark = pytest.mark.pulsar

TOPIC = "persistent://public/default/lives"


@pytest.fixture
def journal(tmp_path):
    with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}") as opened:
        yield opened


class Tape:
    """Numbered messages of a topic, its recorded cuts, and the windows between these."""

    def __init__(self, journal, server) -> None:
        self.journal, self.source = journal, PulsarSource(TOPIC)
        self.edges: list[datetime] = []
        self.written = 0
        self.server = server

    @property
    def system(self):
        return PulsarSystem.from_options({"service_url": self.server.service_url, "admin_url": self.server.admin_url})

    def record(self, *, start_over=False) -> None:
        at = datetime.now(UTC)
        store(self.journal, self.system, sample(self.system, self.source), "tests", start_over=start_over)
        self.edges.append(at)

    def write(self, count) -> None:
        import pulsar

        with closing(pulsar.Client(self.server.service_url)) as client:
            producer = client.create_producer(TOPIC, batching_enabled=False, block_if_queue_full=True)
            for number in range(self.written, self.written + count):
                producer.send_async(b"%d" % number, lambda *_: None)
            producer.flush()
        self.written += count

    def plan(self, window, on_loss="fail"):
        question = WindowQuestion(self.source, window, RecordedCuts())
        return fresh_plan(self.journal, self.system, WindowRead(question, "tests", on_loss))

    def read(self, plan) -> list[int]:
        found = []
        for split in plan.splits:
            with closing(self.system.read(plan, split, ["value"])) as reader:
                found += [int(value) for batch in reader for value in batch.column("value").to_pylist()]
        return found


def begin(tape) -> None:
    tape.server.create_topic(TOPIC.partition("://")[2])
    tape.record()
    for count in (30, 30):
        tape.write(count)
        tape.record()


def check(tape, sizes) -> None:
    """The windows that end in the first life have no row, the others each message of the second one once."""
    windows = [Window(*pair) for pair in pairwise(tape.edges)]
    plans = [tape.plan(window, "record") for window in windows]
    read = [tape.read(plan) for plan in plans]
    assert [len(one) for one in read] == [0, 0, *sizes]
    assert [number for one in read for number in one] == list(range(60, tape.written))
    assert [bool(plan.losses) for plan in plans] == [True, True, True, *(False for _ in sizes[1:])]
    for window in windows[:3]:
        with pytest.raises(StartTrimmed, match="deleted, and made again"):
            tape.plan(window)


def test_a_topic_that_was_deleted_and_made_anew_goes_on(journal):
    """On the same cluster ledgers get greater numbers; what is lost is said by its windows."""
    with PulsarServer(ledger_entries=20, jvm=QUICK_START) as server:
        tape = Tape(journal, server)
        begin(tape)
        path = TOPIC.replace("://", "/")
        server.admin("DELETE", f"{path}?force=true")
        server.create_topic(TOPIC.partition("://")[2])
        for count in (50, 7):
            tape.write(count)
            tape.record()
        check(tape, (50, 7))


@pytest.mark.slow
@pytest.mark.parametrize("size", [10, 200])
def test_a_broker_that_was_wiped(journal, size):
    """It numbers its ledgers from the beginning: places of the dead life are there, and mean nothing."""
    ports: dict[str, int] = {}
    tape = Tape(journal, None)
    for life in range(2):
        server = PulsarServer(ledger_entries=20, jvm=QUICK_START)
        server.port.update(ports)
        with server:
            ports, tape.server = dict(server.port), server
            if life == 0:
                begin(tape)
                continue
            server.create_topic(TOPIC.partition("://")[2])
            tape.write(size)
            if size < tape.written - size:
                with pytest.raises(InvalidRequest, match="--start-over"):
                    tape.record()
            tape.record(start_over=True)
            tape.write(7)
            tape.record()
            check(tape, (size, 7))
