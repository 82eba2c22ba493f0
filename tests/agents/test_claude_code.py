"""Claude Code without a process: what its recorded words mean, and with which words it is started."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from genba.connections.agents.cli_tools.claude_code import ClaudeCodeAdapter, ClaudeCodeSettings
from genba.connections.agents.cli_tools.claude_events import ClaudeReading
from genba.connections.agents.command_line import Invocation, Totals
from genba.connections.agents.model_errors import ConversationLost
from genba.connections.agents.shared_files import read_shared, write_shared
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.domain.errors import (
    AgentUnavailable,
    BoundaryViolationError,
    GenbaError,
    NotFoundError,
    RateLimited,
    UnrecoverableError,
)
from genba.domain.processes import Ending, Exit
from genba.domain.sessions.outcomes import PermissionMode
from genba.domain.sessions.replies import AgentSession, Reply, Usage
from genba.domain.sessions.sandbox import McpServer
from genba.testing.conformance import an_ask

TRANSCRIPTS = Path(__file__).parent / "transcripts" / "claude"
RESETS_AT = 1794802500.0


def recorded(name: str) -> list[bytes]:
    return (TRANSCRIPTS / f"{name}.jsonl").read_bytes().splitlines()


class Ear:
    def __init__(self, folder: Path, **more: Any) -> None:
        self.heard: list[tuple[str, str]] = []
        self.reading = ClaudeReading(
            lambda *printed: self.heard.append(printed),
            totals=Totals(str(folder)),
            tree="/place/tree",
            **{"resumed": False, "now": lambda: RESETS_AT - 600, **more},
        )

    def hears(self, lines: list[bytes], code: int = 0, stderr: str = "") -> Reply:
        for line in lines:
            self.reading.line(line)
        return self.reading.reply(
            Exit(ending=Ending.EXITED, code=code, stdout="", stderr=stderr, seconds=1.5),
        )

    def told(self, kind: str) -> list[str]:
        return [line for stream, line in self.heard if stream == kind]


def cost(reply: Reply) -> tuple[int, int, float]:
    return reply.usage.input_tokens, reply.usage.output_tokens, round(reply.usage.cost_usd, 7)


def test_tools_are_used_denied_or_not_there(tmp_path: Path) -> None:
    ear = Ear(tmp_path)
    reply = ear.hears(recorded("tools"))
    assert reply.text == "end"
    assert reply.tools_used == ("Bash", "Write", "Grep")
    assert reply.tools_denied == ("Write", "Read", "WebFetch")
    assert ear.told("tool")[0] == "Write /place/outside.txt"
    assert "Write b.txt" in ear.told("tool")
    assert [notice.partition(":")[0] for notice in ear.told("notice")] == [
        "Write was denied",
        "Read was denied",
        "WebFetch was denied",
    ]


def test_versions_that_count_over_a_conversation_are_recognised_by_the_question(tmp_path: Path) -> None:
    first = Ear(tmp_path).hears(recorded("counts-on-1"))
    second = Ear(tmp_path, resumed=True).hears(recorded("counts-on-2"))
    assert cost(first) == (2100, 42, 0.00315)
    assert cost(second) == (4200, 84, 0.0063)
    assert first.session_id == second.session_id == "61111111-2222-4333-8444-555555555555"


def test_what_a_question_cost_is_known_even_when_the_totals_are_lost(tmp_path: Path) -> None:
    second = Ear(tmp_path, resumed=True).hears(recorded("counts-on-2"))
    assert cost(second) == (4200, 84, 0.0063)


def test_the_cost_of_questions_that_failed_is_counted_with_the_next_answer(tmp_path: Path) -> None:
    """The second process of this conversation died before it could answer; its cost is in the total of the third."""
    totals = Totals(str(tmp_path))
    totals.delta("61111111-2222-4333-8444-555555555555", Usage(1000, 2, 0.00015))
    second = Ear(tmp_path, resumed=True).hears(recorded("counts-on-2"))
    assert cost(second) == (5300, 124, 0.0093)


def test_versions_that_reset_their_counters_are_trusted(tmp_path: Path) -> None:
    replies = [Ear(tmp_path, resumed=at > 1).hears(recorded(f"counts-anew-{at}")) for at in (1, 2, 3)]
    assert [reply.usage.tokens for reply in replies] == [2142, 4284, 2142]
    assert replies[2].usage.cost_usd == pytest.approx(replies[0].usage.cost_usd)
    assert replies[1].usage.cost_usd == pytest.approx(2 * replies[0].usage.cost_usd)


def test_structured_output_comes_from_the_result(tmp_path: Path) -> None:
    met = Ear(tmp_path).hears(recorded("schema-met"))
    unmet = Ear(tmp_path).hears(recorded("schema-unmet"))
    assert (met.structured, met.tools_used) == ({"answer": 42}, ())
    assert (unmet.structured, unmet.text) == (None, "hello there")


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("error-400", UnrecoverableError, "refused the question (400): API Error: 400 bad thing"),
        ("error-401", UnrecoverableError, "refused the key: Invalid API key"),
        ("error-529", AgentUnavailable, "cannot be reached: API Error: 529 Overloaded"),
        ("error-cut", AgentUnavailable, "cannot be reached: API Error: Connection dropped"),
        ("error-long", UnrecoverableError, "refused the question (400): Prompt is too long"),
        ("error-429", RateLimited, "rate limit of the model is reached"),
        ("most-money", UnrecoverableError, "used up its budget"),
        ("lost", ConversationLost, "No conversation found"),
    ],
)
def test_each_end_has_its_kind(tmp_path: Path, name: str, kind: type[GenbaError], words: str) -> None:
    with pytest.raises(kind) as result:
        Ear(tmp_path).hears(recorded(name), code=1)
    assert words in str(result.value)


def test_a_conversation_that_is_full_is_lost(tmp_path: Path) -> None:
    with pytest.raises(ConversationLost, match="the conversation is full"):
        Ear(tmp_path, resumed=True).hears(recorded("error-long"), code=1)


def test_the_most_turns_leave_an_answer(tmp_path: Path) -> None:
    ear = Ear(tmp_path)
    reply = ear.hears(recorded("most-turns"), code=1)
    assert (reply.tools_used, reply.exit_code) == (("Write",), 1)
    assert ear.told("notice") == ["claude stopped before it was done: Reached maximum number of turns (1)"]


def test_the_limit_of_a_subscription_names_its_reset(tmp_path: Path) -> None:
    lines = recorded("usage-limit")
    event = next(json.loads(line) for line in lines if b"rate_limit_event" in line)
    with pytest.raises(RateLimited) as result:
        Ear(tmp_path, now=lambda: event["rate_limit_info"]["resetsAt"] - 600.0).hears(lines, code=1)
    assert result.value.retry_after == pytest.approx(600)


def test_a_limit_in_the_words_of_older_versions_names_its_reset(tmp_path: Path) -> None:
    output = f"Claude AI usage limit reached|{RESETS_AT:.0f}"
    line = json.dumps({"type": "result", "subtype": "success", "is_error": True, "result": output})
    with pytest.raises(RateLimited) as result:
        Ear(tmp_path).hears([line.encode()], code=1)
    assert result.value.retry_after == pytest.approx(600)


def test_a_long_wait_of_the_tool_ends_it_at_once(tmp_path: Path) -> None:
    with pytest.raises(RateLimited) as result:
        Ear(tmp_path).hears(recorded("retry-429"))
    assert result.value.retry_after == 37


def test_a_short_wait_of_the_tool_is_reported(tmp_path: Path) -> None:
    ear = Ear(tmp_path)
    with pytest.raises(AgentUnavailable):
        ear.hears(recorded("error-529"), code=1)
    assert ear.told("notice") == ["the model is asked again in 0.5 s: overloaded (529)"]


def test_a_server_that_failed_ends_the_question_only_where_it_is_required(tmp_path: Path) -> None:
    def servers(required: bool) -> tuple[McpServer, ...]:
        return (
            McpServer(name="orch", command=("true",)),
            McpServer(name="dead", url="http://127.0.0.1:9/mcp", required=required),
        )

    ear = Ear(tmp_path, servers=servers(required=False))
    assert ear.hears(recorded("server-failed")).text == "hello there"
    assert ear.told("notice") == ["the MCP server dead cannot be used: failed"]
    with pytest.raises(AgentUnavailable, match="the MCP server dead cannot be used: failed"):
        Ear(tmp_path, servers=servers(required=True)).hears(recorded("server-failed"))


def test_a_required_server_that_is_not_even_listed_is_missed(tmp_path: Path) -> None:
    with pytest.raises(AgentUnavailable, match="the MCP server orch cannot be used: missing"):
        Ear(tmp_path, servers=(McpServer(name="orch", command=("true",)),)).hears(recorded("tools"))


@pytest.mark.parametrize("code", [0, 1, -15])
def test_without_a_result_there_is_no_answer_whatever_the_exit_code(tmp_path: Path, code: int) -> None:
    with pytest.raises(AgentUnavailable, match="without a result"):
        Ear(tmp_path).hears(recorded("tools")[:-1], code=code)


def test_a_conversation_that_is_in_use_is_lost(tmp_path: Path) -> None:
    with pytest.raises(ConversationLost):
        Ear(tmp_path).hears([], code=1, stderr="Error: Session ID 61111111 is already in use.\n")


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@st.composite
def spoiled(draw: st.DrawFn) -> list[bytes]:
    """A recorded transcript in which values are something else, and lines are cut, lost or garbage."""
    name = draw(st.sampled_from(sorted(path.stem for path in TRANSCRIPTS.glob("*.jsonl"))))
    fates = st.sampled_from((_kept, _spoiled, _spoiled, _cut, _garbage, None))
    return [fate(draw, line) for line in recorded(name) if (fate := draw(fates)) is not None]


def _kept(_draw: st.DrawFn, line: bytes) -> bytes:
    return line


def _spoiled(draw: st.DrawFn, line: bytes) -> bytes:
    event = at = json.loads(line)
    for _ in range(draw(st.integers(0, 3))):
        inner = [value for value in at.values() if isinstance(value, dict) and value]
        at = draw(st.sampled_from(inner)) if inner else at
    at[draw(st.sampled_from(sorted(at)))] = draw(JUNK)
    return json.dumps(event).encode()


def _cut(draw: st.DrawFn, line: bytes) -> bytes:
    return line[: draw(st.integers(0, len(line)))]


def _garbage(draw: st.DrawFn, _line: bytes) -> bytes:
    return draw(st.binary(max_size=40)) or b"[" * 5000


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=spoiled(), resumed=st.booleans())
def test_garbage_never_breaks_the_reading(tmp_path: Path, lines: list[bytes], resumed: bool) -> None:
    ear = Ear(tmp_path, resumed=resumed, servers=(McpServer(name="orch", command=("true",), required=False),))
    try:
        reply = ear.hears(lines)
    except GenbaError:
        return
    assert isinstance(reply.text, str)
    assert min(reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cost_usd) >= 0


class Starting:
    """An adapter and a session; nothing is started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "bin" / "claude"
        self.program.parent.mkdir()
        self.program.write_text("#!/bin/sh\n")
        self.program.chmod(0o755)
        self.path = {"PATH": str(self.program.parent), "HOME": str(folder / "own home")}

    def adapter(self, **given: Any) -> ClaudeCodeAdapter:
        return ClaudeCodeAdapter(msgspec.convert({"type": "claude-code", **given}, ClaudeCodeSettings), self.folder)

    def session(self, **more: Any) -> AgentSession:
        return AgentSession(
            run="run-1",
            agent="tester",
            workdir=str(self.folder / "tree"),
            folder=str(self.folder / "asks"),
            environment=self.path,
            processes=ProcessSupervisor(),
            home=str(self.folder / "home"),
            **more,
        )

    def invocation(
        self, given: Mapping[str, Any] | None = None, session: Mapping[str, Any] | None = None, **ask: Any
    ) -> Invocation:
        here = self.session(**(session or {}))
        return self.adapter(**(given or {})).invocation(here, msgspec.structs.replace(an_ask(here), **ask))


