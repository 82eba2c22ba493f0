"""Sessions of agents that came by themselves, and have left without a word."""

from genba.blackboard.store import Statement, Transaction
from genba.domain.fleet import GUEST

_ABANDONED = Statement("""
SELECT s.run FROM sessions s JOIN tasks t ON t.id = s.task_id
WHERE t.project_id = :project AND s.status = 'running' AND substr(s.executor, 1, :length) = :guest
  AND NOT EXISTS (SELECT 1 FROM seats a WHERE a.run = s.run AND a.status = 'active' AND a.lease_until > :at)
  AND s.heartbeat_at < :since
ORDER BY s.id
""")

_RENEW = Statement("""
UPDATE seats SET lease_until = :lease WHERE project_id = :project AND status = 'active' AND NOT spawned
""")


def renew(tx: Transaction, lease: str) -> None:
    """Every guest who has a seat is believed to be there until this time."""
    tx.do(_RENEW, project=tx.project, lease=lease)


def abandoned(tx: Transaction, at: str, since: str) -> tuple[str, ...]:
    """The runs that nobody has a seat for at this time; who has begun since then may still be about to sit down."""
    rows = tx.all(_ABANDONED, project=tx.project, guest=GUEST, length=len(GUEST), at=at, since=since)
    return tuple(row[0] for row in rows)
