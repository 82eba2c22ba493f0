"""Keep the state-driven workflow: managers, plans of workers, credentials, seats, keys of what was created."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("agents", _text("capabilities", "[]"))
    op.add_column("tasks", _flag("in_plan"))
    _sessions()
    _credentials()
    _seats()
    _subtask_keys()


def _text(name: str, default: str = "") -> sa.Column[str]:
    return sa.Column(name, sa.Text(), server_default=sa.text(f"'{default}'"), nullable=False)


def _needed(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _later(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=True)


def _whole(name: str, default: int = 0) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), server_default=sa.text(str(default)), nullable=False)


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), server_default=sa.false(), nullable=False)


def _old_sessions() -> sa.Table:
    """The table as the second revision left it: SQLite cannot tell its own checks back."""
    return sa.Table(
        "sessions",
        sa.MetaData(),
        sa.Column("id", KEY, nullable=False),
        _needed("run"),
        sa.Column("task_id", KEY, nullable=False),
        _needed("agent_id"),
        _whole("attempt", 1),
        _text("status", "running"),
        _text("branch"),
        _text("base"),
        _text("workdir"),
        _text("host"),
        _whole("process"),
        _later("outcome"),
        _text("reason"),
        _whole("iterations"),
        _whole("tokens"),
        sa.Column("cost", sa.Double(), server_default=sa.text("0"), nullable=False),
        _needed("started_at"),
        _needed("heartbeat_at"),
        _later("ended_at"),
        _text("workflow"),
        _whole("part", 1),
        _text("purpose", "work"),
        _text("waits_for"),
        _text("executor"),
        _text("base_branch"),
        _text("verified"),
        _text("provider"),
        _text("phase"),
        _text("step"),
        _text("changed", "[]"),
        _whole("rounds"),
        _whole("reviews"),
        _text("state"),
        _text("plan"),
        _flag("forgiven"),
        sa.CheckConstraint(
            "outcome IN ('completed', 'incomplete', 'blocked', 'failed', 'aborted', 'budget_exhausted')",
            name=op.f("ck_sessions_outcome"),
        ),
        sa.CheckConstraint("status IN ('running', 'waiting', 'ended')", name=op.f("ck_sessions_status")),
        sa.CheckConstraint("purpose IN ('work', 'plan', 'review', 'integrate')", name=op.f("ck_sessions_purpose")),
        sa.CheckConstraint(
            "waits_for IN ('', 'answer', 'review', 'merge', 'pull_request', 'budget', 'resume')",
            name=op.f("ck_sessions_waits_for"),
        ),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name=op.f("fk_sessions_agent_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_sessions_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("run", name=op.f("uq_sessions_run")),
        sa.UniqueConstraint("task_id", "purpose", "attempt", name=op.f("uq_sessions_task_id_purpose_attempt")),
        sa.Index("ix_sessions_status", "status", "heartbeat_at"),
    )


def _sessions() -> None:
    with op.batch_alter_table("sessions", copy_from=_old_sessions()) as batch:
        batch.drop_constraint(op.f("ck_sessions_purpose"), type_="check")
        batch.create_check_constraint(
            op.f("ck_sessions_purpose"), "purpose IN ('work', 'plan', 'review', 'integrate', 'manage')"
        )
        batch.drop_constraint(op.f("ck_sessions_waits_for"), type_="check")
        batch.create_check_constraint(
            op.f("ck_sessions_waits_for"),
            "waits_for IN ('', 'answer', 'review', 'merge', 'pull_request', 'budget', 'resume', 'parts')",
        )


def _credentials() -> None:
    op.create_table(
        "credentials",
        _needed("id"),
        _needed("project_id"),
        _needed("agent_id"),
        _needed("run"),
        _needed("secret_hash"),
        _needed("expires_at"),
        _later("used_at"),
        _later("revoked_at"),
        _needed("created_at"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name=op.f("fk_credentials_agent_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_credentials_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_credentials")),
    )
    op.create_index("ix_credentials_run", "credentials", ["run"], unique=False)


def _seats() -> None:
    op.create_table(
        "seats",
        _needed("id"),
        _needed("project_id"),
        _needed("agent_id"),
        sa.Column("task_id", KEY, nullable=True),
        _text("run"),
        sa.Column("spawned", sa.Boolean(), nullable=False),
        _needed("token_hash"),
        _text("status", "active"),
        _text("closed"),
        _text("exit"),
        _text("said"),
        _needed("lease_until"),
        _needed("expires_at"),
        _whole("calls"),
        _text("last_action"),
        _needed("created_at"),
        _needed("heartbeat_at"),
        sa.CheckConstraint("status IN ('active', 'closed')", name=op.f("ck_seats_status")),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name=op.f("fk_seats_agent_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_seats_project_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_seats_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_seats")),
    )
    op.create_index("ix_seats_run", "seats", ["run", "created_at"], unique=False)
    op.create_index("ix_seats_status", "seats", ["project_id", "status", "lease_until"], unique=False)


def _subtask_keys() -> None:
    op.create_table(
        "subtask_keys",
        sa.Column("task_id", KEY, nullable=False),
        _needed("key"),
        _needed("digest"),
        _text("numbers", "[]"),
        _needed("created_at"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_subtask_keys_task_id")),
        sa.PrimaryKeyConstraint("task_id", "key", name=op.f("pk_subtask_keys")),
    )
