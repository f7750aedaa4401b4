"""The trigger that announces unread bytes: the journal is the reader's position, a real server holds the stream."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from airflow_provider_streams.errors import SourceNotFound
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pravega.client.controller import stream_calls
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.testing.pravega_writer import PravegaWriter
from airflow_provider_streams.triggers.pravega_unread import PravegaUnreadTrigger

pytestmark = pytest.mark.pravega

READER = "d.read"
STORED_BYTES = 100 + 8
HOURS = [datetime(2026, 11, 20, hour, tzinfo=UTC) for hour in range(10, 14)]


@pytest.fixture
def journal(pravega_server, monkeypatch, tmp_path):
    """An empty journal; the connection `pravega_default` is the server."""
    extra = {"controller": pravega_server.controller_uri}
    monkeypatch.setenv("AIRFLOW_CONN_PRAVEGA_DEFAULT", json.dumps({"conn_type": "pravega", "extra": extra}))
    path = tmp_path / "journal.db"
    monkeypatch.setenv("AIRFLOW_CONN_STREAMS_JOURNAL", json.dumps({"conn_type": "sqlite", "host": str(path)}))
    with Journal.open(f"sqlite:///{path}") as made:
        yield made


@pytest.fixture
def write(lab, stream):
    with PravegaWriter(lab.system.client.endpoint, stream) as writer:
        yield lambda count: writer.write((f"k{number}", b"%0100d" % number) for number in range(count))


class Watching:
    """The trigger at work; its events, one by one."""

    def __init__(self, stream: str, **arguments: Any) -> None:
        quick = {"poll_interval": 0.05, "repeat_seconds": 0.2}
        path, given = PravegaUnreadTrigger(stream=stream, reader=READER, **{**quick, **arguments}).serialize()
        assert path.endswith("PravegaUnreadTrigger")
        self.trigger = PravegaUnreadTrigger(**json.loads(json.dumps(given)))
        self.trigger._quiet_seconds = 0.0
        self._events = self.trigger.run()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self._events.aclose()
        await self.trigger.cleanup()

    async def next(self) -> dict[str, Any]:
        return (await asyncio.wait_for(anext(self._events), 60)).payload

    async def is_silent(self) -> bool:
        """Whether a look tells nothing."""
        return await self.trigger.poll() is None


def cover(journal, lab, stream: str, number: int, start: StreamCut | None) -> StreamCut:
    """Read from a cut to the tail, and record the window as covered; its end."""
    window = Window(HOURS[number], HOURS[number + 1])
    plan = lab.plan(stream, start, lab.tail(stream), window=window, reader=READER)
    key = f"pravega:pravega_default:{stream}"
    run = journal.start_run(key, journal.pin(key, plan), TaskInstanceKey("d", "r", "read", 1)).run
    journal.finish_run(run, Landed(lab.read(plan)[1]))
    return StreamCut.from_model(stream, plan.end_cut)


async def test_it_announces_what_follows_the_last_covered_window(journal, lab, stream, write):
    async with Watching(stream) as watching:
        assert await watching.is_silent(), "an empty stream is no news"
        write(10)
        first = await watching.next()
        assert first == {
            "stream": stream,
            "reader": READER,
            "bytes": 10 * STORED_BYTES,
            "lost_bytes": 0,
            "start": None,
            "tail": lab.tail(stream).to_text(),
        }
        assert await watching.next() == first, "again, until it is read"
        end = cover(journal, lab, stream, 0, None)
        assert await watching.is_silent()
        lab.split(stream)
        assert await watching.is_silent(), "a split is not an event"
        write(4)
        second = await watching.next()
        assert (second["bytes"], second["start"]) == (4 * STORED_BYTES, end.to_text())
        assert StreamCut.from_text(second["tail"]) == lab.tail(stream)
        cover(journal, lab, stream, 1, end)
        assert await watching.is_silent()


async def test_a_little_is_no_news_and_what_retention_took_is_told(journal, lab, stream, write):
    async with Watching(stream, min_bytes=20 * STORED_BYTES) as watching:
        write(5)
        start = cover(journal, lab, stream, 0, None)
        write(19)
        assert await watching.is_silent()
        middle = lab.tail(stream)
        write(30)
        assert lab.call(stream_calls.truncate_stream(stream, middle.offsets))
        news = await watching.next()
        assert (news["lost_bytes"], news["start"]) == (19 * STORED_BYTES, start.to_text())
        assert news["bytes"] == 30 * STORED_BYTES


async def test_a_stream_that_is_not_there_yet_does_not_end_it(journal, lab, stream, monkeypatch):
    failed = asyncio.Event()
    tell = PravegaUnreadTrigger._tell

    def tell_and_note(self, error, last):
        assert isinstance(error, SourceNotFound)
        failed.set()
        return tell(self, error, last)

    monkeypatch.setattr(PravegaUnreadTrigger, "_tell", tell_and_note)
    async with Watching(f"{stream}-later") as watching:
        waiting = asyncio.ensure_future(watching.next())
        await asyncio.wait_for(failed.wait(), 30)
        later = lab.create(f"{stream.partition('/')[2]}-later")
        with PravegaWriter(lab.system.client.endpoint, later) as writer:
            writer.write([("k", b"event")])
        assert (await waiting)["bytes"] == len(b"event") + 8
