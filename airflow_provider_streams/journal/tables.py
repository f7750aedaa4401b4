"""The journal's tables, the same on SQLite, Postgres and MySQL.

- Times are whole microseconds since 1970 in UTC. They are exact and in the same order on every database.
- A name can be longer than an index allows, and some collations take `a` for `A`. So unique constraints cover SHA-256
  digests in hex; the names are in columns of their own.
- Every table's name starts with `streams_`, so the journal may share a database with others.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    ForeignKey,
    FromClause,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    and_,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Dialect

from airflow_provider_streams.model.window.window import Window, microseconds_of, moment_of_us

DIGEST_LENGTH = 64
STATE_LENGTH = 16

Id = BigInteger().with_variant(Integer(), "sqlite")
"""SQLite numbers rows itself only in a column of exactly this type."""

LargeText = Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
"""Text of any length: MySQL's TEXT ends at 64 KB, and a plan may take megabytes."""


class Moment(TypeDecorator[datetime]):
    """An aware datetime, stored as microseconds since 1970, read back in UTC."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        """Exact integers, never floats."""
        return None if value is None else microseconds_of(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """The reverse of `process_bind_param`."""
        return None if value is None else moment_of_us(value)


class Json(TypeDecorator[Any]):
    """Plain JSON values, stored as compact text that keeps the order of keys."""

    impl = LargeText
    cache_ok = True

    def process_bind_param(self, value: Any | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """None becomes null."""
        return None if value is None else json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any | None:  # noqa: ARG002
        """The reverse of `process_bind_param`."""
        return None if value is None else json.loads(value)


def digest(text: str) -> str:
    """64 hex digits that stand for a name in indexes."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_window(table: FromClause, reader_id: int | None, window: Window) -> ColumnElement[bool]:
    """Whether a row of `pins` or `runs` belongs to exactly this window of a reader; no reader has none."""
    columns = table.c
    return and_(columns.reader_id == reader_id, columns.window_start == window.start, columns.window_end == window.end)


def shares_time(table: FromClause, reader_id: int | None, span: Window) -> ColumnElement[bool]:
    """Whether a row of `pins` or `runs` belongs to a window of a reader that shares time with a span."""
    columns = table.c
    return and_(columns.reader_id == reader_id, columns.window_start < span.end, columns.window_end > span.start)


metadata = MetaData()

_MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mariadb_engine": "InnoDB",
    "mariadb_charset": "utf8mb4",
}

sources = Table(
    "streams_sources",
    metadata,
    Column("id", Id, primary_key=True),
    Column("digest", String(DIGEST_LENGTH), nullable=False),
    Column("source_key", LargeText, nullable=False),
    Column("source", Json),
    UniqueConstraint("digest", name="streams_sources_once"),
    **_MYSQL,
)
"""What is read: `Source.key`, and the source itself as JSON; null: so far only its key was given."""

readers = Table(
    "streams_readers",
    metadata,
    Column("id", Id, primary_key=True),
    Column("source_id", Id, ForeignKey("streams_sources.id"), nullable=False),
    Column("digest", String(DIGEST_LENGTH), nullable=False),
    Column("reader", Text, nullable=False),
    Column("watched_from", Moment),
    Column("version", BigInteger, nullable=False, default=0),
    Column("pruned_at", Moment),
    UniqueConstraint("source_id", "digest", name="streams_readers_once"),
    **_MYSQL,
)
"""Under which name a source's windows are covered.

`watched_from`: the first window that was complete when a trigger first watched for this reader; null: none did.
`version`: greater after each change of what the journal knows of the reader's windows.
`pruned_at`: when `[streams] journal_keep` last pruned its history; null: never.
"""

landings = Table(
    "streams_landings",
    metadata,
    Column("id", Id, primary_key=True),
    Column("reader_id", Id, ForeignKey("streams_readers.id"), nullable=False),
    Column("generation", Integer, nullable=False),
    Column("landing", Json, nullable=False),
    Column("table_id", String(DIGEST_LENGTH), nullable=False),
    Column("columns", Json),
    Column("window_schedule", Text),
    Column("basis", String(STATE_LENGTH)),
    Column("made_at", Moment, nullable=False),
    Column("key_rule", Json),
    UniqueConstraint("reader_id", "generation", name="streams_landings_once"),
    **_MYSQL,
)
"""What a reader lands. The greatest generation counts, and only runs under it cover windows.

`landing` is its JSON. `table_id` is written into the table. `columns` are the table's: name, type, and the greatest
number of the reader's pins when the table got it; null: nothing has landed. `window_schedule` says how its windows
tile time, `basis` how times become cuts, and `key_rule` how the reader's DAG writes partition keys; null: not known.
"""

