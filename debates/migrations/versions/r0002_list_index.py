from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_index("ix_debates_created_at", "debates", ["created_at"])
