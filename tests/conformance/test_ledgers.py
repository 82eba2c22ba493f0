"""The blackboard as a run sees it, and its double, pass the same suite."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from genba.blackboard.fleet.session_ledger import SessionRecorder
from genba.blackboard.tasks.board import Blackboard
from genba.domain.ports import TaskLedger
from genba.domain.tasks.task import Actor, ActorKind, Task, TaskDraft
from genba.testing.conformance import LedgerConformance
from genba.testing.doubles import MemoryLedger


class TestLedgers(LedgerConformance):
    @pytest.fixture(params=["blackboard", "double"])
    def ledger(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TaskLedger]:
        if request.param == "double":
            yield MemoryLedger(Task(id=1, number=1, title="One"))
            return
        with Blackboard.open(str(tmp_path / "board.db"), "a project") as board:
            board.add(TaskDraft(title="One"), Actor(ActorKind.HUMAN, "ada"))
            yield SessionRecorder(board)
