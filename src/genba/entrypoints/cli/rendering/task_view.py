"""How one task looks: what it is, what stands in its way, what was seen of it."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from genba.domain.goals.goal import Goal, goal_type
from genba.domain.goals.verification import Verification
from genba.domain.sessions.session import SessionStart
from genba.domain.tasks.task import Comment, Task, TaskEvent, TaskStatus, at_name
from genba.domain.tracker.remote import TrackedPullRequest
from genba.entrypoints.cli.rendering.printable import in_one_line, printable
from genba.judgement.loop.closure import stage_of
from genba.judgement.tracking.pull_requests import standing_of
from genba.judgement.views.event_text import event_sentence

_HISTORY = 12
_REQUESTS = 5


def task_lines(
    task: Task,
    comments: list[Comment],
    events: list[TaskEvent],
    last: Verification | None,
    session: SessionStart,
    parts: list[Task],
    outside: Sequence[tuple[str, str]] = (),
) -> Iterator[str]:
    """`outside`: what its tracker and its forge show, each with its name."""
    yield in_one_line(f"#{task.number} {task.title}")
    yield in_one_line("   " + " · ".join(_facts(task)))
    for name, value in (*_more(task, last, session, any(name == "pull request" for name, _ in outside)), *outside):
        yield in_one_line(f"   {name:<12} {value}")
    for part in parts:
        whose = f"  {at_name(part.assignee)}" if part.assignee else ""
        yield in_one_line(
            f"   {'step' if part.in_plan else 'part':<12} #{part.number} {part.status}  {part.title}{whose}"
        )
    if task.body.strip():
        yield ""
        yield from (f"   {line}" for line in printable(task.body).strip().splitlines())
    for goal in task.goals:
        yield in_one_line(f"   goal         {goal_line(goal)}")
    for comment in comments:
        yield ""
        yield in_one_line(f"   {comment.author} · {short_time(comment.created_at)}")
        yield from (f"   │ {line}" for line in printable(comment.body).splitlines())
    if events:
        yield ""
    for event in events[-_HISTORY:]:
        yield in_one_line(f"   {short_time(event.at)}  {_event(event)}")


def stage_facts(task: Task, stages: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The stage that a task is at, where its type has stages."""
    stage = stage_of(stages, task)
    if stage and not task.status.ended:
        yield "stage", f"{stage} ({stages.index(stage) + 1} of {len(stages)})"


def outside_facts(url: str, requests: Sequence[TrackedPullRequest]) -> Iterator[tuple[str, str]]:
    """The address of an issue, and its pull requests with who judged them and what failed."""
    if url:
        yield "issue", url
    for request in requests[:_REQUESTS]:
        yield "pull request", f"#{request.number} {standing_of(request)}   {request.url}"
        for check in request.failed_checks[:_REQUESTS]:
            yield "", f"✗ {check.name}  {check.detail or check.url}"


def goal_line(goal: Goal) -> str:
    """A goal as it would be typed: its type and what it asks for."""
    values: dict[str, Any] = msgspec.to_builtins(goal)
    main = type(goal).main
    parts = [f"{goal_type(goal)}: {values[main]}" if main and values.get(main) is not None else goal_type(goal)]
    skipped = {"type", "required", "timeout_seconds", "ready_seconds", main}
    parts += [
        f"{key}={value}" for key, value in values.items() if key not in skipped and value not in (None, {}, False)
    ]
    if not goal.required:
        parts.append("(reported only)")
    return "  ".join(parts)


def short_time(text: str) -> str:
    return text[:16].replace("T", " ")


def _facts(task: Task) -> Iterator[str]:
    yield str(task.status)
    yield task.type
    yield f"{task.priority} priority"
    if task.due:
        yield f"due {task.due}"
    if task.labels:
        yield ", ".join(task.labels)
    if task.assignee:
        yield at_name(task.assignee)
    if task.tracker == "local" and task.tracker_reference:
        yield f"imported from {task.tracker_reference}"


def _more(task: Task, last: Verification | None, session: SessionStart, proposed: bool) -> Iterator[tuple[str, str]]:
    if task.blocker is not None:
        yield "blocked", f"{task.blocker.kind}: {task.blocker.reason}"
    if task.parent is not None:
        yield "step of" if task.in_plan else "part of", f"#{task.parent}"
    if task.dependencies:
        yield "after", " ".join(f"#{number}" for number in task.dependencies)
    if task.requires_review:
        approved = f", approved {task.approved[:7]}" if task.approved else ""
        yield "review", f"{task.reviewer_type}{approved}"
    for phase in task.phases:
        yield "phase", f"{phase.agent} at {phase.commit[:7]}"
    if task.may_change:
        yield "may change", ", ".join(task.may_change)
    if task.scope:
        yield "writes", ", ".join(task.scope)
    if task.decompose:
        yield "plan", "a planner proposes its parts first"
    if task.budget_usd is not None:
        yield "budget", f"${task.budget_usd:.2f}"
    if task.review_of is not None:
        yield "reviews", f"#{task.review_of} at {task.review_commit[:7]}"
    if session.run:
        onward = "run --resume" if task.status is TaskStatus.REVIEW and not proposed else "logs"
        yield "last run", f"{session.run} on {session.branch}   genba {onward} {session.run}"
    if last is not None:
        yield "verdict", f"{last.verdict} on {last.subject.commit[:7]}   genba verify {task.number}"


def _event(event: TaskEvent) -> str:
    data = event.data
    who = f"{event.actor.name} ({event.actor.kind})"
    if "from" in data and "to" in data:
        why = f": {data['reason']}" if data.get("reason") else ""
        return f"{data['from']} → {data['to']}  by {who}{why}"
    return f"{_deed(event)}  by {who}"


def _deed(event: TaskEvent) -> str:
    match event.kind:
        case "verified":
            return event_sentence(event)
        case "phase_reached":
            return str(event.data.get("phase", "")).replace("_", " ") or "a phase was reached"
        case "bound":
            return "left the task" if event.data.get("left") else "sat down to work on it"
        case "agent_connected":
            return "came in"
        case "connection_closed":
            return f"left: {event.data.get('why') or 'it ended'}"
        case "instance_stopped":
            return f"was stopped: {event.data.get('reason') or event.data.get('exit') or 'there is nothing to do'}"
        case "noted":
            return "wrote a note"
        case "messaged":
            return "wrote a message"
    return event.kind.replace("_", " ")
