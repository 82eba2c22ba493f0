"""Whether a session is worked on now: by the lock of its executor, or by the lock of its branch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from genba.application.sessions.host import host_name
from genba.domain.timestamps import parse_time

if TYPE_CHECKING:
    from collections.abc import Collection

    from genba.application.project.project_context import ProjectContext
    from genba.domain.fleet.records import FleetSession

_ALIVE_ELSEWHERE_SECONDS = 3600.0


def is_alive(context: ProjectContext, session: FleetSession, absent: Collection[str]) -> bool:
    """True while a session is worked on. One of another machine counts for a while after its last heartbeat."""
    if session.status != "running":
        return False
    if session.executor:
        return session.executor not in absent
    if session.host in ("", host_name()):
        return bool(session.branch) and context.is_running(session.branch)
    return _seconds_since(session.heartbeat_at) < _ALIVE_ELSEWHERE_SECONDS


def process_lives(process: int, known_at: str) -> bool:
    """True when a process runs that ran at this time: its number may belong to another one since."""
    import psutil  # noqa: PLC0415  (slow to import)

    at = parse_time(known_at)
    try:
        found = psutil.Process(process)
        return found.status() != psutil.STATUS_ZOMBIE and (at is None or found.create_time() <= at.timestamp() + 1)
    except (psutil.Error, ValueError):
        return False


def _seconds_since(text: str) -> float:
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        return float("inf")
    return (datetime.now(UTC) - (then if then.tzinfo else then.replace(tzinfo=UTC))).total_seconds()
