"""What each reader lands: one landing counts at a time, and only runs under it cover windows."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Insert, Row, Subquery, and_, exists, func, insert, or_, select, update

from airflow_provider_streams.journal import row_ids
from airflow_provider_streams.journal.row_ids import JournalPart
from airflow_provider_streams.journal.tables import digest, landings, pins, readers, runs, sources
from airflow_provider_streams.model.sinks.landing import Schema, grown, new_columns
from airflow_provider_streams.model.window.partition_key import KeyRule

_EARLIER: Final = "earlier"
"""A key in addition to those of `Landing.to_json`: see `StoredLanding.earlier`."""


@dataclass(frozen=True, slots=True)
class StoredLanding:
    """A reader's landing as the journal keeps it."""

    id: int
    generation: int
    landing: Mapping[str, Any]
    """`Landing.to_json`."""
    table_id: str
    """The mark that is written into the table."""
    columns: Schema | None = None
    """Of the table's rows; None: none have landed, or their columns are not known."""
    window_schedule: str | None = None
    """How its windows tile time, as `parse_schedule` takes it; None: not known."""
    basis: str | None = None
    """How times become cuts; None: not known, for windows between a person's own cuts do not show it."""

    @property
    def target(self) -> str | None:
        """The table; None: there is none."""
        target: str | None = self.landing["target"]
        return target

    @property
    def earlier(self) -> tuple[str, ...]:
        """What its table may be marked with until a window lands: the marks of the landings that it replaces."""
        return tuple(self.landing.get(_EARLIER, ()))

    def filled(self, new: NewLanding) -> StoredLanding:
        """With the window schedule and the basis, where they were not known."""
        return replace(self, window_schedule=self.window_schedule or new.window_schedule, basis=self.basis or new.basis)


@dataclass(frozen=True, slots=True)
class NewLanding:
    """What is to become a reader's landing; see `StoredLanding`."""

    landing: Mapping[str, Any]
    window_schedule: str | None = None
    basis: str | None = None

    def in_place_of(self, kept: StoredLanding) -> NewLanding:
        """The same, whose first window sets aside what the reader has landed so far."""
        return self._after([kept.table_id, *kept.earlier])

    def instead_of(self, kept: StoredLanding) -> NewLanding:
        """The same, as a correction of a landing without rows: in its table, the same marks may be set aside."""
        return self._after(kept.earlier if kept.target == self.landing["target"] else ())

    def _after(self, table_ids: Sequence[str]) -> NewLanding:
        return replace(self, landing={**self.landing, _EARLIER: list(table_ids)}) if table_ids else self


