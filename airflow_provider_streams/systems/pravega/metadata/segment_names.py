"""Names and ids of segments. The number and the epoch that a segment was made with identify it, and nothing else."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple, Self

from airflow_provider_streams.errors import InvalidName
from airflow_provider_streams.systems.pravega.source import scoped_stream_name

_NUMBER_BITS = 32
_NUMBER_MASK = (1 << _NUMBER_BITS) - 1
LAST_NUMBER = (1 << 31) - 1
"""The greatest number, and the greatest epoch, that a segment can have."""
_QUALIFIED = re.compile(
    r"(?P<stream>[^/]+/[^/]+)/(?P<number>0|[1-9][0-9]{0,9})(?:\.#epoch\.(?P<epoch>0|[1-9][0-9]{0,9}))?"
    r"(?P<transaction>#transaction\.[0-9a-f]{32})?"
)


class Segment(NamedTuple):
    """A segment of a stream; `id` is `epoch << 32 | number`, unique within the stream (numbers repeat)."""

    stream: str
    """`scope/stream`."""
    id: int

    @classmethod
    def parse(cls, name: str) -> Self:
        """From its name, `scope/stream/5.#epoch.2` (default: epoch 0); `InvalidName` for another text."""
        match = _QUALIFIED.fullmatch(name)
        if match is None:
            raise InvalidName(name, "a segment is written 'scope/stream/<number>.#epoch.<epoch>'")
        if match["transaction"]:
            raise InvalidName(name, "a transaction's segment is merged into its parent at commit")
        number, epoch = int(match["number"]), int(match["epoch"] or 0)
        if number > LAST_NUMBER or epoch > LAST_NUMBER:
            raise InvalidName(name, "its number or epoch is too large")
        return cls(scoped_stream_name(match["stream"]), segment_id(number, epoch))

    @property
    def number(self) -> int:
        """The lower half of the id."""
        return self.id & _NUMBER_MASK

    @property
    def epoch(self) -> int:
        """The epoch it was made in."""
        return self.id >> _NUMBER_BITS

    @property
    def name(self) -> str:
        """Its qualified name: what the segment store knows it by, and the shard's name in plans."""
        return f"{self.stream}/{self.number}.#epoch.{self.epoch}"

    @property
    def short_name(self) -> str:
        """Its name without the stream."""
        return self.name.rpartition("/")[2]

    def transaction(self, high: int, low: int) -> str:
        """The name of the segment that holds a transaction's events until its commit."""
        return f"{self.name}#transaction.{high & _UUID_HALF:016x}{low & _UUID_HALF:016x}"


_UUID_HALF = (1 << 64) - 1


def segment_id(number: int, epoch: int) -> int:
    """The 64-bit id."""
    return epoch << _NUMBER_BITS | number


@lru_cache(1 << 16)
def stream_of(shard: str) -> str:
    """`scope/stream` of a segment's name."""
    return Segment.parse(shard).stream


def is_internal(stream: str) -> bool:
    """Whether a stream's name (without scope) is one that Pravega makes for itself: marks, reader groups."""
    return stream.startswith("_")


def mark_stream(stream: str) -> str:
    """`scope/_MARK<stream>`, where Pravega writes the watermarks of `scope/stream`."""
    scope, _, name = stream.partition("/")
    return f"{scope}/_MARK{name}"
