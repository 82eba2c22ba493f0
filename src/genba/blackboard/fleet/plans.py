"""Plans: the parts of a task, as a planner proposes them, and how they become tasks.

Law: parts are created all together, once for each plan, or not at all.
"""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from genba.blackboard.database.sanitize import as_json, named, now, seen
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.blackboard.tasks.history import PARTS_CREATED, PLAN_REJECTED, PLANNED, NewEvent, tell
from genba.blackboard.tasks.task_records import add, edit
from genba.blackboard.tasks.task_rows import GOING, hold, task_with_rows
from genba.blackboard.tasks.task_tree import hold_line, hold_relations
from genba.blackboard.tasks.transition_rules import refused
from genba.domain.decoding import reader
from genba.domain.errors import NotFoundError, StateConflictError
from genba.domain.fleet.records import Plan, Subtask
from genba.domain.tasks.task import Actor, ActorKind, Task, TaskDraft, TaskEdit

_COLUMNS = """
SELECT p.id, t.number, p.run, p.subtasks, p.summary, p.status, p.created_at, p.parts
FROM plans p JOIN tasks t ON t.id = p.task_id
"""
_ONE = Statement(_COLUMNS + "WHERE p.id = :id AND p.project_id = :project")
_OF_TASK = Statement(_COLUMNS + "WHERE t.id = :task ORDER BY p.id DESC")
_IN_VIEW = f"""
WHERE t.project_id = :project AND t.{GOING}
  AND NOT EXISTS (SELECT 1 FROM plans n WHERE n.task_id = p.task_id AND n.id > p.id)
ORDER BY p.id
"""  # noqa: S608  (words of this house)
_OF_FIELD = Statement(_COLUMNS + _IN_VIEW)
_INSERT = Statement("""
INSERT INTO plans (project_id, task_id, run, subtasks, summary, created_at)
VALUES (:project, :task, :run, :subtasks, :summary, :at)
""")
_SUPERSEDE = Statement("""
UPDATE plans SET status = 'rejected', reason = 'there is a newer plan' WHERE task_id = :task AND status = 'proposed'
""")
_CREATED = Statement("UPDATE plans SET status = 'created', parts = :parts WHERE id = :id")
_REJECTED = Statement("UPDATE plans SET status = 'rejected', reason = :reason WHERE id = :id")

_subtasks = reader(tuple[Subtask, ...])
_numbers = reader(tuple[int, ...])


def propose(tx: Transaction, plan: Plan) -> Plan:
    """Write a plan down. The same plan of the same run is there once; a newer one takes the place of an older."""
    task = hold(tx, plan.task).task
    there = tx.all(_OF_TASK, task=task.id)
    for row in there:
        if plan.run and row[2] == plan.run and plan_of(row).subtasks == plan.subtasks:
            return plan_of(row)
    if task.status.ended:
        raise refused(plan.task, f"it is {task.status}, and needs no plan")
    at = now()
    tx.do(_SUPERSEDE, task=task.id)
    tx.do(
        _INSERT,
        project=tx.project,
        task=task.id,
        run=seen(plan.run),
        subtasks=as_json(plan.subtasks),
        summary=seen(plan.summary),
        at=at,
    )
    line = NewEvent(task=task.id, version=task.version, kind=PLANNED, data={"parts": len(plan.subtasks)})
    tell(tx, Actor(ActorKind.ORCHESTRATOR, seen(plan.run).strip() or "genba"), at, [line], seen(plan.run))
    return plan_of(tx.all(_OF_TASK, task=task.id)[0])


