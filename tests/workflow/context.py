"""A project in which agents ask: its boards, a service that can be replaced at any time, and those who call it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from genba.blackboard.database.schema import metadata
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.workflow.workflow_board import WorkflowBoard
from genba.coordination.workflow.answers import Caller
from genba.coordination.workflow.rate_limits import Clocks, SystemClocks
from genba.coordination.workflow.runs import RunWorkflow
from genba.coordination.workflow.service import WorkflowService
from genba.coordination.workflow.tokens import hashed, new_passkey
from genba.definitions.project.work_sections import FleetSettings, WorkflowSettings
from genba.domain.fleet.records import Cause, Purpose, SegmentEnd, SegmentOrder, WaitsFor
from genba.domain.tasks.task import Actor, ActorKind, Blocker, BlockerKind, StatusChange, TaskDraft, TaskStatus
from genba.domain.workflow.actions import Action, ErrorCode, Hierarchy, SubtaskDraft, Worker, WorkflowError
from genba.testing.conformance import a_verification
from tests.doubles.workflow_doubles import ManualTimes, ScriptedDesk

HUMAN = Actor(ActorKind.HUMAN, "ada")
ORCHESTRATOR = Actor(ActorKind.ORCHESTRATOR, "genba")
CREW = (
    Worker(name="writer", capabilities=("task",)),
    Worker(name="tester", capabilities=("tests",)),
    Worker(name="chief", hierarchy=Hierarchy.MANAGER),
    Worker(name="boss", hierarchy=Hierarchy.MANAGER),
)
_SIGNS_OF_LIFE = ("calls", "lease_until", "heartbeat_at", "last_action")


class RealTimes(SystemClocks):
    def __init__(self) -> None:
        self.slept = 0

    async def sleep(self, seconds: float) -> None:
        self.slept += 1
        await super().sleep(seconds)


class House:
    def __init__(self, open_board: Callable[..., Any], settings: FleetSettings | None = None) -> None:
        self.board = open_board()
        self.fleet = FleetBoard(self.board)
        self.workflow = WorkflowBoard(self.board)
        self.runs = RunWorkflow(self.workflow)
        self.desk = ScriptedDesk(self.fleet)
        self.times = ManualTimes()
        self.settings = settings or FleetSettings(workflow=WorkflowSettings(wait_seconds=0))
        self.project: str = self.board.store.project
        self._services: list[WorkflowService] = []
        self.service = self.another()

    def another(self, settings: FleetSettings | None = None, times: Clocks | None = None) -> WorkflowService:
        """A service that knows nothing but the blackboard, as after a restart."""
        made = WorkflowService(
            self.workflow,
            self.fleet,
            self.desk,
            settings or self.settings,
            self.project,
            {},
            lambda: CREW,
            times or self.times,
        )
        self._services.append(made)
        return made

    def restart(self, times: Clocks | None = None, **workflow: Any) -> None:
        """Replace the service, with other settings if they are given."""
        if workflow:
            self.settings = FleetSettings(workflow=WorkflowSettings(**({"wait_seconds": 0} | workflow)))
        self.service = self.another(times=times)

    async def close(self) -> None:
        for service in self._services:
            await service.settle()
            service.close()
        assert self.desk.unplayed() == {}

    # Tasks

    def task(self, title: str = "Build a kite", **more: Any) -> int:
        return int(self.board.add(TaskDraft(title=title, **more), HUMAN).number)

    def status(self, number: int) -> str:
        return str(self.board.get(number).status)

    def children(self, number: int) -> list[str]:
        return [f"{piece.title}: {piece.status}" for piece in self.workflow.pieces(number)]

    def land(self, number: int, agent: str = "writer") -> None:
        run = self.begin(number, agent)
        self.board.record_verification(number, run, a_verification("c9"))
        self.board.change_status(number, StatusChange(to=TaskStatus.REVIEW, actor=ORCHESTRATOR, commit="c9"))
        self.fleet.end_part(SegmentEnd(run=run, part=1, outcome="completed", verified="c9"))
        done = StatusChange(to=TaskStatus.DONE, actor=ORCHESTRATOR, commit="c9", finalized="merged c10")
        self.board.change_status(number, done)

    # Sessions

    def begin(self, number: int, agent: str = "writer", purpose: Purpose = Purpose.WORK) -> str:
        attempt = len(self.fleet.sessions(number)) + 1
        run = f"{agent}-{number}-{attempt}-{purpose}"
        order = SegmentOrder(run=run, task=number, agent=agent, attempt=attempt, purpose=purpose)
        self.fleet.start(order, executor="here")
        return run

    def resume(self, run: str) -> None:
        """The orchestrator goes on with a session that waits."""
        session = self.fleet.session(run)
        order = SegmentOrder(
            run=run,
            task=session.task,
            agent=session.agent,
            attempt=session.attempt,
            part=session.part + 1,
            purpose=session.purpose,
            cause=Cause.WOKEN,
        )
        self.fleet.continue_(order, executor="here")

    async def spawn(self, number: int, agent: str = "writer", purpose: Purpose = Purpose.WORK) -> Caller:
        """An instance that Genba started for a task, and that has authenticated."""
        return await self.enter(self.begin(number, agent, purpose))

    async def enter(self, run: str) -> Caller:
        secret = await self.runs.credential(run)
        connected = await self.service.authenticate(Caller(token=secret))
        return Caller(token=connected.session_token)

    async def manager(self, number: int, agent: str = "chief") -> Caller:
        return await self.spawn(number, agent, Purpose.MANAGE)

    async def external_agent(self, name: str = "visitor", **more: Any) -> tuple[str, str]:
        """An agent that may come by itself: its id and its passkey."""
        passkey = new_passkey()
        agent = self.workflow.register(name, passkey_hash=await hashed(passkey), **more)
        return agent.id, passkey

    async def come(self, agent_id: str, passkey: str) -> Caller:
        connected = await self.service.authenticate(
            Caller(), agent_id=agent_id, passkey=passkey, project_id=self.project
        )
        return Caller(token=connected.session_token)

    # Calls

    async def next(self, caller: Caller) -> Action:
        return await self.service.get_next_action(caller)

    async def told(self, caller: Caller) -> str:
        """The next action in a word, with the reason of an exit and the number of a subtask."""
        action = await self.next(caller)
        if action.action == "exit":
            return f"exit {action.reason}"
        return f"{action.action} #{action.subtask.number}" if action.subtask else str(action.action)

    async def fetched(self, caller: Caller) -> Caller:
        assert await self.told(caller) == "get_task"
        await self.service.get_my_task(caller)
        return caller

    async def planned(self, caller: Caller, *titles: str, **more: Any) -> list[int]:
        """A plan with these subtasks: their numbers."""
        made = await self.service.create_tasks_batch(caller, drafts(*titles, **more))
        return [piece.number for piece in made.subtasks]

    async def refused(self, call: Awaitable[object]) -> WorkflowError:
        """The refusal of a call that must be refused, and must have changed nothing."""
        before = self.everything()
        with pytest.raises(WorkflowError) as refusal:
            await call
        await self.service.settle()
        assert self.everything() == before
        return refusal.value

    async def code(self, call: Awaitable[object]) -> ErrorCode:
        return (await self.refused(call)).code

    def everything(self) -> dict[str, list[dict[str, Any]]]:
        """All rows of all tables, but the signs of life of connections."""
        found: dict[str, list[dict[str, Any]]] = {}
        with self.board.store.engine.connect() as connection:
            for table in metadata.sorted_tables:
                rows = [dict(row) for row in connection.execute(table.select()).mappings()]
                if table.name == "agent_connections":
                    rows = [{key: row[key] for key in row if key not in _SIGNS_OF_LIFE} for row in rows]
                found[table.name] = sorted(rows, key=repr)
        return found


def drafts(*titles: str, **more: Any) -> tuple[SubtaskDraft, ...]:
    return tuple(SubtaskDraft(title=title, **more) for title in titles)


def block(context: House, number: int) -> None:
    blocker = Blocker(BlockerKind.FAILED, "it did not work")
    context.board.change_status(number, StatusChange(to=TaskStatus.BLOCKED, actor=ORCHESTRATOR, blocker=blocker))


def finish(context: House, number: int) -> None:
    """The verified work of a part is merged."""
    seen = context.board.last_verification(number)
    assert seen is not None
    commit = seen.subject.commit
    context.board.change_status(number, StatusChange(to=TaskStatus.REVIEW, actor=ORCHESTRATOR, commit=commit))
    done = StatusChange(to=TaskStatus.DONE, actor=ORCHESTRATOR, commit=commit, finalized="merged c99")
    context.board.change_status(number, done)


async def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110  (a fact, and no event)
            await asyncio.sleep(0.005)


def wait_for_parts(fleet: FleetBoard, run: str) -> None:
    fleet.end_part(SegmentEnd(run=run, part=1, waits_for=WaitsFor.PARTS, state="{}"))
