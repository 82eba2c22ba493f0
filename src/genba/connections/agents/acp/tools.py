"""The tools of agents that speak the Agent Client Protocol: what they are called here, and which may be used.

The protocol tells what kind of thing a call does and a title for people. Agents add their own names in various places.
"""

import os.path
from collections.abc import Mapping
from typing import Any

from genba.connections.agents.loose_values import as_text
from genba.domain.sessions.outcomes import PermissionMode
from genba.domain.sessions.replies import Ask
from genba.domain.sessions.sandbox import McpServer
from genba.domain.tool_names import is_listed

_BY_NAME = {
    "bash": "Bash",
    "run_shell_command": "Bash",
    "shell": "Bash",
    "edit": "Edit",
    "multiedit": "Edit",
    "patch": "Edit",
    "apply_patch": "Edit",
    "replace": "Edit",
    "glob": "Glob",
    "list": "Glob",
    "list_directory": "Glob",
    "grep": "Grep",
    "grep_search": "Grep",
    "search_file_content": "Grep",
    "read": "Read",
    "read_file": "Read",
    "read_many_files": "Read",
    "task": "Task",
    "todowrite": "TodoWrite",
    "todoread": "TodoWrite",
    "write_todos": "TodoWrite",
    "webfetch": "WebFetch",
    "web_fetch": "WebFetch",
    "websearch": "WebSearch",
    "google_web_search": "WebSearch",
    "write": "Write",
    "write_file": "Write",
}
"""What agents call their tools themselves."""
_BY_KIND = {
    "read": "Read",
    "edit": "Edit",
    "delete": "Edit",
    "move": "Edit",
    "search": "Grep",
    "execute": "Bash",
    "fetch": "WebFetch",
    "switch_mode": "ExitPlanMode",
}
_READING = frozenset({"read", "search", "think"})
_WRITING = frozenset({"edit", "delete", "move"})
_LONGEST_NAME = 80


class ToolCall:
    """One call, as far as the agent has reported it. Later updates add to what is known."""

    def __init__(self) -> None:
        self.kind = ""
        self.first_title = ""
        self.title = ""
        self.input: Mapping[str, Any] = {}
        self.places: tuple[str, ...] = ()
        self.makes_file = False
        self.exact = ""
        """Its name, where the agent tells that by itself."""
        self.reported = False
        self.denied = False

    def add(self, update: Mapping[str, Any]) -> None:
        self.kind = as_text(update.get("kind")) or self.kind
        self.title = as_text(update.get("title")) or self.title
        self.first_title = self.first_title or self.title
        given = update.get("rawInput")
        self.input = given if isinstance(given, dict) and given else self.input
        self.places = _places(update) or self.places
        self.makes_file = self.makes_file or _makes_file(update)
        meta = update.get("_meta")
        claude = meta.get("claudeCode") if isinstance(meta, dict) else None
        self.exact = as_text(claude.get("toolName")) if isinstance(claude, dict) else self.exact


def name_of(call: ToolCall, call_id: str, servers: tuple[McpServer, ...]) -> str:
    """The name of the tool in the words of this house; empty for mere thinking."""
    if call.exact:
        return _in_one_word(call.exact)
    for name in (call.first_title, call_id.partition("__")[0]):
        if (known := _BY_NAME.get(name.lower())) is not None:
            return known
        if foreign := _of_server(name, servers):
            return foreign
    if call.kind == "edit" and call.makes_file:
        return "Write"
    if call.kind == "think":
        return ""
    return _BY_KIND.get(call.kind) or _in_one_word(call.first_title) or "unknown"


def may_use(name: str, call: ToolCall, ask: Ask, workdir: str, sandboxed: bool) -> bool:
    """Whether a call that the agent asks for goes ahead. No person is asked, so what is not a yes is a no."""
    listed = ask.allowed_tools
    free = listed is None or not name or is_listed(name, listed)
    match ask.permission_mode:
        case PermissionMode.BYPASS_PERMISSIONS:
            return free
        case PermissionMode.PLAN:
            named = listed is not None and call.kind not in _WRITING and call.kind != "switch_mode"
            return free and (call.kind in _READING or named)
        case PermissionMode.ACCEPT_EDITS:
            if call.kind == "switch_mode" or not free:
                return False
            if sandboxed:
                return True
            inside = all(_is_inside(place, workdir) for place in call.places)
            return inside and (listed is not None or call.kind in _READING | _WRITING)


def line_of(name: str, call: ToolCall, workdir: str) -> str:
    """A call in one short line, for people."""
    target = as_text(call.input.get("command")) or next(iter(call.places), "") or call.title
    if target.startswith("/") and _is_inside(target, workdir):
        target = os.path.relpath(target, workdir)
    return " ".join(f"{name} {target}".split())[:300]


def _of_server(name: str, servers: tuple[McpServer, ...]) -> str:
    for server in servers:
        for front in (f"mcp__{server.name}__", f"mcp_{server.name}_", f"{server.name}_"):
            if name.startswith(front):
                return _in_one_word(f"mcp__{server.name}__{name.removeprefix(front)}")
    return ""


def _is_inside(place: str, workdir: str) -> bool:
    top = os.path.normpath(workdir)
    whole = os.path.normpath(os.path.join(top, place))  # noqa: PTH118  (a path as the agent wrote it; nothing is looked up)
    return whole == top or whole.startswith(f"{top}/")


def _places(update: Mapping[str, Any]) -> tuple[str, ...]:
    found = update.get("locations")
    places = [each.get("path") for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    return tuple(place for place in places if isinstance(place, str) and place)


def _makes_file(update: Mapping[str, Any]) -> bool:
    content = update.get("content")
    diffs = [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    return any(each.get("type") == "diff" and not each.get("oldText") for each in diffs)


def _in_one_word(text: str) -> str:
    return "_".join(text.split())[:_LONGEST_NAME]
