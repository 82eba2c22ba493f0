"""Sessions of a fleet, part by part.

Law: a task has at most one session that has not ended. A part begins by comparing what it goes on from, so that of two
who begin it one wins; it ends once. Repeating any of it changes nothing.
"""

from typing import Any, NamedTuple

import msgspec

from genba.blackboard.database.sanitize import as_json, bounded, now, seen, storable
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.blackboard.fleet.spending import spend, spend_rest
from genba.blackboard.reviews.reviews import check_reviewer
from genba.blackboard.tasks.history import PART_BEGAN, PART_ENDED, TAKEN_OVER, NewEvent, tell
from genba.blackboard.tasks.status_gateway import change_status
from genba.blackboard.tasks.task_records import agent_id
from genba.blackboard.tasks.task_rows import hold, id_of
from genba.blackboard.tasks.task_tree import hold_line
from genba.blackboard.tasks.transition_rules import refuse_step, refused
from genba.blackboard.workflow.agent_connections import part_over
from genba.domain.decoding import reader
from genba.domain.errors import NotFoundError, StateConflictError
from genba.domain.fleet.records import Cause, FleetSession, Purpose, SegmentEnd, SegmentOrder, Spending, WaitsFor
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.session import SessionStatus
from genba.domain.tasks.task import Actor, ActorKind, Blocker, BlockerKind, StatusChange, Task, TaskStatus
from genba.domain.workflow.actions import Hierarchy


class SessionRow(NamedTuple):
    """A row of `COLUMNS`, in their order."""

    run: str
    task: int
    agent: str
    attempt: int
    purpose: str
    status: str
    waits_for: str
    part: int
    executor: str
    external: bool
    host: str
    branch: str
    base: str
    base_branch: str
    verified: str
    outcome: str | None
    reason: str
    provider: str
    phase: str
    step: str
    iterations: int
    tokens: int
    cost: float
    changed: str
    rounds: int
    reviews: int
    started_at: str
    heartbeat_at: str
    ended_at: str | None
    forgiven: bool
    task_status: str


COLUMNS = """
SELECT s.run, t.number, a.name, s.attempt, s.purpose, s.status, s.waits_for, s.part, s.executor, s.external, s.host,
  s.branch, s.base, s.base_branch, s.verified, s.outcome, s.reason, s.provider, s.phase, s.step, s.iterations, s.tokens,
  s.cost, s.changed, s.rounds, s.reviews, s.started_at, s.heartbeat_at, s.ended_at, s.forgiven, t.status
FROM sessions s JOIN tasks t ON t.id = s.task_id JOIN agents a ON a.id = s.agent_id
"""
"""What `SessionRow` holds."""

