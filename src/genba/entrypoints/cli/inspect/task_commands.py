"""`genba task`: the issues of the local tracker, on the blackboard."""

import sys
from pathlib import Path
from typing import Any

import click

from genba.application.tracker.task_links import outside_of
from genba.definitions.project.goal_text import goals_from_yaml, read_goal_line, read_goals
from genba.domain.errors import ConfigurationError, NotFoundError, StateConflictError, UsageError
from genba.domain.goals.goal import Goal, goal_type
from genba.domain.problems import Problem, did_you_mean
from genba.domain.tasks.task import (
    Actor,
    ActorKind,
    Blocker,
    BlockerKind,
    Priority,
    StatusChange,
    Task,
    TaskDraft,
    TaskEdit,
    TaskStatus,
    at_name,
)
from genba.entrypoints.cli.failures import show_hint
from genba.entrypoints.cli.inspect.task_import import import_tasks
from genba.entrypoints.cli.project_lookup import project_for_reading, project_here, run_async
from genba.entrypoints.cli.rendering.json_output import print_json
from genba.entrypoints.cli.rendering.printable import in_one_line
from genba.entrypoints.cli.rendering.tables import table
from genba.entrypoints.cli.rendering.task_view import outside_facts, stage_facts, task_lines
from genba.judgement.verification.reviews import next_of_review
from genba.wiring import ProjectContext

_MARKS = {
    TaskStatus.BACKLOG: "·",
    TaskStatus.OPEN: "○",
    TaskStatus.IN_PROGRESS: "◐",
    TaskStatus.REVIEW: "◑",
    TaskStatus.DONE: "●",
    TaskStatus.BLOCKED: "■",
    TaskStatus.CANCELLED: "✗",
}
"""Every status has a word and a shape."""


class NumberType(click.ParamType[Any]):
    """The number of a task, or of something else: `12` or `#12`."""

    name = "number"

    def __init__(self, of: str = "a task") -> None:
        self.of = of

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value).removeprefix("#")
        if not (text.isascii() and text.isdigit() and 0 < int(text[:20]) < 2**63):
            self.fail(f"{str(value)[:80]!r} is not the number of {self.of}", param, ctx)
        return int(text)


class StatusType(click.ParamType[Any]):
    name = "status"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return TaskStatus.read(str(value))
        except ValueError:
            self.fail(f"{str(value)[:80]!r} is not a status. {did_you_mean(str(value), TaskStatus)}", param, ctx)


class DollarsType(click.ParamType[Any]):
    """An amount of money that a budget can be."""

    name = "dollars"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            amount = float(str(value).removeprefix("$"))
        except ValueError:
            amount = -1.0
        if not 0 <= amount <= _MOST_DOLLARS:
            self.fail(f"{str(value)[:80]!r} is not an amount in dollars", param, ctx)
        return amount


NUMBER = NumberType()
DOLLARS = DollarsType()
_MOST_DOLLARS = 1e9
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_GOAL = click.option(
    "--goal", "goal_lines", multiple=True, metavar="TYPE[:CONDITION]", help="A goal, such as tests_pass:'pytest -q'."
)
_GOALS = click.option("--goals", "goals_file", metavar="FILE", help="Goals as a YAML list; - reads standard input.")
_AGENT_COMMANDS = click.option(
    "--agent-commands/--no-agent-commands",
    default=None,
    help="Whether goals that agents write for it may run programs.",
)
_SCOPE = click.option(
    "--scope", multiple=True, metavar="PATTERN", help="A path that the work is going to write, such as src/menu/**."
)


@click.group("task")
def task() -> None:
    """Add, list, show, edit, block and cancel tasks."""


task.add_command(import_tasks)


