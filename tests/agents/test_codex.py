"""What Codex says is understood, whatever it is; and its words for a question hold no secret."""

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genba.connections.agents.cli_tools.codex import CodexAdapter, CodexSettings, toml
from genba.connections.agents.cli_tools.codex_events import CodexReading
from genba.connections.agents.command_line import Totals
from genba.connections.agents.model_errors import wait_in_text
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.domain.errors import AgentUnavailable, BoundaryViolationError, RateLimited, UnrecoverableError
from genba.domain.processes import Ending, Exit
from genba.domain.sessions.replies import AgentSession, Ask, Reply
from genba.testing.conformance import an_ask

TRANSCRIPTS = Path(__file__).parent / "transcripts" / "codex"


class Listener:
    def __init__(self, folder: Path, **reading: Any) -> None:
        self.heard: list[tuple[str, str]] = []
        self.reading = CodexReading(lambda *printed: self.heard.append(printed), totals=Totals(str(folder)), **reading)

    def hears(self, name: str, code: int = 0) -> Reply:
        for line in (TRANSCRIPTS / f"{name}.jsonl").read_bytes().splitlines():
            self.reading.line(line)
        output = TRANSCRIPTS / f"{name}.stderr.txt"
        return self.ends(code, output.read_text() if output.exists() else "")

    def ends(self, code: int = 0, stderr: str = "") -> Reply:
        return self.reading.reply(Exit(ending=Ending.EXITED, code=code, stdout="", stderr=stderr, seconds=1.0))

    def told(self, kind: str) -> list[str]:
        return [line for stream, line in self.heard if stream == kind]


@pytest.fixture
def listener(tmp_path: Path) -> Listener:
    return Listener(tmp_path)


def test_work_is_recognised_by_the_tools_that_all_agents_share(listener: Listener) -> None:
    reply = listener.hears("work")
    assert reply.text == "it is done"
    assert reply.tools_used == ("Write", "Edit", "Bash")
    assert listener.told("tool") == ["Write /work/tree/new.txt", "Edit /work/tree/old.txt", "Bash cat new.txt"]
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (3600, 126)


def test_the_same_total_again_cost_nothing(tmp_path: Path) -> None:
    assert Listener(tmp_path).hears("work").usage.tokens > 0
    assert Listener(tmp_path).hears("work").usage.tokens == 0


def test_what_was_denied_is_reported_though_no_event_does(tmp_path: Path) -> None:
    reply = Listener(tmp_path, reads="Read").hears("denied")
    assert (reply.tools_used, reply.tools_denied) == (("Read",), ("Edit", "Bash"))


def test_a_command_that_does_more_than_read_is_seen_even_if_nothing_stopped_it(tmp_path: Path) -> None:
    listener = Listener(tmp_path, reads="Read")
    listener.reading.line(
        b'{"type":"item.started","item":{"id":"1","type":"command_execution","command":"/bin/bash -c \'rm a\'"}}'
    )
    listener.reading.line(b'{"type":"turn.completed","usage":{}}')
    assert listener.ends().tools_used == ("Bash",)


def test_a_refused_key_a_wrong_question_and_a_used_up_plan_are_different_ends(tmp_path: Path) -> None:
    with pytest.raises(UnrecoverableError, match="refused the key") as refused:
        Listener(tmp_path, key_variable="MY_KEY").hears("401", 1)
    assert refused.value.hint == "check MY_KEY"
    with pytest.raises(UnrecoverableError, match="The model does not exist"):
        Listener(tmp_path).hears("400", 1)
    with pytest.raises(RateLimited) as limited:
        Listener(tmp_path).hears("usage-limit", 1)
    assert limited.value.retry_after is not None


def test_an_exit_code_of_nought_is_no_success(listener: Listener) -> None:
    listener.reading.line(b'{"type":"thread.started","thread_id":"1"}')
    with pytest.raises(AgentUnavailable, match="without a result"):
        listener.ends(0)


