"""Create all tables: the baseline before the first release."""

from alembic import op

from genba.blackboard.database.schema import metadata

revision = "0011"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    metadata.create_all(op.get_bind())
