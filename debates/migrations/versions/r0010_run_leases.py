"""Adds columns for a server's lease on a run, separate from the lease on the record."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("debates", sa.Column("run_owner", sa.String(36)))
    op.add_column("debates", sa.Column("run_holder", sa.String(255)))
    op.add_column("debates", sa.Column("run_until", sa.String(32)))
