"""Recorded cuts get an order of their own, and pins how far their edges moved."""  # noqa: INP001 - run by Alembic, by path

from __future__ import annotations

from collections import Counter

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_INDEX = "streams_cuts_in_order"
_COLUMNS = (
    ("streams_cuts", "sequence"),
    ("streams_pins", "start_skew_ms"),
    ("streams_pins", "end_skew_ms"),
)


def upgrade() -> None:
    """Add what is not there: MySQL cannot take back the changes of a migration that was killed halfway."""
    connection = op.get_bind()
    for table, column in _COLUMNS:
        if column not in {found["name"] for found in sa.inspect(connection).get_columns(table)}:
            op.add_column(table, sa.Column(column, sa.BigInteger))
    _number(connection)
    if _INDEX not in {found["name"] for found in sa.inspect(connection).get_indexes("streams_cuts")}:
        op.create_index(_INDEX, "streams_cuts", ["source_id", "sequence"], unique=True)


def _number(connection: sa.Connection) -> None:
    """Number cuts from before in the order they were sampled."""
    cuts = sa.table("streams_cuts", *(sa.column(name) for name in ("id", "source_id", "sampled_from", "sequence")))
    counts: Counter[int] = Counter()
    query = sa.select(cuts.c.id, cuts.c.source_id).order_by(cuts.c.source_id, cuts.c.sampled_from, cuts.c.id)
    if connection.execute(query.where(cuts.c.sequence.is_(None)).limit(1)).first() is None:
        return
    for row in connection.execute(query).all():
        counts[row.source_id] += 1
        connection.execute(sa.update(cuts).where(cuts.c.id == row.id).values(sequence=counts[row.source_id]))


def downgrade() -> None:
    """Forget the order and the skews."""
    op.drop_index(_INDEX, "streams_cuts")
    for table, column in _COLUMNS:
        op.drop_column(table, column)