_ONE = Statement(COLUMNS + "WHERE s.run = :run AND t.project_id = :project")
_OF_TASK = Statement(COLUMNS + "WHERE t.project_id = :project AND t.number = :number ORDER BY s.id")
_INSERT = Statement("""
INSERT INTO sessions (run, task_id, agent_id, attempt, host, workflow, part, purpose, executor, external, base_branch,
  provider, plan, started_at, heartbeat_at)
VALUES (:run, :task, :agent, :attempt, :host, :workflow, :part, :purpose, :executor, :external, :base_branch,
  :provider, :plan, :at, :at)
""")
_LEADS = Statement("UPDATE agents SET hierarchy_type = :hierarchy WHERE id = :id AND hierarchy_type <> :hierarchy")
_HIERARCHY = {Purpose.MANAGE: Hierarchy.MANAGER, Purpose.WORK: Hierarchy.WORKER}
_OTHERS = Statement("SELECT run FROM sessions WHERE task_id = :task AND run <> :run AND status <> 'ended' LIMIT 1")
_LAST_ATTEMPT = Statement("SELECT max(attempt) FROM sessions WHERE task_id = :task AND purpose = :purpose")
_TAKEN = Statement("SELECT 1 FROM sessions WHERE run = :run")
_CONTINUE = Statement("""
UPDATE sessions SET status = 'running', waits_for = '', part = :part, workflow = :workflow, executor = :executor,
  external = :external, host = :host, phase = '', step = '', outcome = NULL, reason = '', rounds = rounds + :rounds,
  reviews = reviews + :reviews, heartbeat_at = :at WHERE run = :run AND status = 'waiting' AND part = :part - 1
""")
_END = Statement("""
UPDATE sessions SET status = :status, waits_for = :waits_for, outcome = :outcome, reason = :reason,
  verified = CASE WHEN :verified = '' THEN verified ELSE :verified END,
  state = CASE WHEN :state = '' THEN state ELSE :state END, iterations = :iterations, tokens = :tokens, cost = :cost,
  phase = '', heartbeat_at = :at, ended_at = :ended_at WHERE run = :run AND part = :part AND status = 'running'
""")
_GIVE_UP = Statement("""
UPDATE sessions SET status = 'ended', waits_for = '', outcome = :outcome, reason = :reason, ended_at = :at
WHERE run = :run AND part = :part AND status = 'waiting'
""")
_TAKE_OVER = Statement("""
UPDATE sessions SET executor = :executor, external = FALSE, host = :host, heartbeat_at = :at
WHERE run = :run AND status <> 'ended'
""")
_TEXTS = Statement("""
SELECT s.plan, s.state FROM sessions s JOIN tasks t ON t.id = s.task_id WHERE s.run = :run AND t.project_id = :project
""")
_PROGRESS_SQLITE = """
UPDATE sessions SET phase = coalesce(:phase, phase), step = coalesce(:step, step),
  iterations = coalesce(:iterations, iterations), tokens = coalesce(:tokens, tokens), cost = coalesce(:cost, cost),
  changed = coalesce(:changed, changed), heartbeat_at = :at WHERE run = :run AND status = 'running'
"""
_PROGRESS_POSTGRES = """
UPDATE sessions SET phase = coalesce(CAST(:phase AS text), phase), step = coalesce(CAST(:step AS text), step),
  iterations = coalesce(CAST(:iterations AS bigint), iterations), tokens = coalesce(CAST(:tokens AS bigint), tokens),
  cost = coalesce(CAST(:cost AS double precision), cost), changed = coalesce(CAST(:changed AS text), changed),
  heartbeat_at = :at WHERE run = :run AND status = 'running'
"""
_PROGRESS = Statement(_PROGRESS_SQLITE, _PROGRESS_POSTGRES)
_PAUSED = Statement("SELECT paused FROM projects WHERE id = :project")
_HELD = Statement("SELECT held FROM tasks WHERE id = :task")

_texts = reader(tuple[str, ...])

_SENDS_BACK = (Cause.FINDINGS, Cause.CONFLICT, Cause.FAILED)


def start(
    tx: Transaction, order: SegmentOrder, *, executor: str, host: str, provider: str, plan: str, base_branch: str
) -> tuple[FleetSession, bool]:
    """Claim a task for the first part of a session; whether it is new, or was there already."""
    for text, what in ((order.run, "the run"), (order.agent, "the agent"), (executor, "the executor")):
        storable(text, what, empty=False)
    hold_line(tx, order.task, with_itself=False)
    task = hold(tx, order.task).task
    there = tx.one(_ONE, run=order.run, project=tx.project)
    if there is not None and SessionRow(*there).task == order.task:
        return session_of(there), False
    if tx.one(_TAKEN, run=order.run) is not None:
        raise refused(order.task, f"run {order.run} works on another task already")
    refuse_step(task, "and the agent of that task carries it out")
    _may_go_on(tx, task, order)
    last = tx.one(_LAST_ATTEMPT, task=task.id, purpose=str(order.purpose))
    if last is not None and last[0] is not None and last[0] >= order.attempt:
        raise refused(order.task, f"its attempt {order.attempt} was made already")
    if order.purpose is Purpose.REVIEW:
        check_reviewer(tx, task, order.agent)
    actor = Actor(ActorKind.ORCHESTRATOR, executor)
    reason = f"attempt {order.attempt} by {order.agent}"
    change = StatusChange(to=TaskStatus.IN_PROGRESS, actor=actor, reason=reason, session=order.run)
    task = change_status(tx, order.task, change)
    write_session(tx, task, order, executor=executor, host=host, provider=provider, plan=plan, base_branch=base_branch)
    _record_segment_started(tx, task, order, actor)
    return session(tx, order.run), True


