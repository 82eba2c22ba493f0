"""The double of the desk passes the suite that the real ones pass."""

import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.coordination.workflow.work_verifier import WorkVerifier
from genba.domain.workflow.actions import AgentConnection, Hierarchy
from tests.doubles.workflow_conformance import DeskSuite, ExternalAgentSuite
from tests.workflow.context import House

_NAMES = itertools.count(1)


class ScriptedRoom:
    def __init__(self, context: House) -> None:
        self._house = context
        self.desk: WorkVerifier = context.desk
        self.fleet: FleetBoard = context.fleet

    async def connected(self) -> AgentConnection:
        number = self._house.task()
        run = self._house.begin(number)
        return self._connection(run=run, task=number)

    async def step(self, connection: AgentConnection) -> int:
        return self._house.task("A step", parent=connection.task, in_plan=True)

    async def external_agent(self) -> AgentConnection:
        return self._connection(agent=f"external agent{next(_NAMES)}", spawned=False)

    async def open_task(self) -> int:
        return self._house.task()

    async def work(self, connection: AgentConnection, number: int, good: bool) -> None:
        assert connection.task is not None
        self._house.desk.script[number] = [good]

    def _connection(self, agent: str = "writer", **more: Any) -> AgentConnection:
        return AgentConnection(
            id="s1", agent=agent, agent_id=agent, hierarchy=Hierarchy.WORKER, project=self._house.project, **more
        )


class TestScriptedDesk(DeskSuite, ExternalAgentSuite):
    @pytest.fixture
    async def room(self, open_board: Callable[..., Any]) -> AsyncIterator[ScriptedRoom]:
        context = House(open_board)
        yield ScriptedRoom(context)
        context.desk.script.clear()
        await context.close()
