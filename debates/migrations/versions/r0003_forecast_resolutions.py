import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "forecast_resolutions",
        sa.Column("debate_id", sa.String(36), sa.ForeignKey("debates.id"), primary_key=True),
        sa.Column("outcome", sa.String(64), nullable=False),
        sa.Column("resolved_at", sa.String(32), nullable=False),
    )
