"""Claude Code as an agent: words, environment and files of one question.

The tool reads no settings of the working tree, since those can name hooks, another address for the model and a helper
that prints a key; the instructions for agents that the tree holds are read. Its own scrubbing of the environment is not
used: it leaves empty files in the working tree and overrides the permission mode. A shell file unsets the keys instead.
"""

import contextlib
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from uuid import NAMESPACE_URL, UUID, uuid5

import msgspec
from msgspec import Meta

from genba.connections.agents.cli_tools.claude_events import ClaudeReading
from genba.connections.agents.command_line import CommandLineAdapter, Invocation, Reading, Totals
from genba.connections.agents.model_errors import ConversationLost
from genba.connections.agents.shared_files import read_shared, write_shared
from genba.connections.agents.tool_settings import ToolSettings, own_variables
from genba.domain.ports import AgentInstance
from genba.domain.processes import OutputListener
from genba.domain.sessions.outcomes import PermissionMode
from genba.domain.sessions.replies import AgentSession, Ask, Reply
from genba.domain.sessions.sandbox import McpServer, Provider, proxy_variables

_KEY = "ANTHROPIC_API_KEY"
_KEYS = (_KEY, "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
"""Where a key may be; all but the first are sent as bearer tokens."""
_ADDRESS = "ANTHROPIC_BASE_URL"
_PROVIDER = "https://api.anthropic.com"
_READING_TOOLS = frozenset({"Read", "Grep", "Glob", "LS"})
_EDITING_TOOLS = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})
_FREE_IN_SANDBOX = ("Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "Skill", "Task", "WebFetch", "WebSearch")
"""Tools that an agent without a list of tools may use in a sandbox without permission."""
_LONGEST_WORD = 100_000
"""Bytes that every system takes as one word of a command line."""
_ALWAYS = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "1",
    "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB": "0",
    "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1",
    "DISABLE_AUTOUPDATER": "1",
}


class ClaudeCodeSettings(ToolSettings, frozen=True, kw_only=True):
    """What `runner.adapter` takes with the type `claude-code`."""

    max_turns: Annotated[int, Meta(ge=1, description="The most turns of one question.")] | None = None


class ClaudeCodeAdapter(CommandLineAdapter):
    """One process of Claude Code per question; the conversation goes on from one to the next."""

    settings_type = ClaudeCodeSettings
    settings: ClaudeCodeSettings
    binary = "claude"
    install = "npm install -g @anthropic-ai/claude-code"
    commits = True
    aliases = {"claude-opus": "opus", "claude-sonnet": "sonnet", "claude-haiku": "haiku"}  # noqa: RUF012

    def __init__(self, settings: ClaudeCodeSettings, folder: Path) -> None:
        super().__init__(settings, folder)
        self._lost: set[str] = set()

    def provider(self, environment: Mapping[str, str]) -> Provider:
        return Provider(
            name="anthropic",
            url=self.settings.base_url or environment.get(_ADDRESS) or _PROVIDER,
            key_variables=_KEYS,
            header="x-api-key" if _key_variable(environment) == _KEY else "authorization",
        )

    async def execute(self, instance: AgentInstance, ask: Ask, on_output: OutputListener) -> Reply:
        conversation, goes_on = self._conversation(instance.session, ask)
        if ask.session_id and not goes_on:
            on_output("notice", "the conversation is not there any more; a new one is begun")
        try:
            return await super().execute(instance, ask, on_output)
        except ConversationLost as error:
            self._lost.add(conversation)
            on_output("notice", f"{error.message}; a new one is begun")
            return await super().execute(instance, ask, on_output)

    def invocation(self, session: AgentSession, ask: Ask) -> Invocation:
        files = _Files(session)
        conversation, goes_on = self._conversation(session, ask)
        servers = self.servers(session)
        system, prompt = files.system_prompt(conversation, ask, goes_on)
        args = [
            *("-p", "--output-format", "stream-json", "--verbose", "--model", self.model(ask.model)),
            *("--setting-sources", "user", "--add-dir", session.workdir),
            *(("--append-system-prompt-file", str(system)) if system.is_file() else ()),
            *("--resume" if goes_on else "--session-id", conversation),
            *_permission_args(ask, session.sandboxed, servers),
        ]
        if ask.output_schema is not None:
            prompt = _asked_for(args, ask.output_schema, prompt)
        if servers:
            args += ["--mcp-config", str(files.servers(servers))]
        args += ["--strict-mcp-config"]
        if self.settings.max_turns is not None:
            args += ["--max-turns", str(self.settings.max_turns)]
        path = self.executable(session.environment) or self.binary
        environment = self._environment(session, ask, servers, files)
        return Invocation(argv=(path, *args, *self.settings.args), environment=environment, stdin=prompt)

    def reading(self, session: AgentSession, ask: Ask, on_output: OutputListener) -> Reading:
        return ClaudeReading(
            on_output,
            totals=Totals(session.folder),
            resumed=self._conversation(session, ask)[1],
            tree=session.workdir,
            servers=self.servers(session),
            key_variable=_key_variable(os.environ),
        )

    def _conversation(self, session: AgentSession, ask: Ask) -> tuple[str, bool]:
        """The id of the conversation, and whether there is something of it to go on with.

        A question that was cut off is asked again in the conversation that it began: its work is not forgotten.
        """
        wanted = ask.session_id
        if wanted and _is_uuid(wanted) and wanted not in self._lost and _was_kept(session, wanted):
            return wanted, True
        begun = uuid5(NAMESPACE_URL, f"genba:{ask.run}:{ask.step}:{ask.iteration}")
        while str(begun) in self._lost:
            begun = uuid5(begun, "again")
        return str(begun), _was_kept(session, str(begun))

    def _environment(
        self, session: AgentSession, ask: Ask, servers: tuple[McpServer, ...], files: "_Files"
    ) -> dict[str, str]:
        own = own_variables(self.settings, servers)
        made = dict(_ALWAYS)
        if session.home:
            made |= {"HOME": session.home, "CLAUDE_CONFIG_DIR": str(_config(session))}
        if url := session.model_url or self.settings.base_url:
            made[_ADDRESS] = url
        if session.model_key:
            made[_key_variable(os.environ)] = session.model_key
        if ask.permission_mode is PermissionMode.BYPASS_PERMISSIONS:
            made["IS_SANDBOX"] = "1"  # for root too: there is a sandbox, or the user accepted the risk
        secrets = {*_KEYS, *(server.token_variable for server in servers if server.token_variable)}
        made["CLAUDE_ENV_FILE"] = str(files.shell(secrets))
        return {**made, **proxy_variables(session.proxy_url), **own}


