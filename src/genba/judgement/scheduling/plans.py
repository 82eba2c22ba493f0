"""Plans: what a planner proposes, read into parts of a task, or everything that is wrong with it.

A plan is the text of a model. It becomes tasks only when it keeps to the limits, names no part twice, has no circle,
and asks for nothing that only a person may give: leave to change protected paths, or a type that brings such leave.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from genba.definitions.project.goal_text import read_goals
from genba.domain.convert import shape
from genba.domain.errors import ConfigurationError
from genba.domain.fleet.records import Plan, Subtask
from genba.domain.goals.goal import DECLARATIVE, GOAL_TYPES, GUARDS, Goal, goal_type, what_it_runs
from genba.domain.problems import Problem, did_you_mean
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.tasks.task import Priority, Task
from genba.judgement.language.sentences import in_language, problem_in
from genba.judgement.verification.paths import PROTECTED, matches_any

TYPES = ("task", "feature", "bug", "refactor", "docs")
"""The types that a planner may give to a part. `test` is not one of them: it brings leave to change tests."""

ROUNDS = 2
"""How often a plan that cannot be used goes back to its planner."""

CHECK = "plan"
"""The name of the gap of a plan that cannot be used."""

_KEY = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_TITLE, _BODY, _SUMMARY = 200, 20_000, 4_000
_SCOPES, _SCOPE = 40, 200
_GOALS, _GOAL = 20, 2_000
_LONGEST_TIME = 3_600
_MAX_PROBLEMS = 25


class PlanLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan of one task is held to."""

    max_parts: int = 12
    max_depth: int = 2
    """How many levels of parts a task may have below it."""
    depth: int = 0
    """How many tasks stand above the one that is planned."""
    agents: tuple[str, ...] | None = None
    """The agents that a subtask can be assigned to; None: unknown."""
    types: tuple[str, ...] = TYPES
    """The types that a part may have, besides the type of the task itself."""
    titles: tuple[str, ...] = ()
    """The titles of the parts that the task has already."""
    commands: bool = False
    """True when a person enabled goals that run programs for it."""


class _RawSubtask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    key: str
    title: str
    body: str = ""
    type: str = "task"
    priority: Priority = Priority.MEDIUM
    depends_on: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    goals: tuple[Any, ...] = ()
    assignee: str = ""


class _Proposal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    subtasks: tuple[_RawSubtask, ...]
    summary: str = ""
    status: str = ""
    question: str = ""


def plan_limits(
    task: Task,
    tasks: Mapping[int, Task],
    *,
    max_parts: int = 12,
    max_depth: int = 2,
    agents: tuple[str, ...] | None = None,
    types: tuple[str, ...] = TYPES,
) -> PlanLimits:
    """The limits of a plan for a task, out of the tasks around it."""
    above, seen = task.parent, {task.number}
    while above is not None and above not in seen:
        seen.add(above)
        above = tasks[above].parent if above in tasks else None
    parts = [tasks[number] for number in task.children if number in tasks]
    return PlanLimits(
        max_parts=max_parts,
        max_depth=max_depth,
        depth=len(seen) - 1,
        agents=agents,
        types=types,
        titles=tuple(part.title for part in parts if part.review_of is None and str(part.status) != "cancelled"),
    )


def read_plan(raw: dict[str, Any], task: Task, limits: PlanLimits, run: str = "") -> Plan | tuple[Problem, ...]:
    """The plan, its parts in an order in which they can be made; or every problem at once."""
    read, problems = shape(raw, _Proposal, "")
    if read is None:
        return tuple(_worded(problem) for problem in problems)
    goals = [_goals(part, at, limits) for at, part in enumerate(read.subtasks)]
    found = [*_whole(read, task, limits), *_names(read.subtasks, task, limits)]
    for at, part in enumerate(read.subtasks):
        found += [Problem("", f"subtasks[{at}].{where}", what, hint) for where, what, hint in _part(part, task, limits)]
        found += goals[at][1]
    found += _order(read.subtasks)
    if found:
        return tuple(found)
    parts = [_subtask(part, goals[at][0]) for at, part in enumerate(read.subtasks)]
    return Plan(task=task.number, run=run, subtasks=_sorted(parts), summary=read.summary.strip())


