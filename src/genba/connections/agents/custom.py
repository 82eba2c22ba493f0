"""Any command as an agent: the prompt goes in by stdin or a file, the reply comes out of stdout or a JSON file."""

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from genba.connections.agents.one_shot import OneShotAdapter, OneShotInstance, reply_of_command
from genba.connections.agents.shared_files import read_shared, write_shared
from genba.connections.removal import remove_tree
from genba.domain.convert import too_deep
from genba.domain.decoding import reader
from genba.domain.errors import AgentUnavailable, NotFoundError, RateLimited
from genba.domain.ports import AgentInstance
from genba.domain.processes import Command, Exit, OutputListener
from genba.domain.sessions.replies import AgentSession, Ask, Reply, Usage

_LONGEST = 100_000
"""Bytes of a command and its variables. Every system takes that many, and prompts travel by other ways."""
_LONGEST_SESSION_ID = 1000
_PLACEHOLDER = re.compile(r"""(["']?)\{([a-z_]+)\}\1""")
_NAME_IN_BRACES = re.compile(r"\{([a-z_]+)\}")
_PLACEHOLDERS = frozenset({
    "prompt_file", "system_prompt_file", "reply_file", "schema_file", "model", "session_id", "permission_mode",
    "allowed_tools",
})  # fmt: skip
_VariableName = Annotated[str, Meta(pattern="^[^=]+$")]


class CustomSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What `runner.adapter` takes with the type `custom`."""

    type: str
    command: Annotated[
        str | tuple[str, ...],
        Meta(
            description="A shell line, or a list of words. {prompt_file}, {system_prompt_file}, {reply_file}, "
            "{schema_file}, {model}, {session_id}, {permission_mode} and {allowed_tools} are filled in, "
            "in a shell line with the quotes that they need."
        ),
    ]
    env: Annotated[dict[_VariableName, str], Meta(description="Variables for the command.")] = {}
    pass_env: Annotated[
        tuple[_VariableName, ...], Meta(description="Variables of your own environment that the command may see.")
    ] = ()
    commit: Annotated[
        bool, Meta(description="Commit what the command changed after each answer, with the agent as author.")
    ] = False


class ReplyFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The JSON that a command may write to {reply_file}."""

    text: str = ""
    structured: dict[str, Any] | None = None
    session_id: str | None = None
    usage: Usage = Usage()
    tools_used: tuple[str, ...] = ()
    retry_after: float | None = None
    """Set when the provider's rate limit was hit: seconds until it is worth asking again."""


