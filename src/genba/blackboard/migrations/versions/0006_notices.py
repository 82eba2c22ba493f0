"""Keep who was told of what waits for a person."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _text(name: str, default: str = "") -> sa.Column[str]:
    return sa.Column(name, sa.Text(), server_default=sa.text(f"'{default}'"), nullable=False)


def _needed(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _whole(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), server_default=sa.text("0"), nullable=False)


def upgrade() -> None:
    op.create_table(
        "notices",
        sa.Column("id", KEY, nullable=False),
        _needed("project_id"),
        sa.Column("escalation_id", KEY, nullable=False),
        _needed("channel"),
        _whole("reminder"),
        _text("status", "pending"),
        _whole("attempts"),
        _text("not_before"),
        _text("owner"),
        _text("until"),
        _text("error"),
        _needed("created_at"),
        _text("sent_at"),
        sa.CheckConstraint(
            "status IN ('pending', 'sending', 'sent', 'failed', 'withdrawn')", name=op.f("ck_notices_status")
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_notices_project_id")),
        sa.ForeignKeyConstraint(["escalation_id"], ["escalations.id"], name=op.f("fk_notices_escalation_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notices")),
        sa.UniqueConstraint(
            "escalation_id", "channel", "reminder", name=op.f("uq_notices_escalation_id_channel_reminder")
        ),
    )
    op.create_index("ix_notices_status", "notices", ["project_id", "status", "channel", "id"])
