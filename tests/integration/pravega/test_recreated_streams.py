"""Windows by recorded cuts over the incarnations of a stream: each event of today's life is in exactly one of them."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from airflow_provider_streams.errors import InvalidRequest, StartTrimmed
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.window.basis import RecordedCuts
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pravega.client.controller import stream_calls
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.system import PravegaSystem
from airflow_provider_streams.testing.pravega_writer import PravegaWriter
from airflow_provider_streams.windows.after_landing.retention import horizon_of
from airflow_provider_streams.windows.plan.cut_recording import sample, store
from airflow_provider_streams.windows.plan.planning import WindowRead, fresh_plan
from airflow_provider_streams.windows.plan.readiness import WindowQuestion
from stream_servers import QUICK_START, PravegaServer
from tests.integration.pravega.conftest import Lab

pytestmark = pytest.mark.pravega


@pytest.fixture
def journal(tmp_path):
    with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}") as opened:
        yield opened


class Tape:
    """Numbered events of a stream, its recorded cuts, and the windows between these."""

    def __init__(self, journal, lab, stream) -> None:
        self.journal, self.lab, self.source = journal, lab, PravegaSource(stream)
        self.edges: list[datetime] = []
        self.written = 0

    def record(self, *, start_over=False) -> None:
        self.edges.append(datetime.now(UTC))
        store(self.journal, self.lab.system, sample(self.lab.system, self.source), "tests", start_over=start_over)

    def write(self, count) -> None:
        numbers = range(self.written, self.written + count)
        with PravegaWriter(self.lab.system.endpoint, self.source.stream) as writer:
            writer.write((f"k{number}", b"%d:" % number + b"x" * 40) for number in numbers)
        self.written += count

    def plans(self, on_loss="record"):
        return [self.plan(Window(*pair), on_loss) for pair in pairwise(self.edges)]

    def plan(self, window, on_loss="fail"):
        question = WindowQuestion(self.source, window, RecordedCuts())
        return fresh_plan(self.journal, self.lab.system, WindowRead(question, "tests", on_loss))

    def read(self, plan) -> list[int]:
        events, _ = self.lab.read(plan, on_loss="record")
        return [int(event.partition(b":")[0]) for event in events]


def lives(tape, end_of_life, lab):
    """Two windows of an incarnation that is gone, the one in which the next begins, and two of that.

    The next one's numbers.
    """
    tape.record()
    for count in (10, 10):
        tape.write(count)
        tape.record()
    tape.lab = end_of_life(lab)
    first = tape.written
    tape.write(100)
    with pytest.raises(InvalidRequest, match=r"made again since .* --start-over"):
        tape.record()
    tape.edges.pop()
    tape.record(start_over=True)
    tape.write(50)
    tape.record()
    tape.lab.split(tape.source.stream)
    tape.write(50)
    tape.record()
    return first


def check(tape, first):
    plans = tape.plans()
    read = [sorted(tape.read(plan)) for plan in plans]
    sizes = (0, 0, 100, 50, 50)
    assert [len(numbers) for numbers in read] == list(sizes)
    assert [number for numbers in read for number in numbers] == list(range(first, tape.written)), (
        "each event of today's life in one window"
    )
    assert [bool(plan.losses) for plan in plans] == [True, True, True, False, False]
    for start, end in list(pairwise(tape.edges))[:3]:
        with pytest.raises(StartTrimmed, match="deleted and made again"):
            tape.plan(Window(start, end))
    assert horizon_of(tape.journal, tape.lab.system, tape.source) >= tape.edges[3]


def made_again(stream):
    def act(lab):
        assert lab.call(stream_calls.seal_stream(stream))
        assert lab.call(stream_calls.delete_stream(stream))
        assert lab.call(stream_calls.create_stream(stream))
        return lab

    return act


def test_a_stream_that_was_deleted_and_made_again(journal, lab, stream):
    tape = Tape(journal, lab, stream)
    check(tape, lives(tape, made_again(stream), lab))


def test_a_stream_made_again_that_has_outgrown_the_epochs_of_before_does_not_go_on(journal, lab, stream):
    tape = Tape(journal, lab, stream)
    tape.write(10)
    tape.record()
    made_again(stream)(lab)
    lab.split(stream)
    with pytest.raises(InvalidRequest, match="deleted and made again since"):
        tape.record()


@pytest.mark.slow
def test_a_server_that_was_wiped(journal):
    """It gives the same ids again: places of the dead life are there, and mean nothing."""
    with PravegaServer(heap="1g", cache_bytes=256 << 20, jvm=QUICK_START) as server:
        options = {"controller": server.controller_uri, "request_timeout_seconds": "20", "stall_seconds": "30"}

        def connected() -> Lab:
            server.create_scope("own")
            lab = Lab(PravegaSystem.from_options(options), "own")
            lab.create()
            return lab

        def wiped(lab) -> Lab:
            lab.system.close()
            server.kill()
            server.start()
            return connected()

        tape = Tape(journal, connected(), "own/s")
        try:
            check(tape, lives(tape, wiped, tape.lab))
        finally:
            tape.lab.system.close()
