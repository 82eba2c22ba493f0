"""Notifications about decisions that wait for a person.

A notification is stored before it is sent, and its sender holds a lease. What was being sent when its
sender died is sent again, with the same key: it may come twice, and it is never lost. What was decided meanwhile is
not sent any more. A clock that is set back delays no notification for ever.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from genba.blackboard.database.sanitize import bounded
from genba.blackboard.database.store import Row, Statement, Store, Transaction
from genba.domain.fleet.notifications import Notification, NotificationEntry, NotificationStatus
from genba.domain.fleet.progress import command_for
from genba.domain.fleet.records import EscalationKind
from genba.domain.timestamps import format_time

LEASE_SECONDS = 60.0
LONGEST_WAIT = timedelta(hours=1)
"""The longest wait for the next attempt: a longer one was written by another clock."""
_SKEW = timedelta(seconds=5)
_LONGEST_ERROR = 300

Lives = Callable[[str], bool | None]
"""Whether the owner of a lease is alive; None where this host cannot tell."""

_COLUMNS = """
SELECT n.id, n.channel, n.status, n.attempts, n.not_before, n.error, n.created_at, n.sent_at, n.reminder, n.owner,
  n.until, e.id, e.kind, e.question, e.run, e.created_at, t.number, t.title, p.name, p.id
FROM notices n JOIN escalations e ON e.id = n.escalation_id JOIN tasks t ON t.id = e.task_id
  JOIN projects p ON p.id = n.project_id
"""
_OPEN = Statement("""
SELECT e.id, e.kind FROM escalations e WHERE e.project_id = :project AND e.status = 'open'
""")
_NEWEST = Statement("""
SELECT n.escalation_id, n.channel, n.reminder, n.status, n.created_at, n.sent_at
FROM notices n JOIN escalations e ON e.id = n.escalation_id
WHERE n.project_id = :project AND e.status = 'open'
""")
_TO_SEND = Statement("""
SELECT n.channel, n.status, n.not_before, n.owner, n.until, e.status
FROM notices n JOIN escalations e ON e.id = n.escalation_id
WHERE n.project_id = :project AND n.status IN ('pending', 'sending') ORDER BY n.id LIMIT 500
""")
_INSERT = Statement("""
INSERT INTO notices (project_id, escalation_id, channel, reminder, created_at)
VALUES (:project, :escalation, :channel, :reminder, :at) ON CONFLICT (escalation_id, channel, reminder) DO NOTHING
""")
_WITHDRAW = Statement("""
UPDATE notices SET status = 'withdrawn', owner = '', until = ''
WHERE project_id = :project AND status = 'pending'
  AND escalation_id IN (SELECT id FROM escalations WHERE project_id = :project AND status <> 'open')
""")
_PENDING = (
    _COLUMNS
    + """
WHERE n.project_id = :project AND n.channel = :channel AND n.status = 'pending' AND e.status = 'open'
  AND (n.not_before <= :at OR n.not_before > :far) ORDER BY n.id LIMIT 1
"""
)
_UNDER_WAY = (
    _COLUMNS
    + """
WHERE n.project_id = :project AND n.channel = :channel AND n.status = 'sending' ORDER BY n.id LIMIT 20
"""
)
_ALONE = "FOR UPDATE OF n SKIP LOCKED"
_CLAIM_PENDING = Statement(_PENDING, _PENDING + _ALONE)
_CLAIM_UNDER_WAY = Statement(_UNDER_WAY, _UNDER_WAY + _ALONE)
_TAKE = Statement("""
UPDATE notices SET status = 'sending', attempts = attempts + 1, owner = :owner, until = :until, not_before = ''
WHERE id = :id
""")
_END = Statement("""
UPDATE notices SET status = :status, error = :error, not_before = :until, owner = '', until = '',
  sent_at = CASE WHEN :status = 'sent' THEN :at ELSE sent_at END
