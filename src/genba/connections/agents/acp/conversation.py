"""One conversation over the Agent Client Protocol: start, go on with a session or begin one, ask, and part.

The library of the protocol keeps requests and answers together and gives the shapes of what is sent. What arrives is
read as plain data, since agents are ahead of any library. The library is imported while the agent starts.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec

from genba import __version__
from genba.connections.agents.acp.choices import Choice, choices_of, mode_for, model_for
from genba.connections.agents.acp.errors import refused
from genba.connections.agents.acp.turn import Turn
from genba.connections.agents.loose_values import as_dict
from genba.domain.errors import AgentUnavailable, UnrecoverableError
from genba.domain.processes import LineFilter, OutputListener, Send
from genba.domain.sessions.sandbox import McpServer

if TYPE_CHECKING:  # half a second of pydantic, which only a conversation needs
    from acp.connection import Connection

_VERSION = 1
_MOST_WAITING = 1000
_LONGEST_SESSION_ID = 1000
_QUIET_SECONDS = 0.25
"""Some agents repeat an old session only after they report it as loaded: when it is quiet, that is over."""
_LONGEST_REPEAT_SECONDS = 10.0


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a conversation is about."""

    workdir: str
    session_id: str | None
    model: str
    mode: str
    plan: bool
    prompt: str
    """For a session that goes on."""
    first_prompt: str
    """For a new session, which knows nothing yet."""
    servers: tuple[McpServer, ...]
    environment: Mapping[str, str]
    """Holds the tokens of the servers."""
    key_variable: str


class _Request(Protocol):
    """A request in the shape that the library knows."""

    def model_dump(self, *, mode: str, by_alias: bool, exclude_none: bool) -> dict[str, Any]: ...


