"""The blackboard, as the tools read and write it. What it refuses, they refuse with a code.

A SQLite file is read where one stands: that takes less than a thread. Everything else is done in a thread, so that one
slow call blocks no other.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.workflow.connection_values import PlannedAlreadyError, WorkflowLimits
from genba.blackboard.workflow.workflow_board import WorkflowBoard
from genba.definitions.project.work_sections import FleetSettings
from genba.domain.errors import (
    ConfigurationError,
    GenbaError,
    NotFoundError,
    RecoverableError,
    StateConflictError,
    UnavailableError,
    UsageError,
)
from genba.domain.tasks.task import Actor, ActorKind
from genba.domain.workflow.actions import (
    AgentConnection,
    ErrorCode,
    Evidence,
    Hierarchy,
    Phase,
    Snapshot,
    SubtaskView,
    Tool,
    WorkflowError,
)
from genba.judgement.language.sentences import evidence_in
from genba.judgement.workflow.next_action import allowed, decide

T = TypeVar("T")

_AGAIN = "call it again in a few seconds"


class Boards:
    """Reads and writes for the tools, and says who may do what."""

    def __init__(self, board: WorkflowBoard, fleet: FleetBoard, settings: FleetSettings) -> None:
        self.board = board
        self.fleet = fleet
        self.settings = settings
        self.pulse = board.pulse()
        self.on_postgres = board.store.on_postgres
        self._looks = 0
        self.has_fetched: Callable[[str], bool] = lambda _connection: True
        """Whether the instance in a connection has fetched its task, by the id of the connection."""
        workflow, decompose = settings.workflow, settings.decompose
        self.limits = WorkflowLimits(
            suspend_seconds=workflow.suspend_seconds,
            max_repeats=workflow.max_repeats,
            max_reworks=workflow.max_reworks,
            max_subtasks=decompose.max_parts,
            max_depth=decompose.max_depth,
        )

    async def read(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(work) if self.on_postgres else work()
        except GenbaError as error:
            raise refused(error) from error

    async def write(self, work: Callable[[], T], code: ErrorCode = ErrorCode.CONFLICT) -> T:
        """`code` is what a refusal means that comes from the state of a task."""
        try:
            return await asyncio.to_thread(work)
        except GenbaError as error:
            raise refused(error, code) from error

    async def beat(self) -> int:
        """The same number twice: nothing was written in between. On PostgreSQL it always changes."""
        if self.on_postgres:
            self._looks += 1
            return self._looks
        return self.pulse.now()

    async def snapshot(self, connection: AgentConnection, *, waited_seconds: float = 0.0) -> Snapshot:
        """The state of the connection's task. The phase is NEW until the instance has fetched its task."""
        seen = await self.read(lambda: self.board.snapshot(connection.id, self.limits, waited_seconds=waited_seconds))
        seen = msgspec.structs.replace(seen, evidence=self.in_language(seen.evidence))
        if seen.phase in (Phase.NEW, Phase.COMPLETED) or self.has_fetched(connection.id):
            return seen
        return msgspec.structs.replace(seen, phase=Phase.NEW)

    def in_language(self, evidence: Evidence | None) -> Evidence | None:
        """Why work is not done, in the language of the project."""
        return None if evidence is None else evidence_in(self.settings.workflow.language, evidence)

    async def permitted(self, connection: AgentConnection, tool: Tool) -> tuple[Snapshot, SubtaskView]:
        """What the blackboard shows now, and the task, for a connection that may call this tool now; else a refusal."""
        snapshot = await self.snapshot(connection)
        if snapshot.task is None and not connection.spawned and snapshot.ending is None:
            raise WorkflowError(ErrorCode.OUT_OF_ORDER, "you have no task", hint="call get_next_action to get one")
        code = allowed(snapshot, tool)
        if code is not None:
            raise _not_now(snapshot, tool, code)
        if snapshot.task is None:
            raise WorkflowError(ErrorCode.OUT_OF_ORDER, "you have no task", hint="call get_next_action to get one")
        return snapshot, snapshot.task

    async def own(self, connection: AgentConnection, number: int) -> SubtaskView:
        """A task that the connection may name: its own, or one below it."""
        task = await self.task_of(connection)
        if number == task or number in await self.read(lambda: self.board.below(task)):
            return await self.read(lambda: self.board.piece(number))
        if await self._in_one_tree(task, number):
            raise WorkflowError(
                ErrorCode.FORBIDDEN,
                f"#{number} is in the hands of another session",
                hint="list_tasks shows the tasks that are yours",
            )
        raise unknown(number)

    async def child(self, connection: AgentConnection, number: int) -> SubtaskView:
        """A subtask right below the task of the connection."""
        piece = await self.own(connection, number)
        task = await self.task_of(connection)
        if number != task and all(one.number != number for one in await self.read(lambda: self.board.pieces(task))):
            raise WorkflowError(
                ErrorCode.FORBIDDEN,
                f"#{number} is a subtask of a subtask; its own manager decides about it",
                hint="send_message tells them what you think of it",
            )
        return piece

    async def task_of(self, connection: AgentConnection) -> int:
        if connection.task is None:
            raise WorkflowError(ErrorCode.OUT_OF_ORDER, "you have no task", hint="call get_next_action to get one")
        return connection.task

    async def parent_of(self, number: int) -> int | None:
        task = await self.read(lambda: self.board.board.get(number))
        return task.parent

    async def line_above(self, number: int) -> tuple[int, ...]:
        """Everything above a task, the nearest first."""
        line: list[int] = []
        above = await self.parent_of(number)
        while above is not None and above not in line:
            line.append(above)
            above = await self.parent_of(above)
        return tuple(line)

    async def _in_one_tree(self, mine: int, other: int) -> bool:
        try:
            there = (other, *await self.line_above(other))
        except WorkflowError:
            return False
        here = (mine, *await self.line_above(mine))
        return here[-1] == there[-1]


