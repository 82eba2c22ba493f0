"""What Codex says while it works, and what its end means. The events decide; the exit code decides nothing."""

import re
import shlex
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar

import msgspec

from genba.connections.agents.cli_tools.prices import Price
from genba.connections.agents.cli_tools.strict_schema import without_nulls
from genba.connections.agents.command_line import Totals
from genba.connections.agents.loose_values import as_count, as_dict, as_id, as_structured, as_text
from genba.connections.agents.model_errors import ConversationLost, one_line, provider_error, wait_in_text
from genba.connections.agents.one_shot import last_output, with_detail
from genba.connections.agents.read_only_commands import only_reads
from genba.connections.agents.tool_reports import MOST_NAMES, remember
from genba.domain.errors import AgentUnavailable, GenbaError, UnrecoverableError
from genba.domain.processes import Exit, LineFilter, OutputListener
from genba.domain.sessions.replies import Reply, Usage

_STATUS = re.compile(r"(?:unexpected status|last status:?) (\d{3})\b")
_LIMIT = re.compile(r"rate limit reached|hit your usage limit|usage limit|quota exceeded|rate_limit", re.IGNORECASE)
_LOGIN = re.compile(r"not logged in|refresh token|Missing environment variable", re.IGNORECASE)
_FULL = re.compile(r"ran out of room in the model's context window|context_length_exceeded", re.IGNORECASE)
_MCP = re.compile(r"required MCP servers failed to initialize: ([\w-]+(?:, [\w-]+)*)")
_DENIED = re.compile(r"PreToolUse hook: (Bash|Edit) is not allowed|(patch rejected): ")
_OUR_OWN = re.compile("`--dangerously-bypass-hook-trust` is enabled")
"""A warning about what Genba itself has asked for."""
_KINDS = {"add": "Write", "update": "Edit", "delete": "Edit"}
_USAGE_ERROR = 2
_TOO_MANY = 429
_PATIENCE_SECONDS = 10.0
"""Genba itself does a longer wait than this: it costs no process, and other workers see it."""


