"""The tools of the state-driven workflow, one method each, whatever door they are called through.

Law: a call is refused unless the caller may make it now, about that task (`WorkflowError`, nothing was changed). What a
call did stands on the blackboard before it is answered, so a service that dies is replaced by another at any line.
"""

from collections.abc import Callable, Mapping

from genba.blackboard.fleet import FleetBoard
from genba.coordination.workflow.answers import (
    Blocked,
    Caller,
    Claimed,
    Crew,
    Help,
    Inbox,
    Kept,
    Left,
    Made,
    Moved,
    Seated,
    Sent,
    TaskBrief,
    TaskList,
    TaskView,
)
from genba.coordination.workflow.desk import Desk
from genba.definitions.fleet_file import FleetSettings
from genba.domain.tasks import TaskStatus
from genba.domain.workflow import Action, ErrorCode, SubtaskDraft, Worker, WorkflowError


class WorkflowService:
    """What agents ask and report."""

    def __init__(
        self,
        board: object,
        fleet: FleetBoard,
        desk: Desk,
        settings: FleetSettings,
        project_id: str,
        overrides: Mapping[str, str],
        agents: Callable[[], tuple[Worker, ...]],
    ) -> None:
        self.board = board
        self.fleet = fleet
        self.desk = desk
        self.settings = settings
        self.project_id = project_id
        self.overrides = overrides
        self.agents = agents

    async def authenticate(
        self, caller: Caller, *, agent_id: str = "", passkey: str = "", project_id: str = ""
    ) -> Seated:
        """A token for a one-time credential (`caller.token`, or `passkey`), or for an agent's passkey."""
        raise _not_there()

    async def get_next_action(self, caller: Caller) -> Action:
        """The one next action. The same object is answered as long as nothing has changed."""
        raise _not_there()

    async def get_my_task(self, caller: Caller) -> TaskBrief:
        raise _not_there()

    async def create_task(self, caller: Caller, draft: SubtaskDraft, *, key: str = "") -> Made:
        raise _not_there()

    async def create_tasks_batch(self, caller: Caller, drafts: tuple[SubtaskDraft, ...], *, key: str = "") -> Made:
        raise _not_there()

    async def update_task_status(self, caller: Caller, task_id: int, status: str, *, reason: str = "") -> Moved:
        raise _not_there()

    async def assign_task(self, caller: Caller, task_id: int, agent: str, *, note: str = "") -> Moved:
        raise _not_there()

    async def report_completed(self, caller: Caller, *, summary: str = "") -> Claimed:
        raise _not_there()

    async def report_blocked(self, caller: Caller, reason: str, *, task_id: int | None = None) -> Blocked:
        raise _not_there()

    async def save_context(
        self, caller: Caller, *, progress: str = "", findings: str = "", blockers: str = "", next_steps: str = ""
    ) -> Kept:
        raise _not_there()

    async def send_message(self, caller: Caller, content: str, *, to: str = "", task_id: int | None = None) -> Sent:
        """To an agent by name, or to whoever works on a task; without either, to the parent of the session's task."""
        raise _not_there()

    async def get_messages(self, caller: Caller, *, mark_read: bool = True) -> Inbox:
        raise _not_there()

    async def list_tasks(self, caller: Caller, *, status: TaskStatus | None = None) -> TaskList:
        raise _not_there()

    async def get_task(self, caller: Caller, task_id: int) -> TaskView:
        raise _not_there()

    async def list_workers(self, caller: Caller) -> Crew:
        raise _not_there()

    async def help(self, caller: Caller, *, tool: str = "") -> Help:
        raise _not_there()

    async def logout(self, caller: Caller, *, reason: str = "") -> Left:
        raise _not_there()

    async def sweep(self) -> int:
        """Close the seats whose lease or token has run out; whoever serves calls this every few seconds."""
        raise _not_there()

    def close(self) -> None:
        """Let go of what the service holds open. The boards stay open."""


def _not_there() -> WorkflowError:
    return WorkflowError(ErrorCode.CONFLICT, "the workflow is not served here yet")
