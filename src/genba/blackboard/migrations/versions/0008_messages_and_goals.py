"""Keep how far a session has read its messages, and which goals of agents a person has enabled."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sessions", sa.Column("inbox", sa.BigInteger(), server_default=sa.text("0"), nullable=False))
    op.add_column("task_goals", sa.Column("enabled", sa.Boolean(), server_default=sa.false(), nullable=False))
