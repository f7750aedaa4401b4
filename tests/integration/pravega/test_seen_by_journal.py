"""Later plans use what the journal notes of a stream when a plan, a wait or a recorder looks at it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.errors import StartTrimmed, StartUnproven
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.stream.tail_observation import TailObservation
from airflow_provider_streams.model.window.basis import Chained
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pravega.client.controller import stream_calls
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.windows.plan.cut_recording import record
from airflow_provider_streams.windows.plan.planning import WindowRead, fresh_plan
from airflow_provider_streams.windows.plan.readiness import WindowQuestion
from airflow_provider_streams.windows.plan.tail_observations import observe_tail

pytestmark = pytest.mark.pravega

HOUR = timedelta(hours=1)


@pytest.fixture
def journal(tmp_path):
    with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}") as opened:
        yield opened


def asked(stream, window, **more):
    question = WindowQuestion(PravegaSource(stream), window, Chained())
    return WindowRead(question, "tests", on_unproven="fail", **more)


def truncate(lab, stream):
    assert lab.call(stream_calls.truncate_stream(stream, lab.tail(stream).offsets))


def test_a_look_before_the_window_proves_the_head(lab, peer, stream, journal, tmp_path):
    peer.write(stream, 20)
    truncate(lab, stream)
    peer.write(stream, 10)
    end = datetime.now(UTC)
    read = asked(stream, Window(end - HOUR, end))
    with pytest.raises(StartUnproven):
        fresh_plan(journal, lab.system, read)
    seen = journal.tail_observation(read.source_key, end + HOUR)
    assert seen is not None, "what refused planning saw is kept"
    with Journal.open(f"sqlite:///{tmp_path / 'other.db'}") as other:
        other.note_tail_observation(read.source_key, TailObservation(end - 2 * HOUR, seen.tail, seen.incarnation))
        assert {part.verdict for part in fresh_plan(other, lab.system, read).ranges} == {"ok"}
        peer.write(stream, 10)
        truncate(lab, stream)
        with pytest.raises(StartTrimmed):
            fresh_plan(other, lab.system, read)


@pytest.mark.parametrize("who", ["waits", "records"])
def test_what_a_chain_would_have_begun_with_is_proven_lost(lab, peer, stream, journal, who):
    start = datetime.now(UTC)
    peer.write(stream, 20)
    if who == "waits":
        observe_tail(journal, lab.system, PravegaSource(stream))
    else:
        source = PravegaSource(stream)
        assert record(journal, {source.conn_id: lab.system}, [source], "tests")[0].error is None
    peer.write(stream, 10)
    truncate(lab, stream)
    peer.write(stream, 10)
    window = Window(start, datetime.now(UTC))
    with pytest.raises(StartTrimmed):
        fresh_plan(journal, lab.system, asked(stream, window))


def test_a_stream_made_again_after_a_look_is_lost(lab, peer, stream, journal):
    start = datetime.now(UTC)
    peer.write(stream, 20)
    observe_tail(journal, lab.system, PravegaSource(stream))
    assert lab.call(stream_calls.seal_stream(stream))
    assert lab.call(stream_calls.delete_stream(stream))
    assert lab.call(stream_calls.create_stream(stream))
    with pytest.raises(StartTrimmed):
        fresh_plan(journal, lab.system, asked(stream, Window(start, datetime.now(UTC))))
