"""Readers have a landing, plans hold together, sources stand as JSON beside their keys."""  # noqa: INP001 - run by Alembic, by path

from __future__ import annotations

import hashlib
import json
import re
import uuid
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0004"
down_revision = "0003"
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
_COLUMNS: tuple[tuple[str, str, Any], ...] = (
    ("streams_sources", "source", _LARGE),
    ("streams_readers", "watched_from", sa.BigInteger),
    ("streams_readers", "version", sa.BigInteger),
    ("streams_pins", "follows_id", _ID),
    ("streams_pins", "void_at", sa.BigInteger),
    ("streams_runs", "landing_id", _ID),
    ("streams_runs", "written", sa.BigInteger),
    ("streams_runs", "announced_at", sa.BigInteger),
)
_INDEXES = (
    ("streams_pins", "streams_pins_by_end", ["reader_id", "window_end"]),
    ("streams_runs", "streams_runs_by_pin", ["pin_id", "state"]),
)
_SPECIAL = re.compile(r"[*+?\[\](){}|^$\\]")
_PARTITION = re.compile(r"-partition-(0|[1-9][0-9]*)$")


def upgrade() -> None:
    """Add what is not there: MySQL cannot take back the changes of a migration that was killed halfway."""
    connection = op.get_bind()
    _add_landings(connection)
    for table, column, kind in _COLUMNS:
        if column not in {found["name"] for found in sa.inspect(connection).get_columns(table)}:
            op.add_column(table, sa.Column(column, kind))
    for table, index, columns in _INDEXES:
        if index not in {found["name"] for found in sa.inspect(connection).get_indexes(table)}:
            op.create_index(index, table, columns)
    _write_sources(connection)
    _land_readers(connection)
    _bind_plans(connection)
    # what was covered so far had its event, or nobody waited for it
    runs = _table("streams_runs", "announced_at", "finished_at", "state")
    was_covered = (runs.c.state == "covered", runs.c.announced_at.is_(None))
    connection.execute(sa.update(runs).where(*was_covered).values(announced_at=runs.c.finished_at))


