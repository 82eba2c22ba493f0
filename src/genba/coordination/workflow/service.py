"""The tools of the state-driven workflow, one method each, whatever door they are called through.

Law: a call is refused unless the caller may make it now, about that task (`WorkflowError`, nothing was changed). What a
call did stands on the blackboard before it is answered, so a service that dies is replaced by another at any line.
"""

from collections.abc import Callable, Mapping

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.workflow.workflow_board import WorkflowBoard
from genba.coordination.engine.clock_watch import ClockWatch
from genba.coordination.workflow.agent_connections import AgentConnections
from genba.coordination.workflow.answers import (
    Authenticated,
    BlockReported,
    Caller,
    ClaimResult,
    ContextSaved,
    CreatedTasks,
    Help,
    Inbox,
    LoggedOut,
    MessageSent,
    TaskBrief,
    TaskChanged,
    TaskDetails,
    TaskList,
    WorkerList,
)
from genba.coordination.workflow.boards import Boards
from genba.coordination.workflow.claims import Claims
from genba.coordination.workflow.external_tasks import ExternalTasks
from genba.coordination.workflow.messages import LONGEST_MESSAGE, MessageTools
from genba.coordination.workflow.next_action import NextActions
from genba.coordination.workflow.rate_limits import Clocks, SystemClocks
from genba.coordination.workflow.reports import LONGEST_REASON, Reports, held
from genba.coordination.workflow.subtasks import Subtasks, TaskTypes
from genba.coordination.workflow.visibility import TaskLists
from genba.coordination.workflow.work_verifier import WorkVerifier
from genba.definitions.project.work_sections import FleetSettings
from genba.domain.tasks.task import TaskStatus
from genba.domain.workflow.actions import (
    Action,
    BroadcastScope,
    ErrorCode,
    Note,
    SubtaskDraft,
    Tool,
    Worker,
    WorkflowError,
)