def create_parts(tx: Transaction, plan_id: int, actor: Actor, reviewed: Mapping[str, str]) -> tuple[int, ...]:
    """Make tasks of the parts of a plan: all of them with their goals and relations, or none.

    A part is reviewed like every task of its type.
    """
    named(actor)
    plan = _plan(tx, plan_id)
    hold_relations(tx)
    hold_line(tx, plan.task, with_itself=False)
    parent = hold(tx, plan.task).task
    row = tx.one(_ONE, id=plan_id, project=tx.project)
    if row is not None and row[5] == "created":
        return _numbers.decode(row[7])
    if row is None or row[5] == "rejected":
        raise refused(plan.task, "its plan was rejected")
    made: dict[str, int] = {}
    for part in _in_order(plan):
        draft = TaskDraft(
            title=part.title,
            body=part.body,
            type=part.type,
            priority=part.priority,
            parent=plan.task,
            dependencies=tuple(made[key] for key in part.depends_on),
            assignee=part.assignee,
            goals=part.goals,
            scope=part.scope,
            requires_review=part.type in reviewed,
            reviewer_type=reviewed.get(part.type, "human"),
        )
        made[part.key] = add(tx, draft, actor, by_agent=True).number
    numbers = tuple(made[part.key] for part in plan.subtasks)
    tx.do(_CREATED, id=plan_id, parts=as_json(numbers))
    if parent.decompose:
        edit(tx, plan.task, TaskEdit(decompose=False), actor, None)
    after = task_with_rows(tx, plan.task).task
    line = NewEvent(task=after.id, version=after.version, kind=PARTS_CREATED, data={"parts": numbers})
    tell(tx, actor, now(), [line], plan.run)
    return numbers


def reject_plan(tx: Transaction, plan_id: int, reason: str, actor: Actor) -> Plan:
    """Refuse a plan. One that was rejected stays so; one whose parts are there cannot be."""
    named(actor)
    task = hold(tx, _plan(tx, plan_id).task).task
    plan = _plan(tx, plan_id)
    if plan.status == "created":
        raise refused(plan.task, "the parts of its plan are there already")
    if plan.status == "proposed":
        _reject(tx, task, plan, reason, actor)
    return _plan(tx, plan_id)


def reject_proposed(tx: Transaction, task: Task, reason: str, actor: Actor) -> None:
    """Refuse the plan of a task that waits to be judged, if there is one."""
    for row in tx.all(_OF_TASK, task=task.id):
        if row[5] == "proposed":
            _reject(tx, task, plan_of(row), reason, actor)


def of_field(tx: Transaction) -> tuple[Plan, ...]:
    return tuple(plan_of(row) for row in tx.all(_OF_FIELD, project=tx.project))


def plan_of(row: Row) -> Plan:
    return Plan(
        id=row[0],
        task=row[1],
        run=row[2],
        subtasks=_subtasks.decode(row[3]),
        summary=row[4],
        status=row[5],
        created_at=row[6],
    )


def _reject(tx: Transaction, task: Task, plan: Plan, reason: str, actor: Actor) -> None:
    tx.do(_REJECTED, id=plan.id, reason=seen(reason))
    line = NewEvent(
        task=task.id, version=task.version, kind=PLAN_REJECTED, data={"plan": plan.id, "reason": seen(reason)}
    )
    tell(tx, actor, now(), [line], plan.run)


def _plan(tx: Transaction, plan_id: int) -> Plan:
    row = tx.one(_ONE, id=plan_id, project=tx.project)
    if row is None:
        raise NotFoundError(f"there is no plan {plan_id}", unchanged="nothing was changed.", hint="genba task list")
    return plan_of(row)


def _in_order(plan: Plan) -> list[Subtask]:
    """The parts, each after those that it depends on."""
    parts = {part.key: part for part in plan.subtasks}
    unknown = [key for part in plan.subtasks for key in part.depends_on if key not in parts]
    if unknown or len(parts) != len(plan.subtasks):
        why = f"a part depends on {unknown[0]!r}, which is none of them" if unknown else "two parts have the same key"
        raise _senseless(plan, why)
    try:
        order = list(TopologicalSorter({key: part.depends_on for key, part in parts.items()}).static_order())
    except CycleError as error:
        circle = " → ".join(str(key) for key in error.args[1])
        raise _senseless(plan, f"its parts wait for each other: {circle}") from None
    return [parts[key] for key in order]


def _senseless(plan: Plan, why: str) -> StateConflictError:
    return StateConflictError(
        f"task #{plan.task}: its plan cannot be carried out: {why}",
        unchanged="nothing was changed.",
        hint=f"genba reject {plan.task} --reason TEXT",
    )
