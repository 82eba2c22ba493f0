"""The nouns of the state-driven workflow: an agent asks, and the server answers with the one next action.

The next action depends on the state of the blackboard alone. The same question has the same answer.
"""

from enum import StrEnum
from typing import Any

import msgspec

from genba.domain.errors import GenbaError
from genba.domain.tasks.task import Blocker, Priority, TaskStatus


class Hierarchy(StrEnum):
    """What an agent does with the parts of its task."""

    WORKER = "worker"
    """Carries them out itself, one after the other, on the branch of its task."""
    MANAGER = "manager"
    """Has others carry them out, each on a branch of its own. It never works itself."""


class Phase(StrEnum):
    """How far a session has come, as it is written into the contexts of its task."""

    NEW = ""
    FETCHED = "workflow:task_fetched"
    PLANNED = "workflow:subtasks_created"
    EXECUTING = "workflow:executing"
    COMPLETED = "workflow:completed"


class ActionKind(StrEnum):
    GET_TASK = "get_task"
    CREATE_SUBTASKS = "create_subtasks"
    START_SUBTASK = "start_subtask"
    EXECUTE_SUBTASK = "execute_subtask"
    DELEGATE = "delegate"
    WAIT = "wait"
    HANDLE_BLOCKED = "handle_blocked"
    REWORK = "rework"
    REPORT_COMPLETION = "report_completion"
    EXIT = "exit"


class Tool(StrEnum):
    AUTHENTICATE = "authenticate"
    GET_NEXT_ACTION = "get_next_action"
    GET_MY_TASK = "get_my_task"
    CREATE_TASK = "create_task"
    CREATE_TASKS_BATCH = "create_tasks_batch"
    UPDATE_TASK_STATUS = "update_task_status"
    ASSIGN_TASK = "assign_task"
    REPORT_COMPLETED = "report_completed"
    REPORT_BLOCKED = "report_blocked"
    SAVE_CONTEXT = "save_context"
    SEND_MESSAGE = "send_message"
    GET_MESSAGES = "get_messages"
    LIST_TASKS = "list_tasks"
    GET_TASK = "get_task"
    LIST_WORKERS = "list_workers"
    HELP = "help"
    LOGOUT = "logout"


class ExitReason(StrEnum):
    """Why there is nothing left to do for an instance."""

    COMPLETED = "completed"
    """Its work is verified; the merge queue takes it from here."""
    SUSPENDED = "suspended"
    """Others work, and it is started again when something happens."""
    BLOCKED = "blocked"
    """It reported that it cannot continue; a person or its manager must act."""
    CANCELLED = "cancelled"
    PAUSED = "paused"
    """A person paused the task or the project."""
    BUDGET = "budget"
    NO_TASK = "no_task"
    NO_PROGRESS = "no_progress"
    """It asks again and again, and nothing changes."""
    REVOKED = "revoked"
    TAKEN = "taken"
    """Another session works on the task."""


class ErrorCode(StrEnum):
    NOT_AUTHENTICATED = "not_authenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    INVALID_TRANSITION = "invalid_transition"
    OUT_OF_ORDER = "out_of_order"
    CONFLICT = "conflict"
    LIMIT = "limit"
    VALIDATION = "validation"


class WorkflowError(GenbaError):
    """A call that is refused: nothing was changed. `action` says what to do now, in one word."""

    def __init__(self, code: ErrorCode, message: str, *, hint: str = "", action: str = "get_next_action") -> None:
        super().__init__(message, unchanged="nothing was changed.", hint=hint)
        self.code = code
        self.action = action

    def as_dict(self) -> dict[str, Any]:
        """What the caller sees."""
        return {"code": str(self.code), "message": self.message, "hint": self.hint, "action": self.action}