class CustomAdapter(OneShotAdapter):
    """One process per question."""

    settings_type = CustomSettings

    def __init__(self, settings: CustomSettings, folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        self.commits = settings.commit

    def problem(self, environment: Mapping[str, str]) -> str:
        """Why the command could not be started by someone with this environment; known before anything is touched."""
        command, env = self.settings.command, self.settings.env
        args = (command,) if isinstance(command, str) else command
        if not args or not args[0].strip():
            return "expected a command, got nothing"
        if sum(len(arg.encode()) + 1 for arg in (*args, *env, *env.values())) > _LONGEST:
            return f"with its variables it is longer than {_LONGEST} bytes"
        if isinstance(command, str) and (inside := _inside_quotes(command)):
            return f"{{{inside}}} stands inside a longer quoted text, where a shell would read what it is filled with"
        arg = args[0]
        in_tree = "/" in arg and not arg.startswith("/")
        if isinstance(command, str) or in_tree or "{" in arg or self._is_found(arg, environment):
            return ""
        return f"the command of the agent is not there: {arg}"

    async def start(self, session: AgentSession) -> AgentInstance:
        command = self.settings.command
        if not isinstance(command, str) and not self._is_found(command[0], session.environment, session.workdir):
            raise NotFoundError(f"the command of the agent is not there: {command[0]}", hint="check runner.adapter")
        return OneShotInstance(session)

    async def execute(self, instance: AgentInstance, ask: Ask, on_output: OutputListener) -> Reply:
        shot = OneShotInstance.of(instance)
        files = _Files(Path(shot.session.folder), ask)
        argv, by_file = self._argv(ask, files)
        whole = ask.prompt if files.system_by_file else _with_system(ask)
        files.write(whole)
        with shot.running():
            done = await shot.session.processes.run(
                Command(
                    argv=argv,
                    workdir=shot.session.workdir,
                    environment=self._environment(shot.session, ask),
                    stdin="" if by_file else whole,
                    timeout_seconds=ask.timeout_seconds,
                    idle_seconds=ask.idle_seconds,
                    output_bytes=ask.output_bytes,
                    mark=ask.run,
                ),
                on_output,
            )
        return self._reply(done, files)

    def _argv(self, ask: Ask, files: "_Files") -> tuple[tuple[str, ...], bool]:
        command = self.settings.command
        args = ("sh", "-c", command) if isinstance(command, str) else command
        joined = " ".join(args)
        files.system_by_file = "{system_prompt_file}" in joined
        values = {
            "prompt_file": str(files.prompt),
            "system_prompt_file": str(files.system),
            "reply_file": str(files.reply),
            "schema_file": str(files.schema),
            "model": ask.model,
            "session_id": ask.session_id or "",
            "permission_mode": str(ask.permission_mode),
            "allowed_tools": ",".join(ask.allowed_tools or ()),
        }
        fill = _in_shell if isinstance(command, str) else _in_argument
        return tuple(fill(arg, values) for arg in args), "{prompt_file}" in joined

    def _environment(self, session: AgentSession, ask: Ask) -> dict[str, str]:
        values = {
            "GENBA_MODEL": ask.model,
            "GENBA_STEP": ask.step,
            "GENBA_ITERATION": str(ask.iteration),
            "GENBA_PERMISSION_MODE": str(ask.permission_mode),
            "GENBA_ALLOWED_TOOLS": ",".join(ask.allowed_tools or ()),
            "GENBA_SESSION_ID": ask.session_id or "",
        }
        return {**self._variables(session.environment), **values}

    def _variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        passed = {name: os.environ[name] for name in self.settings.pass_env if name in os.environ}
        return {**environment, **passed, **self.settings.env}

    def _is_found(self, arg: str, environment: Mapping[str, str], workdir: str = "") -> bool:
        """Whether a command is there: on the path that it will be looked for on, or in the working tree."""
        if "/" in arg:
            return _can_run(Path(workdir) / arg)
        folders = self._variables(environment).get("PATH", os.defpath).split(os.pathsep)
        return any(_can_run(Path(folder) / arg) for folder in folders)

    def _reply(self, done: Exit, files: "_Files") -> Reply:
        result = files.read_reply()
        if result is not None and result.retry_after is not None:
            if result.retry_after <= 0:
                raise AgentUnavailable("the provider's rate limit is reached, and no time to come back is named")
            raise RateLimited("the provider's rate limit is reached", retry_after=result.retry_after)
        plain = reply_of_command(done)
        if result is None:
            return plain
        return msgspec.structs.replace(
            plain,
            text=result.text,
            structured=result.structured,
            session_id=result.session_id,
            usage=result.usage,
            tools_used=result.tools_used,
        )


def _can_run(path: Path) -> bool:
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except (OSError, ValueError):
        return False


def _inside_quotes(line: str) -> str:
    """The first placeholder that stands in a quoted text together with something else."""
    quote, opened = "", -1
    at = 0
    while at < len(line):
        match = _NAME_IN_BRACES.match(line, at)
        if match is not None and match[1] in _PLACEHOLDERS and quote:
            alone = opened == at - 1 and line[match.end() : match.end() + 1] == quote
            if not alone:
                return match[1]
        letter = line[at]
        if letter == "\\" and quote != "'":
            at += 2
            continue
        if letter == quote:
            quote = ""
        elif letter in "\"'" and not quote:
            quote, opened = letter, at
        at += 1
    return ""


def _in_argument(arg: str, values: Mapping[str, str]) -> str:
    """A word that no shell reads, filled in."""
    return _PLACEHOLDER.sub(lambda match: _plain(match, values), arg)


def _in_shell(line: str, values: Mapping[str, str]) -> str:
    """A shell line, filled in: what a value contains is never read by the shell, with quotes around it or without."""

    def quoted(match: re.Match[str]) -> str:
        value = values.get(match[2], "")
        safe = value if not value else shlex.quote(value)
        return _plain(match, values) if safe == value else safe

    return _PLACEHOLDER.sub(quoted, line)


def _plain(match: re.Match[str], values: Mapping[str, str]) -> str:
    quote, name = match[1], match[2]
    return f"{quote}{values[name]}{quote}" if name in values else match[0]


class _Files:
    """The files of one question, in a folder that is the session's own."""

    def __init__(self, folder: Path, ask: Ask) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.ask = ask
        self.prompt = folder / f"{ask.number:04d}.prompt.md"
        self.system = folder / f"{ask.number:04d}.system.md"
        self.reply = folder / f"{ask.number:04d}.reply.json"
        self.schema = folder / f"{ask.number:04d}.schema.json"
        self.system_by_file = False

    def write(self, prompt: str) -> None:
        write_shared(self.prompt, prompt.encode("utf-8", "surrogateescape"))
        if self.system_by_file:
            write_shared(self.system, self.ask.system_prompt.encode("utf-8", "surrogateescape"))
        write_shared(self.schema, msgspec.json.encode(self.ask.output_schema or {}))
        remove_tree(self.reply)

    def read_reply(self) -> ReplyFile | None:
        content = read_shared(self.reply)
        if content is None:
            return None
        try:
            output = reader(ReplyFile).decode(content)
        except (ValueError, RecursionError) as error:
            raise AgentUnavailable(f"the reply file of the agent is not valid: {error}") from error
        if wrong := _wrong(output):
            raise AgentUnavailable(f"the reply file of the agent is not valid: {wrong}")
        return output


def _wrong(reply: ReplyFile) -> str:
    """Why a reply that has the right shape cannot be used all the same."""
    if min(reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cost_usd) < 0:
        return "usage is less than nothing"
    if too_deep(reply.structured):
        return "structured is nested too deeply"
    session = reply.session_id or ""
    if "\0" in session or len(session) > _LONGEST_SESSION_ID:
        return "session_id is not a short text"
    return ""


def _with_system(ask: Ask) -> str:
    return f"{ask.system_prompt.rstrip()}\n\n{ask.prompt}" if ask.system_prompt.strip() else ask.prompt
