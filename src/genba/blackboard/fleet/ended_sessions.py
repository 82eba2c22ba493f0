"""What the blackboard knows of the runs that may have left something behind."""

import msgspec

from genba.blackboard.database.store import Statement, Transaction
from genba.domain.sessions.session import SessionStatus
from genba.domain.tasks.task import TaskStatus

_ENDED = ", ".join(f"'{status}'" for status in TaskStatus if status.ended)
_RUNS = Statement("""
SELECT s.run, t.number, t.status, t.updated_at, s.status, coalesce(s.ended_at, ''), s.branch, s.base_branch
FROM sessions s JOIN tasks t ON t.id = s.task_id WHERE t.project_id = :project ORDER BY s.id
""")
_TASKS = Statement("SELECT number, status, updated_at FROM tasks WHERE project_id = :project")
_LOGS = Statement(f"""
SELECT DISTINCT r.log FROM goal_results r JOIN task_goals g ON g.id = r.goal_id JOIN tasks t ON t.id = g.task_id
WHERE t.project_id = :project AND r.log <> '' AND t.status NOT IN ({_ENDED})
""")  # noqa: S608  (the words are our own)


class SessionOnTask(msgspec.Struct, frozen=True, kw_only=True):
    """A run on a task, and whether both have ended."""

    run: str
    task: int
    status: TaskStatus
    ended: bool
    since: str
    """When the last of the two changed."""
    branch: str
    base_branch: str


def known_runs(tx: Transaction) -> list[SessionOnTask]:
    found = []
    for run, number, status, changed, session, ended_at, branch, base_branch in tx.all(_RUNS, project=tx.project):
        task = TaskStatus(status)
        over = task.ended and session == SessionStatus.ENDED
        found.append(
            SessionOnTask(
                run=run,
                task=number,
                status=task,
                ended=over,
                since=max(changed, ended_at),
                branch=branch,
                base_branch=base_branch,
            )
        )
    return found


def known_tasks(tx: Transaction) -> dict[int, tuple[TaskStatus, str]]:
    """By number: the status of each task, and when it was changed last."""
    rows = tx.all(_TASKS, project=tx.project)
    return {number: (TaskStatus(status), changed) for number, status, changed in rows}


def logs_in_use(tx: Transaction) -> set[str]:
    """The logs of goals that tasks name which have not ended."""
    return {row[0] for row in tx.all(_LOGS, project=tx.project)}
