"""The adapters of command-line tools: what each setting does to the tool, whichever it is.

In the place of the tool stands a program that takes its words and writes down what it was given.
"""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.project import Project

KINDS = ["claude-code", "codex", "opencode", "acp"]
WORDS = {"claude-code": "-p", "codex": "exec", "opencode": "run", "acp": ""}
OWN_KEYS = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL"),
    *("OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL"),
    *("GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY"),
)
PROGRAM = Path(__file__).with_name("any_tool.py")
WHERE = "http://127.0.0.1:9"
PROVIDER = {"url": f"{WHERE}/own", "keyEnv": "FIELD_KEY", "urlEnv": "FIELD_URL"}


class Tool:
    """A project whose agent is one of the tools."""

    def __init__(self, project: Project, kind: str) -> None:
        self.project, self.kind = project, kind
        self.folder = project.root.parent / "tool"
        self.folder.mkdir()
        self.path = self.folder / "the-tool"
        self.path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{PROGRAM}" "{self.folder}" "$@"\n')
        self.path.chmod(0o755)
        self.plan()
        project.environment |= dict.fromkeys(OWN_KEYS, "")

    def plan(self, **effects: Any) -> None:
        (self.folder / "plan.json").write_text(json.dumps(effects))

    def choose(self, *, agent: dict[str, Any] | None = None, **settings: Any) -> None:
        self.project.agent(adapter={"type": self.kind, "command": str(self.path), **settings}, **(agent or {}))

    def asked(self, **settings: Any) -> dict[str, Any]:
        """What the tool was given with these settings."""
        self.choose(**settings)
        assert self.project.run("worker")["outcome"] == "completed"
        return self.seen()[-1]

    def seen(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "seen.jsonl").read_text().splitlines()]


@pytest.fixture(params=KINDS)
def tool(request: pytest.FixtureRequest, project: Project) -> Tool:
    return Tool(project, request.param)


