"""The tools, each with what it takes, what it answers, and the one call of the service behind it."""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import msgspec

from genba.coordination.workflow import answers
from genba.coordination.workflow.answers import Caller
from genba.coordination.workflow.service import WorkflowService
from genba.definitions.project.goal_text import written_goals
from genba.domain.workflow.actions import Action, SubtaskDraft, Tool
from genba.entrypoints.mcp import arguments
from genba.entrypoints.mcp.arguments import Arguments, SessionArguments

Taken = TypeVar("Taken", bound=Arguments)


class ToolEntry(msgspec.Struct, Generic[Taken], frozen=True, kw_only=True):
    """One tool, as it is listed and called."""

    name: str
    title: str
    description: str
    takes: type[Taken]
    answers: type[msgspec.Struct]
    call: Callable[[WorkflowService, Caller, Taken], Awaitable[msgspec.Struct]]
    reads_only: bool = False
    repeatable: bool = True
    """Whether calling it again with the same arguments changes nothing more."""


def drafted(raw: arguments.Subtask) -> SubtaskDraft:
    """A subtask in the words of the house."""
    goals: list[Any] = written_goals(list(raw.goals))
    return SubtaskDraft(
        title=raw.title,
        body=raw.body,
        type=raw.type,
        priority=raw.priority,
        local_id=raw.local_id,
        depends_on=tuple(str(each) for each in raw.depends_on),
        goals=tuple(goals),
        scope=tuple(raw.scope),
        assignee=raw.assignee,
    )


async def _authenticate(
    service: WorkflowService, caller: Caller, taken: arguments.Authenticate
) -> answers.Authenticated:
    return await service.authenticate(
        caller, agent_id=taken.agent_id, passkey=taken.passkey, project_id=taken.project_id
    )


async def _get_next_action(service: WorkflowService, caller: Caller, _: SessionArguments) -> Action:
    return await service.get_next_action(caller)


async def _get_my_task(service: WorkflowService, caller: Caller, _: SessionArguments) -> answers.TaskBrief:
    return await service.get_my_task(caller)


async def _create_task(service: WorkflowService, caller: Caller, taken: arguments.CreateTask) -> answers.CreatedTasks:
    return await service.create_task(caller, drafted(taken), key=taken.key)


async def _create_batch(
    service: WorkflowService, caller: Caller, taken: arguments.CreateTasksBatch
) -> answers.CreatedTasks:
    return await service.create_tasks_batch(caller, tuple(drafted(each) for each in taken.tasks), key=taken.key)


async def _update_status(
    service: WorkflowService, caller: Caller, taken: arguments.UpdateTaskStatus
) -> answers.TaskChanged:
    return await service.update_task_status(caller, taken.task_id, taken.status, reason=taken.reason)


async def _assign_task(service: WorkflowService, caller: Caller, taken: arguments.AssignTask) -> answers.TaskChanged:
    return await service.assign_task(caller, taken.task_id, taken.agent, note=taken.note)


async def _report_completed(
    service: WorkflowService, caller: Caller, taken: arguments.ReportCompleted
) -> answers.ClaimResult:
    return await service.report_completed(caller, summary=taken.summary)


async def _report_blocked(
    service: WorkflowService, caller: Caller, taken: arguments.ReportBlocked
) -> answers.BlockReported:
    return await service.report_blocked(caller, taken.reason, task_id=taken.task_id)


async def _save_context(service: WorkflowService, caller: Caller, taken: arguments.SaveContext) -> answers.ContextSaved:
    return await service.save_context(
        caller,
        progress=taken.progress,
        findings=taken.findings,
        blockers=taken.blockers,
        next_steps=taken.next_steps,
    )


async def _send_message(service: WorkflowService, caller: Caller, taken: arguments.SendMessage) -> answers.MessageSent:
    if taken.type == "broadcast":
        return await service.broadcast(caller, taken.content, scope=taken.scope)
    return await service.send_message(caller, taken.content, to=taken.to, task_id=taken.task_id)


async def _get_messages(service: WorkflowService, caller: Caller, taken: arguments.GetMessages) -> answers.Inbox:
    return await service.get_messages(caller, mark_read=taken.mark_read)


async def _list_tasks(service: WorkflowService, caller: Caller, taken: arguments.ListTasks) -> answers.TaskList:
    return await service.list_tasks(caller, status=taken.status)


async def _get_task(service: WorkflowService, caller: Caller, taken: arguments.GetTask) -> answers.TaskDetails:
    return await service.get_task(caller, taken.task_id)


async def _list_workers(service: WorkflowService, caller: Caller, _: SessionArguments) -> answers.WorkerList:
    return await service.list_workers(caller)


async def _help(service: WorkflowService, caller: Caller, taken: arguments.Help) -> answers.Help:
    return await service.help(caller, tool=taken.tool)


async def _logout(service: WorkflowService, caller: Caller, taken: arguments.Logout) -> answers.LoggedOut:
    return await service.logout(caller, reason=taken.reason)


