"""Entries for this server in the configuration files of MCP clients.

Nothing that other people wrote is lost, and no secret is written. A file that cannot be changed without losing
something is left as it is.
"""

import re
import tomllib
from enum import StrEnum
from typing import Any

import msgspec

NAME = "genba"
PASSKEY = "GENBA_PASSKEY"
AGENT = "GENBA_AGENT_ID"
HEADER = "Genba-Agent"
_HEADER = re.compile(r"^[ \t]*\[\[?[ \t]*(?P<name>[^\]#\n]+?)[ \t]*\]", re.MULTILINE)
_ABOUT_WHAT_FOLLOWS = re.compile(r"(?:^[ \t]*(?:#.*)?\n)+\Z", re.MULTILINE)
_OWN = re.compile(r"""^(["']?)mcp_servers\1\s*\.\s*(["']?)genba\2(\s*\.|$)""")


class Client(StrEnum):
    """MCP clients with a known configuration file."""

    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    OPENCODE = "opencode"


class CannotMergeError(Exception):
    """Why a file is left as it is."""


class ServerAddress(msgspec.Struct, frozen=True, kw_only=True):
    """How a client reaches the server: by starting it, or by its address."""

    command: str = "genba"
    url: str = ""
    agent: str = ""
    """Who it says it is, which is no secret; without it that is taken from its environment too."""


def entry(client: Client, reached: ServerAddress) -> dict[str, Any]:
    """What the client keeps under the name of this server. The passkey is taken from its environment each time."""
    match client:
        case Client.CLAUDE_CODE if reached.url:
            headers = {"Authorization": f"Bearer ${{{PASSKEY}:-}}", HEADER: reached.agent or f"${{{AGENT}:-}}"}
            return {"type": "http", "url": reached.url, "headers": headers}
        case Client.CLAUDE_CODE:
            passed = {PASSKEY: f"${{{PASSKEY}:-}}", AGENT: reached.agent or f"${{{AGENT}:-}}"}
            return {"command": reached.command, "args": ["mcp"], "env": passed}
        case Client.CODEX if reached.url:
            named = (
                {"http_headers": {HEADER: reached.agent}} if reached.agent else {"env_http_headers": {HEADER: AGENT}}
            )
            return {"url": reached.url, "bearer_token_env_var": PASSKEY, **named}
        case Client.CODEX:
            passed_on = {"env_vars": [PASSKEY], "env": {AGENT: reached.agent}} if reached.agent else {}
            return {"command": reached.command, "args": ["mcp"], "env_vars": [PASSKEY, AGENT], **passed_on}
        case Client.OPENCODE if reached.url:
            headers = {"Authorization": f"Bearer {{env:{PASSKEY}}}", HEADER: reached.agent or f"{{env:{AGENT}}}"}
            return {"type": "remote", "url": reached.url, "oauth": False, "headers": headers, "enabled": True}
        case Client.OPENCODE:
            passed = {PASSKEY: f"{{env:{PASSKEY}}}", AGENT: reached.agent or f"{{env:{AGENT}}}"}
            return {"type": "local", "command": [reached.command, "mcp"], "environment": passed, "enabled": True}


def section(client: Client) -> str:
    """Where in its file a client keeps servers."""
    return {Client.CLAUDE_CODE: "mcpServers", Client.CODEX: "mcp_servers", Client.OPENCODE: "mcp"}[client]


def snippet(client: Client, value: dict[str, Any]) -> str:
    """The entry as it stands in an otherwise empty file."""
    if client is Client.CODEX:
        return _toml(value)
    return _json({section(client): {NAME: value}}, "  ")


def merged(client: Client, text: str, value: dict[str, Any]) -> str:
    """The whole file with the entry in it; the very same text where it is there already."""
    return _merged_toml(text, value) if client is Client.CODEX else _merged_json(text, section(client), value)


def _merged_json(text: str, name: str, value: dict[str, Any]) -> str:
    try:
        whole = msgspec.json.decode(text) if text.strip() else {}
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise CannotMergeError("it is not plain JSON: it may have comments, which would be lost") from None
    servers = whole.get(name, {}) if isinstance(whole, dict) else None
    if not isinstance(servers, dict):
        raise CannotMergeError(f"{name} in it is not an object")
    if servers.get(NAME) == value:
        return text
    whole[name] = {**servers, NAME: value}
    indent = re.search(r"^[ \t]+", text, re.MULTILINE)
    return _json(whole, indent[0] if indent else "  ")


def _json(value: Any, indent: str) -> str:
    flat = msgspec.json.encode(value)
    written = msgspec.json.format(flat, indent=len(indent) if indent.strip(" ") == "" else 1).decode()
    if "\t" in indent:
        written = re.sub(r"^ +", lambda found: "\t" * len(found[0]), written, flags=re.MULTILINE)
    return written + "\n"


def _merged_toml(text: str, value: dict[str, Any]) -> str:
    """Genba's tables are written again at the end; every other line stays as it is."""
    before = _read_toml(text)
    servers = before.get("mcp_servers", {})
    if isinstance(servers, dict) and servers.get(NAME) == value:
        return text
    kept = _without_own(text)
    glue = "" if not kept.strip() else ("\n" if kept.endswith("\n") else "\n\n")
    after = kept + glue + _toml(value)
    expected = {**before, "mcp_servers": {**(servers if isinstance(servers, dict) else {}), NAME: value}}
    try:
        found = tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        found = {}
    if found != expected:
        raise CannotMergeError("its mcp_servers are written in a way that cannot be added to")
    return after


def _read_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        raise CannotMergeError("it is not TOML") from None


def _without_own(text: str) -> str:
    """The text without the tables of this server. Whether that was right is seen by reading it again."""
    headers = list(_HEADER.finditer(text))
    kept, at = "", 0
    for number, header in enumerate(headers):
        end = headers[number + 1].start() if number + 1 < len(headers) else len(text)
        if _OWN.match(header["name"]):
            kept += text[at : header.start()]
            output = _ABOUT_WHAT_FOLLOWS.search(text, header.start(), end)
            at = output.start() if output else end
    return kept + text[at:]


def _toml(value: dict[str, Any]) -> str:
    lines = [f"[mcp_servers.{NAME}]"]
    lines += [f"{key} = {_toml_value(inner)}" for key, inner in value.items()]
    return "\n".join(lines) + "\n"


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml_value(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml_value(each) for each in value) + "]"
    return msgspec.json.encode(value).decode()
