"""The adapter for agents of the Agent Client Protocol, with a real process that speaks it and follows a script."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from genba.connections.agents.acp.adapter import AcpAdapter, AcpSettings, ProviderSettings
from genba.connections.agents.acp.errors import refused
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.connections.sandbox.bubblewrap.bubblewrap import BubblewrapSandbox
from genba.domain.errors import (
    AgentTimeout,
    AgentUnavailable,
    BoundaryViolationError,
    GenbaError,
    NotFoundError,
    RateLimited,
    RecoverableError,
    UnrecoverableError,
)
from genba.domain.ports import AgentAdapter
from genba.domain.sessions.outcomes import PermissionMode
from genba.domain.sessions.replies import AgentSession, Ask, Reply, Usage
from genba.domain.sessions.sandbox import McpServer, SandboxSpec
from genba.testing.conformance import AgentAdapterSuite, an_ask
from tests.bubblewrap import needs_bubblewrap

AGENT = str(Path(__file__).parent / "acp_agent.py")
DONE: dict[str, Any] = {"result": {"stopReason": "end_turn"}}
ONCE_OR_ALWAYS = [
    {"optionId": "forever", "kind": "allow_always", "name": "Always"},
    {"optionId": "yes", "kind": "allow_once", "name": "Once"},
    {"optionId": "no", "kind": "reject_once", "name": "No"},
]


class Scene:
    def __init__(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path
        self.tree = tmp_path / "tree"
        self.tree.mkdir()
        self.heard: list[tuple[str, str]] = []
        self.log = tmp_path / "log.jsonl"
        self.session = AgentSession(
            run=f"run-{uuid4().hex}",
            agent="tester",
            workdir=str(self.tree),
            folder=str(tmp_path / "asks"),
            environment={"PATH": os.environ["PATH"]},
            processes=ProcessSupervisor(),
            home=str(tmp_path / "home"),
        )

    def adapter(self, script: dict[str, Any], **settings: Any) -> AcpAdapter:
        env = {"ACP_SCRIPT": json.dumps(script), "ACP_LOG": str(self.log), **settings.pop("env", {})}
        given = AcpSettings(type="acp", command=sys.executable, args=(AGENT,), env=env, **settings)
        return AcpAdapter(given, self.tmp_path)

    async def ask(self, script: dict[str, Any], settings: dict[str, Any] | None = None, **ask: Any) -> Reply:
        adapter = self.adapter(script, **(settings or {}))
        instance = await adapter.start(self.session)
        return await adapter.execute(instance, self.question(**ask), lambda *result: self.heard.append(result))

    def question(self, **changed: Any) -> Ask:
        return msgspec.structs.replace(an_ask(self.session), **changed)

    def result(self, what: str) -> list[Any]:
        entries = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [value for name, value in entries if name == what]

    def of(self, stream: str) -> list[str]:
        return [line for name, line in self.heard if name == stream]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def a_call(**result: Any) -> dict[str, Any]:
    return {"update": {"sessionUpdate": "tool_call", "toolCallId": "call-1", "status": "in_progress", **result}}


def may_it(options: list[dict[str, str]] | None = None, **call: Any) -> dict[str, Any]:
    given = ONCE_OR_ALWAYS if options is None else options
    return {"ask": {"sessionId": "session-1", "toolCall": {"toolCallId": "call-1", **call}, "options": given}}


class TestTheSuite(AgentAdapterSuite):
    @pytest.fixture
    def adapter(self, scene: Scene) -> AgentAdapter:
        return scene.adapter({})

    @pytest.fixture
    def session(self, scene: Scene) -> AgentSession:
        return scene.session


# ── a turn ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_question_goes_in_as_a_prompt_and_its_answer_comes_back(scene: Scene) -> None:
    reply = await scene.ask({"turns": [{"say": "hel"}, {"say": "lo"}, DONE]})

    assert (reply.text, reply.session_id, reply.exit_code) == ("hello", "session-1", 0)
    [asked] = scene.result("session/prompt")
    assert asked["prompt"] == [{"type": "text", "text": "You are polite.\n\nSay hello."}]
    assert scene.result("session/new") == [{"cwd": str(scene.tree), "mcpServers": []}]


async def test_the_host_offers_the_agent_neither_files_nor_a_terminal_and_refuses_them(scene: Scene) -> None:
    wanted = {"sessionId": "session-1", "path": str(scene.tmp_path / "out.txt"), "content": "x"}
    asks = {"ask": wanted, "method": "fs/write_text_file"}
    await scene.ask({"turns": [asks, {"ask": {}, "method": "terminal/create"}, {"say": "hello"}, DONE]})

    [offered] = scene.result("initialize")
    assert offered["clientCapabilities"]["fs"] == {"readTextFile": False, "writeTextFile": False}
    assert offered["clientCapabilities"]["terminal"] is False
    assert [answer["error"]["code"] for answer in scene.result("permission")] == [-32601, -32601]
    assert not (scene.tmp_path / "out.txt").exists()


async def test_only_text_after_the_last_tool_is_the_answer(scene: Scene) -> None:
    reply = await scene.ask({"turns": [{"say": "let me look"}, a_call(kind="read"), {"say": "it is 4"}, DONE]})

    assert reply.text == "it is 4"


async def test_a_schema_is_asked_for_in_the_prompt(scene: Scene) -> None:
    await scene.ask({}, output_schema={"type": "object", "required": ["height"]})

    [asked] = scene.result("session/prompt")
    assert asked["prompt"][0]["text"].endswith('fits this JSON Schema:\n\n{"type":"object","required":["height"]}\n')


async def test_garbage_and_unknown_updates_do_no_harm(scene: Scene) -> None:
    odd: list[Any] = [[], 7, {"id": [1], "result": 1}, {"id": 77, "result": {}}, {"method": 5}, {"error": 3, "id": "x"}]
    lines = [{"raw": json.dumps(each).encode().hex()} for each in odd]
    updates: list[Any] = [
        {},
        {"sessionUpdate": "from_the_future", "x": 1},
        {"sessionUpdate": "tool_call"},
        {"sessionUpdate": "tool_call", "toolCallId": "x", "locations": [3, {}], "content": "?", "rawInput": 4},
        {"sessionUpdate": "agent_message_chunk", "content": [1]},
        {"sessionUpdate": "usage_update", "cost": {"amount": "much", "currency": "USD"}},
    ]
    turns = [{"raw": "fffe00ff"}, *lines, *({"update": each} for each in updates), {"say": "hello"}, DONE]

    assert (await scene.ask({"turns": turns})).text == "hello"
    assert [line for line in scene.of("stderr") if "Traceback" in line] == []


# ── tools and permissions ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("result", "name"),
    [
        ({"kind": "read", "title": "Reading app.py"}, "Read"),
        ({"kind": "edit", "title": "Editing app.py"}, "Edit"),
        (
            {"kind": "edit", "title": "x", "content": [{"type": "diff", "path": "a", "oldText": "", "newText": "b"}]},
            "Write",
        ),
        ({"kind": "edit", "title": "write"}, "Write"),
        ({"kind": "delete", "title": "rm app.py"}, "Edit"),
        ({"kind": "execute", "title": "echo hi"}, "Bash"),
        ({"kind": "search", "title": "grep"}, "Grep"),
        ({"kind": "search", "title": "looking"}, "Grep"),
        ({"kind": "search", "title": "glob"}, "Glob"),
        ({"kind": "fetch", "title": "a page"}, "WebFetch"),
        ({"kind": "think", "title": "todowrite"}, "TodoWrite"),
        ({"kind": "other", "title": "orch_echo"}, "mcp__orch__echo"),
        ({"kind": "other", "title": "mcp__orch__echo"}, "mcp__orch__echo"),
        ({"kind": "edit", "title": "x", "_meta": {"claudeCode": {"toolName": "NotebookEdit"}}}, "NotebookEdit"),
        ({"kind": "other", "title": "a thing\nof its own"}, "a_thing_of_its_own"),
    ],
)
async def test_tools_have_the_names_of_the_house(scene: Scene, result: dict[str, Any], name: str) -> None:
    scene.session = msgspec.structs.replace(scene.session, mcp=(McpServer(name="orch", command=("true",)),))
    reply = await scene.ask({"turns": [a_call(**result), DONE]})

    assert reply.tools_used == (name,)
    assert scene.of("tool")[0].startswith(name)


async def test_mere_thinking_is_no_tool(scene: Scene) -> None:
    reply = await scene.ask({"turns": [a_call(kind="think", title="hmm"), {"say": "hello"}, DONE]})

    assert reply.tools_used == ()


async def test_a_tool_that_is_used_without_asking_is_seen_with_what_it_was_used_on(scene: Scene) -> None:
    path = str(scene.tree / "src" / "app.py")
    turns = [a_call(kind="edit", title="Edit", locations=[{"path": path}]), DONE]
    reply = await scene.ask({"turns": turns}, allowed_tools=("Read",))

    assert reply.tools_used == ("Edit",)
    assert scene.of("tool") == ["Edit src/app.py"]


async def test_a_call_is_named_once_by_all_of_its_details(scene: Scene) -> None:
    later = {"sessionUpdate": "tool_call_update", "toolCallId": "call-1", "status": "completed"}
    turns = [
        a_call(kind="execute", title="bash", status="pending"),
        {"update": {**later, "status": "in_progress", "rawInput": {"command": "pytest -q"}}},
        {"update": {**later, "title": "pytest -q"}},
        DONE,
    ]
    reply = await scene.ask({"turns": turns})

    assert reply.tools_used == ("Bash",)
    assert scene.of("tool") == ["Bash pytest -q"]


MODES = list(PermissionMode)
PLAN, ACCEPT, BYPASS = MODES


@pytest.mark.parametrize(
    ("mode", "listed", "kind", "yes"),
    [
        (PLAN, None, "read", True),
        (PLAN, None, "search", True),
        (PLAN, None, "edit", False),
        (PLAN, None, "execute", False),
        (PLAN, ("Read", "Bash"), "execute", True),
        (PLAN, ("Read", "Edit"), "edit", False),
        (PLAN, None, "switch_mode", False),
        (ACCEPT, None, "edit", True),
        (ACCEPT, None, "execute", False),
        (ACCEPT, ("Bash(git *)", "Read"), "execute", True),
        (ACCEPT, ("Read",), "edit", False),
        (ACCEPT, ("Read",), "fetch", False),
        (ACCEPT, None, "switch_mode", False),
        (BYPASS, None, "execute", True),
        (BYPASS, None, "fetch", True),
        (BYPASS, ("Read",), "execute", False),
    ],
)
async def test_the_boundaries_answer_when_the_agent_asks(
    scene: Scene, mode: PermissionMode, listed: tuple[str, ...] | None, kind: str, yes: bool
) -> None:
    turns = [may_it(kind=kind, title="it"), {"say": "hello"}, DONE]
    reply = await scene.ask({"turns": turns}, permission_mode=mode, allowed_tools=listed)

    [answer] = scene.result("permission")
    assert answer["result"]["outcome"] == {"outcome": "selected", "optionId": "yes" if yes else "no"}
    assert bool(reply.tools_denied) is not yes
    assert bool(reply.tools_used) is yes


async def test_in_the_sandbox_an_agent_without_a_list_may_run_commands(scene: Scene) -> None:
    scene.session = msgspec.structs.replace(scene.session, sandboxed=True)
    reply = await scene.ask({"turns": [may_it(kind="execute", title="make"), DONE]})

    assert reply.tools_used == ("Bash",)


async def test_without_a_sandbox_no_file_outside_of_the_working_tree_may_be_edited(scene: Scene) -> None:
    outside = [{"path": str(scene.tree / ".." / "other.txt")}]
    reply = await scene.ask({"turns": [may_it(kind="edit", title="it", locations=outside), DONE]})

    assert reply.tools_denied == ("Edit",)
    assert "not allowed: Edit" in scene.of("notice")[0]


async def test_an_agent_that_offers_no_way_to_refuse_gets_a_cancelled_choice(scene: Scene) -> None:
    turns = [may_it([{"optionId": "yes", "kind": "allow_once", "name": "Yes"}], kind="execute", title="it"), DONE]
    await scene.ask({"turns": turns})

    [answer] = scene.result("permission")
    assert answer["result"]["outcome"] == {"outcome": "cancelled"}


@pytest.mark.parametrize("asked", [{}, {"toolCall": 3, "options": 4}, {"toolCall": {"toolCallId": 5}}, [], None])
async def test_a_question_that_makes_no_sense_is_answered_with_no(scene: Scene, asked: Any) -> None:
    reply = await scene.ask({"turns": [{"ask": asked}, {"say": "hello"}, DONE]}, permission_mode=BYPASS)

    [answer] = scene.result("permission")
    assert answer["result"]["outcome"] == {"outcome": "cancelled"}
    assert reply.tools_used == ()


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("abilities", "method"),
    [({}, "session/load"), ({"sessionCapabilities": {"resume": {}}}, "session/resume")],
)
async def test_a_session_goes_on_without_its_instructions_again(
    scene: Scene, abilities: dict[str, Any], method: str
) -> None:
    script = {"abilities": abilities}
    first = await scene.ask(script)
    again = await scene.ask(script, session_id=first.session_id, number=2)

    assert again.session_id == "session-1"
    assert [message["sessionId"] for message in scene.result(method)] == ["session-1"]
    assert len(scene.result("session/new")) == 1
    assert [message["prompt"][0]["text"] for message in scene.result("session/prompt")] == [
        "You are polite.\n\nSay hello.",
        "Say hello.",
    ]


async def test_a_session_that_goes_on_gets_other_instructions(scene: Scene) -> None:
    first = await scene.ask({})
    await scene.ask({}, session_id=first.session_id, system_prompt="You are rude.")

    assert scene.result("session/prompt")[1]["prompt"][0]["text"] == "You are rude.\n\nSay hello."


@pytest.mark.parametrize(
    "script",
    [
        {"session/load": {"error": {"code": -32603, "message": "no such session"}}},
        {"abilities": {"loadSession": False}},
    ],
)
async def test_where_a_session_cannot_go_on_a_new_one_is_begun(scene: Scene, script: dict[str, Any]) -> None:
    reply = await scene.ask(script, session_id="old")

    assert reply.session_id == "session-1"
    assert "a new one is begun" in scene.of("notice")[0]
    assert scene.result("session/prompt")[0]["prompt"][0]["text"].startswith("You are polite.")


@pytest.mark.parametrize("when", ["repeats", "repeats afterwards"])
async def test_what_an_agent_repeats_of_an_old_session_is_no_part_of_the_answer(scene: Scene, when: str) -> None:
    old = [
        {"sessionUpdate": "tool_call", "toolCallId": "old", "kind": "execute", "title": "rm -rf build"},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "an old answer. "}},
    ]
    reply = await scene.ask({when: old}, session_id="old")

    assert (reply.text, reply.tools_used) == ("hello", ())


# ── modes and models ─────────────────────────────────────────────────────────────────────────────────────────────────

MODES_OF_AGENT = {
    "modes": {"currentModeId": "default", "availableModes": [{"id": "default"}, {"id": "yolo"}, {"id": "plan"}]},
    "models": {"currentModelId": "auto", "availableModels": [{"modelId": "auto"}, {"modelId": "small"}]},
}
OPTIONS_OF_AGENT = {
    "configOptions": [
        {
            "id": "model",
            "category": "model",
            "type": "select",
            "currentValue": "vendor/big",
            "options": [{"group": "g", "options": [{"value": "vendor/big"}, {"value": "vendor/small"}]}],
        },
        {
            "id": "how",
            "category": "mode",
            "type": "select",
            "currentValue": "build",
            "options": [{"value": "build"}, {"value": "plan"}],
        },
    ]
}


async def test_the_model_and_the_plan_mode_are_set_where_the_agent_has_them(scene: Scene) -> None:
    settings = {"models": {"haiku": "small"}}
    await scene.ask({"session/new": MODES_OF_AGENT}, settings, permission_mode=PLAN)

    assert scene.result("session/set_mode") == [{"sessionId": "session-1", "modeId": "plan"}]
    assert scene.result("session/set_model") == [{"sessionId": "session-1", "modelId": "small"}]


async def test_options_are_another_way_to_offer_the_same(scene: Scene) -> None:
    await scene.ask({"session/new": OPTIONS_OF_AGENT}, {"models": {"haiku": "small"}}, permission_mode=PLAN)

    assert scene.result("session/set_config_option") == [
        {"sessionId": "session-1", "configId": "how", "value": "plan"},
        {"sessionId": "session-1", "configId": "model", "value": "vendor/small"},
    ]


async def test_a_session_that_was_left_in_plan_mode_is_brought_back_to_work(scene: Scene) -> None:
    modes = {**MODES_OF_AGENT["modes"], "currentModeId": "plan"}
    await scene.ask({"session/load": {"modes": modes}}, session_id="old")

    assert scene.result("session/set_mode") == [{"sessionId": "old", "modeId": "default"}]


async def test_the_mode_of_the_settings_is_set_but_never_in_place_of_planning(scene: Scene) -> None:
    for mode in (ACCEPT, PLAN):
        await scene.ask({"session/new": MODES_OF_AGENT}, {"mode": "yolo"}, permission_mode=mode)

    assert [message["modeId"] for message in scene.result("session/set_mode")] == ["yolo", "plan"]


async def test_a_mode_that_the_agent_does_not_have_is_refused_with_those_that_it_has(scene: Scene) -> None:
    with pytest.raises(UnrecoverableError, match='no mode "wild"; it has default, yolo, plan'):
        await scene.ask({"session/new": MODES_OF_AGENT}, {"mode": "wild"})


async def test_a_model_that_is_not_on_offer_is_reported(scene: Scene) -> None:
    await scene.ask({"session/new": MODES_OF_AGENT})

    assert scene.of("notice") == ["the agent has no model haiku; it uses auto"]


# ── servers of tools ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_servers_are_passed_in_with_their_tokens_and_variables(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCH_TOKEN", "token-1")
    scene.session = msgspec.structs.replace(
        scene.session,
        mcp=(
            McpServer(name="orch", url="http://127.0.0.1:7/mcp", token_variable="ORCH_TOKEN"),
            McpServer(name="own", command=("tool", "--serve"), environment={"A": "b"}),
        ),
    )
    await scene.ask({})

    assert scene.result("session/new")[0]["mcpServers"] == [
        {
            "type": "http",
            "name": "orch",
            "url": "http://127.0.0.1:7/mcp",
            "headers": [{"name": "Authorization", "value": "Bearer token-1"}],
        },
        {"name": "own", "command": "tool", "args": ["--serve"], "env": [{"name": "A", "value": "b"}]},
    ]
    assert [line for _, line in scene.heard if "token-1" in line] == []


@pytest.mark.parametrize("required", [True, False])
async def test_a_server_that_the_agent_cannot_use_is_an_error_only_when_it_is_required(
    scene: Scene, required: bool
) -> None:
    server = McpServer(name="orch", url="http://127.0.0.1:7/mcp", required=required)
    scene.session = msgspec.structs.replace(scene.session, mcp=(server,))
    script: dict[str, Any] = {"abilities": {"mcpCapabilities": {}}}
    if required:
        with pytest.raises(UnrecoverableError, match="cannot use the MCP server orch"):
            await scene.ask(script)
    else:
        assert (await scene.ask(script)).text == "hello"
        assert scene.of("notice") == ["the agent cannot use the MCP server orch"]


# ── the environment ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_agent_lives_in_its_own_home_and_knows_its_model_by_the_variables_of_the_provider(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSED", "on")
    monkeypatch.setenv("MY_KEY", "the-real-key")
    scene.session = msgspec.structs.replace(
        scene.session, model_url="http://127.0.0.1:1", model_key="a-word", proxy_url="http://127.0.0.1:2"
    )
    provider = ProviderSettings(url="https://models.example", key_env="MY_KEY", url_env="MY_URL", header="x-key")
    settings = {"provider": provider, "pass_env": ("PASSED",), "env": {"OWN": "yes"}}
    await scene.ask({}, settings)

    [seen] = scene.result("environment")
    home = scene.session.home
    wanted = {
        "HOME": home,
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_DATA_HOME": f"{home}/.local/share",
        "MY_URL": "http://127.0.0.1:1",
        "MY_KEY": "a-word",
        "HTTPS_PROXY": "http://127.0.0.1:2",
        "PASSED": "on",
        "OWN": "yes",
    }
    assert {name: seen.get(name) for name in wanted} == wanted


def test_the_provider_is_known_from_the_settings_or_from_the_agent(tmp_path: Path) -> None:
    own = ProviderSettings(url="https://models.example", key_env="MY_KEY", url_env="MY_URL", header="x-key")
    given = AcpAdapter(AcpSettings(type="acp", command="agent", provider=own), tmp_path)
    gemini = AcpAdapter(AcpSettings(type="acp", command="/opt/bin/gemini"), tmp_path)
    moved = AcpAdapter(AcpSettings(type="acp", command="gemini", base_url="http://near"), tmp_path)
    unknown = AcpAdapter(AcpSettings(type="acp", command="agent"), tmp_path)

    assert [
        (found.url, found.key_variables[0], found.header)
        for adapter in (given, gemini, moved)
        if (found := adapter.provider({}))
    ] == [
        ("https://models.example", "MY_KEY", "x-key"),
        ("https://generativelanguage.googleapis.com", "GEMINI_API_KEY", "x-goog-api-key"),
        ("http://near", "GEMINI_API_KEY", "x-goog-api-key"),
    ]
    assert unknown.provider({}) is None
    assert gemini.model("haiku") == "gemini-2.5-flash"


async def test_a_known_agent_gets_its_words_and_settings(scene: Scene) -> None:
    program = scene.tmp_path / "gemini"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {AGENT} "$@"\n')
    program.chmod(0o755)
    adapter = AcpAdapter(
        AcpSettings(type="acp", command=str(program), args=("--debug",), env={"ACP_LOG": str(scene.log)}),
        scene.tmp_path,
    )
    instance = await adapter.start(scene.session)
    await adapter.execute(instance, scene.question(), lambda *result: scene.heard.append(result))

    assert scene.result("argv") == [["--acp", "--model", "gemini-2.5-flash", "--debug"]]
    written = json.loads((Path(scene.session.home) / ".gemini/settings.json").read_text())
    assert written["security"]["auth"]["selectedType"] == "gemini-api-key"


async def test_settings_are_never_written_through_a_link_out_of_the_home(scene: Scene) -> None:
    outside = scene.tmp_path / "outside"
    outside.mkdir()
    (scene.tmp_path / "home").mkdir()
    (scene.tmp_path / "home" / ".gemini").symlink_to(outside)
    program = scene.tmp_path / "gemini"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    with pytest.raises(BoundaryViolationError, match="leads out of the private HOME"):
        await AcpAdapter(AcpSettings(type="acp", command=str(program)), scene.tmp_path).start(scene.session)
    assert list(outside.iterdir()) == []


async def test_what_is_missing_is_reported_before_anything_starts(scene: Scene) -> None:
    nothing = AcpAdapter(AcpSettings(type="acp"), scene.tmp_path)
    gemini = AcpAdapter(AcpSettings(type="acp", command="gemini"), scene.tmp_path)

    assert "needs a command" in nothing.problem({})
    assert gemini.problem({"PATH": "/nowhere"}) == "gemini is not installed: npm install -g @google/gemini-cli"
    with pytest.raises(NotFoundError):
        await gemini.start(msgspec.structs.replace(scene.session, environment={"PATH": "/nowhere"}))


async def test_the_conversation_crosses_the_sandbox(scene: Scene) -> None:
    needs_bubblewrap()
    (scene.tmp_path / "home").mkdir()
    scene.log = scene.tree / "log.jsonl"
    spec = SandboxSpec(
        run=scene.session.run,
        folder=str(scene.tmp_path / "sandbox"),
        tree=scene.session.workdir,
        home=scene.session.home,
        readable=(str(Path(AGENT).parent), sys.prefix, sys.base_prefix),
    )
    handle = await BubblewrapSandbox(ProcessSupervisor()).open(spec)
    try:
        scene.session = msgspec.structs.replace(scene.session, processes=handle, sandboxed=True)
        reply = await scene.ask({"turns": [may_it(kind="execute", title="make"), {"say": "hello"}, DONE]})
    finally:
        await handle.close()

    assert (reply.text, reply.tools_used) == ("hello", ("Bash",))


# ── the cost ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_tokens_are_counted_by_turn_and_the_cost_is_the_difference(scene: Scene) -> None:
    def spent(amount: float) -> dict[str, Any]:
        cost = {
            "update": {
                "sessionUpdate": "usage_update",
                "used": 1,
                "size": 2,
                "cost": {"amount": amount, "currency": "USD"},
            }
        }
        usage = {"inputTokens": 100, "cachedReadTokens": 20, "outputTokens": 7, "totalTokens": 127}
        return {"turns": [cost, {"result": {"stopReason": "end_turn", "usage": usage}}]}

    first = await scene.ask(spent(0.5))
    second = await scene.ask(spent(0.75), session_id=first.session_id)

    assert (first.usage, second.usage) == (Usage(120, 7, 0.5), Usage(120, 7, 0.25))


async def test_tokens_are_also_found_where_gemini_tells_them(scene: Scene) -> None:
    meta = {"quota": {"token_count": {"input_tokens": 11, "output_tokens": 3}}}
    reply = await scene.ask({"turns": [{"result": {"stopReason": "end_turn", "_meta": meta}}]})

    assert reply.usage == Usage(11, 3)


# ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("reason", "error", "output"),
    [
        ("refusal", UnrecoverableError, "refused"),
        ("cancelled", AgentUnavailable, "cancelled"),
        ("moonlight", AgentUnavailable, "moonlight"),
    ],
)
async def test_a_turn_without_an_answer_is_an_error(
    scene: Scene, reason: str, error: type[GenbaError], output: str
) -> None:
    with pytest.raises(error, match=output):
        await scene.ask({"turns": [{"result": {"stopReason": reason}}]})


@pytest.mark.parametrize("reason", ["max_tokens", "max_turn_requests"])
async def test_a_turn_that_ran_into_a_limit_is_an_answer_with_a_notice(scene: Scene, reason: str) -> None:
    reply = await scene.ask({"turns": [{"say": "half of it"}, {"result": {"stopReason": reason}}]})

    assert reply.text == "half of it"
    assert "stopped before it was done" in scene.of("notice")[0]


async def test_an_agent_that_dies_is_unavailable_and_its_last_output_is_reported(scene: Scene) -> None:
    with pytest.raises(AgentUnavailable, match="exit code 3 and gave no answer: the agent has had enough"):
        await scene.ask({"turns": [{"say": "well"}, {"die": 3}]})


async def test_an_agent_that_hangs_runs_into_its_time_and_leaves_nothing(scene: Scene) -> None:
    with pytest.raises(AgentTimeout):
        await scene.ask({"turns": [{"hang": True}]}, idle_seconds=1)
    assert await scene.session.processes.sweep(scene.session.run) == 0


async def test_once_the_answer_is_there_the_exit_code_does_not_matter(scene: Scene) -> None:
    reply = await scene.ask({"exit": 127})

    assert (reply.text, reply.exit_code) == ("hello", 127)


async def test_another_version_of_the_protocol_is_refused(scene: Scene) -> None:
    with pytest.raises(UnrecoverableError, match="speaks version 2"):
        await scene.ask({"initialize": {"protocolVersion": 2}})


@pytest.mark.parametrize("name", ["", 7, "x" * 2000, "a\0b"])
async def test_a_session_needs_a_usable_name(scene: Scene, name: Any) -> None:
    with pytest.raises(AgentUnavailable, match="without a usable name"):
        await scene.ask({"session/new": {"sessionId": name}})


async def test_a_refused_question_is_reported_with_the_key_that_is_wrong(scene: Scene) -> None:
    provider = ProviderSettings(url="https://models.example", key_env="MY_KEY", url_env="MY_URL")
    turns = [{"error": {"code": -32000, "message": "Authentication required"}}]
    with pytest.raises(UnrecoverableError, match="Authentication required") as caught:
        await scene.ask({"turns": turns}, {"provider": provider})
    assert "MY_KEY" in caught.value.hint


@pytest.mark.parametrize(
    ("code", "message", "data", "kind"),
    [
        (401, "nobody knows you", None, UnrecoverableError),
        (-32603, "Internal error: Incorrect API key provided", None, UnrecoverableError),
        (-32000, "anything", None, UnrecoverableError),
        (-32603, "Internal error", {"details": "HTTP 403"}, UnrecoverableError),
        (400, "bad request", None, UnrecoverableError),
        (-32602, "Invalid params", None, UnrecoverableError),
        (-32603, "the model is not found: 404", None, UnrecoverableError),
        (429, "slow down", None, RateLimited),
        (-32603, "rate limit exceeded, try again in 20s", None, RateLimited),
        (-32000, "API Error: 529 overloaded", None, AgentUnavailable),
        (-32603, "Internal error", {"details": "fetch failed"}, AgentUnavailable),
        (503, "later", None, AgentUnavailable),
        (-32603, "something odd", None, AgentUnavailable),
    ],
)
def test_refusals_are_sorted_by_what_would_help(code: int, message: str, data: Any, kind: type[GenbaError]) -> None:
    assert type(refused(code, message, data, "KEY")) is kind


@pytest.mark.parametrize(
    ("output", "seconds"),
    [
        ("429 Too Many Requests, retry-after: 30", 30),
        ('{"error":{"code":429,"details":[{"retryDelay":"7.5s"}]}}', 7.5),
        ("429: try again in 2m", 120),
        ("429: resets in 1m 500ms", 60.5),
    ],
)
def test_the_time_to_come_back_is_found_in_the_words(output: str, seconds: float) -> None:
    error = refused(-32603, output, None, "")

    assert isinstance(error, RecoverableError)
    assert error.retry_after == pytest.approx(seconds)


def test_the_library_is_only_imported_for_a_conversation() -> None:
    code = "import sys, genba.connections.agents.acp.adapter; print('acp' in sys.modules, 'pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert done.stdout.split() == ["False", "False"]
