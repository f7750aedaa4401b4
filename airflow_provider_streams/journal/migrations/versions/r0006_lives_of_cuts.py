"""Recorded cuts remember which life of their source they are of."""  # noqa: INP001 - run by Alembic, by path

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_LARGE = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    """Add what is not there: MySQL cannot take back the changes of a migration that was killed halfway."""
    if "identity" not in {found["name"] for found in sa.inspect(op.get_bind()).get_columns("streams_cuts")}:
        op.add_column("streams_cuts", sa.Column("identity", _LARGE))


def downgrade() -> None:
    """Forget the lives."""
    op.drop_column("streams_cuts", "identity")
