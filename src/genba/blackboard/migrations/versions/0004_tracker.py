"""Keep a copy of a tracker, what it tells, and an outbox of what is to be changed there."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
ACTORS = "('human', 'manager', 'orchestrator', 'worker', 'reviewer')"
ACTORS_NOW = "('human', 'manager', 'orchestrator', 'worker', 'reviewer', 'tracker')"


def upgrade() -> None:
    _comments()
    _events()
    _tracked_issues()
    _pull_requests()
    _tracker_state()
    _outbox()
    _outbox_senders()


def _text(name: str, default: str = "") -> sa.Column[str]:
    return sa.Column(name, sa.Text(), server_default=sa.text(f"'{default}'"), nullable=False)


def _needed(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _whole(name: str, default: int = 0) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), server_default=sa.text(str(default)), nullable=False)


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), server_default=sa.false(), nullable=False)


def _old_comments() -> sa.Table:
    """The table as the first revision made it: SQLite cannot tell its own checks back."""
    return sa.Table(
        "comments",
        sa.MetaData(),
        sa.Column("id", KEY, nullable=False),
        sa.Column("task_id", KEY, nullable=False),
        _needed("author_kind"),
        _needed("author"),
        _needed("body"),
        _needed("created_at"),
        sa.CheckConstraint(f"author_kind IN {ACTORS}", name=op.f("ck_comments_author_kind")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_comments_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_comments")),
        sa.Index("ix_comments_task", "task_id", "id"),
    )


def _comments() -> None:
    with op.batch_alter_table("comments", copy_from=_old_comments()) as batch:
        batch.drop_constraint(op.f("ck_comments_author_kind"), type_="check")
        batch.create_check_constraint(op.f("ck_comments_author_kind"), f"author_kind IN {ACTORS_NOW}")
        batch.add_column(sa.Column("remote_id", sa.Text(), nullable=True))
        batch.add_column(sa.Column("updated_at", sa.Text(), nullable=True))
        batch.add_column(sa.Column("trusted", sa.Boolean(), nullable=True))
        batch.create_unique_constraint(op.f("uq_comments_task_id_remote_id"), ["task_id", "remote_id"])


def _old_events() -> sa.Table:
    return sa.Table(
        "events",
        sa.MetaData(),
        sa.Column("id", KEY, nullable=False),
        _needed("project_id"),
        sa.Column("task_id", KEY, nullable=True),
        _needed("kind"),
        _needed("actor_kind"),
        _needed("actor_name"),
        _text("session"),
        _whole("version"),
        _text("data", "{}"),
        _needed("created_at"),
        sa.CheckConstraint(f"actor_kind IN {ACTORS}", name=op.f("ck_events_actor_kind")),
        sa.CheckConstraint("actor_name <> ''", name=op.f("ck_events_actor_name")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_events_project_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_events_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        sa.Index("ix_events_project", "project_id", "id"),
        sa.Index("ix_events_task", "task_id", "id"),
    )


def _events() -> None:
    with op.batch_alter_table("events", copy_from=_old_events()) as batch:
        batch.drop_constraint(op.f("ck_events_actor_kind"), type_="check")
        batch.create_check_constraint(op.f("ck_events_actor_kind"), f"actor_kind IN {ACTORS_NOW}")


def _tracked_issues() -> None:
    op.create_table(
        "tracked_issues",
        _needed("project_id"),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        _needed("reference"),
        sa.Column("task_id", KEY, nullable=True),
        _text("state", "open"),
        _text("updated_at"),
        _flag("in_field"),
        _flag("details_stale"),
        _flag("gone"),
        _text("seen_in"),
        _text("data", "{}"),
        sa.CheckConstraint("state IN ('open', 'closed')", name=op.f("ck_tracked_issues_state")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_tracked_issues_project_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_tracked_issues_task_id")),
        sa.PrimaryKeyConstraint("project_id", "number", name=op.f("pk_tracked_issues")),
        sa.UniqueConstraint("project_id", "reference", name=op.f("uq_tracked_issues_project_id_reference")),
    )
    op.create_index("ix_tracked_issues_task", "tracked_issues", ["task_id"], unique=False)
    op.create_index(
        "ix_tracked_issues_stale", "tracked_issues", ["project_id", "details_stale", "number"], unique=False
    )


def _pull_requests() -> None:
    op.create_table(
        "pull_requests",
        _needed("project_id"),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        _text("branch"),
        sa.Column("task_id", KEY, nullable=True),
        _text("state", "open"),
        _text("commit"),
        _flag("watched"),
        _text("updated_at"),
        _text("data", "{}"),
        sa.CheckConstraint("state IN ('open', 'closed', 'merged')", name=op.f("ck_pull_requests_state")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_pull_requests_project_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_pull_requests_task_id")),
        sa.PrimaryKeyConstraint("project_id", "number", name=op.f("pk_pull_requests")),
    )
    op.create_index("ix_pull_requests_branch", "pull_requests", ["project_id", "branch"], unique=False)
    op.create_index("ix_pull_requests_watched", "pull_requests", ["project_id", "watched"], unique=False)
    op.create_index("ix_pull_requests_task", "pull_requests", ["task_id"], unique=False)


def _tracker_state() -> None:
    op.create_table(
        "tracker_state",
        _needed("project_id"),
        _needed("name"),
        _text("value"),
        _text("updated_at"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_tracker_state_project_id")),
        sa.PrimaryKeyConstraint("project_id", "name", name=op.f("pk_tracker_state")),
    )


def _outbox() -> None:
    """The first revision made a table that nothing has ever written to."""
    op.drop_table("outbox")
    op.create_table(
        "outbox",
        sa.Column("id", KEY, nullable=False),
        _needed("project_id"),
        sa.Column("task_id", KEY, nullable=True),
        _needed("key"),
        _needed("kind"),
        _needed("lane"),
        _text("deed", "{}"),
        _text("status", "pending"),
        _whole("attempts"),
        _text("not_before"),
        _text("error"),
        sa.Column("made", sa.Text(), nullable=True),
        _text("run"),
        _needed("created_at"),
        _text("sent_at"),
        _text("ended_at"),
        sa.CheckConstraint(
            "status IN ('pending', 'sending', 'done', 'failed', 'dropped')", name=op.f("ck_outbox_status")
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_outbox_project_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_outbox_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
        sa.UniqueConstraint("project_id", "key", name=op.f("uq_outbox_project_id_key")),
    )
    op.create_index("ix_outbox_status", "outbox", ["project_id", "status", "id"], unique=False)
    op.create_index("ix_outbox_lane", "outbox", ["project_id", "lane", "id"], unique=False)
    op.create_index("ix_outbox_task", "outbox", ["task_id"], unique=False)


def _outbox_senders() -> None:
    op.create_table(
        "outbox_sends",
        sa.Column("id", KEY, nullable=False),
        _needed("project_id"),
        sa.Column("outbox_id", sa.BigInteger(), nullable=False),
        _whole("mutations", 1),
        _needed("sent_at"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_outbox_sends_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox_sends")),
    )
    op.create_index("ix_outbox_sends_at", "outbox_sends", ["project_id", "sent_at"], unique=False)
    op.create_table(
        "outbox_senders",
        _needed("project_id"),
        _text("owner"),
        _text("until"),
        _text("paused_until"),
        _flag("firm"),
        _text("why"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_outbox_senders_project_id")),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_outbox_senders")),
    )
