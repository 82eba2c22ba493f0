"""What the pull request of each task is held to. It is written down before the pull request is opened."""

import msgspec

from genba.blackboard.database.sanitize import now
from genba.blackboard.database.store import Statement, Transaction
from genba.domain.decoding import reader
from genba.domain.tracker.remote import Terms

_PREFIX = "terms:"
_KEEP = Statement(
    "INSERT INTO tracker_state (project_id, name, value, updated_at) VALUES (:project, :name, :value, :now)"
    " ON CONFLICT (project_id, name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at"
)
_FIND = Statement("SELECT value FROM tracker_state WHERE project_id = :project AND name = :name")
_ALL = Statement(
    "SELECT value FROM tracker_state WHERE project_id = :project AND name >= 'terms:' AND name < 'terms;' ORDER BY name"
)
_OVER = Statement("""
SELECT coalesce(max(number), 0) FROM pull_requests WHERE project_id = :project AND branch = :branch AND state <> 'open'
""")
_FORGET = Statement("DELETE FROM tracker_state WHERE project_id = :project AND name = :name")


def keep(tx: Transaction, terms: Terms) -> None:
    """Write them down; those of an earlier session of the same task give way.

    Feedback on the earlier commit ends when another commit is proposed.
    """
    before = find(tx, terms.task)
    if before is not None and before.commit == terms.commit:
        after = before.after
    else:
        row = tx.one(_OVER, project=tx.project, branch=terms.branch)
        after = int(row[0]) if row else 0
    output = msgspec.json.encode(msgspec.structs.replace(terms, after=after)).decode()
    tx.do(_KEEP, project=tx.project, name=f"{_PREFIX}{terms.task}", value=output, now=now())
    if before is None or before.commit != terms.commit:
        tx.do(_FORGET, project=tx.project, name=f"findings:{terms.task}")


def find(tx: Transaction, task: int) -> Terms | None:
    found = tx.one(_FIND, project=tx.project, name=f"{_PREFIX}{task}")
    return reader(Terms).decode(found[0]) if found is not None else None


def every(tx: Transaction) -> tuple[Terms, ...]:
    """Those of all tasks whose pull request is followed."""
    return tuple(reader(Terms).decode(row[0]) for row in tx.all(_ALL, project=tx.project))


def forget(tx: Transaction, task: int) -> None:
    tx.do(_FORGET, project=tx.project, name=f"{_PREFIX}{task}")
