"""Keep which repository an SQLite file belongs to."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("repository", "repository_path"):
        op.add_column("projects", sa.Column(name, sa.Text(), server_default=sa.text("''"), nullable=False))