def plan_check(raw: dict[str, Any] | None, task: Task, limits: PlanLimits, language: str = "en") -> CheckResult | None:
    """Why the answer of a planner is no plan, as a check that fails; None when it is one."""
    read = read_plan(raw or {}, task, limits)
    return None if isinstance(read, Plan) else _failed(read, language)


def _failed(problems: Sequence[Problem], language: str = "en") -> CheckResult:
    lines = [problem_in(language, problem) for problem in problems[:_MAX_PROBLEMS]]
    if len(problems) > _MAX_PROBLEMS:
        lines.append(in_language(language, f"and {len(problems) - _MAX_PROBLEMS} more"))
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    message = f"the plan cannot be used, it has {count}. Propose the whole plan again, without them."
    return CheckResult(CHECK, CheckStatus.FAILED, message, "\n".join(lines))


def _worded(problem: Problem) -> Problem:
    if problem.path.rpartition(".")[2] == "may_change":
        message = "a plan cannot give leave to change protected paths"
        return Problem("", problem.path, message, "leave it out: only a person gives it")
    return problem


def _whole(read: _Proposal, task: Task, limits: PlanLimits) -> Iterator[Problem]:
    if limits.depth >= limits.max_depth:
        above = f"#{task.number} has {limits.depth} tasks above it"
        yield Problem("", "subtasks", f"{above}, and at most {limits.max_depth} levels of parts are allowed")
    if not read.subtasks:
        yield Problem("", "subtasks", "is empty", "a task that needs no parts has one part: all of it")
    if len(read.subtasks) > limits.max_parts:
        message = f"has {len(read.subtasks)} parts, and at most {limits.max_parts} are allowed"
        yield Problem("", "subtasks", message, "join those that belong together")
    if len(read.summary) > _SUMMARY:
        yield Problem("", "summary", _too_long(read.summary, _SUMMARY))


def _names(parts: Sequence[_RawSubtask], task: Task, limits: PlanLimits) -> Iterator[Problem]:
    """Keys and titles that stand twice."""
    keys: dict[str, int] = {}
    titles = {_folded(title): "a part that is there already" for title in limits.titles}
    titles[_folded(task.title)] = "the task itself"
    for at, part in enumerate(parts):
        if keys.setdefault(part.key, at) != at:
            yield Problem("", f"subtasks[{at}].key", f'"{part.key}" is the key of subtasks[{keys[part.key]}] already')
        title = _folded(part.title)
        if title and title in titles:
            yield Problem("", f"subtasks[{at}].title", f'"{part.title}" is the title of {titles[title]}')
        titles.setdefault(title, f"subtasks[{at}] already")


def _part(part: _RawSubtask, task: Task, limits: PlanLimits) -> Iterator[tuple[str, str, str]]:
    """What is wrong with one part by itself: where, what, and what would be right."""
    if not _KEY.fullmatch(part.key):
        yield "key", f'"{part.key[:60]}" is not a key', "small letters, digits, - and _, at most 40: login-form"
    if not part.title.strip():
        yield "title", "is empty", ""
    elif not part.title.isprintable():
        yield "title", "must be one line of text", ""
    for name, text, most in (("title", part.title, _TITLE), ("body", part.body, _BODY)):
        if len(text) > most:
            yield name, _too_long(text, most), ""
    types = tuple(dict.fromkeys((*limits.types, task.type)))
    if part.type not in types:
        brings = "; it brings leave to change tests, which only a person gives" if part.type == "test" else ""
        yield "type", f'"{part.type[:60]}" is not a type that a plan can give{brings}', did_you_mean(part.type, types)
    if part.assignee and limits.agents is not None and part.assignee not in limits.agents:
        hint = did_you_mean(part.assignee, limits.agents) or "leave it empty"
        yield "assignee", f'"{part.assignee[:60]}" is not an agent here', hint
    if len(part.scope) > _SCOPES:
        yield "scope", f"has {len(part.scope)} patterns, and at most {_SCOPES} are allowed", "name folders: src/**"
    for pattern in part.scope[:_SCOPES]:
        if wrong := _wrong_scope(pattern):
            yield "scope", wrong, "a pattern relative to the repository: src/login/**"


