"""What a system says of itself, free of its clients, of Arrow and of Airflow: all that others need to know of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.basis import Basis, BasisLike, BasisName, basis_from, class_name
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.systems.option import Option


@dataclass(frozen=True, slots=True)
class ConnectionForm:
    """What Airflow's own fields of a connection (host, port, login, password, schema) mean to a system."""

    labels: Mapping[str, str] = field(default_factory=dict)
    placeholders: Mapping[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    holds: frozenset[str] = frozenset()
    """The options that they hold: these need no field of their own."""


class Declaration:
    """One system. What a subclass leaves alone is as most systems have it."""

    name: ClassVar[str]
    title: ClassVar[str]
    """As its users write it."""
    system: ClassVar[str]
    """`package.module:Class` of its `systems.base.StreamSystem`, imported when used."""
    source_class: ClassVar[type[Any]]
    """A frozen dataclass, see `model.source.Source`: first its name or names, then `conn_id` and details."""
    bases: ClassVar[tuple[BasisName, ...]]
    """How a time can become a cut, its default first."""
    columns: ClassVar[tuple[str, ...]]
    """The columns that its reads can give, in order."""
    options: ClassVar[tuple[Option, ...]]
    """Every setting of a connection."""
    source_options: ClassVar[tuple[Option, ...]] = ()
    """What names a source in `spark.read.format(..)`, see `StreamSystem.source`."""
    passed_over: ClassVar[frozenset[str]] = frozenset()
    """Options of other connectors about creating and writing. A read does neither."""
    hook: ClassVar[str | None] = None
    """`package.module:Class` of its hook; None: options are taken from a connection's extras."""
    conditions: ClassVar[str | None] = None
    """`package.module:name` of what can be waited for, by kind, see `systems.conditions`; None: nothing but windows."""
    form: ClassVar[ConnectionForm] = ConnectionForm()

    def source(self, names: Sequence[str], conn_id: str, details: Mapping[str, Any] | None = None) -> Source:
        """A source by its own names, as a person gives them.

        Args:
            names: of the source.
            conn_id: its connection.
            details: other fields of it, like `pattern`.

        Raises:
            InvalidRequest: not a name or a detail that it can have.
        """
        known = {one.name for one in fields(self.source_class)}
        for detail in details or {}:
            if detail not in known:
                raise InvalidRequest(f"--{detail.replace('_', '-')} is nothing that a source of {self.name} has")
        return self._source(names, conn_id, details or {})

    def names_of(self, source: Source) -> tuple[list[str], dict[str, str]]:
        """The reverse of `source`: names, and the details that are not their defaults."""
        first, *others = fields(self.source_class)
        names = getattr(source, first.name)
        details = {one.name: getattr(source, one.name) for one in others if one.name != "conn_id"}
        defaults = {one.name: one.default for one in others if one.default is not MISSING}
        given = {name: value for name, value in details.items() if value != defaults.get(name)}
        return (list(names) if isinstance(names, tuple) else [names]), given

    def dataset(self, names: Sequence[str], shard: str) -> str:  # noqa: ARG002 - for systems with several names
        """OpenLineage's name of what a shard of a source belongs to."""
        return names[0]

    def cut_text(self, source: Source, cut: Cut) -> str:  # noqa: ARG002 - for systems with a notation of their own
        """A cut as `Cuts(start, end)` takes it."""
        return json.dumps(cut.to_json())

    def decode_cut(self, text: str, shard: str) -> list[dict[str, Any]]:  # noqa: ARG002 - the same
        """The positions in a text of the system's own notation.

        Raises:
            InvalidRequest: it has none, or this is not one.
        """
        raise InvalidRequest(f"{self.name} has no notation of its own: its cuts are JSON")

    def basis(self, given: BasisLike | None = None) -> Basis:
        """What a user wrote, as a value; None: the system's default.

        Raises:
            InvalidRequest: it cannot serve it; naming those it can.
        """
        basis = basis_from(given, self.bases)
        if basis is None:
            names = ", ".join(f"{one!r} ({class_name(one)})" for one in self.bases)
            raise InvalidRequest(
                f"basis of a {self.name} source must be one of {names} or Cuts(start, end), got {given!r}"
            )
        return basis

    def _source(self, names: Sequence[str], conn_id: str, details: Mapping[str, Any]) -> Source:
        source: Source = self.source_class("/".join(names), conn_id=conn_id, **details)
        return source
