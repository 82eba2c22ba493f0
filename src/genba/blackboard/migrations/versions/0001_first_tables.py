"""Write down the first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _projects()
    _agents()
    _tasks()
    _comments()
    _events()
    _outbox()
    _sessions()
    _task_dependencies()
    _task_goals()
    _contexts()
    _messages()
    _verifications()
    _artifacts()
    _goal_results()


def _projects() -> None:
    op.create_table(
        "projects",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("next_task_number", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sa.UniqueConstraint("name", name=op.f("uq_projects_name")),
    )


def _agents() -> None:
    op.create_table(
        "agents",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("hierarchy_type", sa.Text(), server_default=sa.text("'worker'"), nullable=False),
        sa.Column("role_type", sa.Text(), server_default=sa.text("'developer'"), nullable=False),
        sa.Column("passkey_hash", sa.Text(), nullable=True),
        sa.Column("system_prompt", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'active'"), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.CheckConstraint("hierarchy_type IN ('worker', 'manager')", name=op.f("ck_agents_hierarchy_type")),
        sa.CheckConstraint("status IN ('active', 'inactive')", name=op.f("ck_agents_status")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_agents_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agents")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_agents_project_id_name")),
    )


def _tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("id", KEY, nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("parent_task_id", KEY, nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("type", sa.Text(), server_default=sa.text("'task'"), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'open'"), nullable=False),
        sa.Column("priority", sa.Text(), server_default=sa.text("'medium'"), nullable=False),
        sa.Column(
            "priority_rank",
            sa.SmallInteger(),
            sa.Computed(
                "CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'medium' THEN 2 ELSE 3 END",
                persisted=True,
            ),
            nullable=True,
        ),
        sa.Column("labels", sa.Text(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("assignee", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("assignee_id", sa.Text(), nullable=True),
        sa.Column("assignee_type", sa.Text(), nullable=True),
        sa.Column("requires_review", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("reviewer_type", sa.Text(), server_default=sa.text("'human'"), nullable=False),
        sa.Column("may_change", sa.Text(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("tracker", sa.Text(), server_default=sa.text("'local'"), nullable=False),
        sa.Column("tracker_reference", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("blocker_kind", sa.Text(), nullable=True),
        sa.Column("blocker_reason", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("blocker_task_id", KEY, nullable=True),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "(status = 'blocked') = (blocker_kind IS NOT NULL)", name=op.f("ck_tasks_blocked_has_blocker")
        ),
        sa.CheckConstraint("assignee_type IN ('human', 'ai')", name=op.f("ck_tasks_assignee_type")),
        sa.CheckConstraint(
            "blocker_kind IN ('needs_input', 'dependency', 'resource', 'failed', 'conflict')",
            name=op.f("ck_tasks_blocker_kind"),
        ),
        sa.CheckConstraint("priority IN ('critical', 'high', 'medium', 'low')", name=op.f("ck_tasks_priority")),
        sa.CheckConstraint("reviewer_type IN ('human', 'ai')", name=op.f("ck_tasks_reviewer_type")),
        sa.CheckConstraint(
            "status IN ('backlog', 'open', 'in_progress', 'review', 'done', 'blocked', 'cancelled')",
            name=op.f("ck_tasks_status"),
        ),
        sa.ForeignKeyConstraint(["assignee_id"], ["agents.id"], name=op.f("fk_tasks_assignee_id")),
        sa.ForeignKeyConstraint(["blocker_task_id"], ["tasks.id"], name=op.f("fk_tasks_blocker_task_id")),
        sa.ForeignKeyConstraint(["parent_task_id"], ["tasks.id"], name=op.f("fk_tasks_parent_task_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_tasks_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tasks")),
        sa.UniqueConstraint("project_id", "number", name=op.f("uq_tasks_project_id_number")),
    )
    op.create_index("ix_tasks_assignee", "tasks", ["project_id", "assignee"], unique=False)
    op.create_index("ix_tasks_blocker", "tasks", ["blocker_task_id"], unique=False)
    op.create_index("ix_tasks_parent", "tasks", ["parent_task_id", "status"], unique=False)
    op.create_index("ix_tasks_ready", "tasks", ["project_id", "status", "priority_rank", "id"], unique=False)


def _comments() -> None:
    op.create_table(
        "comments",
        sa.Column("id", KEY, nullable=False),
        sa.Column("task_id", KEY, nullable=False),
        sa.Column("author_kind", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "author_kind IN ('human', 'manager', 'orchestrator', 'worker', 'reviewer')",
            name=op.f("ck_comments_author_kind"),
        ),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_comments_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_comments")),
    )
    op.create_index("ix_comments_task", "comments", ["task_id", "id"], unique=False)


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("id", KEY, nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("task_id", KEY, nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("actor_kind", sa.Text(), nullable=False),
        sa.Column("actor_name", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("data", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "actor_kind IN ('human', 'manager', 'orchestrator', 'worker', 'reviewer')",
            name=op.f("ck_events_actor_kind"),
        ),
        sa.CheckConstraint("actor_name <> ''", name=op.f("ck_events_actor_name")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_events_project_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_events_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
    )
    op.create_index("ix_events_project", "events", ["project_id", "id"], unique=False)
    op.create_index("ix_events_task", "events", ["task_id", "id"], unique=False)


def _outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", KEY, nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("task_id", KEY, nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'pending'"), nullable=False),
        sa.Column("attempts", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_error", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("done_at", sa.Text(), nullable=True),
        sa.CheckConstraint("status IN ('pending', 'done', 'failed', 'dropped')", name=op.f("ck_outbox_status")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_outbox_project_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_outbox_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_outbox_idempotency_key")),
    )
    op.create_index("ix_outbox_status", "outbox", ["status", "id"], unique=False)
    op.create_index("ix_outbox_task", "outbox", ["task_id"], unique=False)


def _sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", KEY, nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("task_id", KEY, nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'running'"), nullable=False),
        sa.Column("branch", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("base", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("workdir", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("host", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("process", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("iterations", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cost", sa.Double(), server_default=sa.text("0"), nullable=False),
        sa.Column("started_at", sa.Text(), nullable=False),
        sa.Column("heartbeat_at", sa.Text(), nullable=False),
        sa.Column("ended_at", sa.Text(), nullable=True),
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
    )
    op.create_index("ix_sessions_status", "sessions", ["status", "heartbeat_at"], unique=False)


def _task_dependencies() -> None:
    op.create_table(
        "task_dependencies",
        sa.Column("task_id", KEY, nullable=False),
        sa.Column("depends_on_id", KEY, nullable=False),
        sa.CheckConstraint("task_id <> depends_on_id", name=op.f("ck_task_dependencies_not_itself")),
        sa.ForeignKeyConstraint(["depends_on_id"], ["tasks.id"], name=op.f("fk_task_dependencies_depends_on_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_task_dependencies_task_id")),
        sa.PrimaryKeyConstraint("task_id", "depends_on_id", name=op.f("pk_task_dependencies")),
    )
    op.create_index("ix_task_dependencies_depends_on", "task_dependencies", ["depends_on_id"], unique=False)


def _task_goals() -> None:
    op.create_table(
        "task_goals",
        sa.Column("id", KEY, nullable=False),
        sa.Column("task_id", KEY, nullable=False),
        sa.Column("position", sa.Integer(), nullable=True),
        sa.Column("level", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("condition", sa.Text(), nullable=False),
        sa.Column("required", sa.Boolean(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.CheckConstraint("level IN ('dod', 'type_rule', 'acceptance_criteria')", name=op.f("ck_task_goals_level")),
        sa.CheckConstraint(
            "source IN ('project_config', 'type_default', 'ai_inferred', 'human_defined')",
            name=op.f("ck_task_goals_source"),
        ),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_task_goals_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_task_goals")),
        sa.UniqueConstraint("task_id", "fingerprint", name=op.f("uq_task_goals_task_id_fingerprint")),
    )


def _contexts() -> None:
    op.create_table(
        "contexts",
        sa.Column("id", KEY, nullable=False),
        sa.Column("task_id", KEY, nullable=False),
        sa.Column("session_id", KEY, nullable=True),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("progress", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("findings", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("blockers", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("next_steps", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name=op.f("fk_contexts_agent_id")),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_contexts_session_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_contexts_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_contexts")),
    )
    op.create_index("ix_contexts_task", "contexts", ["task_id", "id"], unique=False)


def _messages() -> None:
    op.create_table(
        "messages",
        sa.Column("id", KEY, nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("task_id", KEY, nullable=True),
        sa.Column("from_session_id", KEY, nullable=True),
        sa.Column("to_session_id", KEY, nullable=True),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'pending'"), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.CheckConstraint("status IN ('pending', 'read', 'resolved')", name=op.f("ck_messages_status")),
        sa.CheckConstraint("type IN ('instruction', 'handover', 'broadcast')", name=op.f("ck_messages_type")),
        sa.ForeignKeyConstraint(["from_session_id"], ["sessions.id"], name=op.f("fk_messages_from_session_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_messages_project_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_messages_task_id")),
        sa.ForeignKeyConstraint(["to_session_id"], ["sessions.id"], name=op.f("fk_messages_to_session_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_messages")),
    )
    op.create_index("ix_messages_task", "messages", ["task_id", "id"], unique=False)
    op.create_index("ix_messages_to_session", "messages", ["to_session_id", "status"], unique=False)


def _verifications() -> None:
    op.create_table(
        "verifications",
        sa.Column("id", KEY, nullable=False),
        sa.Column("task_id", KEY, nullable=False),
        sa.Column("session_id", KEY, nullable=True),
        sa.Column("run", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("commit", sa.Text(), nullable=False),
        sa.Column("tree", sa.Text(), nullable=False),
        sa.Column("base", sa.Text(), nullable=False),
        sa.Column("branch", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.CheckConstraint("reason IN ('missing_artifacts', 'goals_not_met')", name=op.f("ck_verifications_reason")),
        sa.CheckConstraint("status IN ('done', 'rejected', 'error')", name=op.f("ck_verifications_status")),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_verifications_session_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_verifications_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_verifications")),
    )
    op.create_index("ix_verifications_task", "verifications", ["task_id", "id"], unique=False)


def _artifacts() -> None:
    op.create_table(
        "artifacts",
        sa.Column("id", KEY, nullable=False),
        sa.Column("task_id", KEY, nullable=False),
        sa.Column("session_id", KEY, nullable=True),
        sa.Column("verification_id", KEY, nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.CheckConstraint("type IN ('commit', 'file', 'branch')", name=op.f("ck_artifacts_type")),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_artifacts_session_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_artifacts_task_id")),
        sa.ForeignKeyConstraint(["verification_id"], ["verifications.id"], name=op.f("fk_artifacts_verification_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_artifacts")),
    )
    op.create_index("ix_artifacts_task", "artifacts", ["task_id", "id"], unique=False)
    op.create_index("ix_artifacts_verification", "artifacts", ["verification_id"], unique=False)


def _goal_results() -> None:
    op.create_table(
        "goal_results",
        sa.Column("id", KEY, nullable=False),
        sa.Column("goal_id", KEY, nullable=False),
        sa.Column("verification_id", KEY, nullable=False),
        sa.Column("session_id", KEY, nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("passed", sa.Boolean(), nullable=False),
        sa.Column("details", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("log", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("seconds", sa.Double(), server_default=sa.text("0"), nullable=False),
        sa.Column("verified_at", sa.Text(), nullable=False),
        sa.CheckConstraint("status IN ('passed', 'failed', 'error')", name=op.f("ck_goal_results_status")),
        sa.ForeignKeyConstraint(["goal_id"], ["task_goals.id"], name=op.f("fk_goal_results_goal_id")),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_goal_results_session_id")),
        sa.ForeignKeyConstraint(
            ["verification_id"], ["verifications.id"], name=op.f("fk_goal_results_verification_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_goal_results")),
    )
    op.create_index("ix_goal_results_goal", "goal_results", ["goal_id", "id"], unique=False)
    op.create_index("ix_goal_results_verification", "goal_results", ["verification_id"], unique=False)
