"""Objects with keys without a column, while a column stays empty: perhaps a property under another name.

A split's reader knows both only at the end. It counts objects as long as a column is empty, and the count matters if
one is still empty at the end. So the count does not depend on batches.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Final, TypeAlias, cast

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrow.arrays import Array, Bytes, Ints, offsets_of, valid_flags
from airflow_provider_streams.formats.decode_failures import OtherObjects
from airflow_provider_streams.model.plan.receipt import some_names
from airflow_provider_streams.model.schema.types import ArrayOf, Decimal, MapOf, Simple, StructOf, Type

OtherKeys: TypeAlias = Callable[[Any], Iterable[str]]
"""The keys of a parsed value without a column, like `price.unit`, unless their value is null."""

SAMPLE: Final = 100
"""How many objects name their keys."""


class Unmatched:
    """Counts the objects of one reader, whose rows have a type, and names their keys."""

    def __init__(self, type_: Type) -> None:
        self._type = type_
        self._empty = set(_paths(type_, ""))
        self._objects = 0
        self._keys: set[str] = set()
        self._keys_of = other_keys(type_) or _none

    @property
    def is_open(self) -> bool:
        """Whether a column is still empty; otherwise there is nothing to count."""
        return bool(self._empty)

    @property
    def found(self) -> OtherObjects:
        """The objects with other keys, if a column is still empty."""
        if not self._empty or not self._objects:
            return OtherObjects()
        empty = {path for path in self._empty if path.rpartition(".")[0] not in self._empty}
        return OtherObjects(self._objects, some_names(self._keys), some_names(one[1:] for one in empty))

    def fill(self, column: Array) -> None:
        """Note which columns are not empty."""
        if self._empty:
            self._empty -= set(_filled(self._type, column, ""))

    def add_lines(self, lines: Bytes, rows: Array) -> None:
        """Count lines with more values than their rows."""
        others = np.flatnonzero(_values_in(lines, len(rows)) > _values_of(self._type, rows))
        if self._objects < SAMPLE and len(others):
            texts = lines.tobytes().split(b"\n")
            for place in others[: SAMPLE - self._objects].tolist():
                self._keys.update(self._keys_of(json.loads(texts[place], object_pairs_hook=tuple)))
        self._objects += len(others)

    def add_parsed(self, values: list[Any]) -> None:
        """Count objects as `JsonParser` parsed them."""
        for value in values:
            keys = iter(self._keys_of(value))
            first = next(keys, None)
            if first is not None:
                if self._objects < SAMPLE:
                    self._keys.update([first, *keys])
                self._objects += 1


def other_keys(type_: Type) -> OtherKeys | None:
    """The function for values of a type; None: they have no objects with columns."""
    match type_:
        case StructOf(fields):
            takers: dict[str, list[OtherKeys | None]] = {}
            for one in fields:
                for key in one.in_objects:
                    takers.setdefault(key, []).append(other_keys(one.type))
            return _of_objects({key: _of_no_taker(several) for key, several in takers.items()})
        case ArrayOf(element):
            inner = other_keys(element)
            return inner and partial(_of_list, inner)
        case MapOf(_, item):
            inner = other_keys(item)
            return inner and partial(_of_map, inner)
    return None


def _of_no_taker(takers: list[OtherKeys | None]) -> OtherKeys | None:
    """The function for a value that several columns take: the keys that all of them leave."""
    left = [one for one in takers if one is not None]
    if len(left) < len(takers):
        return None
    return left[0] if len(left) == 1 else lambda value: set.intersection(*(set(one(value)) for one in left))


def _of_objects(known: dict[str, OtherKeys | None]) -> OtherKeys:
    def keys(value: Any) -> Iterator[str]:
        for key, one in value if type(value) is tuple else ():
            if one is None:
                continue
            if key not in known:
                yield key
            elif inner := known[key]:
                yield from (f"{key}.{name}" for name in inner(one))

    return keys


def _of_list(inner: OtherKeys, value: Any) -> Iterable[str]:
    return chain.from_iterable(map(inner, value)) if type(value) is list else ()


def _of_map(inner: OtherKeys, value: Any) -> Iterable[str]:
    return chain.from_iterable(inner(one) for _, one in value) if type(value) is tuple else ()


def _none(_: Any) -> tuple[str, ...]:
    return ()


def _paths(type_: Type, path: str) -> Iterator[str]:
    match type_:
        case StructOf(fields):
            for one in fields:
                yield f"{path}.{one.name}"
                yield from _paths(one.type, f"{path}.{one.name}")
        case ArrayOf(inner) | MapOf(_, inner):
            yield from _paths(inner, path)


def _filled(type_: Type, column: Array, path: str) -> Iterator[str]:
    match type_:
        case StructOf(fields):
            for one, inner in zip(fields, cast("pa.StructArray", column).flatten(), strict=True):
                if inner.null_count < len(inner):
                    yield f"{path}.{one.name}"
                    yield from _filled(one.type, inner, f"{path}.{one.name}")
        case ArrayOf(element):
            yield from _filled(element, cast("pa.ListArray[Any]", column).values, path)
        case MapOf(_, value):
            yield from _filled(value, cast("pa.MapArray[Any, Any]", column).items, path)


def _values_of(type_: Type, column: Array) -> Ints:
    """How many keys with a value each row has."""
    found = np.zeros(len(column), np.int64)
    match type_:
        case StructOf(fields):
            for one, inner in zip(fields, cast("pa.StructArray", column).flatten(), strict=True):
                found += valid_flags(inner) + _values_of(one.type, inner)
        case ArrayOf(element) if not isinstance(element, Simple | Decimal):
            before = np.concatenate([[0], np.cumsum(_values_of(element, cast("pa.ListArray[Any]", column).values))])
            offsets = offsets_of(column)
            found += before[offsets[1:]] - before[offsets[:-1]]
    return found


def _values_in(lines: Bytes, count: int) -> Ints:
    """How many keys with a value each line has: texts before a colon, unless null follows."""
    closing = _quotes(lines)[1::2]
    data = np.concatenate([lines, _PADDING])
    colons = _next(data, closing + 1)
    colons = colons[data[colons] == ord(":")]
    colons = colons[data[_next(data, colons + 1)] != ord("n")]
    ends = np.flatnonzero(lines == ord("\n"))
    return np.bincount(np.searchsorted(ends, colons), minlength=count)


def _quotes(lines: Bytes) -> Ints:
    """Where texts begin and end, in turn."""
    places = np.flatnonzero(lines == ord('"'))
    escaped = np.zeros(len(places), np.bool_)
    left = np.arange(len(places))
    for back in range(1, len(lines)):
        left = left[lines[np.maximum(places[left] - back, 0)] == ord("\\")]
        if not len(left):
            break
        escaped[left] ^= True
    return places[~escaped]


def _next(data: Bytes, places: Ints) -> Ints:
    """The places, moved after white space."""
    while (space := _SPACE[data[places]]).any():
        places = places + space
    return places


_SPACE: Final = np.zeros(256, np.int64)
_SPACE[list(b" \t\n\r")] = 1
_PADDING: Final = np.frombuffer(b"{{", np.uint8)
OTHERS: Final = "the object has keys that no column takes"