def test_a_turn_that_failed_after_one_that_did_not_is_a_failure(listener: Listener) -> None:
    listener.reading.line(b'{"type":"turn.completed","usage":{"input_tokens":5}}')
    listener.reading.line(b'{"type":"turn.failed","error":{"message":"stream disconnected"}}')
    with pytest.raises(AgentUnavailable, match="stream disconnected"):
        listener.ends(0)


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.fixed_dictionaries(
                {
                    "type": st.sampled_from(
                        ["thread.started", "turn.completed", "turn.failed", "error", "item.completed"]
                    ),
                    "item": st.fixed_dictionaries(
                        {
                            "type": st.sampled_from(
                                ["command_execution", "file_change", "mcp_tool_call", "error", "x"]
                            ),
                            "changes": st.one_of(
                                st.none(), st.lists(st.integers()), st.lists(st.dictionaries(st.text(), st.text()))
                            ),
                            "command": st.one_of(st.none(), st.text(), st.integers()),
                        }
                    ),
                    "usage": st.one_of(
                        st.none(), st.dictionaries(st.just("input_tokens"), st.one_of(st.integers(), st.text()))
                    ),
                    "error": st.one_of(st.none(), st.text(), st.dictionaries(st.text(), st.text())),
                }
            ).map(msgspec.json.encode),
        ),
        max_size=8,
    )
)
def test_no_line_is_too_strange(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    listener = Listener(tmp_path_factory.mktemp("asks"))
    for line in lines:
        listener.reading.line(line)


NOW = datetime(2026, 11, 16, 12, 0, tzinfo=timezone(timedelta(hours=9)))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please try again in 11.054s.", 11.054),
        ("Please try again in 20ms.", 0.02),
        ("try again in 3 days 4 hours 5 minutes.", 3 * 86400 + 4 * 3600 + 5 * 60),
        ("Try again in 1h30m.", 5400),
        ("or try again at Nov 17th, 2026 7:19 AM.", 19 * 3600 + 19 * 60),
        ("or try again at 3:30 PM.", 3.5 * 3600),
        ("try again at Feb 31st, 2026 7:19 AM", None),
        ("try again at 99:99 PM", None),
        ("try again later", None),
    ],
)
def test_the_time_to_come_back_is_read_from_the_text(text: str, seconds: float | None) -> None:
    assert wait_in_text(text, NOW) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    "value", ["", 'a "quoted" \\ line\nand\tmore\x7f\x00', "日本", True, 3, [], {"a b": {"c": ["d"]}}, {"x": {}}]
)
def test_values_are_written_in_toml(value: Any) -> None:
    import tomllib

    output = f"value = {toml(value)}"
    assert "\n" not in output
    assert tomllib.loads(output)["value"] == value


def a_session(folder: Path, **changes: Any) -> AgentSession:
    session = AgentSession(
        run="run-1",
        agent="tester",
        workdir=str(folder / "tree"),
        folder=str(folder / "asks"),
        environment={"PATH": os.environ["PATH"]},
        processes=ProcessSupervisor(),
        home=str(folder / "home"),
        model_key="the-word-of-the-session",
    )
    return msgspec.structs.replace(session, **changes)


def a_question(session: AgentSession, **changes: Any) -> Ask:
    return msgspec.structs.replace(an_ask(session), **changes)


def test_no_secret_and_no_prompt_is_on_the_command_line(tmp_path: Path) -> None:
    server = {"command": "orchard", "env": {"SEED": "a-secret-of-the-server"}}
    settings = msgspec.convert({"type": "codex", "mcpServers": {"orchard": server}}, CodexSettings)
    session = a_session(tmp_path)
    made = CodexAdapter(settings, tmp_path).invocation(session, a_question(session))
    line = " ".join(made.argv)
    assert "the-word-of-the-session" not in line
    assert "a-secret-of-the-server" not in line
    assert "Say hello." not in line
    assert made.stdin == "Say hello."
    assert "a-secret-of-the-server" not in made.environment.values()


def test_a_login_of_the_user_is_left_to_codex(tmp_path: Path) -> None:
    settings = CodexSettings(type="codex")
    session = a_session(tmp_path, model_key="")
    made = CodexAdapter(settings, tmp_path).invocation(session, a_question(session))
    assert not any("model_provider" in word for word in made.argv)


def test_models_have_names_that_all_agents_share_and_the_project_may_change_them(tmp_path: Path) -> None:
    adapter = CodexAdapter(CodexSettings(type="codex", models={"haiku": "small", "mine": "gpt-mine"}), tmp_path)
    assert adapter.model("opus") == adapter.model("claude-opus") != adapter.model("sonnet")
    assert (adapter.model("haiku"), adapter.model("mine"), adapter.model("gpt-5.5")) == ("small", "gpt-mine", "gpt-5.5")


def test_a_link_that_an_agent_left_in_its_home_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".codex").symlink_to(tmp_path / "elsewhere")
    session = a_session(tmp_path)
    with pytest.raises(BoundaryViolationError, match="private HOME"):
        CodexAdapter(CodexSettings(type="codex"), tmp_path).invocation(session, a_question(session))
    assert not (tmp_path / "elsewhere").exists()