class Talk:
    """Both sides of one process: its output comes in by `line`, requests go out by `converse`."""

    wanted: ClassVar[LineFilter] = LineFilter(
        key=b'"', decisive=(b'"id"', b'"agent_message_chunk"', b'"usage_update"', b'"tool_call"', b'"tool_call_update"')
    )

    def __init__(self, question: Question, turn: Turn, on_output: OutputListener) -> None:
        self.question = question
        self.turn = turn
        self.on_output = on_output
        self.session_id = ""
        self.answered = False
        self._arrived: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        """Bounded by `line`: it is closed with one more entry."""

    def line(self, line: bytes) -> None:
        """Take one line of stdout. What is no message is left alone."""
        message = _message(line)
        if message is None:
            return
        if message.get("method") == "session/update" and "id" not in message:
            self.turn.update(message.get("params"))  # there may be very many, and none is answered
            return
        if self._arrived.qsize() >= _MOST_WAITING:
            raise AgentUnavailable(f"the agent sent {_MOST_WAITING:,} messages before it was answered")
        self._arrived.put_nowait(message)

    async def converse(self, send: Send) -> None:
        """Put the question and wait for its answer. Raises the error that fits when the agent refuses."""
        connection = await asyncio.to_thread(_library)
        from acp.exceptions import RequestError  # noqa: PLC0415  (imported by now)

        talking = connection(self._handle, _Wire(self._arrived, send))
        try:
            await self._ask(talking)
        except RequestError as error:
            raise refused(error.code, str(error), error.data, self.question.key_variable) from error
        except ConnectionError:
            return
        finally:
            await talking.close()

    async def _ask(self, connection: "Connection") -> None:
        from acp import schema  # noqa: PLC0415  (imported by now)

        abilities = await self._introduce(connection)
        opened, goes_on = await self._open(connection, abilities)
        await self._choose(connection, opened)
        question = self.question
        text = question.prompt if goes_on else question.first_prompt
        blocks = [schema.TextContentBlock(type="text", text=text)]
        self.turn.begun = True
        request = schema.PromptRequest(session_id=self.session_id, prompt=[*blocks])
        self.turn.finish(await _call(connection, "session/prompt", request))
        self.answered = True

    async def _introduce(self, connection: "Connection") -> dict[str, Any]:
        """Say who is there. The agent's own hands do the work: Genba offers it no files and no terminal."""
        from acp import schema  # noqa: PLC0415  (imported by now)

        request = schema.InitializeRequest(
            protocol_version=_VERSION,
            client_capabilities=schema.ClientCapabilities(),
            client_info=schema.Implementation(name="genba", title="Genba", version=__version__),
        )
        result = await _call(connection, "initialize", request)
        version = result.get("protocolVersion")
        if version != _VERSION:
            raise UnrecoverableError(
                f"the agent speaks version {version!r} of the Agent Client Protocol, and Genba version {_VERSION}",
                hint="install a version of the agent that speaks it",
            )
        return as_dict(result.get("agentCapabilities"))

    async def _open(self, connection: "Connection", abilities: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """Go on with the session that was asked for, or begin one; whether it goes on."""
        from acp import schema  # noqa: PLC0415  (imported by now)
        from acp.exceptions import RequestError  # noqa: PLC0415

        servers = self._servers(as_dict(abilities.get("mcpCapabilities")))
        wanted, workdir = self.question.session_id, self.question.workdir
        resumes = "resume" in as_dict(abilities.get("sessionCapabilities"))
        if wanted and (resumes or abilities.get("loadSession") is True):
            method = "session/resume" if resumes else "session/load"
            kind = schema.ResumeSessionRequest if resumes else schema.LoadSessionRequest
            try:
                opened = await _call(connection, method, kind(session_id=wanted, cwd=workdir, mcp_servers=servers))
            except RequestError:
                self.on_output("notice", "the session is not there any more; a new one is begun")
            else:
                self.session_id = wanted
                if not resumes:
                    await self._until_quiet()
                return opened, True
        elif wanted:
            self.on_output("notice", "the agent cannot go on with a session; a new one is begun")
        request = schema.NewSessionRequest(cwd=workdir, mcp_servers=servers)
        opened = await _call(connection, "session/new", request)
        self.session_id = _session_id(opened)
        return opened, False

    async def _until_quiet(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_REPEAT_SECONDS):
                while True:
                    self.turn.spoke.clear()
                    await asyncio.wait_for(self.turn.spoke.wait(), _QUIET_SECONDS)

    async def _choose(self, connection: "Connection", opened: Mapping[str, Any]) -> None:
        """Set the mode and the model, where the agent has a choice."""
        choices = choices_of(opened)
        mode = mode_for(choices, self.question.mode, self.question.plan)
        if mode:
            await self._set(connection, choices["mode"], mode)
        if "model" in choices:
            model = model_for(choices["model"], self.question.model)
            if model:
                await self._set(connection, choices["model"], model)
            elif not choices["model"].is_now(self.question.model):
                now = choices["model"].now or "its own"
                self.on_output("notice", f"the agent has no model {self.question.model}; it uses {now}")

    async def _set(self, connection: "Connection", choice: Choice, value: str) -> None:
        from acp.exceptions import RequestError  # noqa: PLC0415  (imported by now)

        params = {"sessionId": self.session_id, **choice.request(value)}
        try:
            await connection.send_request(choice.method, params)
        except RequestError as error:
            self.on_output("notice", f"the agent did not take the {choice.name} {value}: {str(error)[:200]}")

    def _servers(self, abilities: Mapping[str, Any]) -> list[Any]:
        from acp import schema  # noqa: PLC0415  (imported by now)

        made: list[Any] = []
        for server in self.question.servers:
            if server.command:
                variables = [schema.EnvVariable(name=name, value=value) for name, value in server.environment.items()]
                command, *args = server.command
                made.append(schema.McpServerStdio(name=server.name, command=command, args=args, env=variables))
            elif abilities.get("http") is True:
                token = self.question.environment.get(server.token_variable, "")
                bearer = [schema.HttpHeader(name="Authorization", value=f"Bearer {token}")] if token else []
                made.append(schema.HttpMcpServer(type="http", name=server.name, url=server.url, headers=bearer))
            elif server.required:
                raise UnrecoverableError(
                    f"the agent cannot use the MCP server {server.name}: it knows no servers with an address",
                    hint=f"mcpServers.{server.name}: give a command, or required: false",
                )
            else:
                self.on_output("notice", f"the agent cannot use the MCP server {server.name}")
        return made

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Any:
        """What the agent asks of Genba. Never raises for what it tells."""
        if method == "session/update":
            self.turn.update(params)
            return None
        if method == "session/request_permission" and not is_notification:
            return self.turn.permission(params)
        if is_notification:
            return None
        from acp.exceptions import RequestError  # noqa: PLC0415  (imported by now)

        raise RequestError.method_not_found(method)


class _Wire:
    """Messages as lines, in the shape that the library asks for."""

    def __init__(self, arrived: "asyncio.Queue[dict[str, Any] | None]", send: Send) -> None:
        self._arrived = arrived
        self._send = send

    async def send(self, message: dict[str, Any]) -> None:
        await self._send(msgspec.json.encode(message) + b"\n")

    async def receive(self) -> dict[str, Any] | None:
        return await self._arrived.get()

    async def close(self) -> None:
        self._arrived.put_nowait(None)


def _library() -> "type[Connection]":
    from acp.connection import Connection  # noqa: PLC0415  (half a second, while the agent starts)

    return Connection


async def _call(connection: "Connection", method: str, request: _Request) -> dict[str, Any]:
    params = request.model_dump(mode="json", by_alias=True, exclude_none=True)
    return as_dict(await connection.send_request(method, params))


def _message(line: bytes) -> dict[str, Any] | None:
    """A message of JSON-RPC that cannot trip anybody; None for everything else."""
    try:
        message = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    if "method" in message and not isinstance(message["method"], str):
        return None
    if "id" in message and not isinstance(message["id"], int | str):
        return None
    error = message.get("error")
    if error is not None:
        error = error if isinstance(error, dict) else {}
        code, output = error.get("code"), error.get("message")
        message["error"] = {
            "code": code if isinstance(code, int) else -32603,
            "message": output if isinstance(output, str) else "no reason is given",
            "data": error.get("data"),
        }
    return message


def _session_id(opened: Mapping[str, Any]) -> str:
    found = opened.get("sessionId")
    if not isinstance(found, str) or not found or "\0" in found or len(found) > _LONGEST_SESSION_ID:
        raise AgentUnavailable("the agent began a session without a usable name")
    return found