def _wrong_scope(pattern: str) -> str:
    """Why a pattern is no path inside of the repository that a part may write."""
    shown = f'"{pattern[:80]}"'
    if not pattern.strip():
        return "has an empty pattern"
    if len(pattern) > _SCOPE or not pattern.isprintable():
        return f"{shown} is too long, or not one line of text"
    parts = pattern.split("/")
    if pattern.startswith(("/", "~", "\\", ":")) or ".." in parts or re.match(r"[A-Za-z]:", pattern):
        return f"{shown} is not a path inside of the repository"
    if parts[0].casefold() == ".git":
        return f"{shown} is inside of git's own folder"
    if matches_any(pattern.removeprefix("./"), PROTECTED):
        return f"{shown} is protected: work that changes it would be rejected"
    return ""


def _goals(part: _RawSubtask, at: int, limits: PlanLimits) -> tuple[tuple[Goal, ...], list[Problem]]:
    """The goals of a part as the house knows them; each problem with its place."""
    where = f"subtasks[{at}].goals"
    if len(part.goals) > _GOALS:
        return (), [Problem("", where, f"has {len(part.goals)} goals, and at most {_GOALS} are allowed")]
    goals: list[Goal] = []
    found: list[Problem] = []
    for number, raw in enumerate(part.goals):
        place = f"{where}[{number}]"
        try:
            goal = read_goals([raw], "")[0]
        except ConfigurationError as error:
            for problem in error.problems:
                inner = problem.path.removeprefix("[0]").lstrip(".")
                hint = (
                    problem.hint
                    or f"one line, such as file_exists: docs/login.md; types: {', '.join(sorted(GOAL_TYPES))}"
                )
                found.append(Problem("", f"{place}.{inner}" if inner else place, problem.message, hint))
            continue
        if wrong := _wrong_goal(goal):
            found.append(Problem("", place, wrong))
        elif (field := what_it_runs(goal)) and not limits.commands:
            message = (
                f"{goal_type(goal)} with `{field}`: a goal that an agent writes runs nothing and asks no other host"
            )
            found.append(Problem("", place, message, f"allowed: {', '.join(DECLARATIVE)}"))
        if goal not in goals:
            goals.append(goal)
    return tuple(goals) if not found else (), found


def _wrong_goal(goal: Goal) -> str:
    if type(goal) in {type(guard) for guard in GUARDS}:
        return f"{goal_type(goal)} holds for every task by itself, and is not a plan's to set"
    if len(msgspec.json.encode(goal)) > _GOAL:
        return f"is longer than {_GOAL} characters"
    for name in ("timeout_seconds", "ready_seconds"):
        if getattr(goal, name, 0) > _LONGEST_TIME:
            return f"{name} is more than {_LONGEST_TIME}"
    return ""


def _order(parts: Sequence[_RawSubtask]) -> Iterator[Problem]:
    """Dependencies on what is not there, and circles, each named once."""
    keys = {part.key for part in parts}
    for at, part in enumerate(parts):
        for name in dict.fromkeys(part.depends_on):
            if name not in keys:
                message = f'"{name[:60]}" is no key of this plan'
                yield Problem("", f"subtasks[{at}].depends_on", message, did_you_mean(name, keys))
    circle = find_circle({part.key: part.depends_on for part in parts})
    if circle:
        message = f"the parts wait for each other in a circle: {' → '.join((*circle, circle[0]))}"
        yield Problem("", "subtasks", message, "take one of these dependencies away")