TOOLS: tuple[ToolEntry[Any], ...] = (
    ToolEntry(
        name=Tool.AUTHENTICATE,
        title="Begin a session",
        description="Show who you are and get a session token. Call this first, once. "
        "Where your connection carries your secret, call it without arguments.",
        takes=arguments.Authenticate,
        answers=answers.Authenticated,
        call=_authenticate,
        repeatable=False,
    ),
    ToolEntry(
        name=Tool.GET_NEXT_ACTION,
        title="What to do next",
        description="The one thing to do next, with an instruction. Do what it says, then call this again, until the "
        "action is exit. When there is only something to wait for, the call is held until it happens.",
        takes=SessionArguments,
        answers=Action,
        call=_get_next_action,
        reads_only=True,
    ),
    ToolEntry(
        name=Tool.GET_MY_TASK,
        title="My task",
        description="Your task in full: what is to be done, where, and what it is held to.",
        takes=SessionArguments,
        answers=answers.TaskBrief,
        call=_get_my_task,
    ),
    ToolEntry(
        name=Tool.CREATE_TASK,
        title="Create one subtask",
        description="Make one subtask of your task. Several are better made at once with create_tasks_batch.",
        takes=arguments.CreateTask,
        answers=answers.CreatedTasks,
        call=_create_task,
        repeatable=False,
    ),
    ToolEntry(
        name=Tool.CREATE_TASKS_BATCH,
        title="Create subtasks",
        description="Make the subtasks of your task at once, all or none, with what depends on what.",
        takes=arguments.CreateTasksBatch,
        answers=answers.CreatedTasks,
        call=_create_batch,
        repeatable=False,
    ),
    ToolEntry(
        name=Tool.UPDATE_TASK_STATUS,
        title="Move a task",
        description="Workers: begin a subtask (in_progress), or end it (done). Managers: cancel a subtask. "
        "Your own task is ended by report_completed.",
        takes=arguments.UpdateTaskStatus,
        answers=answers.TaskChanged,
        call=_update_status,
    ),
    ToolEntry(
        name=Tool.ASSIGN_TASK,
        title="Give a subtask to an agent",
        description="Managers: give a subtask to an agent that list_workers names.",
        takes=arguments.AssignTask,
        answers=answers.TaskChanged,
        call=_assign_task,
    ),
    ToolEntry(
        name=Tool.REPORT_COMPLETED,
        title="Say that the task is done",
        description="Say that your task is done. Every goal is checked on your commits now; if one fails, "
        "you receive the reason, and the next action is rework. Commit first.",
        takes=arguments.ReportCompleted,
        answers=answers.ClaimResult,
        call=_report_completed,
    ),
    ToolEntry(
        name=Tool.REPORT_BLOCKED,
        title="Say that you cannot go on",
        description="Say what you need from a person. A person is asked.",
        takes=arguments.ReportBlocked,
        answers=answers.BlockReported,
        call=_report_blocked,
    ),
    ToolEntry(
        name=Tool.SAVE_CONTEXT,
        title="Write down where you are",
        description="Keep what you know for the next session on this task, which may be you.",
        takes=arguments.SaveContext,
        answers=answers.ContextSaved,
        call=_save_context,
        repeatable=False,
    ),
    ToolEntry(
        name=Tool.SEND_MESSAGE,
        title="Send a message",
        description="Tell another agent something, or all of them with the type broadcast.",
        takes=arguments.SendMessage,
        answers=answers.MessageSent,
        call=_send_message,
        repeatable=False,
    ),
    ToolEntry(
        name=Tool.GET_MESSAGES,
        title="Read messages",
        description="Messages to you, each once, oldest first. get_my_task shows all that are open.",
        takes=arguments.GetMessages,
        answers=answers.Inbox,
        call=_get_messages,
    ),
    ToolEntry(
        name=Tool.LIST_TASKS,
        title="List tasks",
        description="Your task and everything below it.",
        takes=arguments.ListTasks,
        answers=answers.TaskList,
        call=_list_tasks,
        reads_only=True,
    ),
    ToolEntry(
        name=Tool.GET_TASK,
        title="Show a task",
        description="One task of those that list_tasks tells, in full.",
        takes=arguments.GetTask,
        answers=answers.TaskDetails,
        call=_get_task,
        reads_only=True,
    ),
    ToolEntry(
        name=Tool.LIST_WORKERS,
        title="List agents",
        description="Managers: the agents that can be given work, those with the least to do first.",
        takes=SessionArguments,
        answers=answers.WorkerList,
        call=_list_workers,
        reads_only=True,
    ),
    ToolEntry(
        name=Tool.HELP,
        title="Help",
        description="Which tools you may call now, and what each does.",
        takes=arguments.Help,
        answers=answers.Help,
        call=_help,
        reads_only=True,
    ),
    ToolEntry(
        name=Tool.LOGOUT,
        title="End the session",
        description="Leave. Call it when the action is exit; the token is worth nothing afterwards.",
        takes=arguments.Logout,
        answers=answers.LoggedOut,
        call=_logout,
    ),
)
