"""Who acts in these tests, and the shortest ways to the states they begin in."""

from genba.blackboard.tasks.board import Blackboard
from genba.domain.tasks.task import (
    Actor,
    ActorKind,
    Blocker,
    BlockerKind,
    StatusChange,
    Task,
    TaskDraft,
    TaskStatus,
)
from genba.testing.conformance import a_verification

HUMAN = Actor(ActorKind.HUMAN, "ada")
MANAGER = Actor(ActorKind.MANAGER, "planner")
ORCHESTRATOR = Actor(ActorKind.ORCHESTRATOR, "genba")
WORKER = Actor(ActorKind.WORKER, "writer")
REVIEWER = Actor(ActorKind.REVIEWER, "critic")

QUESTION = Blocker(BlockerKind.NEEDS_INPUT, "which colour?")


def add(board: Blackboard, title: str = "A task", parent: int | None = None, *dependencies: int) -> int:
    return board.add(TaskDraft(title=title, parent=parent, dependencies=dependencies), HUMAN).number


def start(board: Blackboard, number: int) -> Task:
    return board.change_status(number, StatusChange(to=TaskStatus.IN_PROGRESS, actor=ORCHESTRATOR))


def open_(board: Blackboard, number: int, actor: Actor = HUMAN) -> Task:
    return board.change_status(number, StatusChange(to=TaskStatus.OPEN, actor=actor))


def block(board: Blackboard, number: int, blocker: Blocker | None = QUESTION) -> Task:
    return board.change_status(number, StatusChange(to=TaskStatus.BLOCKED, actor=HUMAN, blocker=blocker))


def cancel(board: Blackboard, number: int) -> Task:
    return board.change_status(number, StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN))


def review(board: Blackboard, number: int, commit: str = "c1") -> Task:
    """From open to review, with a commit that was verified."""
    start(board, number)
    board.record_verification(number, "", a_verification(commit))
    return board.change_status(number, StatusChange(to=TaskStatus.REVIEW, actor=ORCHESTRATOR, commit=commit))


def finish(board: Blackboard, number: int, commit: str = "c1") -> Task:
    return board.change_status(
        number, StatusChange(to=TaskStatus.DONE, actor=ORCHESTRATOR, commit=commit, finalized="merged c2")
    )


def complete(board: Blackboard, number: int) -> Task:
    review(board, number)
    return finish(board, number)


def statuses(board: Blackboard, *numbers: int) -> list[str]:
    return [str(board.get(number).status) for number in numbers]


def everything(board: Blackboard) -> list[object]:
    """All that can be seen of a project, to prove that nothing of it changed."""
    found = board.find()
    return [found, [board.events(task.number) for task in found], [board.comments(task.number) for task in found]]
