"""What each tool takes. What does not fit never reaches the service.

Law: every text has a longest length, every choice is an enum, and undeclared names are refused.
"""

from typing import Annotated, Any, Literal, get_origin

import msgspec
from pydantic import BaseModel, ConfigDict, Field, model_validator

from genba.domain.tasks.task import Priority, TaskStatus
from genba.domain.workflow.actions import BroadcastScope

LONGEST_TITLE = 300
LONGEST_BODY = 20_000
LONGEST_MESSAGE = 10_000
LONGEST_REASON = 4_000
MOST_TASKS = 100

Secret = Annotated[str, Field(max_length=300, repr=False)]
Word = Annotated[str, Field(max_length=200)]
Number = Annotated[int, Field(ge=1, le=2**53)]
Reason = Annotated[str, Field(max_length=LONGEST_REASON)]
Text = Annotated[str, Field(max_length=LONGEST_MESSAGE)]
Path = Annotated[str, Field(min_length=1, max_length=1_000)]
GoalItem = Annotated[
    dict[str, Any] | Annotated[str, Field(max_length=2_000)],
    Field(description='One check, such as "file_exists:docs/api.md" or {"type": "tests_pass", "command": "pytest -q"}'),
]


class Arguments(BaseModel):
    """Everything that a call may carry."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _lists_that_were_written_as_text(cls, raw: Any) -> Any:
        """Some models write a list as the JSON of it."""
        if not isinstance(raw, dict):
            return raw
        return {name: _unwrapped(value) if cls._is_list(name) else value for name, value in raw.items()}

    @classmethod
    def _is_list(cls, name: Any) -> bool:
        field = cls.model_fields.get(name) if isinstance(name, str) else None
        return field is not None and get_origin(field.annotation) is list


def _unwrapped(value: Any) -> Any:
    if not isinstance(value, str) or not value.lstrip().startswith("["):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return value


class SessionArguments(Arguments):
    session_token: Secret = Field(
        default="",
        description="The token that authenticate gave. Leave it out where the connection carries it.",
    )


class Authenticate(Arguments):
    agent_id: Word = Field(default="", description="Your id, as you received it. Leave it out if you got none.")
    passkey: Secret = Field(
        default="", description="Your passkey. Leave it out where the connection carries it, which is the usual way."
    )
    project_id: Word = Field(default="", description="The project that you work for; leave it out for the only one.")


class Subtask(Arguments):
    """A subtask to be made."""

    title: str = Field(min_length=1, max_length=LONGEST_TITLE, description="What is to be done, in one line.")
    body: str = Field(default="", max_length=LONGEST_BODY, description="What the agent needs to know to do it.")
    type: Word = Field(default="task", description="A task type of the project.")
    priority: Priority = Field(default=Priority.MEDIUM, description="How urgent it is.")
    local_id: Word = Field(default="", description="Its name within this call, for depends_on of the others.")
    depends_on: list[Annotated[str, Field(max_length=200)] | Number] = Field(
        default_factory=list,
        max_length=MOST_TASKS,
        description="What must be done before: local ids of this call, or numbers of subtasks that are there.",
    )
    goals: list[GoalItem] = Field(
        default_factory=list,
        max_length=50,
        description="Checks that must pass before it is done. They name no command, script, serve or address.",
    )
    scope: list[Path] = Field(default_factory=list, max_length=100, description="Paths it will write, as patterns.")
    assignee: Word = Field(default="", description="Managers only: the agent that is to do it.")


class CreateTask(Subtask, SessionArguments):
    key: Word = Field(default="", description="A name of your own for this call: called again, it makes nothing twice.")


class CreateTasksBatch(SessionArguments):
    tasks: list[Subtask] = Field(min_length=1, max_length=MOST_TASKS, description="The subtasks, all or none.")
    key: Word = Field(default="", description="A name of your own for this call: called again, it makes nothing twice.")


class UpdateTaskStatus(SessionArguments):
    task_id: Number = Field(description="The number of the task.")
    status: TaskStatus = Field(description="What it becomes.")
    reason: Reason = Field(default="", description='Why. "atomic" with your own task: it needs no subtasks.')

    @model_validator(mode="before")
    @classmethod
    def _todo_is_open(cls, raw: Any) -> Any:
        return {**raw, "status": "open"} if isinstance(raw, dict) and raw.get("status") == "todo" else raw


class AssignTask(SessionArguments):
    task_id: Number = Field(description="The number of the subtask.")
    agent: str = Field(min_length=1, max_length=200, description="Its name, as list_workers tells it.")
    note: Text = Field(default="", description="What this agent should know: an answer, a hint.")


class ReportCompleted(SessionArguments):
    summary: Text = Field(default="", description="What you did. It is kept; whether it is done is checked, not read.")


class ReportBlocked(SessionArguments):
    reason: str = Field(min_length=1, max_length=LONGEST_REASON, description="What is in the way, and what you need.")
    task_id: Number | None = Field(
        default=None, description="Managers only: the subtask that a person must decide about; else your own task."
    )


class SaveContext(SessionArguments):
    progress: Text = Field(default="", description="What is done.")
    findings: Text = Field(default="", description="What you learnt.")
    blockers: Text = Field(default="", description="What is in the way.")
    next_steps: Text = Field(default="", description="What comes next.")


class SendMessage(SessionArguments):
    content: str = Field(min_length=1, max_length=LONGEST_MESSAGE, description="The message.")
    to: Word = Field(default="", description="The agent that it is for, by name.")
    task_id: Number | None = Field(
        default=None, description="The task whose agent it is for; without both, the agent of the task above yours."
    )
    type: Literal["instruction", "broadcast"] = Field(
        default="instruction", description="instruction goes to one task, broadcast to all agents."
    )
    scope: BroadcastScope = Field(
        default=BroadcastScope.PROJECT,
        description="Of a broadcast: all agents of the project, or of the tree of tasks that yours is in.",
    )

    @model_validator(mode="after")
    def _all_or_one(self) -> "SendMessage":
        if self.type == "broadcast" and (self.to or self.task_id is not None):
            raise ValueError("a broadcast goes to all agents: leave out to and task_id")
        return self


class GetMessages(SessionArguments):
    mark_read: bool = Field(default=True, description="Whether they count as read from now on.")


class ListTasks(SessionArguments):
    status: TaskStatus | None = Field(default=None, description="Only tasks in this state.")


class GetTask(SessionArguments):
    task_id: Number = Field(description="The number of the task.")


class Help(SessionArguments):
    tool: Word = Field(default="", description="The tool you want to know about; else all that you may call now.")


class Logout(SessionArguments):
    reason: Reason = Field(default="", description="Why you leave, where it is not obvious.")