WHERE id = :id AND status = 'sending' AND owner = :owner
""")
_HOLD_BACK = Statement("""
UPDATE notices SET not_before = :until
WHERE project_id = :project AND channel = :channel AND status = 'pending' AND not_before < :until
""")
_NEWEST_FIRST = Statement(_COLUMNS + "WHERE n.project_id = :project ORDER BY n.id DESC LIMIT :most")
_FAILED = Statement("SELECT count(*) FROM notices WHERE project_id = :project AND status = 'failed'")
_RETRY = Statement("""
UPDATE notices SET status = 'pending', attempts = 0, not_before = '', error = ''
WHERE project_id = :project AND status = 'failed'
""")
_AT_ONCE = Statement("UPDATE notices SET not_before = '' WHERE project_id = :project AND status = 'pending'")
_SERVER_TIME = Statement("SELECT clock_timestamp()")


class NotificationBoard:
    """Notifications to send and sent ones. Every call is one transaction, and any thread may call."""

    def __init__(self, store: Store, clock: Callable[[], datetime] | None = None) -> None:
        self.store = store
        self._clock = clock

    def due(
        self,
        channels: Sequence[str],
        kinds: Sequence[str],
        reminder_hours: float = 0,
        lives: Lives = lambda _owner: None,
    ) -> bool:
        """Whether there is something to write down or to send now. Only looks."""

        def look(tx: Transaction) -> bool:
            at = self._at(tx)
            return any(_is_due(row, at, channels, lives) for row in tx.all(_TO_SEND, project=tx.project)) or bool(
                self._missing(tx, channels, kinds, reminder_hours)
            )

        return self.store.read(look)

    def record(self, channels: Sequence[str], kinds: Sequence[str], reminder_hours: float = 0) -> int:
        """Store what these channels have to send, and withdraw what was decided. Returns how many are new."""

        def work(tx: Transaction) -> int:
            tx.do(_WITHDRAW, project=tx.project)
            at = format_time(self._at(tx))
            missing = self._missing(tx, channels, kinds, reminder_hours)
            for escalation, channel, reminder in missing:
                tx.do(_INSERT, project=tx.project, escalation=escalation, channel=channel, reminder=reminder, at=at)
            return len(missing)

        return self.store.write(work)

    def claim(self, owner: str, channel: str, lives: Lives = lambda _owner: None) -> NotificationEntry | None:
        """The next one to send on a channel, with the lease to do it; None where there is none now."""

        def work(tx: Transaction) -> NotificationEntry | None:
            at = self._at(tx)
            values = {"project": tx.project, "channel": channel}
            left = [row for row in tx.all(_CLAIM_UNDER_WAY, **values) if _is_left(row[9], row[10], at, lives)]
            row = left[0] if left else None
            if row is None:
                row = tx.one(_CLAIM_PENDING, **values, at=format_time(at), far=format_time(at + LONGEST_WAIT + _SKEW))
            if row is None:
                return None
            until = format_time(at + timedelta(seconds=LEASE_SECONDS))
            tx.do(_TAKE, id=row[0], owner=owner, until=until)
            return _entry(row, NotificationStatus.SENDING, attempts=row[3] + 1)

        return self.store.write(work)

    def sent(self, owner: str, entry: NotificationEntry) -> None:
        self._end(owner, entry, NotificationStatus.SENT, "", 0)

    def fail(self, owner: str, entry: NotificationEntry, error: str) -> None:
        """Give it up."""
        self._end(owner, entry, NotificationStatus.FAILED, error, 0)

    def postpone(self, owner: str, entry: NotificationEntry, error: str, seconds: float, everyone: float = 0) -> None:
        """Try it again after so many seconds, and nothing else on its channel before so many."""
        self._end(owner, entry, NotificationStatus.PENDING, error, seconds, everyone)

    def newest(self, most: int = 50) -> tuple[NotificationEntry, ...]:
        """The newest notices first."""
        rows = self.store.read(lambda tx: tx.all(_NEWEST_FIRST, project=tx.project, most=most))
        return tuple(_entry(row, NotificationStatus(row[2]), row[3]) for row in rows)

    def retry(self) -> int:
        """Try again what was given up, and at once what waits for its next attempt; how many had been given up."""

        def work(tx: Transaction) -> int:
            row = tx.one(_FAILED, project=tx.project)
            tx.do(_RETRY, project=tx.project)
            tx.do(_AT_ONCE, project=tx.project)
            return int(row[0]) if row else 0

        return self.store.write(work)

    def _missing(
        self, tx: Transaction, channels: Sequence[str], kinds: Sequence[str], reminder_hours: float
    ) -> list[tuple[int, str, int]]:
        """Open escalations that a channel has not sent: the escalation, the channel and the reminder."""
        opened = [row[0] for row in tx.all(_OPEN, project=tx.project) if row[1] in kinds]
        if not opened:
            return []
        newest: dict[tuple[int, str], Row] = {}
        for row in sorted(tx.all(_NEWEST, project=tx.project), key=lambda row: row[2]):
            newest[row[0], row[1]] = row
        again = format_time(self._at(tx) - timedelta(hours=reminder_hours)) if reminder_hours else ""
        found = []
        for escalation in opened:
            for channel in channels:
                last = newest.get((escalation, channel))
                if last is None:
                    found.append((escalation, channel, 0))
                elif last[3] in ("sent", "failed") and (last[5] or last[4]) <= again:
                    found.append((escalation, channel, last[2] + 1))
        return found

    def _end(
        self,
        owner: str,
        entry: NotificationEntry,
        status: NotificationStatus,
        error: str,
        seconds: float,
        everyone: float = 0,
    ) -> None:
        def work(tx: Transaction) -> None:
            at = self._at(tx)
            if everyone:
                until = format_time(at + min(timedelta(seconds=everyone), LONGEST_WAIT))
                tx.do(_HOLD_BACK, project=tx.project, channel=entry.channel, until=until)
            later = format_time(at + min(timedelta(seconds=seconds), LONGEST_WAIT)) if seconds else ""
            tx.do(
                _END,
                id=entry.id,
                owner=owner,
                status=str(status),
                error=bounded(error, _LONGEST_ERROR),
                until=later,
                at=format_time(at),
            )

        self.store.write(work)

    def _at(self, tx: Transaction) -> datetime:
        """The time, by one clock for everybody: that of the server, where there is one."""
        if self._clock is not None:
            return self._clock()
        row = tx.one(_SERVER_TIME) if tx.on_postgres else None
        found: datetime = row[0].astimezone(UTC) if row is not None else datetime.now(UTC)
        return found


def _is_due(row: Row, at: datetime, channels: Sequence[str], lives: Lives) -> bool:
    """Whether one that was written down can be sent now on one of these channels, or need not be sent any more."""
    channel, status, not_before, owner, until, asked = (str(value) for value in row)
    if channel not in channels:
        return False
    if status == NotificationStatus.SENDING:
        return _is_left(owner, until, at, lives)
    waits = format_time(at) < not_before <= format_time(at + LONGEST_WAIT + _SKEW)
    return asked != "open" or not waits


def _is_left(owner: str, until: str, at: datetime, lives: Lives) -> bool:
    """True when its lease has run out or its sender is dead."""
    too_late = format_time(at + timedelta(seconds=LEASE_SECONDS) + _SKEW)
    return until <= format_time(at) or until > too_late or lives(owner) is False


def _entry(row: Row, status: NotificationStatus, attempts: int) -> NotificationEntry:
    kind, reminder = EscalationKind(row[12]), int(row[8])
    return NotificationEntry(
        id=row[0],
        channel=row[1],
        status=status,
        attempts=attempts,
        not_before=row[4],
        error=row[5],
        created_at=row[6],
        sent_at=row[7],
        notice=Notification(
            key=f"{row[19]}-escalation-{row[11]}" + (f"-reminder-{reminder}" if reminder else ""),
            kind=kind,
            project=row[18],
            task=row[16],
            title=row[17],
            question=row[13],
            command=command_for(kind, row[16]),
            run=row[14],
            since=row[15],
            reminder=reminder,
        ),
    )
