"""What a system declares, without its clients, Arrow or Airflow: all that other packages need to know of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, ClassVar

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.name_suggestion import nearest_name
from airflow_provider_streams.model.schema.decoding import Decoding
from airflow_provider_streams.model.schema.types import StructOf
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.basis import Basis, BasisLike, BasisName, EventTime, basis_from, class_name
from airflow_provider_streams.systems.connection.address import AddressRules
from airflow_provider_streams.systems.connection.list_options import write
from airflow_provider_streams.systems.connection.option import Option


@dataclass(frozen=True, slots=True)
class ConnectionForm:
    """What Airflow's own fields of a connection (host, port, login, password, schema) mean to a system."""

    labels: Mapping[str, str] = field(default_factory=dict)
    placeholders: Mapping[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    unused: Mapping[str, str] = field(default_factory=dict)
    """Fields that mean nothing to the system, with where their content belongs. They are hidden, and refused if set."""
    holds: frozenset[str] = frozenset()
    """The options that they hold: these need no field of their own."""


@dataclass(frozen=True, slots=True)
class ConnectionType:
    """A type of Airflow's connections: its name and title, its hook (`package.module:Class`), settings and form."""

    name: str
    title: str
    hook: str
    options: tuple[Option, ...]
    form: ConnectionForm


@dataclass(frozen=True, slots=True)
class PayloadColumns:
    """The columns of a read that decoding needs."""

    value: str
    """The payload."""
    key: str = ""
    """The key's bytes; none: events have no keys."""
    version: str = ""
    """The schema version that wrote it; none: the metadata have no such column."""
    position: tuple[str, ...] = ()
    """Where an event is, in its shard."""
    stored_unit: tuple[str, ...] = ()
    """The run and the stored unit where an event begins, as a plan's `Span` counts them; none: there are no columns."""
    broker_time: str = ""
    """When it was stored, by the clock that versions are registered by; null or none: not recorded."""
    publish_time: str = ""
    """When it was written, by its producer's clock; none: not recorded."""
    replicated_from: str = ""
    """The other cluster that it was published in, if there is one: it was written before it came here."""

    @property
    def times(self) -> tuple[str, ...]:
        """The columns that say when an event was written."""
        return tuple(name for name in (self.broker_time, self.publish_time, self.replicated_from) if name)


KEY = "_key"
"""The column of decoded keys."""
_ASIDE = frozenset({"conn_id", "value", "key_payload"})
"""Fields of sources that have other options on the command line."""


class Declaration:
    """One system. The defaults are what most systems have."""

    name: ClassVar[str]
    title: ClassVar[str]
    """As its users write it."""
    system: ClassVar[str]
    """`package.module:Class` of its `systems.base.StreamSystem`, imported when used."""
    source_class: ClassVar[type[Any]]
    """A frozen dataclass, see `model.stream.source.Source`: first its name or names, then `conn_id` and details."""
    bases: ClassVar[tuple[BasisName, ...]]
    """How a time can become a cut, its default first."""
    columns: ClassVar[tuple[str, ...]]
    """The columns that its reads can give, in order."""
    default_columns: ClassVar[tuple[str, ...]] = ()
    """Those of a read that names none; none: all of them."""
    shard_columns: ClassVar[frozenset[str]] = frozenset()
    """Those with one value for all rows of a shard."""
    payload_columns: ClassVar[PayloadColumns | None] = None
    """None: its events cannot be decoded."""
    metadata_names: ClassVar[Mapping[str, str]] = {}
    """Columns whose name next to decoded fields is not `_<column>`, see `metadata_name`."""
    peer_columns: ClassVar[Mapping[str, str]] = {}
    """What other connectors call columns, and which of ours that is."""
    options: ClassVar[tuple[Option, ...]]
    """Every setting of a connection."""
    source_options: ClassVar[tuple[Option, ...]] = ()
    """What names a source in `spark.read.format(..)`, see `StreamSystem.source`."""
    placeholders: ClassVar[tuple[str, ...]] = ()
    """What a table's name may hold, see `model.sinks.placeholders`; none: a source is always one topic or stream."""
    passed_over: ClassVar[frozenset[str]] = frozenset()
    """Options of other connectors about creating and writing. A read does neither."""
    hook: ClassVar[str | None] = None
    """`package.module:Class` of its hook; None: options are taken from a connection's extras."""
    conditions: ClassVar[str | None] = None
    """`package.module:name` of what can be waited for, by kind, see `systems.conditions`; None: nothing but windows."""
    starts_at_units: ClassVar[bool] = False
    """Whether a read may start at any stored unit, see `position_of`; otherwise only at known places between events."""
    ended: ClassVar[str | None] = None
    """The kind of the condition that nothing more can be written; None: nothing tells."""
    diagnosis: ClassVar[str | None] = None
    """`package.module:Class` of its `systems.diagnosis.Diagnosis`; None: doctor only tests the hook's connection."""
    form: ClassVar[ConnectionForm] = ConnectionForm()
    address: ClassVar[AddressRules | None] = None
    """How a connection's fields hold its address; None: they hold none."""
    services: ClassVar[tuple[ConnectionType, ...]] = ()
    """Connections to services next to the system."""

    @property
    def connections(self) -> tuple[ConnectionType, ...]:
        """Every type of connection, the system's own first, if it has a hook."""
        own = (ConnectionType(self.name, self.title, self.hook, self.options, self.form),) if self.hook else ()
        return (*own, *self.services)

    def source(self, names: Sequence[str], conn_id: str, details: Mapping[str, Any] | None = None) -> Source:
        """A source by its names and other fields (`details`), as a person writes them.

        Raises:
            InvalidRequest: it cannot have such a name or detail.
        """
        known = {one.name for one in fields(self.source_class)}
        for detail in details or {}:
            if detail not in known:
                raise InvalidRequest(f"--{detail.replace('_', '-')} does not belong to a source of {self.name}")
        return self._source(names, conn_id, details or {})

    def names_of(self, source: Source) -> tuple[list[str], dict[str, str]]:
        """The reverse of `source`: names, and the details that are not their defaults, as they are written."""
        first, *others = fields(self.source_class)
        names = getattr(source, first.name)
        details = {one.name: getattr(source, one.name) for one in others if one.name not in _ASIDE}
        defaults = {one.name: one.default for one in others if one.default is not MISSING}
        given = {
            name: write(value) if isinstance(value, tuple) else value
            for name, value in details.items()
            if value != defaults.get(name)
        }
        return (list(names) if isinstance(names, tuple) else [names]), given

    @property
    def finds_times(self) -> bool:
        """Whether a place can be looked up by time: events carry the time at which they were published."""
        return "publish" in self.bases

    def dataset(self, names: Sequence[str], shard: str) -> str:  # noqa: ARG002 - for systems with several names
        """OpenLineage's name of what a shard of a source belongs to."""
        return names[0]

    def placeholder_names(self, single: Source) -> Mapping[str, str]:
        """The text of each placeholder, for a source that is one topic or stream."""
        raise NotImplementedError(self.name)

    def named_singles(self, source: Source) -> tuple[Source, ...] | None:  # noqa: ARG002 - for systems that can
        """The topics or streams that a source names, each as a source of its own; None: its system must be asked.

        Raises:
            InvalidRequest: they cannot be sources of their own.
        """
        return None

    def single_of(self, source: Source, shard: str) -> Source:
        """The topic or stream of a shard, as a source of its own; only for systems with placeholders."""
        raise NotImplementedError(self.name)

    def has_shard(self, single: Source, shard: str) -> bool:
        """Whether a shard belongs to this topic or stream; only for systems with placeholders."""
        raise NotImplementedError(self.name)

    def position_of(self, run: int, unit: int) -> Position:
        """Where a stored unit of a run begins, as a plan's `Span` counts them; only for systems with `stored_unit`."""
        raise NotImplementedError(self.name)

    def metadata_name(self, column: str) -> str:
        """The name of a column in rows that also have the fields of a payload."""
        return self.metadata_names.get(column, f"_{column}")

    def check_fields(self, decoding: Decoding) -> None:
        """See that no field of the decoded values has the name of a column that rows have besides.

        Raises:
            InvalidRequest: one has.
        """
        if not isinstance(decoding.value, StructOf):
            return
        besides = [*self.peer_columns, *map(self.metadata_name, self.columns), *([KEY] if decoding.key else [])]
        taken = {name.lower(): name for name in besides}  # by default, Spark ignores upper and lower case
        for name in (one.name for one in decoding.value.fields):
            if other := taken.get(name.lower()):
                raise InvalidRequest(
                    f"the values have a field {name!r}, which is also the name of a metadata column ({other}; upper "
                    "and lower case are the same): read bytes with value=Bytes(), and decode them in a transform"
                )

    def no_column(self, name: str, known: Iterable[str]) -> InvalidRequest:
        """The refusal of a column, with the nearest that there is."""
        own = [one for one in known if one not in self.peer_columns]
        near = nearest_name(name, own)
        hint = f"did you mean {near!r}?" if near else f"known: {', '.join(own)}"
        return InvalidRequest(f"{self.name} has no column {name!r}; {hint}")

    def cut_text(self, source: Source, cut: Cut) -> str:  # noqa: ARG002 - for systems with a notation of their own
        """A cut as `Cuts(start, end)` takes it."""
        return json.dumps(cut.to_json())

    def decode_cut(self, text: str, shard: str) -> list[dict[str, Any]]:  # noqa: ARG002 - the same
        """The positions in a text of the system's own notation.

        Raises:
            InvalidRequest: it has none, or this is not one.
        """
        raise InvalidRequest(f"{self.name} has no notation to decode: its cuts are JSON")

    def basis(self, given: BasisLike | None = None, refined: Mapping[str, Any] | None = None) -> Basis:
        """The basis that a user wrote, or named, with these parameters; None: the system's default.

        Raises:
            InvalidRequest: the system has no such basis, or a parameter belongs to another one.
        """
        basis = basis_from(given, self.bases)
        if basis is None:
            names = ", ".join(f"{one!r} ({class_name(one)})" for one in self.bases)
            raise InvalidRequest(
                f"basis of a {self.name} source must be one of {names} or Cuts(start, end), got {given!r}"
            )
        for name in refined or {}:
            if not hasattr(basis, name):
                raise InvalidRequest(f"--{name.replace('_', '-')} does not belong to basis {basis.name!r}")
        basis = replace(basis, **(refined or {}))
        self.check_basis(basis)
        return basis

    def check_basis(self, basis: Basis) -> None:
        """Check that the system can serve every parameter of a basis.

        Raises:
            InvalidRequest: it cannot.
        """
        if isinstance(basis, EventTime) and basis.rows == "superset":
            raise InvalidRequest(
                f"a window of a {self.name} source by event time holds only its own rows: leave out rows"
            )

    def _source(self, names: Sequence[str], conn_id: str, details: Mapping[str, Any]) -> Source:
        source: Source = self.source_class("/".join(names), conn_id=conn_id, **details)
        return source
