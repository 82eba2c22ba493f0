"""Agents that are command-line tools with a machine-readable output: one process per question.

Each tool is a translator. `invocation` makes words, environment and stdin of a question; a `Reading` makes typed events
of the lines as they come, and a reply or an error of the end. An exit code of 0 is no success by itself.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

import msgspec

from genba.connections.agents.one_shot import OneShotAdapter, OneShotInstance, check_end
from genba.connections.agents.shared_files import read_shared, write_shared
from genba.connections.agents.tool_reports import Marks
from genba.connections.agents.tool_settings import ToolSettings, copy_home_files, servers_of, setting_problem
from genba.domain.decoding import reader
from genba.domain.errors import NotFoundError
from genba.domain.ports import AgentInstance
from genba.domain.processes import Command, Exit, LineFilter, OutputListener
from genba.domain.sessions.replies import AgentSession, Ask, Reply, Usage
from genba.domain.sessions.sandbox import McpServer, Provider


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """How a tool is started for one question."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    """On top of the environment of the session."""
    stdin: str


class Reading(Protocol):
    """Understands what one process of a tool says."""

    wanted: ClassVar[LineFilter]
    """The lines that are messages, and those that count even in a flood of them."""

    def line(self, line: bytes) -> None:
        """Take one line of stdout. Garbage is never an error; a GenbaError that is raised here ends the process."""
        ...

    def reply(self, done: Exit) -> Reply:
        """The reply; raises the error that fits when there is none. It is asked once, after the end."""
        ...


class CommandLineAdapter(OneShotAdapter):
    """What the tools have in common: found, started with a private HOME, read line by line, classified by events."""

    binary: ClassVar[str]
    uses_egress = True
    aliases: ClassVar[Mapping[str, str]] = {}
    """Names of models that mean the same to every tool, and what this one calls them."""

    def __init__(self, settings: ToolSettings, folder: Path) -> None:
        self.settings = settings
        self.folder = folder

    def provider(self, environment: Mapping[str, str]) -> Provider | None:
        """Where the model is, as the settings and the user's environment have it."""
        raise NotImplementedError

    def invocation(self, session: AgentSession, ask: Ask) -> Invocation:
        raise NotImplementedError

    def reading(self, session: AgentSession, ask: Ask, on_output: OutputListener) -> Reading:
        raise NotImplementedError

    def executable(self, environment: Mapping[str, str]) -> str | None:
        """The tool as an absolute path, found as the user's own shell would find it."""
        return found_on_path(self.settings.command or self.binary, environment)

    def folders(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Where the tool itself is, with all that it is made of."""
        path = self.executable(environment)
        if path is None:
            return ()
        real = Path(path).resolve()
        return tuple(dict.fromkeys((str(Path(path).parent), _root_of(real), path, str(real))))

    def mcp_servers(self) -> tuple[McpServer, ...]:
        return servers_of(self.settings)

    def servers(self, session: AgentSession) -> tuple[McpServer, ...]:
        """Those of the session, which may have other addresses in the sandbox, and those of the settings."""
        given = {server.name for server in session.mcp}
        return (*session.mcp, *(server for server in self.mcp_servers() if server.name not in given))

    def model(self, name: str) -> str:
        """A model as the tool calls it. What no table knows is passed on as it is."""
        return {**self.aliases, **self.settings.models}.get(name, name)

    def problem(self, environment: Mapping[str, str]) -> str:
        if self.executable(environment) is None:
            return self._missing() + f": {self.install}"
        return setting_problem(self.settings, environment)

    async def start(self, session: AgentSession) -> AgentInstance:
        if self.executable(session.environment) is None:
            raise NotFoundError(self._missing(), hint=self.install)
        copy_home_files(self.settings.home_files, session.home)
        return OneShotInstance(session)

    def _missing(self) -> str:
        return f"{self.settings.command or self.binary} is not installed"

    async def execute(self, instance: AgentInstance, ask: Ask, on_output: OutputListener) -> Reply:
        shot = OneShotInstance.of(instance)
        session = shot.session
        invocation = self.invocation(session, ask)
        marks = Marks(on_output)
        reading = self.reading(session, ask, marks)
        with shot.running():
            done = await session.processes.run(
                Command(
                    argv=invocation.argv,
                    workdir=session.workdir,
                    environment={**session.environment, **invocation.environment},
                    stdin=invocation.stdin,
                    timeout_seconds=ask.timeout_seconds,
                    idle_seconds=ask.idle_seconds,
                    output_bytes=ask.output_bytes,
                    mark=ask.run,
                    lines=reading.line,
                    wanted=reading.wanted,
                ),
                marks,
            )
        check_end(done)
        reply = reading.reply(done)
        marks.finish()
        return reply


class Totals:
    """Turns what a tool reports as the total of a session into what the last question cost. Survives a restart."""

    def __init__(self, folder: str) -> None:
        self.path = Path(folder) / "totals.json"

    def known(self, session_id: str) -> Usage | None:
        """The last total."""
        return self._read().get(session_id)

    def delta(self, session_id: str, total: Usage) -> Usage:
        """What came on top since the last time; a total that is smaller than before was counted from nothing."""
        known = self._read()
        before = known.get(session_id, Usage())
        write_shared(self.path, msgspec.json.encode({**known, session_id: total}))
        return Usage(
            _since(before.input_tokens, total.input_tokens),
            _since(before.output_tokens, total.output_tokens),
            _since(before.cost_usd, total.cost_usd),
        )

    def _read(self) -> dict[str, Usage]:
        try:
            return reader(dict[str, Usage]).decode(read_shared(self.path) or b"{}")
        except (ValueError, RecursionError):
            return {}


_Number = TypeVar("_Number", int, float)


def _since(before: _Number, total: _Number) -> _Number:
    return total - before if total >= before else total


def found_on_path(arg: str, environment: Mapping[str, str]) -> str | None:
    """A command as an absolute path; None where there is none."""
    if "/" in arg:
        return arg if _can_run(arg) else None
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, arg)  # noqa: PTH118  (an empty folder must stay one)
        if folder and _can_run(path):
            return path
    return None


def _root_of(program: Path) -> str:
    """The folder that a program is made of: its own, or all the packages that it was installed with."""
    parts = program.parts
    if "node_modules" in parts:
        return str(Path(*parts[: parts.index("node_modules") + 1]))
    return str(program.parent)


def _can_run(path: str) -> bool:
    try:
        return Path(path).is_file() and os.access(path, os.X_OK)
    except (OSError, ValueError):
        return False