@task.command("add")
@click.argument("title")
@click.option("--body", default="", help="What is to be done; - reads standard input.")
@click.option("--type", "kind", default="task", show_default=True, help="task, feature, bug, refactor, docs, test, …")
@click.option("--priority", type=click.Choice([str(each) for each in Priority]), default="medium", show_default=True)
@click.option("--label", "labels", multiple=True, help="A label; may be given more than once.")
@_GOAL
@_GOALS
@click.option("--parent", type=NUMBER, help="The task that this one is a part of.")
@click.option("--depends-on", "dependencies", type=NUMBER, multiple=True, help="A task that must be done first.")
@click.option("--assignee", default="", metavar="AGENT", help="The agent that should work on it.")
@click.option("--review/--no-review", default=None, help="Whether its work must be approved; the type decides.")
@click.option("--reviewer", type=click.Choice(["human", "ai"]), help="Who approves.")
@click.option("--may-change", multiple=True, metavar="GLOB", help="A protected path that the work may change.")
@_SCOPE
@click.option("--decompose", is_flag=True, help="Let a planner propose its parts first.")
@click.option("--budget", type=DOLLARS, metavar="USD", help="The most that all of its sessions together may cost.")
@click.option("--due", default="", metavar="DATE", help="The day of its deadline, such as 2026-12-01.")
@click.option("--backlog", is_flag=True, help="Not ready to be worked on yet.")
@_AGENT_COMMANDS
@_JSON
def add(title: str, as_json: bool, **given: Any) -> None:
    """Add a task."""
    context = project_here()
    rules = context.task_type(given["kind"])
    _check_assignee(context, given["assignee"])
    review = given["review"]
    draft = TaskDraft(
        title=_title(title),
        body=_text(given["body"]),
        type=given["kind"],
        status=TaskStatus.BACKLOG if given["backlog"] else TaskStatus.OPEN,
        priority=Priority(given["priority"]),
        labels=_labels(given["labels"]),
        parent=given["parent"],
        dependencies=given["dependencies"],
        assignee=given["assignee"],
        requires_review=rules.requires_review if review is None else review,
        reviewer_type=given["reviewer"] or rules.reviewer_type,
        goals=_goals(given["goal_lines"], given["goals_file"]),
        may_change=given["may_change"],
        scope=_scope(given["scope"]),
        decompose=given["decompose"],
        budget_usd=given["budget"] or None,
        due=given["due"],
    )
    made = context.board().add(draft, _actor(context))
    _print(_with_commands(context, made, given["agent_commands"]), as_json)


@task.command("list")
@click.option(
    "--status", "statuses", type=StatusType(), multiple=True, help="Only these; by default all but the ended."
)
@click.option("--type", "kind", default="", help="Only tasks of this type.")
@click.option("--label", default="", help="Only tasks with this label.")
@click.option("--assignee", default="", metavar="AGENT", help="Only tasks of this agent.")
@click.option("--parent", type=NUMBER, help="Only the parts of this task.")
@click.option("--ready", is_flag=True, help="Only tasks that can be started now, the most urgent first.")
@click.option("--all", "ended_too", is_flag=True, help="The ended ones too.")
@_JSON
def list_tasks(
    statuses: tuple[TaskStatus, ...],
    kind: str,
    label: str,
    assignee: str,
    parent: int | None,
    ready: bool,
    ended_too: bool,
    as_json: bool,
) -> None:
    """List tasks."""
    context = project_for_reading()
    wanted = statuses or (tuple(TaskStatus) if ended_too else tuple(s for s in TaskStatus if not s.ended))
    board = context.board() if context.has_board() else None
    if board is None:
        found = []
    elif ready:
        found = [t for t in board.ready() if kind in ("", t.type) and (not label or label in t.labels)]
        found = [t for t in found if assignee in ("", t.assignee) and parent in (None, t.parent)]
    else:
        found = board.find(status=wanted, type=kind, label=label, assignee=assignee, parent=parent)
        if parent is None and not ended_too:  # the steps of a plan belong to its worker
            found = [t for t in found if not t.in_plan]
    if as_json:
        print_json(found)
        return
    if not found:
        known = board is not None and bool(board.find())
        click.echo("no task fits; others exist" if known else "no tasks", err=True)
        show_hint("genba task list --all" if known else 'genba task add "what is to be done"')
        return
    rows = [("", "status", "priority", "type", "task")]
    rows += [(f"#{t.number}", f"{_MARKS[t.status]} {t.status}", t.priority, t.type, _line(t)) for t in found]
    for line in table(rows):
        click.echo(line)


@task.command("show")
@click.argument("number", type=NUMBER)
@_JSON
def show(number: int, as_json: bool) -> None:
    """Show a task: text, goals, last verdict and history."""
    context = project_for_reading()
    board = context.board(make=False)
    found = board.get(number)
    comments, events, last = board.comments(number), board.events(number), board.last_verification(number)
    session = board.newest_session(number)
    url, requests = outside_of(context, found)
    if as_json:
        shown = {"task": found, "comments": comments, "events": events, "verification": last}
        shown |= {"url": url, "pull_requests": requests} if found.tracker != "local" else {}
        print_json(shown | {"session": session if session.run else None})
        return
    parts = [board.get(number) for number in found.children]
    outside = (*stage_facts(found, context.project.stages.get(found.type, ())), *outside_facts(url, requests))
    for line in task_lines(found, comments, events, last, session, parts, outside):
        click.echo(line)


