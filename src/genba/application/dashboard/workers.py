"""What the page of the workers looks at: executors, what each runs now, memory, and who did what when."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from genba.application.sessions.host import host_name
from genba.blackboard.views import fleet_views
from genba.coordination.engine.worker_liveness import absent
from genba.domain.timestamps import format_time, parse_time
from genba.domain.views.workers import (
    BusyView,
    ExecutorView,
    Memory,
    MemoryUse,
    Timeline,
    WorkerListView,
)
from genba.judgement.views.timeline import lanes, stretches

if TYPE_CHECKING:
    from genba.application.dashboard.queries import DashboardQueries
    from genba.domain.fleet.records import Executor, FleetSession, FleetSnapshot
    from genba.judgement.views.status_reasons import TaskStatusReason

REACHES = {"1h": timedelta(hours=1), "24h": timedelta(hours=24), "7d": timedelta(days=7)}
"""How far back a timeline may reach."""
MOST_SPANS = 1500
_MOST_GONE = 6
"""So many executors that have left are named; a fleet of months leaves many behind."""
_STEPS = 720
"""A timeline moves on by so many steps over its reach: who looks twice at the same moment sees the same."""
_MOMENT_SECONDS = 2.0


class WorkersView:
    """Looks at the workers of one project. Any thread may ask."""

    def __init__(self, queries: DashboardQueries) -> None:
        self.queries = queries
        self.host = host_name()
        self._lock = threading.Lock()
        self._used: tuple[float, tuple[frozenset[int], frozenset[str]], MemoryUse] | None = None

    def picture(self, reach: str = "24h", by: str = "worker") -> WorkerListView:
        standing = self.queries.standing()
        field = standing.field
        gone = absent(self.queries.fleet) if field.executors else frozenset()
        running = [session for session in field.sessions if session.status == "running"]
        here = frozenset(each.process for each in field.executors if self._is_here(each, gone))
        runs = frozenset(each.run for each in running if each.host == self.host and standing.runs(each))
        memory = self._memory(here, runs)
        executors = self._executors(field, gone, running, memory)
        live = [each for each in executors if each.status == "live"]
        return WorkerListView(
            executors=executors,
            busy=tuple(_busy(each, standing, memory) for each in running),
            waiting=sum(each.status == "waiting" for each in field.sessions),
            slots=sum(each.slots for each in live),
            used=sum(each.used for each in live),
            memory=Memory(host=self.host, total_mb=memory.total_mb, free_mb=memory.free_mb),
            timeline=self.timeline(reach, by, gone),
        )

    def timeline(self, reach: str, by: str, gone: frozenset[str] = frozenset()) -> Timeline:
        """Who did what when, over the last hour, day or week."""
        size = REACHES.get(reach, REACHES["24h"])
        step = size.total_seconds() / _STEPS
        until = datetime.fromtimestamp((time.time() // step + 1) * step, UTC)
        since = format_time(until - size)
        (spans, total), marks = self.queries.fleet.store.read(
            lambda tx: (fleet_views.spans(tx, since, MOST_SPANS), fleet_views.part_marks(tx, since))
        )
        by = by if by == "agent" else "worker"
        found = lanes(stretches(spans, marks, since, gone), by, format_time(until))
        left_out = max(0, total - len(spans))
        return Timeline(since=since, until=format_time(until), by=by, lanes=found, total=total, left_out=left_out)

    def _is_here(self, executor: Executor, gone: frozenset[str]) -> bool:
        return executor.host == self.host and executor.id not in gone

    def _executors(
        self, field: FleetSnapshot, gone: frozenset[str], running: list[FleetSession], memory: MemoryUse
    ) -> tuple[ExecutorView, ...]:
        found = []
        for each in field.executors:
            lives = each.id not in gone
            found.append(
                ExecutorView(
                    id=each.id,
                    host=each.host,
                    process=each.process,
                    status=each.status if lives or each.status != "live" else "absent",
                    slots=each.workers,
                    used=sum(session.executor == each.id for session in running) if lives else 0,
                    here=each.host == self.host,
                    memory_mb=memory.by_process.get(each.process) if self._is_here(each, gone) else None,
                    started_at=each.started_at,
                    heartbeat_at=each.heartbeat_at,
                )
            )
        live = [each for each in found if each.status in ("live", "absent")]
        left = [each for each in found if each.status not in ("live", "absent")]
        left.sort(key=lambda each: each.heartbeat_at, reverse=True)
        return (*live, *left[:_MOST_GONE])

    def _memory(self, processes: frozenset[int], runs: frozenset[str]) -> MemoryUse:
        """One look at the processes of this host serves all who ask within a moment."""
        with self._lock:
            now, asked = time.monotonic(), (processes, runs)
            if self._used is None or self._used[1] != asked or now - self._used[0] > _MOMENT_SECONDS:
                self._used = (now, asked, self.queries.context.ports.memory(processes, runs))
            return self._used[2]


def _busy(session: FleetSession, standing: TaskStatusReason, memory: MemoryUse) -> BusyView:
    task = standing.field.tasks.get(session.task)
    lives = standing.runs(session)
    began, now = parse_time(session.started_at), parse_time(standing.field.now)
    seconds = max(0.0, (now - began).total_seconds()) if began is not None and now is not None else 0.0
    return BusyView(
        run=session.run,
        task=session.task,
        title=task.title if task is not None else "",
        agent=session.agent,
        executor=session.executor,
        host=session.host,
        purpose=session.purpose,
        status="running" if lives else "suspended",
        phase=session.phase,
        step=session.step,
        iteration=session.iterations,
        seconds=seconds,
        tokens=session.tokens,
        cost_usd=session.cost_usd,
        memory_mb=memory.by_mark.get(session.run) if lives else None,
        heartbeat_at=session.heartbeat_at,
    )
