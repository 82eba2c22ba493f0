"""Looks at the fleet for those who only watch: who worked when, what landed, what was spent. Each is bounded."""

import msgspec

from genba.blackboard.database.sanitize import seen
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.blackboard.fleet import merge_entries
from genba.blackboard.tasks.history import PART_BEGAN, PART_ENDED
from genba.domain.decoding import reader
from genba.domain.fleet.records import Cost, MergeEntry, Purpose
from genba.domain.tasks.task import TaskStatus
from genba.domain.views.agents import AgentRecord, AgentSession
from genba.domain.views.cost import AgentSpent, TaskSpent
from genba.domain.views.workers import SegmentMark, SpanFacts

_MOST_EVENTS = 50_000
"""So many events back the parts of sessions are looked for: an index leads there, and none leads to a time."""
_PARTS = Statement(f"""
SELECT e.kind, e.session, e.actor_name, e.created_at, e.data FROM events e
WHERE e.project_id = :project AND e.kind IN ('{PART_BEGAN}', '{PART_ENDED}') AND e.created_at >= :since
  AND e.id > (SELECT coalesce(max(id), 0) FROM events WHERE project_id = :project) - {_MOST_EVENTS}
ORDER BY e.id
""")  # noqa: S608  (the words are our own)
_IN_TIME = "t.project_id = :project AND (s.status <> 'ended' OR s.ended_at >= :since)"
_OF_PROJECT = "FROM sessions s JOIN tasks t ON t.id = s.task_id JOIN agents a ON a.id = s.agent_id"
_SPANS = Statement(f"""
SELECT s.run, t.number, t.title, a.name, s.purpose, s.status, s.executor, s.host, s.outcome, s.started_at,
  s.heartbeat_at, s.ended_at, s.part, s.workflow, s.cost
{_OF_PROJECT} WHERE {_IN_TIME} ORDER BY s.id DESC LIMIT :most
""")
_SPAN_COUNT = Statement(
    f"SELECT count(*) FROM sessions s JOIN tasks t ON t.id = s.task_id WHERE {_IN_TIME}"  # noqa: S608  (see above)
)
_LANDED = Statement(
    merge_entries.COLUMNS + "WHERE e.project_id = :project AND e.status = 'merged' ORDER BY e.id DESC LIMIT :most"
)
_GATE = Statement("""
SELECT v.data, v.created_at FROM verifications v JOIN tasks t ON t.id = v.task_id
WHERE t.project_id = :project AND t.number = :number AND v.run = :run AND v.created_at >= :since
ORDER BY v.id DESC LIMIT 1
""")
_RECORDS = Statement(f"""
SELECT a.name, count(*), sum(CASE WHEN s.status = 'running' THEN 1 ELSE 0 END),
  sum(CASE WHEN s.status = 'waiting' THEN 1 ELSE 0 END), sum(CASE WHEN s.status = 'ended' THEN 1 ELSE 0 END),
  sum(CASE WHEN s.status = 'ended' AND s.outcome = 'completed' THEN 1 ELSE 0 END),
  sum(s.tokens), sum(s.cost), max(s.started_at)
{_OF_PROJECT} WHERE t.project_id = :project GROUP BY a.name
""")
_OF_AGENT = Statement(f"""
SELECT s.run, t.number, t.title, s.purpose, s.attempt, s.status, s.outcome, s.reason, s.iterations, s.tokens, s.cost,
  s.started_at, s.ended_at
{_OF_PROJECT} WHERE t.project_id = :project AND a.name = :agent ORDER BY s.id DESC LIMIT :most
""")
_DAYS = Statement("""
SELECT day, sum(cost), sum(tokens) FROM spending WHERE project_id = :project AND day >= :since GROUP BY day ORDER BY day
""")
_AGENTS = Statement("""
SELECT agent, sum(cost), sum(tokens), count(DISTINCT run), sum(CASE WHEN day = :day THEN cost ELSE 0 END),
  sum(CASE WHEN day = :day THEN tokens ELSE 0 END)
FROM spending WHERE project_id = :project GROUP BY agent ORDER BY 2 DESC, 3 DESC, agent
""")
_TASKS = Statement("""
SELECT t.number, t.title, t.status, t.budget_usd, p.cost, p.tokens, p.runs FROM tasks t JOIN (
  SELECT task_id, sum(cost) AS cost, sum(tokens) AS tokens, count(DISTINCT run) AS runs
  FROM spending WHERE project_id = :project GROUP BY task_id) p ON p.task_id = t.id
ORDER BY p.cost DESC, p.tokens DESC, t.number LIMIT :most
""")
_TASK_COUNT = Statement("SELECT count(DISTINCT task_id) FROM spending WHERE project_id = :project")


