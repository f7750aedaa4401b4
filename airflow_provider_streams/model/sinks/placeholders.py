"""Targets with placeholders: `lake.{topic}` is one table for each topic of a source. Pure.

In a target, a name's letters become lower case, and any character but a to z, digits, `-` and `_` becomes `_`. The
result is a table's name in every format. Names that a catalog or a file system takes for the same are the same here:
topics with the same result are refused, see `tables_of`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.sinks.table_name import placeholders, with_names
from airflow_provider_streams.model.stream.source import Source


@dataclass(frozen=True, slots=True)
class SourceTable:
    """One topic or stream of a source, and the table that its rows go to."""

    source: Source
    sink: Sink

    def __str__(self) -> str:
        return str(self.source)


@dataclass(frozen=True, slots=True)
class TableCollision:
    """A topic or stream that would share its table."""

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
    """The name of a sink's table; empty: there is none, or it is a user's own sink, which has no placeholders."""
    return "" if sink is None or sink.named_by is None else str(getattr(sink, sink.named_by))


def check_placeholders(sink: Sink, known: Iterable[str], system: str) -> None:
    """Refuse unknown placeholders.

    Raises:
        InvalidRequest: one is not known. The message names those that are.
    """
    names = tuple(known)
    for name in placeholders(target_of(sink)):
        if name not in names:
            shown = ", ".join(f"{{{one}}}" for one in names) or "none"
            raise InvalidRequest(
                f"{target_of(sink)!r}: a {system} source has nothing to put for {{{name}}}; known: {shown}"
            )


def sink_for(sink: Sink, names: Mapping[str, str]) -> Sink:
    """The table of one topic or stream, by its names for the placeholders.

    Raises:
        InvalidRequest: no table can have this name.
    """
    assert sink.named_by is not None  # noqa: S101  # it has placeholders
    return type(sink).from_json({**sink.to_json(), sink.named_by: with_names(target_of(sink), names)})


def tables_of(
    sink: Sink, sources: Iterable[tuple[Source, Mapping[str, str]]]
) -> tuple[tuple[SourceTable, ...], tuple[TableCollision, ...]]:
    """Each topic or stream with its table, and those that would share one.

    `sources` have their names for the placeholders.
    """
    by_table: dict[str, list[SourceTable]] = {}
    for source, names in sources:
        one = SourceTable(source, sink_for(sink, names))
        by_table.setdefault(one.sink.asset_uri, []).append(one)
    alone = tuple(found[0] for found in by_table.values() if len(found) == 1)
    return alone, tuple(
        TableCollision(one, tuple(other.source for other in found if other is not one))
        for found in by_table.values()
        if len(found) > 1
        for one in found
    )
