"""OpenCode as an agent: words, environment and files of one question.

All of its settings come from Genba: those of the working tree are not read, since they can name plugins and servers. A
small plugin of ours lives inside of it. It takes the keys out of the environment before any command of the agent is
started, tells which servers answer, and ends the waiting that OpenCode would do in silence. Who can read the memory of
OpenCode itself, as every process of the same user can, can find the key: with a broker it is a word that is good for
this session alone.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from genba.connections.agents.cli_tools.opencode_events import TOOLS, OpenCodeReading
from genba.connections.agents.cli_tools.prices import Price
from genba.connections.agents.command_line import CommandLineAdapter, Invocation, Reading
from genba.connections.agents.model_errors import ConversationLost
from genba.connections.agents.private_home import private_folder
from genba.connections.agents.shared_files import write_shared
from genba.connections.agents.tool_settings import ToolSettings, Word, own_variables
from genba.domain.ports import AgentInstance
from genba.domain.processes import OutputListener
from genba.domain.sessions.outcomes import PermissionMode
from genba.domain.sessions.replies import AgentSession, Ask, Reply
from genba.domain.sessions.sandbox import McpServer, Provider, proxy_variables

_KEY_INSIDE = "GENBA_MODEL_KEY"
_SETTINGS = "OPENCODE_CONFIG_CONTENT"
_PLUGIN = Path(__file__).with_name("opencode_plugin.js")
_ALWAYS = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
    "OPENCODE_DISABLE_SHARE": "1",
}
_HOMES = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
}
_READABLE = {"*": "allow", "*.env": "deny", "*.env.*": "deny", "*.env.example": "allow"}
"""OpenCode asks before it reads files of secrets, and no person is there to allow it."""
_SCHEMA_IN_PROMPT = "End your answer with one JSON object in a ```json block. It must fit this JSON Schema:"


class _Known(msgspec.Struct, frozen=True):
    """A provider whose address and key are known."""

    package: str
    url: str
    key: str
    header: str = "authorization"


_PROVIDERS = {
    "anthropic": _Known("@ai-sdk/anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "x-api-key"),
    "openai": _Known("@ai-sdk/openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "openrouter": _Known("@ai-sdk/openai-compatible", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "google": _Known(
        "@ai-sdk/google", "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY", "x-goog-api-key"
    ),
}
_MODELS = {
    "anthropic": {"opus": "claude-opus-5-5", "sonnet": "claude-sonnet-5", "haiku": "claude-haiku-4-5"},
    "openai": {"opus": "gpt-6.1-sol", "sonnet": "gpt-6.1-terra", "haiku": "gpt-6-luna"},
}


class OpenCodeProvider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Whose model it is."""

    name: Annotated[
        str, Meta(pattern="^[a-z0-9-]+$", description="anthropic, openai, google, openrouter, or a name of your own.")
    ] = "anthropic"
    npm: Annotated[
        str,
        Meta(description="The package that speaks with the provider; one that OpenCode brings along needs no network."),
    ] = ""


class OpenCodeSettings(ToolSettings, frozen=True, kw_only=True):
    """What `runner.adapter` takes with the type `opencode`."""

    provider: Annotated[OpenCodeProvider, Meta(description="Whose model it is.")] = OpenCodeProvider()
    key_env: Annotated[str, Meta(description="The variable of your environment that holds the provider's key.")] = ""
    prices: Annotated[
        dict[Word, Price], Meta(description="What each model costs, where OpenCode does not know it.")
    ] = {}  # noqa: RUF012