class _Files:
    """The files of a conversation, in a folder that is the session's own. None of them holds a secret."""

    def __init__(self, session: AgentSession) -> None:
        self.folder = Path(session.folder)

    def system_prompt(self, conversation: str, ask: Ask, goes_on: bool) -> tuple[Path, str]:
        """The file of the system prompt, and the prompt.

        A conversation keeps the system prompt that it began with, so another one comes with the question.
        """
        path = self.folder / f"{conversation}.system.md"
        prompt = ask.prompt if not ask.prompt.startswith("/") else f"Your task:\n\n{ask.prompt}"
        wanted = ask.system_prompt.encode("utf-8", errors="surrogateescape")
        if not goes_on:
            write_shared(path, wanted)
        elif read_shared(path) != wanted:
            prompt = f"These are your instructions from now on:\n\n{ask.system_prompt.rstrip()}\n\n{prompt}"
        return path, prompt

    def servers(self, servers: tuple[McpServer, ...]) -> Path:
        path = self.folder / "mcp.json"
        entries = {server.name: _entry(server) for server in servers}
        write_shared(path, msgspec.json.encode({"mcpServers": entries}))
        return path

    def shell(self, secrets: set[str]) -> Path:
        """What the agent's own shell begins with: it forgets the keys."""
        path = self.folder / "shell.sh"
        write_shared(path, f"unset {' '.join(shlex.quote(name) for name in sorted(secrets))}\n".encode())
        return path


def _entry(server: McpServer) -> dict[str, Any]:
    if server.url:
        bearer = {"Authorization": f"Bearer ${{{server.token_variable}}}"} if server.token_variable else {}
        return {"type": "http", "url": server.url, "headers": bearer, "alwaysLoad": True}
    args = [*(arg for key in _KEYS for arg in ("-u", key)), *server.command]
    return {"type": "stdio", "command": "env", "args": args, "env": dict(server.environment), "alwaysLoad": True}


def _permission_args(ask: Ask, sandboxed: bool, servers: tuple[McpServer, ...]) -> list[str]:
    """Exactly the listed tools, and the others removed; without a sandbox, files only in the worktree."""
    args: list[str] = []
    listed = ask.allowed_tools
    if listed is not None:
        built_in = dict.fromkeys(_bare(tool) for tool in listed if not tool.startswith("mcp__"))
        args += ["--tools", ",".join(built_in)]
    match ask.permission_mode:
        case PermissionMode.PLAN:
            return [*args, "--permission-mode", "plan", "--settings", '{"useAutoModeDuringPlan":false}']
        case PermissionMode.BYPASS_PERMISSIONS:
            return [*args, "--dangerously-skip-permissions"]
        case PermissionMode.ACCEPT_EDITS:
            mode = "acceptEdits" if listed is None else "dontAsk"
            yes = _without_asking(listed, sandboxed, servers)
            return [*args, "--permission-mode", mode, *(("--allowedTools", *yes) if yes else ())]


def _without_asking(listed: tuple[str, ...] | None, sandboxed: bool, servers: tuple[McpServer, ...]) -> tuple[str, ...]:
    if listed is None:
        return (*(_FREE_IN_SANDBOX if sandboxed else ()), *(f"mcp__{server.name}" for server in servers))
    return tuple(dict.fromkeys(listed if sandboxed else (_in_tree(tool) for tool in listed)))


def _in_tree(tool: str) -> str:
    if tool in _EDITING_TOOLS:
        return "Edit(./**)"
    return "Read(./**)" if tool in _READING_TOOLS else tool


def _bare(tool: str) -> str:
    """A tool without what it may be used on: `Bash(git *)` is Bash."""
    return tool.partition("(")[0].strip()


def _asked_for(args: list[str], schema: dict[str, Any], prompt: str) -> str:
    """Ask for structured output by the tool's own flag; a schema that is too long for a word goes into the prompt."""
    wanted = msgspec.json.encode(schema).decode()
    if len(wanted.encode()) <= _LONGEST_WORD:
        args += ["--json-schema", wanted]
        return prompt
    return f"{prompt}\n\nAnswer with one JSON object that fits this JSON Schema:\n\n{wanted}\n"


def _key_variable(environment: Mapping[str, str]) -> str:
    """The variable that holds the user's key; the first one where none does."""
    return next((name for name in _KEYS if environment.get(name)), _KEY)


def _config(session: AgentSession) -> Path:
    return Path(session.home) / ".claude"


def _was_kept(session: AgentSession, conversation: str) -> bool:
    home = session.home or session.environment.get("HOME", "")
    with contextlib.suppress(OSError):
        return any((Path(home) / ".claude" / "projects").glob(f"*/{conversation}.jsonl"))
    return False


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
