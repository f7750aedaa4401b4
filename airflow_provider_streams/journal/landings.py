"""What each reader lands: one landing counts at a time, and only runs under it cover windows."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Insert, RowMapping, exists, func, insert, select, update

from airflow_provider_streams.journal.tables import landings, pins, runs
from airflow_provider_streams.model.landing import Schema


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


@dataclass(frozen=True, slots=True)
class NewLanding:
    """What is to become a reader's landing."""

    landing: Mapping[str, Any]
    """`Landing.to_json`."""
    grid: str | None = None
    basis: str | None = None


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
    """What rows the table has now; columns are only ever added."""
    before = _columns(connection, landing_id)
    reader = select(landings.c.reader_id).where(landings.c.id == landing_id).scalar_subquery()
    # of the reader's own plans, for the newest one of a window is kept as long as the reader: SQLite gives free numbers
    # to others again
    newest = connection.execute(select(func.max(pins.c.id)).where(pins.c.reader_id == reader)).scalar()
    merged = {**before, **{name: [kind, *before.get(name, [kind, newest])[1:]] for name, kind in columns}}
    if merged != before:
        written = json.dumps([[name, *rest] for name, rest in merged.items()])
        connection.execute(update(landings).where(landings.c.id == landing_id).values(columns=written))


def columns_since(connection: Connection, landing_id: int, pin_id: int) -> tuple[str, ...]:
    """The columns that the table got after a plan was pinned; plans are numbered in order."""
    known = _columns(connection, landing_id)
    return tuple(name for name, (_, *newest) in known.items() if newest and pin_id <= newest[0])


def _columns(connection: Connection, landing_id: int) -> dict[str, list[Any]]:
    """By name: its type, and the newest plan of the reader when the table got it, if that was noted."""
    kept = connection.execute(select(landings.c.columns).where(landings.c.id == landing_id)).scalar()
    return {name: rest for name, *rest in json.loads(kept)} if kept else {}


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
