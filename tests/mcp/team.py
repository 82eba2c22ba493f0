"""Outside clients of a project: each has authenticated with its id and passkey, over stdio or HTTP."""

import contextlib
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from tests import preloaded
from tests.mcp.door import error, report
from tests.preloaded import GENBA, ordinary_environment
from tests.project import Project, until

QUICK = "workflow:\n  wait_seconds: 0\n"
"""Settings under which `wait` is answered at once."""


class Member:
    """One outside client, authenticated."""

    def __init__(self, project: Project, client: Client, token: str) -> None:
        self.project = project
        self.client = client
        self.token = token

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return report(await self.client.call_tool(tool, {**arguments, "session_token": self.token}))

    async def refused(self, tool: str, **arguments: Any) -> dict[str, str]:
        return error(await self.client.call_tool(tool, {**arguments, "session_token": self.token}))

    async def next(self) -> str:
        action = await self.call("get_next_action")
        return f"exit {action['reason']}" if action["action"] == "exit" else str(action["action"])

    async def begin(self) -> dict[str, Any]:
        """Take the next task and fetch it."""
        assert await self.next() == "get_task"
        return await self.call("get_my_task")

    async def write(self, path: str, brief: dict[str, Any]) -> None:
        """Commit a file on the branch of the task."""
        tree = Path(brief["path"])
        (tree / path).write_text(f"{path}\n", encoding="utf-8")
        self.project.git("add", "-A", cwd=tree)
        self.project.git("-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "-qm", path, cwd=tree)

    async def do(self, path: str) -> dict[str, Any]:
        """Take the next task, write one file, and claim it."""
        brief = await self.begin()
        number = brief["task"]["number"]
        assert await self.next() == "create_subtasks"
        await self.call("update_task_status", task_id=number, status="in_progress", reason="atomic")
        await self.write(path, brief)
        assert (await self.call("report_completed"))["verified"]
        assert await self.next() == "exit completed"
        return brief


class Team:
    """Registers agents, and lets them in through one transport."""

    def __init__(self, project: Project, transport: str) -> None:
        self.project = project
        self.transport = transport
        self.url = ""
        self.server: subprocess.Popen[bytes] | None = None

    def register(self, name: str, *words: str) -> dict[str, str]:
        welcome = self.project.genba("agent", "register", name, *words, "--json", check=0).json
        return {"GENBA_AGENT_ID": welcome["agent"]["id"], "GENBA_PASSKEY": welcome["passkey"]}

    @contextlib.asynccontextmanager
    async def member(self, name: str, *words: str) -> AsyncIterator[Member]:
        async with self.enter(self.register(name, *words)) as member:
            yield member

    @contextlib.asynccontextmanager
    async def enter(self, keys: dict[str, str]) -> AsyncIterator[Member]:
        """A client of its own for this agent."""
        try:
            async with self._entered(keys) as member:
                yield member
        except BaseExceptionGroup as group:  # each layer of a client wraps what a test says
            raise _only(group) from None

    @contextlib.asynccontextmanager
    async def _entered(self, keys: dict[str, str]) -> AsyncIterator[Member]:
        environment = {**ordinary_environment(), **self.project.environment}
        if self.transport == "http":
            async with Client(self.serve()) as client:
                yield await self._connected(client, keys)
            return
        words = StdioServerParameters(command=str(GENBA), args=["mcp"], cwd=self.project.root, env=environment)
        async with Client(words) as client:
            yield await self._connected(client, keys)

    async def _connected(self, client: Client, keys: dict[str, str]) -> Member:
        shown = {"agent_id": keys["GENBA_AGENT_ID"], "passkey": keys["GENBA_PASSKEY"]}
        connected = report(await client.call_tool("authenticate", shown))
        return Member(self.project, client, connected["session_token"])

    def serve(self) -> str:
        """The address of one `genba mcp --http` for all; it is started when it is first needed."""
        if not self.url:
            self.server, self.url = started(self.project)
        return self.url

    def kill(self) -> None:
        assert self.server is not None
        self.server.kill()
        self.server.wait()

    def close(self) -> None:
        if self.server is not None and self.server.poll() is None:
            self.server.send_signal(signal.SIGTERM)
            self.server.wait(30)


def _only(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def started(project: Project, port: int = 0) -> tuple["subprocess.Popen[bytes]", str]:
    """`genba mcp --http` in a process of its own, and its address."""
    path = project.root.parent / "mcp.log"
    with path.open("wb") as log:
        process = preloaded.start(
            [str(GENBA), "mcp", "--http", "--port", str(port)],
            cwd=project.root,
            env={**ordinary_environment(), **project.environment},
            stdout=log.fileno(),
            stderr=log.fileno(),
        )
    until(lambda: "\n" in path.read_text("utf-8"))
    return process, path.read_text("utf-8").splitlines()[0].strip()


def rows(project: Project, query: str) -> list[tuple[Any, ...]]:
    """What the database holds."""
    with project.board() as board, board.store.engine.connect() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(query)]
