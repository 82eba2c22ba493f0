import random
from collections.abc import Callable
from contextlib import suppress

import msgspec
import pytest

from genba.definitions.project.work_sections import FleetSettings
from genba.domain.errors import GenbaError
from genba.domain.fleet.records import Purpose
from genba.domain.goals.verification import VerdictStatus
from genba.domain.tasks.task import Blocker, BlockerKind, StatusChange, TaskDraft, TaskStatus
from genba.domain.workflow.actions import ActionKind, Phase, SubtaskDraft
from genba.judgement.scheduling.actions import WorkerContext
from genba.judgement.scheduling.scheduler_view import SchedulerView
from genba.judgement.workflow.next_action import decide
from genba.judgement.workflow.wake_conditions import wake_reason
from genba.testing.conformance import a_verification
from tests.blackboard.acting import MANAGER
from tests.workflow.context import HUMAN, ORCHESTRATOR, House

STEPS = 60


class Walk:
    """A manager's task to which anything happens that may happen to it."""

    def __init__(self, context: House, seed: int) -> None:
        self.context = context
        self.dice = random.Random(seed)
        self.task = context.task()
        self.run = context.begin(self.task, "chief", Purpose.MANAGE)
        self.made = 0

    def step(self) -> str:
        acts: list[Callable[[], object]] = [
            self.add, self.add, self.assign, self.assign, self.begin, self.block, self.ask, self.answer, self.cancel,
            self.land, self.review, self.unblock, self.claim, self.reopen, self.reassign, self.fail,
        ]  # fmt: skip
        act = self.dice.choice(acts)
        with suppress(GenbaError):
            act()
        return act.__name__

    def any(self) -> int:
        return self.dice.choice([piece.number for piece in self.context.workflow.pieces(self.task)] or [0])

    def add(self) -> None:
        there = [str(piece.number) for piece in self.context.workflow.pieces(self.task)]
        self.made += 1
        draft = SubtaskDraft(
            title=f"Part {self.made}",
            depends_on=tuple(self.dice.sample(there, min(len(there), self.dice.choice((0, 0, 1, 2))))),
            assignee=self.dice.choice(("", "writer")),
        )
        self.context.workflow.create_subtasks(self.task, (draft,), in_plan=False, actor=MANAGER, more=True)

    def assign(self) -> None:
        note = self.dice.choice(("", "try harder"))
        self.context.workflow.assign(self.any(), "writer", actor=MANAGER, note=note, run=self.run)

    def reassign(self) -> None:
        self.context.workflow.assign(self.any(), "tester", actor=MANAGER, run=self.run)

    def begin(self) -> None:
        self.context.begin(self.any())

    def block(self) -> None:
        blocker = Blocker(self.dice.choice((BlockerKind.FAILED, BlockerKind.NEEDS_INPUT)), "no")
        self.context.board.change_status(
            self.any(), StatusChange(to=TaskStatus.BLOCKED, actor=ORCHESTRATOR, blocker=blocker)
        )

    def unblock(self) -> None:
        self.context.board.change_status(self.any(), StatusChange(to=TaskStatus.OPEN, actor=HUMAN))

    def ask(self) -> None:
        self.context.workflow.ask_human(self.any(), "what now?", run=self.run, actor=MANAGER)

    def answer(self) -> None:
        self.context.fleet.answer(self.any(), "so", HUMAN)

    def cancel(self) -> None:
        self.context.workflow.cancel(self.any(), actor=MANAGER, run=self.run)

    def reopen(self) -> None:
        self.context.board.change_status(self.any(), StatusChange(to=TaskStatus.OPEN, actor=HUMAN, reason="again"))

    def land(self) -> None:
        self.context.land(self.any())

    def fail(self) -> None:
        self.context.board.change_status(self.any(), StatusChange(to=TaskStatus.OPEN, actor=ORCHESTRATOR))

    def review(self) -> None:
        """A child that is no part: it judges the task of the manager."""
        draft = TaskDraft(title="Review", parent=self.task, review_of=self.task, review_commit="c1")
        self.context.board.add(draft, ORCHESTRATOR)

    def claim(self) -> None:
        verdict = self.dice.choice((VerdictStatus.DONE, VerdictStatus.REJECTED))
        self.context.board.record_verification(self.task, self.run, a_verification("c1", verdict))


@pytest.mark.parametrize("seed", range(8))
async def test_a_manager_is_woken_exactly_when_it_would_not_wait(context: House, seed: int) -> None:
    walk = Walk(context, seed)
    caller = await context.enter(walk.run)
    connection = caller.token.split("_")[1]
    context.workflow.mark(walk.task, walk.run, "chief", Phase.EXECUTING)
    me = WorkerContext(executor="here", agents=())
    seen: set[bool] = set()
    for _ in range(STEPS):
        did = walk.step()
        field = context.fleet.field()
        woken = bool(wake_reason(SchedulerView(field, FleetSettings(), me), field.tasks[walk.task], "chief"))
        there = msgspec.structs.replace(context.workflow.snapshot(connection), spawned=False)
        result = decide(there)
        if result.action is ActionKind.EXIT:
            break
        assert woken is (result.action is not ActionKind.WAIT), (
            did,
            result.action,
            result.reason,
            context.children(walk.task),
        )
        seen.add(woken)
    assert seen == {True, False}
