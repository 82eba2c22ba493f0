"""Keep a fleet: parts of sessions, the merge queue, escalations, reviews, plans, pauses, executors, spending."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _projects()
    _tasks()
    _sessions()
    _merge_entries()
    _escalations()
    _reviews()
    _plans()
    _provider_pauses()
    _executors()
    _spending()


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


def _money(name: str) -> sa.Column[float]:
    return sa.Column(name, sa.Double(), server_default=sa.text("0"), nullable=False)


def _projects() -> None:
    op.add_column("projects", _flag("paused"))
    op.add_column("projects", _flag("stopping"))


def _tasks() -> None:
    op.add_column("tasks", _text("scope", "[]"))
    op.add_column("tasks", _flag("decompose"))
    op.add_column("tasks", sa.Column("budget_usd", sa.Double(), nullable=True))
    op.add_column("tasks", sa.Column("review_of", sa.BigInteger(), nullable=True))
    op.add_column("tasks", _text("review_commit"))
    op.add_column("tasks", _flag("held"))


def _old_sessions() -> sa.Table:
    """The table as the first revision left it: SQLite cannot tell its own checks back."""
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
        _money("cost"),
        _needed("started_at"),
        _needed("heartbeat_at"),
        _later("ended_at"),
        sa.CheckConstraint(
            "outcome IN ('completed', 'incomplete', 'blocked', 'failed', 'aborted', 'budget_exhausted')",
            name=op.f("ck_sessions_outcome"),
        ),
        sa.CheckConstraint("status IN ('running', 'ended')", name=op.f("ck_sessions_status")),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name=op.f("fk_sessions_agent_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_sessions_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("run", name=op.f("uq_sessions_run")),
        sa.UniqueConstraint("task_id", "attempt", name=op.f("uq_sessions_task_id_attempt")),
        sa.Index("ix_sessions_status", "status", "heartbeat_at"),
    )


def _sessions() -> None:
    with op.batch_alter_table("sessions", copy_from=_old_sessions()) as batch:
        for column in (
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
        ):
            batch.add_column(column)
        batch.drop_constraint(op.f("ck_sessions_status"), type_="check")
        batch.create_check_constraint(op.f("ck_sessions_status"), "status IN ('running', 'waiting', 'ended')")
        batch.create_check_constraint(op.f("ck_sessions_purpose"), "purpose IN ('work', 'plan', 'review', 'integrate')")
        batch.create_check_constraint(
            op.f("ck_sessions_waits_for"),
            "waits_for IN ('', 'answer', 'review', 'merge', 'pull_request', 'budget', 'resume')",
        )
        batch.drop_constraint(op.f("uq_sessions_task_id_attempt"), type_="unique")
        batch.create_unique_constraint(op.f("uq_sessions_task_id_purpose_attempt"), ["task_id", "purpose", "attempt"])


def _merge_entries() -> None:
    op.create_table(
        "merge_entries",
        sa.Column("id", KEY, nullable=False),
        _needed("project_id"),
        sa.Column("task_id", KEY, nullable=False),
        _needed("run"),
        _needed("branch"),
        _needed("commit"),
        _needed("target"),
        _text("status", "queued"),
        _whole("round", 1),
        _whole("turns"),
        _text("landed"),
        _text("paths", "[]"),
        _text("detail"),
        _text("tried_on"),
        _needed("enqueued_at"),
        _later("finished_at"),
        sa.CheckConstraint(
            "status IN ('queued', 'merging', 'merged', 'conflict', 'red', 'stuck', 'withdrawn')",
            name=op.f("ck_merge_entries_status"),
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_merge_entries_project_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_merge_entries_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_merge_entries")),
        sa.UniqueConstraint("run", "commit", "round", name=op.f("uq_merge_entries_run_commit_round")),
    )
    op.create_index("ix_merge_entries_target", "merge_entries", ["project_id", "target", "status"], unique=False)
    op.create_index("ix_merge_entries_task", "merge_entries", ["task_id", "id"], unique=False)


def _escalations() -> None:
    op.create_table(
        "escalations",
        sa.Column("id", KEY, nullable=False),
        _needed("project_id"),
        sa.Column("task_id", KEY, nullable=False),
        _needed("kind"),
        _needed("question"),
        _text("run"),
        _whole("part"),
        _text("commit"),
        _text("evidence", "{}"),
        _text("status", "open"),
        _text("answer"),
        _text("answered_by"),
        _needed("created_at"),
        _later("answered_at"),
        sa.CheckConstraint(
            "kind IN ('question', 'attempts', 'conflict', 'red', 'review', 'budget', 'plan', 'stopped')",
            name=op.f("ck_escalations_kind"),
        ),
        sa.CheckConstraint(
            "status IN ('open', 'answered', 'approved', 'rejected', 'withdrawn')", name=op.f("ck_escalations_status")
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_escalations_project_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_escalations_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_escalations")),
    )
    op.create_index("ix_escalations_project", "escalations", ["project_id", "status"], unique=False)
    op.create_index("ix_escalations_task", "escalations", ["task_id", "id"], unique=False)
    op.create_index(
        "uq_escalations_open",
        "escalations",
        ["task_id", "kind"],
        unique=True,
        sqlite_where=sa.text("status = 'open'"),
        postgresql_where=sa.text("status = 'open'"),
    )


def _reviews() -> None:
    op.create_table(
        "reviews",
        sa.Column("id", KEY, nullable=False),
        _needed("project_id"),
        sa.Column("task_id", KEY, nullable=False),
        sa.Column("of_task_id", KEY, nullable=False),
        _needed("commit"),
        _needed("reviewer_type"),
        _text("status", "open"),
        _text("reviewer"),
        _text("run"),
        _text("findings", "[]"),
        _needed("created_at"),
        _later("decided_at"),
        sa.CheckConstraint("reviewer_type IN ('human', 'ai')", name=op.f("ck_reviews_reviewer_type")),
        sa.CheckConstraint("status IN ('open', 'approved', 'changes', 'stale')", name=op.f("ck_reviews_status")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_reviews_project_id")),
        sa.ForeignKeyConstraint(["of_task_id"], ["tasks.id"], name=op.f("fk_reviews_of_task_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_reviews_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reviews")),
        sa.UniqueConstraint("task_id", name=op.f("uq_reviews_task_id")),
    )
    op.create_index("ix_reviews_project", "reviews", ["project_id", "id"], unique=False)
    op.create_index("ix_reviews_of", "reviews", ["of_task_id", "id"], unique=False)


def _plans() -> None:
    op.create_table(
        "plans",
        sa.Column("id", KEY, nullable=False),
        _needed("project_id"),
        sa.Column("task_id", KEY, nullable=False),
        _text("run"),
        _text("subtasks", "[]"),
        _text("summary"),
        _text("status", "proposed"),
        _text("reason"),
        _text("parts", "[]"),
        _needed("created_at"),
        sa.CheckConstraint("status IN ('proposed', 'created', 'rejected')", name=op.f("ck_plans_status")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_plans_project_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_plans_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_plans")),
    )
    op.create_index("ix_plans_task", "plans", ["task_id", "id"], unique=False)


def _provider_pauses() -> None:
    op.create_table(
        "provider_pauses",
        sa.Column("id", KEY, nullable=False),
        _needed("project_id"),
        _needed("provider"),
        _needed("until"),
        _text("reason"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_provider_pauses_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_provider_pauses")),
        sa.UniqueConstraint("project_id", "provider", name=op.f("uq_provider_pauses_project_id_provider")),
    )


def _executors() -> None:
    op.create_table(
        "executors",
        _needed("project_id"),
        _needed("id"),
        _needed("host"),
        _whole("process"),
        _whole("workers", 1),
        _text("status", "live"),
        _needed("started_at"),
        _needed("heartbeat_at"),
        sa.CheckConstraint("status IN ('live', 'parked', 'dead')", name=op.f("ck_executors_status")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_executors_project_id")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("pk_executors")),
    )


def _spending() -> None:
    op.create_table(
        "spending",
        sa.Column("id", KEY, nullable=False),
        _needed("project_id"),
        sa.Column("task_id", KEY, nullable=False),
        _needed("run"),
        _needed("agent"),
        _whole("iteration"),
        _whole("tokens"),
        _money("cost"),
        _needed("day"),
        _needed("created_at"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_spending_project_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_spending_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spending")),
        sa.UniqueConstraint("run", "iteration", name=op.f("uq_spending_run_iteration")),
    )
    op.create_index("ix_spending_day", "spending", ["project_id", "day"], unique=False)
    op.create_index("ix_spending_task", "spending", ["task_id"], unique=False)
