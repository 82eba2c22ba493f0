import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from genba.blackboard.tasks.board import Blackboard
from genba.domain.errors import UnavailableError
from genba.domain.tasks.task import TaskDraft
from tests.project import TESTER


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Blackboard]:
    with Blackboard.open(str(tmp_path / "board.db"), "a project", busy_seconds=0.01) as made:
        yield made


@pytest.fixture
def holder(board: Blackboard, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(tmp_path / "board.db")) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


def test_with_time_the_call_repeats_until_the_database_answers(board: Blackboard, holder: sqlite3.Connection) -> None:
    asked: list[UnavailableError] = []

    def endure(error: UnavailableError) -> bool:
        asked.append(error)
        if len(asked) == 3:
            holder.rollback()
        return True

    board.store.endure = endure
    added = board.add(TaskDraft(title="a task"), TESTER)

    assert len(asked) == 3
    assert board.get(added.number).title == "a task"


def test_a_session_that_must_end_does_not_wait_any_longer(board: Blackboard, holder: sqlite3.Connection) -> None:
    board.store.endure = lambda _error: False

    with pytest.raises(UnavailableError, match="the blackboard is locked"):
        board.add(TaskDraft(title="a task"), TESTER)
    assert holder.in_transaction


def test_without_time_the_error_comes_at_once(board: Blackboard, holder: sqlite3.Connection) -> None:
    board.store.endure = lambda _error: True
    result = Blackboard(board.store.impatient())

    with pytest.raises(UnavailableError, match="the blackboard is locked"):
        result.add(TaskDraft(title="a task"), TESTER)
    assert holder.in_transaction
