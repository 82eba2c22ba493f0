"""External agents: agents that come by themselves, on real working trees, beside a fleet that lands what they made."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from genba.application.project.agent_registration import register
from genba.application.workflow.external_agents import ExternalAgentVerifier
from genba.application.workflow.service import open_service
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.workflow.workflow_board import WorkflowBoard
from genba.coordination.workflow.answers import Caller
from genba.coordination.workflow.service import WorkflowService
from genba.domain.goals.goal import FileExists, Goal
from genba.domain.tasks.task import TaskDraft, TaskStatus
from genba.domain.workflow.actions import ActionKind, AgentConnection, ErrorCode, Hierarchy, SubtaskDraft, WorkflowError
from genba.wiring import ProjectContext
from tests.doubles.workflow_conformance import ExternalAgentSuite
from tests.fleet.yard import Yard
from tests.project import TESTER

HELLO: tuple[Goal, ...] = (FileExists(path="hello.txt"),)


class Guests:
    """A project that external agents come to, with the service in this process."""

    def __init__(self, yard: Yard, context: ProjectContext) -> None:
        self.yard = yard
        self.context = context
        self.service: WorkflowService = open_service(context)
        self.desk = ExternalAgentVerifier(context)
        self.fleet = FleetBoard(context.board())
        self._connections = 0

    async def comes(self, name: str = "visitor", **more: Any) -> Caller:
        welcome = await asyncio.to_thread(register, self.context, name, **more)
        connected = await self.service.authenticate(
            Caller(), agent_id=welcome.agent.id, passkey=welcome.passkey, project_id=welcome.project
        )
        return Caller(token=connected.session_token)

    async def connected(self) -> AgentConnection:
        raise NotImplementedError("external agents are never started by Genba")

    async def step(self, connection: AgentConnection) -> int:
        raise NotImplementedError("external agents are never started by Genba")

    async def external_agent(self) -> AgentConnection:
        self._connections += 1
        name = f"external-agent-{self._connections}"
        agent = WorkflowBoard(self.context.board()).register(name)
        return AgentConnection(
            id=f"connection{self._connections}",
            agent=name,
            agent_id=agent.id,
            hierarchy=Hierarchy.WORKER,
            project=self.context.board().store.project,
            spawned=False,
        )

    async def open_task(self) -> int:
        return self.context.board().add(TaskDraft(title="Say hello", goals=HELLO), TESTER).number

    async def work(self, connection: AgentConnection, number: int, good: bool) -> None:  # noqa: ARG002  (the suite's)
        place = await self.desk.place(connection)
        self.commit(place.path, "hello.txt" if good else "other.txt")

    def commit(self, tree: str, name: str, text: str = "hello\n") -> None:
        (Path(tree) / name).write_text(text, "utf-8")
        self.yard.project.git("add", "-A", cwd=Path(tree))
        self.yard.project.git("commit", "-q", "-m", f"Write {name}", cwd=Path(tree))


@pytest.fixture
async def room(small_yard: Yard) -> AsyncIterator[Guests]:
    small_yard.agent()
    small_yard.set(verification={"sandbox": False})
    context = await ProjectContext.find(small_yard.project.root)
    external_agents = Guests(small_yard, context)
    yield external_agents
    await external_agents.service.settle()
    external_agents.service.close()
    context.close()


class TestExternalAgentVerifier(ExternalAgentSuite):
    """The same suite as the double."""


async def test_an_external_agent_goes_through_the_whole_flow_and_the_fleet_lands_its_work(room: Guests) -> None:
    number = await room.open_task()
    caller, service = await room.comes(), room.service
    assert (await service.get_next_action(caller)).action is ActionKind.GET_TASK
    brief = await service.get_my_task(caller)
    assert brief.branch == "genba/1-say-hello"
    made = await service.create_tasks_batch(caller, (SubtaskDraft(title="greet"), SubtaskDraft(title="wave")))
    for piece in made.subtasks:
        await service.update_task_status(caller, piece.number, "in_progress")
        room.commit(brief.path, f"{piece.title}.txt")
        await service.update_task_status(caller, piece.number, "done")

    shown = (await asyncio.to_thread(room.yard.genba, "task", "show", str(number))).out
    assert "step         #2 done  greet" in shown
    assert "step         #3 done  wave" in shown
    assert "sat down to work on it  by visitor (worker)" in shown

    assert not (await service.report_completed(caller)).verified
    rework = await service.get_next_action(caller)
    assert rework.action is ActionKind.REWORK
    assert rework.evidence is not None
    assert any("hello.txt" in line for line in rework.evidence.failing)

    room.commit(brief.path, "hello.txt")
    assert (await service.report_completed(caller)).verified
    assert room.fleet.board.get(number).status is TaskStatus.REVIEW

    await asyncio.to_thread(room.yard.work)
    assert room.fleet.board.get(number).status is TaskStatus.DONE
    assert "hello.txt" in room.yard.files()
    assert room.yard.started() == []
    assert brief.path not in room.yard.project.git("worktree", "list")


async def test_what_is_not_committed_does_not_count(room: Guests) -> None:
    await room.open_task()
    caller = await room.comes()
    await room.service.get_next_action(caller)
    brief = await room.service.get_my_task(caller)
    (Path(brief.path) / "hello.txt").write_text("hello\n", "utf-8")

    assert not (await room.service.report_completed(caller)).verified


async def test_an_external_agent_whose_work_conflicts_is_not_asked_and_its_task_is_free_for_others(
    room: Guests,
) -> None:
    number = await room.open_task()
    caller = await room.comes()
    await room.service.get_next_action(caller)
    brief = await room.service.get_my_task(caller)
    room.commit(brief.path, "hello.txt", "from an external agent\n")
    assert (await room.service.report_completed(caller)).verified
    room.yard.project.write("hello.txt", "from a person\n")
    room.yard.project.commit("Say hello myself")
    room.yard.agent(script="git checkout -q --ours . 2>/dev/null; echo both > hello.txt")
    room.yard.project.commit("Have somebody who brings it together")

    await asyncio.to_thread(room.yard.work)

    done = room.fleet.board.get(number)
    assert done.status is TaskStatus.DONE
    agents = [session.agent for session in room.fleet.sessions(number)]
    assert agents == ["visitor", "worker"]
    assert "came by itself" in room.fleet.sessions(number)[0].reason


async def test_an_external_agent_that_logs_out_without_a_result_gives_its_task_back_and_keeps_its_commits(
    room: Guests,
) -> None:
    number = await room.open_task()
    caller = await room.comes()
    await room.service.get_next_action(caller)
    brief = await room.service.get_my_task(caller)
    room.commit(brief.path, "half.txt")

    await room.service.logout(caller)

    assert room.fleet.board.get(number).status is TaskStatus.OPEN
    assert "half.txt" in room.yard.files(brief.branch)
    with pytest.raises(WorkflowError) as refused:
        await room.service.get_next_action(caller)
    assert refused.value.code is ErrorCode.NOT_AUTHENTICATED


async def test_a_fleet_takes_over_from_an_external_agent_that_has_left_without_a_word(room: Guests) -> None:
    number = await room.open_task()
    caller = await room.comes()
    await room.service.get_next_action(caller)
    brief = await room.service.get_my_task(caller)
    room.commit(brief.path, "half.txt")
    with room.fleet.store.engine.begin() as connection:  # a long time passes
        for table, columns in (("agent_connections", ("lease_until", "heartbeat_at")), ("sessions", ("heartbeat_at",))):
            message = ", ".join(f"{column} = '2020-01-01T00:00:00.000000Z'" for column in columns)
            connection.exec_driver_sql(f"UPDATE {table} SET {message}")
    room.yard.agent(script="echo hello > hello.txt")
    room.yard.project.commit("Have somebody who goes on")

    await asyncio.to_thread(room.yard.work)

    assert room.fleet.board.get(number).status is TaskStatus.DONE
    assert {"half.txt", "hello.txt"} <= set(room.yard.files())
    assert [session.agent for session in room.fleet.sessions(number)] == ["visitor", "worker"]


async def test_an_external_agent_that_manages_has_the_fleet_work_and_never_works_itself(room: Guests) -> None:
    board = room.context.board()
    number = board.add(TaskDraft(title="Greet everybody", assignee="boss"), TESTER).number
    caller, service = await room.comes("boss", manager=True), room.service
    assert (await service.get_next_action(caller)).action is ActionKind.GET_TASK
    assert (await service.get_my_task(caller)).path == ""
    made = await service.create_tasks_batch(caller, (SubtaskDraft(title="one"), SubtaskDraft(title="two")))
    for piece in made.subtasks:
        await service.assign_task(caller, piece.number, "worker")
    assert (await service.get_next_action(caller)).action is ActionKind.WAIT

    process = await asyncio.to_thread(room.yard.start, "--workers", "2")
    try:
        async with asyncio.timeout(120):
            while (action := await service.get_next_action(caller)).action is ActionKind.WAIT:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            assert action.action is ActionKind.REPORT_COMPLETION
            assert (await service.report_completed(caller)).verified
            while board.get(number).status is not TaskStatus.DONE:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
    finally:
        await asyncio.to_thread(room.yard.kill, process)

    parts = [piece.number for piece in made.subtasks]
    assert {f"task-{part}.txt" for part in parts} <= set(room.yard.files())
    assert sorted(room.yard.started()) == sorted(str(part) for part in parts)


async def test_the_steps_of_a_plan_are_not_listed_as_open_tasks(room: Guests) -> None:
    await room.open_task()
    caller = await room.comes()
    await room.service.get_next_action(caller)
    await room.service.get_my_task(caller)
    await room.service.create_tasks_batch(caller, (SubtaskDraft(title="greet"), SubtaskDraft(title="wave")))

    listed = (await asyncio.to_thread(room.yard.genba, "task", "list")).out
    steps = (await asyncio.to_thread(room.yard.genba, "task", "list", "--parent", "1")).out

    assert "Say hello" in listed
    assert "greet" not in listed
    assert "greet  · step of #1" in steps


async def test_a_fleet_that_ends_when_there_is_nothing_to_do_does_not_wait_for_external_agents(room: Guests) -> None:
    await room.open_task()
    caller = await room.comes()
    await room.service.get_next_action(caller)

    result = await asyncio.to_thread(room.yard.work, "--plain")

    assert "#1 is in the hands of visitor, who came by itself" in result.err


async def test_an_external_agent_without_a_task_learns_how_to_get_one(room: Guests) -> None:
    await room.open_task()
    caller = await room.comes()

    with pytest.raises(WorkflowError) as refused:
        await room.service.get_my_task(caller)

    assert refused.value.code is ErrorCode.OUT_OF_ORDER
    assert refused.value.hint == "call get_next_action to get one"
    assert refused.value.action == "get_next_action"


def test_who_is_registered_is_listed_and_a_name_that_is_none_is_refused(small_yard: Yard) -> None:
    small_yard.agent()
    small_yard.set()
    small_yard.genba("agent", "register", "visitor", "--manager")

    listed = small_yard.genba("agent", "list").out.splitlines()
    assert listed[-1].split(maxsplit=3) == ["visitor", "-", "registered", "comes by itself, as a manager"]
    again = small_yard.genba("agent", "register", "visitor", check=5)
    assert "genba agent passkey rotate visitor" in again.err
    refused = small_yard.genba("agent", "register", "a\x1b[31m\nb", check=2)
    assert "is no name for an agent" in refused.err


async def test_a_passkey_that_is_revoked_frees_the_task_at_once(room: Guests) -> None:
    number = await room.open_task()
    caller = await room.comes()
    await room.service.get_next_action(caller)

    await asyncio.to_thread(room.yard.genba, "agent", "passkey", "revoke", "visitor")

    assert room.fleet.board.get(number).status is TaskStatus.OPEN
    with pytest.raises(WorkflowError) as refused:
        await room.service.get_next_action(caller)
    assert refused.value.action == "exit"


def test_a_task_can_be_assigned_to_a_registered_agent(small_yard: Yard) -> None:
    small_yard.agent()
    small_yard.set()
    small_yard.genba("agent", "register", "boss", "--manager")

    small_yard.genba("task", "add", "Greet everybody", "--assignee", "boss")
    refused = small_yard.genba("task", "add", "Greet everybody", "--assignee", "bos", check=4)

    assert small_yard.look(1).assignee == "boss"
    assert 'did you mean "boss"' in refused.err


def test_a_passkey_is_printed_once_and_kept_nowhere(small_yard: Yard) -> None:
    small_yard.agent()
    small_yard.set()
    output = msgspec.json.decode(small_yard.genba("agent", "register", "visitor", "--json").out)
    passkey = output["passkey"]

    small_yard.genba("agent", "passkey", "revoke", "visitor")
    small_yard.genba("agent", "passkey", "revoke", "visitor")

    assert passkey.startswith("gbk_")
    for folder, _, names in os.walk(small_yard.project.root):
        for name in names:
            assert passkey.encode() not in (Path(folder) / name).read_bytes(), name
    refused = small_yard.genba("agent", "passkey", "rotate", "nobody", check=4)
    assert "genba agent register nobody" in refused.err
