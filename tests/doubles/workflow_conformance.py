"""What every desk does, whatever its work is made of.

Derive a test class from `DeskSuite`, and give it a `room`: a place in which a task can be worked on, well or badly.
"""

from typing import Protocol

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.coordination.workflow.work_verifier import WorkVerifier
from genba.domain.tasks.task import TaskStatus
from genba.domain.workflow.actions import AgentConnection, ErrorCode, WorkflowError


class DeskRoom(Protocol):
    """Where a desk is tried."""

    desk: WorkVerifier
    fleet: FleetBoard

    async def connected(self) -> AgentConnection: ...

    async def step(self, connection: AgentConnection) -> int:
        """A step of the plan of that task, with a goal of its own."""
        ...

    async def external_agent(self) -> AgentConnection:
        """An external agent that has no task yet; another one with each call."""
        ...

    async def open_task(self) -> int: ...

    async def work(self, connection: AgentConnection, number: int, good: bool) -> None:
        """Leave commits for a task, or for a step of its plan, on which its goals pass, or do not."""
        ...


class DeskSuite:
    """Needs a fixture `room`."""

    async def test_an_instance_learns_its_branch(self, room: DeskRoom) -> None:
        connection = await room.connected()
        place = await room.desk.place(connection)
        assert place.branch
        assert place.branch != place.base_branch

    async def test_good_work_is_done_and_stands_on_the_blackboard(self, room: DeskRoom) -> None:
        connection = await room.connected()
        task = _task(connection)
        await room.work(connection, task, good=True)
        judged = await room.desk.judge(connection)
        assert judged.done
        assert judged.evidence is None
        seen = room.fleet.board.last_verification(task)
        assert seen is not None
        assert seen.done
        assert seen.subject.commit == judged.commit

    async def test_bad_work_is_not_done_and_the_reason_is_reported(self, room: DeskRoom) -> None:
        connection = await room.connected()
        task = _task(connection)
        await room.work(connection, task, good=False)
        judged = await room.desk.judge(connection)
        assert not judged.done
        assert judged.evidence is not None
        assert judged.evidence.task == task
        seen = room.fleet.board.last_verification(task)
        assert seen is not None
        assert not seen.done

    async def test_bad_work_that_was_fixed_is_done(self, room: DeskRoom) -> None:
        connection = await room.connected()
        await room.work(connection, _task(connection), good=False)
        assert not (await room.desk.judge(connection)).done
        await room.work(connection, _task(connection), good=True)
        assert (await room.desk.judge(connection)).done

    async def test_a_step_is_judged_by_its_own_goals(self, room: DeskRoom) -> None:
        connection = await room.connected()
        number = await room.step(connection)
        await room.work(connection, number, good=False)
        red = await room.desk.judge_subtask(connection, number)
        assert not red.done
        assert red.evidence is not None
        assert red.evidence.task == number
        await room.work(connection, number, good=True)
        green = await room.desk.judge_subtask(connection, number)
        assert green.done
        assert green.commit

    async def test_the_work_of_an_instance_of_genba_is_handed_over_by_its_run(self, room: DeskRoom) -> None:
        connection = await room.connected()
        await room.work(connection, _task(connection), good=True)
        judged = await room.desk.judge(connection)
        before = room.fleet.board.get(_task(connection))
        await room.desk.hand_over(connection, judged.commit)
        assert room.fleet.board.get(_task(connection)) == before


class ExternalAgentSuite:
    """For desks that external agents may come to. Needs a fixture `room`."""

    async def test_an_external_agent_takes_a_task_and_has_it_however_often_it_asks(self, room: DeskRoom) -> None:
        external_agent, number = await room.external_agent(), await room.open_task()
        taken = await room.desk.take(external_agent, number)
        assert taken.task == number
        assert taken.run
        assert room.fleet.board.get(number).status is TaskStatus.IN_PROGRESS
        assert (await room.desk.take(external_agent, number)).run == taken.run

    async def test_a_task_that_is_taken_is_refused_to_everybody_else(self, room: DeskRoom) -> None:
        number = await room.open_task()
        taken = await room.desk.take(await room.external_agent(), number)
        other = await room.external_agent()
        assert await _refusal(room.desk, other, number) == ErrorCode.CONFLICT
        assert room.fleet.session(taken.run).status == "running"

    async def test_an_external_agent_that_leaves_gives_its_task_back(self, room: DeskRoom) -> None:
        number = await room.open_task()
        taken = await room.desk.take(await room.external_agent(), number)
        await room.desk.let_go(taken, "it left")
        await room.desk.let_go(taken, "it left")
        assert room.fleet.board.get(number).status is TaskStatus.OPEN
        again = await room.desk.take(await room.external_agent(), number)
        assert again.run != taken.run

    async def test_the_verified_work_of_an_external_agent_goes_its_way(self, room: DeskRoom) -> None:
        number = await room.open_task()
        taken = await room.desk.take(await room.external_agent(), number)
        await room.work(taken, number, good=True)
        judged = await room.desk.judge(taken)
        assert judged.done
        await room.desk.hand_over(taken, judged.commit)
        await room.desk.hand_over(taken, judged.commit)
        assert room.fleet.board.get(number).status is TaskStatus.REVIEW


async def _refusal(desk: WorkVerifier, external_agent: AgentConnection, number: int) -> ErrorCode | None:
    try:
        await desk.take(external_agent, number)
    except WorkflowError as error:
        return error.code
    return None


def _task(connection: AgentConnection) -> int:
    assert connection.task is not None
    return connection.task