class _SegmentData(msgspec.Struct, frozen=True):
    part: int = 0
    waits_for: str = ""
    outcome: str = ""


_segment_data = reader(_SegmentData)


def part_marks(tx: Transaction, since: str) -> list[SegmentMark]:
    """When parts of sessions began and ended, oldest first."""
    found = []
    for kind, run, executor, at, data in tx.all(_PARTS, project=tx.project, since=since):
        output = _segment_data.decode(data)
        outcome = "waiting" if output.waits_for else output.outcome
        found.append(
            SegmentMark(run=run, part=output.part, began=kind == PART_BEGAN, executor=executor, at=at, outcome=outcome)
        )
    return found


def spans(tx: Transaction, since: str, most: int) -> tuple[list[SpanFacts], int]:
    """The newest sessions that have not ended before a time, and how many there are."""
    counted = tx.one(_SPAN_COUNT, project=tx.project, since=since)
    rows = tx.all(_SPANS, project=tx.project, since=since, most=most)
    return [_span(row) for row in rows], int(counted[0]) if counted else 0


def _span(row: Row) -> SpanFacts:
    run, task, title, agent, purpose, status, executor, host, outcome, started, beat, ended, part, workflow, cost = row
    return SpanFacts(
        run=run,
        task=task,
        title=title,
        agent=agent,
        purpose=Purpose(purpose),
        status=status,
        executor=executor,
        host=host,
        outcome=outcome or "",
        started_at=started,
        heartbeat_at=beat,
        ended_at=ended or "",
        part=part,
        in_parts=bool(workflow),
        cost_usd=float(cost or 0),
    )


def landed(tx: Transaction, most: int) -> list[MergeEntry]:
    """What landed last, the newest first."""
    return [merge_entries.entry_of(row) for row in tx.all(_LANDED, project=tx.project, most=most)]


def gate(tx: Transaction, entry: MergeEntry) -> tuple[str, str] | None:
    """What was verified of an entry since it was queued, as it was written, and when."""
    row = tx.one(_GATE, project=tx.project, number=entry.task, run=entry.run, since=entry.enqueued_at)
    return (str(row[0]), str(row[1])) if row else None


def records(tx: Transaction) -> dict[str, AgentRecord]:
    """By agent: what its sessions came to."""
    return {
        str(name): AgentRecord(
            sessions=int(count),
            running=int(running),
            waiting=int(waiting),
            ended=int(ended),
            completed=int(completed),
            success=int(completed) / int(ended) if ended else None,
            tokens=int(tokens or 0),
            cost_usd=float(cost or 0),
            last_at=last or "",
        )
        for name, count, running, waiting, ended, completed, tokens, cost, last in tx.all(_RECORDS, project=tx.project)
    }


def sessions_of(tx: Transaction, agent: str, most: int) -> tuple[AgentSession, ...]:
    """The newest sessions of an agent."""
    rows = tx.all(_OF_AGENT, project=tx.project, agent=seen(agent), most=most)
    return tuple(
        AgentSession(
            run=run,
            task=task,
            title=title,
            purpose=purpose,
            attempt=attempt,
            status=status,
            outcome=outcome or "",
            reason=reason or "",
            iterations=iterations,
            tokens=tokens,
            cost_usd=float(cost or 0),
            started_at=began,
            ended_at=ended or "",
        )
        for run, task, title, purpose, attempt, status, outcome, reason, iterations, tokens, cost, began, ended in rows
    )


def days(tx: Transaction, since: str) -> dict[str, Cost]:
    """By day that cost something: what it cost."""
    return {str(day): _spent(cost, tokens) for day, cost, tokens in tx.all(_DAYS, project=tx.project, since=since)}


def agents_spent(tx: Transaction, day: str) -> tuple[AgentSpent, ...]:
    return tuple(
        AgentSpent(agent=agent, runs=int(runs), total=_spent(cost, tokens), today=_spent(cost_today, tokens_today))
        for agent, cost, tokens, runs, cost_today, tokens_today in tx.all(_AGENTS, project=tx.project, day=day)
    )


def tasks_spent(tx: Transaction, most: int) -> tuple[tuple[TaskSpent, ...], int]:
    """The tasks that cost most, and how many cost something."""
    counted = tx.one(_TASK_COUNT, project=tx.project)
    found = tuple(
        TaskSpent(
            task=number,
            title=title,
            status=TaskStatus(status),
            limit_usd=limit,
            runs=int(runs),
            spent=_spent(cost, tokens),
        )
        for number, title, status, limit, cost, tokens, runs in tx.all(_TASKS, project=tx.project, most=most)
    )
    return found, int(counted[0]) if counted else 0


def _spent(cost: float | None, tokens: int | None) -> Cost:
    return Cost(cost_usd=float(cost or 0), tokens=int(tokens or 0))