def write_session(
    tx: Transaction,
    task: Task,
    order: SegmentOrder,
    *,
    executor: str,
    host: str = "",
    provider: str = "",
    plan: str = "",
    base_branch: str = "",
) -> None:
    """Insert the row of a new session, which runs. What an agent does in it says whether it manages."""
    at = now()
    agent = agent_id(tx, order.agent, at)
    if order.purpose in _HIERARCHY:
        tx.do(_LEADS, id=agent, hierarchy=str(_HIERARCHY[order.purpose]))
    tx.do(
        _INSERT,
        run=order.run,
        task=task.id,
        agent=agent,
        attempt=order.attempt,
        host=seen(host),
        workflow=order.workflow,
        part=order.part,
        purpose=str(order.purpose),
        executor=executor,
        external=order.external,
        base_branch=seen(base_branch),
        provider=seen(provider),
        plan=seen(plan),
        at=at,
    )


def continue_(tx: Transaction, order: SegmentOrder, *, executor: str, host: str) -> tuple[FleetSession, bool]:
    """Begin the next part of a session that waits; whether it is new, or was begun already."""
    storable(executor, "the executor", empty=False)
    hold_line(tx, order.task, with_itself=False)
    task = hold(tx, order.task).task
    now_there = session(tx, order.run)
    if now_there.task != order.task:
        raise refused(order.task, f"run {order.run} works on another task")
    if now_there.status == SessionStatus.RUNNING and now_there.part == order.part:
        return now_there, False
    if now_there.status != SessionStatus.WAITING or now_there.part != order.part - 1:
        raise refused(
            order.task,
            f"{order.run} is {now_there.status} after part {now_there.part}, so part {order.part} cannot begin",
        )
    _may_go_on(tx, task, order)
    actor = Actor(ActorKind.ORCHESTRATOR, executor)
    out_of_the_queue = order.cause is Cause.RESUMED and task.status is TaskStatus.REVIEW
    came_back = order.cause in (Cause.CONFLICT, Cause.FAILED) or out_of_the_queue
    task = _moved(tx, task, order, actor)
    tx.do(
        _CONTINUE,
        run=order.run,
        part=order.part,
        workflow=order.workflow,
        executor=executor,
        external=order.external,
        host=seen(host),
        rounds=1 if came_back else 0,
        reviews=1 if order.cause is Cause.FINDINGS else 0,
        at=now(),
    )
    _record_segment_started(tx, task, order, actor)
    return session(tx, order.run), True


def end_part(tx: Transaction, end: SegmentEnd) -> None:
    """Write down how a part ended. Only the first end counts; a session that waits can still be given up, `aborted`.

    A segment of an ended task waits for nothing: the task may have ended while the segment was running.
    """
    there = session(tx, end.run)
    task = hold(tx, there.task).task
    there = session(tx, end.run)
    if task.status.ended and end.waits_for is not WaitsFor.NOTHING:
        outcome = Outcome.COMPLETED if task.status is TaskStatus.DONE else Outcome.ABORTED
        reason = f"its task is {task.status}"
        end = msgspec.structs.replace(end, waits_for=WaitsFor.NOTHING, outcome=outcome, reason=reason)
    waits = end.waits_for is not WaitsFor.NOTHING
    gives_up = there.status == SessionStatus.WAITING and not waits and end.outcome == Outcome.ABORTED
    if there.part != end.part or (there.status != SessionStatus.RUNNING and not gives_up):
        return
    at = now()
    if gives_up:
        tx.do(_GIVE_UP, run=end.run, part=end.part, outcome=end.outcome, reason=bounded(end.reason), at=at)
    else:
        _write_end(tx, end, waits, at)
    part_over(tx, end.run, at)
    values = {"part": end.part, "waits_for": end.waits_for, "outcome": end.outcome, "reason": bounded(end.reason)}
    line = NewEvent(task=task.id, version=task.version, kind=PART_ENDED, data=values)
    tell(tx, Actor(ActorKind.ORCHESTRATOR, there.executor or end.run), at, [line], end.run)


