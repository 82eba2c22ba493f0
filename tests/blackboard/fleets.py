"""The shortest ways to the states of a fleet that these tests begin in."""

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.domain.fleet.records import Cause, FleetSession, Purpose, SegmentEnd, SegmentOrder, WaitsFor
from genba.domain.tasks.task import StatusChange, TaskDraft, TaskStatus
from genba.testing.conformance import a_verification
from tests.blackboard.acting import HUMAN, ORCHESTRATOR


def order(task: int, attempt: int = 1, agent: str = "writer", purpose: Purpose = Purpose.WORK) -> SegmentOrder:
    return SegmentOrder(
        run=f"{agent}-{task}-{attempt}-{purpose}", task=task, agent=agent, attempt=attempt, purpose=purpose
    )


def go_on(session: FleetSession, cause: Cause = Cause.RESUMED) -> SegmentOrder:
    return SegmentOrder(
        run=session.run,
        task=session.task,
        agent=session.agent,
        attempt=session.attempt,
        part=session.part + 1,
        cause=cause,
    )


def begin(fleet: FleetBoard, task: int, attempt: int = 1, agent: str = "writer") -> FleetSession:
    return fleet.start(order(task, attempt, agent), executor="here", host="h", provider="p", base_branch="main")


def wait(fleet: FleetBoard, session: FleetSession, waits_for: WaitsFor) -> FleetSession:
    fleet.end_part(SegmentEnd(run=session.run, part=session.part, waits_for=waits_for, state="{}"))
    return fleet.session(session.run)


def fail(fleet: FleetBoard, session: FleetSession) -> None:
    """An attempt that came to nothing: the session is over, and the task is open again."""
    fleet.end_part(SegmentEnd(run=session.run, part=session.part, outcome="failed", reason="it crashed"))
    fleet.board.change_status(session.task, StatusChange(to=TaskStatus.OPEN, actor=ORCHESTRATOR))


def in_review(board: Blackboard, fleet: FleetBoard, commit: str = "c1", reviewed: bool = True) -> FleetSession:
    """A new task whose session waits for a review of its commit."""
    task = board.add(TaskDraft(title="Work", requires_review=reviewed, reviewer_type="ai"), HUMAN).number
    return to_review(board, fleet, begin(fleet, task), commit)


def to_review(board: Blackboard, fleet: FleetBoard, session: FleetSession, commit: str = "c1") -> FleetSession:
    board.record_verification(session.task, session.run, a_verification(commit))
    board.change_status(session.task, StatusChange(to=TaskStatus.REVIEW, actor=ORCHESTRATOR, commit=commit))
    fleet.end_part(SegmentEnd(run=session.run, part=session.part, waits_for=WaitsFor.REVIEW, verified=commit))
    return fleet.session(session.run)
