"""The tables of the blackboard, the same on SQLite and on PostgreSQL.

Law: times are UTC as ISO text, structured values are JSON as text, states are words with a CHECK. A change here comes
with a migration; a test proves that a migrated database equals a fresh one.
"""

from collections.abc import Iterable
from typing import Any

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
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

from genba.domain.evidence import CheckStatus
from genba.domain.fleet import EntryStatus, EscalationKind, Purpose, WaitsFor
from genba.domain.goals import GoalLevel, GoalSource
from genba.domain.outcomes import Outcome
from genba.domain.sessions import SessionStatus
from genba.domain.tasks import ActorKind, BlockerKind, Priority, TaskStatus
from genba.domain.verification import ArtifactType, RejectionReason, VerdictStatus

HEAD = "0003"
"""The newest revision: what `metadata` describes."""

REVISIONS = ("0001", "0002", HEAD)
"""Every revision that this Genba knows, oldest first."""

KEY = BigInteger().with_variant(Integer(), "sqlite")

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _words(column: str, words: Iterable[str]) -> CheckConstraint:
    allowed = ", ".join(f"'{word}'" for word in words)
    return CheckConstraint(f"{column} IN ({allowed})", name=column)


def _id() -> Column[int]:
    return Column("id", KEY, primary_key=True)


def _to(target: str, name: str, required: bool = True) -> Column[Any]:
    return Column(name, ForeignKey(f"{target}.id"), nullable=not required)


def _text(name: str, default: str | None = "") -> Column[str]:
    """A text that is always there; without a default it must be given."""
    return Column(name, Text, nullable=False, server_default=None if default is None else text(f"'{default}'"))


def _json(name: str, default: str) -> Column[str]:
    return Column(name, Text, nullable=False, server_default=text(f"'{default}'"))


def _whole(name: str, default: int = 0) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=text(str(default)))


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default=false())


def _money(name: str) -> Column[float]:
    return Column(name, Double, nullable=False, server_default=text("0"))


def _at(name: str = "created_at", required: bool = True) -> Column[str]:
    return Column(name, Text, nullable=not required)


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
    _whole("next_task_number", 1),
    _at(),
    _flag("paused"),
    _flag("stopping"),
)

agents = Table(
    "agents",
    metadata,
    Column("id", Text, primary_key=True),
    _to("projects", "project_id"),
    _text("name", None),
    _text("hierarchy_type", "worker"),
    _text("role_type", "developer"),
    Column("passkey_hash", Text),
    _text("system_prompt"),
    _text("status", "active"),
    _at(),
    _json("capabilities", "[]"),
    UniqueConstraint("project_id", "name"),
    _words("hierarchy_type", ("worker", "manager")),
    _words("status", ("active", "inactive")),
)

tasks = Table(
    "tasks",
    metadata,
    _id(),
    _to("projects", "project_id"),
    Column("number", BigInteger, nullable=False),
    _to("tasks", "parent_task_id", required=False),
    _text("title", None),
    _text("description"),
    _text("type", "task"),
    _text("status", "open"),
    _text("priority", "medium"),
    Column(
        "priority_rank",
        SmallInteger,
        Computed(
            "CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'medium' THEN 2 ELSE 3 END", persisted=True
        ),
    ),
    _json("labels", "[]"),
    _text("assignee"),
    _to("agents", "assignee_id", required=False),
    Column("assignee_type", Text),
    _flag("requires_review"),
    _text("reviewer_type", "human"),
    _json("may_change", "[]"),
    _text("tracker", "local"),
    _text("tracker_reference"),
    Column("blocker_kind", Text),
    _text("blocker_reason"),
    _to("tasks", "blocker_task_id", required=False),
    _whole("version", 1),
    _at(),
    _at("updated_at"),
    _json("scope", "[]"),
    _flag("decompose"),
    Column("budget_usd", Double),
    Column("review_of", BigInteger),
    _text("review_commit"),
    _flag("held"),
    _flag("in_plan"),
    UniqueConstraint("project_id", "number"),
    _words("status", TaskStatus),
    _words("priority", Priority),
    _words("assignee_type", ("human", "ai")),
    _words("reviewer_type", ("human", "ai")),
    _words("blocker_kind", BlockerKind),
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
    _id(),
    _to("tasks", "task_id"),
    _text("author_kind", None),
    _text("author", None),
    _text("body", None),
    _at(),
    _words("author_kind", ActorKind),
    Index("ix_comments_task", "task_id", "id"),
)

