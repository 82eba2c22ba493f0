"""Any agent that speaks the Agent Client Protocol over its stdin and stdout: one process and one turn per question."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from genba.connections.agents.acp.conversation import Question, Talk
from genba.connections.agents.acp.known_agents import KnownAgent, known_agent
from genba.connections.agents.acp.turn import Turn
from genba.connections.agents.command_line import CommandLineAdapter, Totals
from genba.connections.agents.one_shot import OneShotInstance, check_end, last_output, with_detail
from genba.connections.agents.private_home import private_folder
from genba.connections.agents.shared_files import digest, read_shared, write_shared
from genba.connections.agents.tool_reports import Marks
from genba.connections.agents.tool_settings import ToolSettings, VariableName, Word, own_variables
from genba.domain.decoding import reader
from genba.domain.errors import AgentUnavailable, BoundaryViolationError, UnrecoverableError
from genba.domain.ports import AgentInstance
from genba.domain.processes import Command, Exit, OutputListener
from genba.domain.sessions.outcomes import PermissionMode
from genba.domain.sessions.replies import AgentSession, Ask, Reply, Usage
from genba.domain.sessions.sandbox import McpServer, Provider, proxy_variables

_PLACES = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
}
_BEFORE_IT_WAS_DONE = {
    "max_tokens": "its answer was cut off at the most tokens that it may have",
    "max_turn_requests": "it asked its model as often as it may in one turn",
}
"""Ends after which the work is there to be judged, and the session can go on."""


class ProviderSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Where the model of an agent is, and which variables tell the agent so."""

    url: Annotated[Word, Meta(description="The address of the provider.")]
    key_env: Annotated[
        VariableName, Meta(description="The variable that holds your key, and that the agent looks for it in.")
    ]
    url_env: Annotated[
        VariableName, Meta(description="The variable that the agent looks for the address of its model in.")
    ]
    header: Annotated[Word, Meta(description="The header of a request that carries the key.")] = "authorization"


class AcpSettings(ToolSettings, frozen=True, kw_only=True):
    """What `runner.adapter` takes with the type `acp`."""

    provider: ProviderSettings | None = None
    mode: Annotated[
        str,
        Meta(description="A mode of the agent itself, as it calls it. With `plan` it is the agent's own plan mode."),
    ] = ""


class AcpAdapter(CommandLineAdapter):
    """A translator for every agent of the protocol. The agent asks before it uses a tool, and the boundaries answer."""

    settings_type = AcpSettings
    settings: AcpSettings
    binary = ""
    install = "see its own documentation"
    commits = True

    def __init__(self, settings: AcpSettings, folder: Path) -> None:
        super().__init__(settings, folder)
        self.known: KnownAgent = known_agent(settings.command)

    def problem(self, environment: Mapping[str, str]) -> str:
        if not self.settings.command:
            return "an agent of the type acp needs a command, such as gemini"
        if self.executable(environment) is None:
            return f"{self._missing()}: {self.known.install or self.install}"
        return super().problem(environment)

    def provider(self, environment: Mapping[str, str]) -> Provider | None:
        own, known = self.settings.provider, self.known.provider
        if own is not None:
            url = self.settings.base_url or environment.get(own.url_env) or own.url
            return Provider(name="provider", url=url, key_variables=(own.key_env,), header=own.header)
        if known is None:
            return None
        url = self.settings.base_url or environment.get(self.known.url_variable) or known.url
        return msgspec.structs.replace(known, url=url)

    def model(self, name: str) -> str:
        return {**self.known.aliases, **self.settings.models}.get(name, name)

    async def start(self, session: AgentSession) -> AgentInstance:
        instance = await super().start(session)
        if self.known.settings_file and session.home:
            _write_settings(session.home, self.known)
        return instance

    async def execute(self, instance: AgentInstance, ask: Ask, on_output: OutputListener) -> Reply:
        shot = OneShotInstance.of(instance)
        session = shot.session
        servers = self.servers(session)
        environment = {**session.environment, **self._environment(session, servers)}
        marks = Marks(on_output)
        turn = Turn(ask, session.workdir, session.sandboxed, servers, marks)
        talk = Talk(self._question(session, ask, servers, environment), turn, marks)
        with shot.running():
            done = await session.processes.run(
                Command(
                    argv=self._argv(session, ask),
                    workdir=session.workdir,
                    environment=environment,
                    timeout_seconds=ask.timeout_seconds,
                    idle_seconds=ask.idle_seconds,
                    output_bytes=ask.output_bytes,
                    mark=ask.run,
                    lines=talk.line,
                    wanted=talk.wanted,
                    converse=talk.converse,
                ),
                marks,
            )
        marks.finish()
        reply = _reply(talk, done, self._usage(talk, session))
        _SystemPrompts(session).record(talk.session_id, ask)
        return reply

    def _usage(self, talk: Talk, session: AgentSession) -> Usage:
        """Tokens are counted for the turn, and the cost for the whole session."""
        tokens, cost = talk.turn.tokens, talk.turn.cost
        if cost is None or not talk.session_id:
            return tokens
        spent = cost
        if not self.known.usage_per_question:
            spent = Totals(session.folder).delta(talk.session_id, Usage(0, 0, cost)).cost_usd
        return Usage(tokens.input_tokens, tokens.output_tokens, spent)

    def _argv(self, session: AgentSession, ask: Ask) -> tuple[str, ...]:
        path = self.executable(session.environment) or self.settings.command
        own = self.settings.args
        args = tuple(arg for arg in self.known.args if arg not in own)
        if self.known.model_option and self.known.model_option not in own:
            args = (*args, self.known.model_option, self.model(ask.model))
        return (path, *args, *own)

    def _question(
        self, session: AgentSession, ask: Ask, servers: tuple[McpServer, ...], environment: Mapping[str, str]
    ) -> Question:
        provider = self.provider(os.environ)
        prompt = _with_schema(ask)
        with_system = f"{ask.system_prompt.rstrip()}\n\n{prompt}" if ask.system_prompt.strip() else prompt
        knows_it = _SystemPrompts(session).knows(ask)
        return Question(
            workdir=session.workdir,
            session_id=ask.session_id,
            model=self.model(ask.model),
            mode=self.settings.mode,
            plan=ask.permission_mode is PermissionMode.PLAN,
            prompt=prompt if knows_it else with_system,
            first_prompt=with_system,
            servers=servers,
            environment=environment,
            key_variable=provider.key_variables[0] if provider is not None else "",
        )

    def _environment(self, session: AgentSession, servers: tuple[McpServer, ...]) -> dict[str, str]:
        own = self.settings.provider
        made = dict(self.known.environment)
        if session.home:
            made |= {"HOME": session.home, **{name: f"{session.home}/{place}" for name, place in _PLACES.items()}}
        provider = self.provider(os.environ)
        url_variable = own.url_env if own is not None else self.known.url_variable
        if url_variable and (url := session.model_url or self.settings.base_url):
            made[url_variable] = url
        if provider is not None and session.model_key:
            made[provider.key_variables[0]] = session.model_key
        return {**made, **proxy_variables(session.proxy_url), **own_variables(self.settings, servers)}


