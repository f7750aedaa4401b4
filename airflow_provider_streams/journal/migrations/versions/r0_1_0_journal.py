"""The journal's tables."""  # noqa: INP001 - run by Alembic, by path

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0_1_0"
down_revision = None
branch_labels = None
depends_on = None

# Frozen: what the tables looked like at this revision, whatever `journal.tables` says today.
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_LARGE = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
_MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mariadb_engine": "InnoDB",
    "mariadb_charset": "utf8mb4",
}
_TABLES = sa.MetaData()

sa.Table(
    "streams_sources",
    _TABLES,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("source_key", _LARGE, nullable=False),
    sa.Column("source", _LARGE),
    sa.UniqueConstraint("digest", name="streams_sources_once"),
    **_MYSQL,
)
sa.Table(
    "streams_readers",
    _TABLES,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("source_id", _ID, sa.ForeignKey("streams_sources.id"), nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("reader", sa.Text, nullable=False),
    sa.Column("watched_from", sa.BigInteger),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("pruned_at", sa.BigInteger),
    sa.UniqueConstraint("source_id", "digest", name="streams_readers_once"),
    **_MYSQL,
)
sa.Table(
    "streams_landings",
    _TABLES,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("reader_id", _ID, sa.ForeignKey("streams_readers.id"), nullable=False),
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("landing", _LARGE, nullable=False),
    sa.Column("table_id", sa.String(64), nullable=False),
    sa.Column("columns", _LARGE),
    sa.Column("window_schedule", sa.Text),
    sa.Column("basis", sa.String(16)),
    sa.Column("key_rule", _LARGE),
    sa.Column("made_at", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("reader_id", "generation", name="streams_landings_once"),
    **_MYSQL,
)
sa.Table(
    "streams_pins",
    _TABLES,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("reader_id", _ID, sa.ForeignKey("streams_readers.id"), nullable=False),
    sa.Column("window_start", sa.BigInteger, nullable=False),
    sa.Column("window_end", sa.BigInteger, nullable=False),
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("fingerprint", sa.String(64), nullable=False),
    sa.Column("pinned_at", sa.BigInteger, nullable=False),
    sa.Column("plan", _LARGE, nullable=False),
    sa.Column("start_skew_ms", sa.BigInteger),
    sa.Column("end_skew_ms", sa.BigInteger),
    sa.Column("follows_id", _ID),
    sa.Column("void_at", sa.BigInteger),
    sa.UniqueConstraint("reader_id", "window_start", "window_end", "generation", name="streams_pins_once"),
    sa.Index("streams_pins_by_end", "reader_id", "window_end"),
    **_MYSQL,
)
sa.Table(
    "streams_runs",
    _TABLES,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("reader_id", _ID, sa.ForeignKey("streams_readers.id"), nullable=False),
    sa.Column("window_start", sa.BigInteger, nullable=False),
    sa.Column("window_end", sa.BigInteger, nullable=False),
    sa.Column("pin_id", _ID, sa.ForeignKey("streams_pins.id")),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("dag_id", sa.Text, nullable=False),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("task_id", sa.Text, nullable=False),
    sa.Column("map_index", sa.Integer, nullable=False),
    sa.Column("try_number", sa.Integer, nullable=False),
    sa.Column("started_at", sa.BigInteger, nullable=False),
    sa.Column("finished_at", sa.BigInteger),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("verdict", sa.Text),
    sa.Column("error_type", sa.Text),
    sa.Column("error_message", sa.Text),
    sa.Column("receipt", _LARGE),
    sa.Column("late_rows", sa.BigInteger),
    sa.Column("landing_id", _ID),
    sa.Column("written", sa.BigInteger),
    sa.Column("announced_at", sa.BigInteger),
    sa.Column("announced_by", _LARGE),
    sa.Column("announced_key", sa.Text),
    sa.Column("quarantined", sa.BigInteger, nullable=False),
    sa.Column("dropped", sa.BigInteger, nullable=False),
    sa.Index("streams_runs_by_window", "reader_id", "window_start", "window_end"),
    sa.Index("streams_runs_by_pin", "pin_id", "state"),
    **_MYSQL,
)
sa.Table(
    "streams_cuts",
    _TABLES,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("source_id", _ID, sa.ForeignKey("streams_sources.id"), nullable=False),
    sa.Column("sampled_from", sa.BigInteger, nullable=False),
    sa.Column("sampled_to", sa.BigInteger, nullable=False),
    sa.Column("recorder", sa.Text, nullable=False),
    sa.Column("cut", _LARGE, nullable=False),
    sa.Column("sequence", sa.BigInteger, nullable=False),
    sa.Column("incarnation", _LARGE),
    sa.Index("streams_cuts_by_time", "source_id", "sampled_from"),
    sa.Index("streams_cuts_in_order", "source_id", "sequence", unique=True),
    **_MYSQL,
)
sa.Table(
    "streams_edges",
    _TABLES,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("source_id", _ID, sa.ForeignKey("streams_sources.id"), nullable=False),
    sa.Column("moment", sa.BigInteger, nullable=False),
    sa.Column("cut_id", _ID, sa.ForeignKey("streams_cuts.id"), nullable=False),
    sa.UniqueConstraint("source_id", "moment", name="streams_edges_once"),
    sa.Index("streams_edges_by_cut", "cut_id"),
    **_MYSQL,
)
sa.Table(
    "streams_tail_observations",
    _TABLES,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("source_id", _ID, sa.ForeignKey("streams_sources.id"), nullable=False),
    sa.Column("seen_at", sa.BigInteger, nullable=False),
    sa.Column("tail_observation", _LARGE, nullable=False),
    sa.UniqueConstraint("source_id", "seen_at", name="streams_tail_observations_once"),
    **_MYSQL,
)


def upgrade() -> None:
    """Create what is not there: MySQL cannot take back the tables of a migration that was killed halfway."""
    _TABLES.create_all(op.get_bind(), checkfirst=True)


def downgrade() -> None:
    """Drop the journal."""
    _TABLES.drop_all(op.get_bind())
