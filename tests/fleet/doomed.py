"""An agent that asks, and kills a process at one of its calls: the worker that serves it, its supervisor, or itself.

It stands beside `asker.py` in the repository of a test, in the same folders as here. `DEATH` is a JSON object: `call`
is the one at which it happens, counted from 1, and `when` is before it is made, or when it was answered (`after`), or
when it was answered and the answer did not arrive (`lost`): then it is made once more. It happens once, however many
lives there are.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.fleet.asker import PATIENCE_SECONDS, Asker


class Doomed(Asker):
    """One life."""

    def __init__(self, death: dict[str, Any], conduct: dict[str, Any], address: str, credential: str) -> None:
        super().__init__(conduct, address, credential)
        self.death = death
        self.home = Path(death["home"])
        self.calls = 0
        self.waits = False

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        if self.waits and tool == "get_next_action":  # the number of waits varies
            return self.answered(super().call(tool, **arguments))
        self.calls += 1
        with (self.home / "calls.txt").open("a", encoding="utf-8") as file:
            file.write(f"{os.environ['GENBA_RUN']} {self.calls} {tool}\n")
        self.reach("before")
        found = super().call(tool, **arguments)
        if self.reach("lost"):
            found = super().call(tool, **arguments)
        self.reach("after")
        return self.answered(found)

    def answered(self, found: dict[str, Any]) -> dict[str, Any]:
        self.waits = found.get("action") == "wait"
        return found

    def reach(self, when: str) -> bool:
        if (self.calls, when) != (self.death.get("call"), self.death.get("when")):
            return False
        try:
            (self.home / "died").touch(exist_ok=False)
        except FileExistsError:
            return False
        kill(self.victim())
        return True

    def victim(self) -> int:
        whom = self.death["whom"]
        if whom == "worker":
            result = self.home / "worker.pid"
            wait(result.exists)
            return int(result.read_text("utf-8"))
        return os.getpid() if whom == "agent" else os.getppid()


def kill(process: int) -> None:
    """Comes back when it is dead: who is being killed may still answer."""
    os.kill(process, signal.SIGKILL)
    wait(lambda: is_dead(process))


def is_dead(process: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()[0] in "ZX"
    return True


def wait(holds: Any) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            sys.exit("waited in vain")
        time.sleep(0.005)


if __name__ == "__main__":
    output = json.loads(os.environ["CONDUCT"])
    doom = json.loads(os.environ["DEATH"])
    sys.exit(Doomed(doom, output, os.environ["GENBA_MCP_URL"], os.environ["GENBA_CREDENTIAL"]).live())
