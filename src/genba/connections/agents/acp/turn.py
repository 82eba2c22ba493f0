"""One turn of an agent that speaks the Agent Client Protocol: what it says, what it uses, what it may, what it cost."""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any

from genba.connections.agents.acp.tools import ToolCall, line_of, may_use, name_of
from genba.connections.agents.loose_values import as_count
from genba.domain.processes import OutputListener
from genba.domain.sessions.replies import Ask, Usage
from genba.domain.sessions.sandbox import McpServer

_MOST_TEXT = 4 * 1024 * 1024
_MOST_CALLS = 20_000
_YES = ("allow_once", "allow_always")
_NO = ("reject_once", "reject_always")
"""Once before always: a yes for ever is not the agent's to keep."""


class Turn:
    """Takes the updates of one turn. Nothing in them is an error by itself, whatever they hold."""

    def __init__(
        self, ask: Ask, workdir: str, sandboxed: bool, servers: tuple[McpServer, ...], on_output: OutputListener
    ) -> None:
        self.ask = ask
        self.workdir = workdir
        self.sandboxed = sandboxed
        self.servers = servers
        self.on_output = on_output
        self.begun = False
        """Whether the question was put. What an agent tells before belongs to an older turn."""
        self.spoke = asyncio.Event()
        """Set by every update."""
        self.stop_reason = ""
        self.cost: float | None = None
        """The cost of the whole session so far, where the agent reports it."""
        self.tokens = Usage()
        self._chunks: deque[str] = deque()
        """The chunks of the current text; a tool call starts a new one."""
        self._text_before = ""
        self._length = 0
        self._calls: dict[str, ToolCall] = {}

    @property
    def text(self) -> str:
        """The agent's last text, after its last tool call."""
        now = "".join(self._chunks)
        return now if now.strip() else self._text_before

    @property
    def tools_used(self) -> tuple[str, ...]:
        return self._names(denied=False)

    @property
    def tools_denied(self) -> tuple[str, ...]:
        return self._names(denied=True)

    def update(self, params: Any) -> None:
        """Take one `session/update`."""
        self.spoke.set()
        result = params.get("update") if isinstance(params, dict) else None
        if not isinstance(result, dict):
            return
        match result.get("sessionUpdate"):
            case "usage_update":
                self._take_cost(result.get("cost"))
            case "agent_message_chunk" if self.begun:
                self._say(result.get("content"))
            case "tool_call" | "tool_call_update" if self.begun:
                self._call(result)

    def permission(self, params: Any) -> dict[str, Any]:
        """Answer `session/request_permission`."""
        params = params if isinstance(params, dict) else {}
        result = params.get("toolCall")
        known = self._call(result if isinstance(result, dict) else {}, asks=True)
        call, call_id = known if known is not None else (ToolCall(), "")
        name = name_of(call, call_id, self.servers)
        yes = self.begun and known is not None and may_use(name, call, self.ask, self.workdir, self.sandboxed)
        call.denied = not yes
        if yes:
            self._tell(call, call_id)
        else:
            self.on_output("notice", f"not allowed: {line_of(name, call, self.workdir)}")
        options = params.get("options")
        option = _option(options if isinstance(options, list) else [], _YES if yes else _NO)
        return {"outcome": {"outcome": "selected", "optionId": option} if option else {"outcome": "cancelled"}}

    def finish(self, result: Mapping[str, Any]) -> None:
        """Take the answer to `session/prompt`."""
        reason = result.get("stopReason")
        self.stop_reason = reason if isinstance(reason, str) else "unknown"
        self.tokens = _tokens(result)
        for call_id, call in self._calls.items():
            self._tell(call, call_id)

    def _say(self, content: Any) -> None:
        text = content.get("text") if isinstance(content, dict) else None
        if isinstance(text, str):
            self._length += len(text)
            self._chunks.append(text)
            while self._length > _MOST_TEXT and len(self._chunks) > 1:
                self._length -= len(self._chunks.popleft())

    def _call(self, update: Mapping[str, Any], asks: bool = False) -> tuple[ToolCall, str] | None:
        call_id = update.get("toolCallId")
        if not isinstance(call_id, str) or (call_id not in self._calls and len(self._calls) >= _MOST_CALLS):
            return None
        if self._chunks:
            self._text_before, self._chunks, self._length = self.text, deque(), 0
        call = self._calls.setdefault(call_id, ToolCall())
        call.add(update)
        if not asks and update.get("status") in ("completed", "failed"):
            self._tell(call, call_id)
        return call, call_id

    def _tell(self, call: ToolCall, call_id: str) -> None:
        name = name_of(call, call_id, self.servers)
        if not call.reported and not call.denied and name:
            self.on_output("tool", line_of(name, call, self.workdir))
        call.reported = True

    def _names(self, denied: bool) -> tuple[str, ...]:
        names = (name_of(call, key, self.servers) for key, call in self._calls.items() if call.denied is denied)
        return tuple(dict.fromkeys(name for name in names if name))

    def _take_cost(self, cost: Any) -> None:
        amount = cost.get("amount") if isinstance(cost, dict) and cost.get("currency") == "USD" else None
        if isinstance(amount, int | float) and 0 <= amount < float("inf"):
            self.cost = float(amount)


def _option(options: list[Any], kinds: tuple[str, ...]) -> str:
    for kind in kinds:
        for option in options:
            if isinstance(option, dict) and option.get("kind") == kind and isinstance(option.get("optionId"), str):
                return str(option["optionId"])
    return ""


def _tokens(result: Mapping[str, Any]) -> Usage:
    usage = result.get("usage")
    if isinstance(usage, dict):
        cached = as_count(usage.get("cachedReadTokens")) + as_count(usage.get("cachedWriteTokens"))
        out = as_count(usage.get("outputTokens")) + as_count(usage.get("thoughtTokens"))
        return Usage(as_count(usage.get("inputTokens")) + cached, out)
    counted: Any = result
    for key in ("_meta", "quota", "token_count"):
        counted = counted.get(key) if isinstance(counted, dict) else None
    if isinstance(counted, dict):
        return Usage(as_count(counted.get("input_tokens")), as_count(counted.get("output_tokens")))
    return Usage()