sessions = Table(
    "sessions",
    metadata,
    _id(),
    Column("run", Text, nullable=False, unique=True),
    _to("tasks", "task_id"),
    _to("agents", "agent_id"),
    _whole("attempt", 1),
    _text("status", "running"),
    _text("branch"),
    _text("base"),
    _text("workdir"),
    _text("host"),
    _whole("process"),
    Column("outcome", Text),
    _text("reason"),
    _whole("iterations"),
    _whole("tokens"),
    _money("cost"),
    _at("started_at"),
    _at("heartbeat_at"),
    _at("ended_at", required=False),
    _text("workflow"),
    _whole("part", 1),
    _text("purpose", Purpose.WORK),
    _text("waits_for"),
    _text("executor"),
    _text("base_branch"),
    _text("verified"),
    _text("provider"),
    _text("phase"),
    _text("step"),
    _json("changed", "[]"),
    _whole("rounds"),
    _whole("reviews"),
    _text("state"),
    _text("plan"),
    _flag("forgiven"),
    UniqueConstraint("task_id", "purpose", "attempt"),
    _words("status", SessionStatus),
    _words("outcome", Outcome),
    _words("purpose", Purpose),
    _words("waits_for", WaitsFor),
    Index("ix_sessions_status", "status", "heartbeat_at"),
)

messages = Table(
    "messages",
    metadata,
    _id(),
    _to("projects", "project_id"),
    _to("tasks", "task_id", required=False),
    _to("sessions", "from_session_id", required=False),
    _to("sessions", "to_session_id", required=False),
    _text("type", None),
    _text("content", None),
    _text("status", "pending"),
    _at(),
    _words("type", ("instruction", "handover", "broadcast")),
    _words("status", ("pending", "read", "resolved")),
    Index("ix_messages_to_session", "to_session_id", "status"),
    Index("ix_messages_task", "task_id", "id"),
)

verifications = Table(
    "verifications",
    metadata,
    _id(),
    _to("tasks", "task_id"),
    _to("sessions", "session_id", required=False),
    _text("run"),
    _text("commit", None),
    _text("tree", None),
    _text("base", None),
    _text("branch"),
    _text("status", None),
    Column("reason", Text),
    _text("data", None),
    _at(),
    _words("status", VerdictStatus),
    _words("reason", RejectionReason),
    Index("ix_verifications_task", "task_id", "id"),
)

artifacts = Table(
    "artifacts",
    metadata,
    _id(),
    _to("tasks", "task_id"),
    _to("sessions", "session_id", required=False),
    _to("verifications", "verification_id"),
    _text("type", None),
    _text("data", None),
    _at(),
    _words("type", ArtifactType),
    Index("ix_artifacts_task", "task_id", "id"),
    Index("ix_artifacts_verification", "verification_id"),
)

task_goals = Table(
    "task_goals",
    metadata,
    _id(),
    _to("tasks", "task_id"),
    Column("position", Integer),
    _text("level", None),
    _text("type", None),
    _text("condition", None),
    Column("required", Boolean, nullable=False),
    _text("source", None),
    _text("origin"),
    _text("fingerprint", None),
    UniqueConstraint("task_id", "fingerprint"),
    _words("level", GoalLevel),
    _words("source", GoalSource),
)

goal_results = Table(
    "goal_results",
    metadata,
    _id(),
    _to("task_goals", "goal_id"),
    _to("verifications", "verification_id"),
    _to("sessions", "session_id", required=False),
    _text("status", None),
    Column("passed", Boolean, nullable=False),
    _text("details"),
    _text("log"),
    Column("seconds", Double, nullable=False, server_default=text("0")),
    _at("verified_at"),
    _words("status", CheckStatus),
    Index("ix_goal_results_goal", "goal_id", "id"),
    Index("ix_goal_results_verification", "verification_id"),
)

contexts = Table(
    "contexts",
    metadata,
    _id(),
    _to("tasks", "task_id"),
    _to("sessions", "session_id", required=False),
    _to("agents", "agent_id", required=False),
    _text("progress"),
    _text("findings"),
    _text("blockers"),
    _text("next_steps"),
    _at(),
    Index("ix_contexts_task", "task_id", "id"),
)

events = Table(
    "events",
    metadata,
    _id(),
    _to("projects", "project_id"),
    _to("tasks", "task_id", required=False),
    _text("kind", None),
    _text("actor_kind", None),
    _text("actor_name", None),
    _text("session"),
    _whole("version", 0),
    _json("data", "{}"),
    _at(),
    _words("actor_kind", ActorKind),
    CheckConstraint("actor_name <> ''", name="actor_name"),
    Index("ix_events_task", "task_id", "id"),
    Index("ix_events_project", "project_id", "id"),
)

outbox = Table(
    "outbox",
    metadata,
    _id(),
    _to("projects", "project_id"),
    _to("tasks", "task_id", required=False),
    _text("kind", None),
    _json("payload", "{}"),
    Column("idempotency_key", Text, nullable=False, unique=True),
    _text("status", "pending"),
    _whole("attempts"),
    _text("last_error"),
    _at(),
    _at("done_at", required=False),
    _words("status", ("pending", "done", "failed", "dropped")),
    Index("ix_outbox_status", "status", "id"),
    Index("ix_outbox_task", "task_id"),
)

