"""What each reader lands: one landing counts at a time, and only runs under it cover windows."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import Connection, Insert, RowMapping, exists, func, insert, select, update

from airflow_provider_streams.journal.tables import landings, pins, runs
from airflow_provider_streams.model.landing import Schema, grown, new_columns

_EARLIER: Final = "earlier"
"""Beside what `Landing.to_json` says: see `KeptLanding.earlier`."""


@dataclass(frozen=True, slots=True)
class KeptLanding:
    """A reader's landing as the journal keeps it."""

    id: int
    generation: int
    landing: Mapping[str, Any] | None
    """`Landing.to_json`; None: from before landings were noted."""
    table_id: str
    """What the table must have been marked with."""
    columns: Schema | None = None
    """Of the table's rows; None: nothing was landed yet, or nobody said."""
    grid: str | None = None
    """How its windows tile time, as `parse_grid` takes it; None: not known."""
    basis: str | None = None
    """How times become cuts; None: not known."""

    @property
    def target(self) -> str | None:
        """The table; None: there is none."""
        return None if self.landing is None else self.landing["target"]

    @property
    def earlier(self) -> tuple[str, ...]:
        """What its table may be marked with until a window lands: the marks of landings that it takes the place of."""
        return tuple((self.landing or {}).get(_EARLIER, ()))


@dataclass(frozen=True, slots=True)
class NewLanding:
    """What is to become a reader's landing."""

    landing: Mapping[str, Any]
    """`Landing.to_json`."""
    grid: str | None = None
    basis: str | None = None

    @property
    def earlier(self) -> tuple[str, ...]:
        """See `KeptLanding.earlier`."""
        return tuple(self.landing.get(_EARLIER, ()))

    def in_place_of(self, kept: KeptLanding) -> NewLanding:
        """The same, before whose first window makes room what the reader landed so far."""
        return self._after([kept.table_id, *kept.earlier])

    def instead_of(self, kept: KeptLanding) -> NewLanding:
        """The same, corrected before anything landed: in that table, the same makes room as was to make room before."""
        return self._after(kept.earlier if kept.target == self.landing["target"] else ())

    def _after(self, table_ids: Sequence[str]) -> NewLanding:
        return replace(self, landing={**self.landing, _EARLIER: list(table_ids)}) if table_ids else self


def current(connection: Connection, reader_id: int | None) -> KeptLanding | None:
    """The landing that counts; None: the reader never landed or proved anything."""
    of_reader = select(landings).where(landings.c.reader_id == reader_id)
    row = connection.execute(of_reader.order_by(landings.c.generation.desc()).limit(1)).mappings().first()
    return None if row is None else _kept(row)


def all_current(connection: Connection) -> dict[int, KeptLanding]:
    """The landing of each reader that has one, by the reader's number."""
    newer = landings.alias()
    is_replaced = exists().where(newer.c.reader_id == landings.c.reader_id, newer.c.generation > landings.c.generation)
    rows = connection.execute(select(landings).where(~is_replaced)).mappings()
    return {row["reader_id"]: _kept(row) for row in rows}


def insertion(reader_id: int, new: NewLanding, generation: int, table_id: str | None = None) -> Insert:
    """Makes this the landing of a generation, unless another one already is.

    Its table gets a mark of its own, unless one is given.
    """
    return insert(landings).values(
        reader_id=reader_id,
        generation=generation,
        landing=json.dumps(new.landing, sort_keys=True),
        table_id=table_id or uuid.uuid4().hex,
        grid=new.grid,
        basis=new.basis,
        made_at=datetime.now(UTC),
    )


def is_used(connection: Connection, landing_id: int) -> bool:
    """Whether a run covered its window under a landing, or may still do so."""
    used = exists().where(runs.c.landing_id == landing_id, runs.c.state.in_(("covered", "running")))
    return bool(connection.execute(select(used)).scalar())


def correct(connection: Connection, reader_id: int, kept: KeptLanding, new: NewLanding) -> KeptLanding | None:
    """Put another landing in place of the one that counts, with the same mark; None: something lies under it.

    The caller holds the reader's lock.
    """
    if current(connection, reader_id) != kept or is_used(connection, kept.id):
        return None
    connection.execute(insertion(reader_id, new, kept.generation + 1, kept.table_id))
    return current(connection, reader_id)


