"""What was seen of a source and when, so that later nobody must believe that nothing was removed since."""  # noqa: INP001 - run by Alembic, by path

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# Frozen: what the table looked like at this revision, whatever `journal.tables` says today.
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_LARGE = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
_MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mariadb_engine": "InnoDB",
    "mariadb_charset": "utf8mb4",
}


def upgrade() -> None:
    """Add what is not there: MySQL cannot take back the changes of a migration that was killed halfway."""
    tables = sa.MetaData()
    sa.Table("streams_sources", tables, sa.Column("id", _ID, primary_key=True))
    sightings = sa.Table(
        "streams_sightings",
        tables,
        sa.Column("id", _ID, primary_key=True),
        sa.Column("source_id", _ID, sa.ForeignKey("streams_sources.id"), nullable=False),
        sa.Column("seen_at", sa.BigInteger, nullable=False),
        sa.Column("sighting", _LARGE, nullable=False),
        sa.UniqueConstraint("source_id", "seen_at", name="streams_sightings_once"),
        **_MYSQL,
    )
    sightings.create(op.get_bind(), checkfirst=True)


def downgrade() -> None:
    """Forget what was seen."""
    op.drop_table("streams_sightings")
