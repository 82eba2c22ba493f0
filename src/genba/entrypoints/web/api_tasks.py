"""API operations on tasks and their decisions."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from genba.application.dashboard.stop_session import stop_task
from genba.blackboard.database.paging import Page
from genba.blackboard.tasks.history import last_events
from genba.blackboard.tasks.task_records import last_comments
from genba.domain.errors import NotFoundError
from genba.domain.goals.goal import Goal
from genba.domain.goals.verification import Verification
from genba.domain.sessions.session import SessionStart
from genba.domain.tasks.task import Comment, Priority, Task, TaskDraft, TaskEvent, TaskStatus
from genba.domain.tracker.remote import TrackedPullRequest
from genba.domain.views.summary import ActionResult
from genba.entrypoints.web.operations import AfterLines, Call, Given, Limit, Name, Number, Operation, Words
from genba.entrypoints.web.site import Site

_SHOWN = 200


class TaskQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    status: (
        Annotated[TaskStatus, Meta(description="Only tasks of this status; by default all but the ended.")] | None
    ) = None
    type: Annotated[str, Meta(max_length=200)] = ""
    label: Annotated[str, Meta(max_length=200)] = ""
    assignee: Annotated[str, Meta(max_length=200)] = ""
    parent: Number | None = None
    text: Annotated[str, Meta(max_length=200, description="Text in the title or the description.")] = ""
    limit: Limit = 200


class PageQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    after: AfterLines = 0
    limit: Limit = 200


class TaskBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new task."""

    title: Annotated[str, Meta(min_length=1, max_length=1000)]
    body: Annotated[str, Meta(max_length=100_000)] = ""
    type: Name = "task"
    priority: Priority = Priority.MEDIUM
    labels: Annotated[tuple[Name, ...], Meta(max_length=50)] = ()
    parent: Number | None = None
    dependencies: Annotated[tuple[Number, ...], Meta(max_length=200)] = ()
    assignee: Annotated[str, Meta(max_length=200)] = ""
    goals: Annotated[tuple[Goal, ...], Meta(max_length=50)] = ()
    backlog: bool = False


Asked = Annotated[int, Meta(ge=1, le=2**63 - 1, description="The escalation that was read; a newer one is refused.")]


class TextBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Words


class AnswerBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Words
    asked: Asked | None = None


class ReasonBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: Words
    asked: Asked | None = None


class ApproveBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    commit: Annotated[str, Meta(max_length=64, description="The commit to approve; another one is refused.")] | None = (
        None
    )
    reason: Annotated[str, Meta(max_length=100_000)] = ""
    asked: Asked | None = None


class MoveBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    to: Annotated[
        Literal["open", "cancelled"],
        Meta(description="open: also out of the backlog, unblocked, reopened."),
    ]
    reason: Annotated[str, Meta(max_length=100_000)] = ""


class TaskAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One task with what was last seen of it. What is older than that is listed page by page."""

    task: Task
    comments: tuple[Comment, ...] = ()
    older_comments: int = 0
    events: tuple[TaskEvent, ...] = ()
    older_events: int = 0
    verification: Verification | None = None
    session: SessionStart | None = None
    url: str = ""
    pull_requests: tuple[TrackedPullRequest, ...] = ()


async def _list(site: Site, given: Given) -> Any:
    query: TaskQuery = given.query
    wanted = (query.status,) if query.status is not None else tuple(each for each in TaskStatus if not each.ended)
    return await site.look(
        lambda: site.queries.fleet.board.find(
            status=wanted,
            type=query.type,
            label=query.label,
            assignee=query.assignee,
            parent=query.parent,
            text=query.text,
            limit=query.limit,
        )
    )


async def _add(site: Site, given: Given) -> Any:
    body: TaskBody = given.body
    context, actor = site.queries.context, site.decisions.actor

    def add() -> Task:
        rules = context.task_type(body.type)
        known = {info.name for info in context.registry.agents()[0]}
        if body.assignee and body.assignee not in known:
            raise NotFoundError(f'there is no agent "{body.assignee[:80]}"', hint="genba agent list")
        draft = TaskDraft(
            title=body.title,
            body=body.body,
            type=body.type,
            status=TaskStatus.BACKLOG if body.backlog else TaskStatus.OPEN,
            priority=body.priority,
            labels=body.labels,
            parent=body.parent,
            dependencies=body.dependencies,
            assignee=body.assignee,
            requires_review=rules.requires_review,
            reviewer_type=rules.reviewer_type,
            goals=body.goals,
        )
        return site.queries.fleet.board.add(draft, actor)

    return await site.do(add)


async def _show(site: Site, given: Given) -> Any:
    number = given.path["number"]
    board = site.queries.fleet.board

    def show() -> TaskAnswer:
        task, session = board.get(number), board.newest_session(number)
        url, requests = site.queries.outside(task)
        comments, older_comments = board.store.read(lambda tx: last_comments(tx, number, _SHOWN))
        events, older_events = board.store.read(lambda tx: last_events(tx, number, _SHOWN))
        return TaskAnswer(
            task=task,
            comments=tuple(comments),
            older_comments=older_comments,
            events=tuple(events),
            older_events=older_events,
            verification=board.last_verification(number),
            session=session if session.run else None,
            url=url,
            pull_requests=requests,
        )

    return await site.look(show)


def _page_of(name: str) -> Call:
    """A stretch of what is kept of a task, oldest first."""

    async def call(site: Site, given: Given) -> Any:
        page = Page(after=given.query.after, limit=given.query.limit)
        return await site.look(lambda: getattr(site.queries.fleet.board, name)(given.path["number"], page))

    return call


async def _move(site: Site, given: Given) -> Any:
    body: MoveBody = given.body
    return await site.do(lambda: site.decisions.move(given.path["number"], TaskStatus(body.to), body.reason))


async def _stop(site: Site, given: Given) -> Any:
    """Its session is suspended, also one that a person started."""
    return await stop_task(site.decisions, given.path["number"])


def _deed(name: str) -> Call:
    """A decision about one task, with what its body says."""

    async def call(site: Site, given: Given) -> Any:
        words = msgspec.structs.asdict(given.body) if given.body is not None else {}
        return await site.do(lambda: getattr(site.decisions, name)(given.path["number"], **words))

    return call


def _operation(verb: str, deed: str, summary: str, body: type[msgspec.Struct] | None, command: str) -> Operation:
    return Operation(
        method="POST",
        path=f"/api/tasks/{{number}}/{verb}",
        name=f"{deed}Task",
        summary=summary,
        call={"move": _move, "stop": _stop}.get(deed) or _deed(deed),
        answer=ActionResult,
        parameters={"number": Number},
        body=body,
        group="tasks",
        command=command,
    )


TASKS: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path="/api/tasks",
        name="listTasks",
        summary="The matching tasks.",
        call=_list,
        answer=tuple[Task, ...],
        query=TaskQuery,
        group="tasks",
        command="genba task list --json",
    ),
    Operation(
        method="POST",
        path="/api/tasks",
        name="addTask",
        summary="Add a task.",
        call=_add,
        answer=Task,
        body=TaskBody,
        group="tasks",
        command="genba task add TITLE --json",
    ),
    Operation(
        method="GET",
        path="/api/tasks/{number}",
        name="showTask",
        summary="One task, its comments, its history and its last verdict.",
        call=_show,
        answer=TaskAnswer,
        parameters={"number": Number},
        group="tasks",
        command="genba task show NUMBER --json",
    ),
    Operation(
        method="GET",
        path="/api/tasks/{number}/comments",
        name="listComments",
        summary="The comments of a task, oldest first.",
        call=_page_of("comments"),
        answer=tuple[Comment, ...],
        parameters={"number": Number},
        query=PageQuery,
        group="tasks",
    ),
    Operation(
        method="GET",
        path="/api/tasks/{number}/events",
        name="listEvents",
        summary="The history of a task, oldest first.",
        call=_page_of("events"),
        answer=tuple[TaskEvent, ...],
        parameters={"number": Number},
        query=PageQuery,
        group="tasks",
    ),
    _operation("comments", "comment", "Write a comment.", TextBody, "genba task comment NUMBER TEXT"),
    _operation("status", "move", "Reopen or cancel a task.", MoveBody, ""),
    _operation("answer", "answer", "Answer the open question of the task.", AnswerBody, "genba answer NUMBER TEXT"),
    _operation("approve", "approve", "Approve the open decision of the task.", ApproveBody, "genba approve NUMBER"),
    _operation(
        "reject", "reject", "Reject the open decision of the task.", ReasonBody, "genba reject NUMBER --reason TEXT"
    ),
    _operation("pause", "pause", "Pause the task.", None, "genba pause NUMBER"),
    _operation("resume", "resume", "Resume the task.", None, "genba resume NUMBER"),
    _operation("stop", "stop", "Suspend the session of the task until a person decides.", None, "genba stop NUMBER"),
)
