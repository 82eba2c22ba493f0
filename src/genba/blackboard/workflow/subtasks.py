"""Making the subtasks of a task: steps of a worker's own plan, or parts that a manager gives away.

Law: all of a request, or nothing. The same key and the same request make the same subtasks, however often and by
however many at once. A task has one plan; more is added only on request.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from genba.blackboard.database.sanitize import as_json, named, now, seen, storable
from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tasks.history import PARTS_CREATED, NewEvent, tell
from genba.blackboard.tasks.task_records import add
from genba.blackboard.tasks.task_rows import hold, task_with_rows
from genba.blackboard.tasks.task_tree import hold_line, hold_relations, line_of
from genba.blackboard.tasks.transition_rules import refused
from genba.blackboard.workflow.connection_values import PlannedAlreadyError, WorkflowLimits
from genba.blackboard.workflow.subtask_views import family, subtask_view
from genba.domain.decoding import fitted, reader
from genba.domain.errors import StateConflictError, UsageError
from genba.domain.goals.goal import Goal
from genba.domain.tasks.task import Actor, Task, TaskDraft, TaskStatus
from genba.domain.workflow.actions import ErrorCode, SubtaskDraft, SubtaskView, WorkflowError

_KEY = Statement("SELECT digest, numbers FROM subtask_keys WHERE task_id = :task AND key = :key")
_KEEP = Statement("""
INSERT INTO subtask_keys (task_id, key, digest, numbers, created_at) VALUES (:task, :key, :digest, :numbers, :at)
""")
_LONGEST_NUMBER = 18
_numbers = reader(tuple[int, ...])


class SubtaskRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request for subtasks."""

    parent: int
    drafts: tuple[SubtaskDraft, ...]
    in_plan: bool
    key: str = ""
    status: TaskStatus = TaskStatus.OPEN
    more: bool = False
    run: str = ""

    @property
    def digest(self) -> str:
        """The same request has the same digest."""
        words = as_json((self.drafts, self.in_plan, self.status))
        return hashlib.sha256(words.encode()).hexdigest()


def create_subtasks(
    tx: Transaction, wanted: SubtaskRequest, limits: WorkflowLimits, actor: Actor, reviewed: Mapping[str, str]
) -> tuple[SubtaskView, ...]:
    """Make all of them, or none."""
    named(actor)
    storable(wanted.key, "the key")
    hold_relations(tx)
    hold_line(tx, wanted.parent, with_itself=False)
    parent = hold(tx, wanted.parent).task
    before = _made_before(tx, parent, wanted)
    if before:
        return tuple(subtask_view(tx, number) for number in before)
    if parent.status.ended or parent.in_plan:
        why = f"it is {parent.status}" if parent.status.ended else "it is a step itself"
        raise refused(parent.number, f"nothing can be made below it: {why}")
    there = [one.view for one in family(tx, parent.id) if one.id != parent.id and one.in_plan == wanted.in_plan]
    _only_one_plan(parent, wanted, there)
    _within_limits(tx, parent, wanted, there, limits)
    goals = _checked(wanted, there)
    numbers = _write(tx, wanted, goals, actor, reviewed)
    at = now()
    if wanted.key:
        values = {"key": wanted.key, "digest": wanted.digest, "numbers": as_json(numbers), "at": at}
        tx.do(_KEEP, task=parent.id, **values)
    after = task_with_rows(tx, parent.number).task
    fields = {"parts": numbers, "in_plan": wanted.in_plan}
    line = NewEvent(task=after.id, version=after.version, kind=PARTS_CREATED, data=fields)
    tell(tx, actor, at, [line], seen(wanted.run))
    return tuple(subtask_view(tx, number) for number in numbers)


def _made_before(tx: Transaction, parent: Task, wanted: SubtaskRequest) -> tuple[int, ...]:
    row = tx.one(_KEY, task=parent.id, key=wanted.key) if wanted.key else None
    if row is None:
        return ()
    if row[0] != wanted.digest:
        raise StateConflictError(
            f"task #{parent.number}: the key {wanted.key[:80]!r} was used for another request",
            unchanged="nothing was changed.",
            hint="use another key for another request",
        )
    return _numbers.decode(row[1])


def _only_one_plan(parent: Task, wanted: SubtaskRequest, there: list[SubtaskView]) -> None:
    standing = tuple(task.number for task in there if task.status is not TaskStatus.CANCELLED)
    if standing and not wanted.more:
        raise PlannedAlreadyError(
            f"task #{parent.number} has its subtasks already", standing, hint="go on with those: get_next_action"
        )


def _within_limits(
    tx: Transaction, parent: Task, wanted: SubtaskRequest, there: list[SubtaskView], limits: WorkflowLimits
) -> None:
    if len(there) + len(wanted.drafts) > limits.max_subtasks:
        has = f", and it has {len(there)}" if there else ""
        raise WorkflowError(
            ErrorCode.LIMIT,
            f"task #{parent.number} may have at most {limits.max_subtasks} subtasks{has}",
            hint="join those that belong together",
        )
    depth = len(line_of(tx, parent.number)) - 1
    if not wanted.in_plan and depth >= limits.max_depth:
        raise WorkflowError(
            ErrorCode.LIMIT,
            f"task #{parent.number} has {depth} tasks above it, and at most {limits.max_depth} levels are taken apart",
            hint="report_blocked: the task is too large for where it is",
        )


