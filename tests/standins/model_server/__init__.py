"""A model server that follows a script: it lets real agents run with no model, no key and no network.

It speaks Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini on one loopback port. The scenario is
a part of the address, and where a conversation stands is read from the conversation:

    with ModelServer() as server:
        url = server.scenario("fix", Write("hello.txt", "hello"), Say("done"))

`python -m tests.standins.model_server scenarios.json` does the same for people. Its file names each scenario and lists
the turns, with the kind of turn under `do`: `{"fix": [{"do": "write", "path": "hello.txt", "text": "hello"}]}`.
"""

from tests.standins.model_server.server import ModelServer, Request
from tests.standins.model_server.turns import (
    Answer,
    Call,
    Cut,
    Fail,
    Hang,
    Mcp,
    Obey,
    Run,
    Say,
    Scenario,
    Together,
    Tokens,
    Turn,
    Write,
)

__all__ = [
    "Answer",
    "Call",
    "Cut",
    "Fail",
    "Hang",
    "Mcp",
    "ModelServer",
    "Obey",
    "Request",
    "Run",
    "Say",
    "Scenario",
    "Together",
    "Tokens",
    "Turn",
    "Write",
]