merge_entries = Table(
    "merge_entries",
    metadata,
    _id(),
    _to("projects", "project_id"),
    _to("tasks", "task_id"),
    _text("run", None),
    _text("branch", None),
    _text("commit", None),
    _text("target", None),
    _text("status", "queued"),
    _whole("round", 1),
    _whole("turns"),
    _text("landed"),
    _json("paths", "[]"),
    _text("detail"),
    _text("tried_on"),
    _at("enqueued_at"),
    _at("finished_at", required=False),
    UniqueConstraint("run", "commit", "round"),
    _words("status", EntryStatus),
    Index("ix_merge_entries_target", "project_id", "target", "status"),
    Index("ix_merge_entries_task", "task_id", "id"),
)

escalations = Table(
    "escalations",
    metadata,
    _id(),
    _to("projects", "project_id"),
    _to("tasks", "task_id"),
    _text("kind", None),
    _text("question", None),
    _text("run"),
    _whole("part"),
    _text("commit"),
    _json("evidence", "{}"),
    _text("status", "open"),
    _text("answer"),
    _text("answered_by"),
    _at(),
    _at("answered_at", required=False),
    _words("kind", EscalationKind),
    _words("status", ("open", "answered", "approved", "rejected", "withdrawn")),
    Index("ix_escalations_project", "project_id", "status"),
    Index("ix_escalations_task", "task_id", "id"),
    Index(
        "uq_escalations_open",
        "task_id",
        "kind",
        unique=True,
        sqlite_where=text("status = 'open'"),
        postgresql_where=text("status = 'open'"),
    ),
)

reviews = Table(
    "reviews",
    metadata,
    _id(),
    _to("projects", "project_id"),
    Column("task_id", ForeignKey("tasks.id"), nullable=False, unique=True),
    _to("tasks", "of_task_id"),
    _text("commit", None),
    _text("reviewer_type", None),
    _text("status", "open"),
    _text("reviewer"),
    _text("run"),
    _json("findings", "[]"),
    _at(),
    _at("decided_at", required=False),
    _words("reviewer_type", ("human", "ai")),
    _words("status", ("open", "approved", "changes", "stale")),
    Index("ix_reviews_project", "project_id", "id"),
    Index("ix_reviews_of", "of_task_id", "id"),
)

plans = Table(
    "plans",
    metadata,
    _id(),
    _to("projects", "project_id"),
    _to("tasks", "task_id"),
    _text("run"),
    _json("subtasks", "[]"),
    _text("summary"),
    _text("status", "proposed"),
    _text("reason"),
    _json("parts", "[]"),
    _at(),
    _words("status", ("proposed", "created", "rejected")),
    Index("ix_plans_task", "task_id", "id"),
)

provider_pauses = Table(
    "provider_pauses",
    metadata,
    _id(),
    _to("projects", "project_id"),
    _text("provider", None),
    _at("until"),
    _text("reason"),
    UniqueConstraint("project_id", "provider"),
)

executors = Table(
    "executors",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("id", Text, primary_key=True),
    _text("host", None),
    _whole("process"),
    _whole("workers", 1),
    _text("status", "live"),
    _at("started_at"),
    _at("heartbeat_at"),
    _words("status", ("live", "parked", "dead")),
)

spending = Table(
    "spending",
    metadata,
    _id(),
    _to("projects", "project_id"),
    _to("tasks", "task_id"),
    _text("run", None),
    _text("agent", None),
    _whole("iteration"),
    _whole("tokens"),
    _money("cost"),
    _text("day", None),
    _at(),
    UniqueConstraint("run", "iteration"),
    Index("ix_spending_day", "project_id", "day"),
    Index("ix_spending_task", "task_id"),
)

credentials = Table(
    "credentials",
    metadata,
    Column("id", Text, primary_key=True),
    _to("projects", "project_id"),
    _to("agents", "agent_id"),
    _text("run", None),
    _text("secret_hash", None),
    _at("expires_at"),
    _at("used_at", required=False),
    _at("revoked_at", required=False),
    _at(),
    Index("ix_credentials_run", "run"),
)

seats = Table(
    "seats",
    metadata,
    Column("id", Text, primary_key=True),
    _to("projects", "project_id"),
    _to("agents", "agent_id"),
    _to("tasks", "task_id", required=False),
    _text("run"),
    Column("spawned", Boolean, nullable=False),
    _text("token_hash", None),
    _text("status", "active"),
    _text("closed"),
    _text("exit"),
    _text("said"),
    _at("lease_until"),
    _at("expires_at"),
    _whole("calls"),
    _text("last_action"),
    _at(),
    _at("heartbeat_at"),
    _words("status", ("active", "closed")),
    Index("ix_seats_run", "run", "created_at"),
    Index("ix_seats_status", "project_id", "status", "lease_until"),
)

subtask_keys = Table(
    "subtask_keys",
    metadata,
    Column("task_id", ForeignKey("tasks.id"), primary_key=True),
    Column("key", Text, primary_key=True),
    _text("digest", None),
    _json("numbers", "[]"),
    _at(),
)
