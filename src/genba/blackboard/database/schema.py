"""The tables of the blackboard, the same on SQLite and on PostgreSQL.

Times are UTC as ISO text, structured values are JSON as text, enums are text with a CHECK. A test compares the schema
with the migrations.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    Double,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from genba.blackboard.database import schema_fleet, schema_notifications, schema_tracker, schema_triage
from genba.blackboard.database.schema_columns import (
    flag,
    metadata,
    moment,
    money,
    prose,
    row_id,
    structured,
    to,
    whole,
    words,
)
from genba.domain.fleet.records import Purpose, WaitsFor
from genba.domain.goals.goal import GoalLevel, GoalSource
from genba.domain.goals.verification import ArtifactType, RejectionReason, VerdictStatus
from genba.domain.sessions.evidence import CheckStatus
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.session import SessionStatus
from genba.domain.tasks.task import ActorKind, BlockerKind, Priority, TaskStatus

__all__ = [
    "HEAD",
    "metadata",
    "schema_fleet",
    "schema_notifications",
    "schema_tracker",
    "schema_triage",
    "tasks",
    "versions",
]

HEAD = "0011"
"""The revision that `metadata` describes. Revisions sort as text, oldest first."""

versions = Table(
    "alembic_version",
    metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)

projects = Table(
    "projects",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    whole("next_task_number", 1),
    moment(),
    flag("paused"),
    flag("stopping"),
    prose("repository"),
    prose("repository_path"),
)

agents = Table(
    "agents",
    metadata,
    Column("id", Text, primary_key=True),
    to("projects", "project_id"),
    prose("name", None),
    prose("hierarchy_type", "worker"),
    prose("role_type", "developer"),
    Column("passkey_hash", Text),
    prose("system_prompt"),
    prose("status", "active"),
    moment(),
    structured("capabilities", "[]"),
    UniqueConstraint("project_id", "name"),
    words("hierarchy_type", ("worker", "manager")),
    words("status", ("active", "inactive")),
)

tasks = Table(
    "tasks",
    metadata,
    row_id(),
    to("projects", "project_id"),
    Column("number", BigInteger, nullable=False),
    to("tasks", "parent_task_id", required=False),
    prose("title", None),
    prose("description"),
    prose("type", "task"),
    prose("status", "open"),
    prose("priority", "medium"),
    Column(
        "priority_rank",
        SmallInteger,
        Computed(
            "CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'medium' THEN 2 ELSE 3 END", persisted=True
        ),
    ),
    structured("labels", "[]"),
    prose("assignee"),
    to("agents", "assignee_id", required=False),
    Column("assignee_type", Text),
    flag("requires_review"),
    prose("reviewer_type", "human"),
    structured("may_change", "[]"),
    prose("tracker", "local"),
    prose("tracker_reference"),
    Column("blocker_kind", Text),
    prose("blocker_reason"),
    to("tasks", "blocker_task_id", required=False),
    whole("version", 1),
    moment(),
    moment("updated_at"),
    structured("scope", "[]"),
    flag("decompose"),
    Column("budget_usd", Double),
    Column("review_of", BigInteger),
    prose("review_commit"),
    flag("held"),
    flag("in_plan"),
    structured("phases", "[]"),
    prose("due"),
    UniqueConstraint("project_id", "number"),
    words("status", TaskStatus),
    words("priority", Priority),
    words("assignee_type", ("human", "ai")),
    words("reviewer_type", ("human", "ai")),
    words("blocker_kind", BlockerKind),
    CheckConstraint("(status = 'blocked') = (blocker_kind IS NOT NULL)", name="blocked_has_blocker"),
    Index("ix_tasks_ready", "project_id", "status", "priority_rank", "id"),
    Index("ix_tasks_parent", "parent_task_id", "status"),
    Index("ix_tasks_blocker", "blocker_task_id"),
    Index("ix_tasks_assignee", "project_id", "assignee"),
)

task_dependencies = Table(
    "task_dependencies",
    metadata,
    Column("task_id", ForeignKey("tasks.id"), primary_key=True),
    Column("depends_on_id", ForeignKey("tasks.id"), primary_key=True),
    CheckConstraint("task_id <> depends_on_id", name="not_itself"),
    Index("ix_task_dependencies_depends_on", "depends_on_id"),
)

comments = Table(
    "comments",
    metadata,
    row_id(),
    to("tasks", "task_id"),
    prose("author_kind", None),
    prose("author", None),
    prose("body", None),
    moment(),
    Column("remote_id", Text),
    moment("updated_at", required=False),
    Column("trusted", Boolean),
    UniqueConstraint("task_id", "remote_id"),
    words("author_kind", ActorKind),
    Index("ix_comments_task", "task_id", "id"),
)

sessions = Table(
    "sessions",
    metadata,
    row_id(),
    Column("run", Text, nullable=False, unique=True),
    to("tasks", "task_id"),
    to("agents", "agent_id"),
    whole("attempt", 1),
    prose("status", "running"),
    prose("branch"),
    prose("base"),
    prose("workdir"),
    prose("host"),
    whole("process"),
    Column("outcome", Text),
    prose("reason"),
    whole("iterations"),
    whole("tokens"),
    money("cost"),
    moment("started_at"),
    moment("heartbeat_at"),
    moment("ended_at", required=False),
    prose("workflow"),
    whole("part", 1),
    prose("purpose", Purpose.WORK),
    prose("waits_for"),
    prose("executor"),
    prose("base_branch"),
    prose("verified"),
    prose("provider"),
    prose("phase"),
    prose("step"),
    structured("changed", "[]"),
    whole("rounds"),
    whole("reviews"),
    prose("state"),
    prose("plan"),
    flag("forgiven"),
    flag("external"),
    whole("inbox"),
    UniqueConstraint("task_id", "purpose", "attempt"),
    words("status", SessionStatus),
    words("outcome", Outcome),
    words("purpose", Purpose),
    words("waits_for", WaitsFor),
    Index("ix_sessions_status", "status", "heartbeat_at"),
)

messages = Table(
    "messages",
    metadata,
    row_id(),
    to("projects", "project_id"),
    to("tasks", "task_id", required=False),
    to("sessions", "from_session_id", required=False),
    to("sessions", "to_session_id", required=False),
    prose("type", None),
    prose("content", None),
    prose("status", "pending"),
    moment(),
    words("type", ("instruction", "handover", "broadcast")),
    words("status", ("pending", "read", "resolved")),
    Index("ix_messages_to_session", "to_session_id", "status"),
    Index("ix_messages_task", "task_id", "id"),
)

verifications = Table(
    "verifications",
    metadata,
    row_id(),
    to("tasks", "task_id"),
    to("sessions", "session_id", required=False),
    prose("run"),
    prose("commit", None),
    prose("tree", None),
    prose("base", None),
    prose("branch"),
    prose("status", None),
    Column("reason", Text),
    prose("data", None),
    moment(),
    words("status", VerdictStatus),
    words("reason", RejectionReason),
    Index("ix_verifications_task", "task_id", "id"),
)

artifacts = Table(
    "artifacts",
    metadata,
    row_id(),
    to("tasks", "task_id"),
    to("sessions", "session_id", required=False),
    to("verifications", "verification_id"),
    prose("type", None),
    prose("data", None),
    moment(),
    words("type", ArtifactType),
    Index("ix_artifacts_task", "task_id", "id"),
    Index("ix_artifacts_verification", "verification_id"),
)

task_goals = Table(
    "task_goals",
    metadata,
    row_id(),
    to("tasks", "task_id"),
    Column("position", Integer),
    prose("level", None),
    prose("type", None),
    prose("condition", None),
    Column("required", Boolean, nullable=False),
    prose("source", None),
    prose("origin"),
    prose("fingerprint", None),
    flag("enabled"),
    UniqueConstraint("task_id", "fingerprint"),
    words("level", GoalLevel),
    words("source", GoalSource),
)

goal_results = Table(
    "goal_results",
    metadata,
    row_id(),
    to("task_goals", "goal_id"),
    to("verifications", "verification_id"),
    to("sessions", "session_id", required=False),
    prose("status", None),
    Column("passed", Boolean, nullable=False),
    prose("details"),
    prose("log"),
    Column("seconds", Double, nullable=False, server_default=text("0")),
    moment("verified_at"),
    words("status", CheckStatus),
    Index("ix_goal_results_goal", "goal_id", "id"),
    Index("ix_goal_results_verification", "verification_id"),
)

contexts = Table(
    "contexts",
    metadata,
    row_id(),
    to("tasks", "task_id"),
    to("sessions", "session_id", required=False),
    to("agents", "agent_id", required=False),
    prose("progress"),
    prose("findings"),
    prose("blockers"),
    prose("next_steps"),
    moment(),
    Index("ix_contexts_task", "task_id", "id"),
)

events = Table(
    "events",
    metadata,
    row_id(),
    to("projects", "project_id"),
    to("tasks", "task_id", required=False),
    prose("kind", None),
    prose("actor_kind", None),
    prose("actor_name", None),
    prose("session"),
    whole("version", 0),
    structured("data", "{}"),
    moment(),
    words("actor_kind", ActorKind),
    CheckConstraint("actor_name <> ''", name="actor_name"),
    Index("ix_events_task", "task_id", "id"),
    Index("ix_events_project", "project_id", "id"),
)