def actor_of(connection: AgentConnection) -> Actor:
    kind = ActorKind.MANAGER if connection.hierarchy is Hierarchy.MANAGER else ActorKind.WORKER
    return Actor(kind, connection.agent)


def unknown(number: int) -> WorkflowError:
    """The same error for a task that does not exist and for one that the caller may not see."""
    return WorkflowError(
        ErrorCode.NOT_FOUND, f"there is no task #{number}", hint="list_tasks shows the tasks that are yours"
    )


def refused(error: GenbaError, code: ErrorCode = ErrorCode.CONFLICT) -> WorkflowError:
    """A Genba error as the error of a tool."""
    match error:
        case WorkflowError():
            return error
        case PlannedAlreadyError():
            there = ", ".join(f"#{number}" for number in error.numbers)
            return WorkflowError(
                ErrorCode.CONFLICT, f"{error.message}: {there}", hint=error.hint or "go on with these: get_next_action"
            )
        case UnavailableError() | RecoverableError():
            return WorkflowError(ErrorCode.CONFLICT, error.message, hint=_AGAIN, action="retry")
        case NotFoundError():
            return WorkflowError(ErrorCode.NOT_FOUND, error.message, hint="list_tasks shows the tasks that are yours")
        case StateConflictError():
            return WorkflowError(code, error.message, hint="get_next_action says what is next")
        case ConfigurationError():
            message = "; ".join(str(problem) for problem in error.problems)
            return WorkflowError(ErrorCode.VALIDATION, message, hint="fix that, and call it again")
        case UsageError():
            return WorkflowError(ErrorCode.VALIDATION, error.message, hint="fix that, and call it again")
    return WorkflowError(ErrorCode.CONFLICT, error.message, hint=_AGAIN, action="retry")


def _not_now(snapshot: Snapshot, tool: Tool, code: ErrorCode) -> WorkflowError:
    if code is ErrorCode.FORBIDDEN:
        return WorkflowError(
            code, f"a {snapshot.hierarchy} never calls {tool}", hint="help lists the tools of your role"
        )
    action = decide(snapshot)
    tools = ", ".join(action.tools) or "none but those that are always allowed"
    leaves = action.action == "exit"
    return WorkflowError(
        code,
        f"{tool} is out of order: the next action is {action.action}" + (f" ({action.reason})" if leaves else ""),
        hint="stop: there is nothing left to do here" if leaves else f"call get_next_action; it allows: {tools}",
        action="exit" if leaves else "get_next_action",
    )
