"""What happens in a fleet as metrics, and each merge of its queue as a span of the session whose work it is."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context

from genba.connections.telemetry.runs import first_part_of
from genba.connections.telemetry.sending import Telemetry
from genba.domain.fleet.progress import FleetEvent, FleetEventKind, FleetView

_CAME_OF_IT = (FleetEventKind.MERGED, FleetEventKind.CONFLICT, FleetEventKind.MERGE_FAILED)
_MOST = 10_000
"""Tasks that are remembered at one time."""


class FleetTelemetry:
    """Records the events of a fleet. Its own failures stop nothing."""

    def __init__(self, telemetry: Telemetry, picture: Callable[[], FleetView]) -> None:
        self.telemetry = telemetry
        self._runs: dict[int, str] = {}
        self._queued: dict[int, int] = {}
        telemetry.gauge("genba.merge_queue.depth", "{entry}", "Entries of the merge queue.", lambda: _queue(picture()))
        telemetry.gauge("genba.tasks", "{task}", "Tasks, by how they stand.", lambda: _tasks(picture()))
        telemetry.gauge("genba.workers", "{worker}", "Workers of this process.", lambda: _workers(picture()))

    def __call__(self, event: FleetEvent) -> None:
        try:
            self._hear(event)
        except Exception:  # noqa: BLE001  (telemetry never hurts a fleet)
            self._runs.clear()

    def _hear(self, event: FleetEvent) -> None:
        if event.kind is not FleetEventKind.STEP:
            self.telemetry.fleet_events.add(1, {"genba.fleet.event": str(event.kind)})
        if event.task is None:
            return
        if event.run:
            self._remember(self._runs, event.task, event.run)
        if event.kind is FleetEventKind.QUEUED:
            self._remember(self._queued, event.task, time.time_ns())
        elif event.kind in _CAME_OF_IT:
            self._came_of_it(event, event.task)

    def _came_of_it(self, event: FleetEvent, task: int) -> None:
        now = time.time_ns()
        about = {"genba.merge.status": str(event.kind)}
        began = self._queued.pop(task, now)
        self.telemetry.merges.add(1, about)
        self.telemetry.queue_wait.record((now - began) / 1e9, about)
        run = self._runs.get(task)
        if run is not None:
            context = trace.set_span_in_context(first_part_of(self.telemetry, run, "merge"), Context())
            attributes: dict[str, str | int] = {**about, "genba.task": task, "genba.run": run}
            self.telemetry.tracer.start_span("merge", context, attributes=attributes, start_time=began).end(now)

    def _remember(self, kept: dict[int, Any], task: int, value: object) -> None:
        kept[task] = value
        if len(kept) > _MOST:
            kept.pop(next(iter(kept)))


def _queue(picture: FleetView) -> list[tuple[int | float, dict[str, str]]]:
    counted = Counter(str(entry.status) for entry in picture.queue)
    return [(count, {"genba.entry.status": status}) for status, count in counted.items()] or [(0, {})]


def _tasks(picture: FleetView) -> list[tuple[int | float, dict[str, str]]]:
    counted = {"open": picture.open, "ready": picture.ready, "needs_you": len(picture.needs)}
    return [(count, {"genba.task.state": state}) for state, count in counted.items()]


def _workers(picture: FleetView) -> list[tuple[int | float, dict[str, str]]]:
    busy = len(picture.workers)
    return [(busy, {"genba.worker.state": "busy"}), (max(0, picture.slots - busy), {"genba.worker.state": "free"})]
