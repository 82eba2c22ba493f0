"""Keep what the facilitator saw of each issue, what it said, and how far it has read."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def _text(name: str, default: str = "") -> sa.Column[str]:
    return sa.Column(name, sa.Text(), server_default=sa.text(f"'{default}'"), nullable=False)


def _needed(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _number() -> sa.Column[int]:
    return sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False)


def upgrade() -> None:
    op.create_table(
        "field_issues",
        _needed("project_id"),
        _number(),
        _text("state"),
        _text("last_at"),
        _text("stamp"),
        _text("assessment", "{}"),
        _text("said"),
        _text("said_state"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_field_issues_project_id")),
        sa.PrimaryKeyConstraint("project_id", "number", name=op.f("pk_field_issues")),
    )
    op.create_table(
        "field_commits",
        _needed("project_id"),
        _number(),
        _text("commits", "[]"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_field_commits_project_id")),
        sa.PrimaryKeyConstraint("project_id", "number", name=op.f("pk_field_commits")),
    )
    op.create_table(
        "field_positions",
        _needed("project_id"),
        _needed("name"),
        _text("value"),
        _text("updated_at"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_field_positions_project_id")),
        sa.PrimaryKeyConstraint("project_id", "name", name=op.f("pk_field_positions")),
    )