def give_up(tx: Transaction, run: str, part: int, reason: str, actor: Actor) -> None:
    """End a session that waits after this part. Its work stays on its branch until a person says more."""
    number = session(tx, run).task
    hold_line(tx, number, with_itself=False)
    task = hold(tx, number).task
    there = session(tx, run)
    if there.part != part or there.status != SessionStatus.WAITING:
        return
    on_its_way_home = task.status is TaskStatus.REVIEW and tx.one(_OTHERS, task=task.id, run=run) is None
    if on_its_way_home:
        change = StatusChange(to=TaskStatus.IN_PROGRESS, actor=actor, reason=reason, session=run)
        change_status(tx, number, change)
        blocker = Blocker(BlockerKind.FAILED, reason)
        change_status(tx, number, msgspec.structs.replace(change, to=TaskStatus.BLOCKED, blocker=blocker))
    end_part(tx, SegmentEnd(run=run, part=part, outcome=Outcome.ABORTED, reason=reason))


def give_back(tx: Transaction, run: str, part: int, reason: str, actor: Actor) -> None:
    """End a session that waits after this segment, and open its task. Safe to repeat."""
    number = session(tx, run).task
    hold_line(tx, number, with_itself=False)
    hold(tx, number)
    there = session(tx, run)
    if there.part != part or there.status != SessionStatus.WAITING:
        return
    end_part(tx, SegmentEnd(run=run, part=part, outcome=Outcome.ABORTED, reason=reason))
    if hold(tx, number).task.status in (TaskStatus.REVIEW, TaskStatus.IN_PROGRESS):
        reopen(tx, number, reason, actor)


def reopen(tx: Transaction, number: int, reason: str, actor: Actor) -> None:
    """Open a task again that has no running session. Verified work that did not land is done again."""
    hold_line(tx, number, with_itself=False)
    task = hold(tx, number).task
    other = tx.one(_OTHERS, task=task.id, run="")
    if other is not None and task.status is not TaskStatus.BLOCKED:
        raise refused(number, f"{other[0]} works on it", f"genba logs {other[0]}")
    change = StatusChange(to=TaskStatus.OPEN, actor=actor, reason=reason)
    if task.status is TaskStatus.REVIEW:
        change_status(tx, number, msgspec.structs.replace(change, to=TaskStatus.IN_PROGRESS))
    change_status(tx, number, change)


def _write_end(tx: Transaction, end: SegmentEnd, waits: bool, at: str) -> None:
    tx.do(
        _END,
        run=end.run,
        part=end.part,
        status=str(SessionStatus.WAITING if waits else SessionStatus.ENDED),
        waits_for=str(end.waits_for),
        outcome=None if waits else end.outcome or None,
        reason=bounded(end.reason),
        verified=seen(end.verified),
        state=seen(end.state),
        iterations=end.iterations,
        tokens=end.tokens,
        cost=end.cost_usd,
        at=at,
        ended_at=None if waits else at,
    )
    spend_rest(tx, end.run)


def take_over(tx: Transaction, run: str, executor: str, host: str) -> FleetSession:
    """Another executor carries a session on, from where it is."""
    storable(executor, "the executor", empty=False)
    before = session(tx, run)
    task = hold(tx, before.task).task
    before = session(tx, run)
    if before.status == SessionStatus.ENDED or (before.executor, before.host) == (executor, host):
        return before
    at = now()
    tx.do(_TAKE_OVER, run=run, executor=executor, host=seen(host), at=at)
    values = {"run": run, "from": before.executor, "to": executor}
    line = NewEvent(task=task.id, version=task.version, kind=TAKEN_OVER, data=values)
    tell(tx, Actor(ActorKind.ORCHESTRATOR, executor), at, [line], run)
    return session(tx, run)


def progress(
    tx: Transaction,
    run: str,
    *,
    phase: str | None,
    step: str | None,
    iterations: int | None,
    tokens: int | None,
    cost_usd: float | None,
    changed: tuple[str, ...] | None,
    spending: Spending | None,
) -> None:
    """Show where a session is. It is no event: it says what is now, and the next one replaces it."""
    tx.do(
        _PROGRESS,
        run=run,
        phase=None if phase is None else seen(phase),
        step=None if step is None else seen(step),
        iterations=iterations,
        tokens=tokens,
        cost=cost_usd,
        changed=None if changed is None else as_json(tuple(seen(path) for path in changed)),
        at=now(),
    )
    if spending is not None:
        spend(tx, spending)


