"""Who sent a window's asset event, and under which key."""  # noqa: INP001 - run by Alembic, by path

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_LARGE = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
_COLUMNS = (
    ("streams_runs", "announced_by", _LARGE),
    ("streams_runs", "announced_key", sa.Text()),
    ("streams_landings", "key_rule", _LARGE),
)


def upgrade() -> None:
    """Add the columns that are missing: a migration that was killed on MySQL leaves some."""
    for table, name, kind in _COLUMNS:
        if name not in _names(table):
            op.add_column(table, sa.Column(name, kind))


def downgrade() -> None:
    """The reverse."""
    for table, name, _ in _COLUMNS:
        if name in _names(table):
            op.drop_column(table, name)


def _names(table: str) -> set[str]:
    return {column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)}
