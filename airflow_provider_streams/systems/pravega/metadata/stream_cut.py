"""A stream cut and its two notations, which the Java client and the JVM connectors read and write."""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from airflow_provider_streams.errors import InvalidRequest, ProtocolError
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pravega.client.varint import (
    Reader,
    compact_int,
    compact_long,
    compact_signed_long,
    record,
    text,
)
from airflow_provider_streams.systems.pravega.metadata.segment_names import LAST_NUMBER, Segment, segment_id, stream_of
from airflow_provider_streams.systems.pravega.source import scoped_stream_name

UNBOUNDED = "UNBOUNDED"
"""The Java client writes this text for `no cut`."""

_PREFIX = bytes.fromhex("00010100")
_MAX_TEXT_BYTES = 1024 * 1024
"""Of a cut's text, compressed and inflated: some tens of thousands of segments."""
_FIELDS = 5
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
_OFFSET = re.compile(r"-1|0|[1-9][0-9]{0,18}")
_LAST_OFFSET = (1 << 63) - 1


@dataclass(frozen=True)
class StreamCut:
    """A byte offset in each of some segments of a stream.

    Raises:
        InvalidName: no stream's name.
        InvalidRequest: an id or an offset that no segment can have.
    """

    stream: str
    """`scope/stream`."""
    offsets: Mapping[int, int]
    """Segment id to byte offset. Reader groups write -1 for a finished segment: parsed, but never read."""

    def __post_init__(self) -> None:
        scoped_stream_name(self.stream)
        for key, offset in self.offsets.items():
            if key < 0 or key >> 32 > LAST_NUMBER or key & 0xFFFFFFFF > LAST_NUMBER:
                raise InvalidRequest(f"a cut of {self.stream} names segment id {key}, which no segment can have")
            if not -1 <= offset <= _LAST_OFFSET:
                raise InvalidRequest(f"a cut of {self.stream} holds offset {offset}, which no segment can have")
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
        """The reverse of `to_model`; `InvalidRequest` for another stream's shards or positions that are no offset."""
        offsets: dict[int, int] = {}
        for shard, position in cut.items():
            segment = Segment.parse(shard)
            if segment.stream != stream:
                raise InvalidRequest(f"a cut of {stream} names {shard}, a segment of another stream")
            if len(position.parts) != 1:
                raise InvalidRequest(f"{shard}@{position}: a position in a segment is one byte offset")
            if segment.id in offsets:
                raise InvalidRequest(f"a cut of {stream} names {segment.name} twice")
            offsets[segment.id] = position.parts[0]
        return cls(stream, offsets)

    @classmethod
    def from_mapping(cls, stream: str, offsets: Mapping[str, object]) -> Self:
        """From offsets by segment, as numbers or texts; segments are named in full, or in short: `5.#epoch.2`.

        Raises:
            InvalidName: not a segment's name.
            InvalidRequest: a segment of another stream, a segment named twice, or not an offset.
        """
        full = [(name if "/" in name else f"{stream}/{name}", offset) for name, offset in offsets.items()]
        if len({Segment.parse(name).name for name, _ in full}) < len(full):
            raise InvalidRequest(f"a cut of {stream} names a segment twice: {', '.join(offsets)}")
        return cls.from_model(stream, Cut({name: Position.of(_offset(stream, value)) for name, value in full}))

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
        """From a text of `to_text` or of the Java client, even without segments; `InvalidRequest` for another text."""
        version, *parts = _inflated(value).split(":")
        if version != "0":
            raise InvalidRequest(f"a stream cut of version {version[:20]!r} is not known")
        if len(parts) != _FIELDS - 1:
            raise InvalidRequest(f"{value[:40]!r} is not a stream cut: it has {len(parts) + 1} parts, not {_FIELDS}")
        name = scoped_stream_name(parts[0])
        numbers, epochs, offsets = map(_numbers, parts[1:], (_NUMBER, _NUMBER, _OFFSET))
        if not len(numbers) == len(epochs) == len(offsets):
            raise InvalidRequest(f"a stream cut of {name} has lists of different lengths")
        if max([*numbers, *epochs], default=0) > LAST_NUMBER:
            raise InvalidRequest(f"a stream cut of {name} names a segment that cannot be")
        keys = [segment_id(number, epoch) for number, epoch in zip(numbers, epochs, strict=True)]
        if len(set(keys)) < len(keys):
            raise InvalidRequest(f"a stream cut of {name} names a segment twice")
        return cls(name, dict(zip(keys, offsets, strict=True)))

    def to_bytes(self) -> bytes:
        """Bytes for `StreamCut.fromBytes` of the Java client."""
        content = text(self.stream) + compact_int(len(self.offsets))
        pairs = (compact_long(key) + compact_signed_long(offset) for key, offset in self.offsets.items())
        return record(_PREFIX, content + b"".join(pairs))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The reverse of `to_bytes`; bytes after the record are ignored, as Java leaves zeros there.

        Raises:
            ProtocolError: other bytes.
        """
        content = Reader(data).record(_PREFIX)
        name, count = content.text(), content.compact_int()
        pairs = [(content.compact_long(), content.compact_signed_long()) for _ in range(count)]
        if len(dict(pairs)) < len(pairs):
            raise ProtocolError(f"a binary stream cut of {name[:300]} names a segment twice")
        try:
            return cls(name, dict(pairs))
        except InvalidRequest as error:
            raise ProtocolError(f"a binary stream cut is none: {error}") from error


def offsets_from_json(source: str, text: str) -> dict[str, object]:
    """Offsets by segment, from JSON; `InvalidRequest` for other texts, or if a segment is named twice."""
    try:
        pairs = json.loads(text, object_pairs_hook=tuple)  # an array is a list
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"a cut as text is JSON; in a template end it with `| tojson` ({error})") from error
    if not isinstance(pairs, tuple):
        raise InvalidRequest("a cut as JSON is an object of offsets by segment")
    if len(dict(pairs)) < len(pairs):
        raise InvalidRequest(f"a cut of {source} as JSON names a segment twice")
    return dict(pairs)


def by_stream(cut: Cut) -> dict[str, Cut]:
    """A cut of several streams as one of each."""
    parts: dict[str, dict[str, Position]] = {}
    for shard, position in cut.items():
        parts.setdefault(stream_of(shard), {})[shard] = position
    return {stream: Cut(positions) for stream, positions in parts.items()}


def follows(earlier: Cut, later: Cut) -> bool:
    """Whether a tail is at or after an earlier tail of the same stream, in every segment.

    This holds for tails only, which name all segments of one epoch. Every epoch makes a segment, so the greatest epoch
    of a tail's segments is the stream's. Segments that only one of the tails names were sealed, or made, in between.
    """
    if any(position < earlier[shard] for shard, position in later.items() if shard in earlier):
        return False
    before, after = (max((Segment.parse(shard).epoch for shard in cut), default=-1) for cut in (earlier, later))
    return after > before or (after == before and earlier.keys() == later.keys())


def _offset(stream: str, value: object) -> int:
    """An offset from JSON."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not _OFFSET.fullmatch(text):
        raise InvalidRequest(f"a cut of {stream} holds {str(value)[:40]!r}, which is no byte offset")
    return int(text)


def _numbers(items: str, form: re.Pattern[str]) -> list[int]:
    found = items.split(",") if items else []
    for item in found:
        if not form.fullmatch(item):
            raise InvalidRequest(f"a stream cut is malformed: {item[:40]!r} is no number of it")
    return [int(item) for item in found]


def _inflated(value: str) -> str:
    try:
        return _gunzipped(base64.b64decode(value.strip(), validate=True)).decode("ascii")
    except (binascii.Error, zlib.error, ValueError) as error:
        raise InvalidRequest(
            f"{value[:40]!r} is not a stream cut: copy the whole text that asText() or this package wrote ({error})"
        ) from error


def _gunzipped(data: bytes) -> bytes:
    if len(data) > _MAX_TEXT_BYTES:
        raise ValueError("it is too long")
    inflater = zlib.decompressobj(wbits=31)
    plain = inflater.decompress(data, _MAX_TEXT_BYTES)
    if not inflater.eof:
        raise ValueError("cut short" if len(plain) < _MAX_TEXT_BYTES else "it is too long")
    if inflater.unused_data:
        raise ValueError("something follows it")
    return plain