def find_circle(waits: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The first circle in who waits for whom; nothing when there is none."""
    done: set[str] = set()
    for start in waits:
        way: list[str] = []
        ahead: list[Iterator[str]] = [iter((start,))]
        while ahead:
            name = next(ahead[-1], None)
            if name is None:
                ahead.pop()
                if way:
                    done.add(way.pop())
            elif name in way:
                return tuple(way[way.index(name) :])
            elif name in waits and name not in done:
                way.append(name)
                ahead.append(iter(waits[name]))
    return ()


def _subtask(part: _RawSubtask, goals: tuple[Goal, ...]) -> Subtask:
    return Subtask(
        key=part.key,
        title=part.title.strip(),
        body=part.body.strip(),
        type=part.type,
        priority=part.priority,
        depends_on=tuple(dict.fromkeys(part.depends_on)),
        scope=tuple(dict.fromkeys(pattern.strip() for pattern in part.scope)),
        goals=goals,
        assignee=part.assignee,
    )


def _sorted(parts: Sequence[Subtask]) -> tuple[Subtask, ...]:
    """Each part behind those that it depends on, and otherwise as the planner put them."""
    waiting, made, found = list(parts), set[str](), list[Subtask]()
    while waiting:
        part = next(part for part in waiting if made.issuperset(part.depends_on))
        waiting.remove(part)
        made.add(part.key)
        found.append(part)
    return tuple(found)


def _folded(title: str) -> str:
    return " ".join(title.casefold().split())


def _too_long(text: str, most: int) -> str:
    return f"has {len(text)} characters, and at most {most} are allowed"


def plan_lines(plan: Plan, width: int = 100) -> tuple[str, ...]:
    """The plan as a tree for a screen. No text of a planner can break a line, or leave it."""
    count = "1 part" if len(plan.subtasks) == 1 else f"{len(plan.subtasks)} parts"
    lines = [f"#{plan.task} in {count}"]
    lines += [f"│ {line}" for line in _wrapped(plan.summary, width - 2)[:6]]
    across = max((len(part.key) for part in plan.subtasks), default=0)
    for at, part in enumerate(plan.subtasks, 1):
        last = at == len(plan.subtasks)
        mark, below = ("└─", "  ") if last else ("├─", "│ ")
        words = [word for word in (part.type, str(part.priority), part.assignee and f"for {part.assignee}") if word]
        lines.append(_cut(f"{mark} {part.key:<{across}}  {_flat(part.title)}  ({', '.join(words)})", width))
        for name, message in _subtask_lines(part):
            lines.append(_cut(f"{below} {'':<{across}}  {name:<7}{_flat(message)}", width))
    return tuple(lines)


def _subtask_lines(part: Subtask) -> Iterator[tuple[str, str]]:
    if part.depends_on:
        yield "after", ", ".join(part.depends_on)
    if part.scope:
        yield "writes", ", ".join(part.scope)
    for goal in part.goals:
        yield "goal", goal_line(goal)
    if not part.goals:
        yield "goal", "none of its own"


def goal_line(goal: Goal) -> str:
    """A goal in one line, as it could be written."""
    value = getattr(goal, goal.main, None) if goal.main else None
    words = " ".join(value) if isinstance(value, tuple) else value
    reported = "" if goal.required else " (reported only)"
    return f"{goal_type(goal)}: {words}{reported}" if words else f"{goal_type(goal)}{reported}"


def _flat(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _wrapped(text: str, width: int) -> list[str]:
    import textwrap  # noqa: PLC0415  (only who shows a plan pays for it)

    return textwrap.wrap(_flat(text), max(20, width))


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: max(1, width - 1)] + "…"
