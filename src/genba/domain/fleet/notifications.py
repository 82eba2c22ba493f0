"""Notifications about decisions that wait for a person.

Every open escalation is sent. A notification has a key that stays the same however often it is sent, so that
receivers can drop duplicates.
"""

from enum import StrEnum

import msgspec

from genba.domain.fleet.records import EscalationKind


class NotificationStatus(StrEnum):
    PENDING = "pending"
    SENDING = "sending"
    """A process sends it now, or died while it did."""
    SENT = "sent"
    FAILED = "failed"
    """It was given up; the error says why."""
    WITHDRAWN = "withdrawn"
    """It was decided before it was sent."""


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """The content of one notification."""

    key: str
    """The same for the same notice, also when it is sent twice."""
    kind: EscalationKind | None
    """None: it only tries the channel out."""
    project: str
    task: int | None = None
    title: str = ""
    question: str = ""
    command: str = ""
    """What to type about it."""
    run: str = ""
    since: str = ""
    reminder: int = 0
    """0 for the first notification, else the number of the reminder."""

    @property
    def headline(self) -> str:
        """The notice in one line."""
        again = "still " if self.reminder else ""
        task = f"#{self.task} " if self.task is not None else ""
        return f"{self.project}: {task}{again}needs you ({self.kind or 'test'})"


class NotificationEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One notice on one channel, as it is written down."""

    id: int
    channel: str
    notice: Notification
    status: NotificationStatus = NotificationStatus.PENDING
    attempts: int = 0
    not_before: str = ""
    error: str = ""
    created_at: str = ""
    sent_at: str = ""
