"""Writing tasks down, changing what they say, and finding them. No status is changed here."""

import math
import secrets
from functools import lru_cache
from typing import Any

import msgspec

from genba.blackboard.database.paging import WHOLE, Page
from genba.blackboard.database.sanitize import LARGEST, as_json, most, named, now, storable
from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tasks.dependencies import check_new
from genba.blackboard.tasks.goals import set_criteria, without_twins
from genba.blackboard.tasks.history import COMMENTED, CREATED, EDITED, NewEvent, tell
from genba.blackboard.tasks.task_rows import hold, id_of, missing, select_tasks, task_of, task_with_rows
from genba.blackboard.tasks.task_tree import blocked_above, hold_line, hold_relations, line_of
from genba.blackboard.tasks.transition_rules import refuse_step
from genba.domain.errors import StateConflictError, UsageError
from genba.domain.tasks.task import (
    PERSON,
    Actor,
    ActorKind,
    Blocker,
    BlockerKind,
    Comment,
    Task,
    TaskDraft,
    TaskEdit,
    TaskStatus,
    is_day,
)
from genba.domain.tracker.issues import FIRST_OWN_NUMBER

_REVIEWERS = ("human", "ai")

_NEXT_NUMBER = Statement("""
UPDATE projects SET next_task_number = next_task_number + 1 WHERE id = :project RETURNING next_task_number - 1
""")
_RESERVE_NUMBER = Statement("""
UPDATE projects SET next_task_number = CASE WHEN next_task_number <= :number THEN :number + 1 ELSE next_task_number END
WHERE id = :project
""")
_LEAVE_NUMBERS = Statement("""
UPDATE projects SET next_task_number = :first WHERE id = :project AND next_task_number < :first
""")
_IS_THERE = Statement("SELECT 1 FROM tasks WHERE project_id = :project AND number = :number")
_INSERT = Statement("""
INSERT INTO tasks (project_id, number, parent_task_id, title, description, type, status, priority, labels, assignee,
  assignee_id, assignee_type, requires_review, reviewer_type, may_change, tracker, tracker_reference, blocker_kind,
  blocker_reason, blocker_task_id, scope, decompose, budget_usd, review_of, review_commit, in_plan, due, version,
  created_at, updated_at)
VALUES (:project, :number, :parent, :title, :description, :type, :status, :priority, :labels, :assignee, :assignee_id,
  :assignee_type, :requires_review, :reviewer_type, :may_change, :tracker, :tracker_reference, :blocker_kind,
  :blocker_reason, :blocker_task, :scope, :decompose, :budget_usd, :review_of, :review_commit, :in_plan,
  :due, 1, :at, :at)
RETURNING id
""")
_DEPEND = Statement("INSERT INTO task_dependencies (task_id, depends_on_id) VALUES (:task, :on)")
_UPDATE = Statement("""
UPDATE tasks SET title = :title, description = :description, type = :type, priority = :priority, labels = :labels,
  assignee = :assignee, assignee_id = :assignee_id, assignee_type = :assignee_type, requires_review = :requires_review,
  reviewer_type = :reviewer_type, may_change = :may_change, scope = :scope, decompose = :decompose,
  budget_usd = :budget_usd, due = :due, version = :version, updated_at = :at WHERE id = :id
""")
_ADD_AGENT = Statement("""
INSERT INTO agents (id, project_id, name, created_at) VALUES (:id, :project, :name, :at)
ON CONFLICT (project_id, name) DO NOTHING
""")
_AGENT = Statement("SELECT id FROM agents WHERE project_id = :project AND name = :name")
_COMMENT = Statement("""
INSERT INTO comments (task_id, author_kind, author, body, created_at) VALUES (:task, :kind, :author, :body, :at)
""")
_COMMENTS = Statement(
    "SELECT author, body, created_at FROM comments WHERE task_id = :task ORDER BY id LIMIT :limit OFFSET :after"
)
_COMMENT_COUNT = Statement("SELECT count(*) FROM comments WHERE task_id = :task")


