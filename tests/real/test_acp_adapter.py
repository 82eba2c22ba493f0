"""Real agents that speak the Agent Client Protocol, behind the adapter for it: gemini and opencode."""

import asyncio
import json
from pathlib import Path

import pytest

from genba.connections.agents.acp.adapter import AcpAdapter
from genba.connections.processes.tree import living
from genba.domain.errors import AgentTimeout, AgentUnavailable, UnrecoverableError
from genba.domain.ports import AgentAdapter
from genba.domain.sessions.outcomes import PermissionMode
from genba.domain.sessions.replies import AgentSession
from genba.testing.conformance import AgentAdapterSuite
from tests.bubblewrap import needs_bubblewrap
from tests.clis import path_with_clis
from tests.project import Project, until
from tests.real.tool_places import KEY, ToolPlace
from tests.standins.model_server import Answer, Call, Fail, Hang, ModelServer, Run, Say, Tokens, Write

OPENCODE_CONFIG = {
    "provider": {
        "stub": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{env:STUB_URL}", "apiKey": "{env:STUB_KEY}"},
            "models": {"stub-model": {}, "small-model": {}},
        }
    },
    "model": "stub/stub-model",
}
OPENCODE_SETTINGS = {
    "env": {"OPENCODE_CONFIG_CONTENT": json.dumps(OPENCODE_CONFIG)},
    "models": {"haiku": "small-model"},
    "provider": {"url": "http://127.0.0.1:9", "keyEnv": "STUB_KEY", "urlEnv": "STUB_URL"},
}


class GeminiPlace(ToolPlace):
    @property
    def session(self) -> AgentSession:
        self.url = self.url.removesuffix("/v1")
        return super().session


@pytest.fixture
def gemini_place(gemini: Path, model: ModelServer, tmp_path: Path) -> ToolPlace:
    return GeminiPlace(AcpAdapter, gemini, model, tmp_path)


@pytest.fixture
def opencode_place(opencode: Path, model: ModelServer, tmp_path: Path) -> ToolPlace:
    return ToolPlace(AcpAdapter, opencode, model, tmp_path, **OPENCODE_SETTINGS)


class TestGeminiPassesTheSuite(AgentAdapterSuite):
    @pytest.fixture
    def adapter(self, gemini_place: ToolPlace) -> AgentAdapter:
        return gemini_place.adapter

    @pytest.fixture
    def session(self, gemini_place: ToolPlace) -> AgentSession:
        gemini_place.follows(Say("hello"))
        return gemini_place.session


# ── gemini ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_gemini_writes_a_file_when_it_may(gemini_place: ToolPlace) -> None:
    gemini_place.follows(
        Write("hello.txt", "hello\n", usage=Tokens(100, 10, 0)), Say("wrote it", usage=Tokens(200, 20, 0))
    )
    reply = await gemini_place.ask(allowed_tools=("Read", "Write"))

    assert (gemini_place.tree / "hello.txt").read_text() == "hello\n"
    assert (reply.text, reply.tools_used, reply.tools_denied) == ("wrote it", ("Write",), ())
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (300, 30)
    assert gemini_place.told("tool") == ["Write hello.txt"]
    assert {(request.key, request.model) for request in gemini_place.asked()} == {(KEY, "gemini-2.5-flash")}


async def test_gemini_is_denied_what_is_not_on_the_list(gemini_place: ToolPlace) -> None:
    gemini_place.follows(Run("echo hi > ran.txt"), Say("I could not"))
    reply = await gemini_place.ask(allowed_tools=("Read", "Write"))

    assert not (gemini_place.tree / "ran.txt").exists()
    assert (reply.tools_used, reply.tools_denied) == ((), ("Bash",))


async def test_gemini_plans_and_changes_nothing(gemini_place: ToolPlace) -> None:
    gemini_place.follows(Call("write_file", {"file_path": "hello.txt", "content": "hi"}), Say("a plan"))
    reply = await gemini_place.ask(permission_mode=PermissionMode.PLAN)

    assert not (gemini_place.tree / "hello.txt").exists()
    assert reply.text == "a plan"


