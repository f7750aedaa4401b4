"""Messages by the schema that Kafka Connect's JSON converter wrote around them: `{"schema":{..},"payload":{..}}`.

Messages of one table have the same text before their payload, byte by byte, so one comparison of many texts with it
parts them. Each schema is parsed once. A message that is written in another order of keys is parsed by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

import numpy as np
import pyarrow.compute as pc

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Flags, Ints
from airflow_provider_streams.formats.change_data.messages.connect_json import split_message


class Group(NamedTuple):
    """Messages of one schema."""

    schema: str
    """Its JSON; empty: they have none."""
    rows: Ints
    bodies: Array
    """Their payloads."""


class SchemaGroups:
    """Parts messages by their schemas. It keeps the texts of the schemas that it has seen last."""

    def __init__(self) -> None:
        self._known: dict[bytes, str] = {}

    def parts(self, payloads: Array) -> Iterator[Group]:
        """The groups of binary payloads without nulls, which together have all rows."""
        rows = np.arange(len(payloads))
        has_schema = _starts_with(payloads, _HEAD)
        named = rows[has_schema]
        # the payload comes first, or a space
        is_odd = _starts_with(payloads, _PAYLOAD) | ~_starts_with(payloads, _PLAIN)
        odd = rows[is_odd & ~has_schema]
        plain = rows[~is_odd & ~has_schema]
        while len(named):
            first = cast("bytes", payloads[int(named[0])].as_py())
            prefix = self._prefix(first)
            if prefix is None:
                odd = np.append(odd, named[0])
                named = named[1:]
                continue
            texts = arrays.at_rows(payloads, named)
            same = _starts_with(texts, prefix) & _closed(texts, len(prefix))
            if not same[0]:
                odd, named = np.append(odd, named[0]), named[1:]
                continue
            yield Group(self._known[prefix], named[same], _inside(arrays.at_rows(payloads, named[same]), len(prefix)))
            named = named[~same]
        alone: dict[str, list[tuple[int, bytes]]] = {}
        for row in np.sort(odd).tolist():
            message = cast("bytes", payloads[row].as_py())
            schema, body = split_message(message)
            if body is message:
                plain = np.append(plain, row)
            else:
                alone.setdefault(schema, []).append((row, body))
        for schema, found in alone.items():
            places = np.array([row for row, _ in found], np.int64)
            yield Group(schema, places, arrays.listed([body for _, body in found]))
        if len(plain):
            plain.sort()
            yield Group("", plain, arrays.at_rows(payloads, plain))

    def _prefix(self, message: bytes) -> bytes | None:
        """The text before a message's payload; None: it is written in another way."""
        for known in self._known:
            if message.startswith(known):
                return known
        end = _end_of_object(message, len(_HEAD))
        if end is None or not message.startswith(_BETWEEN, end):
            return None
        prefix, text = message[: end + len(_BETWEEN)], message[len(_HEAD) : end]
        if len(self._known) >= MOST_SCHEMAS:
            self._known.pop(next(iter(self._known)))
        self._known[prefix] = "" if text == b"null" else text.decode(errors="replace")
        return prefix


def _end_of_object(message: bytes, start: int) -> int | None:
    if message.startswith(b"null", start):
        return start + 4
    try:
        text = message[start:].decode()
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return start + len(text[:end].encode())


def _starts_with(payloads: Array, head: bytes) -> Flags:
    found: Flags = _compute.starts_with(payloads, pattern=head).to_numpy(zero_copy_only=False)
    return found


def _closed(payloads: Array, length: int) -> Flags:
    """Which texts have something after their prefix, and end with a bracket."""
    data, starts, ends = arrays.span_ends(payloads)
    found: Flags = (ends - starts > length + 1) & (data[ends - 1] == _CLOSE)
    return found


def _inside(payloads: Array, length: int) -> Array:
    data, starts, ends = arrays.span_ends(payloads)
    return arrays.spans(data, starts + length, ends - 1)


_compute: Any = pc  # the stubs know patterns of text only
MOST_SCHEMAS: Final = 64
"""Schemas that are kept. A topic of many tables has one for each of them."""
_HEAD: Final = b'{"schema":'
_BETWEEN: Final = b',"payload":'
_PAYLOAD: Final = b'{"payload":'
_PLAIN: Final = b'{"'
_CLOSE: Final = ord("}")
