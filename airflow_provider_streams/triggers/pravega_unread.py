"""Announces that a Pravega stream holds more than its reader has covered."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Any, cast

from airflow_provider_streams.connections.journal import aopen_journal
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.pravega import PravegaHook
from airflow_provider_streams.hooks.pravega_connection import one_stream
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.source_json import source_from_json
from airflow_provider_streams.template_fields import refuse_templates
from airflow_provider_streams.triggers.asset_watcher_base import REPEAT_SECONDS, News, WatchTrigger
from airflow_provider_streams.triggers.base import HookedTrigger, stored_value


class PravegaUnreadTrigger(HookedTrigger, WatchTrigger):
    """An event while a stream holds at least so many bytes after the last window that its reader has covered.

    The journal is the reader's position, so nothing is consumed or acknowledged, and the event is repeated until the
    reader has moved. Read the events with `ReadWindowOperator(basis="chained", reader=..)`.

    The event's payload: `stream, reader, bytes, lost_bytes`, and `start` and `tail`, stream cuts as text.

    Args:
        stream: `scope/stream`; or give `source`.
        source: instead of `stream`, or that as `systems.source_json.source_to_json` gives it, or its JSON text.
        reader: whose covered windows count.
        conn_id: the Airflow connection of `stream`, by default `pravega_default`; a source has its own.
        min_bytes: less than this is no news; each event has 8 bytes more than its payload.
        poll_interval: seconds between two looks.
        repeat_seconds: how often the same is announced while the reader has not moved.
    """

    stored = ("source", "reader", "min_bytes", "poll_interval", "repeat_seconds")

    def __init__(
        self,
        *,
        stream: str | None = None,
        source: PravegaSource | dict[str, Any] | str | None = None,
        reader: str,
        conn_id: str | None = None,
        min_bytes: int = 1,
        poll_interval: float = 60.0,
        repeat_seconds: float = REPEAT_SECONDS,
    ) -> None:
        super().__init__(poll_interval, repeat_seconds)
        stored = stored_value(source)
        given = cast("PravegaSource", source_from_json(stored) if isinstance(stored, dict) else stored)
        name, of = one_stream(self, stream, given, conn_id)
        self.source = given or PravegaSource(name, conn_id=of)
        if not isinstance(min_bytes, int):
            raise InvalidRequest(f"min_bytes is a whole number, got {min_bytes!r}")
        self.reader, self.min_bytes = reader, min_bytes
        refuse_templates("PravegaUnreadTrigger", (), {"source": self.source, "reader": reader})

    def read_source(self) -> Source:
        """As `HookedTrigger`."""
        return self.source

    async def poll(self) -> News | None:
        """The bytes after the last covered window."""
        with closing(await aopen_journal()) as journal:
            last = await asyncio.to_thread(journal.last_covered, self.source.key, self.reader)
        start = None if last is None else last.end_cut
        unread = await cast("PravegaHook", self.hook()).aunread(self.source.stream, start)
        if unread.bytes < max(self.min_bytes, 1):
            return None
        payload = {
            "stream": self.source.stream,
            "reader": self.reader,
            "bytes": unread.bytes,
            "lost_bytes": unread.lost_bytes,
            "start": _text(self.source.stream, start),
            "tail": unread.tail.to_text(),
        }
        return News((payload["start"], payload["tail"]), payload, again=True)


def _text(stream: str, cut: Cut | None) -> str | None:
    return None if cut is None else StreamCut.from_model(stream, cut).to_text()
