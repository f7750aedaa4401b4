"""One batch walked message by message: the plain reading of the format, for what the fast paths leave."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from airflow_provider_streams.systems.pulsar.decode import protobuf
from airflow_provider_streams.systems.pulsar.decode.metadata import Pairs
from airflow_provider_streams.systems.pulsar.decode.protobuf import Malformed, collect

_LENGTH = Struct(">I")


class Message(NamedTuple):
    """One message of a batch; its value is `data[start:end]`. None or empty: the producer did not set it."""

    start: int
    end: int
    key: bytes | None = None
    event_ms: int | None = None
    ordering_key: bytes | None = None
    sequence_id: int | None = None
    null_value: bool = False
    compacted_out: bool = False
    properties: Pairs = ()


def walk(data: bytes, start: int, end: int, count: int) -> Iterator[Message]:
    """The `count` messages of the batch `data[start:end]`, in order.

    Raises:
        Malformed: a message reaches beyond the end, its header cannot be parsed, or the count is another.
    """
    at = start
    for _ in range(count):
        header = at + _LENGTH.size
        if header > end:
            raise Malformed(f"it ends before its {count} messages")
        body = header + _LENGTH.unpack_from(data, at)[0]
        if body > end:
            raise Malformed("the header of a message reaches beyond it")
        message = _message(data, header, body)
        at = message.end
        if at > end:
            raise Malformed("a message reaches beyond it")
        yield message
    if at != end:
        raise Malformed(f"it holds {end - at} bytes more than its {count} messages")


def _message(data: bytes, header: int, body: int) -> Message:
    values = collect(data, header, body, _FIELDS)
    if "size" not in values:
        raise Malformed("a message states no payload size")
    end = body + values.pop("size")
    if values.pop("null_key", False):
        values["key"] = None
    return Message(body, end, **values)


_FIELDS: protobuf.Table = {
    1: ("properties", protobuf.as_pairs),
    2: ("key", protobuf.as_bytes),
    3: ("size", protobuf.as_uint),
    4: ("compacted_out", protobuf.as_flag),
    5: ("event_ms", protobuf.as_time),
    7: ("ordering_key", protobuf.as_bytes),
    8: ("sequence_id", protobuf.as_int64),
    9: ("null_value", protobuf.as_flag),
    10: ("null_key", protobuf.as_flag),
}
"""SingleMessageMetadata."""