@task.command("edit")
@click.argument("number", type=NUMBER)
@click.option("--title", help="Another title.")
@click.option("--body", help="Another text; - reads standard input.")
@click.option("--type", "kind", help="Another type.")
@click.option("--priority", type=click.Choice([str(each) for each in Priority]))
@click.option("--label", "labels", multiple=True, help="Add a label.")
@click.option("--remove-label", "off", multiple=True, help="Take a label away.")
@_GOAL
@_GOALS
@click.option("--remove-goal", "gone", multiple=True, metavar="TYPE", help="Take the goals of this type away.")
@click.option("--assignee", metavar="AGENT", help="The agent that works on it; '' for none.")
@click.option("--review/--no-review", default=None, help="Whether its work must be approved.")
@click.option("--reviewer", type=click.Choice(["human", "ai"]), help="Who approves.")
@click.option("--may-change", multiple=True, metavar="GLOB", help="Another protected path that the work may change.")
@_SCOPE
@click.option("--remove-scope", "unscoped", multiple=True, metavar="PATTERN", help="Take a path of its scope away.")
@click.option("--decompose/--no-decompose", default=None, help="Whether a planner proposes its parts first.")
@click.option("--budget", type=DOLLARS, metavar="USD", help="Another budget; 0 takes it away.")
@click.option("--due", metavar="DATE", help="Another deadline; '' takes it away.")
@click.option("--status", type=StatusType(), help="open: move it out of the backlog.")
@_AGENT_COMMANDS
@_JSON
def edit(number: int, as_json: bool, **given: Any) -> None:
    """Change a task."""
    context = project_here()
    board, actor = context.board(make=False), _actor(context)
    before = board.get(number)
    _people_only(actor, "edit a task", number)
    changes = _edit(context, before, given)
    status: TaskStatus | None = given["status"]
    if status is not None and not (status is TaskStatus.OPEN and before.status is TaskStatus.BACKLOG):
        raise _not_by_edit(before, status)
    change = StatusChange(to=status, actor=actor) if status is not None else None
    changed = board.edit(number, changes, actor, before.version, change)
    _print(_with_commands(context, changed, given["agent_commands"]), as_json)


@task.command("block")
@click.argument("number", type=NUMBER)
@click.option("--reason", required=True, help="What is missing.")
@click.option(
    "--kind", type=click.Choice([str(each) for each in BlockerKind]), default="needs_input", show_default=True
)
@click.option("--by", type=NUMBER, help="The task that stands in the way.")
@_JSON
def block(number: int, reason: str, kind: str, by: int | None, as_json: bool) -> None:
    """Block a task and its subtasks, with a reason."""
    context = project_here()
    board = context.board(make=False)
    if by is not None:
        board.get(by)
    blocker = Blocker(BlockerKind.DEPENDENCY if by is not None else BlockerKind(kind), _not_empty(reason), by)
    change = StatusChange(to=TaskStatus.BLOCKED, actor=_actor(context), reason=reason, blocker=blocker)
    _print(board.change_status(number, change), as_json)


@task.command("unblock")
@click.argument("number", type=NUMBER)
@click.option("--reason", default="", help="What has changed.")
@_JSON
def unblock(number: int, reason: str, as_json: bool) -> None:
    """Clear the blocker of a task and of its subtasks."""
    _move(number, TaskStatus.OPEN, reason, as_json, only_from=(TaskStatus.BLOCKED,))


@task.command("cancel")
@click.argument("number", type=NUMBER)
@click.option("--reason", default="", help="Why it is not to be done.")
@_JSON
def cancel(number: int, reason: str, as_json: bool) -> None:
    """Cancel a task and its subtasks. Branches and commits stay."""
    _move(number, TaskStatus.CANCELLED, reason, as_json)


@task.command("reopen")
@click.argument("number", type=NUMBER)
@click.option("--reason", default="", help="Why it is not done after all.")
@_JSON
def reopen(number: int, reason: str, as_json: bool) -> None:
    """Reopen a task that is done or cancelled."""
    _move(number, TaskStatus.OPEN, reason, as_json, only_from=(TaskStatus.DONE, TaskStatus.CANCELLED))


