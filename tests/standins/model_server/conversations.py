"""A request in terms common to all dialects, and what a turn becomes with the tools on offer."""

import json
import shlex
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import msgspec

from tests.standins.model_server.obeying import obeyed
from tests.standins.model_server.turns import Act, Answer, Call, Mcp, Obey, Run, Say, Together, Write


class Offered(msgspec.Struct, frozen=True):
    """A tool that the client offers."""

    name: str
    namespace: str = ""
    free_text: bool = False


class Entry(msgspec.Struct, frozen=True):
    """One piece of a conversation: who speaks, whether a tool is called, and the text."""

    role: str
    """user, assistant or tool."""
    calls: bool = False
    text: str = ""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the client wants to know, and where the conversation stands."""

    model: str
    stream: bool
    system: str
    tools: tuple[Offered, ...]
    entries: tuple[Entry, ...]

    @property
    def turns(self) -> tuple[tuple[bool, ...], ...]:
        """The turns of the model so far, by round; each is True where it called a tool."""
        rounds: list[list[bool]] = [[]]
        before = ""
        for entry in self.entries:
            if entry.role == "user" and rounds[-1]:
                rounds.append([])
            elif entry.role == "assistant" and before == "assistant":
                rounds[-1][-1] = rounds[-1][-1] or entry.calls
            elif entry.role == "assistant":
                rounds[-1].append(entry.calls)
            before = entry.role
        return tuple(tuple(each) for each in rounds)

    @property
    def round(self) -> int:
        return len(self.turns) - 1

    @property
    def step(self) -> int:
        return len(self.turns[-1])

    @property
    def last_result(self) -> str:
        return next((entry.text for entry in reversed(self.entries) if entry.role == "tool"), "")

    @property
    def results(self) -> tuple[str, ...]:
        """What the tools returned, all through the conversation."""
        return tuple(entry.text for entry in self.entries if entry.role == "tool")

    @property
    def prompts(self) -> tuple[str, ...]:
        """The texts of the user, all through the conversation."""
        return tuple(entry.text for entry in self.entries if entry.role == "user")


class Text(msgspec.Struct, frozen=True):
    text: str


class Use(msgspec.Struct, frozen=True):
    tool: str
    input: dict[str, Any] | str
    namespace: str = ""

    @property
    def json(self) -> str:
        return json.dumps(self.input)


Piece = Text | Use

_PATIENCE = 30_000
"""How many milliseconds Codex waits for a command, at most."""
_WRITERS: dict[str, Callable[[str, str], dict[str, Any]]] = {
    "Write": lambda path, text: {"file_path": path, "content": text},
    "write": lambda path, text: {"filePath": path, "content": text},
    "write_file": lambda path, text: {"file_path": path, "content": text},
}
_SHELLS: dict[str, Callable[[str], dict[str, Any]]] = {
    "Bash": lambda command: {"command": command, "description": "a command of the scenario"},
    "bash": lambda command: {"command": command, "description": "a command of the scenario"},
    "exec_command": lambda command: {"cmd": command, "yield_time_ms": _PATIENCE},
    "shell": lambda command: {"command": ["bash", "-lc", command]},
    "shell_command": lambda command: {"command": command},
    "run_shell_command": lambda command: {"command": command},
}
_ANSWERS = ("StructuredOutput",)
_CODEX = ("exec_command", "write_stdin")
_CODE = Offered("exec", "functions", free_text=True)
"""The one tool of Codex where the model writes a program that uses the others."""


class NoSuchTool(Exception):
    """The client offers nothing that can do what the scenario says."""


def pieces(turn: Act | Together, asked: Asked) -> tuple[Piece, ...]:
    """What is sent for a turn. A request without any tool, such as one for a title, is answered with text."""
    if isinstance(turn, Obey):
        turn = obeyed(turn, asked.results) if asked.tools else Say("A title")
    acts = turn.acts if isinstance(turn, Together) else (turn,)
    return tuple(_piece(act, asked) for act in acts)


def _piece(act: Act, asked: Asked) -> Piece:
    match act:
        case Say(text):
            return Text(text.replace("{last_result}", asked.last_result))
        case Answer(value):
            tool = _first(asked, _ANSWERS)
            return Use(tool.name, value) if tool else Text(json.dumps(value))
        case Call(tool=name, input=given, namespace=namespace):
            by_name = namespace or _CODE not in asked.tools or _first(asked, (name,))
            return Use(name, given, namespace) if by_name else _in_code(name, given)
        case Write() | Run() | Mcp() if not asked.tools:
            return Text("A title")
        case Mcp():
            return _of_server(act, asked)
        case Write(path, text) if tool := _first(asked, _WRITERS):
            return Use(tool.name, _WRITERS[tool.name](path, text), tool.namespace)
        case Write(path, text):
            return _shell(_writing(path, text), asked)
        case Run(command):
            return _shell(command, asked)
        case Obey():
            raise TypeError("who obeys does nothing else in the same turn")


def _of_server(act: Mcp, asked: Asked) -> Use:
    """A tool of a server that is not listed is one that the client loads when it is used."""
    namespace = f"mcp__{act.server}"
    if _CODE in asked.tools:
        return _in_code(f"{namespace}__{act.tool}", act.input)
    if any(tool.name == act.tool and tool.namespace == namespace for tool in asked.tools) or _first(asked, _CODEX):
        return Use(act.tool, act.input, namespace)
    names = (f"{namespace}__{act.tool}", f"mcp_{act.server}_{act.tool}", f"{act.server}_{act.tool}")
    tool = _first(asked, names)
    return Use(tool.name if tool else names[0], act.input)


def _in_code(tool: str, given: dict[str, Any] | str) -> Use:
    program = f"// @exec: {json.dumps({'yield_time_ms': _PATIENCE})}\ntext(await tools.{tool}({json.dumps(given)}))"
    return Use(_CODE.name, program, _CODE.namespace)


def _shell(command: str, asked: Asked) -> Use:
    if _CODE in asked.tools:
        return _in_code("exec_command", _SHELLS["exec_command"](command))
    tool = _first(asked, _SHELLS)
    if tool is None:
        offered = ", ".join(each.name for each in asked.tools)
        raise NoSuchTool(f"none of the tools on offer runs a command: {offered}")
    return Use(tool.name, _SHELLS[tool.name](command), tool.namespace)


def _writing(path: str, text: str) -> str:
    folder = shlex.quote(str(PurePosixPath(path).parent))
    return f"mkdir -p {folder} && printf %s {shlex.quote(text)} > {shlex.quote(path)}"


def _first(asked: Asked, names: Any) -> Offered | None:
    offered = {tool.name: tool for tool in asked.tools}
    return next((offered[name] for name in names if name in offered), None)


def text_of(content: Any) -> str:
    """The text in a content, in whichever of the usual shapes it comes."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(text_of, content)))
    if isinstance(content, dict):
        return text_of(content.get("text") or content.get("content") or content.get("output") or "")
    return ""
