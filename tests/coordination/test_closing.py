import asyncio
import errno
from pathlib import Path

import msgspec
import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.coordination.scheduler.closure import Closures, closure_of
from genba.coordination.scheduler.session import Segments
from genba.coordination.scheduler.session_plan import SegmentState, SessionPlan
from genba.domain.errors import DiskFullError, GenbaError, GitError, UnavailableError
from genba.domain.fleet.records import Cause, FleetSession, SegmentOrder
from genba.domain.ports import Steps
from genba.domain.sessions.outcomes import Outcome
from genba.domain.tasks.task import StatusChange, TaskDraft, TaskStatus
from genba.wiring import ProjectContext
from tests.blackboard.acting import HUMAN, ORCHESTRATOR
from tests.blackboard.fleets import go_on, in_review, order, to_review
from tests.project import Project


@pytest.fixture
def fleet(tmp_path: Path) -> FleetBoard:
    return FleetBoard(Blackboard.open(str(tmp_path / "board.db"), "a project"))


async def _closing_of(fleet: FleetBoard, project: Project) -> FleetSession:
    """A session whose work has landed, and that is being closed."""
    project.agent()
    context = await ProjectContext.find(project.root)
    task = fleet.board.add(TaskDraft(title="Work"), HUMAN).number
    plan = SessionPlan(definition=context.registry.load("worker"), parameters={}, branch="work", base_branch="main")
    session = fleet.start(order(task), executor="here", plan=msgspec.json.encode(plan).decode(), base_branch="main")
    landed = to_review(fleet.board, fleet, session)
    return fleet.continue_(go_on(landed, Cause.LANDED), executor="here")


@pytest.mark.parametrize(
    "trouble",
    [DiskFullError("the disk is full"), UnavailableError("out of reach"), OSError(errno.ENOSPC, "No space left")],
    ids=["disk", "database", "raw"],
)
async def test_a_closure_that_the_machine_has_no_room_for_runs_on(fleet: FleetBoard, trouble: Exception) -> None:
    lines: list[str] = []
    woken = asyncio.Event()

    async def close(_order: SegmentOrder) -> None:
        raise trouble

    closing = Closures(fleet, close, lambda _order, reason: lines.append(reason), woken.set)
    landed = in_review(fleet.board, fleet, reviewed=False)
    await closing.begin(closure_of(landed, landed.part + 1, "c1"), "here", "h")
    await asyncio.wait_for(woken.wait(), 30)

    now = fleet.session(landed.run)
    assert (now.status, now.part, lines) == ("running", landed.part + 1, [])


async def test_a_closure_rests_longer_each_time_that_there_is_no_room_for_it(fleet: FleetBoard) -> None:
    began: list[float] = []
    woken = asyncio.Event()

    async def close(_order: SegmentOrder) -> None:
        began.append(asyncio.get_running_loop().time())
        raise DiskFullError("the disk is full")

    closing = Closures(fleet, close, lambda _order, _reason: None, woken.set)
    landed = in_review(fleet.board, fleet, reviewed=False)
    closure = closure_of(landed, landed.part + 1, "c1")
    await closing.begin(closure, "here", "h")
    for _ in range(2):
        await asyncio.wait_for(woken.wait(), 30)
        woken.clear()
        closing._start(closure)
    await asyncio.wait_for(woken.wait(), 30)

    first, second = began[1] - began[0], began[2] - began[1]
    assert 0.2 < first < second


async def test_a_closure_with_an_unknown_result_is_reported(fleet: FleetBoard) -> None:
    lines: list[str] = []
    woken = asyncio.Event()

    async def close(_order: SegmentOrder) -> None:
        raise RuntimeError("nobody foresaw this")

    closing = Closures(fleet, close, lambda _order, reason: lines.append(reason), woken.set)
    landed = in_review(fleet.board, fleet, reviewed=False)
    await closing.begin(closure_of(landed, landed.part + 1, "c1"), "here", "h")
    await asyncio.wait_for(woken.wait(), 30)

    assert fleet.session(landed.run).status == "ended"
    assert len(lines) == 1


@pytest.mark.parametrize("error", [GitError("it is gone already"), DiskFullError("the disk is full")])
async def test_a_closure_that_fails_when_the_task_is_done_leaves_a_session_that_completed_it(
    fleet: FleetBoard, project: Project, error: GenbaError
) -> None:
    """Two close the same work, as one of them was held for dead: the second finds nothing where it looks."""
    session = await _closing_of(fleet, project)
    done = StatusChange(to=TaskStatus.DONE, actor=ORCHESTRATOR, commit="c1", finalized="merged")

    async def prepare(
        _order: SegmentOrder, _session: FleetSession, _plan: SessionPlan, _kept: SegmentState | None, _steps: Steps
    ) -> None:
        await asyncio.to_thread(fleet.board.change_status, session.task, done)  # by the other one
        raise error

    parts = Segments(fleet, prepare, lambda _task, _agent: "", lambda _result, _order: None)  # type: ignore[arg-type]
    closure = closure_of(session, session.part, "c1")
    await parts.carry_out(msgspec.json.encode(closure).decode(), None)  # type: ignore[arg-type]

    now = fleet.session(session.run)
    assert (now.status, now.outcome) == ("ended", Outcome.COMPLETED)
    assert fleet.board.get(session.task).status is TaskStatus.DONE
