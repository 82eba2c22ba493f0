"""What Claude Code says while it works, and what its end means. The events decide; the exit code decides nothing."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from genba.connections.agents.command_line import Totals
from genba.connections.agents.loose_values import as_dict, as_id, as_number, as_structured, as_text
from genba.connections.agents.model_errors import ConversationLost, one_line, provider_error
from genba.connections.agents.one_shot import last_output, with_detail
from genba.connections.agents.tool_reports import remember
from genba.domain.errors import AgentUnavailable, GenbaError, RateLimited, UnrecoverableError
from genba.domain.processes import Exit, LineFilter, OutputListener
from genba.domain.sessions.replies import Reply, Usage
from genba.domain.sessions.sandbox import McpServer

_PATIENCE_SECONDS = 10.0
"""Genba itself does a longer wait than this: it costs no process, and other workers see it."""
_CANONICAL = {"Agent": "Task", "MultiEdit": "Edit", "BashOutput": "Bash", "KillShell": "Bash"}
_OF_THE_TOOL_ITSELF = frozenset({"StructuredOutput", "ToolSearch", "EnterPlanMode", "ExitPlanMode"})
"""Tools that only carry the answer or the conversation; they reach nothing."""
_TARGETS = ("file_path", "notebook_path", "path", "command", "pattern", "url", "query", "description", "skill")
_AN_ANSWER_ALL_THE_SAME = ("error_max_turns", "error_max_structured_output_retries")
"""Ends after which the work is there to be judged, and the conversation can go on."""
_RESET_IN_TEXT = re.compile(r"limit reached\|(\d{9,11})")
_LIMIT_IN_TEXT = re.compile(r"limit reached|hit your .{0,40}limit|rate limit", re.IGNORECASE)
_LOGIN_IN_TEXT = re.compile(r"invalid api key|/login|not logged in|authenticat|oauth token|credit balance", re.I)
_NO_SUCH_CONVERSATION = ("No conversation found", "--resume requires", "is already in use")
_REFUSED_WORDS = ("unknown option", "--json-schema is not", "root/sudo", "invalid argument", "Invalid MCP")


class ClaudeReading:
    """Understands one process of Claude Code."""

    wanted: ClassVar[LineFilter] = LineFilter(
        key=b'"type"', decisive=(b'"result"', b'"rate_limit_event"', b'"system"', b'"tool_use"', b'"tool_use_id"')
    )

    def __init__(
        self,
        on_output: OutputListener,
        *,
        totals: Totals,
        resumed: bool,
        tree: str = "",
        servers: tuple[McpServer, ...] = (),
        key_variable: str = "ANTHROPIC_API_KEY",
        now: Callable[[], float] = time.time,
    ) -> None:
        self.on_output = on_output
        self.totals = totals
        self.resumed = resumed
        self.tree = tree
        self.servers = servers
        self.key_variable = key_variable
        self.now = now
        self.session_id: str | None = None
        self.result: dict[str, Any] | None = None
        self.offered: frozenset[str] | None = None
        self.used: dict[str, str] = {}
        """Every tool that was called, by the id of the call."""
        self.denied: dict[str, str] = {}
        self.last_text = ""
        self.reset: float | None = None
        """When the provider takes questions again, in seconds since 1970."""

    def line(self, line: bytes) -> None:
        try:
            event = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(event, dict):
            return
        read = _READERS.get(as_text(event.get("type")))
        if read is not None:
            read(self, event)

    def reply(self, done: Exit) -> Reply:
        result = self.result
        if result is None:
            raise self._without_result(done)
        subtype = as_text(result.get("subtype"))
        if result.get("is_error") is True and subtype not in _AN_ANSWER_ALL_THE_SAME:
            raise self._error(result)
        if subtype in _AN_ANSWER_ALL_THE_SAME:
            self.on_output("notice", f"claude stopped before it was done: {_error_text(result) or subtype}")
        return Reply(
            text=as_text(result.get("result")) or self.last_text,
            structured=as_structured(result.get("structured_output")),
            session_id=self.session_id,
            usage=self._usage(result),
            tools_used=self._tools_used(),
            tools_denied=tuple(dict.fromkeys(self.denied.values())),
            exit_code=done.code,
            seconds=done.seconds,
        )

    def _tools_used(self) -> tuple[str, ...]:
        names = (name for call, name in self.used.items() if call not in self.denied)
        return tuple(dict.fromkeys(name for name in names if name not in _OF_THE_TOOL_ITSELF))

    def _usage(self, result: Mapping[str, Any]) -> Usage:
        """What this question cost. Newer versions count on over a whole conversation, older ones do not."""
        run = _tokens(as_dict(result.get("usage")), "input_tokens", "output_tokens")
        cost = as_number(result.get("total_cost_usd"))
        counted = _summed(result.get("modelUsage"), cost)
        since = result.get("model_usage_since_last_result")
        known = self.totals.known(self.session_id or "")
        if isinstance(since, dict) and known is None and self.resumed:
            return _summed(since, None)
        counts_on = isinstance(since, dict) or (known is not None and counted.tokens >= known.tokens + run.tokens > 0)
        if counts_on and self.session_id:
            return self.totals.delta(self.session_id, counted)
        if self.session_id:
            self.totals.delta(self.session_id, counted)
        return Usage(run.input_tokens, run.output_tokens, cost)

    def _without_result(self, done: Exit) -> GenbaError:
        output = last_output(done) if done.stderr.strip() else ""
        if any(phrase in done.stderr for phrase in _NO_SUCH_CONVERSATION):
            return ConversationLost(f"the conversation is lost: {output}")
        if any(phrase in done.stderr for phrase in _REFUSED_WORDS):
            return UnrecoverableError(with_detail("claude refused to start", output), hint="check runner.adapter")
        how = f"by signal {-done.code}" if done.code < 0 else f"with exit code {done.code}"
        return AgentUnavailable(with_detail(f"claude ended {how} and without a result", output))

    def _error(self, result: Mapping[str, Any]) -> GenbaError:
        outcome = _error_text(result)
        status = result.get("api_error_status")
        if any(phrase in outcome for phrase in _NO_SUCH_CONVERSATION):
            return ConversationLost(f"the conversation is lost: {outcome}")
        if self.resumed and outcome.startswith("Prompt is too long"):
            return ConversationLost(f"the conversation is full: {outcome}")
        if result.get("subtype") == "error_max_budget_usd":
            return UnrecoverableError(with_detail("claude used up its budget", outcome), hint="check --max-budget-usd")
        if status is None and _LIMIT_IN_TEXT.search(outcome):
            status = _TOO_MANY
        elif status is None and _LOGIN_IN_TEXT.search(outcome):
            status = _NO_KEY
        known = status if isinstance(status, int) else None
        return provider_error(known, outcome, self.key_variable, retry_after=self._until_reset(outcome))

    def _until_reset(self, text: str) -> float | None:
        in_text = _RESET_IN_TEXT.search(text)
        reset = float(in_text[1]) if in_text else self.reset
        return max(1.0, reset - self.now()) if reset is not None else None

    def _on_system(self, event: Mapping[str, Any]) -> None:
        match event.get("subtype"):
            case "init":
                self._on_init(event)
            case "api_retry":
                self._on_retry(event)
            case "permission_denied":
                call, name = as_text(event.get("tool_use_id")), _canonical(event.get("tool_name"))
                if name:
                    self._deny(call or name, name, as_text(event.get("message")))

    def _on_init(self, event: Mapping[str, Any]) -> None:
        self._know(event)
        offered = event.get("tools")
        if isinstance(offered, list):
            self.offered = frozenset(_canonical(name) for name in offered)
        listed = event.get("mcp_servers")
        if not isinstance(listed, list):
            return
        states = {as_text(each.get("name")): as_text(each.get("status")) for each in listed if isinstance(each, dict)}
        for server in self.servers:
            state = states.get(server.name, "missing")
            if state in ("connected", "pending"):
                continue
            problem = f"the MCP server {server.name} cannot be used: {state}"
            if server.required:
                raise AgentUnavailable(problem, hint=f"check mcpServers.{server.name}, or set required to false")
            self.on_output("notice", problem)

    def _on_retry(self, event: Mapping[str, Any]) -> None:
        seconds = as_number(event.get("retry_delay_ms")) / 1000
        why = as_text(event.get("error")) or "an error"
        status = event.get("error_status")
        if status == _TOO_MANY and seconds > _PATIENCE_SECONDS:
            raise RateLimited("the rate limit of the model is reached", retry_after=seconds)
        about = f"{why} ({status})" if isinstance(status, int) else why
        self.on_output("notice", f"the model is asked again in {seconds:.1f} s: {about}")

    def _on_rate_limit(self, event: Mapping[str, Any]) -> None:
        info = as_dict(event.get("rate_limit_info"))
        if info.get("status") == "rejected" and (reset := as_number(info.get("resetsAt"))) > 0:
            self.reset = reset

    def _on_assistant(self, event: Mapping[str, Any]) -> None:
        self._know(event)
        for block in _blocks(event):
            if block.get("type") == "text":
                self.last_text = as_text(block.get("text")) or self.last_text
            elif block.get("type") == "tool_use":
                name = _canonical(block.get("name"))
                if not name:
                    continue
                remember(self.used, as_text(block.get("id")) or f"call {len(self.used)}", name)
                if name not in _OF_THE_TOOL_ITSELF:
                    self.on_output("tool", f"{name} {_target(block.get('input'), self.tree)}".rstrip())

    def _on_user(self, event: Mapping[str, Any]) -> None:
        """Calls of tools that are not there: the tool that was removed does not count as used."""
        for block in _blocks(event):
            call = as_text(block.get("tool_use_id"))
            name = self.used.get(call)
            if name is None or block.get("is_error") is not True or self.offered is None:
                continue
            if name not in self.offered and name not in _OF_THE_TOOL_ITSELF:
                self._deny(call, name, "it is not offered")

    def _on_result(self, event: dict[str, Any]) -> None:
        self._know(event)
        self.result = event
        denials = event.get("permission_denials")
        for each in denials if isinstance(denials, list) else ():
            if isinstance(each, dict) and (name := _canonical(each.get("tool_name"))):
                self._deny(as_text(each.get("tool_use_id")) or name, name, "")

    def _deny(self, call: str, name: str, why: str) -> None:
        if call in self.denied:
            return
        remember(self.denied, call, name)
        self.on_output("notice", with_detail(f"{name} was denied", one_line(why)))

    def _know(self, event: Mapping[str, Any]) -> None:
        self.session_id = as_id(event.get("session_id")) or self.session_id


_READERS: dict[str, Callable[[ClaudeReading, dict[str, Any]], None]] = {
    "system": ClaudeReading._on_system,
    "rate_limit_event": ClaudeReading._on_rate_limit,
    "assistant": ClaudeReading._on_assistant,
    "user": ClaudeReading._on_user,
    "result": ClaudeReading._on_result,
}
_FROM_CACHE = (
    *("cache_read_input_tokens", "cache_creation_input_tokens"),
    *("cacheReadInputTokens", "cacheCreationInputTokens"),
)
_NO_KEY, _TOO_MANY = 401, 429


def _blocks(event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    content = as_dict(event.get("message")).get("content")
    return (block for block in content if isinstance(block, dict)) if isinstance(content, list) else iter(())


def _canonical(name: object) -> str:
    return _CANONICAL.get(as_text(name), as_text(name))


def _target(value: object, tree: str) -> str:
    """What a tool is used on, in one short line; a file of the working tree as seen from there."""
    given = as_dict(value)
    match = next((text for key in _TARGETS if (text := as_text(given.get(key)))), "")
    return one_line(match.removeprefix(f"{tree}/"))


def _error_text(result: Mapping[str, Any]) -> str:
    errors = result.get("errors")
    listed = errors if isinstance(errors, list) else []
    return one_line(as_text(result.get("result")) or " ".join(as_text(each) for each in listed))


def _tokens(counted: Mapping[str, Any], given: str, made: str) -> Usage:
    read = sum(int(as_number(counted.get(name))) for name in (given, *_FROM_CACHE))
    return Usage(read, int(as_number(counted.get(made))))


def _summed(by_model: object, cost: float | None) -> Usage:
    """The tokens of all models together; the cost too, unless it is known already."""
    total = Usage()
    for counted in as_dict(by_model).values():
        one = _tokens(as_dict(counted), "inputTokens", "outputTokens")
        total = total.plus(Usage(one.input_tokens, one.output_tokens, as_number(as_dict(counted).get("costUSD"))))
    return total if cost is None else Usage(total.input_tokens, total.output_tokens, cost)
