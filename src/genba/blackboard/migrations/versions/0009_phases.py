"""Keep the phases of a task that are complete."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tasks", sa.Column("phases", sa.Text(), server_default=sa.text("'[]'"), nullable=False))
