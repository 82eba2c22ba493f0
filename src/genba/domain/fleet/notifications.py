"""Notices: what a person is told, wherever they are, when something waits for them.

Law: an open escalation is what is told. A notice has a key that stays the same however often it is sent, so that
whoever gets it twice can tell.
"""

from enum import StrEnum

import msgspec

from genba.domain.fleet.records import EscalationKind


class NotificationStatus(StrEnum):
    PENDING = "pending"
    SENDING = "sending"
    """Somebody sends it now, or died while they did."""
    SENT = "sent"
    FAILED = "failed"
    """It was given up; the error says why."""
    WITHDRAWN = "withdrawn"
    """It was decided before anybody had been told."""


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is told."""

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
    """0 when it is told for the first time, else which reminder this is."""

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
