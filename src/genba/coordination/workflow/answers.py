"""Who calls a tool, and what each tool answers. A refusal is a `WorkflowError`, and never a value."""

import msgspec

from genba.domain.workflow.actions import ActionKind, Evidence, Hierarchy, Message, Note, SubtaskView, Tool, Worker


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The credentials of a caller. They are secrets: never logged, never in an event or error."""

    token: str = ""
    """A session token (`gbs_…`), or the one-time credential (`gbo_…`) that it is got with."""
    door: str = ""
    """stdio | http | socket"""

    def __repr__(self) -> str:
        return f"Caller(door={self.door!r})"


class Authenticated(msgspec.Struct, frozen=True, kw_only=True):
    """`authenticate`: the token is shown this once."""

    session_token: str
    agent: str
    hierarchy: Hierarchy
    project_id: str
    task: int | None = None
    expires_at: str = ""
    language: str = "en"
    system_prompt: str = ""
    """What the agent was registered with; empty for an instance that was started with it."""
    next: str = "Call get_next_action with this session_token, and do what it says."

    def __repr__(self) -> str:
        return f"Seated(agent={self.agent!r}, task={self.task!r})"


class TaskBrief(msgspec.Struct, frozen=True, kw_only=True):
    """`get_my_task`: everything that is known of the task."""

    task: SubtaskView
    hierarchy: Hierarchy
    branch: str = ""
    base_branch: str = ""
    path: str = ""
    """The working tree, as the instance sees it; empty for a manager."""
    goals: tuple[str, ...] = ()
    """What the work is held to, a line each."""
    note: str = ""
    """What those who tried before have left."""
    notes: tuple[Note, ...] = ()
    messages: tuple[Message, ...] = ()
    """Unresolved messages about it, with the note of assign_task. They count as read with this."""
    subtasks: tuple[SubtaskView, ...] = ()
    next: str = "Call get_next_action."


class CreatedTasks(msgspec.Struct, frozen=True, kw_only=True):
    """`create_task`, `create_tasks_batch`: the subtasks that there are now for this request."""

    subtasks: tuple[SubtaskView, ...]
    next: str = "Call get_next_action."


class TaskChanged(msgspec.Struct, frozen=True, kw_only=True):
    """`update_task_status`, `assign_task`: the task as it stands now."""

    task: SubtaskView
    done: bool = False
    evidence: Evidence | None = None
    """Why a subtask is not done, although it was reported done."""
    next: str = "Call get_next_action."


class ClaimResult(msgspec.Struct, frozen=True, kw_only=True):
    """`report_completed`: what the claim came to. Not to be verified is no error."""

    verified: bool
    commit: str = ""
    evidence: Evidence | None = None
    next: str = "Call get_next_action."


class BlockReported(msgspec.Struct, frozen=True, kw_only=True):
    """`report_blocked`: who it is with now."""

    task: int
    reason: str
    next: str = "Call get_next_action."


class ContextSaved(msgspec.Struct, frozen=True, kw_only=True):
    """`save_context`."""

    task: int
    next: str = "Go on with what you were doing."


class MessageSent(msgspec.Struct, frozen=True, kw_only=True):
    """`send_message`."""

    to: str
    """A task, or `everybody`."""
    tasks: tuple[int, ...] = ()
    """Of a broadcast: the tasks whose agents get it."""
    next: str = "Go on with what you were doing."


class Inbox(msgspec.Struct, frozen=True, kw_only=True):
    """`get_messages`, oldest first: what this session has not fetched."""

    messages: tuple[Message, ...]


class TaskList(msgspec.Struct, frozen=True, kw_only=True):
    """`list_tasks`: the task of the session and everything below it."""

    tasks: tuple[SubtaskView, ...]


class TaskDetails(msgspec.Struct, frozen=True, kw_only=True):
    """`get_task`."""

    task: SubtaskView
    parent: int | None = None
    notes: tuple[Note, ...] = ()
    evidence: str = ""
    """The newest verdict on it, in a line."""


class WorkerList(msgspec.Struct, frozen=True, kw_only=True):
    """`list_workers`: those who have the least to do come first."""

    workers: tuple[Worker, ...]


class Help(msgspec.Struct, frozen=True, kw_only=True):
    """`help`."""

    hierarchy: Hierarchy
    action: ActionKind
    tools: dict[Tool, str]
    """What each tool does that may be called now."""
    text: str


class LoggedOut(msgspec.Struct, frozen=True, kw_only=True):
    """`logout`."""

    reason: str
    next: str = "Stop."
