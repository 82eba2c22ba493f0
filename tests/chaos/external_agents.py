"""External agents: `genba mcp --http`, and a program for each task that is kept for it."""

import json
import os
import socket
import subprocess
import time
from pathlib import Path

from tests import preloaded
from tests.chaos.ground import Asked, Ground, external_agent_of
from tests.chaos.plan import Part
from tests.fleet.chaos import end
from tests.preloaded import GENBA, ordinary_environment

_PYTHON = ("/usr/bin/python3", "-B", "-S", "-m", "tests.chaos.asking")
_TO_DO = "SELECT number FROM tasks WHERE number IN ({}) AND status IN ('open', 'in_progress')"
_PAUSE = 0.5


_MOST_RETURNS = 12
_ENDS = (0, 1, 5)
"""With what a server may end that cannot reach its database."""


class Guests:
    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.parts = [part for part in ground.plan.parts if external_agent_of(part)]
        self.server: subprocess.Popen[bytes] | None = None
        self.port = 0
        self._keys: dict[int, dict[str, str]] = {}
        self._here: dict[int, subprocess.Popen[bytes]] = {}
        self._again: dict[int, float] = {}
        self.returns = 0
        """How often the server has ended by itself, and was started again."""
        self.problems: list[str] = []

    def come(self) -> None:
        """Open the server, and let them in."""
        if not self.parts:
            return
        with socket.socket() as asked:
            asked.bind(("127.0.0.1", 0))
            self.port = asked.getsockname()[1]
        self.serve()
        for part in self.parts:
            self._keys[part.number] = self._registered(part)
            self._enter(part.number)

    @property
    def busy(self) -> bool:
        here = [str(number) for number, process in self._here.items() if process.poll() != 0]
        if not here:
            return False
        asked = Asked(self.ground.address or str(self.ground.file))
        try:
            return bool(asked.rows(_TO_DO.format(", ".join(here))))
        finally:
            asked.close()

    @property
    def logs(self) -> list[Path]:
        return [self.ground.home / f"external-agent-{part.number}.log" for part in self.parts]

    def look_after(self) -> None:
        """Who was killed comes again; who has left with nothing more to do stays away.

        A server that cannot reach its database when it is started ends, and is started again, as by a service manager.
        """
        if self.server is not None and self.server.poll() is not None:
            self._returned(self.server.poll())
            self.serve()
        for number, process in list(self._here.items()):
            if process.poll() in (None, 0):
                continue
            due = self._again.setdefault(number, time.monotonic() + _PAUSE)
            if time.monotonic() >= due:
                del self._again[number]
                self._enter(number)

    def _returned(self, code: int | None) -> None:
        self.returns += 1
        if code not in _ENDS:
            self.problems.append(f"genba mcp --http ended with {code}")
        if self.returns > _MOST_RETURNS:
            raise RuntimeError("genba mcp --http ends again and again")

    def kill_server(self) -> bool:
        """Kill it, and have another one in its place."""
        if self.server is None or not end(self.server.pid):
            return False
        self.server.wait()
        self.serve()
        return True

    def kill_all(self) -> None:
        for process in self._here.values():
            if process.poll() is None:
                process.kill()
        self.kill_server()

    def leave(self) -> None:
        """The end: everything that they came for is done."""
        for number, process in self._here.items():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                self.problems.append(f"the external agent of #{number} does not leave, and everything has its end")
                process.kill()
                process.wait()
        if self.server is not None:
            end(self.server.pid)
            self.server.wait()

    def serve(self) -> None:
        with (self.ground.home / "mcp.log").open("ab") as log:
            self.server = preloaded.start(
                [str(GENBA), "mcp", "--http", "--port", str(self.port)],
                cwd=self.ground.root,
                env={**ordinary_environment(), **self.ground.environment},
                stdout=log.fileno(),
                stderr=log.fileno(),
            )

    def _registered(self, part: Part) -> dict[str, str]:
        words = [str(GENBA), "agent", "register", external_agent_of(part), "--json"]
        environment = {**ordinary_environment(), **self.ground.environment}
        done = preloaded.run(words, cwd=self.ground.root, env=environment, timeout=60)
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        return {
            "GENBA_AGENT": result["agent"]["id"],
            "GENBA_CREDENTIAL": result["passkey"],
            "GENBA_MCP_URL": f"http://127.0.0.1:{self.port}/mcp",
        }

    def _enter(self, number: int) -> None:
        own = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        environment = {**own, "PYTHONPATH": str(self.ground.home / "cast"), **self._keys[number]}
        with (self.ground.home / f"external-agent-{number}.log").open("ab") as log:
            self._here[number] = subprocess.Popen(
                [*_PYTHON, str(self.ground.home), str(number)],
                cwd=self.ground.home,
                env={**environment, "HOME": str(self.ground.home)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
