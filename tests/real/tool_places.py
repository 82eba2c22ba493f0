"""A working tree, a private HOME and a scenario for one command-line tool: what a test of an adapter stands in."""

import os
from pathlib import Path
from typing import Any

import msgspec

from genba.connections.agents.command_line import CommandLineAdapter
from genba.connections.process.supervisor import ProcessSupervisor
from genba.domain.ports import AgentInstance, Processes
from genba.domain.replies import AgentSession, Ask, Reply
from genba.testing.conformance import an_ask
from genba.testing.model_server import ModelServer, Request, Turn

KEY = "sk-not-a-real-key"


class ToolPlace:
    """Where one instance of a tool lives, with a model that follows a script."""

    def __init__(
        self, kind: type[CommandLineAdapter], tool: Path, model: ModelServer, folder: Path, **settings: Any
    ) -> None:
        self.kind, self.tool, self.model, self.folder = kind, tool, model, folder
        self.name = folder.name
        self.tree = folder / "tree"
        self.tree.mkdir()
        self.heard: list[tuple[str, str]] = []
        self.settings: dict[str, Any] = {"command": str(tool), **settings}
        self.walled = False
        self.url = ""
        self.processes: Processes = ProcessSupervisor()
        self._adapter: CommandLineAdapter | None = None
        self._instance: AgentInstance | None = None

    def follows(self, *turns: Turn) -> None:
        """Script the model. `{tree}` in a turn is the working tree."""
        text = msgspec.json.encode(turns).decode().replace("{tree}", str(self.tree))
        self.url = self.model.scenario(self.name, *msgspec.json.decode(text, type=tuple[Turn, ...])) + "/v1"

    @property
    def session(self) -> AgentSession:
        return AgentSession(
            run=f"run-{self.name}",
            agent="tester",
            workdir=str(self.tree),
            folder=str(self.folder / "asks"),
            environment={"PATH": os.environ["PATH"]},
            processes=self.processes,
            home=str(self.folder / "home"),
            walled=self.walled,
            model_url=self.url,
            model_key=KEY,
        )

    @property
    def adapter(self) -> CommandLineAdapter:
        if self._adapter is None:
            settings_type = self.kind.settings_type  # type: ignore[attr-defined]
            settings = msgspec.convert({"type": "tool", **self.settings}, settings_type)
            self._adapter = self.kind(settings, self.folder)
        return self._adapter

    def question(self, number: int = 1, **changes: Any) -> Ask:
        patient = {"timeout_seconds": 90.0, "idle_seconds": 90.0, **changes}
        return msgspec.structs.replace(an_ask(self.session, number), **patient)

    async def ask(self, number: int = 1, **changes: Any) -> Reply:
        if self._instance is None:
            self._instance = await self.adapter.start(self.session)
        question = self.question(number, **changes)
        return await self.adapter.execute(self._instance, question, lambda *said: self.heard.append(said))

    def told(self, kind: str) -> list[str]:
        return [line for stream, line in self.heard if stream == kind]

    def asked(self) -> list[Request]:
        return self.model.asked(self.name)