@task.command("depend")
@click.argument("number", type=NUMBER)
@click.option("--on", type=NUMBER, multiple=True, help="A task that must be done before this one.")
@click.option("--remove", type=NUMBER, multiple=True, help="A task that this one need not wait for any more.")
@_JSON
def depend(number: int, on: tuple[int, ...], remove: tuple[int, ...], as_json: bool) -> None:
    """Add or remove a dependency of a task."""
    if not on and not remove:
        raise UsageError("say what the task depends on", hint=f"genba task depend {number} --on 3")
    context = project_here()
    board, actor = context.board(make=False), _actor(context)
    _people_only(actor, "change what a task waits for", number)
    _print(board.relate(number, on, remove, actor), as_json)


@task.command("comment")
@click.argument("number", type=NUMBER)
@click.argument("text")
@_JSON
def comment(number: int, text: str, as_json: bool) -> None:
    """Comment on a task; - reads standard input.

    Agents read the comments with the task.
    """
    context = project_here()
    board = context.board(make=False)
    board.comment(number, _not_empty(_text(text)), _actor(context))
    _print(board.get(number), as_json)


@task.command("approve")
@click.argument("number", type=NUMBER)
@click.argument("commit", required=False)
@_JSON
def approve(number: int, commit: str | None, as_json: bool) -> None:
    """Approve the verified commit of a task in review."""
    from genba.application.verification.decisions import Decisions  # noqa: PLC0415  (only who decides pays for a fleet)

    context = project_here()
    actor = _actor(context)
    _people_only(actor, "approve a task", number)
    decided = Decisions(context, actor).approve(number, commit)
    _print(context.board(make=False).get(number), as_json)
    if decided.hint and not as_json:
        show_hint(decided.hint)


@task.command("done")
@click.argument("number", type=NUMBER)
@click.option("--base-branch", metavar="NAME", help="Where its work should be; by default where it was to go.")
@_JSON
def done(number: int, base_branch: str | None, as_json: bool) -> None:
    """Close a task whose verified commit is on the base branch.

    Use it when the work was merged by you, or elsewhere.
    """
    context = project_here()
    _people_only(_actor(context), "call a task done", number)
    from genba.application.verification.done_by_hand import settle  # noqa: PLC0415  (only this command verifies)

    _print(run_async(settle(context, number, base_branch)), as_json)


def _move(
    number: int, to: TaskStatus, reason: str, as_json: bool, only_from: tuple[TaskStatus, ...] = tuple(TaskStatus)
) -> None:
    from genba.application.verification.decisions import Decisions  # noqa: PLC0415  (only who decides pays for a fleet)

    context = project_for_reading()
    Decisions(context, _actor(context)).move(number, to, reason, only_from)
    _print(context.board(make=False).get(number), as_json)


def _edit(context: ProjectContext, before: Task, given: dict[str, Any]) -> TaskEdit:
    goals: tuple[Goal, ...] | None = None
    added = _goals(given["goal_lines"], given["goals_file"])
    unknown = [kind for kind in given["gone"] if kind not in {goal_type(goal) for goal in before.goals}]
    if unknown:
        own = {goal_type(goal) for goal in before.goals}
        raise NotFoundError(
            f'task #{before.number} has no goal "{unknown[0]}" of its own',
            hint=did_you_mean(unknown[0], own) or f"genba verify {before.number} --explain",
        )
    if added or given["gone"]:
        goals = (*(goal for goal in before.goals if goal_type(goal) not in given["gone"]), *added)
    if given["kind"] is not None:
        context.task_type(given["kind"])
    if given["assignee"]:
        _check_assignee(context, given["assignee"])
    return TaskEdit(
        title=None if given["title"] is None else _title(given["title"]),
        body=None if given["body"] is None else _text(given["body"]),
        type=given["kind"],
        priority=None if given["priority"] is None else Priority(given["priority"]),
        add_labels=_labels(given["labels"]),
        remove_labels=given["off"],
        assignee=given["assignee"],
        requires_review=given["review"],
        reviewer_type=given["reviewer"],
        goals=goals,
        may_change=(*before.may_change, *given["may_change"]) if given["may_change"] else None,
        scope=_new_scope(before.scope, _scope(given["scope"]), given["unscoped"]),
        decompose=given["decompose"],
        budget_usd=given["budget"],
        due=given["due"],
    )


