"""Runs remember how many rows of their window appeared after it was read."""  # noqa: INP001 - run by Alembic, by path

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what is not there: MySQL cannot take back the changes of a migration that was killed halfway."""
    if "late_rows" not in {found["name"] for found in sa.inspect(op.get_bind()).get_columns("streams_runs")}:
        op.add_column("streams_runs", sa.Column("late_rows", sa.BigInteger))


def downgrade() -> None:
    """Forget the counts."""
    op.drop_column("streams_runs", "late_rows")
