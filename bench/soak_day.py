"""What happens on the day of a soak, and when. A plan is a pure function of how long the day is."""

import contextlib
import http.client
import json
import threading
import urllib.request
from enum import StrEnum
from http.client import HTTPException, HTTPResponse
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from bench.mcp_clients import VERSION
from bench.soak_ground import TOKEN

HOUR = 3600
EVERY = HOUR // 4
"""A task comes in each quarter of an hour that people work."""
ANSWERED_AFTER = HOUR
LIMITED_FOR = 2 * HOUR
_TRIES = 5


class Kind(StrEnum):
    """An event of the day, or an action of a person."""

    HONEST = "honest"
    CRASHING = "crashing"
    ASKING = "asking"
    LIMITED = "limited"
    ANSWER = "answer"
    GUEST = "guest"
    CLEARING = "clearing"
    """A person runs `genba gc` without a retention time."""


_NEEDS = {Kind.CRASHING: HOUR // 2, Kind.ASKING: ANSWERED_AFTER + HOUR // 4, Kind.LIMITED: LIMITED_FOR + HOUR // 4}
"""How long before a stretch of work ends it must have come, so that it ends within it."""


class Deed(NamedTuple):
    at: int
    """Seconds since the day began."""
    kind: Kind
    number: int = 0
    """The task, where it is about one."""


def stretches(hours: float) -> list[tuple[int, int]]:
    """When people work: the first third, and most of the last. In between is the night."""
    return [(0, round(hours * HOUR / 3)), (round(hours * HOUR * 2 / 3), round(hours * HOUR * 11 / 12))]


def plan(hours: float) -> list[Deed]:
    """All events of a day in their order."""
    found: list[Deed] = []
    number = 0
    for begin, end in stretches(hours):
        for at in range(begin + 60, end, EVERY):
            number += 1
            kind = _kind(number, end - at)
            found.append(Deed(at, kind, number))
            if kind is Kind.ASKING:
                found.append(Deed(at + ANSWERED_AFTER, Kind.ANSWER, number))
        found += [Deed(at, Kind.GUEST) for at in range(begin + 300, end, 2 * HOUR)]
    found.append(Deed(stretches(hours)[1][0] + 500, Kind.CLEARING))
    return sorted(found)


def _kind(number: int, left: int) -> Kind:
    if number == 6:
        wanted = Kind.LIMITED
    elif number % 8 == 3:
        wanted = Kind.ASKING
    else:
        wanted = Kind.CRASHING if number % 4 == 2 else Kind.HONEST
    return wanted if left >= _NEEDS.get(wanted, 0) else Kind.HONEST


def is_idle(hour: int, hours: float) -> bool:
    """True if no person acts in this hour: the first is 0."""
    return all(end <= hour * HOUR or (hour + 1) * HOUR <= begin for begin, end in stretches(hours))


# ── who comes and goes ───────────────────────────────────────────────────────────────────────────────────────────────


class Onlooker:
    """An open browser: it listens, and reloads its page after each change."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.drawn = 0
        self.cut_off = 0
        """How often a line broke, or a page was not answered though it was asked for again and again."""
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def leave(self) -> None:
        self._leaving.set()

    def join(self) -> None:
        self._thread.join(60)

    def _look(self) -> None:
        while not self._leaving.is_set():
            with contextlib.suppress(OSError, HTTPException):
                self._listen()
            if not self._leaving.wait(0.05):
                self.cut_off += 1

    def _listen(self) -> None:
        with self._asked("/live") as stream:
            for line in stream:
                if line.startswith(b"event: changed"):
                    with self._asked("/board") as answer:
                        answer.read()
                    self.drawn += 1

    def _asked(self, path: str) -> HTTPResponse:
        headers = {"authorization": f"Bearer {TOKEN}", "genba-live": "1"}
        request = urllib.request.Request(f"{self.address}{path}", headers=headers)
        for _ in range(_TRIES - 1):
            # Where the clock runs, a slow client has been silent for minutes: a browser asks once more, too.
            with contextlib.suppress(OSError, HTTPException):
                return self._answer(request)
        return self._answer(request)

    @staticmethod
    def _answer(request: urllib.request.Request) -> HTTPResponse:
        answer: HTTPResponse = urllib.request.urlopen(request, timeout=60)
        return answer


class Guest:
    """An external agent that connects over HTTP now and then, asks for work, and leaves."""

    def __init__(self, address: str, registered: str) -> None:
        self.place = urlsplit(address)
        words = registered.split()
        self.id = next(word for word in words if word.startswith("agt_"))
        self.passkey = next(word for word in words if word.startswith("gbk_"))

    def come(self) -> str:
        """Its next action."""
        seated = self._call("authenticate", agent_id=self.id, passkey=self.passkey)
        result = self._call("get_next_action", session_token=seated["session_token"])
        return str(result["action"])

    def _call(self, tool: str, **arguments: str) -> dict[str, Any]:
        meta = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "soak", "version": "1"},
        }
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        line = http.client.HTTPConnection(self.place.hostname or "", self.place.port, timeout=60)
        line.request(
            "POST",
            "/mcp",
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}),
            {
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": VERSION,
                "Mcp-Method": "tools/call",
                "Mcp-Name": tool,
            },
        )
        answer = line.getresponse()
        text = answer.read()
        line.close()
        if answer.status != 200:
            raise RuntimeError(f"{tool}: {answer.status} {text!r}")
        found: dict[str, Any] = json.loads(text)["result"]["structuredContent"]
        return found
