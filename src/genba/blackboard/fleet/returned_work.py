"""Work that came back from the merge queue, as evidence for a manager that has no worktree of its own.

Law: it is evidence until a later claim for the task was verified. A subtask that is done since then answers it.
"""

from genba.blackboard.database.store import Row, Statement, Transaction
from genba.domain.decoding import reader
from genba.domain.workflow.actions import Evidence

_NEWEST = Statement("""
SELECT e.status, e."commit", e.target, e.branch, e.paths, e.detail, e.finished_at,
  (SELECT count(*) FROM merge_entries o WHERE o.task_id = e.task_id AND o.target = e.target AND o.status = e.status)
FROM merge_entries e WHERE e.task_id = :task AND NOT EXISTS (
  SELECT 1 FROM merge_entries n WHERE n.task_id = e.task_id AND n.id > e.id)
""")
_CAME_BACK = ("conflict", "failed")
_texts = reader(tuple[str, ...])


def came_back(tx: Transaction, task: int) -> Row | None:
    """The newest entry of a task in the merge queue, where it came back; None where nothing did."""
    found = tx.one(_NEWEST, task=task)
    return found if found is not None and found[0] in _CAME_BACK else None


def evidence_of_merge(number: int, entry: Row, rounds: int) -> Evidence:
    """Why the work of a task did not land."""
    status, commit, target, branch, paths, detail, _, count = entry
    failing = _texts.decode(paths)
    summary = f"{branch} failed its goals when it was merged into {target}: {detail}"
    if status == "conflict":
        named = ", ".join(failing)
        summary = f"{branch} conflicts with {target} in {named}: merge {target} into it, and resolve the conflicts"
    return Evidence(
        task=number,
        commit=str(commit),
        verdict=str(status),
        summary=summary,
        failing=failing,
        output=str(detail) if status == "failed" else "",
        round=int(count),
        rounds=rounds,
    )
