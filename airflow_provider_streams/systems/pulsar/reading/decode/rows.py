"""Many messages as columns of numbers: where their parts lie in one buffer, and what their flags say."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Final, Self

import numpy as np

from airflow_provider_streams.systems.pulsar.reading.decode.headers.single_header import ABSENT, Header, Tag
from airflow_provider_streams.systems.pulsar.reading.decode.unaligned import Flags, Ints

_SPANS: Final = {Tag.KEY: "key", Tag.ORDERING_KEY: "ordering_key"}
_NUMBERS: Final = {Tag.EVENT_TIME: "event_time", Tag.SEQUENCE_ID: "sequence_id"}
_FLAGS: Final = {Tag.KEY_BASE64: "key_bytes", Tag.SEQUENCE_ID: "sequence_id"}
"""Tags of the header fields that a column needs."""


@dataclass(slots=True)
class PropertySpans:
    """Properties of many rows: the row each belongs to, and where its name and value lie."""

    row: Ints
    name_start: Ints
    name_end: Ints
    value_start: Ints
    value_end: Ints

    @classmethod
    def of(cls, found: Sequence[tuple[int, int, int, int, int]]) -> Self:
        """From one tuple per property."""
        return cls(*np.array(found, np.int64).reshape(-1, 5).T)

    @classmethod
    def joined(cls, parts: Sequence[PropertySpans]) -> Self:
        """All properties, row after row; the properties of one row stay in the order of the parts."""
        if not parts:
            return cls.of([])
        columns = [np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)]
        order = np.argsort(columns[0], kind="stable")
        return cls(*(column[order] for column in columns))

    def keep(self, kept: Flags) -> PropertySpans:
        """The chosen properties."""
        return PropertySpans(*(getattr(self, f.name)[kept] for f in fields(self)))


@dataclass(slots=True)
class Rows:
    """One element per message. Spans are half-open byte ranges of the buffer. Header fields are found by their tags."""

    owner: Ints
    """The number of its entry in the flush."""
    begin: Ints
    """Where the message begins, its header included."""
    value_start: Ints
    value_end: Ints
    flags: dict[int, Flags]
    """`NULL_VALUE` and `COMPACTED_OUT`; for columns, `KEY_BASE64`, and for `SEQUENCE_ID` whether it is set."""
    spans: dict[int, tuple[Ints, Ints]]
    """Starts and ends of the texts that columns need; `ABSENT`: the header has none."""
    numbers: dict[int, Ints]
    """The numbers that columns need; 0: not set."""
    properties: PropertySpans | None
    """None: no column needs them."""

    @classmethod
    def of(cls, owner: Ints, columns: Collection[str]) -> Self:
        """Rows without content yet, with room for what `columns` need."""
        count = len(owner)
        flags = (Tag.NULL_VALUE, Tag.COMPACTED_OUT, *(tag for tag, column in _FLAGS.items() if column in columns))
        return cls(
            owner,
            np.empty(count, np.int64),
            np.empty(count, np.int64),
            np.empty(count, np.int64),
            {tag: np.zeros(count, np.bool_) for tag in flags},
            {
                tag: (np.full(count, ABSENT, np.int64), np.full(count, ABSENT, np.int64))
                for tag, column in _SPANS.items()
                if column in columns
            },
            {tag: np.zeros(count, np.int64) for tag, column in _NUMBERS.items() if column in columns},
            PropertySpans.of([]) if "properties" in columns else None,
        )

    def __len__(self) -> int:
        return len(self.owner)

    def put(self, row: int, header: Header) -> None:
        """Fill one row, except its properties, from its message's header."""
        for tag, numbers in self.numbers.items():
            numbers[row] = header.number(tag)
        for tag, flags in self.flags.items():
            flags[row] = tag in header.last if tag == Tag.SEQUENCE_ID else header.number(tag) != 0
        for tag, (starts, ends) in self.spans.items():
            starts[row], ends[row] = header.span(tag)

    def clear(self, chosen: Flags) -> None:
        """Empty these rows."""
        for values in (*self.flags.values(), *self.numbers.values()):
            values[chosen] = 0
        for starts, _ in self.spans.values():
            starts[chosen] = ABSENT

    def keep(self, kept: Flags) -> Rows:
        """The chosen rows, in order."""
        properties = self.properties
        if properties is not None:
            properties = properties.keep(kept[properties.row])
            properties.row = (np.cumsum(kept) - 1)[properties.row]
        return Rows(
            self.owner[kept],
            self.begin[kept],
            self.value_start[kept],
            self.value_end[kept],
            {tag: flags[kept] for tag, flags in self.flags.items()},
            {tag: (starts[kept], ends[kept]) for tag, (starts, ends) in self.spans.items()},
            {tag: numbers[kept] for tag, numbers in self.numbers.items()},
            properties,
        )
