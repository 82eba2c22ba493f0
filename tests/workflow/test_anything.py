"""An agent that calls anything at any time breaks nothing: each call is answered, or refused with a code."""

import asyncio
import random
from collections.abc import Awaitable
from pathlib import Path

import pytest

from genba.blackboard.tasks.board import Blackboard
from genba.coordination.workflow.answers import Caller
from genba.domain.tasks.task import TaskStatus
from genba.domain.workflow.actions import ErrorCode, SubtaskDraft, WorkflowError
from tests.workflow.context import House

CALLS = 250
TEXTS = ("", "a", "Cut it", "Glue it", "x" * 500, "workflow:completed", "line\nline", "\0", "\ud800", "'; DROP", "雲")
STATUSES = (*(status.value for status in TaskStatus), "todo", "finished", "")


class Mischief:
    """Random calls of one connection, about random tasks."""

    def __init__(self, context: House, caller: Caller, dice: random.Random) -> None:
        self.context, self.caller, self.dice = context, caller, dice

    def call(self) -> Awaitable[object]:
        service, caller = self.context.service, self.caller
        text, number = self.dice.choice(TEXTS), self.dice.choice((*range(-1, 12), 2**70))
        match self.dice.randrange(16):
            case 0 | 1 | 2:
                return service.get_next_action(caller)
            case 3:
                return service.get_my_task(caller)
            case 4:
                return service.create_task(caller, self._draft(), key=self.dice.choice(("", "k", text)))
            case 5:
                drafts = tuple(self._draft() for _ in range(self.dice.randrange(4)))
                return service.create_tasks_batch(caller, drafts, key=self.dice.choice(("", "k", text)))
            case 6 | 7 | 8:
                return service.update_task_status(caller, number, self.dice.choice(STATUSES), reason=text)
            case 9:
                return service.assign_task(caller, number, self.dice.choice(("writer", "boss", text)), note=text)
            case 10:
                return service.save_context(caller, progress=text, next_steps=text)
            case 11:
                about = self.dice.choice((None, number))
                return service.send_message(caller, text, to=self.dice.choice(("", "writer", text)), task_id=about)
            case 12:
                return service.get_messages(caller, mark_read=self.dice.random() < 0.5)
            case 13:
                return service.get_task(caller, number)
            case 14:
                return service.list_workers(caller)
        return service.report_completed(caller, summary=text)

    def _draft(self) -> SubtaskDraft:
        dice = self.dice
        return SubtaskDraft(
            title=dice.choice(("One", "Two", "Three", "Four", *TEXTS)),
            body=dice.choice(TEXTS),
            type=dice.choice(("task", "bug", "test", "nonsense")),
            local_id=dice.choice(("", "a", "b")),
            depends_on=dice.choice(((), (), ("a",), ("b",), ("2",), ("99",))),
            goals=dice.choice(((), (), ({"type": "file_exists", "path": "a"},), ({"type": "?"},))),
            assignee=dice.choice(("", "writer", "nobody")),
        )


@pytest.mark.parametrize("seed", range(3))
async def test_a_worker_and_a_manager_that_call_anything_break_nothing(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    with Blackboard.open(str(tmp_path / "board.db"), "a project") as board:
        context = House(lambda: board)
        context.restart(max_repeats=100_000, calls_per_minute=100_000, max_reworks=100_000, suspend_seconds=100_000)
        other = context.task("Not theirs")
        untouched = context.board.get(other)
        worker = Mischief(context, await context.spawn(context.task("Worked on")), dice)
        manager = Mischief(context, await context.manager(context.task("Managed")), dice)
        answered = 0
        for _ in range(CALLS):
            made = await asyncio.gather(worker.call(), manager.call(), return_exceptions=True)
            for result in made:
                if isinstance(result, BaseException):
                    assert isinstance(result, WorkflowError), repr(result)
                    assert result.code in ErrorCode
                    assert result.message
                else:
                    answered += 1
        assert answered > CALLS // 4
        assert context.board.get(other) == untouched
        in_progress = [piece for piece in context.workflow.pieces(2) if piece.status is TaskStatus.IN_PROGRESS]
        assert len(in_progress) <= 1
        await context.close()
