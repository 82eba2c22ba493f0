"""What an adapter reports of tools and in sentences: as much as a person reads, and a count of the rest."""

from collections import Counter

from genba.domain.processes import OutputListener

_MOST_TOOLS, _MOST_NOTICES = 2000, 100
_MOST = {"tool": _MOST_TOOLS, "notice": _MOST_NOTICES}
MOST_CALLS = 20_000
"""Calls of tools that are known by their ids. Of later ones only the names are."""
MOST_NAMES = 1000


class Marks:
    """Hands on the reports of one question. Output is bounded where it is read."""

    def __init__(self, on_output: OutputListener) -> None:
        self.on_output = on_output
        self._seen: Counter[str] = Counter()

    def __call__(self, stream: str, text: str) -> None:
        most = _MOST.get(stream)
        if most is not None:
            self._seen[stream] += 1
            if self._seen[stream] > most:
                return
        self.on_output(stream, text)

    def finish(self) -> None:
        """Report how many were left out."""
        for stream, most in _MOST.items():
            if (more := self._seen[stream] - most) > 0:
                what = "uses of tools" if stream == "tool" else "notices of the agent"
                self.on_output("notice", f"{more:,} more {what} left out")


def remember(calls: dict[str, str], call: str, name: str) -> None:
    """Note a call of a tool; from many calls on only that the tool was used."""
    if call in calls or len(calls) < MOST_CALLS:
        calls[call] = name
    elif len(calls) < MOST_CALLS + MOST_NAMES:
        calls[f"tool {name}"] = name
