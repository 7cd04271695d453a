"""Lets a fork's event refer to the event that it shares with the parent."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("debate_events", sa.Column("source_id", sa.String(36)))
    op.add_column("debate_events", sa.Column("source_seq", sa.Integer))
    only_shared = sa.text("source_id IS NOT NULL")
    op.create_index(
        "ix_debate_events_sources",
        "debate_events",
        ["source_id", "source_seq"],
        sqlite_where=only_shared,
        postgresql_where=only_shared,
    )