def only(*kinds: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("tool", kinds, indirect=True)


def settings(project: Project, **sections: Any) -> None:
    project.write(".genba/config.yaml", yaml.safe_dump(sections))


@contextmanager
def provider_that_listens() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The address of a provider, and the headers of every request that it got."""
    got: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            got.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", got
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


# ── every tool ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_type_says_which_tool_is_spoken_to(tool: Tool) -> None:
    seen = tool.asked()
    assert "".join(seen["argv"][:1]) == WORDS[tool.kind]
    assert "# Your task" in seen["prompt"]
    assert not any("# Your task" in word for word in seen["argv"])


def test_what_a_tool_left_is_committed_with_the_agent_as_author(tool: Tool) -> None:
    tool.asked()
    assert tool.project.read("work.txt") == "work\n"
    assert tool.project.git("log", "-1", "--format=%an", "--", "work.txt") == "worker"


def test_a_tool_lives_in_a_home_of_its_own(tool: Tool) -> None:
    seen = tool.asked()
    assert seen["environment"]["HOME"] != tool.project.environment["HOME"]


def test_the_command_is_a_path_or_is_found_on_the_path(tool: Tool) -> None:
    tool.choose(command="the-tool")
    result = tool.project.genba("run", "worker", check=3).err
    assert "the-tool is not installed" in result
    tool.project.environment["PATH"] = f"{tool.folder}:/usr/local/bin:/usr/bin:/bin"
    tool.project.run("worker")
    assert len(tool.seen()) == 1


def test_models_say_what_a_name_means_to_the_tool(tool: Tool) -> None:
    assert tool.asked(models={"opus": "second"})["model"] == "second"


def test_the_base_url_is_where_the_model_is_asked(tool: Tool) -> None:
    own = {"provider": PROVIDER} if tool.kind == "acp" else {}
    assert tool.asked(baseUrl=f"{WHERE}/else", **own)["url"] == f"{WHERE}/else"


def test_env_is_set_for_the_tool(tool: Tool) -> None:
    assert tool.asked(env={"COLOUR": "red"})["environment"]["COLOUR"] == "red"


def test_only_the_variables_of_pass_env_reach_the_tool(tool: Tool) -> None:
    tool.project.environment |= {"CLOCK_SETTING": "quiet", "OTHER_SETTING": "loud"}
    seen = tool.asked(passEnv=["CLOCK_SETTING"])["environment"]
    assert seen["CLOCK_SETTING"] == "quiet"
    assert "OTHER_SETTING" not in seen


def test_a_server_with_an_address_is_offered_with_its_token(tool: Tool) -> None:
    tool.project.environment["ORCHARD_TOKEN"] = "apples-and-pears"
    tool.plan()
    seen = tool.asked(mcpServers={"orchard": {"url": f"{WHERE}/mcp", "tokenEnv": "ORCHARD_TOKEN"}})
    assert seen["servers"] == {"orchard": {"url": f"{WHERE}/mcp", "bearer": "Bearer apples-and-pears"}}
    assert not any("apples-and-pears" in word for word in seen["argv"])


def test_a_token_that_is_not_set_is_reported_before_anything_starts(tool: Tool) -> None:
    tool.choose(mcpServers={"orchard": {"url": f"{WHERE}/mcp", "tokenEnv": "NO_SUCH_TOKEN"}})
    assert "NO_SUCH_TOKEN is not set" in tool.project.genba("run", "worker", check=3).err


def test_a_server_with_a_command_is_started_with_its_words_and_variables(tool: Tool) -> None:
    server = {"command": "sh", "args": ["-c", 'echo "$1 are $COLOUR"', "sh", "apples"], "env": {"COLOUR": "red"}}
    assert tool.asked(mcpServers={"orchard": server})["servers"] == {"orchard": {"says": "apples are red"}}


def test_a_server_that_fails_is_an_error_unless_it_is_not_required(tool: Tool) -> None:
    tool.plan(**{"servers fail": True})
    patience = {"agent": {"limits": {"retries": 0}}}
    tool.choose(mcpServers={"orchard": {"url": f"{WHERE}/mcp"}}, **patience)
    result = tool.project.run("worker", check=1)
    assert result["outcome"] == "failed"
    assert "orchard" in result["reason"]
    tool.choose(mcpServers={"orchard": {"url": f"{WHERE}/mcp", "required": False}}, **patience)
    assert tool.project.run("worker")["outcome"] == "completed"


def test_files_of_your_home_are_copied_into_that_of_the_tool(tool: Tool) -> None:
    home = Path(tool.project.environment["HOME"])
    for name in (".tool/login.json", ".tool/other.json"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(f"{name}\n")
    tool.plan(**{"look for": [".tool/login.json", ".tool/other.json"]})
    assert tool.asked(homeFiles=[".tool/login.json"])["home"] == {".tool/login.json": ".tool/login.json\n"}


def test_a_file_that_is_not_in_your_home_is_reported_before_anything_starts(tool: Tool) -> None:
    tool.choose(homeFiles=[".tool/login.json"])
    assert "there is no file ~/.tool/login.json" in tool.project.genba("run", "worker", check=3).err


def test_more_words_go_onto_the_command_line_of_the_tool(tool: Tool) -> None:
    assert {"--colour", "red"} <= set(tool.asked(args=["--colour", "red"])["argv"])


# ── each tool's own ──────────────────────────────────────────────────────────────────────────────────────────────────


@only("claude-code")
def test_claude_code_gets_the_maximum_of_turns(tool: Tool) -> None:
    argv = tool.asked(maxTurns=7)["argv"]
    assert argv[argv.index("--max-turns") + 1] == "7"


@only("codex", "opencode")
def test_the_key_is_taken_from_the_variable_that_is_named(tool: Tool) -> None:
    settings(tool.project, sandbox={"credentials": "env"})
    tool.project.environment |= {"MY_KEY": "mine", "OPENAI_API_KEY": "not this", "ANTHROPIC_API_KEY": "nor this"}
    assert tool.asked(keyEnv="MY_KEY")["key"] == "mine"


@only("codex", "opencode")
@pytest.mark.parametrize(("cached", "cost"), [(None, 0.003), (0.5, 0.0022)])
def test_prices_make_money_of_tokens(tool: Tool, cached: float | None, cost: float) -> None:
    price = {"input": 2.5, "output": 5, **({} if cached is None else {"cachedInput": cached})}
    tool.choose(prices={"opus": price})
    usage = tool.project.run("worker")["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (1000, 100)
    assert usage["cost_usd"] == pytest.approx(cost)


@only("codex")
def test_codex_gets_the_reasoning_effort(tool: Tool) -> None:
    assert tool.asked(reasoningEffort="low")["config"]["model_reasoning_effort"] == "low"


@only("codex")
def test_codex_with_a_login_finds_its_model_by_itself(tool: Tool) -> None:
    (Path(tool.project.environment["HOME"]) / ".codex").mkdir()
    (Path(tool.project.environment["HOME"]) / ".codex" / "auth.json").write_text("{}")
    config = tool.asked(homeFiles=[".codex/auth.json"])["config"]
    assert "model_provider" not in config


@only("opencode")
def test_opencode_asks_the_provider_that_is_named(tool: Tool) -> None:
    seen = tool.asked(provider={"name": "openai"})
    assert (seen["provider"], seen["npm"], seen["model"]) == ("openai", "@ai-sdk/openai", "gpt-6.1-sol")


@only("opencode")
def test_opencode_speaks_with_a_provider_by_the_package_that_is_named(tool: Tool) -> None:
    seen = tool.asked(provider={"name": "tea-house", "npm": "@ai-sdk/mistral"}, baseUrl=WHERE)
    assert (seen["provider"], seen["npm"]) == ("tea-house", "@ai-sdk/mistral")


@only("acp")
def test_an_agent_of_the_protocol_gets_the_address_of_its_model(tool: Tool) -> None:
    assert tool.asked(provider=PROVIDER)["url"] == f"{WHERE}/own"
    tool.project.environment["FIELD_URL"] = f"{WHERE}/another"
    assert tool.asked(provider=PROVIDER)["url"] == f"{WHERE}/another"


@only("acp")
def test_an_agent_of_the_protocol_finds_its_key_in_the_variable_that_it_looks_in(tool: Tool) -> None:
    settings(tool.project, sandbox={"credentials": "env"})
    tool.project.environment["FIELD_KEY"] = "mine"
    assert tool.asked(provider=PROVIDER)["key"] == "mine"


@only("acp")
def test_the_key_is_sent_to_the_provider_in_the_header_that_is_named(tool: Tool) -> None:
    tool.project.environment["FIELD_KEY"] = "mine"
    tool.plan(**{"ask the model": True})
    with provider_that_listens() as (url, got):
        seen = tool.asked(provider={**PROVIDER, "url": url, "header": "x-tea-key"})
        tool.asked(provider={**PROVIDER, "url": url})
    assert seen["key"] != "mine"
    assert (got[0].get("x-tea-key"), got[0].get("authorization")) == ("mine", None)
    assert got[1].get("authorization") == "Bearer mine"


@only("acp")
def test_an_agent_of_the_protocol_is_set_to_the_mode_that_is_named(tool: Tool) -> None:
    assert tool.asked(mode="careful")["mode"] == "careful"
    tool.choose(mode="carless")
    assert 'no mode "carless"' in tool.project.run("worker", check=1)["reason"]