def adopt(connection: Connection, kept: KeptLanding, new: NewLanding) -> KeptLanding:
    """Fill in what was not known of a landing: all of one from before landings were noted, else grid and basis."""
    landing = kept.landing if kept.landing is not None else new.landing
    filled = replace(kept, landing=landing, grid=kept.grid or new.grid, basis=kept.basis or new.basis)
    if filled != kept:
        values = {"landing": json.dumps(landing, sort_keys=True), "grid": filled.grid, "basis": filled.basis}
        connection.execute(update(landings).where(landings.c.id == kept.id).values(values))
    return filled


def redecode(connection: Connection, kept: KeptLanding, payloads: Mapping[str, Any]) -> None:
    """From now on, the same rows land with values and keys decoded as these say, in JSON."""
    if kept.landing is None or dict(kept.landing) == (after := {**kept.landing, **payloads}):
        return
    written = json.dumps(after, sort_keys=True)
    connection.execute(update(landings).where(landings.c.id == kept.id).values(landing=written))


def note_columns(connection: Connection, landing_id: int, columns: Schema) -> None:
    """What rows the table has now; columns, and fields of structs, are only ever added."""
    before = _columns(connection, landing_id)
    reader = select(landings.c.reader_id).where(landings.c.id == landing_id).scalar_subquery()
    # of the reader's own plans, for the newest one of a window is kept as long as the reader: SQLite gives free numbers
    # to others again
    newest = connection.execute(select(func.max(pins.c.id)).where(pins.c.reader_id == reader)).scalar()
    held = tuple((one.name, one.kind) for one in before.values())
    new = dict.fromkeys(new_columns(held, columns), newest)
    merged = {
        name: before.get(name, _Column(name, kind, newest)).grown(kind, new) for name, kind in grown(held, columns)
    }
    if merged != before:
        written = json.dumps([one.to_json() for one in merged.values()])
        connection.execute(update(landings).where(landings.c.id == landing_id).values(columns=written))


def columns_since(connection: Connection, landing_id: int, pin_id: int) -> tuple[str, ...]:
    """What the table got after a plan was pinned, as `new_columns` names it; plans are numbered in order."""
    marks = [mark for one in _columns(connection, landing_id).values() for mark in one.marks()]
    return tuple(name for name, newest in marks if newest is not None and pin_id <= newest)


@dataclass(frozen=True, slots=True)
class _Column:
    """One that the table has."""

    name: str
    kind: str
    newest: int | None = None
    """The newest plan of the reader when the table got it; None: that was not noted."""
    fields: Mapping[str, int | None] = field(default_factory=dict)
    """The same of what its structs got later, as `new_columns` names it."""

    def grown(self, kind: str, new: Mapping[str, int | None]) -> _Column:
        """Of a type that may hold more, as of now; what is new in the table."""
        inside = {name: newest for name, newest in new.items() if name.startswith(f"{self.name}.")}
        return replace(self, kind=kind, fields={**self.fields, **inside})

    def marks(self) -> list[tuple[str, int | None]]:
        """Since when what is there."""
        return [(self.name, self.newest), *self.fields.items()]

    def to_json(self) -> list[Any]:
        """Plain JSON values."""
        return [self.name, self.kind, self.newest, dict(self.fields)]


def _columns(connection: Connection, landing_id: int) -> dict[str, _Column]:
    """By name. Earlier versions noted less of them."""
    kept = connection.execute(select(landings.c.columns).where(landings.c.id == landing_id)).scalar()
    return {name: _Column(name, *rest) for name, *rest in json.loads(kept)} if kept else {}


def _kept(row: RowMapping) -> KeptLanding:
    columns = json.loads(row["columns"]) if row["columns"] else None
    return KeptLanding(
        row["id"],
        row["generation"],
        json.loads(row["landing"]) if row["landing"] else None,
        row["table_id"],
        None if columns is None else tuple((name, kind) for name, kind, *_ in columns),
        row["grid"],
        row["basis"],
    )
