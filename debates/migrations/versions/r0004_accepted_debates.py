import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "accepted_debates",
        sa.Column("debate_id", sa.String(36), sa.ForeignKey("debates.id"), primary_key=True),
        sa.Column("task_id", sa.String(200), nullable=False, unique=True),
    )
