"""The headers of many messages parsed at once: SingleMessageMetadata in numpy, one field of all rows per step."""

from __future__ import annotations

from typing import Final

import numpy as np

from airflow_provider_streams.systems.pulsar.decode.loads import TOO_WIDE, Flags, Ints, Loads, Words, low_byte, varints
from airflow_provider_streams.systems.pulsar.decode.rows import ABSENT, PropertySpans, Rows
from airflow_provider_streams.systems.pulsar.decode.starts import KEY, PROPERTIES, SIZE

CHUNK: Final = 16_384
"""Rows per step: their arrays stay in the processor's cache."""

MOST_FIELDS: Final = 64
"""Properties, and fields behind the size, that a header may have; the walk takes longer ones."""

_COMPACTED_OUT, _EVENT_TIME, _KEY_B64, _ORDERING_KEY = 0x20, 0x28, 0x30, 0x3A
_SEQUENCE_ID, _NULL_VALUE, _NULL_KEY = 0x40, 0x48, 0x50
_BEHIND_SIZE: Final = np.zeros(256, np.bool_)
_BEHIND_SIZE[[_COMPACTED_OUT, _EVENT_TIME, _KEY_B64, _ORDERING_KEY, _SEQUENCE_ID, _NULL_VALUE, _NULL_KEY]] = True

_NAME, _VALUE = 0x0A, 0x12
"""Tags of KeyValue."""

_WIDEST: Final = 10
"""Bytes of the widest varint."""

_8: Final = np.uint64(8)


class HeaderParser:
    """Fills `rows` from the headers at `rows.begin`; each message, with its value, must end at its place in `ends`."""

    def __init__(self, loads: Loads, rows: Rows, ends: Ints) -> None:
        self._loads, self._rows, self._ends = loads, rows, ends
        self._properties: list[PropertySpans] = []

    def parse(self, chosen: Ints) -> Flags:
        """Parse these rows. Returns, for each, whether it is odd: unknown, unusual or corrupt.

        What is filled for odd rows means nothing: `walk` must read their batches.
        """
        odd = np.zeros(len(chosen), np.bool_)
        for first in range(0, len(chosen), CHUNK):
            piece = slice(first, first + CHUNK)
            self._parse(chosen[piece], odd[piece])
        return odd

    def properties(self) -> PropertySpans:
        """The properties found so far, row after row."""
        return PropertySpans.joined(self._properties)

    def _parse(self, chosen: Ints, odd: Flags) -> None:
        loads, rows = self._loads, self._rows
        begin, ends = rows.begin[chosen], self._ends[chosen]
        body = begin + 4 + loads.lengths[begin]
        odd |= body > ends
        np.minimum(body, ends, out=body)
        at = begin + 4
        word = self._skip_properties(chosen, at, body, odd)
        word = self._skip_key(chosen, at, word, body, odd)
        size, width = varints(word >> _8)
        rows.value_start[chosen] = body
        rows.value_end[chosen] = ends
        at += width + 1
        odd |= (low_byte(word) != SIZE) | (width == TOO_WIDE) | (at > body) | (body + size != ends)
        left = np.flatnonzero((at < body) & ~odd)
        for _ in range(MOST_FIELDS):
            if not len(left):
                return
            after, wrong = self._field(chosen[left], at[left], body[left])
            odd[left] |= wrong
            at[left] = after
            left = left[(after < body[left]) & ~wrong]
        odd[left] = True

    def _skip_properties(self, chosen: Ints, at: Ints, body: Ints, odd: Flags) -> Words:
        """Move `at` behind the properties; returns the words there."""
        word = self._loads.words[at]
        left = np.flatnonzero(low_byte(word) == PROPERTIES)
        if not len(left):
            return word
        for _ in range(MOST_FIELDS):
            length, width = varints(self._loads.words[at[left]] >> _8)
            inner = at[left] + 1 + width
            end = np.minimum(inner + length, body[left])
            wrong = inner + length > body[left]
            if self._rows.properties is not None:
                wrong |= self._pair(chosen[left], inner, end)
            odd[left] |= wrong
            at[left] = end
            left = left[(low_byte(self._loads.words[end]) == PROPERTIES) & ~wrong]
            if not len(left):
                break
        odd[left] = True
        return self._loads.words[at]

    def _pair(self, chosen: Ints, at: Ints, end: Ints) -> Flags:
        """Note one property per row: a name and a value, in this order and nothing else."""
        word = self._loads.words[np.minimum(at, end)]
        length, width = varints(word >> _8)
        name_start = at + 1 + width
        name_end = np.minimum(name_start + length, end)
        wrong: Flags = (low_byte(word) != _NAME) | (width == TOO_WIDE)
        word = self._loads.words[name_end]
        length, width = varints(word >> _8)
        value_start = name_end + 1 + width
        wrong |= (low_byte(word) != _VALUE) | (width == TOO_WIDE) | (value_start + length != end)
        self._properties.append(PropertySpans(chosen, name_start, name_end, value_start, end))
        return wrong

    def _skip_key(self, chosen: Ints, at: Ints, word: Words, body: Ints, odd: Flags) -> Words:
        """Move `at` behind the key; returns the words there."""
        keyed = low_byte(word) == KEY
        if not keyed.any():
            return word
        length, width = varints(word >> _8)
        start = at + 1 + width
        end = start + length
        odd |= keyed & (end > body)
        if self._rows.key_start is not None and self._rows.key_end is not None:
            self._rows.key_start[chosen] = np.where(keyed, start, ABSENT)
            self._rows.key_end[chosen] = np.where(keyed, end, ABSENT)
        np.copyto(at, np.minimum(end, body), where=keyed)
        return self._loads.words[at]

    def _field(self, chosen: Ints, at: Ints, body: Ints) -> tuple[Ints, Flags]:
        """Note one field behind the size per row; returns the place after it, and what is wrong."""
        word = self._loads.words[at]
        tag = low_byte(word)
        value, width = varints(word >> _8)
        wide = np.flatnonzero(width == TOO_WIDE)
        if len(wide):
            more, wider = varints(self._loads.words[at[wide] + 8])
            value[wide] |= more << 49
            width[wide] = wider + 7
        wrong = ~_BEHIND_SIZE[tag.view(np.int64)] | (width > _WIDEST)
        after = at + 1 + width
        spans = tag == _ORDERING_KEY
        if spans.any():
            start = after.copy()
            after[spans] += np.minimum(value[spans], body[spans])
            self._note_ordering_key(chosen[spans], start[spans], after[spans])
        wrong |= after > body
        self._note(chosen, tag, value)
        return after, wrong

    def _note_ordering_key(self, chosen: Ints, start: Ints, end: Ints) -> None:
        if self._rows.ordering_start is not None and self._rows.ordering_end is not None:
            self._rows.ordering_start[chosen] = start
            self._rows.ordering_end[chosen] = end

    def _note(self, chosen: Ints, tag: Words, value: Ints) -> None:
        rows = self._rows
        if rows.sequence is not None and rows.sequence_set is not None:
            hit = tag == _SEQUENCE_ID
            rows.sequence[chosen[hit]] = value[hit]
            rows.sequence_set[chosen[hit]] = True
        if rows.event_ms is not None:
            hit = tag == _EVENT_TIME
            rows.event_ms[chosen[hit]] = value[hit]
        if rows.key_start is not None:
            rows.key_start[chosen[(tag == _NULL_KEY) & (value != 0)]] = ABSENT
        for number, flags in ((_NULL_VALUE, rows.null_value), (_COMPACTED_OUT, rows.compacted_out)):
            hit = tag == number
            flags[chosen[hit]] = value[hit] != 0
