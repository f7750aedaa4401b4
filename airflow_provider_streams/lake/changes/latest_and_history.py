"""How one kind of table applies changes: the same steps for latest state and for history.

A window's change rows become a state. The engine splits it by ranges of keys, and gives each part to `apply`, together
with the rows and the markers of its keys. So no more than one range of a table is in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Generic, TypeVar

import pyarrow as pa

from airflow_provider_streams.lake.changes.columns import KIND, POSITION, SEQUENCE, SNAPSHOT_POSITION
from airflow_provider_streams.lake.changes.states import events, history, latest, stored_latest
from airflow_provider_streams.lake.changes.states.change_states import Rules, state_of
from airflow_provider_streams.model.changes.auto_cdc import HISTORY

S = TypeVar("S")

Stored = tuple[pa.Table, pa.Table]
"""Rows that users see, and markers."""


@dataclass(frozen=True)
class Application(ABC, Generic[S]):
    """Applies changes to a table of some columns."""

    rules: Rules
    columns: pa.Schema
    """The table's, without versions."""

    @property
    @abstractmethod
    def row_schema(self) -> pa.Schema:
        """Of the table that users see."""

    @property
    @abstractmethod
    def marker_schema(self) -> pa.Schema:
        """Of the markers."""

    @property
    @abstractmethod
    def marker_identity(self) -> Sequence[str]:
        """The columns of markers that, with the keys, tell two of them apart."""

    @abstractmethod
    def state(self, changes: Iterable[pa.Table]) -> S | None:
        """The state that change rows give; None: there are none. Raises as `state_of`."""

    @abstractmethod
    def tables(self, state: S) -> list[pa.Table]:
        """What a state has by key."""

    @abstractmethod
    def part(self, state: S, tables: Sequence[pa.Table]) -> S:
        """A state of some of its keys only."""

    @abstractmethod
    def empties(self, state: S) -> bool:
        """Whether a state concerns every key of the table."""

    @abstractmethod
    def apply(self, stored: Stored, state: S) -> Stored:
        """The rows and markers of some keys after a state of these keys is joined to them."""

    @abstractmethod
    def global_markers(self, state: S) -> pa.Table:
        """The markers without a key that a state gives."""

    @abstractmethod
    def kept(self, markers: pa.Table, holes: Iterable[str], resent_from: str | None) -> pa.Table:
        """See `stored_latest.kept`."""


class Latest(Application[latest.State]):
    """Applies changes to a table of the latest state."""

    @property
    def row_schema(self) -> pa.Schema:
        """See `Application`."""
        return stored_latest.row_schema(self.columns)

    @property
    def marker_schema(self) -> pa.Schema:
        """See `Application`."""
        return stored_latest.marker_schema(self.columns)

    @property
    def marker_identity(self) -> Sequence[str]:
        """See `Application`."""
        return KIND, SEQUENCE, POSITION, SNAPSHOT_POSITION

    def state(self, changes: Iterable[pa.Table]) -> latest.State | None:
        """See `Application`."""
        found = (self._typed(state_of(rows, self.rules)) for rows in changes if len(rows))
        first = next(found, None)
        return None if first is None else reduce(latest.merge, found, first)

    def tables(self, state: latest.State) -> list[pa.Table]:
        """See `Application`."""
        return [state.live, state.snapshots]

    def part(self, state: latest.State, tables: Sequence[pa.Table]) -> latest.State:
        """See `Application`."""
        return latest.State(state.keys, tables[0], tables[1], state.truncate)

    def empties(self, state: latest.State) -> bool:
        """See `Application`."""
        return state.truncate is not None

    def apply(self, stored: Stored, state: latest.State) -> Stored:
        """See `Application`."""
        held = latest.reduced(stored_latest.joined(self.rules.keys, *stored))
        rows, markers = stored_latest.split(latest.merge(held, state))
        return rows, markers.filter(_has_key(markers, self.rules.keys[0]))

    def global_markers(self, state: latest.State) -> pa.Table:
        """See `Application`."""
        if state.truncate is None:
            return self.marker_schema.empty_table()
        return stored_latest.truncate_marker(state.truncate, self.columns)

    def kept(self, markers: pa.Table, holes: Iterable[str], resent_from: str | None) -> pa.Table:
        """See `Application`."""
        return stored_latest.kept(markers, holes, resent_from)

    def _typed(self, state: latest.State) -> latest.State:
        live, snapshots = latest.live_schema(self.columns), latest.snapshot_schema(self.columns)
        return latest.State(
            state.keys, as_schema(state.live, live), as_schema(state.snapshots, snapshots), state.truncate
        )


@dataclass(frozen=True)
class History(Application[events.Events]):
    """Applies changes to a table with all versions of each key."""

    start: pa.DataType
    """Of `__START_AT`."""

    @property
    def row_schema(self) -> pa.Schema:
        """See `Application`."""
        return history.row_schema(self.columns, self.start)

    @property
    def marker_schema(self) -> pa.Schema:
        """See `Application`."""
        return history.marker_schema(self.columns, self.start)

    @property
    def marker_identity(self) -> Sequence[str]:
        """See `Application`."""
        return KIND, events.VERSION

    def state(self, changes: Iterable[pa.Table]) -> events.Events | None:
        """See `Application`."""
        found = (self._typed(events.events_of(rows, self.rules)) for rows in changes if len(rows))
        first = next(found, None)
        return None if first is None else reduce(events.merge, found, first)

    def tables(self, state: events.Events) -> list[pa.Table]:
        """See `Application`."""
        return [state.changes]

    def part(self, state: events.Events, tables: Sequence[pa.Table]) -> events.Events:
        """See `Application`."""
        return events.Events(state.keys, tables[0], state.truncates)

    def empties(self, state: events.Events) -> bool:
        """See `Application`."""
        return len(state.truncates) > 0

    def apply(self, stored: Stored, state: events.Events) -> Stored:
        """See `Application`."""
        held = history.loaded(self.rules.keys, *stored)
        rows, markers = history.stored(events.merge(held, state), self.rules.cdc.track_history_column_list)
        return rows, markers.filter(_has_key(markers, self.rules.keys[0]))

    def global_markers(self, state: events.Events) -> pa.Table:
        """See `Application`."""
        return history.truncate_markers(state, self.columns)

    def kept(self, markers: pa.Table, holes: Iterable[str], resent_from: str | None) -> pa.Table:
        """See `Application`."""
        return history.kept(markers, self.rules.keys, holes, resent_from)

    def _typed(self, state: events.Events) -> events.Events:
        changes = as_schema(state.changes, events.event_schema(self.columns, self.start))
        cuts = as_schema(
            state.truncates, pa.schema([changes.schema.field(name) for name in (events.VERSION, events.START)])
        )
        return events.Events(state.keys, changes, cuts)


def application_for(
    rules: Rules, columns: pa.Schema, start: pa.DataType | None = None
) -> Application[latest.State] | Application[events.Events]:
    """What applies changes to a table of some columns.

    Args:
        rules: the table's.
        columns: the table's, without versions.
        start: the type of `__START_AT`; only of tables with history.
    """
    if rules.cdc.stored_as_scd_type != HISTORY:
        return Latest(rules, columns)
    return History(rules, columns, pa.null() if start is None else start)


def as_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in the columns and types of a table; columns that they lack are null."""
    columns = [
        rows[one.name].cast(one.type) if one.name in rows.column_names else pa.nulls(len(rows), one.type)
        for one in schema
    ]
    return pa.table(columns, schema=schema)


def _has_key(markers: pa.Table, key: str) -> Any:
    return markers[key].is_valid()
