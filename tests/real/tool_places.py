"""A working tree, a private HOME and a scenario for one command-line tool: what a test of an adapter stands in."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from genba.connections.agents.command_line import CommandLineAdapter
from genba.connections.egress.port_forward import Forward
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.connections.sandbox.bubblewrap.bubblewrap import BubblewrapSandbox
from genba.connections.sandbox.system_folders import toolchain_folders
from genba.domain.ports import AgentInstance, Processes
from genba.domain.sessions.replies import AgentSession, Ask, Reply
from genba.domain.sessions.sandbox import EgressPort, SandboxSpec
from genba.testing.conformance import an_ask
from tests.bubblewrap import needs_bubblewrap
from tests.standins.model_server import ModelServer, Request, Run, Say, Turn

KEY = "sk-not-a-real-key"


class ToolPlace:
    """Where one instance of a tool lives, with a model that follows a script."""

    def __init__(
        self, kind: type[CommandLineAdapter], tool: Path, model: ModelServer, folder: Path, **settings: Any
    ) -> None:
        self.kind, self.tool, self.model, self.folder = kind, tool, model, folder
        self.name = f"run-{uuid4().hex}"  # a mark that no other test has: its end is the end of all that carry it
        self.tree = folder / "tree"
        self.tree.mkdir()
        self.heard: list[tuple[str, str]] = []
        self.settings: dict[str, Any] = {"command": str(tool), **settings}
        self.sandboxed = False
        self.url = ""
        self.processes: Processes = ProcessSupervisor()
        self.environment = {"PATH": os.environ["PATH"]}
        self._adapter: CommandLineAdapter | None = None
        self._instance: AgentInstance | None = None

    def follows(self, *turns: Turn) -> None:
        """Script the model. `{tree}` in a turn is the working tree."""
        text = msgspec.json.encode(turns).decode().replace("{tree}", str(self.tree))
        self.url = self.model.scenario(self.name, *msgspec.json.decode(text, type=tuple[Turn, ...])) + "/v1"

    @property
    def session(self) -> AgentSession:
        return AgentSession(
            run=self.name,
            agent="tester",
            workdir=str(self.tree),
            folder=str(self.folder / "asks"),
            environment=self.environment,
            processes=self.processes,
            home=str(self.folder / "home"),
            sandboxed=self.sandboxed,
            model_url=self.url,
            model_key=KEY,
        )

    @property
    def adapter(self) -> CommandLineAdapter:
        if self._adapter is None:
            settings_type = self.kind.settings_type
            settings = msgspec.convert({"type": "tool", **self.settings}, settings_type)
            self._adapter = self.kind(settings, self.folder)
        return self._adapter

    def question(self, number: int = 1, **changes: Any) -> Ask:
        patient = {"timeout_seconds": 180.0, "idle_seconds": 180.0, **changes}
        return msgspec.structs.replace(an_ask(self.session, number), **patient)

    async def ask(self, number: int = 1, **changes: Any) -> Reply:
        if self._instance is None:
            self._instance = await self.adapter.start(self.session)
        question = self.question(number, **changes)
        return await self.adapter.execute(self._instance, question, lambda *output: self.heard.append(output))

    @asynccontextmanager
    async def in_sandbox(self) -> AsyncIterator[None]:
        needs_bubblewrap()
        sandbox = BubblewrapSandbox(ProcessSupervisor())
        for name in ("home", "asks", "sandbox"):
            (self.folder / name).mkdir()
        session = self.session
        spec = SandboxSpec(
            run=session.run,
            folder=str(self.folder / "sandbox"),
            tree=str(self.tree),
            home=session.home,
            writable=(session.folder,),
            readable=(*self.adapter.folders(session.environment), *toolchain_folders(session.environment)),
            egress_ports=(EgressPort(name="model", port=4100, serve=Forward("127.0.0.1", self.model.port).serve),),
        )
        handle = await sandbox.open(spec)
        self.processes, self.sandboxed = handle, True
        self.url = self.url.replace(str(self.model.port), str(handle.ports["model"]))
        try:
            yield
        finally:
            await handle.close()

    async def in_mid_command(self, **changes: Any) -> tuple[AgentInstance, asyncio.Task[Reply]]:
        """A question whose answer is at a command that never ends, and that has left a child of its own session."""
        beacon = self.tree / "beacon"
        self.follows(Run(f"(setsid sleep 600 & echo x > {beacon}; sleep 600)"), Say("never"))
        instance = await self.adapter.start(self.session)
        asking = asyncio.create_task(self.adapter.execute(instance, self.question(**changes), lambda *_: None))
        async with asyncio.timeout(90):
            while not beacon.exists() and not asking.done():  # noqa: ASYNC110  (another process makes it)
                await asyncio.sleep(0.02)
        return instance, asking

    def told(self, kind: str) -> list[str]:
        return [line for stream, line in self.heard if stream == kind]

    def asked(self) -> list[Request]:
        return self.model.asked(self.name)


TOOLS_BY_STDIN = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    tools = [{"name": name, "description": name, "inputSchema": {"type": "object"}} for name in ("pick", "fell")]
    answers = {
        "initialize": lambda: {
            "protocolVersion": asked["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "orchard", "version": "1"},
        },
        "tools/list": lambda: {"tools": tools},
        "tools/call": lambda: {"content": [{"type": "text", "text": "an apple, " + " ".join(sorted(os.environ))}]},
    }
    known = asked["method"] in answers
    reply = {"result": answers[asked["method"]]()} if known else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **reply}), flush=True)
"""
"""A server of two tools, which tell the names of the variables that they see."""
