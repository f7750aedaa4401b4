"""Many messages as columns of numbers: where their parts lie in one buffer, and what their flags say."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from airflow_provider_streams.systems.pulsar.decode.unaligned import Flags, Ints
from airflow_provider_streams.systems.pulsar.decode.walk import (
    ABSENT,
    COMPACTED_OUT,
    EVENT_TIME,
    KEY,
    KEY_BASE64,
    NULL_VALUE,
    ORDERING_KEY,
    SEQUENCE_ID,
    Header,
)


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
    key_base64: Flags | None = None
    """The key is base64 text of the producer's bytes."""
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
            begin=np.empty(count, np.int64),
            value_start=np.empty(count, np.int64),
            value_end=np.empty(count, np.int64),
            null_value=np.zeros(count, np.bool_),
            compacted_out=np.zeros(count, np.bool_),
            key_start=numbers("key", ABSENT),
            key_end=numbers("key", ABSENT),
            key_base64=np.zeros(count, np.bool_) if "key_bytes" in columns else None,
            ordering_start=numbers("ordering_key", ABSENT),
            ordering_end=numbers("ordering_key", ABSENT),
            event_ms=numbers("event_time"),
            sequence=numbers("sequence_id"),
            sequence_set=np.zeros(count, np.bool_) if "sequence_id" in columns else None,
            properties=PropertySpans.of([]) if "properties" in columns else None,
        )

    def __len__(self) -> int:
        return len(self.owner)

    def put(self, row: int, header: Header) -> None:
        """Fill one row, but for its properties, from its message's header."""
        self.null_value[row] = header.number(NULL_VALUE) != 0
        self.compacted_out[row] = header.number(COMPACTED_OUT) != 0
        if self.key_start is not None and self.key_end is not None:
            self.key_start[row], self.key_end[row] = header.span(KEY)
        if self.key_base64 is not None:
            self.key_base64[row] = header.number(KEY_BASE64) != 0
        if self.ordering_start is not None and self.ordering_end is not None:
            self.ordering_start[row], self.ordering_end[row] = header.span(ORDERING_KEY)
        if self.event_ms is not None:
            self.event_ms[row] = header.number(EVENT_TIME)
        if self.sequence is not None and self.sequence_set is not None:
            self.sequence[row], self.sequence_set[row] = header.number(SEQUENCE_ID), SEQUENCE_ID in header.last

    def clear(self, chosen: Flags) -> None:
        """As they were before anything was filled into them."""
        for array, nothing in (
            (self.null_value, False),
            (self.compacted_out, False),
            (self.key_start, ABSENT),
            (self.key_base64, False),
            (self.ordering_start, ABSENT),
            (self.event_ms, 0),
            (self.sequence_set, False),
        ):
            if array is not None:
                array[chosen] = nothing

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
