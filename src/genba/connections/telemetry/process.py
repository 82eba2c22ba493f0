"""Telemetry of this process: opened when the first run wants it, closed when the process ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from genba.domain.errors import ConfigurationError, GenbaError
from genba.domain.problems import Problem

if TYPE_CHECKING:
    from genba.connections.telemetry.runs import RunTelemetry
    from genba.connections.telemetry.sending import Telemetry
    from genba.domain.events import Event
    from genba.domain.fleet.progress import FleetEvent, FleetView

_INSTALL = "pip install 'genba[telemetry]'"


class _Process:
    """What this process has opened."""

    def __init__(self) -> None:
        self.telemetry: Telemetry | None = None
        self.runs: dict[str, RunTelemetry] = {}


_HERE = _Process()


def session_listener(run: str, content: bool, source: str) -> Callable[[Event], None]:
    """Makes spans of the events of a session. Raises ConfigurationError where the packages are not installed."""
    telemetry = _opened(source)
    from genba.connections.telemetry.runs import RunTelemetry  # noqa: PLC0415  (off by default)

    left = _HERE.runs.pop(run, None)
    if left is not None:
        left.end()
    _HERE.runs = {known: other for known, other in _HERE.runs.items() if other.is_open}
    _HERE.runs[run] = recorder = RunTelemetry(telemetry, run, content)
    return recorder


def with_fleet_telemetry(
    source: str, listener: Callable[[FleetEvent], None], picture: Callable[[], FleetView]
) -> Callable[[FleetEvent], None]:
    """A listener that measures events before it passes them on."""
    telemetry = _opened(source)
    from genba.connections.telemetry.fleet import FleetTelemetry  # noqa: PLC0415  (off by default)

    measured = FleetTelemetry(telemetry, picture)

    def both(event: FleetEvent) -> None:
        measured(event)
        listener(event)

    return both


def close() -> str:
    """Send what is left, for a few seconds at most; what went wrong, in a sentence."""
    if _HERE.telemetry is None:
        return ""
    for run in _HERE.runs.values():
        run.end()
    result, _HERE.telemetry = _HERE.telemetry.close(), None
    _HERE.runs.clear()
    return f"telemetry was not sent, or not all of it: {result}" if result else ""


def check(environment: Mapping[str, str]) -> tuple[str, str, str]:
    """Where telemetry goes, or why it goes nowhere, and what helps. Nothing is sent."""
    try:
        from genba.connections.telemetry.sending import collector, open_telemetry  # noqa: PLC0415  (off by default)
    except ImportError:
        return "", "the packages for it are not installed", _INSTALL
    try:
        open_telemetry({**environment, "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}).close()
    except GenbaError as error:
        return "", error.message, error.hint
    return f"to {collector(environment)}", "", ""


def _opened(source: str) -> Telemetry:
    if _HERE.telemetry is None:
        try:
            from genba.connections.telemetry.sending import open_telemetry  # noqa: PLC0415  (off by default)
        except ImportError as error:
            message = "the packages for it are not installed"
            problem = Problem(source, "telemetry.enabled", message, _INSTALL)
            raise ConfigurationError((problem,), hint=_INSTALL) from error
        _HERE.telemetry = open_telemetry(os.environ)
    return _HERE.telemetry