class SubtaskView(msgspec.Struct, frozen=True, kw_only=True):
    """A task or a subtask, as far as the next action depends on it."""

    number: int
    title: str
    body: str = ""
    type: str = "task"
    status: TaskStatus = TaskStatus.OPEN
    priority: Priority = Priority.MEDIUM
    assignee: str = ""
    dependencies: tuple[int, ...] = ()
    goals: tuple[str, ...] = ()
    """Its own acceptance criteria, a line each."""
    scope: tuple[str, ...] = ()
    blocker: Blocker | None = None
    attempts: int = 0
    """Sessions that tried it and came to nothing, and questions about it that its manager has answered."""
    with_human: bool = False
    """Whether its manager has given the matter to a person."""
    version: int = 1


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Why a claim was not believed."""

    task: int
    commit: str = ""
    verdict: str = ""
    """In a few words: goals_failed, no_artifacts, conflict, …"""
    summary: str = ""
    failing: tuple[str, ...] = ()
    """The goals that do not hold, a line each."""
    output: str = ""
    """The end of what the first failing goal printed."""
    round: int = 1
    rounds: int = 0
    """How often it may come back in all; 0: no limit."""


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that a manager can give work to."""

    name: str
    hierarchy: Hierarchy = Hierarchy.WORKER
    role: str = "developer"
    capabilities: tuple[str, ...] = ()
    load: int = 0
    """Tasks that it works on, or that wait for it."""
    description: str = ""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the next action is decided on, seen at one moment."""

    agent: str
    hierarchy: Hierarchy = Hierarchy.WORKER
    spawned: bool = True
    """Whether Genba started the instance; the others came by themselves."""
    task: SubtaskView | None = None
    phase: Phase = Phase.NEW
    atomic: bool = False
    """True when the agent declared that the task needs no subtasks."""
    pieces: tuple[SubtaskView, ...] = ()
    """The subtasks, in the order in which they were made."""
    evidence: Evidence | None = None
    """The newest verdict on a claim of this task, or of the subtask in progress, when it was red."""
    answered: bool = False
    """For managers: whether a subtask that was made after the evidence is done, so that it is worth claiming again."""
    verified: str = ""
    """The commit of this session that every required goal passed on."""
    ending: ExitReason | None = None
    """Why the instance must stop whatever it does."""
    worker_needed: bool = False
    """Whether a subtask could begin at once if this instance gave its worker free."""
    waited_seconds: float = 0.0
    """How long this instance has only waited."""
    suspend_seconds: float = 60.0
    """After how long a spawned instance that only waits is stopped."""
    repeats: int = 0
    """How often it asked since anything last changed."""
    max_repeats: int = 25
    reworks: int = 0
    """How often its claim was red."""
    max_reworks: int = 10
    messages: int = 0
    """Messages that it has not read."""
    max_subtasks: int = 10
    may_split: bool = True
    """Whether the task may have subtasks at all: depth is bounded."""


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """The one next action. The instruction is written by `judgement.workflow.instructions`."""

    action: ActionKind
    tools: tuple[Tool, ...]
    """Tools that this action allows, besides those that are always allowed."""
    reason: str = ""
    """For `exit` and `wait`: why. For `handle_blocked`: what is wrong, `deadlock` when subtasks wait for each other."""
    task: SubtaskView | None = None
    subtask: SubtaskView | None = None
    subtasks: tuple[SubtaskView, ...] = ()
    """What a manager delegates, waits for, or has to handle."""
    next_subtask: SubtaskView | None = None
    """For `delegate`: the one to give away first."""
    in_progress: tuple[SubtaskView, ...] = ()
    """For `wait`: the subtasks in progress, without their texts."""
    evidence: Evidence | None = None
    choices: tuple[str, ...] = ()
    """For `handle_blocked`: retry, reassign, split, cancel, ask_human."""
    retry_after: float = 0.0
    """For `wait`: seconds after which it is worth asking again, if nothing woke the call before."""
    warning: str = ""
    """That nothing has changed for a long time."""
    messages: int = 0
    instruction: str = ""


ALWAYS = (
    Tool.GET_NEXT_ACTION,
    Tool.GET_MESSAGES,
    Tool.SEND_MESSAGE,
    Tool.SAVE_CONTEXT,
    Tool.LIST_TASKS,
    Tool.GET_TASK,
    Tool.HELP,
    Tool.LOGOUT,
)
"""Tools that every session may call at any time."""


class AgentConnection(msgspec.Struct, frozen=True, kw_only=True):
    """Who is calling: one instance with a token, and what it is bound to."""

    id: str
    """Public; it is no secret."""
    agent: str
    agent_id: str
    hierarchy: Hierarchy
    project: str
    run: str = ""
    """The session that it works in; empty before an external agent has taken a task."""
    task: int | None = None
    spawned: bool = True
    status: str = "active"
    """active | closed"""
    closed: str = ""
    """Why."""
    lease_until: str = ""
    created_at: str = ""


class RegisteredAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that may come by itself, with a passkey."""

    id: str
    name: str
    hierarchy: Hierarchy = Hierarchy.WORKER
    role: str = "developer"
    capabilities: tuple[str, ...] = ()
    system_prompt: str = ""
    status: str = "active"
    """active | inactive"""
    has_passkey: bool = False
    created_at: str = ""


class SubtaskDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A subtask as an agent asks for it."""

    title: str
    body: str = ""
    type: str = "task"
    priority: Priority = Priority.MEDIUM
    local_id: str = ""
    """Its name within the batch, for `depends_on`."""
    depends_on: tuple[str, ...] = ()
    """Local ids of the batch, or numbers of subtasks that are there already, such as "12"."""
    goals: tuple[dict[str, Any], ...] = ()
    scope: tuple[str, ...] = ()
    assignee: str = ""


class MessageType(StrEnum):
    INSTRUCTION = "instruction"
    """From one agent to the agents of a task."""
    HANDOVER = "handover"
    """What one attempt leaves for the next."""
    BROADCAST = "broadcast"
    """From one agent to all."""


class BroadcastScope(StrEnum):
    """Whom a broadcast reaches."""

    PROJECT = "project"
    TREE = "tree"
    """Those who work on the same task, or on anything above or below it."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    sender: str
    type: str
    """instruction | handover | broadcast"""
    content: str
    task: int | None = None
    """The task of the sender."""
    created_at: str = ""
    status: str = "pending"
    """pending | read | resolved"""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent writes down for the next session."""

    progress: str = ""
    findings: str = ""
    blockers: str = ""
    next_steps: str = ""
    agent: str = ""
    created_at: str = ""


class SessionResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the blackboard says of a session when its instance has ended."""

    connected: bool = False
    """Whether an instance has authenticated for it since it was asked last."""
    completed: bool = False
    """Whether a claim of it was verified, and nothing changed since."""
    blocked: str = ""
    """Why it reported that it cannot continue."""
    suspended: str = ""
    """Why it was stopped for now: others carry out the parts of its task."""
    paused: str = ""
    """Set when a person paused its task."""
    refused: str = ""
    """Why it stopped for good: no progress, budget used up, or task cancelled."""
    last_action: str = ""
    calls: int = 0
