"""What OpenCode and our plugin in it say, and what the end means. The events decide; the exit code decides nothing."""

import re
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar

import msgspec

from genba.connections.agents.loose_values import as_count, as_dict, as_id, as_number, as_text
from genba.connections.agents.model_errors import ConversationLost, one_line, provider_error, wait_in_text
from genba.connections.agents.one_shot import last_output, with_detail
from genba.connections.agents.tool_reports import MOST_NAMES
from genba.domain.errors import AgentUnavailable, GenbaError, RateLimited, UnrecoverableError
from genba.domain.processes import Exit, LineFilter, OutputListener
from genba.domain.sessions.replies import Reply, Usage
from genba.domain.sessions.sandbox import McpServer

TOOLS = {
    "read": "Read",
    "write": "Write",
    "edit": "Edit",
    "multiedit": "Edit",
    "apply_patch": "Edit",
    "patch": "Edit",
    "bash": "Bash",
    "grep": "Grep",
    "glob": "Glob",
    "list": "LS",
    "webfetch": "WebFetch",
    "websearch": "WebSearch",
    "codesearch": "WebSearch",
    "task": "Task",
    "todowrite": "TodoWrite",
    "todoread": "TodoWrite",
    "skill": "Skill",
    "lsp": "LSP",
}
"""OpenCode's names, and those that all agents share."""
_TARGETS = ("filePath", "path", "command", "pattern", "url", "query", "description", "name")
_ENDS = ("stop", "length")
"""After these the model had finished, or could not go on."""
_MOST_UNFINISHED = 3
"""Answers without an end, one after the other. OpenCode itself would ask again for ever."""
_FIRST_WAIT, _SLACK = 2.0, 1.5
"""OpenCode waits 2, 4, 8… seconds by itself, give or take a quarter; a longer wait comes from the provider."""
_MOST_DOUBLINGS = 60
_DENIED = re.compile(r"rule which prevents you|rejected permission|call unavailable tool '([\w-]+)'")
_LIMIT = re.compile(r"rate.?limit|too many requests|quota", re.IGNORECASE)
_LOST = "Session not found"
_MOST_MESSAGES, _MOST_TEXT = 8, 4 * 1024 * 1024
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class OpenCodeReading:
    """Follows one process. Lines that say nothing it knows are passed over."""

    wanted: ClassVar[LineFilter] = LineFilter(
        key=b'"type"', decisive=(b'"step_finish"', b'"text"', b'"tool_use"', b'"error"', b'"genba"')
    )

    def __init__(
        self,
        on_output: OutputListener,
        *,
        resumed: str | None = None,
        servers: tuple[McpServer, ...] = (),
        key_variable: str = "ANTHROPIC_API_KEY",
    ) -> None:
        self.on_output = on_output
        self.resumed = resumed
        self.servers = {server.name: server for server in servers}
        self.key_variable = key_variable
        self.session_id: str | None = None
        self.texts: dict[str, deque[str]] = {}
        """The texts of the last messages, by the message that each is part of."""
        self.length = 0
        """Of the texts of the newest message."""
        self.used: list[str] = []
        self.denied: list[str] = []
        self.usage = Usage()
        self.reason = ""
        self.message = ""
        self.unfinished = 0
        self.failure: Mapping[str, Any] | None = None
        self.trouble: GenbaError | None = None
        """What our plugin ended the process for."""

    def line(self, line: bytes) -> None:
        try:
            event = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            return
        if isinstance(event, dict) and (read := _READERS.get(as_text(event.get("type")))):
            self.session_id = as_id(event.get("sessionID")) or self.session_id
            read(self, event)

    def reply(self, done: Exit) -> Reply:
        if self.failure is not None or self.reason not in _ENDS:
            raise self._error(done)
        if self.reason == "length":
            self.on_output("notice", "the model stopped at the length of its answer")
        output = self.texts.get(self.message) or next(reversed(self.texts.values()), deque())
        return Reply(
            text="\n".join(output),
            session_id=self.session_id,
            usage=self.usage,
            tools_used=tuple(dict.fromkeys(self.used)),
            tools_denied=tuple(dict.fromkeys(self.denied)),
            exit_code=done.code,
            seconds=done.seconds,
        )

    def _error(self, done: Exit) -> GenbaError:
        if self.failure is not None:
            return self._reported_error(self.failure)
        if self.trouble is not None:
            return self.trouble
        output = _ANSI.sub("", last_output(done)) if done.stderr.strip() else ""
        if self.resumed and _LOST in done.stderr:
            return ConversationLost("the conversation is lost")
        if done.code == 1 and self.session_id is None and output:
            return UnrecoverableError(f"opencode refused to start: {one_line(output)}", hint="check runner.adapter")
        how = f"by signal {-done.code}" if done.code < 0 else f"with exit code {done.code}"
        where = "in the middle of its work" if self.reason else "without a result"
        return AgentUnavailable(with_detail(f"opencode ended {how} and {where}", one_line(output)))

    def _reported_error(self, failure: Mapping[str, Any]) -> GenbaError:
        name, data = as_text(failure.get("name")), as_dict(failure.get("data"))
        result = as_text(data.get("message")) or name
        if name == "ContextOverflowError" and self.resumed:
            return ConversationLost(f"the conversation is full: {one_line(result)}")
        status = data.get("statusCode")
        if name == "ProviderAuthError":
            status = 401
        if name in ("ProviderModelNotFoundError", "ContextOverflowError", "ConfigInvalidError"):
            return UnrecoverableError(f"opencode cannot go on: {one_line(result)}", hint="check runner.adapter")
        wait = _seconds(as_dict(data.get("responseHeaders"))) or wait_in_text(result, datetime.now().astimezone())
        return provider_error(status if isinstance(status, int) else None, result, self.key_variable, wait)

    def _on_finish(self, event: Mapping[str, Any]) -> None:
        part = as_dict(event.get("part"))
        self.reason, self.message = as_text(part.get("reason")), as_text(part.get("messageID"))
        tokens, cache = as_dict(part.get("tokens")), as_dict(as_dict(part.get("tokens")).get("cache"))
        read = (tokens.get("input"), cache.get("read"), cache.get("write"))
        made = (tokens.get("output"), tokens.get("reasoning"))
        cost = as_number(part.get("cost"))
        self.usage = self.usage.plus(Usage(sum(map(as_count, read)), sum(map(as_count, made)), cost))
        self.unfinished = self.unfinished + 1 if self.reason not in (*_ENDS, "tool-calls") else 0
        if self.unfinished >= _MOST_UNFINISHED:
            raise AgentUnavailable(f"the model cannot be reached: its answers have no end ({self.reason or 'none'})")

    def _on_text(self, event: Mapping[str, Any]) -> None:
        part = as_dict(event.get("part"))
        message, text = as_text(part.get("messageID")), as_text(part.get("text"))
        if message not in self.texts:
            while len(self.texts) >= _MOST_MESSAGES:
                del self.texts[next(iter(self.texts))]
            self.texts[message], self.length = deque(), 0
        output = self.texts[message]
        output.append(text)
        self.length += len(text)
        while self.length > _MOST_TEXT and len(output) > 1:
            self.length -= len(output.popleft())

    def _on_tool(self, event: Mapping[str, Any]) -> None:
        part = as_dict(event.get("part"))
        state, given = as_dict(part.get("state")), as_dict(as_dict(part.get("state")).get("input"))
        name = as_text(part.get("tool"))
        failed = as_text(state.get("error")) or (as_text(given.get("error")) if name == "invalid" else "")
        refused = _DENIED.search(failed)
        tool = self._canonical(as_text(given.get("tool")) if name == "invalid" else name)
        if not tool or (name == "invalid" and not refused):
            return
        if refused:
            _note(self.denied, tool)
            why = "it is not offered" if refused[1] else one_line(failed)
            self.on_output("notice", f"{tool} was denied: {why}")
            return
        _note(self.used, tool)
        target = next((text for key in _TARGETS if (text := as_text(given.get(key)))), "")
        self.on_output("tool", f"{tool} {one_line(target)}".rstrip())

    def _canonical(self, name: str) -> str:
        for server in sorted(self.servers, key=len, reverse=True):
            if name.startswith(f"{server}_"):
                return f"mcp__{server}__{name.removeprefix(f'{server}_')}"
        return TOOLS.get(name, name)

    def _on_error(self, event: Mapping[str, Any]) -> None:
        self.failure = as_dict(event.get("error"))

    def _on_plugin(self, event: Mapping[str, Any]) -> None:
        if server := self.servers.get(as_text(event.get("server"))):
            problem = f"the MCP server {server.name} cannot be used: {one_line(as_text(event.get('state')))}"
            if server.required:
                hint = f"check mcpServers.{server.name}, or set required to false"
                self.trouble = AgentUnavailable(problem, hint=hint)
            else:
                self.on_output("notice", problem)
        elif "retry" in event:
            self._on_retry(event)

    def _on_retry(self, event: Mapping[str, Any]) -> None:
        result, seconds = one_line(as_text(event.get("message"))), as_number(event.get("seconds"))
        own_wait = _FIRST_WAIT * 2.0 ** (min(max(as_count(event.get("retry")), 1), _MOST_DOUBLINGS) - 1)
        named_by_provider = seconds > own_wait * _SLACK
        if named_by_provider or _LIMIT.search(result):
            self.trouble = RateLimited(
                with_detail("the rate limit of the model is reached", result),
                retry_after=round(seconds, 3) if named_by_provider else None,
            )
        else:
            self.trouble = AgentUnavailable(with_detail("the model cannot be reached", result))
        self.on_output("notice", f"the model is asked again in {seconds:.1f} s: {result}")


_READERS: dict[str, Callable[[OpenCodeReading, dict[str, Any]], None]] = {
    "step_finish": OpenCodeReading._on_finish,
    "step_start": lambda _reading, _event: None,
    "text": OpenCodeReading._on_text,
    "tool_use": OpenCodeReading._on_tool,
    "error": OpenCodeReading._on_error,
    "genba": OpenCodeReading._on_plugin,
}


def _note(names: list[str], name: str) -> None:
    if name not in names and len(names) < MOST_NAMES:
        names.append(name)


def _seconds(headers: Mapping[str, Any]) -> float | None:
    try:
        seconds = float(headers.get("retry-after", ""))
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if seconds > 0 else None