class WorkflowService:
    """What agents ask and report."""

    def __init__(
        self,
        board: WorkflowBoard,
        fleet: FleetBoard,
        desk: WorkVerifier,
        settings: FleetSettings,
        project_id: str,
        overrides: Mapping[str, str],
        agents: Callable[[], tuple[Worker, ...]],
        times: Clocks | None = None,
        types: TaskTypes | None = None,
    ) -> None:
        """`agents` are those that a fleet can start; `types` are those of the project's tasks."""
        clock = times or SystemClocks()
        self.settings = settings
        self.project_id = project_id
        self._boards = Boards(board, fleet, settings)
        self._connections = AgentConnections(self._boards, project_id, clock)
        self._taking = ExternalTasks(self._boards, desk)
        self._asking = NextActions(self._boards, self._connections, self._taking, overrides, clock)
        self._claims = Claims()
        self._subtasks = Subtasks(self._boards, desk, agents, types or TaskTypes(), self._claims)
        self._reporting = Reports(self._boards, desk, self._taking, self._claims)
        self._talking = MessageTools(self._boards)
        self._looking = TaskLists(self._boards, self._connections, desk)
        self._times = clock
        self._clock = ClockWatch(fleet, settings.workflow.lease_seconds, clock)

    async def authenticate(
        self, caller: Caller, *, agent_id: str = "", passkey: str = "", project_id: str = ""
    ) -> Authenticated:
        """A token for a one-time credential (`caller.token`, or `passkey`), or for an agent's passkey."""
        return await self._connections.authenticate(caller, agent_id, passkey, project_id)

    async def get_next_action(self, caller: Caller) -> Action:
        """The one next action. The same object is answered as long as nothing has changed."""
        return await self._asking.next_action(await self._connections.of(caller))

    async def get_my_task(self, caller: Caller) -> TaskBrief:
        return await self._looking.my_task(await self._connections.of(caller))

    async def create_task(self, caller: Caller, draft: SubtaskDraft, *, key: str = "") -> CreatedTasks:
        """One more subtask of the plan. Without a key the same request is the same subtask."""
        return await self._subtasks.create_one(await self._connections.of(caller), draft, key)

    async def create_tasks_batch(
        self, caller: Caller, drafts: tuple[SubtaskDraft, ...], *, key: str = ""
    ) -> CreatedTasks:
        """The whole plan, or nothing of it. A second plan is refused, with the first one shown."""
        return await self._subtasks.create_batch(await self._connections.of(caller), drafts, key)

    async def update_task_status(self, caller: Caller, task_id: int, status: str, *, reason: str = "") -> TaskChanged:
        connection = await self._connections.of(caller)
        held(reason, LONGEST_REASON, "reason", empty=True)
        return await self._subtasks.update(connection, task_id, status, reason)

    async def assign_task(self, caller: Caller, task_id: int, agent: str, *, note: str = "") -> TaskChanged:
        connection = await self._connections.of(caller)
        held(note, LONGEST_MESSAGE, "note", empty=True)
        return await self._subtasks.assign(connection, task_id, agent, note)

    async def report_completed(self, caller: Caller, *, summary: str = "") -> ClaimResult:
        """Verify the work. A red verdict is an answer, and no error."""
        return await self._reporting.completed(await self._connections.of(caller), summary)

    async def report_blocked(self, caller: Caller, reason: str, *, task_id: int | None = None) -> BlockReported:
        return await self._reporting.blocked(await self._connections.of(caller), reason, task_id)

    async def save_context(
        self, caller: Caller, *, progress: str = "", findings: str = "", blockers: str = "", next_steps: str = ""
    ) -> ContextSaved:
        note = Note(progress=progress, findings=findings, blockers=blockers, next_steps=next_steps)
        return await self._talking.save_context(await self._connections.of(caller), note)

    async def send_message(
        self, caller: Caller, content: str, *, to: str = "", task_id: int | None = None
    ) -> MessageSent:
        """To an agent by name, or to the agents of a task; without either, to the parent of the session's task."""
        return await self._talking.send(await self._connections.of(caller), content, to, task_id)

    async def broadcast(
        self, caller: Caller, content: str, *, scope: BroadcastScope = BroadcastScope.PROJECT
    ) -> MessageSent:
        """To all agents of the project, or of the tree of the caller's task."""
        return await self._talking.broadcast(await self._connections.of(caller), content, scope)

    async def get_messages(self, caller: Caller, *, mark_read: bool = True) -> Inbox:
        return await self._talking.received(await self._connections.of(caller), mark_read)

    async def list_tasks(self, caller: Caller, *, status: TaskStatus | None = None) -> TaskList:
        return await self._looking.tasks(await self._connections.of(caller), status)

    async def get_task(self, caller: Caller, task_id: int) -> TaskDetails:
        return await self._looking.task(await self._connections.of(caller), task_id)

    async def list_workers(self, caller: Caller) -> WorkerList:
        connection = await self._connections.of(caller)
        await self._boards.permitted(connection, Tool.LIST_WORKERS)
        return await self._subtasks.workers(connection)

    async def help(self, caller: Caller, *, tool: str = "") -> Help:
        return await self._looking.help(await self._connections.of(caller), tool)

    async def logout(self, caller: Caller, *, reason: str = "") -> LoggedOut:
        """The instance stops here. An external agent that leaves its task unfinished gives it back."""
        connection = await self._connections.of(caller)
        held(reason, LONGEST_REASON, "reason", empty=True)
        if not connection.spawned and connection.id in self._claims.connections():
            # The next session on the task would find the work of this claim in it.
            message = "your work is being verified, and is handed over when it passes"
            raise WorkflowError(ErrorCode.CONFLICT, message, hint="wait for that, then log out", action="wait")
        why = reason.strip() or "it logged out"
        await self._taking.leave(connection, why)
        await self._connections.close(connection, why)
        self._asking.forget(connection)
        return LoggedOut(reason=why)

    async def sweep(self) -> int:
        """Close the connections whose lease or token has run out; servers call this every few seconds."""
        await self._connections.settle()
        await self._connections.keep(self._claims.connections())
        await self._clock.look()
        at = self._times.now()
        closed = 0
        for connection in await self._boards.read(lambda: self._boards.board.expired(at)):
            try:
                await self._taking.leave(connection, "it was silent for too long")
                await self._connections.close(connection, "expired")
            except WorkflowError:
                continue  # it is still expired when it is looked at again
            self._asking.forget(connection)
            closed += 1
        return closed

    @property
    def waiting(self) -> int:
        """Calls that wait for a verdict right now."""
        return self._claims.waiting

    async def settle(self) -> None:
        """Wait for what is under way: verifications, and signs of life that are being written."""
        await self._claims.settle()
        await self._connections.settle()

    def close(self) -> None:
        """Let go of what the service holds open. The boards stay open; `settle` comes before they are closed."""
        self._boards.pulse.close()
