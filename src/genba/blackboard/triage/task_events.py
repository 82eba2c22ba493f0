"""The recorded history of each issue.

It only reads. The facilitator's own comments and labels are left out.
"""

from collections.abc import Iterator
from typing import Any

from genba.blackboard.database.store import Statement, Store, Transaction
from genba.blackboard.tasks.history import STATUS_CHANGED
from genba.domain.decoding import reader
from genba.domain.facilitation import Fact, FactKind, Source
from genba.domain.text_limits import cut, one_line
from genba.domain.tracker.remote import TrackedIssue

_CHANGES = Statement("""
SELECT e.id, t.number, e.actor_name, e.data, e.created_at FROM events e JOIN tasks t ON t.id = e.task_id
WHERE e.project_id = :project AND e.kind = :kind AND t.in_plan = :no AND t.review_of IS NULL ORDER BY e.id
""")
_VERDICTS = Statement("""
SELECT v.id, t.number, v."commit", v.status, v.reason, v.run, v.branch, v.created_at
FROM verifications v JOIN tasks t ON t.id = v.task_id
WHERE t.project_id = :project AND t.in_plan = :no AND t.review_of IS NULL ORDER BY v.id
""")
_COMMENTS = Statement("""
SELECT c.id, t.number, c.author, c.created_at FROM comments c JOIN tasks t ON t.id = c.task_id
WHERE t.project_id = :project AND t.in_plan = :no AND t.review_of IS NULL AND c.author <> 'facilitator'
  AND c.body NOT LIKE '%<!-- genba:%' ORDER BY c.id
""")
_TALKED = Statement("""
SELECT number, data FROM tracked_issues WHERE project_id = :project AND gone = :no AND task_id IS NULL ORDER BY number
""")
_OWN = "<!-- genba:"
"""What stands in every comment that Genba itself wrote on a tracker."""
_LONGEST = 300

_data = reader(dict[str, Any])
_issue = reader(TrackedIssue)


def history(store: Store) -> tuple[Fact, ...]:
    """Changes of status, verifications and comments, as far as they are written down here."""
    return store.read(lambda tx: (*_changes(tx), *_verdicts(tx), *_comments(tx)))


def _changes(tx: Transaction) -> Iterator[Fact]:
    for row, number, who, raw, at in tx.all(_CHANGES, project=tx.project, kind=STATUS_CHANGED, no=False):
        data = _data.decode(raw)
        why = f": {data['reason']}" if data.get("reason") else ""
        yield Fact(
            key=f"{number}:{FactKind.STATUS_CHANGED}:{row}",
            time=at,
            type=FactKind.STATUS_CHANGED,
            issue=number,
            source=Source.BLACKBOARD,
            who=who,
            detail=_short(f"{data.get('from', '')} → {data.get('to', '')}{why}"),
        )


def _verdicts(tx: Transaction) -> Iterator[Fact]:
    for row, number, commit, status, reason, run, branch, at in tx.all(_VERDICTS, project=tx.project, no=False):
        yield Fact(
            key=f"{number}:{FactKind.VERIFIED}:{row}",
            time=at,
            type=FactKind.VERIFIED,
            issue=number,
            source=Source.BLACKBOARD,
            sha=commit,
            run=run,
            branch=branch,
            detail=_short(f"{status}: {reason}" if reason else status),
        )


def _comments(tx: Transaction) -> Iterator[Fact]:
    for row, number, who, at in tx.all(_COMMENTS, project=tx.project, no=False):
        yield _comment(number, str(row), who, at, Source.BLACKBOARD)
    for number, raw in tx.all(_TALKED, project=tx.project, no=False):
        if raw != "{}":
            for each in _issue.decode(raw).comments:
                if _OWN not in each.body:
                    yield _comment(number, each.id, each.author, each.created_at, Source.TRACKER)


def _comment(number: int, name: str, who: str, at: str, source: Source) -> Fact:
    key = f"{number}:{FactKind.COMMENTED}:{name}"
    return Fact(key=key, time=at, type=FactKind.COMMENTED, issue=number, source=source, who=who)


def _short(text: str) -> str:
    return cut(one_line(text), _LONGEST)