@pytest.fixture
def starting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Starting:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return Starting(tmp_path)


def after(word: str, argv: tuple[str, ...]) -> str:
    return argv[argv.index(word) + 1]


def test_prompt_key_and_system_prompt_are_in_no_word_of_the_command(starting: Starting) -> None:
    made = starting.invocation(session={"model_key": "k-e-y", "model_url": "http://127.0.0.1:1"})
    words = " ".join(made.argv)
    assert made.argv[0] == str(starting.program)
    assert made.stdin == "Say hello."
    assert (made.environment["ANTHROPIC_API_KEY"], made.environment["ANTHROPIC_BASE_URL"]) == (
        "k-e-y",
        "http://127.0.0.1:1",
    )
    assert not any(text in words for text in ("Say hello.", "You are polite.", "k-e-y"))
    assert Path(after("--append-system-prompt-file", made.argv)).read_text() == "You are polite."


def test_it_lives_in_the_private_home(starting: Starting) -> None:
    environment = starting.invocation().environment
    assert environment["HOME"] == str(starting.folder / "home")
    assert environment["CLAUDE_CONFIG_DIR"] == str(starting.folder / "home" / ".claude")


@pytest.mark.parametrize(
    ("asked", "given", "used"),
    [
        ("opus", {}, "opus"),
        ("claude-sonnet", {}, "sonnet"),
        ("claude-opus-4-1", {}, "claude-opus-4-1"),
        ("haiku", {"haiku": "claude-haiku-4-5"}, "claude-haiku-4-5"),
        ("fast", {"fast": "haiku"}, "haiku"),
    ],
)
def test_models_have_the_names_of_the_table(starting: Starting, asked: str, given: dict[str, str], used: str) -> None:
    assert after("--model", starting.invocation({"models": given}, model=asked).argv) == used


