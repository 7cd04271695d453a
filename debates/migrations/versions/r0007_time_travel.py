"""Adds tables for recorded model calls and for the origins of forks."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "debate_calls",
        sa.Column("debate_id", sa.String(36), sa.ForeignKey("debates.id"), primary_key=True),
        sa.Column("asked", sa.String(200), primary_key=True),
        sa.Column("messages", sa.String(32), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("call", sa.Text, nullable=False),
    )
    op.create_table(
        "debate_forks",
        sa.Column("debate_id", sa.String(36), sa.ForeignKey("debates.id"), primary_key=True),
        sa.Column("parent_id", sa.String(36), nullable=False, index=True),
        sa.Column("round", sa.Integer),
        sa.Column("node", sa.String(32), nullable=False),
        sa.Column("edited", sa.String(200)),
    )
