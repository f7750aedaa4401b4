"""Many messages as columns of numbers: where their parts lie in one buffer, and what their flags say."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, fields
from typing import Final, Self

import numpy as np

from airflow_provider_streams.systems.pulsar.decode.loads import Flags, Ints
from airflow_provider_streams.systems.pulsar.decode.walk import Message

ABSENT: Final = -1
"""Start of a span that is not there."""


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
        """All of them, row after row, those of one row in the order of the parts."""
        if not parts:
            return cls.of([])
        columns = [np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)]
        order = np.argsort(columns[0], kind="stable")
        return cls(*(column[order] for column in columns))

    def keep(self, kept: Flags) -> PropertySpans:
        """Those of them."""
        return PropertySpans(*(getattr(self, f.name)[kept] for f in fields(self)))


@dataclass(slots=True)
class Rows:
    """One element per message. Spans are half-open byte ranges of the buffer; what no column asks for is None."""

    owner: Ints
    """The number of its entry in the flush."""
    begin: Ints
    """Where the message begins, its header included."""
    value_start: Ints
    value_end: Ints
    null_value: Flags
    compacted_out: Flags
    key_start: Ints | None = None
    key_end: Ints | None = None
    ordering_start: Ints | None = None
    ordering_end: Ints | None = None
    event_ms: Ints | None = None
    """0: not set."""
    sequence: Ints | None = None
    sequence_set: Flags | None = None
    properties: PropertySpans | None = None

    @classmethod
    def of(cls, owner: Ints, columns: Collection[str]) -> Self:
        """Rows without content yet, with room for what `columns` need."""
        count = len(owner)

        def numbers(column: str, fill: int = 0) -> Ints | None:
            return np.full(count, fill, np.int64) if column in columns else None

        return cls(
            owner,
            begin=np.zeros(count, np.int64),
            value_start=np.zeros(count, np.int64),
            value_end=np.zeros(count, np.int64),
            null_value=np.zeros(count, np.bool_),
            compacted_out=np.zeros(count, np.bool_),
            key_start=numbers("key", ABSENT),
            key_end=numbers("key", ABSENT),
            ordering_start=numbers("ordering_key", ABSENT),
            ordering_end=numbers("ordering_key", ABSENT),
            event_ms=numbers("event_time"),
            sequence=numbers("sequence_id"),
            sequence_set=np.zeros(count, np.bool_) if "sequence_id" in columns else None,
            properties=PropertySpans.of([]) if "properties" in columns else None,
        )

    def __len__(self) -> int:
        return len(self.owner)

    def put(self, row: int, begin: int, message: Message, data: bytes) -> None:
        """Fill one row, but for its properties, from a message that begins at `begin` of `data`."""
        self.begin[row], self.value_start[row], self.value_end[row] = begin, message.start, message.end
        self.null_value[row], self.compacted_out[row] = message.null_value, message.compacted_out
        spans = (
            (message.key, self.key_start, self.key_end),
            (message.ordering_key, self.ordering_start, self.ordering_end),
        )
        for text, start, end in spans:
            if start is not None and end is not None:
                # any place in the header that holds the same bytes is as good as the one they were read from
                start[row] = ABSENT if text is None else data.find(text, begin, message.start)
                end[row] = ABSENT if text is None else start[row] + len(text)
        if self.event_ms is not None:
            self.event_ms[row] = message.event_ms or 0
        if self.sequence is not None and self.sequence_set is not None:
            self.sequence[row], self.sequence_set[row] = message.sequence_id or 0, message.sequence_id is not None

    def keep(self, kept: Flags) -> Rows:
        """Those of the rows, in order."""
        chosen = copy(self)
        for field in fields(self):
            array = getattr(self, field.name)
            if field.name != "properties" and array is not None:
                setattr(chosen, field.name, array[kept])
        if self.properties is not None:
            chosen.properties = self.properties.keep(kept[self.properties.row])
            chosen.properties.row = (np.cumsum(kept) - 1)[chosen.properties.row]
        return chosen