def test_the_network_is_reached_through_the_proxy_and_the_loopback_is_not(starting: Starting) -> None:
    environment = starting.invocation(session={"proxy_url": "http://127.0.0.1:3128"}).environment
    assert environment["HTTPS_PROXY"] == environment["http_proxy"] == "http://127.0.0.1:3128"
    assert "127.0.0.1" in environment["NO_PROXY"]
    assert "HTTPS_PROXY" not in starting.invocation().environment


def test_root_may_skip_permissions_only_when_asked_to(starting: Starting) -> None:
    skipping = starting.invocation(permission_mode=PermissionMode.BYPASS_PERMISSIONS)
    assert "--dangerously-skip-permissions" in skipping.argv
    assert skipping.environment["IS_SANDBOX"] == "1"
    assert "IS_SANDBOX" not in starting.invocation(session={"sandboxed": True}).environment


def test_a_prompt_is_never_a_command_of_the_tool(starting: Starting) -> None:
    assert starting.invocation(prompt="/clear the table").stdin == "Your task:\n\n/clear the table"


def test_a_schema_that_is_too_long_for_a_word_goes_into_the_prompt(starting: Starting) -> None:
    long = {"type": "object", "description": "x" * 120_000}
    made = starting.invocation(output_schema=long)
    assert "--json-schema" not in made.argv
    assert max(len(word) for word in made.argv) < 100_000
    assert json.dumps(long, separators=(",", ":")) in made.stdin


