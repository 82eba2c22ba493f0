"""Codex as an agent: words, environment and files of one question.

Codex has no list of tools. What an agent may not do is kept from it in three ways: its own sandbox where there is no
are around it; a hook that is asked before each command and each patch; and what is seen in its events. It reads files
with commands, so without `Bash` those that only read still run.

The settings of the working tree are not read: they can name hooks and servers, which would run outside of its sandbox.
The key is not in the environment of the agent's commands. Who can read the memory of Codex itself, as every process of
the same user in the sandbox can, can find it: with a broker it is a token that is valid for this session alone.
"""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Meta

from genba.connections.agents.cli_tools.codex_events import CodexReading
from genba.connections.agents.cli_tools.prices import Price
from genba.connections.agents.cli_tools.strict_schema import strict
from genba.connections.agents.command_line import CommandLineAdapter, Invocation, Reading, Totals
from genba.connections.agents.model_errors import ConversationLost
from genba.connections.agents.private_home import private_folder
from genba.connections.agents.read_only_commands import pattern
from genba.connections.agents.shared_files import digest, read_shared, write_shared
from genba.connections.agents.tool_settings import ToolSettings, Word, own_variables
from genba.domain.decoding import reader
from genba.domain.ports import AgentInstance
from genba.domain.processes import OutputListener
from genba.domain.sessions.outcomes import PermissionMode
from genba.domain.sessions.replies import AgentSession, Ask, Reply
from genba.domain.sessions.sandbox import McpServer, Provider, proxy_variables

_KEYS = ("OPENAI_API_KEY", "CODEX_API_KEY")
_KEY_INSIDE = "GENBA_MODEL_KEY"
_ADDRESS = "OPENAI_BASE_URL"
_PROVIDER = "https://api.openai.com/v1"
_WRITING_TOOLS = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})
_READING_TOOLS = frozenset({"Read", "Grep", "Glob", "LS"})
_LONGEST_WORD = 100_000
"""Bytes that every system takes as one word of a command line."""
_SWITCHED_OFF = ("plugins", "apps", "unbounded_connection_retries", "goals")
"""They ask the network besides the model, wait for ever, or go on without being asked."""
_ALWAYS = {
    "analytics.enabled": False,
    "check_for_update_on_startup": False,
    "approval_policy": "never",
    "sandbox_workspace_write.exclude_slash_tmp": True,
}


class CodexSettings(ToolSettings, frozen=True, kw_only=True):
    """What `runner.adapter` takes with the type `codex`."""

    key_env: Annotated[str, Meta(description="The variable of your environment that holds the provider's key.")] = ""
    prices: Annotated[dict[Word, Price], Meta(description="What each model costs; Codex itself tells no cost.")] = {}  # noqa: RUF012
    reasoning_effort: Annotated[str, Meta(description="How much the model thinks: minimal, low, medium, high.")] = ""


