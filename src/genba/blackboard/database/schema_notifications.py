"""The table of notifications: one row for each decision, channel and reminder."""

from sqlalchemy import Index, Table, UniqueConstraint

from genba.blackboard.database.schema_columns import metadata, moment, prose, row_id, to, whole, words
from genba.domain.fleet.notifications import NotificationStatus

notices = Table(
    "notices",
    metadata,
    row_id(),
    to("projects", "project_id"),
    to("escalations", "escalation_id"),
    prose("channel", None),
    whole("reminder"),
    prose("status", NotificationStatus.PENDING),
    whole("attempts"),
    prose("not_before"),
    prose("owner"),
    prose("until"),
    prose("error"),
    moment(),
    prose("sent_at"),
    UniqueConstraint("escalation_id", "channel", "reminder"),
    words("status", NotificationStatus),
    Index("ix_notices_status", "project_id", "status", "channel", "id"),
)
"""`owner` sends it until `until`; no other process does."""
