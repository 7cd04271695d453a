import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "debate_spending",
        sa.Column("debate_id", sa.String(36), sa.ForeignKey("debates.id"), primary_key=True),
        sa.Column("entry", sa.String(32), primary_key=True),
        sa.Column("tokens", sa.Integer, nullable=False),
        sa.Column("cost", sa.Float, nullable=False),
    )
