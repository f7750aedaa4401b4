"""Sources stand as JSON beside their keys, also those only watched or recorded; readers note when they were pruned."""  # noqa: INP001 - run by Alembic, by path

from __future__ import annotations

import json
import re
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_BOUNDARIES = "#epoch"
"""Ends the key of an order of boundaries in a stream of Pravega, which is no source."""
# a connection's name may hold colons, and a topic's name commas: what all names of topics begin with tells them apart
_PULSAR = re.compile(r"pulsar:(?P<conn_id>.*?):(?P<pattern>pattern:)?(?P<names>persistent://.*)", re.DOTALL)
_PRAVEGA = re.compile(r"pravega:(?P<conn_id>.*):(?P<stream>[^:/]+/[^:/]+)")


def upgrade() -> None:
    """Add what is not there: MySQL cannot take back the changes of a migration that was killed halfway."""
    connection = op.get_bind()
    if "pruned_at" not in {found["name"] for found in sa.inspect(connection).get_columns("streams_readers")}:
        op.add_column("streams_readers", sa.Column("pruned_at", sa.BigInteger))
    names = ("id", "source_key", "source")
    sources = sa.table("streams_sources", *(sa.column(name) for name in names))
    for row in connection.execute(sa.select(sources)).all():
        before = json.loads(row.source) if row.source else {}
        told = _source_of(row.source_key)
        after = before if told is None or _is_same(before, told) else {**before, **told}
        if after != before:
            written = json.dumps(after, sort_keys=True)
            connection.execute(sa.update(sources).where(sources.c.id == row.id).values(source=written))


def _is_same(before: dict[str, Any], told: dict[str, Any]) -> bool:
    """Whether a source that was written down is the one of its key, whatever more it says; topics come in any order."""
    return all(_plain(before.get(name)) == _plain(value) for name, value in told.items())


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, list) else value or None


def _source_of(key: str) -> dict[str, Any] | None:
    """The source of a key; None: it does not tell, and whoever reads it next writes it down."""
    if (found := _PULSAR.fullmatch(key)) is not None:
        names = found["names"]
        topics = [] if found["pattern"] else re.split(r",(?=persistent://)", names)
        pattern = names if found["pattern"] else None
        return {"system": "pulsar", "topics": topics, "pattern": pattern, "conn_id": found["conn_id"]}
    if (found := _PRAVEGA.fullmatch(key)) is not None and not key.endswith(_BOUNDARIES):
        return {"system": "pravega", "stream": found["stream"], "conn_id": found["conn_id"]}
    return None


def downgrade() -> None:
    """Forget when readers were pruned; the sources stay."""
    op.drop_column("streams_readers", "pruned_at")
