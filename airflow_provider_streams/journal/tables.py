"""The journal's tables, the same on SQLite, Postgres and MySQL.

- Times are whole microseconds since 1970 in UTC: exact and ordered alike everywhere, whatever a database thinks of
  time zones or fractions of a second.
- Names can be longer than an index allows (a source may list a thousand topics) and some collations take `a` for
  `A`: unique constraints are over SHA-256 digests in hex, the names stand beside them.
- Every table's name starts with `streams_`, so the journal may share a database with others.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Dialect

DIGEST_LENGTH = 64
STATE_LENGTH = 16

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

Id = BigInteger().with_variant(Integer(), "sqlite")
"""SQLite numbers rows by itself only in a column of exactly this type."""

LargeText = Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
"""JSON of plans, receipts and cuts: MySQL's TEXT ends at 64 KB, a plan may take megabytes."""


class Moment(TypeDecorator[datetime]):
    """An aware datetime, stored as microseconds since 1970, read back in UTC."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        """Exact integers, never floats."""
        return None if value is None else (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """The reverse of `process_bind_param`."""
        return None if value is None else moment_of(value)


def moment_of(microseconds: int) -> datetime:
    """A stored moment."""
    return _EPOCH + timedelta(microseconds=microseconds)


def digest(text: str) -> str:
    """64 hex digits that stand for a name in indexes."""
    return hashlib.sha256(text.encode()).hexdigest()


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
    Column("source", LargeText),
    UniqueConstraint("digest", name="streams_sources_once"),
    **_MYSQL,
)
"""What is read: `Source.key`, and the source itself as JSON; null: nobody who knew it wrote yet."""

readers = Table(
    "streams_readers",
    metadata,
    Column("id", Id, primary_key=True),
    Column("source_id", Id, ForeignKey("streams_sources.id"), nullable=False),
    Column("digest", String(DIGEST_LENGTH), nullable=False),
    Column("reader", Text, nullable=False),
    Column("watched_from", Moment),
    Column("version", BigInteger),
    Column("pruned_at", Moment),
    UniqueConstraint("source_id", "digest", name="streams_readers_once"),
    **_MYSQL,
)
"""Under which name a source's windows are covered.

`watched_from`: the first window that was complete when somebody first watched for this reader; null: nobody did.
`version`: another one, greater, after each change of what is known of the reader's windows; null: as after none.
`pruned_at`: when its history was last pruned by `[streams] journal_keep`; null: never.
"""

landings = Table(
    "streams_landings",
    metadata,
    Column("id", Id, primary_key=True),
    Column("reader_id", Id, ForeignKey("streams_readers.id"), nullable=False),
    Column("generation", Integer, nullable=False),
    Column("landing", LargeText),
    Column("table_id", String(DIGEST_LENGTH), nullable=False),
    Column("columns", LargeText),
    Column("grid", Text),
    Column("basis", String(STATE_LENGTH)),
    Column("made_at", Moment, nullable=False),
    UniqueConstraint("reader_id", "generation", name="streams_landings_once"),
    **_MYSQL,
)
"""What a reader lands; the greatest generation counts, and only runs under it cover windows.

`landing` is its JSON; null: runs from before landings were noted, which the next run makes its own. `table_id` is
written into the table. `columns` are those of its rows, `grid` how its windows tile time: null while nobody knows. A
column has a name, a type, and the greatest number of the reader's pins when the table got it; no number: not noted.
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
"""Pinned plans; the greatest generation of a window counts, the others are history.

Of the basis `chained`, `follows_id` is the pin where this one goes on. A pin with `void_at` counts no more: a later
window of its chain took its place.

The skews say how much later than the window's edges its recorded cuts were sampled; no basis but `append` has them.
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
    Column("receipt", LargeText),
    Column("late_rows", BigInteger),
    Column("landing_id", Id),
    Column("written", BigInteger),
    Column("announced_at", Moment),
    Column("quarantined", BigInteger),
    Column("dropped", BigInteger),
    Index("streams_runs_by_window", "reader_id", "window_start", "window_end"),
    Index("streams_runs_by_pin", "pin_id", "state"),
    **_MYSQL,
)
"""Every try to cover a window: `running`, `covered`, `failed` or `lost`. No pin: it failed before it had a plan.

`late_rows` of a covered one: rows of its window that appeared after it was read; null: not counted. No landing:
what was read was proven only. `written`: rows in the table; null: not counted. `announced_at`: when its
asset event was sent. `quarantined`, `dropped`: events of a covered one that could not be decoded; null: none was.
"""

cuts = Table(
    "streams_cuts",
    metadata,
    Column("id", Id, primary_key=True),
    Column("source_id", Id, ForeignKey("streams_sources.id"), nullable=False),
    Column("sampled_from", Moment, nullable=False),
    Column("sampled_to", Moment, nullable=False),
    Column("recorder", Text, nullable=False),
    Column("cut", LargeText, nullable=False),
    Column("sequence", BigInteger),
    Column("identity", LargeText),
    Index("streams_cuts_by_time", "source_id", "sampled_from"),
    Index("streams_cuts_in_order", "source_id", "sequence", unique=True),
    **_MYSQL,
)
"""Recorded tails of sources, for the basis `append`.

A source's entries are numbered 1, 2, 3, .. in `sequence`, without a gap but for pruned ones. Each was sampled later
than the one before it, and lies at or behind it in every shard. `identity`: which life of the source it is a cut of,
as JSON; null: not known.
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
"""Which recorded cut a moment got when first asked for: the two windows beside it must get the same one."""

sightings = Table(
    "streams_sightings",
    metadata,
    Column("id", Id, primary_key=True),
    Column("source_id", Id, ForeignKey("streams_sources.id"), nullable=False),
    Column("seen_at", Moment, nullable=False),
    Column("sighting", LargeText, nullable=False),
    UniqueConstraint("source_id", "seen_at", name="streams_sightings_once"),
    **_MYSQL,
)
"""Where sources ended when somebody looked at them, as `Sighting`'s JSON: the first time, and now and then since."""
