"""Agents of the Agent Client Protocol that need no explaining: their words, their variables and their provider."""

from collections.abc import Mapping
from pathlib import PurePath

import msgspec

from genba.domain.sessions.sandbox import Provider


class KnownAgent(msgspec.Struct, frozen=True, kw_only=True):
    """What is the same for everybody who uses this agent. Settings go before it."""

    install: str = ""
    args: tuple[str, ...] = ()
    """What makes the program speak the protocol."""
    model_option: str = ""
    """The word before the name of a model, where the model has to be chosen at the start."""
    aliases: Mapping[str, str] = {}
    provider: Provider | None = None
    url_variable: str = ""
    """Where the agent looks for the address of its model. Its key is looked for in the provider's first variable."""
    usage_per_question: bool = False
    """Whether each process tells its own cost, and not that of the session as the protocol wants."""
    environment: Mapping[str, str] = {}
    settings: Mapping[str, object] = {}
    settings_file: str = ""
    """Where the agent looks for `settings` in its HOME. A file that is there already is left as it is."""


_ASK_ALWAYS = '{"*":"ask"}'
"""The agent asks before each tool, and Genba answers; otherwise nothing could be denied."""

KNOWN: dict[str, KnownAgent] = {
    "gemini": KnownAgent(
        install="npm install -g @google/gemini-cli",
        args=("--acp",),
        model_option="--model",
        aliases={"opus": "gemini-2.5-pro", "sonnet": "gemini-2.5-pro", "haiku": "gemini-2.5-flash"},
        provider=Provider(
            name="google",
            url="https://generativelanguage.googleapis.com",
            key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            header="x-goog-api-key",
        ),
        url_variable="GOOGLE_GEMINI_BASE_URL",
        environment={"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "true"},
        settings={
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
        },
        settings_file=".gemini/settings.json",
    ),
    "opencode": KnownAgent(
        install="npm install -g opencode-ai",
        args=("acp",),
        environment={
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_PERMISSION": _ASK_ALWAYS,
        },
    ),
    "claude-agent-acp": KnownAgent(
        install="npm install -g @agentclientprotocol/claude-agent-acp",
        provider=Provider(
            name="anthropic",
            url="https://api.anthropic.com",
            key_variables=("ANTHROPIC_API_KEY",),
            header="x-api-key",
        ),
        url_variable="ANTHROPIC_BASE_URL",
        usage_per_question=True,
        environment={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "1"},
    ),
}


def known_agent(command: str) -> KnownAgent:
    return KNOWN.get(PurePath(command).name, KnownAgent())
