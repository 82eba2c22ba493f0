"""External agents take a task when they ask for the first time, and give it back when they leave."""

from collections.abc import Iterator

from genba.coordination.workflow.boards import Boards, refused
from genba.coordination.workflow.work_verifier import WorkVerifier
from genba.domain.errors import GenbaError
from genba.domain.fleet.records import FleetSnapshot
from genba.domain.tasks.task import Task
from genba.domain.workflow.actions import AgentConnection, ErrorCode, ExitReason, Hierarchy, WorkflowError

_TRIED = 5
"""Tasks that are tried one after the other, when others are quicker."""


class ExternalTasks:
    def __init__(self, boards: Boards, desk: WorkVerifier) -> None:
        self._boards = boards
        self._desk = desk

    async def take(self, connection: AgentConnection) -> AgentConnection:
        """The connection with a task: the one it had, else the next ready one; unchanged when there is none."""
        field = await self._boards.read(self._boards.fleet.field)
        agent = await self._boards.read(lambda: self._boards.board.agent(connection.agent_id))
        capabilities = frozenset(agent.capabilities if agent else ())
        for _, number in zip(range(_TRIED), _candidates(field, connection, capabilities), strict=False):
            taken = await self._taken(connection, number)
            if taken is not None:
                return taken
        return connection

    async def release(self, connection: AgentConnection, reason: ExitReason) -> None:
        """An external agent is done with its task, one way or the other, and keeps its connection."""
        if reason is not ExitReason.COMPLETED:
            await self.let_go(connection, str(reason))
        await self._boards.write(lambda: self._boards.board.unbind(connection.id))

    async def leave(self, connection: AgentConnection, why: str) -> None:
        """An external agent leaves its connection. What it has not brought to an end is free again.

        Refused while its session runs on all the same: the connection is what is left to find that by.
        """
        if connection.task is None or connection.spawned:
            return
        await self.let_go(connection, why)
        session = await self._boards.read(lambda: self._boards.fleet.session(connection.run))
        if session.status == "running":
            raise WorkflowError(ErrorCode.CONFLICT, "its task is not free yet", hint="call it again", action="retry")

    async def let_go(self, connection: AgentConnection, why: str) -> None:
        if connection.task is None or connection.spawned:
            return
        try:
            await self._desk.let_go(connection, why)
        except GenbaError as error:
            raise refused(error) from error

    async def _taken(self, connection: AgentConnection, number: int) -> AgentConnection | None:
        """None when another session has it."""
        try:
            taken = await self._desk.take(connection, number)
        except WorkflowError as error:
            if error.code in (ErrorCode.CONFLICT, ErrorCode.INVALID_TRANSITION, ErrorCode.NOT_FOUND):
                return None
            raise
        except GenbaError as error:
            if refused(error).code in (ErrorCode.CONFLICT, ErrorCode.NOT_FOUND):
                return None
            raise refused(error) from error
        return await self._boards.write(lambda: self._boards.board.bind(connection.id, taken.run, number))


def _candidates(field: FleetSnapshot, connection: AgentConnection, capabilities: frozenset[str]) -> Iterator[int]:
    for session in field.sessions:
        if session.agent == connection.agent and session.status == "running" and session.external:
            yield session.task
    if field.paused or field.stopping:
        return
    for number in field.ready:
        task = field.tasks[number]
        if number not in field.held and task.review_of is None and not task.decompose:
            mine = task.assignee == connection.agent
            if mine or (connection.hierarchy is Hierarchy.WORKER and _fits(task, capabilities)):
                yield number


def _fits(task: Task, capabilities: frozenset[str]) -> bool:
    """Whether an unassigned task fits these capabilities; an agent without any takes every task."""
    return not task.assignee and (not capabilities or bool({task.type, *task.labels} & capabilities))
