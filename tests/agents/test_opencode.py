import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genba.connections.agents.cli_tools.opencode import OpenCodeAdapter, OpenCodeSettings, permissions
from genba.connections.agents.cli_tools.opencode_events import OpenCodeReading
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.domain.errors import AgentUnavailable, BoundaryViolationError, GenbaError, RateLimited, UnrecoverableError
from genba.domain.processes import Ending, Exit
from genba.domain.sessions.outcomes import PermissionMode
from genba.domain.sessions.replies import AgentSession, Reply
from genba.domain.sessions.sandbox import McpServer
from genba.testing.conformance import an_ask

TRANSCRIPTS = Path(__file__).parent / "transcripts" / "opencode"


class Listener:
    def __init__(self, **reading: Any) -> None:
        self.heard: list[tuple[str, str]] = []
        self.reading = OpenCodeReading(lambda *output: self.heard.append(output), **reading)

    def hears(self, name: str, code: int = 0) -> Reply:
        for line in (TRANSCRIPTS / f"{name}.jsonl").read_bytes().splitlines():
            self.reading.line(line)
        return self.ends(code)

    def ends(self, code: int = 0, stderr: str = "") -> Reply:
        return self.reading.reply(Exit(ending=Ending.EXITED, code=code, stdout="", stderr=stderr, seconds=1.0))

    def told(self, kind: str) -> list[str]:
        return [line for stream, line in self.heard if stream == kind]


def test_work_is_recognised_by_the_shared_tools_and_its_steps_are_summed() -> None:
    listener = Listener()
    reply = listener.hears("work")
    assert reply.text == "it is done"
    assert reply.tools_used == ("Write", "Bash")
    assert listener.told("tool") == ["Write new.txt", "Bash cat new.txt"]
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (3600, 126)
    assert reply.session_id is not None
    assert reply.session_id.startswith("ses_")


def test_what_was_denied_does_not_count_as_used() -> None:
    listener = Listener()
    reply = listener.hears("denied")
    assert (reply.tools_used, reply.tools_denied) == ((), ("Bash", "Write"))
    assert listener.told("notice")[0] == "Bash was denied: it is not offered"


def test_a_refused_key_and_a_rate_limit_are_different_ends() -> None:
    with pytest.raises(UnrecoverableError, match="refused the key") as refused:
        Listener(key_variable="MY_KEY").hears("401", 1)
    assert refused.value.hint == "check MY_KEY"
    with pytest.raises(RateLimited) as limited:
        Listener().hears("retry", 75)
    assert limited.value.retry_after == pytest.approx(600, abs=5)


def retry(attempt: int, seconds: float, message: str = "overloaded") -> bytes:
    return msgspec.json.encode({"type": "genba", "retry": attempt, "seconds": seconds, "message": message})


@pytest.mark.parametrize(
    ("line", "kind", "after"),
    [
        (retry(1, 2.4), AgentUnavailable, None),
        (retry(2, 4.9), AgentUnavailable, None),
        (retry(2, 5.0, "Too Many Requests"), RateLimited, None),
        (retry(1, 9.0), RateLimited, 9.0),
    ],
)
def test_a_wait_named_by_the_provider_differs_from_opencodes_own(
    line: bytes, kind: type[GenbaError], after: float | None
) -> None:
    listener = Listener()
    listener.reading.line(line)
    with pytest.raises(kind) as result:
        listener.ends(75)
    assert getattr(result.value, "retry_after", None) == after


def test_a_trouble_that_passed_is_no_end() -> None:
    listener = Listener()
    listener.reading.line(retry(1, 2.0))
    assert listener.hears("work").text == "it is done"


def finish(reason: str) -> bytes:
    return msgspec.json.encode({"type": "step_finish", "sessionID": "ses_1", "part": {"reason": reason}})


def test_answers_without_an_end_end_the_process() -> None:
    listener = Listener()
    for reason in ("unknown", "tool-calls", "unknown", "unknown"):
        listener.reading.line(finish(reason))
    with pytest.raises(AgentUnavailable, match="have no end"):
        listener.reading.line(finish("unknown"))


@pytest.mark.parametrize("reason", ["tool-calls", "unknown", ""])
def test_an_exit_code_of_nought_is_no_success(reason: str) -> None:
    listener = Listener()
    listener.reading.line(finish(reason))
    with pytest.raises(AgentUnavailable, match="ended with exit code 0"):
        listener.ends(0)