def _checked(wanted: SubtaskRequest, there: list[SubtaskView]) -> list[tuple[Goal, ...]]:
    """The goals of each draft; or every problem of the request at once."""
    problems = [*_names(wanted.drafts, there), *_dependencies(wanted.drafts, there)]
    goals: list[tuple[Goal, ...]] = []
    for draft in wanted.drafts:
        read: list[Goal] = []
        for raw in draft.goals:
            try:
                read.append(fitted(raw, Goal))
            except (msgspec.ValidationError, TypeError) as error:
                problems.append(f"{draft.title[:80]!r}: a goal is not understood: {error}")
        goals.append(tuple(read))
        problems += _texts(draft)
    if not wanted.drafts:
        problems.append("there is no subtask in it")
    elif not problems and not _in_order(wanted.drafts):
        problems.append(f"they wait for each other: {_circle(wanted.drafts)}")
    if problems:
        raise WorkflowError(ErrorCode.VALIDATION, "; ".join(problems), hint="fix that, and send all of them again")
    return goals


def _texts(draft: SubtaskDraft) -> Iterator[str]:
    texts = [(draft.title, "its title", False), (draft.body, "its body", True), (draft.type, "its type", False)]
    texts += [(draft.assignee, "its assignee", True), *((path, "a path of its scope", False) for path in draft.scope)]
    for text, what, empty in texts:
        try:
            storable(text, what, empty=empty)
        except UsageError as error:
            yield f"{draft.title[:80]!r}: {error.message}"


def _names(drafts: Sequence[SubtaskDraft], there: list[SubtaskView]) -> Iterator[str]:
    """Two subtasks with one name cannot be distinguished by people or dependencies."""
    titles = {_folded(task.title): f"#{task.number}" for task in there if task.status is not TaskStatus.CANCELLED}
    ids: set[str] = set()
    for draft in drafts:
        title = _folded(draft.title)
        if title and title in titles:
            yield f"{draft.title[:80]!r} is there already: {titles[title]}"
        titles.setdefault(title, "in this request")
        if draft.local_id and draft.local_id in ids:
            yield f"two have the local id {draft.local_id[:80]!r}"
        ids.add(draft.local_id)


def _dependencies(drafts: Sequence[SubtaskDraft], there: list[SubtaskView]) -> Iterator[str]:
    ids = {draft.local_id for draft in drafts if draft.local_id}
    known = {task.number: task for task in there}
    for draft in drafts:
        for name in draft.depends_on:
            if name in ids:
                continue
            number = _number(name)
            if number not in known:
                yield f"{draft.title[:80]!r} depends on {name[:80]!r}, which is no local id and no subtask of this task"
            elif known[number].status is TaskStatus.CANCELLED:
                yield f"{draft.title[:80]!r} depends on #{number}, which was cancelled"


def _in_order(drafts: Sequence[SubtaskDraft]) -> list[int]:
    """Their places, each after those that it depends on, else as they were given; empty when there is no such order."""
    ids = {draft.local_id for draft in drafts if draft.local_id}
    made: set[str] = set()
    order: list[int] = []
    waiting = list(range(len(drafts)))
    while waiting:
        free = [at for at in waiting if all(name in made for name in drafts[at].depends_on if name in ids)]
        if not free:
            return []
        order.append(free[0])
        waiting.remove(free[0])
        made.add(drafts[free[0]].local_id)
    return order


def _circle(drafts: Sequence[SubtaskDraft]) -> str:
    by_id = {draft.local_id: draft for draft in drafts if draft.local_id}
    stuck = dict(by_id)
    while free := [
        name for name, draft in stuck.items() if not any(on in stuck for on in draft.depends_on if on in by_id)
    ]:
        for name in free:
            del stuck[name]
    way = [next(iter(stuck))]
    while way.count(way[-1]) == 1:
        way.append(next(on for on in stuck[way[-1]].depends_on if on in stuck))
    return " → ".join(way[way.index(way[-1]) :])


def _write(
    tx: Transaction,
    wanted: SubtaskRequest,
    goals: list[tuple[Goal, ...]],
    actor: Actor,
    reviewed: Mapping[str, str],
) -> tuple[int, ...]:
    made: dict[int, int] = {}
    local: dict[str, int] = {}
    for at in _in_order(wanted.drafts):
        output = wanted.drafts[at]
        on = tuple(local[name] if name in local else _number(name) for name in output.depends_on)
        draft = TaskDraft(
            title=output.title.strip(),
            body=output.body,
            type=output.type,
            status=wanted.status,
            priority=output.priority,
            parent=wanted.parent,
            dependencies=on,
            assignee=output.assignee,
            goals=goals[at],
            scope=output.scope,
            in_plan=wanted.in_plan,
            requires_review=not wanted.in_plan and output.type in reviewed,
            reviewer_type=reviewed.get(output.type, "human"),
        )
        made[at] = add(tx, draft, actor, by_agent=True).number
        if output.local_id:
            local[output.local_id] = made[at]
    return tuple(made[at] for at in range(len(wanted.drafts)))


def _number(name: str) -> int:
    digits = name.strip().removeprefix("#")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_NUMBER else 0


def _folded(title: str) -> str:
    return " ".join(title.split()).casefold()