class Landings(JournalPart):
    """What each reader lands."""

    def landing(self, source_key: str, reader: str) -> StoredLanding | None:
        """What a reader lands; None: nothing yet."""
        with self._reading(source_key, reader) as (connection, reader_id):
            return current(connection, reader_id)

    def land_as(self, source_key: str, reader: str, new: NewLanding, *, after: StoredLanding | None) -> StoredLanding:
        """Make this the reader's landing, in place of the one it is known to have; windows are missing from then on.

        Of several at the same moment one wins, and all return it.
        """
        reader_id = row_ids.ensure_reader(self._database, source_key, reader)
        generation = after.generation + 1 if after else 1

        def replacement(connection: Connection) -> StoredLanding | None:
            kept = current(connection, reader_id)
            return kept if kept and kept.generation >= generation else None

        inserted = insertion(reader_id, new, generation)
        return self._database.winner(replacement, lambda: inserted, change=row_ids.change(reader_id))

    def correct_landing(
        self, source_key: str, reader: str, kept: StoredLanding, new: NewLanding
    ) -> StoredLanding | None:
        """As `land_as`, under the same mark; None: a window is covered, or being read, under the one kept."""
        return self._replace(source_key, reader, kept, new, unless=_is_used, table_id=kept.table_id)

    def replace_empty_landing(
        self, source_key: str, reader: str, kept: StoredLanding, new: NewLanding
    ) -> StoredLanding | None:
        """As `land_as`, in place of a landing without rows; None: it has some, or a run may still land some."""
        return self._replace(source_key, reader, kept, new, unless=_holds_rows)

    def _replace(
        self,
        source_key: str,
        reader: str,
        kept: StoredLanding,
        new: NewLanding,
        *,
        unless: Callable[[Connection, int], bool],
        table_id: str | None = None,
    ) -> StoredLanding | None:
        with self._changing(source_key, reader) as (connection, reader_id):
            if reader_id is None or current(connection, reader_id) != kept or unless(connection, kept.id):
                return None
            connection.execute(insertion(reader_id, new, kept.generation + 1, table_id))
            return current(connection, reader_id)

    def holds_rows(self, kept: StoredLanding) -> bool:
        """Whether a run landed rows under a landing, or may still do so."""
        with self._database.reading() as connection:
            return _holds_rows(connection, kept.id)

    def is_landed(self, kept: StoredLanding) -> bool:
        """Whether a window is covered, or being read, under a landing."""
        with self._database.reading() as connection:
            return _is_used(connection, kept.id)

    def adopt_landing(self, source_key: str, reader: str, new: NewLanding) -> StoredLanding | None:
        """Fill in the window schedule and the basis of the reader's landing, if not known; None: it has no landing."""
        with self._changing(source_key, reader) as (connection, reader_id):
            if (kept := current(connection, reader_id)) is None:
                return None
            if (filled := kept.filled(new)) != kept:
                _update(connection, kept.id, window_schedule=filled.window_schedule, basis=filled.basis)
            return filled

    def note_key_rule(self, source_key: str, reader: str, rule: KeyRule) -> None:
        """From now on, the windows of the reader's landing have keys as its DAG's timetable writes them."""
        with self._reading(source_key, reader) as (connection, reader_id):
            kept = current(connection, reader_id)
            if kept is None or key_rule(connection, kept.id) == rule:
                return
        with self._database.writing() as connection:
            _update(connection, kept.id, key_rule=rule)


def key_rule(connection: Connection, landing_id: int) -> KeyRule | None:
    """How partition keys of a landing's windows are written; None: its reader's DAG has not told."""
    return _rule(connection.execute(select(landings.c.key_rule).where(landings.c.id == landing_id)).scalar())


def newest_key_rule(connection: Connection, kept: Subquery) -> KeyRule | None:
    """Among landings that count (see `current_of`): the rule of the newest one whose reader's DAG has told."""
    told = select(landings.c.key_rule).join(kept, landings.c.id == kept.c.id).order_by(landings.c.id.desc())
    return next((_rule(one) for one in connection.execute(told).scalars() if one is not None), None)


def _rule(kept: Sequence[str] | None) -> KeyRule | None:
    return None if kept is None else KeyRule(*kept)


def current(connection: Connection, reader_id: int | None) -> StoredLanding | None:
    """The landing that counts; None: the reader never landed or proved anything."""
    of_reader = select(landings).where(landings.c.reader_id == reader_id)
    row = connection.execute(of_reader.order_by(landings.c.generation.desc()).limit(1)).first()
    return None if row is None else _stored(row)


def current_of(source_keys: Iterable[str], reader: str) -> Subquery:
    """The `id` and `reader_id` of the landings that count for a reader of these sources."""
    of_sources = sources.c.digest.in_([digest(one) for one in source_keys])
    return (
        select(landings.c.id, landings.c.reader_id)
        .join(readers, landings.c.reader_id == readers.c.id)
        .join(sources, readers.c.source_id == sources.c.id)
        .where(of_sources, readers.c.digest == digest(reader), ~_is_replaced())
        .subquery()
    )


def all_current(connection: Connection) -> dict[int, StoredLanding]:
    """The landing of each reader that has one, by the reader's number."""
    return {row.reader_id: _stored(row) for row in connection.execute(select(landings).where(~_is_replaced()))}


def _is_replaced() -> ColumnElement[bool]:
    newer = landings.alias()
    return exists().where(newer.c.reader_id == landings.c.reader_id, newer.c.generation > landings.c.generation)


