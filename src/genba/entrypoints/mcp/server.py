"""The MCP server: lists the tools, and turns each call into one call of the service.

Law: a refusal is a result with `isError` and a typed error; an unexpected error is reported without its details.
"""

import logging
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams
from pydantic import ValidationError

from genba import __version__
from genba.coordination.workflow.answers import Authenticated, Caller
from genba.coordination.workflow.service import WorkflowService
from genba.coordination.workflow.tokens import without_secrets
from genba.domain.errors import GenbaError
from genba.domain.workflow.actions import Action, ErrorCode, Tool, WorkflowError
from genba.entrypoints.mcp.schemas import answered, input_schema, listed, refused
from genba.entrypoints.mcp.tools import TOOLS, ToolEntry
from genba.judgement.language.sentences import tool_text

logger = logging.getLogger("genba.mcp")

INSTRUCTIONS = (
    "This server leads you through a task of the project. Call authenticate, then call get_next_action and do what its "
    "instruction says, again and again, until the action is exit."
)
MOST_CHARACTERS = 256_000
"""The most that the arguments of one call may weigh."""
_KEPT_ANSWERS = 512
_SECRETS = ("session_token", "passkey")
"""Arguments that are secrets; whatever else holds one would be written down with it."""
_SHOWN_PROBLEMS = 8

Context = ServerRequestContext[Any, Any]


class RequestCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """What a connection says of the caller besides the arguments. Secrets of it are in no log and no error."""

    token: str = ""
    """Of the session, where the connection has one already."""
    secret: str = ""
    """What it authenticates with: a one-time credential (`gbo_`) or a passkey (`gbk_`)."""
    agent: str = ""
    project: str = ""

    def __repr__(self) -> str:
        return f"Carried(agent={self.agent!r})"


class Transport(Protocol):
    """The connection that calls come in by."""

    @property
    def door(self) -> str:
        """stdio | http | socket"""
        ...

    def carried(self, context: Context) -> RequestCredentials: ...

    def connected(self, token: str) -> None:
        """A token was issued on this transport. A transport with one caller may remember it."""
        ...


def build(service: WorkflowService, line: Transport, tools: Sequence[ToolEntry[Any]] = TOOLS) -> Server[Any]:
    """A server for one service behind one kind of connection."""
    desk = _Calls(service, line, tools)
    return Server(
        "genba",
        version=__version__,
        title="Genba",
        description="Leads agents through the tasks of a project.",
        instructions=tool_text(service.settings.workflow.language, INSTRUCTIONS),
        on_list_tools=desk.list_tools,
        on_call_tool=desk.call_tool,
        get_tool_input_schema=desk.input_schema,
    )


class _Calls:
    def __init__(self, service: WorkflowService, line: Transport, tools: Sequence[ToolEntry[Any]]) -> None:
        self._service = service
        self._language = service.settings.workflow.language
        self._line = line
        self._tools = {entry.name: entry for entry in tools}
        self._listed: ListToolsResult | None = None
        self._schemas: dict[str, Mapping[str, Any]] = {}
        self._answers: dict[int, tuple[Action, CallToolResult]] = {}

    async def list_tools(self, _: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        if self._listed is None:
            self._listed = ListToolsResult(tools=[listed(entry, self._language) for entry in self._tools.values()])
        return self._listed

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        if name in self._tools and name not in self._schemas:
            self._schemas[name] = input_schema(self._tools[name])
        return self._schemas.get(name)

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        entry = self._tools.get(params.name)
        if entry is None:
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {params.name[:80]}")
        try:
            return await self._called(entry, self._line.carried(context), params.arguments or {})
        except WorkflowError as error:
            return refused(error)
        except GenbaError as error:
            logger.warning("%s: %s", entry.name, type(error).__name__)
            return refused(WorkflowError(ErrorCode.CONFLICT, "that cannot be done now", hint="try again in a while"))
        except Exception as error:  # noqa: BLE001  (the outermost edge: what is inside stays inside)
            logger.error("%s: %s at %s", entry.name, type(error).__name__, _place(error))  # noqa: TRY400
            return refused(WorkflowError(ErrorCode.CONFLICT, "something went wrong here", hint="try again in a while"))

    async def _called(self, entry: ToolEntry[Any], carried: RequestCredentials, raw: dict[str, Any]) -> CallToolResult:
        if weight(raw) > MOST_CHARACTERS:
            raise WorkflowError(
                ErrorCode.LIMIT,
                f"the arguments are larger than {MOST_CHARACTERS:,} characters",
                hint="say it shorter; what is long belongs in a file of your branch",
            )
        shown = {name: value if name in _SECRETS else without_secrets(value) for name, value in raw.items()}
        try:
            taken = entry.takes.model_validate(shown)
        except ValidationError as error:
            raise _not_valid(entry, error) from None
        if entry.name == Tool.AUTHENTICATE:
            taken, secret = _with_carried(taken, carried)
        else:
            secret = taken.session_token or carried.token
        value = await entry.call(self._service, Caller(token=secret, door=self._line.door), taken)
        if isinstance(value, Authenticated):
            self._line.connected(value.session_token)
        return self._kept(value) if isinstance(value, Action) else answered(value, self._language)

    def _kept(self, action: Action) -> CallToolResult:
        """The service gives the same action as long as nothing has changed: then it is not written out again."""
        known = self._answers.get(id(action))
        if known is not None and known[0] is action:
            return known[1]
        result = answered(action)
        while len(self._answers) >= _KEPT_ANSWERS:
            del self._answers[next(iter(self._answers))]
        self._answers[id(action)] = (action, result)
        return result


def _with_carried(taken: Any, carried: RequestCredentials) -> tuple[Any, str]:
    """Authenticate with what the connection carries, where the call itself says nothing."""
    passkey, secret = taken.passkey, carried.secret
    if secret.startswith("gbk_"):
        passkey, secret = passkey or secret, ""
    values = {
        "agent_id": taken.agent_id or carried.agent,
        "project_id": taken.project_id or carried.project,
        "passkey": passkey,
    }
    return taken.model_copy(update=values), "" if taken.passkey else secret


def weight(value: Any) -> int:
    """About how many characters plain data has."""
    total, waiting = 0, [value]
    while waiting and total <= MOST_CHARACTERS:
        each = waiting.pop()
        if isinstance(each, str):
            total += len(each)
        elif isinstance(each, dict):
            total += len(each)
            waiting.extend(each)
            waiting.extend(each.values())
        elif isinstance(each, list):
            total += len(each)
            waiting.extend(each)
        else:
            total += 4 if not isinstance(each, int) else 1 + each.bit_length() // 3
    return total


def _not_valid(entry: ToolEntry[Any], error: ValidationError) -> WorkflowError:
    """Everything that is wrong with the arguments; what they held is not repeated."""
    lines = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False)[:_SHOWN_PROBLEMS]:
        where = ".".join(str(part)[:80] for part in problem["loc"]) or "arguments"
        lines.append(f"{where}: {problem['msg'][:300]}")
    names = ", ".join(entry.takes.model_fields)
    return WorkflowError(
        ErrorCode.VALIDATION,
        f"{entry.name}: " + "; ".join(lines),
        hint=f"{entry.name} takes: {names}",
        action=entry.name,
    )


def _place(error: Exception) -> str:
    """Where it happened. The text of the error is left out: it may hold what a caller sent."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else "?"
