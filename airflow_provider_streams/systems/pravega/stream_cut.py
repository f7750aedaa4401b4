"""A stream cut and its two notations, which the Java client and the JVM connectors read and write."""

from __future__ import annotations

import base64
import binascii
import gzip
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from airflow_provider_streams.errors import InvalidName, InvalidRequest, ProtocolError
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.source import scoped_stream_name
from airflow_provider_streams.systems.pravega.compact import (
    Reader,
    compact_int,
    compact_long,
    compact_signed_long,
    record,
    text,
)
from airflow_provider_streams.systems.pravega.names import Segment, segment_id

UNBOUNDED = "UNBOUNDED"
"""The text that the Java client writes for `no cut`."""

_PREFIX = bytes.fromhex("00010100")
_MAX_TEXT_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class StreamCut:
    """One byte offset for some segments of a stream. Two cuts are equal if stream and offsets are."""

    stream: str
    """`scope/stream`."""
    offsets: Mapping[int, int]
    """Segment id to byte offset. Reader groups write -1 for a finished segment: parsed, but never read."""

    def __post_init__(self) -> None:
        scoped_stream_name(self.stream)
        object.__setattr__(self, "offsets", dict(sorted(self.offsets.items())))

    def __hash__(self) -> int:
        return hash((self.stream, tuple(self.offsets.items())))

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments it names, by id."""
        return tuple(Segment(self.stream, segment) for segment in self.offsets)

    def to_model(self) -> Cut:
        """The same cut as plans and the journal hold it."""
        return Cut({Segment(self.stream, key).name: Position.of(offset) for key, offset in self.offsets.items()})

    @classmethod
    def from_model(cls, stream: str, cut: Cut) -> Self:
        """The reverse of `to_model`.

        Raises:
            InvalidRequest: a shard of another stream, or a position that is not one offset.
        """
        offsets: dict[int, int] = {}
        for shard, position in cut.items():
            segment = Segment.parse(shard)
            if segment.stream != stream:
                raise InvalidRequest(f"a cut of {stream} names {shard}, a segment of another stream")
            if len(position.parts) != 1:
                raise InvalidRequest(f"{shard}@{position}: a position in a segment is one byte offset")
            offsets[segment.id] = position.parts[0]
        return cls(stream, offsets)

    def to_text(self) -> str:
        """Text for `StreamCut.from` of the Java client. Never compare cuts as text: compression differs.

        Raises:
            InvalidRequest: no segment, which the Java client cannot read.
        """
        if not self.offsets:
            raise InvalidRequest(f"a cut of {self.stream} without segments has no text that a client can read")
        parts = (
            ",".join(str(segment.number) for segment in self.segments),
            ",".join(str(segment.epoch) for segment in self.segments),
            ",".join(str(offset) for offset in self.offsets.values()),
        )
        plain = ":".join(("0", self.stream, *parts))
        return base64.b64encode(gzip.compress(plain.encode(), mtime=0)).decode()

    @classmethod
    def from_text(cls, value: str) -> Self:
        """From the text of `to_text` or of the Java client (a sealed stream's empty tail included).

        Raises:
            InvalidRequest: another text.
        """
        plain = _inflated(value)
        version, name, *lists = [*plain.split(":", 4), "", "", ""][:5]
        if version != "0":
            raise InvalidRequest(f"a stream cut of version {version[:20]!r} is not known")
        try:
            numbers, epochs, offsets = ([int(part) for part in items.split(",") if part] for items in lists)
            keys = [segment_id(number, epoch) for number, epoch in zip(numbers, epochs, strict=True)]
            return cls(name, dict(zip(keys, offsets, strict=True)))
        except InvalidName:
            raise
        except ValueError as error:
            raise InvalidRequest(f"a stream cut of {name!r} is malformed: {error}") from error

    def to_bytes(self) -> bytes:
        """Bytes for `StreamCut.fromBytes` of the Java client."""
        content = text(self.stream) + compact_int(len(self.offsets))
        pairs = (compact_long(key) + compact_signed_long(offset) for key, offset in self.offsets.items())
        return record(_PREFIX, content + b"".join(pairs))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The reverse of `to_bytes`; bytes behind the record are ignored, as Java leaves zeros there.

        Raises:
            ProtocolError: other bytes.
        """
        content = Reader(data).record(_PREFIX)
        name, count = content.text(), content.compact_int()
        try:
            pairs = [(content.compact_long(), content.compact_signed_long()) for _ in range(count)]
            return cls(name, dict(pairs))
        except InvalidName as error:
            raise ProtocolError(f"a binary stream cut names no stream: {error}") from error


def follows(earlier: Cut, later: Cut) -> bool:
    """Whether a tail lies at or behind an earlier tail of the same stream, in every segment.

    Holds for tails only: these name all segments of one epoch. Every epoch makes a segment, so the greatest epoch that
    a tail's segments were made in is the stream's; segments that only one of the two names were sealed, or made, in
    between.
    """
    if any(position < earlier[shard] for shard, position in later.items() if shard in earlier):
        return False
    before, after = (max((Segment.parse(shard).epoch for shard in cut), default=-1) for cut in (earlier, later))
    return after > before or (after == before and earlier.keys() == later.keys())


def _inflated(value: str) -> str:
    try:
        raw = base64.b64decode(value.strip(), validate=True)
        inflater = zlib.decompressobj(wbits=31)
        plain = inflater.decompress(raw, _MAX_TEXT_BYTES)
        if not inflater.eof:
            raise ValueError("cut short")  # noqa: TRY301 - one message for every malformed text
        return plain.decode("ascii")
    except (binascii.Error, zlib.error, ValueError) as error:
        raise InvalidRequest(
            f"{value[:40]!r} is not a stream cut: copy the whole text that asText() or this package wrote ({error})"
        ) from error
