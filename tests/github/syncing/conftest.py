"""A tracker in memory, and a blackboard on SQLite or PostgreSQL that has a copy of it."""

from collections.abc import Callable

import pytest

from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.tracker.issue_copy import TrackerBoard
from genba.coordination.tracker.tracker_sync import Synchronizer
from genba.definitions.project.tracker_section import GitHubSettings
from genba.judgement.tracking.issue_changes import Known
from genba.testing.doubles import ManualClock
from genba.testing.tracker_doubles import MemoryIssues
from tests.blackboard.conftest import address, board, open_board, postgres

__all__ = ["address", "board", "open_board", "postgres"]

Syncing = Callable[..., Synchronizer]


@pytest.fixture
def remote() -> MemoryIssues:
    return MemoryIssues()


@pytest.fixture
def copy(board: Blackboard) -> TrackerBoard:
    return TrackerBoard(board)


@pytest.fixture
def syncing(board: Blackboard, remote: MemoryIssues) -> Syncing:
    """A synchronizer with these settings of `tracker.github`."""

    def make(known: Known | None = None, **settings: object) -> Synchronizer:
        named = GitHubSettings(repository="acme/shop", **settings)  # type: ignore[arg-type]
        return Synchronizer(remote, board, named, ManualClock(), known)

    return make