class CodexReading:
    """Follows one process. Lines that say nothing it knows are passed over."""

    wanted: ClassVar[LineFilter] = LineFilter(
        key=b'"type"',
        decisive=(
            *(b'"thread.started"', b'"turn.completed"', b'"turn.failed"', b'"error"', b'"agent_message"'),
            *(b'"command_execution"', b'"file_change"', b'"mcp_tool_call"', b'"web_search"', b'"collab_tool_call"'),
        ),
    )

    def __init__(
        self,
        on_output: OutputListener,
        *,
        totals: Totals,
        resumed: str | None = None,
        schema: dict[str, Any] | None = None,
        reads: str | None = None,
        price: Price | None = None,
        key_variable: str = "OPENAI_API_KEY",
    ) -> None:
        self.on_output = on_output
        self.totals = totals
        self.resumed = resumed
        self.schema = schema
        self.reads = reads
        """What a command that only reads counts as; None where all commands are the same."""
        self.price = price
        self.key_variable = key_variable
        self.session_id: str | None = None
        self.last_text = ""
        self.used: dict[str, str] = {}
        self.counted: Mapping[str, Any] | None = None
        """The usage that the last turn reported, once it was complete."""
        self.failure = ""
        self.complaint = ""
        self.warned: set[str] = set()

    def line(self, line: bytes) -> None:
        try:
            event = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            return
        if isinstance(event, dict) and (read := _READERS.get(as_text(event.get("type")))):
            read(self, event)

    def reply(self, done: Exit) -> Reply:
        if self.counted is None or self.failure:
            raise self._error(done)
        denied = self._denied(done)
        return Reply(
            text=self.last_text,
            structured=self._structured(),
            session_id=self.session_id,
            usage=self._usage(self.counted),
            tools_used=tuple(dict.fromkeys(self.used.values())),
            tools_denied=denied,
            exit_code=done.code,
            seconds=done.seconds,
        )

    def _denied(self, done: Exit) -> tuple[str, ...]:
        """Codex reports what was not allowed on stderr alone."""
        match = [match[1] or "Edit" for match in _DENIED.finditer(done.stderr)]
        for tool in match:
            self.on_output("notice", f"{tool} was denied")
        return tuple(dict.fromkeys(match))

    def _structured(self) -> dict[str, Any] | None:
        if self.schema is None:
            return None
        try:
            answer = as_structured(msgspec.json.decode(self.last_text))
        except (ValueError, RecursionError):
            return None
        return without_nulls(answer, self.schema) if answer is not None else None

    def _usage(self, counted: Mapping[str, Any]) -> Usage:
        """What this question used: Codex counts from the beginning of the conversation."""
        name = self.session_id or ""
        total = Usage(as_count(counted.get("input_tokens")), as_count(counted.get("output_tokens")))
        usage = self.totals.delta(name, total)
        cached = self.totals.delta(f"{name} cached", Usage(as_count(counted.get("cached_input_tokens"))))
        return self.price.of(usage, cached.input_tokens) if self.price is not None else usage

    def _error(self, done: Exit) -> GenbaError:
        result = self.failure or self.complaint
        if result:
            return self._reported_error(result)
        output = last_output(done) if done.stderr.strip() else ""
        if servers := _MCP.search(done.stderr):
            return AgentUnavailable(
                f"the MCP server {servers[1]} cannot be used",
                hint=f"check mcpServers.{servers[1]}, or set required to false",
            )
        if self.resumed and self.session_id is None and "thread/resume" in done.stderr:
            return ConversationLost("the conversation is lost")
        if done.code == _USAGE_ERROR or output.startswith("Error loading config"):
            return UnrecoverableError(
                with_detail("codex refused to start", one_line(output)), hint="check runner.adapter"
            )
        how = f"by signal {-done.code}" if done.code < 0 else f"with exit code {done.code}"
        return AgentUnavailable(with_detail(f"codex ended {how} and without a result", one_line(output)))

    def _reported_error(self, text: str) -> GenbaError:
        if self.resumed and _FULL.search(text):
            return ConversationLost(f"the conversation is full: {one_line(text)}")
        status, detail = _status(text)
        wait = wait_in_text(detail, datetime.now().astimezone())
        return provider_error(status, detail, self.key_variable, wait)

    def _on_thread(self, event: Mapping[str, Any]) -> None:
        self.session_id = as_id(event.get("thread_id")) or self.session_id
        if self.resumed and self.session_id != self.resumed:
            self.on_output("notice", "the conversation is not there any more; a new one is begun")

    def _on_turn_completed(self, event: Mapping[str, Any]) -> None:
        self.counted = as_dict(event.get("usage"))

    def _on_turn_failed(self, event: Mapping[str, Any]) -> None:
        self.failure = as_text(as_dict(event.get("error")).get("message")) or "the turn failed"

    def _on_error(self, event: Mapping[str, Any]) -> None:
        message = as_text(event.get("message"))
        if message.startswith("Reconnecting"):
            self._wait_no_longer(message)
            self.on_output("notice", f"the model is asked again: {one_line(message)}")
        self.complaint = message or self.complaint

    def _wait_no_longer(self, message: str) -> None:
        wait = wait_in_text(message, datetime.now().astimezone())
        if wait is not None and wait > _PATIENCE_SECONDS and _LIMIT.search(message):
            raise provider_error(_TOO_MANY, message, self.key_variable, wait)

    def _on_item(self, event: Mapping[str, Any]) -> None:
        item = as_dict(event.get("item"))
        kind, finished = as_text(item.get("type")), event.get("type") == "item.completed"
        if kind == "agent_message" and finished:
            self.last_text = as_text(item.get("text")) or self.last_text
        elif kind == "error" and finished:
            self._warn(one_line(as_text(item.get("message"))))
        elif read := _TOOLS.get(kind):
            for number, (tool, target) in enumerate(read(self, item)):
                self._use(f"{as_text(item.get('id'))}.{number}", tool, target)

    def _warn(self, warning: str) -> None:
        if warning and warning not in self.warned and len(self.warned) < MOST_NAMES and not _OUR_OWN.match(warning):
            self.warned.add(warning)
            self.on_output("notice", warning)

    def _use(self, call: str, tool: str, target: str) -> None:
        if self.used.get(call) != tool:
            remember(self.used, call, tool)
            self.on_output("tool", f"{tool} {one_line(target)}".rstrip())

    def _command(self, item: Mapping[str, Any]) -> list[tuple[str, str]]:
        command = _inner(as_text(item.get("command")))
        tool = self.reads if self.reads and only_reads(command) else "Bash"
        return [(tool, command)]

    def _patch(self, item: Mapping[str, Any]) -> list[tuple[str, str]]:
        changes = item.get("changes")
        listed = [each for each in changes if isinstance(each, dict)] if isinstance(changes, list) else []
        return [(_KINDS.get(as_text(each.get("kind")), "Edit"), as_text(each.get("path"))) for each in listed]

    def _server_tool(self, item: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [(f"mcp__{as_text(item.get('server'))}__{as_text(item.get('tool'))}", "")]

    def _search(self, item: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [("WebSearch", as_text(item.get("query")))]

    def _plan(self, _item: Mapping[str, Any]) -> list[tuple[str, str]]:
        return []  # a list of what it means to do reaches nothing

    def _helper(self, item: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [("Task", as_text(item.get("tool")))]


_READERS: dict[str, Callable[[CodexReading, dict[str, Any]], None]] = {
    "thread.started": CodexReading._on_thread,
    "turn.completed": CodexReading._on_turn_completed,
    "turn.failed": CodexReading._on_turn_failed,
    "error": CodexReading._on_error,
    "item.started": CodexReading._on_item,
    "item.updated": CodexReading._on_item,
    "item.completed": CodexReading._on_item,
}
_TOOLS: dict[str, Callable[[CodexReading, Mapping[str, Any]], list[tuple[str, str]]]] = {
    "command_execution": CodexReading._command,
    "file_change": CodexReading._patch,
    "mcp_tool_call": CodexReading._server_tool,
    "web_search": CodexReading._search,
    "todo_list": CodexReading._plan,
    "collab_tool_call": CodexReading._helper,
}


def _status(text: str) -> tuple[int | None, str]:
    """The status of the provider and its words, from what Codex makes of them."""
    if match := _STATUS.search(text):
        return int(match[1]), text
    if _LIMIT.search(text):
        return _TOO_MANY, text
    if _LOGIN.search(text):
        return 401, text
    try:  # a request that was refused as wrong is reported as the body of the answer
        body = as_dict(msgspec.json.decode(text))
    except (ValueError, RecursionError):
        return None, text
    return (400, as_text(as_dict(body.get("error")).get("message")) or text) if "error" in body else (None, text)


def _inner(command: str) -> str:
    """The command without the shell that it was given to."""
    try:
        args = shlex.split(command)
    except ValueError:
        return command
    if len(args) == 3 and args[1] in ("-c", "-lc") and args[0].endswith("sh"):  # noqa: PLR2004
        return args[2]
    return command
