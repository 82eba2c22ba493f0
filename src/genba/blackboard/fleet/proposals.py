"""Work that is proposed on a forge, as the field shows it."""

from collections.abc import Sequence
from typing import Any

import msgspec

from genba.blackboard.database.store import Statement, Transaction
from genba.domain.decoding import reader
from genba.domain.sessions.loop_state import Feedback
from genba.domain.tracker.remote import TrackedPullRequest

_REQUESTS = Statement("""
SELECT t.number, p.data FROM pull_requests p JOIN tasks t ON t.id = p.task_id
WHERE p.project_id = :project AND p.state = 'open' ORDER BY p.number
""")
_FINDINGS = Statement("""
SELECT name, value FROM tracker_state WHERE project_id = :project AND name >= 'findings:' AND name < 'findings;'
""")
_request = reader(TrackedPullRequest)
_gaps = reader(list[Feedback])


def of_field(tx: Transaction, waiting: Sequence[int]) -> dict[str, Any]:
    """The open pull requests of these tasks, and the feedback on their work."""
    wanted = frozenset(waiting)
    seen = {number: _request.decode(data) for number, data in tx.all(_REQUESTS, project=tx.project) if number in wanted}
    found: dict[int, Feedback] = {}
    for name, value in tx.all(_FINDINGS, project=tx.project):
        number = int(name.partition(":")[2])
        gap = one_of(_gaps.decode(value)) if number in wanted else None
        if gap is not None:
            found[number] = gap
    return {"proposals": seen, "findings": found}


def one_of(findings: Sequence[Feedback]) -> Feedback | None:
    """All feedback on the work of a task as one."""
    if len(findings) <= 1:
        return findings[0] if findings else None
    detail = "\n".join(dict.fromkeys(found.detail for found in findings))
    output = "\n\n".join(found.output for found in findings if found.output)
    return msgspec.structs.replace(findings[-1], detail=detail, output=output)
