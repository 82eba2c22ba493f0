"""The desk of a fleet, on a run that is really opened: it looks at the working tree of an instance that lives."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from genba.application.sessions.provider_pauses import ProviderGate
from genba.application.workflow.live_work_verifier import Landing, LiveWorkVerifier
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.workflow.workflow_board import WorkflowBoard
from genba.coordination.scheduler.progress import Watch
from genba.coordination.scheduler.session_plan import SessionPlan
from genba.coordination.workflow.runs import RunWorkflow
from genba.coordination.workflow.work_verifier import WorkVerifier
from genba.definitions.project.goal_text import read_goals
from genba.domain.fleet.records import SegmentOrder
from genba.domain.goals.goal import Goal
from genba.domain.tasks.task import TaskDraft
from genba.domain.workflow.actions import AgentConnection, ErrorCode, Hierarchy, WorkflowError
from genba.execution.loop.journal_steps import PlainSteps
from genba.wiring.project.project_context import ProjectContext
from genba.wiring.sessions.live_segments import Answering, LiveSegment, LiveSegments
from genba.wiring.sessions.supervisor import fork_server_of
from tests.doubles.workflow_conformance import DeskSuite
from tests.project import TESTER, Project


class LiveRoom:
    """A project with one agent that asks, and runs of it that have begun."""

    def __init__(self, project: Project, context: ProjectContext) -> None:
        self.project = project
        self.context = context
        self.fleet = FleetBoard(context.board())
        watch = Watch(self.fleet, "one", 1, "tests", lambda _event: None)
        gate = ProviderGate(self.fleet, 1.0)
        fork_server = fork_server_of(context.layout)
        self.parts = LiveSegments(context, self.fleet, fork_server, gate, watch, lambda _order: None, None)
        runs = RunWorkflow(WorkflowBoard(self.fleet.board))
        self.parts.workflow = Answering(runs=runs, socket=Path("nowhere"), language="en", project_id="prj")
        self.desk: WorkVerifier = LiveWorkVerifier(context, self.parts.find, self._landing, patience=0)
        self.open: list[LiveSegment] = []
        self._steps = 0

    async def _landing(self, _number: int) -> Landing:
        return Landing("main", "main")

    async def connected(self) -> AgentConnection:
        number = await self.open_task()
        run = f"asker-{number}-1-abcdef"
        order = SegmentOrder(run=run, task=number, agent="asker", attempt=1)
        definition = self.context.registry.load("asker")
        branch = f"genba/{number}-a-task"
        plan = SessionPlan(definition=definition, parameters={"issue": number}, branch=branch, base_branch="main")
        self.fleet.start(
            order, executor="one", host="here", plan=msgspec.json.encode(plan).decode(), base_branch="main"
        )
        live = await self.parts.prepare(order, self.fleet.session(run), plan, None, PlainSteps())
        ready = await live.session.setup.enter()
        live.progress.workspace, live.progress.proof = ready.workspace, ready.proof
        self.open.append(live)
        return AgentConnection(
            id="s1",
            agent="asker",
            agent_id="asker",
            hierarchy=Hierarchy.WORKER,
            project=self.fleet.store.project,
            run=run,
            task=number,
        )

    async def step(self, connection: AgentConnection) -> int:
        self._steps += 1
        draft = TaskDraft(title="A step", parent=connection.task, in_plan=True, goals=_wants("step.txt"))
        return self.fleet.board.add(draft, TESTER).number

    async def external_agent(self) -> AgentConnection:
        return AgentConnection(
            id="g", agent="external_agent", agent_id="g", hierarchy=Hierarchy.WORKER, project="prj", spawned=False
        )

    async def open_task(self) -> int:
        return self.fleet.board.add(TaskDraft(title="A task", goals=_wants("whole.txt")), TESTER).number

    async def work(self, connection: AgentConnection, number: int, good: bool) -> None:
        live = self.parts.find(connection.run)
        assert live is not None
        assert live.progress.workspace is not None
        name = "whole.txt" if number == connection.task else "step.txt"
        line = f"echo {'good' if good else 'bad'} > {name}; git add -A; git commit -qm work"
        await asyncio.to_thread(self._run, live.progress.workspace.path, line)

    def _run(self, tree: str, line: str) -> None:
        subprocess.run(["sh", "-c", line], cwd=tree, check=True)

    def close(self) -> None:
        for live in self.open:
            assert live.prepared is not None
            live.prepared.trees.release()
            live.prepared.journal.close()
        self.context.close()


def _wants(name: str) -> tuple[Goal, ...]:
    return tuple(read_goals([{"type": "custom_script", "script": f"grep -qx good {name}"}], ""))


def _declared(project: Project) -> None:
    file = {
        "name": "asker",
        "description": "An agent that asks",
        "parameters": {"issue": {"type": "number"}},
        "runner": {"flow": {"mode": "stateDriven"}, "adapter": {"type": "custom", "command": "true"}},
    }
    project.write(".agent/asker/agent.json", json.dumps(file))
    project.write(".agent/asker/prompts/system.md", "You write files.\n")
    project.commit()


@pytest.fixture
async def room(project: Project, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LiveRoom]:
    monkeypatch.setenv("GENBA_SANDBOX", "worktree")
    _declared(project)
    made = LiveRoom(project, await ProjectContext.find(project.root))
    yield made
    made.close()


class TestTheDeskOfAFleet(DeskSuite):
    """On the fixture `room`."""


async def test_what_is_not_committed_does_not_count_for_a_step(room: LiveRoom) -> None:
    connection = await room.connected()
    number = await room.step(connection)
    place = await room.desk.place(connection)
    (Path(place.path) / "step.txt").write_text("good\n", encoding="utf-8")

    judged = await room.desk.judge_subtask(connection, number)

    assert not judged.done
    assert judged.evidence is not None
    assert "not everything is committed: step.txt" in judged.evidence.summary


async def test_the_same_commit_is_not_verified_twice(room: LiveRoom) -> None:
    connection = await room.connected()
    assert connection.task is not None
    await room.work(connection, connection.task, good=True)
    first, second = await asyncio.gather(room.desk.judge(connection), room.desk.judge(connection))
    assert first == second
    assert first.done
    live = room.parts.find(connection.run)
    assert live is not None
    assert live.progress.proof is not None
    assert live.progress.proof.held == first.commit


async def test_who_was_started_for_a_task_takes_no_other(room: LiveRoom) -> None:
    with pytest.raises(WorkflowError) as refused:
        await room.desk.take(await room.connected(), 99)
    assert refused.value.code is ErrorCode.FORBIDDEN


async def test_a_session_of_another_executor_is_asked_to_try_again(room: LiveRoom) -> None:
    connection = msgspec.structs.replace(await room.connected(), run="asker-9-1-000000")
    with pytest.raises(WorkflowError) as refused:
        await room.desk.judge(connection)
    assert (refused.value.code, refused.value.action) == (ErrorCode.CONFLICT, "retry")


async def test_a_claim_is_looked_at_as_soon_as_its_working_tree_is_open_again(room: LiveRoom) -> None:
    connection = await room.connected()
    assert connection.task is not None
    await room.work(connection, connection.task, good=True)
    live = room.parts.find(connection.run)
    assert live is not None
    desk = LiveWorkVerifier(room.context, room.parts.find, room._landing)
    room.parts.over(connection.run)  # as it is right after a death

    claimed = asyncio.create_task(desk.judge(connection))
    await asyncio.sleep(0)
    assert not claimed.done()
    room.parts._live[connection.run] = live

    assert (await claimed).done


async def test_no_verification_waits_for_a_worktree_while_it_is_closed(room: LiveRoom) -> None:
    connection = msgspec.structs.replace(await room.connected(), run="asker-9-1-000000")
    desk = LiveWorkVerifier(room.context, room.parts.find, room._landing, patience=600, leaving=lambda: True)
    with pytest.raises(WorkflowError) as refused:
        await desk.judge(connection)
    assert refused.value.action == "retry"