class OpenCodeAdapter(CommandLineAdapter):
    """One process of OpenCode per question; the conversation goes on from one to the next."""

    settings_type = OpenCodeSettings
    settings: OpenCodeSettings
    binary = "opencode"
    install = "npm install -g opencode-ai"
    commits = True

    def provider(self, environment: Mapping[str, str]) -> Provider | None:  # noqa: ARG002
        known = _PROVIDERS.get(self.settings.provider.name)
        url = self.settings.base_url or (known.url if known else "")
        key = self.settings.key_env or (known.key if known else "")
        if not url or not key:
            return None
        header = known.header if known else "authorization"
        return Provider(name=self.settings.provider.name, url=url, key_variables=(key,), header=header)

    def problem(self, environment: Mapping[str, str]) -> str:
        name = self.settings.provider.name
        if name not in _PROVIDERS and not self.settings.base_url:
            return f"the provider {name} needs a baseUrl; known without one: {', '.join(_PROVIDERS)}"
        return super().problem(environment)

    def model(self, name: str) -> str:
        whose = self.settings.provider.name
        plain = _MODELS.get(whose, {})
        aliases = {**plain, **{f"claude-{short}": one for short, one in plain.items()}}
        return {**aliases, **self.settings.models}.get(name, name).removeprefix(f"{whose}/")

    async def execute(self, instance: AgentInstance, ask: Ask, on_output: OutputListener) -> Reply:
        try:
            return await super().execute(instance, ask, on_output)
        except ConversationLost as error:
            on_output("notice", f"{error.message}; a new one is begun")
            return await super().execute(instance, msgspec.structs.replace(ask, session_id=None), on_output)

    def invocation(self, session: AgentSession, ask: Ask) -> Invocation:
        servers = tuple(server for server in self.servers(session) if _is_offered(server, ask))
        files = _Files(session)
        config = {
            "autoupdate": False,
            "share": "disabled",
            "snapshot": False,
            "plugin": [files.plugin(self._secrets(servers), servers).as_uri()],
            "instructions": [files.system_prompt(ask), *(f"{session.workdir}/{n}" for n in ("AGENTS.md", "CLAUDE.md"))],
            "permission": permissions(ask, session.sandboxed, tuple(server.name for server in servers)),
            "provider": {self.settings.provider.name: self._provider_entry(session, ask)},
            "small_model": self._named_model(ask),
            "mcp": {server.name: self._server_entry(server) for server in servers},
        }
        args = ["run", "--format", "json", "-m", self._named_model(ask), "--title", f"{ask.run} {ask.step}"]
        if ask.session_id:
            args += ["-s", ask.session_id]
        path = self.executable(session.environment) or self.binary
        environment = self._environment(session, servers)
        environment[_SETTINGS] = msgspec.json.encode(config).decode()
        return Invocation(argv=(path, *args, *self.settings.args), environment=environment, stdin=_prompt(ask))

    def reading(self, session: AgentSession, ask: Ask, on_output: OutputListener) -> Reading:
        return OpenCodeReading(
            on_output,
            resumed=ask.session_id,
            servers=self.servers(session),
            key_variable=self.settings.key_env or self._known_key(),
        )

    def _known_key(self) -> str:
        known = _PROVIDERS.get(self.settings.provider.name)
        return known.key if known else "the provider's key"

    def _named_model(self, ask: Ask) -> str:
        return f"{self.settings.provider.name}/{self.model(ask.model)}"

    def _secrets(self, servers: tuple[McpServer, ...]) -> list[str]:
        """The variables that no command of the agent sees."""
        named = {server.token_variable for server in servers if server.token_variable}
        keys = {known.key for known in _PROVIDERS.values()} | (
            {self.settings.key_env} if self.settings.key_env else set()
        )
        return sorted({_KEY_INSIDE, _SETTINGS, *keys, *named})

    def _provider_entry(self, session: AgentSession, ask: Ask) -> dict[str, Any]:
        known = _PROVIDERS.get(self.settings.provider.name)
        options: dict[str, Any] = {}
        if url := session.model_url or self.settings.base_url:
            options["baseURL"] = url
        if session.model_key:
            options["apiKey"] = f"{{env:{_KEY_INSIDE}}}"
        model = self.model(ask.model)
        price = self.settings.prices.get(ask.model) or self.settings.prices.get(model)
        entry = {"npm": self.settings.provider.npm or (known.package if known else "@ai-sdk/openai-compatible")}
        return {**entry, "options": options, "models": {model: {"cost": _cost(price)} if price else {}}}

    def _server_entry(self, server: McpServer) -> dict[str, Any]:
        if server.url:
            bearer = {"Authorization": f"Bearer {{env:{server.token_variable}}}"} if server.token_variable else {}
            return {"type": "remote", "url": server.url, "oauth": False, "headers": bearer, "enabled": True}
        forgotten = [arg for name in self._secrets((server,)) for arg in ("-u", name)]
        command = ["env", *forgotten, *server.command]
        return {"type": "local", "command": command, "environment": dict(server.environment), "enabled": True}

    def _environment(self, session: AgentSession, servers: tuple[McpServer, ...]) -> dict[str, str]:
        made = dict(_ALWAYS)
        if session.home:
            made |= {"HOME": session.home, **{name: f"{session.home}/{path}" for name, path in _HOMES.items()}}
            _nothing_to_install(session.home)
        if session.model_key:
            made[_KEY_INSIDE] = session.model_key
        return {**made, **proxy_variables(session.proxy_url), **own_variables(self.settings, servers)}