def add(tx: Transaction, draft: TaskDraft, actor: Actor, *, by_agent: bool = False) -> Task:
    """Write a new task down. Below a blocked task it is blocked together with it; below an ended one it is refused.

    `by_agent`: an agent wrote it.
    """
    named(actor)
    draft = _checked(draft)
    if draft.dependencies:
        hold_relations(tx)
    parent, blocker, blocker_id = _place_below(tx, draft)
    dependencies = [id_of(tx, number) for number in draft.dependencies]
    check_new(tx, draft, dependencies)
    number, at = _number(tx, draft.number), now()
    row = tx.one(
        _INSERT,
        project=tx.project,
        number=number,
        parent=parent,
        status=str(TaskStatus.BLOCKED if blocker else draft.status),
        tracker=draft.tracker,
        tracker_reference=draft.tracker_reference,
        blocker_kind=str(blocker.kind) if blocker else None,
        blocker_reason=blocker.reason if blocker else "",
        blocker_task=blocker_id,
        review_of=draft.review_of,
        review_commit=draft.review_commit,
        in_plan=draft.in_plan,
        at=at,
        **_written(tx, draft, at),
    )
    task = int(row[0]) if row else 0
    for on in dependencies:
        tx.do(_DEPEND, task=task, on=on)
    if draft.goals:
        set_criteria(tx, task, number, draft.goals, by_agent or actor.kind is not ActorKind.HUMAN)
    values: dict[str, Any] = {"title": draft.title, "status": TaskStatus.BLOCKED if blocker else draft.status}
    values |= {"parent": draft.parent} if draft.parent else {}
    values |= {"in_plan": True} if draft.in_plan else {}
    values |= {"dependencies": draft.dependencies} if draft.dependencies else {}
    values |= {"blocker": blocker} if blocker else {}
    tell(tx, actor, at, [NewEvent(task=task, version=1, kind=CREATED, data=values)])
    return task_with_rows(tx, number).task


def leave_numbers_to_tracker(tx: Transaction) -> None:
    """The project is joined to a tracker, whose issues bring their own numbers. Safe to repeat."""
    tx.do(_LEAVE_NUMBERS, project=tx.project, first=FIRST_OWN_NUMBER)


def edit(tx: Transaction, number: int, wanted: TaskEdit, actor: Actor, version: int | None) -> Task:
    """Change what a task says. An edit that changes nothing leaves no trace."""
    named(actor)
    task = hold(tx, number).task
    if version is not None and version != task.version:
        raise StateConflictError(
            f"task #{number} was changed meanwhile: it is at version {task.version}, not {version}",
            unchanged="nothing was changed.",
            hint=f"look at it, then try again: genba task show {number}",
        )
    changes = _changes(task, wanted)
    if not changes:
        return task
    at = now()
    changed = msgspec.structs.replace(task, **changes, version=task.version + 1, updated_at=at)
    _check_words(changed)
    tx.do(_UPDATE, id=task.id, version=changed.version, at=at, **_written(tx, changed, at))
    if "goals" in changes:
        set_criteria(tx, task.id, number, changed.goals, actor.kind is not ActorKind.HUMAN)
    tell(tx, actor, at, [NewEvent(task=task.id, version=changed.version, kind=EDITED, data=changes)])
    return changed


def find(
    tx: Transaction,
    *,
    status: tuple[TaskStatus, ...],
    type: str,  # noqa: A002  (the word of the house)
    label: str,
    assignee: str,
    parent: int | None,
    text: str,
    limit: int | None,
) -> list[Task]:
    """The tasks that fit everything that is asked for, by number."""
    values: dict[str, Any] = {"project": tx.project, "limit": most(limit)}
    conditions = ["t.project_id = :project"]
    if status:
        values |= {f"status_{place}": str(word) for place, word in enumerate(status)}
        conditions.append(f"t.status IN ({', '.join(f':status_{place}' for place in range(len(status)))})")
    if type:
        conditions.append("t.type = :type")
        values["type"] = storable(type, "the type")
    if label:
        conditions.append("$label")
        values["label"] = storable(label, "the label")
    if assignee:
        conditions.append("t.assignee = :assignee")
        values["assignee"] = storable(assignee, "the assignee")
    if parent is not None:
        conditions.append("t.parent_task_id = :parent")
        values["parent"] = id_of(tx, parent)
    if text:
        conditions.append(
            "(lower(t.title) LIKE lower(:text) ESCAPE '!' OR lower(t.description) LIKE lower(:text) ESCAPE '!')"
        )
        values["text"] = f"%{_literal(storable(text, 'the text'))}%"
    found = tx.all(_finding(tuple(conditions)), **values)
    return [task_of(row) for row in found]