pins = Table(
    "streams_pins",
    metadata,
    Column("id", Id, primary_key=True),
    Column("reader_id", Id, ForeignKey("streams_readers.id"), nullable=False),
    Column("window_start", Moment, nullable=False),
    Column("window_end", Moment, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("fingerprint", String(DIGEST_LENGTH), nullable=False),
    Column("pinned_at", Moment, nullable=False),
    Column("plan", LargeText, nullable=False),
    Column("start_skew_ms", BigInteger),
    Column("end_skew_ms", BigInteger),
    Column("follows_id", Id),
    Column("void_at", Moment),
    UniqueConstraint("reader_id", "window_start", "window_end", "generation", name="streams_pins_once"),
    Index("streams_pins_by_end", "reader_id", "window_end"),
    **_MYSQL,
)
"""Pinned plans. The greatest generation of a window counts, the others are history.

Basis `chained`: `follows_id` is the pin after which this one goes on. A pin with `void_at` no longer counts: a later
window of its chain took its place.

Basis `append`: the skews say how much later than the window's edges its cuts were recorded. Other bases have none.
"""

runs = Table(
    "streams_runs",
    metadata,
    Column("id", Id, primary_key=True),
    Column("reader_id", Id, ForeignKey("streams_readers.id"), nullable=False),
    Column("window_start", Moment, nullable=False),
    Column("window_end", Moment, nullable=False),
    Column("pin_id", Id, ForeignKey("streams_pins.id")),
    Column("state", String(STATE_LENGTH), nullable=False),
    Column("dag_id", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("map_index", Integer, nullable=False),
    Column("try_number", Integer, nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("finished_at", Moment),
    Column("rows", BigInteger, nullable=False, default=0),
    Column("bytes", BigInteger, nullable=False, default=0),
    Column("verdict", Text),
    Column("error_type", Text),
    Column("error_message", Text),
    Column("receipt", Json),
    Column("late_rows", BigInteger),
    Column("landing_id", Id),
    Column("written", BigInteger),
    Column("announced_at", Moment),
    Column("announced_by", Json),
    Column("announced_key", Text),
    Column("quarantined", BigInteger, nullable=False, default=0),
    Column("dropped", BigInteger, nullable=False, default=0),
    Index("streams_runs_by_window", "reader_id", "window_start", "window_end"),
    Index("streams_runs_by_pin", "pin_id", "state"),
    **_MYSQL,
)
"""Every try to cover a window: `running`, `covered`, `failed` or `lost`. No pin: it failed before it had a plan.

Of covered runs: `late_rows` counts rows of its window that appeared after it was read; null: not counted. `written`
counts rows in the table; null: not counted. `announced_at` is when its asset event was given to Airflow, under the
partition key `announced_key`, if any. `announced_by` is the task instance that gave it, until that is known to have
succeeded: Airflow takes no event from a task that fails. `quarantined` and `dropped` count events that could not be
decoded. No `landing_id`: what it read was proven only.
"""

cuts = Table(
    "streams_cuts",
    metadata,
    Column("id", Id, primary_key=True),
    Column("source_id", Id, ForeignKey("streams_sources.id"), nullable=False),
    Column("sampled_from", Moment, nullable=False),
    Column("sampled_to", Moment, nullable=False),
    Column("recorder", Text, nullable=False),
    Column("cut", Json, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("incarnation", Json),
    Index("streams_cuts_by_time", "source_id", "sampled_from"),
    Index("streams_cuts_in_order", "source_id", "sequence", unique=True),
    **_MYSQL,
)
"""Recorded tails of sources, for the basis `append`.

`sequence` numbers a source's entries 1, 2, 3, .. without a gap, except for pruned ones. Each was sampled later than
the one before it, and is not before it in any shard. `incarnation`: which incarnation of the source it is a cut of;
null: not known.
"""

edges = Table(
    "streams_edges",
    metadata,
    Column("id", Id, primary_key=True),
    Column("source_id", Id, ForeignKey("streams_sources.id"), nullable=False),
    Column("moment", Moment, nullable=False),
    Column("cut_id", Id, ForeignKey("streams_cuts.id"), nullable=False),
    UniqueConstraint("source_id", "moment", name="streams_edges_once"),
    Index("streams_edges_by_cut", "cut_id"),
    **_MYSQL,
)
"""The recorded cut that a moment got when a window first needed it: both windows that meet there must get the same."""

tail_observations = Table(
    "streams_tail_observations",
    metadata,
    Column("id", Id, primary_key=True),
    Column("source_id", Id, ForeignKey("streams_sources.id"), nullable=False),
    Column("seen_at", Moment, nullable=False),
    Column("tail_observation", Json, nullable=False),
    UniqueConstraint("source_id", "seen_at", name="streams_tail_observations_once"),
    **_MYSQL,
)
"""Where sources ended at some moments, as `TailObservation`'s JSON: the first time, and now and then since."""