def _not_by_edit(task_: Task, status: TaskStatus) -> StateConflictError:
    verbs = {TaskStatus.BLOCKED: "block", TaskStatus.CANCELLED: "cancel", TaskStatus.OPEN: "reopen"}
    verb = verbs.get(status)
    hint = f"genba task {verb} {task_.number}" if verb else f"genba run AGENT --issue {task_.number}"
    if status is TaskStatus.OPEN and task_.status is TaskStatus.BLOCKED:
        hint = f"genba task unblock {task_.number}"
    if task_.status is TaskStatus.REVIEW and status is not TaskStatus.CANCELLED:
        hint = next_of_review(task_)[1]
    return StateConflictError(
        f"task #{task_.number} is {task_.status}: it does not become {status} by an edit",
        unchanged="nothing was changed.",
        hint=hint,
    )


def _actor(context: ProjectContext) -> Actor:
    """Who types: a person, or an agent whose process this command was started by."""
    return context.actor()


def _with_commands(context: ProjectContext, found: Task, enabled: bool | None) -> Task:
    """The task, with what the user says of commands in goals of agents."""
    if enabled is None:
        return found
    return context.board().enable_agent_commands(found.number, enabled, _actor(context))


def _people_only(actor: Actor, deed: str, number: int) -> None:
    if actor.kind is not ActorKind.HUMAN:
        raise StateConflictError(
            f"an agent may not {deed}",
            unchanged="nothing was changed.",
            hint=f'genba task comment {number} "…"   tells a person what you need',
        )


def _check_assignee(context: ProjectContext, name: str) -> None:
    known = [*context.registry.folders()]
    if name and name not in known:
        from genba.application.project.agent_registration import registered  # noqa: PLC0415  (only for a name that no folder has)

        known += [external_agent.name for external_agent in registered(context)]
    if name and name not in known:
        raise NotFoundError(f'there is no agent "{name[:80]}"', hint=did_you_mean(name, known) or "genba agent list")


def _goals(lines: tuple[str, ...], file: str | None) -> tuple[Goal, ...]:
    found = tuple(read_goal_line(line) for line in lines)
    if file is None:
        return found
    if file == "-":
        text, shown = _standard_input(), "standard input"
    else:
        text, shown = _file(file), file
    return found + read_goals(goals_from_yaml(text, shown), shown)


def _file(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError((Problem(name, "", f"cannot be read: {why}"),), hint="genba schema goal") from error


def _title(text: str) -> str:
    line = in_one_line(text).strip()
    if not line:
        raise UsageError("a task needs a title", hint='genba task add "what is to be done"')
    return line


def _not_empty(text: str) -> str:
    if not text.strip():
        raise UsageError("the text is empty", hint="genba task --help")
    return text


def _standard_input() -> str:
    if sys.stdin is None:
        raise UsageError("there is no standard input to read from", hint="genba task --help")
    return sys.stdin.read()


def _text(value: str) -> str:
    text = _standard_input() if value == "-" else value
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    clean = tuple(in_one_line(label).strip() for label in labels)
    if not all(clean):
        raise UsageError("a label needs a name", hint="genba task --help")
    return clean


def _scope(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Paths inside the repository, as patterns."""
    clean = tuple(in_one_line(pattern).strip() for pattern in patterns)
    for pattern in clean:
        if not pattern or pattern.startswith(("/", "~", "\\")) or ".." in pattern.split("/"):
            raise UsageError(f"{pattern[:80]!r} is not a path inside the repository", hint="--scope 'src/menu/**'")
    return clean


def _new_scope(before: tuple[str, ...], add: tuple[str, ...], remove: tuple[str, ...]) -> tuple[str, ...] | None:
    if not add and not remove:
        return None
    unknown = [pattern for pattern in remove if pattern not in before]
    if unknown:
        hint = f"its scope: {', '.join(before)}" if before else "it has none"
        raise UsageError(f"{unknown[0][:80]!r} is not in the scope of this task", hint=hint)
    return tuple(dict.fromkeys(pattern for pattern in (*before, *add) if pattern not in remove))


def _line(task_: Task) -> str:
    """A task on one line: its title, and what stands in its way."""
    parts = [task_.title]
    if task_.in_plan:
        parts.append(f"· step of #{task_.parent}")
    if task_.labels:
        parts.append(f"[{', '.join(task_.labels)}]")
    if task_.blocker is not None:
        parts.append(f"← {task_.blocker.reason}")
    elif task_.dependencies and not task_.status.ended:
        parts.append("after " + " ".join(f"#{number}" for number in task_.dependencies))
    if task_.assignee:
        parts.append(at_name(task_.assignee))
    return "  ".join(parts)


def _print(found: Task, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        click.echo(f"#{found.number} {_MARKS[found.status]} {found.status}  {in_one_line(_line(found))}")
