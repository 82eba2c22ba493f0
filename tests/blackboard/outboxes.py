"""An outbox with a clock that passes only when a sender sleeps, and senders that share both."""

from datetime import UTC, datetime, timedelta

from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.tracker.outbox import Outbox
from genba.coordination.tracker.outbox_sender import Sender
from genba.definitions.project.tracker_section import GitHubSettings
from genba.domain.ports import RemoteChanges
from genba.domain.tracker.outbox import PostComment
from genba.testing.doubles import ManualClock

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


class Desk:
    def __init__(self, board: Blackboard, clock: ManualClock | None = None) -> None:
        self.clock = clock or ManualClock()
        self.begun = self.clock.elapsed()
        self.set_by = timedelta()
        self.outbox = Outbox(board.store, self.now)

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.clock.elapsed() - self.begun) + self.set_by

    def sender(self, changes: RemoteChanges, *, pause: float = 1.0, per_hour: int = 500) -> Sender:
        settings = GitHubSettings(repository="acme/shop", mutation_pause_seconds=pause, mutations_per_hour=per_hour)
        return Sender(self.outbox, changes, settings, self.clock)

    def comment(self, key: str, issue: int = 1) -> int:
        return self.outbox.record(key, PostComment(issue=issue, body=f"This is {key}.")).id
