"""What the journal notes of a stream when somebody plans, waits or records reaches the plans made later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.errors import StartTrimmed, StartUnproven
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.basis import Chained
from airflow_provider_streams.model.sighting import Sighting
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.systems.pravega import calls
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.windows.planning import WindowRead, fresh_plan
from airflow_provider_streams.windows.readiness import WindowQuestion
from airflow_provider_streams.windows.recording import record
from airflow_provider_streams.windows.sightings import look

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
    assert lab.call(calls.truncate_stream(stream, lab.tail(stream).offsets))


def test_a_look_before_the_window_proves_the_head(lab, peer, stream, journal, tmp_path):
    peer.write(stream, 20)
    truncate(lab, stream)
    peer.write(stream, 10)
    end = datetime.now(UTC)
    read = asked(stream, Window(end - HOUR, end))
    with pytest.raises(StartUnproven):
        fresh_plan(journal, lab.system, read)
    seen = journal.sighting(read.source_key, end + HOUR)
    assert seen is not None, "what refused planning saw is kept"
    with Journal.open(f"sqlite:///{tmp_path / 'other.db'}") as other:
        other.note_sighting(read.source_key, Sighting(end - 2 * HOUR, seen.tail, seen.identity))
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
        look(journal, lab.system, PravegaSource(stream))
    else:
        source = PravegaSource(stream)
        assert record(journal, {source.conn_id: lab.system}, [source], "tests")[0].error is None
    peer.write(stream, 10)
    truncate(lab, stream)
    peer.write(stream, 10)
    window = Window(start, datetime.now(UTC))
    with pytest.raises(StartTrimmed):
        fresh_plan(journal, lab.system, asked(stream, window))


def test_a_stream_made_anew_after_a_look_is_lost(lab, peer, stream, journal):
    start = datetime.now(UTC)
    peer.write(stream, 20)
    look(journal, lab.system, PravegaSource(stream))
    assert lab.call(calls.seal_stream(stream))
    assert lab.call(calls.delete_stream(stream))
    assert lab.call(calls.create_stream(stream))
    with pytest.raises(StartTrimmed):
        fresh_plan(journal, lab.system, asked(stream, Window(start, datetime.now(UTC))))