def insertion(reader_id: int, new: NewLanding, generation: int, table_id: str | None = None) -> Insert:
    """Makes this the landing of a generation, unless another one already is.

    Its table gets a mark of its own, unless one is given.
    """
    return insert(landings).values(
        reader_id=reader_id,
        generation=generation,
        landing=new.landing,
        table_id=table_id or uuid.uuid4().hex,
        window_schedule=new.window_schedule,
        basis=new.basis,
        made_at=datetime.now(UTC),
    )


def redecode(connection: Connection, kept: StoredLanding, payloads: Mapping[str, Any]) -> None:
    """From now on, the same rows land with values and keys decoded as these say, in JSON."""
    if (after := {**kept.landing, **payloads}) != kept.landing:
        _update(connection, kept.id, landing=after)


def note_columns(connection: Connection, landing_id: int, columns: Schema) -> None:
    """Note which columns the table has now; columns, and fields of structs, are only ever added."""
    before = _columns(connection, landing_id)
    reader = select(landings.c.reader_id).where(landings.c.id == landing_id).scalar_subquery()
    # of the reader's own plans, as the newest one of a window is never pruned: SQLite gives free numbers to new rows
    newest = connection.execute(select(func.max(pins.c.id)).where(pins.c.reader_id == reader)).scalar_one()
    held = tuple((one.name, one.kind) for one in before.values())
    new = dict.fromkeys(new_columns(held, columns), newest)
    merged = {
        name: before.get(name, _Column(name, kind, newest)).grown(kind, new) for name, kind in grown(held, columns)
    }
    if merged != before:
        _update(connection, landing_id, columns=[one.to_json() for one in merged.values()])


def columns_since(connection: Connection, landing_id: int, pin_id: int) -> tuple[str, ...]:
    """What the table got after a plan was pinned, as `new_columns` names it; plans are numbered in order."""
    marks = [mark for one in _columns(connection, landing_id).values() for mark in one.marks()]
    return tuple(name for name, newest in marks if pin_id <= newest)


@dataclass(frozen=True, slots=True)
class _Column:
    """One that the table has."""

    name: str
    kind: str
    newest: int
    """The newest plan of the reader when the table got it."""
    fields: Mapping[str, int] = field(default_factory=dict)
    """The same of what its structs got later, as `new_columns` names it."""

    def grown(self, kind: str, new: Mapping[str, int]) -> _Column:
        """Of a type that may hold more, given what is new in the table."""
        inside = {name: newest for name, newest in new.items() if name.startswith(f"{self.name}.")}
        return replace(self, kind=kind, fields={**self.fields, **inside})

    def marks(self) -> list[tuple[str, int]]:
        """The column and its later fields, each with its newest plan."""
        return [(self.name, self.newest), *self.fields.items()]

    def to_json(self) -> list[Any]:
        """Plain JSON values."""
        return [self.name, self.kind, self.newest, dict(self.fields)]


def _is_used(connection: Connection, landing_id: int) -> bool:
    used = exists().where(runs.c.landing_id == landing_id, runs.c.state.in_(("covered", "running")))
    return bool(connection.execute(select(used)).scalar())


def _holds_rows(connection: Connection, landing_id: int) -> bool:
    landed = exists().where(
        runs.c.landing_id == landing_id,
        or_(runs.c.state == "running", and_(runs.c.state == "covered", or_(runs.c.rows > 0, runs.c.quarantined > 0))),
    )
    return bool(connection.execute(select(landed)).scalar())


def _update(connection: Connection, landing_id: int, **values: Any) -> None:
    connection.execute(update(landings).where(landings.c.id == landing_id).values(values))


def _columns(connection: Connection, landing_id: int) -> dict[str, _Column]:
    """By name."""
    kept = connection.execute(select(landings.c.columns).where(landings.c.id == landing_id)).scalar()
    return {name: _Column(name, *rest) for name, *rest in kept or ()}


def _stored(row: Row[Any]) -> StoredLanding:
    columns = None if row.columns is None else tuple((name, kind) for name, kind, *_ in row.columns)
    return StoredLanding(row.id, row.generation, row.landing, row.table_id, columns, row.window_schedule, row.basis)
