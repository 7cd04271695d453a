import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "debates",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("protocol", sa.String(32), nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.Column("updated_at", sa.String(32), nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("state", sa.JSON, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("demonstration", sa.Boolean, nullable=False),
        sa.Column("user_rating", sa.Integer),
        sa.Column("last_seq", sa.Integer, nullable=False),
        sa.Column("lease_owner", sa.String(36)),
        sa.Column("lease_holder", sa.String(255)),
        sa.Column("lease_until", sa.String(32)),
    )
    op.create_table(
        "debate_turns",
        sa.Column("debate_id", sa.String(36), sa.ForeignKey("debates.id"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("turn", sa.JSON, nullable=False),
    )