def session(tx: Transaction, run: str) -> FleetSession:
    row = tx.one(_ONE, run=seen(run), project=tx.project)
    if row is None:
        raise NotFoundError(
            f"there is no session of the run {run!r}", unchanged="nothing was changed.", hint="genba task list"
        )
    return session_of(row)


def sessions(tx: Transaction, number: int) -> list[FleetSession]:
    """The sessions of a task, oldest first."""
    id_of(tx, number)
    return [session_of(row) for row in tx.all(_OF_TASK, project=tx.project, number=number)]


def plan_of(tx: Transaction, run: str) -> str:
    return texts_of(tx, run)[0]


def state_of(tx: Transaction, run: str) -> str:
    return texts_of(tx, run)[1]


def session_of(columns: Row) -> FleetSession:
    """A session, out of a row of `COLUMNS`."""
    row = SessionRow(*columns)
    return FleetSession(
        run=row.run,
        task=row.task,
        agent=row.agent,
        attempt=row.attempt,
        purpose=Purpose(row.purpose),
        status=row.status,
        waits_for=WaitsFor(row.waits_for),
        part=row.part,
        executor=row.executor,
        external=bool(row.external),
        host=row.host,
        branch=row.branch,
        base=row.base,
        base_branch=row.base_branch,
        verified=row.verified,
        outcome=row.outcome or "",
        reason=row.reason,
        provider=row.provider,
        phase=row.phase,
        step=row.step,
        iterations=row.iterations,
        tokens=row.tokens,
        cost_usd=row.cost,
        changed=() if row.changed == "[]" else _texts.decode(row.changed),
        rounds=row.rounds,
        reviews=row.reviews,
        started_at=row.started_at,
        heartbeat_at=row.heartbeat_at,
        ended_at=row.ended_at or "",
    )


def texts_of(tx: Transaction, run: str) -> tuple[str, str]:
    """What a run was planned with, and the state of its loop."""
    row = tx.one(_TEXTS, run=seen(run), project=tx.project)
    if row is None:
        session(tx, run)
        return "", ""
    return str(row[0]), str(row[1])


def _may_go_on(tx: Transaction, task: Task, order: SegmentOrder) -> None:
    other = tx.one(_OTHERS, task=task.id, run=order.run)
    if other is not None:
        raise refused(task.number, f"{other[0]} works on it", f"genba logs {other[0]}")
    if order.cause is Cause.LANDED:  # what has landed is closed, whatever else is paused
        return
    paused, held = tx.one(_PAUSED, project=tx.project), tx.one(_HELD, task=task.id)
    if paused is not None and paused[0]:
        raise refused(task.number, "the project is paused", "genba resume")
    if held is not None and held[0]:
        raise refused(task.number, "a person paused it", f"genba resume {task.number}")


def _moved(tx: Transaction, task: Task, order: SegmentOrder, actor: Actor) -> Task:
    """The task in the status that the next part needs."""
    in_place = task.status in (TaskStatus.REVIEW, TaskStatus.DONE) or task.has_let_go_of(order.run)
    if order.cause is Cause.LANDED and in_place:
        return task
    match task.status:
        case TaskStatus.IN_PROGRESS:
            return task
        case TaskStatus.REVIEW if order.cause not in _SENDS_BACK:
            return task
        case TaskStatus.OPEN | TaskStatus.REVIEW if order.cause is not Cause.LANDED:
            reason = f"part {order.part}: {order.cause}"
            change = StatusChange(to=TaskStatus.IN_PROGRESS, actor=actor, reason=reason, session=order.run)
            return change_status(tx, task.number, change)
        case TaskStatus.BLOCKED:
            why = task.blocker.reason if task.blocker else ""
            raise refused(task.number, f"it is blocked: {why}", f"genba decisions show {task.number}")
    raise StateConflictError(
        f"task #{task.number} is {task.status}: part {order.part} of {order.run} cannot begin",
        unchanged="nothing was changed.",
        hint=f"genba task show {task.number}",
    )


def _record_segment_started(tx: Transaction, task: Task, order: SegmentOrder, actor: Actor) -> None:
    values: dict[str, Any] = {"part": order.part, "cause": order.cause, "purpose": order.purpose, "agent": order.agent}
    line = NewEvent(task=task.id, version=task.version, kind=PART_BEGAN, data=values)
    tell(tx, actor, now(), [line], order.run)
