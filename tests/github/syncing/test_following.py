from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.tracker.issue_copy import TrackerBoard
from genba.blackboard.tracker.outbox import Outbox
from genba.coordination.tracker.outbox_sender import Sender
from genba.coordination.tracker.sync_loop import Follower
from genba.definitions.project.tracker_section import GitHubSettings
from genba.domain.errors import RateLimited
from genba.domain.tracker.remote import Terms
from genba.testing.doubles import ManualClock
from genba.testing.outbox_doubles import MemoryChanges
from genba.testing.tracker_doubles import MemoryIssues
from tests.github.syncing.conftest import Syncing


def _follower(board: Blackboard, syncing: Syncing, output: list[str]) -> Follower:
    async def follow(_terms: Terms) -> str:
        return ""

    settings = GitHubSettings(repository="acme/shop")
    sender = Sender(Outbox(board.store), MemoryChanges(), settings, ManualClock())
    return Follower(TrackerBoard(board), syncing(), sender, settings, output.append, lambda: None, follow)


async def test_a_tracker_that_takes_no_more_requests_is_left_alone(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    lines: list[str] = []
    follower = _follower(board, syncing, lines)
    remote.faults.append(RateLimited("no more for now", retry_after=600))

    for _ in range(3):
        assert not await follower.look()

    assert len(remote.calls) == 1
    assert lines == ["GitHub could not be looked at: no more for now"]


async def test_a_look_in_time_to_come_counts_for_nothing(
    board: Blackboard, copy: TrackerBoard, remote: MemoryIssues, syncing: Syncing
) -> None:
    follower = _follower(board, syncing, [])
    await follower.look()
    assert await follower._is_fresh()

    copy.set_values({"looked_at": "2999-01-01T00:00:00.000000Z"})
    assert not await follower._is_fresh()