def test_tools_of_servers_have_the_name_of_their_server() -> None:
    servers = (McpServer(name="orchard", url="http://x"), McpServer(name="orchard_north", url="http://x"))
    listener = Listener(servers=servers)
    state = {"status": "completed", "input": {}}
    for tool in ("orchard_pick", "orchard_north_pick"):
        listener.reading.line(msgspec.json.encode({"type": "tool_use", "part": {"tool": tool, "state": state}}))
    listener.reading.line(finish("stop"))
    assert listener.ends().tools_used == ("mcp__orchard__pick", "mcp__orchard_north__pick")


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.fixed_dictionaries(
                {
                    "type": st.sampled_from(["step_finish", "tool_use", "text", "error", "genba"]),
                    "sessionID": st.one_of(st.none(), st.text()),
                    "part": st.one_of(
                        st.none(),
                        st.dictionaries(
                            st.sampled_from(["reason", "tokens", "state", "tool", "text", "cost", "messageID"]),
                            st.one_of(st.none(), st.text(), st.integers(), st.dictionaries(st.text(), st.text())),
                        ),
                    ),
                    "retry": st.one_of(st.none(), st.integers(), st.text()),
                    "error": st.one_of(st.none(), st.text(), st.dictionaries(st.text(), st.text())),
                }
            ).map(msgspec.json.encode),
        ),
        max_size=2,
    )
)
def test_no_line_is_too_strange(lines: list[bytes]) -> None:
    listener = Listener()
    for line in lines:
        listener.reading.line(line)
    with pytest.raises(GenbaError):
        listener.ends(1)


@pytest.fixture
def session(tmp_path: Path) -> AgentSession:
    return AgentSession(
        run="run-1",
        agent="tester",
        workdir=str(tmp_path / "tree"),
        folder=str(tmp_path / "asks"),
        environment={"PATH": os.environ["PATH"]},
        processes=ProcessSupervisor(),
        home=str(tmp_path / "home"),
        model_key="the-word-of-the-session",
    )


@pytest.mark.parametrize("mode", list(PermissionMode))
@pytest.mark.parametrize("tools", [None, (), ("Read", "Bash"), ("mcp__orchard",)])
@pytest.mark.parametrize("sandboxed", [True, False])
def test_no_person_is_ever_asked(
    session: AgentSession, mode: PermissionMode, tools: tuple[str, ...] | None, sandboxed: bool
) -> None:
    ask = msgspec.structs.replace(an_ask(session), permission_mode=mode, allowed_tools=tools)
    text = msgspec.json.encode(permissions(ask, sandboxed, ("orchard",))).decode()
    assert '"ask"' not in text
    assert text.startswith('{"*":"deny"')


def test_no_secret_and_no_prompt_is_on_the_command_line_or_in_a_file(session: AgentSession, tmp_path: Path) -> None:
    adapter = OpenCodeAdapter(OpenCodeSettings(type="opencode"), tmp_path)
    made = adapter.invocation(session, an_ask(session))
    assert not any("the-word-of-the-session" in word or "Say hello." in word for word in made.argv)
    assert made.stdin == "Say hello."
    for path in [*(tmp_path / "asks").rglob("*"), *(tmp_path / "home").rglob("*")]:
        assert not path.is_file() or b"the-word-of-the-session" not in path.read_bytes()


def test_a_schema_that_the_prompt_shows_already_is_not_shown_twice(session: AgentSession, tmp_path: Path) -> None:
    adapter = OpenCodeAdapter(OpenCodeSettings(type="opencode"), tmp_path)
    schema = {"type": "object", "properties": {"answer": {"type": "integer"}}}
    shown = msgspec.json.format(msgspec.json.encode(schema), indent=2).decode()
    ask = msgspec.structs.replace(an_ask(session), output_schema=schema)
    assert adapter.invocation(session, ask).stdin.count(shown) == 1
    ask = msgspec.structs.replace(ask, prompt=f"Answer like this:\n{shown}\n")
    assert adapter.invocation(session, ask).stdin == ask.prompt


def test_providers_are_known_by_name_and_others_need_an_address(tmp_path: Path) -> None:
    def adapter(**settings: Any) -> OpenCodeAdapter:
        return OpenCodeAdapter(msgspec.convert({"type": "opencode", **settings}, OpenCodeSettings), tmp_path)

    known = adapter().provider({})
    assert known is not None
    assert (known.name, known.key_variables, known.header) == ("anthropic", ("ANTHROPIC_API_KEY",), "x-api-key")
    assert adapter(provider={"name": "mine"}).provider({}) is None
    assert "needs a baseUrl" in adapter(provider={"name": "mine"}).problem({})
    own = adapter(provider={"name": "mine"}, baseUrl="http://here/v1", keyEnv="MINE_KEY").provider({})
    assert own is not None
    assert (own.url, own.key_variables, own.header) == ("http://here/v1", ("MINE_KEY",), "authorization")


def test_models_have_names_that_all_agents_share_and_the_project_may_change_them(tmp_path: Path) -> None:
    adapter = OpenCodeAdapter(OpenCodeSettings(type="opencode", models={"haiku": "anthropic/small"}), tmp_path)
    assert adapter.model("opus") == adapter.model("claude-opus") != adapter.model("sonnet")
    assert (adapter.model("haiku"), adapter.model("claude-x")) == ("small", "claude-x")


def test_a_link_that_an_agent_left_in_its_home_is_not_followed(session: AgentSession, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "home" / ".config").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BoundaryViolationError, match="private HOME"):
        OpenCodeAdapter(OpenCodeSettings(type="opencode"), tmp_path).invocation(session, an_ask(session))
    assert list((tmp_path / "elsewhere").iterdir()) == []