async def test_a_wrong_key_of_gemini_is_named(gemini_place: ToolPlace) -> None:
    gemini_place.follows(Fail(401))
    with pytest.raises(UnrecoverableError, match="401") as caught:
        await gemini_place.ask()
    assert "GEMINI_API_KEY" in caught.value.hint


async def test_gemini_that_is_stopped_in_the_middle_of_a_command_leaves_no_process(gemini_place: ToolPlace) -> None:
    beacon = gemini_place.folder / "beacon"
    gemini_place.follows(Run(f"(setsid sleep 600 & echo x > {beacon}; sleep 600)"), Say("never"))
    asking = asyncio.create_task(gemini_place.ask(permission_mode=PermissionMode.BYPASS_PERMISSIONS))
    await asyncio.to_thread(until, beacon.exists, 60)
    assert len(living(gemini_place.session.run)) >= 3

    asking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asking
    assert living(gemini_place.session.run) == set()


# ── opencode ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_opencode_writes_a_file_and_goes_on_with_its_session(opencode_place: ToolPlace) -> None:
    opencode_place.follows(Write("hello.txt", "hello\n"), Say("wrote it"))
    first = await opencode_place.ask(allowed_tools=("Write",))
    second = await opencode_place.ask(2, allowed_tools=("Write",), session_id=first.session_id)

    assert (opencode_place.tree / "hello.txt").read_text() == "hello\n"
    assert (first.text, first.tools_used, first.tools_denied) == ("wrote it", ("Write",), ())
    assert second.session_id == first.session_id
    assert opencode_place.told("notice") == []
    asked = [request for request in opencode_place.asked() if request.tools]
    assert {(request.key, request.model) for request in asked} == {(KEY, "small-model")}
    assert "Say hello." in json.dumps(asked[-1].body["messages"][:-3])


async def test_opencode_is_denied_what_is_not_on_the_list(opencode_place: ToolPlace) -> None:
    opencode_place.follows(Run("echo hi > ran.txt"), Say("I could not"))
    reply = await opencode_place.ask(allowed_tools=("Read", "Write"))

    assert not (opencode_place.tree / "ran.txt").exists()
    assert (reply.tools_used, reply.tools_denied) == ((), ("Bash",))


async def test_what_the_provider_of_opencode_refuses_is_an_error(opencode_place: ToolPlace) -> None:
    opencode_place.follows(Fail(401, message="Incorrect API key provided"))
    with pytest.raises(UnrecoverableError, match="Incorrect API key"):
        await opencode_place.ask()


async def test_opencode_that_hears_nothing_runs_into_its_time(opencode_place: ToolPlace) -> None:
    opencode_place.follows(Hang())
    with pytest.raises((AgentTimeout, AgentUnavailable)):
        await opencode_place.ask(idle_seconds=12)
    assert living(opencode_place.session.run) == set()


# ── a whole run ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_gemini_works_on_an_issue_in_the_sandbox_and_is_merged(
    project: Project, gemini: Path, model: ModelServer
) -> None:
    needs_bubblewrap()
    work = (
        Write("hello.txt", "hello\n"),
        Run("git add hello.txt; git commit -qm 'Say hello'; env"),
        Answer({"summary": "it is written", "next_action": {"action": "handoff"}}),
    )
    close = (Answer({"status": "completed", "next_action": {"action": "closing"}}),)
    project.issue(7, "Say hello", "Write hello.txt.")
    project.environment |= {
        "PATH": path_with_clis(),
        "GEMINI_API_KEY": "only-the-host-holds-this",
        "GOOGLE_GEMINI_BASE_URL": model.answers("run", {"# Work on": work, "# Close issue": close}),
    }
    words = ("--adapter", "acp", "--set", "runner.adapter.command=gemini", "--sandbox", "bubblewrap")

    done = project.run("iterator", "--issue", "7", "--mode", "iterate", *words)

    assert (done["outcome"], done["merge"], done["sandbox"]) == ("completed", "merged", "bubblewrap")
    assert project.git("show", "main:hello.txt") == "hello"
    asked = model.asked("run")
    assert {request.key for request in asked} == {"only-the-host-holds-this"}
    output = str([request.body for request in asked])
    assert "GEMINI_API_KEY=" in output
    assert "only-the-host-holds-this" not in output
