"""Keep the day on which a task is due."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tasks", sa.Column("due", sa.Text(), server_default=sa.text("''"), nullable=False))
