"""The decisions of an egress port, each reported once and counted always."""

from genba.domain.sessions.egress import EgressEvent, EgressListener, Verdict

_MOST_EVENTS = 500
"""Decisions that one egress port reports. A hostile instance can ask for as many hosts as it likes."""
_LONGEST_TARGET = 300


class AccessLog:
    """Tells each decision of an egress port once, and counts how often it was taken."""

    def __init__(self, port: str, on_event: EgressListener) -> None:
        self.port = port
        self.counts: dict[EgressEvent, int] = {}
        self._on_event = on_event

    def record(self, verdict: Verdict, target: str, detail: str = "") -> None:
        event = EgressEvent(port=self.port, verdict=verdict, target=_printable(target), detail=detail)
        if event not in self.counts and len(self.counts) >= _MOST_EVENTS:
            event = EgressEvent(port=self.port, verdict=verdict, target="", detail="more than can be listed one by one")
        first = event not in self.counts
        self.counts[event] = self.counts.get(event, 0) + 1
        if first:
            self._on_event(event)


def _printable(target: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in target[:_LONGEST_TARGET])