def comment(tx: Transaction, number: int, body: str, actor: Actor) -> Comment:
    named(actor)
    storable(body, "the comment", empty=False)
    task, at = hold(tx, number).task, now()
    tx.do(_COMMENT, task=task.id, kind=str(actor.kind), author=actor.name, body=body, at=at)
    tell(tx, actor, at, [NewEvent(task=task.id, version=task.version, kind=COMMENTED, data={"body": body})])
    return Comment(author=actor.name, body=body, created_at=at)


def comments(tx: Transaction, number: int, page: Page = WHOLE) -> list[Comment]:
    rows = tx.all(_COMMENTS, task=id_of(tx, number), after=page.after, limit=page.limit)
    return [Comment(author=author, body=body, created_at=at) for author, body, at in rows]


def last_comments(tx: Transaction, number: int, most: int) -> tuple[list[Comment], int]:
    """The newest, in their order, and how many older ones there are."""
    row = tx.one(_COMMENT_COUNT, task=id_of(tx, number))
    older = max(0, int(row[0]) - most) if row else 0
    return comments(tx, number, Page(after=older, limit=most)), older


def agent_id(tx: Transaction, name: str, at: str) -> str:
    """The id of the agent of that name; inserts a row for a new name."""
    row = tx.one(_AGENT, project=tx.project, name=name)
    if row is None:
        tx.do(_ADD_AGENT, id=f"agt_{secrets.token_hex(8)}", project=tx.project, name=name, at=at)
        row = tx.one(_AGENT, project=tx.project, name=name)
    return str(row[0]) if row else ""


def _checked(draft: TaskDraft) -> TaskDraft:
    _check_words(draft)
    if draft.status not in (TaskStatus.OPEN, TaskStatus.BACKLOG):
        raise UsageError(f"a new task is open or backlog, not {draft.status}", unchanged="nothing was changed.")
    if draft.in_plan and draft.parent is None:
        raise UsageError("a step belongs to the plan of a task", unchanged="nothing was changed.")
    storable(draft.tracker, "the tracker", empty=False)
    storable(draft.tracker_reference, "the tracker's reference")
    storable(draft.review_commit, "the commit to review")
    return msgspec.structs.replace(
        draft,
        labels=tuple(dict.fromkeys(draft.labels)),
        dependencies=tuple(dict.fromkeys(draft.dependencies)),
        goals=without_twins(draft.goals),
    )


def _check_words(draft: TaskDraft | Task) -> None:
    storable(draft.title, "the title", empty=False)
    storable(draft.body, "the description")
    storable(draft.type, "the type", empty=False)
    storable(draft.assignee, "the assignee")
    for label in draft.labels:
        storable(label, "a label", empty=False)
    for path in draft.may_change:
        storable(path, "a path that may be changed", empty=False)
    for path in draft.scope:
        storable(path, "a path of the scope", empty=False)
    if draft.budget_usd is not None and not 0 <= draft.budget_usd < math.inf:
        raise UsageError(f"a budget is an amount of money, not {draft.budget_usd}", unchanged="nothing was changed.")
    if draft.due and not is_day(draft.due):
        raise UsageError(
            f"a due date is YYYY-MM-DD, not {draft.due!r}", unchanged="nothing was changed.", hint="--due 2026-12-01"
        )
    if draft.reviewer_type not in _REVIEWERS:
        raise UsageError(
            f"a reviewer is {' or '.join(_REVIEWERS)}, not {draft.reviewer_type!r}", unchanged="nothing was changed."
        )


