"""The columns of a read: a system's own, other connectors' names of them, and the columns of decoded payloads.

| asked | without decoding | with decoding |
|---|---|---|
| nothing | the system's default columns | every field of the values, then these as `_publish_time`, `_topic`, .. |
| `publish_time` | the system's column | the field of this name |
| `_publish_time` | none | the system's column |
| `_key` | none | the key, decoded if the source says how |
| `__publishTime` | what another connector gives under this name | the same |
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.formats.arrow.arrow_types import arrow_type
from airflow_provider_streams.formats.decoder import Decoded
from airflow_provider_streams.model.schema.decoding import Decoding
from airflow_provider_streams.model.schema.types import StructOf
from airflow_provider_streams.systems.base import StreamSystem
from airflow_provider_streams.systems.declaration import KEY, Declaration
from airflow_provider_streams.systems.registry import declaration_of

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
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Key:
    """The decoded keys."""

    type: pa.DataType


Origin = Stored | Field | Key
"""Where a column comes from."""


@dataclass(frozen=True)
class Columns:
    """The columns of a read, and where each comes from."""

    schema: pa.Schema
    origins: tuple[Origin, ...]

    @classmethod
    def of(cls, system: StreamSystem, decoding: Decoding | None, asked: Sequence[str] | None) -> Columns:
        """The requested columns, or the default ones. `InvalidRequest`: unknown, named twice, or hidden by another."""
        declared = declaration_of(system.name)
        known = _known(declared, decoding)
        names = tuple(_defaults(declared, decoding) if asked is None else asked)
        _check(declared, names, known)
        origins = tuple(known[name] for name in names)
        stored = tuple(dict.fromkeys(one.name for one in origins if isinstance(one, Stored)))
        types = dict(zip(stored, system.schema(stored).types, strict=True)) if stored else {}
        kinds = [types[one.name] if isinstance(one, Stored) else one.type for one in origins]
        return cls(pa.schema([pa.field(*column) for column in zip(names, kinds, strict=True)]), origins)

    @property
    def stored(self) -> tuple[str, ...]:
        """The system's columns that they need."""
        return tuple(dict.fromkeys(one.name for one in self.origins if isinstance(one, Stored)))

    def renamed(self, name_of: Callable[[str], str]) -> Columns:
        """The same columns under other names."""
        return replace(self, schema=pa.schema([one.with_name(name_of(one.name)) for one in self.schema]))

    def places_of(self, stored: Collection[str]) -> list[int]:
        """The places of columns that are these columns of the system."""
        return [place for place, one in enumerate(self.origins) if isinstance(one, Stored) and one.name in stored]

    def rows(self, stored: pa.RecordBatch, decoded: Decoded | None = None) -> pa.RecordBatch:
        """The rows of a batch of the system's columns and its decoded payloads."""
        fields = decoded.value.flatten() if decoded and pa.types.is_struct(decoded.value.type) else []  # type: ignore[attr-defined]
        arrays = [_taken(one, stored, decoded, fields) for one in self.origins]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _taken(origin: Origin, stored: pa.RecordBatch, decoded: Decoded | None, fields: Sequence[pa.Array]) -> pa.Array:  # type: ignore[type-arg]
    if isinstance(origin, Stored):
        return stored.column(origin.name)
    if decoded is None:
        raise AssertionError("a decoded column is requested, but nothing is decoded")
    if isinstance(origin, Key):
        return decoded.key  # type: ignore[return-value]  # where a plan decodes keys there are some
    return decoded.value if origin.place is None else fields[origin.place]


def _known(declared: Declaration, decoding: Decoding | None) -> dict[str, Origin]:
    known: dict[str, Origin] = {name: Stored(own) for name, own in declared.peer_columns.items()}
    if decoding is None:
        return known | {name: Stored(name) for name in declared.columns}
    known |= {declared.metadata_name(name): Stored(name) for name in declared.columns}
    if decoding.key is not None:
        known[KEY] = Key(arrow_type(decoding.key))
    declared.check_fields(decoding)
    return known | _fields(decoding)


def _fields(decoding: Decoding) -> dict[str, Origin]:
    if isinstance(decoding.value, StructOf):
        return {one.name: Field(place, arrow_type(one.type)) for place, one in enumerate(decoding.value.fields)}
    return {VALUE: Field(None, arrow_type(decoding.value))}


def _defaults(declared: Declaration, decoding: Decoding | None) -> Sequence[str]:
    stored = declared.default_columns or declared.columns
    if decoding is None:
        return stored
    payload = declared.payload_columns.value if declared.payload_columns else ""
    metadata = [declared.metadata_name(name) for name in stored if name != payload]
    if decoding.key is not None and KEY not in metadata:
        metadata.insert(0, KEY)
    return [*_fields(decoding), *metadata]


def _check(declared: Declaration, names: Sequence[str], known: dict[str, Origin]) -> None:
    if not names or len(set(names)) != len(names):
        raise InvalidRequest(f"columns must be named once each, and at least one: {', '.join(names) or 'none'}")
    for name in names:
        if name not in known:
            raise declared.no_column(name, known)