def _add_landings(connection: sa.Connection) -> None:
    tables = sa.MetaData()
    sa.Table("streams_readers", tables, sa.Column("id", _ID, primary_key=True))
    landings = sa.Table(
        "streams_landings",
        tables,
        sa.Column("id", _ID, primary_key=True),
        sa.Column("reader_id", _ID, sa.ForeignKey("streams_readers.id"), nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("landing", _LARGE),
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("columns", _LARGE),
        sa.Column("grid", sa.Text),
        sa.Column("basis", sa.String(16)),
        sa.Column("made_at", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("reader_id", "generation", name="streams_landings_once"),
        **_MYSQL,
    )
    landings.create(connection, checkfirst=True)


def _table(name: str, *columns: str) -> sa.TableClause:
    return sa.table(name, *(sa.column(column) for column in ("id", *columns)))


def _write_sources(connection: sa.Connection) -> None:
    """The source behind each key; a pattern's key says from now on that it is one."""
    sources = _table("streams_sources", "digest", "source_key", "source")
    for row in connection.execute(sa.select(sources).where(sources.c.source.is_(None))).all():
        written = _source_of(connection, row.id, row.source_key)
        if written is None:
            continue
        key, data = written
        values = {"source_key": key, "digest": hashlib.sha256(key.encode()).hexdigest(), "source": json.dumps(data)}
        connection.execute(sa.update(sources).where(sources.c.id == row.id).values(values))


def _source_of(connection: sa.Connection, source_id: int, key: str) -> tuple[str, dict[str, Any]] | None:
    system, _, rest = key.partition(":")
    conn_id, _, name = rest.partition(":")
    if system == "pravega":
        if name.endswith("#epoch"):
            return None  # an order of boundaries, not a source
        return key, {"system": system, "stream": name, "conn_id": conn_id}
    if system != "pulsar":
        return key, {"system": system, "name": name, "conn_id": conn_id}
    if _is_pattern(name, _planned_names(connection, source_id)):
        return f"pulsar:{conn_id}:pattern:{name}", {"system": system, "pattern": name, "conn_id": conn_id}
    return key, {"system": system, "topics": name.split(","), "conn_id": conn_id}


def _is_pattern(name: str, planned: set[str]) -> bool:
    """Whether a key's name is a pattern: as the plans of it prove, else as it looks."""
    if {_PARTITION.sub("", topic) for topic in name.split(",")} == planned:
        return False
    return bool(_SPECIAL.search(name)) or (bool(planned) and all(re.fullmatch(name, topic) for topic in planned))


def _planned_names(connection: sa.Connection, source_id: int) -> set[str]:
    """The topics that the newest plan of a source reads; none: there is no plan."""
    readers, pins = _table("streams_readers", "source_id"), _table("streams_pins", "reader_id", "plan")
    query = (
        sa.select(pins.c.plan)
        .where(pins.c.reader_id.in_(sa.select(readers.c.id).where(readers.c.source_id == source_id)))
        .order_by(pins.c.id.desc())
        .limit(1)
    )
    plan = connection.execute(query).scalar()
    return set() if plan is None else set(json.loads(plan)["source"]["names"])


def _land_readers(connection: sa.Connection) -> None:
    """What was read so far counts under a landing that nobody noted; the reader's next run makes it its own."""
    readers = _table("streams_readers")
    runs = _table("streams_runs", "reader_id", "landing_id", "started_at")
    landings = _table(
        "streams_landings", "reader_id", "generation", "landing", "table_id", "columns", "grid", "basis", "made_at"
    )
    landed = sa.select(landings.c.reader_id)
    for (reader,) in connection.execute(sa.select(readers.c.id).where(readers.c.id.not_in(landed))).all():
        since = connection.execute(sa.select(sa.func.min(runs.c.started_at)).where(runs.c.reader_id == reader)).scalar()
        if since is not None:
            values = {"reader_id": reader, "generation": 1, "table_id": uuid.uuid4().hex, "made_at": since}
            connection.execute(sa.insert(landings).values(values))
    of_reader = sa.select(landings.c.id).where(landings.c.reader_id == runs.c.reader_id).scalar_subquery()
    connection.execute(sa.update(runs).where(runs.c.landing_id.is_(None)).values(landing_id=of_reader))


def _bind_plans(connection: sa.Connection) -> None:
    """Plans of version 1 become plans of version 2, whose digests bind their windows, ranges and splits."""
    pins = _table("streams_pins", "fingerprint", "plan")
    runs = _table("streams_runs", "pin_id", "receipt")
    for number in connection.execute(sa.select(pins.c.id).order_by(pins.c.id)).scalars().all():
        text = connection.execute(sa.select(pins.c.plan).where(pins.c.id == number)).scalar() or "{}"
        plan = json.loads(text)
        if plan.get("version") != 1:
            continue
        bound = _bound(plan)
        values = {"plan": json.dumps(bound, separators=(",", ":")), "fingerprint": bound["fingerprint"]}
        connection.execute(sa.update(pins).where(pins.c.id == number).values(values))
        tries = sa.select(runs).where(runs.c.pin_id == number, runs.c.receipt.is_not(None))
        for run in connection.execute(tries).all():
            receipt = {**json.loads(run.receipt), "fingerprint": bound["fingerprint"]}
            written = json.dumps(receipt, separators=(",", ":"))
            connection.execute(sa.update(runs).where(runs.c.id == run.id).values(receipt=written))


def _bound(plan: dict[str, Any]) -> dict[str, Any]:
    parts = {"tail": {}, "remarks": [], **plan, "version": 2, "terms": None}
    del parts["fingerprint"]
    ranges = [[one["shard"], one["start"], one["end"]] for one in parts["ranges"]]
    names = ("source", "window", "start_cut", "end_cut", "filter", "losses")
    decisive = {**{name: parts[name] for name in names}, "ranges": ranges}
    return {**parts, "fingerprint": _digest(decisive), "checksum": _digest(parts)}


def _digest(value: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:32]


def downgrade() -> None:
    """Forget landings. Plans stay of version 2, which earlier releases refuse."""
    for table, index, _ in _INDEXES:
        op.drop_index(index, table)
    for table, column, _ in _COLUMNS:
        op.drop_column(table, column)
    op.drop_table("streams_landings")