def permissions(ask: Ask, sandboxed: bool, servers: tuple[str, ...]) -> dict[str, Any]:
    """Yes or no to each tool, and never a question: no person could answer it. What has a no is not offered."""
    plans = ask.permission_mode is PermissionMode.PLAN
    listed = None if ask.allowed_tools is None else {tool.partition("(")[0] for tool in ask.allowed_tools}
    everywhere = sandboxed or ask.permission_mode is PermissionMode.BYPASS_PERMISSIONS
    made: dict[str, Any] = {"*": "deny"}
    for name, tool in TOOLS.items():
        allowed = (listed is None or tool in listed) and not (plans and tool in ("Bash", "Edit", "Write", "Task"))
        made[name] = "allow" if allowed else "deny"
    made["edit"] = "allow" if not plans and (listed is None or listed & {"Edit", "Write"}) else "deny"
    if made["read"] == "allow":
        made["read"] = dict(_READABLE)
    made["external_directory"] = "allow" if everywhere else "deny"
    for server in servers:
        made |= _server_tools(server, ask)
    return made


def _server_tools(server: str, ask: Ask) -> dict[str, str]:
    whole = f"mcp__{server}"
    if ask.allowed_tools is None or whole in ask.allowed_tools or f"{whole}__*" in ask.allowed_tools:
        return {f"{server}_*": "allow"}
    tools = (tool.removeprefix(f"{whole}__") for tool in ask.allowed_tools if tool.startswith(f"{whole}__"))
    return {f"{server}_{tool}": "allow" for tool in tools}


def _is_offered(server: McpServer, ask: Ask) -> bool:
    return bool(_server_tools(server.name, ask))


def _prompt(ask: Ask) -> str:
    """OpenCode has no flag for a schema: the question asks for the form too, unless it does so already."""
    if ask.output_schema is None:
        return ask.prompt
    wanted = msgspec.json.format(msgspec.json.encode(ask.output_schema), indent=2).decode()
    if wanted in ask.prompt:
        return ask.prompt
    return f"{ask.prompt}\n\n{_SCHEMA_IN_PROMPT}\n\n```json\n{wanted}\n```\n"


def _cost(price: Price) -> dict[str, float]:
    cached = price.input if price.cached_input is None else price.cached_input
    return {"input": price.input, "output": price.output, "cache_read": cached, "cache_write": price.input}


def _nothing_to_install(home: str) -> None:
    """OpenCode fetches a package for plugins before it starts; this makes it believe that it has done so."""
    private_folder(home, ".config/opencode/node_modules")
    fetched = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
    write_shared(private_folder(home, ".config/opencode") / "package-lock.json", msgspec.json.encode(fetched))


class _Files:
    """The files of a question, in a folder that is the session's own. None of them holds a secret."""

    def __init__(self, session: AgentSession) -> None:
        self.folder = Path(session.folder)

    def system_prompt(self, ask: Ask) -> str:
        path = self.folder / "system.md"
        write_shared(path, ask.system_prompt.encode("utf-8", errors="surrogateescape"))
        return str(path)

    def plugin(self, hidden: list[str], servers: tuple[McpServer, ...]) -> Path:
        path = self.folder / "opencode_plugin.js"
        required = [server.name for server in servers if server.required]
        given = msgspec.json.encode({"hidden": hidden, "required": required})
        write_shared(path, b"const given = " + given + b"\n" + _PLUGIN.read_bytes())
        return path