def _place_below(tx: Transaction, draft: TaskDraft) -> tuple[int | None, Blocker | None, int | None]:
    """The parent of a new task, and what blocks it there: its kind and the row that it names."""
    if draft.parent is None:
        return None, None, None
    hold_line(tx, draft.parent, with_itself=True)
    line = line_of(tx, draft.parent) if 0 < draft.parent <= LARGEST else []
    if not line:
        raise missing(draft.parent)
    if line[0].status.ended and draft.tracker == "local":
        raise StateConflictError(
            f"nothing can be added below task #{draft.parent}: it is {line[0].status}",
            unchanged="nothing was changed.",
            hint=f"reopen it first: genba task show {draft.parent}",
        )
    refuse_step(task_with_rows(tx, draft.parent).task, "and has no parts")
    root = blocked_above(line)
    if root is None or draft.status is not TaskStatus.OPEN:
        return line[0].id, None, None
    return line[0].id, Blocker(BlockerKind.DEPENDENCY, f"#{root.number} is blocked", root.number), root.id


def _number(tx: Transaction, wanted: int | None) -> int:
    if wanted is None:
        row = tx.one(_NEXT_NUMBER, project=tx.project)
        return int(row[0]) if row else 0
    if not 0 < wanted < LARGEST:
        raise UsageError(f"a task cannot have the number {wanted}", unchanged="nothing was changed.")
    tx.do(_RESERVE_NUMBER, project=tx.project, number=wanted)
    if tx.one(_IS_THERE, project=tx.project, number=wanted):
        raise StateConflictError(
            f"there is a task #{wanted} already",
            unchanged="nothing was changed.",
            hint=f"genba task show {wanted}",
        )
    return wanted


def _written(tx: Transaction, draft: TaskDraft | Task, at: str) -> dict[str, Any]:
    """The columns that say what a task is about."""
    person = draft.assignee.startswith(PERSON)
    ai = bool(draft.assignee) and not person
    return {
        "title": draft.title,
        "description": draft.body,
        "type": draft.type,
        "priority": str(draft.priority),
        "labels": as_json(draft.labels),
        "assignee": draft.assignee,
        "assignee_id": agent_id(tx, draft.assignee, at) if ai else None,
        "assignee_type": "human" if person else "ai" if ai else None,
        "requires_review": draft.requires_review,
        "reviewer_type": draft.reviewer_type,
        "may_change": as_json(draft.may_change),
        "scope": as_json(draft.scope),
        "decompose": draft.decompose,
        "budget_usd": draft.budget_usd or None,
        "due": draft.due,
    }


def _changes(task: Task, wanted: TaskEdit) -> dict[str, Any]:
    kept = [label for label in task.labels if label not in wanted.remove_labels]
    asked: dict[str, Any] = {
        "title": wanted.title,
        "body": wanted.body,
        "type": wanted.type,
        "priority": wanted.priority,
        "labels": tuple(dict.fromkeys([*kept, *wanted.add_labels])),
        "assignee": wanted.assignee,
        "requires_review": wanted.requires_review,
        "reviewer_type": wanted.reviewer_type,
        "goals": None if wanted.goals is None else without_twins(wanted.goals),
        "may_change": wanted.may_change,
        "scope": wanted.scope,
        "decompose": wanted.decompose,
        "due": wanted.due,
    }
    if wanted.budget_usd is not None and (wanted.budget_usd or None) != task.budget_usd:
        return _different(task, asked) | {"budget_usd": wanted.budget_usd or None}
    return _different(task, asked)


def _different(task: Task, asked: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if value is not None and value != getattr(task, name)}


@lru_cache(maxsize=256)
def _finding(conditions: tuple[str, ...]) -> Statement:
    joined = f"WHERE {' AND '.join(conditions)} ORDER BY t.number LIMIT :limit"
    return select_tasks(
        joined.replace("$label", "EXISTS (SELECT 1 FROM json_each(t.labels) WHERE value = :label)"),
        joined.replace("$label", "jsonb_exists(CAST(t.labels AS jsonb), :label)"),
    )


def _literal(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
