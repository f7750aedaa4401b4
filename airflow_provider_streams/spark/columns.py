"""The columns of a read: a system's own, those that other connectors named, and what payloads are decoded to.

| asked | without decoding | with decoding |
|---|---|---|
| nothing | the system's default columns | every field of the values, then these as `_publish_time`, `_topic`, .. |
| `publish_time` | the system's column | the field of this name |
| `_publish_time` | none | the system's column |
| `_key` | none | the key, decoded if the source says how |
| `__publishTime` | what another connector gives under this name | the same |
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.formats.arrow_types import arrow_type
from airflow_provider_streams.formats.decoder import Decoded
from airflow_provider_streams.model.decoding import Decoding
from airflow_provider_streams.model.row_type import StructOf
from airflow_provider_streams.systems.base import StreamSystem
from airflow_provider_streams.systems.declaration import Declaration
from airflow_provider_streams.systems.registry import declaration_of

KEY = "_key"
"""The column of decoded keys."""

VALUE = "value"
"""The column of values that are no records."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A column of the system, as it is."""

    name: str


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the decoded values; None: the whole value."""

    place: int | None


@dataclass(frozen=True, slots=True)
class Key:
    """The decoded keys."""


Origin = Stored | Field | Key
"""Where a column comes from."""


@dataclass(frozen=True)
class Columns:
    """The columns of a read, and where each comes from."""

    schema: pa.Schema
    origins: tuple[Origin, ...]

    @classmethod
    def of(cls, system: StreamSystem, decoding: Decoding | None, asked: Sequence[str] | None) -> Columns:
        """Those that a user asked for; None: the default ones.

        Raises:
            InvalidRequest: an unknown column, one asked for twice, or a field that a metadata column hides.
        """
        declared = declaration_of(system.name)
        known = _known(declared, decoding)
        names = tuple(_defaults(declared, decoding) if asked is None else asked)
        _check(declared, names, known)
        origins = tuple(known[name] for name in names)
        stored = tuple(dict.fromkeys(one.name for one in origins if isinstance(one, Stored)))
        types = dict(zip(stored, system.schema(stored).types, strict=True)) if stored else {}
        kinds = [types[one.name] if isinstance(one, Stored) else _decoded_type(decoding, one) for one in origins]
        return cls(pa.schema([pa.field(*column) for column in zip(names, kinds, strict=True)]), origins)

    @property
    def stored(self) -> tuple[str, ...]:
        """The columns of the system that they need."""
        return tuple(dict.fromkeys(one.name for one in self.origins if isinstance(one, Stored)))

    def places_of(self, stored: Collection[str]) -> list[int]:
        """Where columns of the system are among them."""
        return [place for place, one in enumerate(self.origins) if isinstance(one, Stored) and one.name in stored]

    @property
    def decodes(self) -> bool:
        """Whether any of them is decoded."""
        return any(not isinstance(one, Stored) for one in self.origins)

    def rows(self, stored: pa.RecordBatch, decoded: Decoded | None = None) -> pa.RecordBatch:
        """The rows of a batch of the system's columns, with what its payloads were decoded to."""
        fields = decoded.value.flatten() if decoded and pa.types.is_struct(decoded.value.type) else []  # type: ignore[attr-defined]
        arrays = [_taken(one, stored, decoded, fields) for one in self.origins]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _taken(origin: Origin, stored: pa.RecordBatch, decoded: Decoded | None, fields: Sequence[pa.Array]) -> pa.Array:  # type: ignore[type-arg]
    if isinstance(origin, Stored):
        return stored.column(origin.name)
    if decoded is None:
        raise AssertionError("a decoded column is asked for where nothing is decoded")
    if isinstance(origin, Key):
        return decoded.key  # type: ignore[return-value]  # where a plan decodes keys there are some
    return decoded.value if origin.place is None else fields[origin.place]


def _decoded_type(decoding: Decoding | None, origin: Field | Key) -> pa.DataType:
    if decoding is None:
        raise AssertionError("a decoded column is known where nothing is decoded")
    if isinstance(origin, Key):
        return arrow_type(decoding.key)  # type: ignore[arg-type]  # known only where keys are decoded
    if origin.place is None:
        return arrow_type(decoding.value)
    return arrow_type(decoding.value.fields[origin.place].type)  # type: ignore[union-attr]  # a place is a record's


def _known(declared: Declaration, decoding: Decoding | None) -> dict[str, Origin]:
    peers: dict[str, Origin] = {name: Stored(own) for name, own in declared.peer_columns.items()}
    if decoding is None:
        return {**peers, **{name: Stored(name) for name in declared.columns}}
    known: dict[str, Origin] = {**peers, **{declared.metadata_name(name): Stored(name) for name in declared.columns}}
    if decoding.key is not None:
        known[KEY] = Key()
    fields = _fields(decoding)
    _check_hidden(fields, known)
    return {**known, **fields}


def _check_hidden(fields: Iterable[str], metadata: Iterable[str]) -> None:
    """Spark, as it is set by default, tells no columns apart by upper and lower case."""
    taken = {name.lower(): name for name in metadata}
    for name in fields:
        if name.lower() in taken:
            other = taken[name.lower()]
            raise InvalidRequest(
                f"the values have a field {name!r}, which is also the name of a metadata column ({other}; upper and "
                "lower case are the same): read bytes with value=Bytes(), and decode them in a transform"
            )


def _fields(decoding: Decoding) -> dict[str, Origin]:
    if isinstance(decoding.value, StructOf):
        return {one.name: Field(place) for place, one in enumerate(decoding.value.fields)}
    return {VALUE: Field(None)}


def _defaults(declared: Declaration, decoding: Decoding | None) -> Sequence[str]:
    stored = declared.default_columns or declared.columns
    if decoding is None:
        return stored
    payload = declared.payload_columns.value if declared.payload_columns else ""
    beside = [declared.metadata_name(name) for name in stored if name != payload]
    if decoding.key is not None and KEY not in beside:
        beside.insert(0, KEY)
    return [*_fields(decoding), *beside]


def _check(declared: Declaration, names: Sequence[str], known: dict[str, Origin]) -> None:
    if not names or len(set(names)) != len(names):
        raise InvalidRequest(f"columns must be named once each, and at least one: {', '.join(names) or 'none'}")
    for name in names:
        if name not in known:
            raise declared.no_column(name, known)