def _write_settings(home: str, known: KnownAgent) -> None:
    """Without them the agent would ask how to sign in."""
    below, _, name = known.settings_file.rpartition("/")
    path = private_folder(home, below) / name
    if not os.path.lexists(path):
        write_shared(path, msgspec.json.encode(known.settings))


def _reply(talk: Talk, done: Exit, usage: Usage) -> Reply:
    """The end of a turn as the agent reported it. Once it has, it does not matter how its process ended."""
    turn = talk.turn
    if done.violations:
        raise BoundaryViolationError("the agent " + "; ".join(each.detail for each in done.violations))
    if not talk.answered:
        check_end(done)
        how = f"was killed by signal {-done.code}" if done.code < 0 else f"ended with exit code {done.code}"
        raise AgentUnavailable(with_detail(f"the agent {how} and gave no answer", last_output(done)))
    match turn.stop_reason:
        case "end_turn":
            pass
        case "max_tokens" | "max_turn_requests":
            turn.on_output("notice", f"the agent stopped before it was done: {_BEFORE_IT_WAS_DONE[turn.stop_reason]}")
        case "refusal":
            raise UnrecoverableError(with_detail("the model refused to go on", turn.text[:300]))
        case other:
            raise AgentUnavailable(f"the agent ended its turn without an answer: {other[:80]}")
    return Reply(
        text=turn.text,
        session_id=talk.session_id,
        usage=usage,
        tools_used=turn.tools_used,
        tools_denied=turn.tools_denied,
        exit_code=done.code,
        seconds=done.seconds,
    )


class _SystemPrompts:
    """Which system prompt a session knows. The protocol has none, so it stands before the first question."""

    def __init__(self, session: AgentSession) -> None:
        self.path = Path(session.folder) / "system-prompts.json"

    def knows(self, ask: Ask) -> bool:
        return self._read().get(ask.session_id or "") == digest(ask.system_prompt)

    def record(self, session_id: str, ask: Ask) -> None:
        write_shared(self.path, msgspec.json.encode({**self._read(), session_id: digest(ask.system_prompt)}))

    def _read(self) -> dict[str, str]:
        try:
            return reader(dict[str, str]).decode(read_shared(self.path) or b"{}")
        except (ValueError, RecursionError):
            return {}


def _with_schema(ask: Ask) -> str:
    """The prompt, which asks for structured output itself: the protocol has no other way."""
    if ask.output_schema is None:
        return ask.prompt
    wanted: Any = msgspec.json.encode(ask.output_schema).decode()
    return f"{ask.prompt.rstrip()}\n\nAnswer with one JSON object that fits this JSON Schema:\n\n{wanted}\n"
