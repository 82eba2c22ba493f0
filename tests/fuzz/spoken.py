"""A real `genba mcp` process that gets any input, and must still run afterwards."""

import contextlib
import json
import queue
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.mcp.door import MODERN
from tests.preloaded import GENBA, ordinary_environment
from tests.project import Project

PATIENCE = 60.0
"""The deadline of everything that must happen. It is never waited for when it does."""
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


def call(tool: str, arguments: Any, number: Any = 1) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments, "_meta": ENVELOPE}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


class Spoken:
    """One process; what it answers is read as it comes."""

    def __init__(self, project: Project, **environment: str) -> None:
        self.log = project.root.parent / f"mcp-{time.monotonic_ns()}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [GENBA, "mcp"],
                cwd=project.root,
                env={**ordinary_environment(), **project.environment, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._asked = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with contextlib.suppress(ValueError, OSError):
            for line in self.process.stdout:
                self._answers.put(line)
        self._answers.put(None)

    def say(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def heard(self) -> dict[str, Any]:
        """The next message of the server, which is one line of JSON."""
        line = self._answers.get(timeout=PATIENCE)
        assert line is not None, f"it has ended: {self.log.read_text()}"
        values: dict[str, Any] = json.loads(line)
        assert values["jsonrpc"] == "2.0"
        return values

    def until_still(self) -> list[dict[str, Any]]:
        """Everything that it says until it answers one more question, which it always does."""
        self._asked += 1
        name = f"still there {self._asked}"
        self.say(
            json.dumps({"jsonrpc": "2.0", "id": name, "method": "tools/list", "params": {"_meta": ENVELOPE}}).encode()
        )
        found: list[dict[str, Any]] = []
        while (result := self.heard()).get("id") != name:
            found.append(result)
        return found

    def answered(self, line: bytes) -> list[dict[str, Any]]:
        self.say(line)
        return self.until_still()

    def complained(self) -> str:
        return self.log.read_text("utf-8", "replace")


@contextlib.contextmanager
def spoken(project: Project, **environment: str) -> Iterator[Spoken]:
    made = Spoken(project, **environment)
    try:
        yield made
        if made.process.stdin is not None:
            with contextlib.suppress(OSError):
                made.process.stdin.close()
        assert made.process.wait(PATIENCE) == 0, made.complained()
        assert "Traceback" not in made.complained()
        assert "error:" not in made.complained()
    finally:
        made.process.kill()
        made.process.wait()
        for each in (made.process.stdin, made.process.stdout):
            if each is not None:
                with contextlib.suppress(OSError):
                    each.close()


def board_file(project: Project) -> Path:
    return project.root / ".genba" / "genba.db"