class CodexAdapter(CommandLineAdapter):
    """One process of Codex per question; the conversation goes on from one to the next."""

    settings_type = CodexSettings
    settings: CodexSettings
    binary = "codex"
    install = "npm install -g @openai/codex"
    commits = True
    aliases = {  # noqa: RUF012
        **dict.fromkeys(("opus", "claude-opus"), "gpt-6.1-sol"),
        **dict.fromkeys(("sonnet", "claude-sonnet"), "gpt-6.1-terra"),
        **dict.fromkeys(("haiku", "claude-haiku"), "gpt-6-luna"),
    }

    def provider(self, environment: Mapping[str, str]) -> Provider:
        return Provider(
            name="openai",
            url=self.settings.base_url or environment.get(_ADDRESS) or _PROVIDER,
            key_variables=(self.settings.key_env,) if self.settings.key_env else _KEYS,
        )

    async def execute(self, instance: AgentInstance, ask: Ask, on_output: OutputListener) -> Reply:
        if ask.session_id and not _is_uuid(ask.session_id):
            on_output("notice", "the conversation is not there any more; a new one is begun")
            ask = msgspec.structs.replace(ask, session_id=None)
        try:
            reply = await super().execute(instance, ask, on_output)
        except ConversationLost as error:
            on_output("notice", f"{error.message}; a new one is begun")
            reply = await super().execute(instance, msgspec.structs.replace(ask, session_id=None), on_output)
        if reply.session_id:
            _Files(instance.session).remember(reply.session_id, Limits(ask).instructions())
        return reply

    def invocation(self, session: AgentSession, ask: Ask) -> Invocation:
        files = _Files(session)
        servers = self.servers(session)
        limits = Limits(ask)
        config: dict[str, Any] = {**_ALWAYS, **_own_model(self.settings, session), **limits.config(session.sandboxed)}
        config["projects"] = {session.workdir: {"trust_level": "untrusted"}}
        config["shell_environment_policy.exclude"] = sorted(self._secrets(servers))
        if self.settings.reasoning_effort:
            config["model_reasoning_effort"] = self.settings.reasoning_effort
        if offered := {server.name: files.server(server, ask) for server in servers if _offers(server, ask)}:
            config["mcp_servers"] = offered
        instructions, prompt = limits.instructions(), ask.prompt
        if ask.session_id and not files.knows(ask.session_id, instructions):
            prompt = f"These are your instructions from now on:\n\n{instructions}\n\n{prompt}"
        elif len(instructions.encode()) <= _LONGEST_WORD:
            config["developer_instructions"] = instructions
        elif not ask.session_id:
            prompt = f"{instructions}\n\n{prompt}"
        args = ["exec", *(("resume",) if ask.session_id else ()), "--json", "--skip-git-repo-check"]
        args += ["-m", self.model(ask.model)]
        args += [arg for name in (*_SWITCHED_OFF, *limits.switched_off()) for arg in ("--disable", name)]
        args += [arg for name, value in config.items() for arg in ("-c", f"{name}={toml(value)}")]
        if ask.permission_mode is PermissionMode.BYPASS_PERMISSIONS:
            args += ["--dangerously-bypass-approvals-and-sandbox"]
        if limits.guarded:
            args += ["--dangerously-bypass-hook-trust"]
        if ask.output_schema is not None and (wanted := strict(ask.output_schema)) is not None:
            args += ["--output-schema", str(files.schema(wanted))]
        path = self.executable(session.environment) or self.binary
        args += [*self.settings.args, *((ask.session_id,) if ask.session_id else ()), "-"]
        return Invocation(argv=(path, *args), environment=self._environment(session, servers), stdin=prompt)

    def reading(self, session: AgentSession, ask: Ask, on_output: OutputListener) -> Reading:
        prices = self.settings.prices
        return CodexReading(
            on_output,
            totals=Totals(session.folder),
            resumed=ask.session_id,
            schema=ask.output_schema if ask.output_schema is not None and strict(ask.output_schema) else None,
            reads=Limits(ask).reads,
            price=prices.get(ask.model) or prices.get(self.model(ask.model)),
            key_variable=self._key_variable(),
        )

    def _key_variable(self) -> str:
        known = (self.settings.key_env,) if self.settings.key_env else _KEYS
        return next((name for name in known if os.environ.get(name)), known[0])

    def _secrets(self, servers: tuple[McpServer, ...]) -> set[str]:
        """The variables that are not passed on to the commands of the agent."""
        named = {server.token_variable for server in servers if server.token_variable}
        return {_KEY_INSIDE, *_KEYS, *named} | ({self.settings.key_env} if self.settings.key_env else set())

    def _environment(self, session: AgentSession, servers: tuple[McpServer, ...]) -> dict[str, str]:
        made: dict[str, str] = {}
        if session.home:
            # codex cannot run commands when its own folder is below the one for temporary files
            own, temporary = (str(private_folder(session.home, name)) for name in (".codex", "tmp"))
            made = {"HOME": session.home, "CODEX_HOME": own, "TMPDIR": temporary}
        if session.model_key:
            made[_KEY_INSIDE] = session.model_key
        return {**made, **proxy_variables(session.proxy_url), **own_variables(self.settings, servers)}


