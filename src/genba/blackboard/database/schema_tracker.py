"""The tables of a tracker: the copy of its issues and pull requests, and the outbox of what is to be changed there."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Table, Text, UniqueConstraint

from genba.blackboard.database.schema_columns import (
    flag,
    metadata,
    moment,
    prose,
    row_id,
    structured,
    to,
    whole,
    words,
)
from genba.domain.tracker.outbox import OutboxStatus
from genba.domain.tracker.remote import PullRequestState

tracked_issues = Table(
    "tracked_issues",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    prose("reference", None),
    to("tasks", "task_id", required=False),
    prose("state", "open"),
    prose("updated_at"),
    flag("in_field"),
    flag("details_stale"),
    flag("gone"),
    prose("seen_in"),
    structured("data", "{}"),
    UniqueConstraint("project_id", "reference"),
    words("state", ("open", "closed")),
    Index("ix_tracked_issues_task", "task_id"),
    Index("ix_tracked_issues_stale", "project_id", "details_stale", "number"),
)

pull_requests = Table(
    "pull_requests",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    prose("branch"),
    to("tasks", "task_id", required=False),
    prose("state", PullRequestState.OPEN),
    prose("commit"),
    flag("watched"),
    prose("updated_at"),
    structured("data", "{}"),
    words("state", PullRequestState),
    Index("ix_pull_requests_branch", "project_id", "branch"),
    Index("ix_pull_requests_watched", "project_id", "watched"),
    Index("ix_pull_requests_task", "task_id"),
)

tracker_state = Table(
    "tracker_state",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    prose("value"),
    prose("updated_at"),
)

outbox = Table(
    "outbox",
    metadata,
    row_id(),
    to("projects", "project_id"),
    to("tasks", "task_id", required=False),
    prose("key", None),
    prose("kind", None),
    prose("lane", None),
    structured("change", "{}"),
    prose("status", OutboxStatus.PENDING),
    whole("attempts"),
    prose("not_before"),
    prose("error"),
    Column("receipt", Text),
    prose("run"),
    moment(),
    prose("sent_at"),
    prose("ended_at"),
    UniqueConstraint("project_id", "key"),
    words("status", OutboxStatus),
    Index("ix_outbox_status", "project_id", "status", "id"),
    Index("ix_outbox_lane", "project_id", "lane", "id"),
    Index("ix_outbox_task", "task_id"),
)

outbox_sends = Table(
    "outbox_sends",
    metadata,
    row_id(),
    to("projects", "project_id"),
    Column("outbox_id", BigInteger, nullable=False),
    whole("mutations", 1),
    moment("sent_at"),
    Index("ix_outbox_sends_at", "project_id", "sent_at"),
)
"""What was sent in the last hour, whatever came of it: how fast the next one may follow."""

outbox_senders = Table(
    "outbox_senders",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    prose("owner"),
    prose("until"),
    prose("paused_until"),
    flag("firm"),
    prose("why"),
)
"""The current sender, the end of its lease, and the end of a pause."""