def test_a_server_of_the_session_stands_before_one_of_the_settings(starting: Starting) -> None:
    inside = McpServer(name="orchard", url="http://127.0.0.1:7000/mcp", token_variable="ORCHARD_TOKEN")
    made = starting.invocation(
        {"mcpServers": {"orchard": {"url": "http://orchard.example/mcp"}, "mill": {"command": "mill", "args": ["-v"]}}},
        session={"mcp": (inside,)},
    )
    servers = json.loads(Path(after("--mcp-config", made.argv)).read_text())["mcpServers"]
    assert servers["orchard"]["url"] == "http://127.0.0.1:7000/mcp"
    assert servers["orchard"]["headers"] == {"Authorization": "Bearer ${ORCHARD_TOKEN}"}
    assert servers["mill"]["args"][-2:] == ["mill", "-v"]


def test_variables_are_set_and_passed_on(starting: Starting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOCK_SETTING", "quiet")
    made = starting.invocation({"env": {"COLOUR": "red"}, "passEnv": ["CLOCK_SETTING", "NO_SUCH_SETTING"]})
    assert (made.environment["COLOUR"], made.environment["CLOCK_SETTING"]) == ("red", "quiet")
    assert "NO_SUCH_SETTING" not in made.environment


@pytest.mark.parametrize(
    ("environment", "url", "header"),
    [
        ({}, "https://api.anthropic.com", "x-api-key"),
        ({"ANTHROPIC_BASE_URL": "http://gateway"}, "http://gateway", "x-api-key"),
        ({"ANTHROPIC_AUTH_TOKEN": "t"}, "https://api.anthropic.com", "authorization"),
        ({"CLAUDE_CODE_OAUTH_TOKEN": "t"}, "https://api.anthropic.com", "authorization"),
        ({"ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_API_KEY": "k"}, "https://api.anthropic.com", "x-api-key"),
    ],
)
def test_the_provider_is_known_from_the_environment(
    starting: Starting, environment: dict[str, str], url: str, header: str
) -> None:
    provider = starting.adapter().provider(environment)
    assert (provider.name, provider.url, provider.header) == ("anthropic", url, header)


def test_the_settings_may_name_another_address(starting: Starting) -> None:
    adapter = starting.adapter(baseUrl="http://mine")
    assert adapter.provider({"ANTHROPIC_BASE_URL": "http://other"}).url == "http://mine"
    assert starting.invocation({"baseUrl": "http://mine"}).environment["ANTHROPIC_BASE_URL"] == "http://mine"


def test_a_bearer_token_stays_one(starting: Starting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "the user's own")
    environment = starting.invocation(session={"model_key": "a word"}).environment
    assert environment["CLAUDE_CODE_OAUTH_TOKEN"] == "a word"
    assert "ANTHROPIC_API_KEY" not in environment


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, ""),
        ({"command": "no-such-claude"}, "no-such-claude is not installed: npm install"),
        ({"mcpServers": {"x": {}}}, "mcpServers.x has either a url or a command"),
        ({"mcpServers": {"x": {"url": "http://x", "command": "y"}}}, "mcpServers.x has either a url or a command"),
        ({"mcpServers": {"x": {"command": "y", "tokenEnv": "T"}}}, "mcpServers.x.tokenEnv goes with a url"),
        ({"mcpServers": {"x": {"url": "http://x", "tokenEnv": "NO_T"}}}, "NO_T is not set"),
        ({"homeFiles": ["../other"]}, "homeFiles: ../other is not a path inside of HOME"),
        ({"homeFiles": ["/etc/passwd"]}, "homeFiles: /etc/passwd is not a path inside of HOME"),
        ({"homeFiles": [".claude/none.json"]}, "homeFiles: there is no file ~/.claude/none.json"),
    ],
)
def test_problems_are_known_before_anything_is_touched(starting: Starting, given: dict[str, Any], problem: str) -> None:
    found = starting.adapter(**given).problem(starting.path)
    assert problem in found
    assert bool(found) == bool(problem)


