"""Targets with placeholders: `lake.{topic}` is one table for each topic of a source. Pure.

What a name becomes in a target: letters get small, and whatever is no letter a to z, digit, `-` or `_` becomes `_`. So
it is a table's name in every format, and names that a catalog or a file system takes for the same are the same here:
topics whose names meet are refused, see `tables_of`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.sink import Sink
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.model.target import placeholders, with_names


@dataclass(frozen=True, slots=True)
class SourceTable:
    """One topic or stream of a source, and the table that its rows go to."""

    source: Source
    sink: Sink

    def __str__(self) -> str:
        return str(self.source)


@dataclass(frozen=True, slots=True)
class Meeting:
    """A topic or stream whose table would be another one's, too."""

    table: SourceTable
    others: tuple[Source, ...]

    @property
    def source(self) -> Source:
        """Which topic or stream."""
        return self.table.source

    def error(self) -> InvalidRequest:
        """Why it cannot land."""
        others = ", ".join(map(str, self.others[:_SHOWN])) + (", .." if len(self.others) > _SHOWN else "")
        return InvalidRequest(
            f"{self.source} and {others} would share the table {self.table.sink.asset_uri}: in a table's name letters "
            "are small, and other characters than a to z, digits, - and _ become _. Nothing of them was read. Give "
            "each a task and a table of its own, or more placeholders to the table's name."
        )


_SHOWN = 3


def is_fan_out(sink: Sink | None) -> bool:
    """Whether a sink is a table for each topic or stream of its source."""
    return bool(placeholders(target_of(sink)))


def target_of(sink: Sink | None) -> str:
    """What names a sink's table; empty: there is none, or it is of a user's own, which has no placeholders."""
    name = getattr(sink, "named_by", None)
    return str(getattr(sink, name)) if name else ""


def check_placeholders(sink: Sink, known: Iterable[str], system: str) -> None:
    """Refuse placeholders that nobody can fill in.

    Raises:
        InvalidRequest: one is not known, naming those that are; or none are.
    """
    names = tuple(known)
    for name in placeholders(target_of(sink)):
        if name not in names:
            shown = ", ".join(f"{{{one}}}" for one in names) or "none"
            raise InvalidRequest(
                f"{target_of(sink)!r}: a {system} source has nothing to put for {{{name}}}; known: {shown}"
            )


def sink_for(sink: Sink, names: Mapping[str, str]) -> Sink:
    """The table of one topic or stream, given its names by placeholder.

    Raises:
        InvalidRequest: no table can be named so.
    """
    field = getattr(sink, "named_by", "")
    return type(sink).from_json({**sink.to_json(), field: with_names(target_of(sink), names)})


def tables_of(
    sink: Sink, sources: Iterable[tuple[Source, Mapping[str, str]]]
) -> tuple[tuple[SourceTable, ...], tuple[Meeting, ...]]:
    """Each topic or stream with its table, and those that would share one.

    Args:
        sink: with placeholders.
        sources: single ones, each with its names by placeholder.
    """
    by_table: dict[str, list[SourceTable]] = {}
    for source, names in sources:
        one = SourceTable(source, sink_for(sink, names))
        by_table.setdefault(one.sink.asset_uri, []).append(one)
    alone = tuple(found[0] for found in by_table.values() if len(found) == 1)
    return alone, tuple(
        Meeting(one, tuple(other.source for other in found if other is not one))
        for found in by_table.values()
        if len(found) > 1
        for one in found
    )