class Limits:
    """What one question may do, in the words of Codex."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        listed = None if ask.allowed_tools is None else frozenset(tool.partition("(")[0] for tool in ask.allowed_tools)
        plans = ask.permission_mode is PermissionMode.PLAN
        self.listed = listed
        self.runs = not plans and (listed is None or "Bash" in listed)
        self.edits = not plans and (listed is None or bool(_WRITING_TOOLS & listed))
        self.looks = listed is None or self.runs or bool(_READING_TOOLS & listed)
        self.guarded = not (self.runs and self.edits)

    @property
    def reads(self) -> str | None:
        """What a command that only reads counts as; None where it is a command like any other."""
        if self.runs:
            return None
        return next((tool for tool in self.ask.allowed_tools or () if tool in _READING_TOOLS), "Read")

    def config(self, sandboxed: bool) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if self.ask.permission_mode is not PermissionMode.BYPASS_PERMISSIONS:
            made["sandbox_mode"] = self._sandbox(sandboxed)
        if self.guarded:
            made["hooks.PreToolUse"] = self._hooks()
            made["allow_login_shell"] = False
        if self.listed is not None and "WebSearch" not in self.listed:
            made["web_search"] = "disabled"
        if self.listed is not None and "Task" not in self.listed:
            made["agents.enabled"] = False
        return made

    def switched_off(self) -> tuple[str, ...]:
        off = () if self.looks else ("shell_tool", "view_image")
        return (*off, "multi_agent") if self.listed is not None and "Task" not in self.listed else off

    def instructions(self) -> str:
        message = self.ask.system_prompt.rstrip()
        if self.runs or not self.looks:
            return message
        rule = (
            "Commands may only read here: ls, cat, head, tail, sed -n, grep, rg, find, wc, git status, log, diff, show."
        )
        return f"{message}\n\n{rule}" if message else rule

    def _sandbox(self, sandboxed: bool) -> str:
        """In a sandbox Codex gets no second one: it cannot be built there, and every command would fail."""
        if sandboxed:
            return "danger-full-access"
        return "workspace-write" if self.runs or self.edits else "read-only"

    def _hooks(self) -> list[dict[str, Any]]:
        """Asked before a tool is used; whatever goes wrong in it is a no."""
        hooks = []
        if not self.runs:
            known = rf'"tool_input":\{{"command":"{pattern(in_json=True)}"\}}'
            hooks.append(
                _hook("Bash", f"grep -Eq {shlex.quote(known)} || {_no('Bash', 'commands may only read here')}")
            )
        if not self.edits:
            hooks.append(_hook("apply_patch|Edit|Write", _no("Edit", "files may not be changed here")))
        return hooks


def _no(tool: str, why: str) -> str:
    return f"{{ echo {shlex.quote(f'{tool} is not allowed: {why}')} >&2; exit 2; }}"


def _hook(matcher: str, line: str) -> dict[str, Any]:
    return {"matcher": matcher, "hooks": [{"type": "command", "command": line, "timeout": 30}]}


class _Files:
    """The files of a question, in a folder that is the session's own. None is on a command line that others see."""

    def __init__(self, session: AgentSession) -> None:
        self.folder = Path(session.folder)

    def schema(self, wanted: dict[str, Any]) -> Path:
        path = self.folder / "schema.json"
        write_shared(path, msgspec.json.encode(wanted))
        return path

    def knows(self, conversation: str, instructions: str) -> bool:
        """Whether these are the last instructions of a conversation: it keeps those that it began with."""
        return self._instructions().get(conversation) == digest(instructions)

    def remember(self, conversation: str, instructions: str) -> None:
        known = self._instructions()
        if known.get(conversation) != digest(instructions):
            known[conversation] = digest(instructions)
            write_shared(self.folder / "instructions.json", msgspec.json.encode(known))

    def _instructions(self) -> dict[str, str]:
        try:
            return reader(dict[str, str]).decode(read_shared(self.folder / "instructions.json") or b"{}")
        except (ValueError, RecursionError):
            return {}

    def server(self, server: McpServer, ask: Ask) -> dict[str, Any]:
        made: dict[str, Any] = {"required": server.required, "default_tools_approval_mode": "approve"}
        if (tools := _tools_of(server, ask)) is not None:
            made["enabled_tools"] = list(tools)
        if server.patience_seconds:
            made["tool_timeout_sec"] = server.patience_seconds
        if server.url:
            bearer = {"bearer_token_env_var": server.token_variable} if server.token_variable else {}
            return {"url": server.url, **bearer, **made}
        command = server.command
        if server.environment:
            path = self.folder / f"{server.name}.env.sh"
            lines = [f"export {name}={shlex.quote(value)}\n" for name, value in server.environment.items()]
            write_shared(path, "".join(lines).encode())
            command = ("sh", "-c", '. "$0" && exec "$@"', str(path), *command)
        return {"command": command[0], "args": list(command[1:]), **made}


def _own_model(settings: CodexSettings, session: AgentSession) -> dict[str, Any]:
    """Where the model is; empty where a login of the user says it, which is good for no provider but Codex's own."""
    url = session.model_url or settings.base_url
    if url in ("", _PROVIDER) and not session.model_key:
        return {}
    provider: dict[str, Any] = {"name": "model", "base_url": url or _PROVIDER, "wire_api": "responses"}
    provider |= {"request_max_retries": 1, "stream_max_retries": 1}
    if session.model_key:
        provider["env_key"] = _KEY_INSIDE
    return {"model_provider": "genba", "model_providers.genba": provider}


def _tools_of(server: McpServer, ask: Ask) -> tuple[str, ...] | None:
    """The tools of a server that are listed; None is all of them."""
    whole = f"mcp__{server.name}"
    if ask.allowed_tools is None or whole in ask.allowed_tools or f"{whole}__*" in ask.allowed_tools:
        return None
    return tuple(tool.removeprefix(f"{whole}__") for tool in ask.allowed_tools if tool.startswith(f"{whole}__"))


def _offers(server: McpServer, ask: Ask) -> bool:
    return _tools_of(server, ask) != ()


def toml(value: Any) -> str:
    """A value as TOML, on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            return "{" + ",".join(f"{_quoted(name)}={toml(one)}" for name, one in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(toml(one) for one in value) + "]"
        case str():
            return _quoted(value)
        case _:
            return str(value)


def _quoted(text: str) -> str:
    """A text as TOML. Surrogates are replaced: TOML has no form for bytes that are no text."""
    clean = text.encode("utf-8", errors="replace").decode()
    return msgspec.json.encode(clean).decode().replace("\x7f", "\\u007f")


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
