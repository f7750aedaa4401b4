"""Runs remember how many events of their window could not be decoded."""  # noqa: INP001 - run by Alembic, by path

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_COUNTS = ("quarantined", "dropped")


def upgrade() -> None:
    """Add what is not there: MySQL cannot take back the changes of a migration that was killed halfway."""
    known = {found["name"] for found in sa.inspect(op.get_bind()).get_columns("streams_runs")}
    for name in _COUNTS:
        if name not in known:
            op.add_column("streams_runs", sa.Column(name, sa.BigInteger))


def downgrade() -> None:
    """Forget the counts; receipts keep them."""
    for name in _COUNTS:
        op.drop_column("streams_runs", name)
