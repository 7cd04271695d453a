import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "debate_events",
        sa.Column("debate_id", sa.String(36), sa.ForeignKey("debates.id"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("is_chunk", sa.Boolean, nullable=False),
        sa.Column("event", sa.Text, nullable=False),
    )
    only_chunks = sa.text("is_chunk")
    op.create_index(
        "ix_debate_events_chunks",
        "debate_events",
        ["debate_id"],
        sqlite_where=only_chunks,
        postgresql_where=only_chunks,
    )
