"""Liveness of a session: by the lock of its executor, or of its branch where `genba run` started it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from genba.application.sessions.host import host_name
from genba.coordination.engine.worker_liveness import SUSPENDED, absent
from genba.domain.timestamps import parse_time

if TYPE_CHECKING:
    from collections.abc import Collection

    from genba.application.project.project_context import ProjectContext
    from genba.blackboard.fleet.fleet_board import FleetBoard
    from genba.domain.fleet.records import FleetSession

_ALIVE_ELSEWHERE_SECONDS = 3600.0


def current_sessions(
    context: ProjectContext, board: FleetBoard, sessions: Iterable[FleetSession]
) -> list[FleetSession]:
    """Sessions as every screen shows them: one whose process is gone is suspended, not running."""
    recorded = list(sessions)
    gone = absent(board) if any(each.status == "running" for each in recorded) else frozenset()
    return [
        msgspec.structs.replace(each, status=SUSPENDED)
        if each.status == "running" and not is_alive(context, each, gone)
        else each
        for each in recorded
    ]


def is_alive(context: ProjectContext, session: FleetSession, gone: Collection[str]) -> bool:
    """True while its process lives. A session on another host counts as alive for an hour after its last heartbeat."""
    if session.status != "running":
        return False
    if session.executor:
        return session.executor not in gone
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