async def test_what_is_not_installed_cannot_be_started(starting: Starting) -> None:
    with pytest.raises(NotFoundError, match="no-such-claude is not installed"):
        await starting.adapter(command="no-such-claude").start(starting.session())


def test_the_folders_of_a_tool_are_its_link_and_all_of_its_packages(starting: Starting) -> None:
    packages = starting.folder / "lib" / "node_modules"
    real = packages / "@anthropic-ai" / "claude-code" / "bin" / "claude.exe"
    real.parent.mkdir(parents=True)
    real.write_text("#!/bin/sh\n")
    real.chmod(0o755)
    starting.program.unlink()
    starting.program.symlink_to(real)
    folder, whole, *files = starting.adapter().folders(starting.path)
    assert (folder, whole) == (str(starting.program.parent), str(packages.resolve()))
    assert files == [str(starting.program), str(real.resolve())]


async def test_a_login_never_leaves_the_private_home(starting: Starting, monkeypatch: pytest.MonkeyPatch) -> None:
    own, elsewhere = starting.folder / "own home", starting.folder / "elsewhere"
    (own / ".claude").mkdir(parents=True)
    (own / ".claude" / "login.json").write_text("mine")
    elsewhere.mkdir()
    (starting.folder / "home").mkdir()
    (starting.folder / "home" / ".claude").symlink_to(elsewhere)
    monkeypatch.setenv("HOME", str(own))
    with pytest.raises(BoundaryViolationError, match="leads out of the private HOME"):
        await starting.adapter(homeFiles=[".claude/login.json"]).start(starting.session())
    assert list(elsewhere.iterdir()) == []


def test_links_that_an_agent_planted_are_never_followed(starting: Starting) -> None:
    asks, precious = starting.folder / "asks", starting.folder / "precious"
    asks.mkdir()
    precious.write_text("precious")
    system = after("--append-system-prompt-file", starting.invocation().argv)
    for name in (Path(system).name, "shell.sh", "mcp.json", "totals.json"):
        (asks / name).unlink(missing_ok=True)
        (asks / name).symlink_to(precious)

    starting.invocation({"mcpServers": {"mill": {"command": "mill"}}})
    Totals(str(asks)).delta("s", Usage(1, 1, 1.0))

    assert precious.read_text() == "precious"


def test_pipes_that_an_agent_planted_are_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "totals.json")
    assert Totals(str(tmp_path)).delta("s", Usage(5, 1, 0.5)) == Usage(5, 1, 0.5)
    assert Totals(str(tmp_path)).delta("s", Usage(7, 2, 0.75)) == Usage(2, 1, 0.25)


def test_a_shared_file_is_private_and_read_back(tmp_path: Path) -> None:
    write_shared(tmp_path / "deep" / "file", b"text")
    assert read_shared(tmp_path / "deep" / "file") == b"text"
    assert (tmp_path / "deep" / "file").stat().st_mode & 0o777 == 0o600
    assert read_shared(tmp_path / "none") is None
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["file"]
