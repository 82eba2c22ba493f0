"""The real Codex behind its adapter, with a scripted model: what it does, and how each of its ends is read."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from genba.connections.agents.cli_tools.codex import CodexAdapter
from genba.connections.processes.tree import living
from genba.domain.errors import AgentTimeout, AgentUnavailable, RateLimited, UnrecoverableError
from genba.domain.ports import AgentAdapter
from genba.domain.sessions.outcomes import PermissionMode
from genba.domain.sessions.replies import AgentSession
from genba.testing.conformance import AgentAdapterSuite
from tests.bubblewrap import needs_bubblewrap
from tests.real.tool_places import KEY, TOOLS_BY_STDIN, ToolPlace
from tests.standins.model_server import Answer, Call, Cut, Fail, Hang, ModelServer, Run, Say, Turn

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}, "doubt": {"type": "string"}},
    "required": ["answer"],
}
PATCH = Call("apply_patch", "*** Begin Patch\n*** Add File: patched.txt\n+hello\n*** End Patch\n")
BYPASS, PLAN = PermissionMode.BYPASS_PERMISSIONS, PermissionMode.PLAN


@pytest.fixture
def place(codex: Path, model: ModelServer, tmp_path: Path) -> ToolPlace:
    prices = {"haiku": {"input": 2.0, "cachedInput": 1.0, "output": 10.0}}
    return ToolPlace(CodexAdapter, codex, model, tmp_path, models={"haiku": "gpt-5.5"}, prices=prices)


@pytest.fixture
def own_sandbox() -> None:
    needs_bubblewrap()


class TestCodex(AgentAdapterSuite):
    @pytest.fixture
    def adapter(self, place: ToolPlace) -> AgentAdapter:
        place.follows(Say("hello"))
        return place.adapter

    @pytest.fixture
    def session(self, place: ToolPlace) -> AgentSession:
        return place.session


def written(place: ToolPlace) -> set[str]:
    return {path.name for path in place.tree.iterdir()}


@pytest.mark.usefixtures("own_sandbox")
async def test_it_writes_files_and_says_what_that_cost(place: ToolPlace) -> None:
    place.follows(PATCH, Run("echo ran > ran.txt"), Say("it is written"))

    reply = await place.ask()

    assert written(place) == {"patched.txt", "ran.txt"}
    assert (reply.text, reply.tools_used, reply.tools_denied) == ("it is written", ("Write", "Bash"), ())
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (3 * 1200, 3 * 42)
    assert reply.usage.cost_usd == pytest.approx(3 * (400 * 2 + 800 * 1 + 42 * 10) / 1_000_000)
    assert place.told("tool") == [f"Write {place.tree}/patched.txt", "Bash echo ran > ran.txt"]
    first = place.asked()[0]
    assert (first.key, first.model) == (KEY, "gpt-5.5")
    assert "You are polite." in json.dumps(first.body)
    assert "Say hello." in first.prompt


async def test_a_conversation_goes_on_and_each_question_has_its_own_price(place: ToolPlace) -> None:
    place.follows(Say("hello"))
    first = await place.ask()
    second = await place.ask(2, session_id=first.session_id, prompt="And again.")
    third = await place.ask(3, session_id=second.session_id, prompt="Once more.")

    assert first.session_id == second.session_id == third.session_id
    assert first.usage == second.usage == third.usage
    messages = json.dumps(place.asked()[-1].body["input"])
    assert messages.index("Say hello.") < messages.index("And again.") < messages.index("Once more.")


@pytest.mark.parametrize("lost", ["01a1e252-0000-73f3-963d-55c7b78be277", "no id at all", "--last"])
async def test_a_conversation_that_is_lost_is_begun_again(place: ToolPlace, lost: str) -> None:
    place.follows(Say("hello"))
    reply = await place.ask(session_id=lost)
    assert reply.text == "hello"
    assert reply.session_id not in (None, lost)
    assert any("a new one is begun" in notice for notice in place.told("notice"))


async def test_other_instructions_reach_a_conversation_that_goes_on(place: ToolPlace) -> None:
    place.follows(Say("hello"))
    first = await place.ask(system_prompt="You are a baker.")
    second = await place.ask(2, session_id=first.session_id, system_prompt="You are a mason.")
    await place.ask(3, session_id=second.session_id, system_prompt="You are a mason.")
    assert "You are a mason." in place.asked()[1].prompt
    assert "You are a mason." not in place.asked()[2].prompt


async def test_a_conversation_goes_on_with_the_limits_of_each_question(place: ToolPlace) -> None:
    place.follows(Say("hello"))
    first = await place.ask(permission_mode=BYPASS)
    place.follows(Run("echo no > ran.txt"), Say("done"))
    reply = await place.ask(2, session_id=first.session_id, permission_mode=PLAN)
    assert written(place) == set()
    assert reply.tools_denied == ("Bash",)


@pytest.mark.usefixtures("own_sandbox")
@pytest.mark.parametrize("sandboxed", [False, True])
@pytest.mark.parametrize(
    "limits", [{"permission_mode": PLAN}, {"allowed_tools": ("Read", "Grep")}], ids=["plan", "list"]
)
async def test_who_may_only_read_reads_and_writes_nothing(
    place: ToolPlace, sandboxed: bool, limits: dict[str, Any]
) -> None:
    (place.tree / "notes.txt").write_text("read me\n")
    place.sandboxed = sandboxed
    place.follows(PATCH, Run("echo no > ran.txt"), Run("sed -n '1,20p' notes.txt | head -5"), Say("done"))

    reply = await place.ask(**limits)

    assert written(place) == {"notes.txt"}
    assert "read me" in place.asked()[-1].results[-1]
    assert (reply.tools_used, set(reply.tools_denied)) == (("Read",), {"Edit", "Bash"})


async def test_models_that_write_programs_are_held_by_the_same_limits(
    codex: Path, model: ModelServer, tmp_path: Path
) -> None:
    place = ToolPlace(CodexAdapter, codex, model, tmp_path)
    place.sandboxed = True
    run = "const seen = await tools.exec_command({cmd: 'echo no > ran.txt'}); text(JSON.stringify(seen))"
    patch = "const done = await tools.apply_patch('*** Begin Patch\\n*** Add File: p.txt\\n+x\\n*** End Patch\\n')"
    place.follows(Call("exec", run), Call("exec", patch), Say("done"))

    reply = await place.ask(allowed_tools=("Read",), model="opus")

    assert written(place) == set()
    assert set(reply.tools_denied) == {"Bash", "Edit"}
    assert "spawn_agent" not in place.asked()[0].tools


@pytest.mark.usefixtures("own_sandbox")
async def test_files_may_be_changed_where_commands_may_only_read(place: ToolPlace) -> None:
    place.follows(PATCH, Run("cat patched.txt"), Run("rm patched.txt"), Say("done"))
    reply = await place.ask(allowed_tools=("Read", "Write", "Edit"))
    assert written(place) == {"patched.txt"}
    assert (reply.tools_used, reply.tools_denied) == (("Write", "Read"), ("Bash",))


async def test_no_tool_reaches_anything_when_the_list_is_empty(place: ToolPlace) -> None:
    place.follows(Say("hello"))
    await place.ask(allowed_tools=())
    assert not {"exec_command", "web_search", "view_image", "spawn_agent"} & set(place.asked()[0].tools)


@pytest.mark.usefixtures("own_sandbox")
async def test_without_our_sandbox_its_own_keeps_it_in_the_tree(place: ToolPlace) -> None:
    outside = place.folder / "outside.txt"
    place.follows(
        Run(f"echo no > {outside}; echo yes > inside.txt; mktemp > /dev/null && echo yes > temporary.txt"), Say("ok")
    )
    await place.ask()
    assert not outside.exists()
    assert written(place) == {"inside.txt", "temporary.txt"}


async def test_without_permissions_it_goes_everywhere(place: ToolPlace) -> None:
    place.follows(Run(f"echo yes > {place.folder}/outside.txt"), Say("done"))
    await place.ask(permission_mode=BYPASS)
    assert (place.folder / "outside.txt").exists()


def as_a_worktree(place: ToolPlace) -> None:
    """Make the working tree one that belongs to a repository elsewhere."""
    main = place.folder / "main"
    who = ("-c", "user.name=t", "-c", "user.email=t@t")
    place.tree.rmdir()
    for words in (
        ("init", "-q", str(main)),
        ("-C", str(main), *who, "commit", "-q", "--allow-empty", "-m", "one"),
        ("-C", str(main), "worktree", "add", "-q", str(place.tree)),
    ):
        subprocess.run(["git", *words], check=True)


async def test_in_the_sandbox_it_works_goes_on_and_leaves_nothing(place: ToolPlace) -> None:
    secret = place.folder / "secret.txt"
    secret.write_text("the host's own")
    spying = f"cat {secret}; echo x > {secret}; setsid sleep 600 & echo ran > ran.txt"
    place.follows(PATCH, Run(spying), Say("done"))

    async with place.in_sandbox():
        first = await place.ask()
        second = await place.ask(2, session_id=first.session_id)

    assert (first.text, first.tools_used, second.session_id) == ("done", ("Write", "Bash"), first.session_id)
    assert written(place) == {"patched.txt", "ran.txt"}
    assert secret.read_text() == "the host's own"
    assert not any("the host's own" in result for result in place.asked()[-1].results)
    assert living(place.session.run) == set()


async def test_in_the_sandbox_a_plan_reads_and_changes_nothing(place: ToolPlace) -> None:
    (place.tree / "notes.txt").write_text("read me\n")
    place.follows(PATCH, Run("echo no > ran.txt"), Run("cat notes.txt"), Say("done"))

    async with place.in_sandbox():
        reply = await place.ask(permission_mode=PLAN)

    assert written(place) == {"notes.txt"}
    assert "read me" in place.asked()[-1].results[-1]
    assert (reply.tools_used, set(reply.tools_denied)) == (("Read",), {"Edit", "Bash"})


@pytest.mark.usefixtures("own_sandbox")
@pytest.mark.parametrize("worktree", [False, True])
async def test_what_the_tree_wants_codex_to_start_is_not_started(place: ToolPlace, worktree: bool) -> None:
    if worktree:
        as_a_worktree(place)
    planted = place.folder / "planted"
    touch = {"hooks": [{"type": "command", "command": f"touch {planted}"}]}
    settings = place.tree / ".codex"
    settings.mkdir()
    (settings / "hooks.json").write_text(json.dumps({"hooks": {"PreToolUse": [{"matcher": ".*", **touch}]}}))
    (settings / "config.toml").write_text(f'[mcp_servers.evil]\ncommand = "touch"\nargs = ["{planted}"]\n')
    place.follows(Run("ls"), Say("done"))

    await place.ask(permission_mode=PLAN)

    assert not planted.exists()


async def test_an_answer_is_asked_for_in_its_form(place: ToolPlace) -> None:
    place.follows(Answer({"answer": 42, "doubt": None}))
    reply = await place.ask(output_schema=SCHEMA)
    assert reply.structured == {"answer": 42}
    form = place.asked()[0].body["text"]["format"]
    assert form["strict"] is True
    assert form["schema"]["required"] == ["answer", "doubt"]


async def test_an_answer_that_fits_no_schema_is_no_structured_output(place: ToolPlace) -> None:
    place.follows(Say("forty-two"))
    reply = await place.ask(output_schema=SCHEMA)
    assert (reply.structured, reply.text) == (None, "forty-two")


async def test_a_form_that_cannot_be_strict_is_left_to_the_prompt(place: ToolPlace) -> None:
    place.follows(Answer({"anything": {"goes": 1}}))
    schema = {"type": "object", "properties": {"anything": {"type": "object"}}}
    reply = await place.ask(output_schema=schema)
    assert reply.structured is None
    assert "format" not in place.asked()[0].body["text"]


@pytest.mark.parametrize(
    ("trouble", "error", "words"),
    [
        (Fail(401), UnrecoverableError, "refused the key"),
        (Fail(403), UnrecoverableError, "refused the key"),
        (Fail(400), UnrecoverableError, "refused the question (400)"),
        (Fail(404), UnrecoverableError, "refused the question (404)"),
        (Fail(429), RateLimited, "rate limit"),
        (Fail(500), AgentUnavailable, "cannot be reached"),
        (Fail(529), AgentUnavailable, "cannot be reached"),
        (Cut(), AgentUnavailable, "cannot be reached"),
    ],
    ids=["401", "403", "400", "404", "429", "500", "529", "cut"],
)
async def test_each_error_of_the_provider_has_its_kind(
    place: ToolPlace, trouble: Turn, error: type[Exception], words: str
) -> None:
    place.follows(trouble)
    with pytest.raises(error) as result:
        await place.ask()
    assert words in str(result.value)
    assert KEY not in str(result.value)


async def test_a_refused_key_is_named(codex: Path, model: ModelServer, tmp_path: Path) -> None:
    place = ToolPlace(CodexAdapter, codex, model, tmp_path, keyEnv="MY_OWN_KEY", models={"haiku": "gpt-5.5"})
    place.follows(Fail(401))
    with pytest.raises(UnrecoverableError) as result:
        await place.ask()
    assert result.value.hint == "check MY_OWN_KEY"
    provider = place.adapter.provider({})
    assert provider is not None
    assert provider.key_variables == ("MY_OWN_KEY",)


async def test_a_rate_limit_tells_its_time_at_once(place: ToolPlace) -> None:
    place.follows(Fail(429, "Rate limit reached. Please try again in 600.5s.", "rate_limit_exceeded", in_stream=True))
    with pytest.raises(RateLimited) as result:
        await place.ask()
    assert result.value.retry_after == pytest.approx(600.5)
    assert living(place.session.run) == set()


async def test_a_passing_error_is_reported_and_passes(place: ToolPlace) -> None:
    place.follows(Cut(times=1), Say("hello"))
    assert (await place.ask()).text == "hello"
    assert any("asked again" in notice for notice in place.told("notice"))


async def test_no_server_listens(place: ToolPlace) -> None:
    place.url = "http://127.0.0.1:9/v1"
    with pytest.raises(AgentUnavailable, match="cannot be reached"):
        await place.ask()


async def test_a_model_that_hangs_ends_by_the_clock(place: ToolPlace) -> None:
    place.follows(Hang())
    with pytest.raises(AgentTimeout):
        await place.ask(idle_seconds=5)
    assert living(place.session.run) == set()


async def test_a_stopped_agent_leaves_no_process_even_in_the_middle_of_a_command(place: ToolPlace) -> None:
    instance, asking = await place.in_mid_command(permission_mode=BYPASS)
    assert len(living(place.session.run)) >= 3

    await place.adapter.stop(instance)

    with pytest.raises(AgentUnavailable, match="without a result"):
        await asking
    assert living(place.session.run) == set()


async def test_a_server_of_more_tools_is_used(place: ToolPlace) -> None:
    program = place.folder / "orchard.py"
    program.write_text(TOOLS_BY_STDIN)
    server = {"command": sys.executable, "args": [str(program)], "env": {"SEASON": "it's autumn"}}
    place.settings["mcpServers"] = {"orchard": server}
    place.follows(Call("pick", namespace="mcp__orchard"), Call("fell", namespace="mcp__orchard"), Say("done"))

    reply = await place.ask(allowed_tools=("Read", "mcp__orchard__pick"))

    picked, felled = place.asked()[-1].results[-2:]
    assert "an apple" in picked
    assert "SEASON" in picked
    assert "GENBA_MODEL_KEY" not in picked
    assert "an apple" not in felled
    assert reply.tools_used == ("mcp__orchard__pick",)


async def test_a_required_server_that_cannot_be_reached_ends_the_question(place: ToolPlace) -> None:
    place.settings["mcpServers"] = {"orchard": {"url": "http://127.0.0.1:9/mcp"}}
    place.follows(Say("never said"))
    with pytest.raises(AgentUnavailable, match="the MCP server orchard cannot be used"):
        await place.ask()
    assert place.asked() == []


@pytest.mark.usefixtures("own_sandbox")
async def test_keys_and_tokens_are_not_in_the_shell_of_the_agent(
    place: ToolPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCHARD_TOKEN", "a-token-of-a-server")
    monkeypatch.setenv("PASSED", "passed on")
    server = {"url": "http://127.0.0.1:9/mcp", "tokenEnv": "ORCHARD_TOKEN", "required": False}
    place.settings |= {"mcpServers": {"orchard": server}, "env": {"COLOUR": "red"}, "passEnv": ["PASSED"]}
    place.follows(Run("env"), Say("done"))

    await place.ask(allowed_tools=("Bash",))

    seen = place.asked()[-1].results[-1]
    assert "COLOUR=red" in seen
    assert "PASSED=passed on" in seen
    assert f"HOME={place.folder}/home" in seen
    assert KEY not in seen
    assert "a-token-of-a-server" not in seen


async def test_more_words_and_the_effort_reach_codex(place: ToolPlace) -> None:
    place.settings |= {"args": ["-c", 'model_verbosity="high"'], "reasoningEffort": "high"}
    place.follows(Say("hello"))
    await place.ask()
    body = place.asked()[0].body
    assert (body["text"]["verbosity"], body["reasoning"]["effort"]) == ("high", "high")


async def test_long_instructions_come_with_the_question(place: ToolPlace) -> None:
    place.follows(Say("hello"))
    await place.ask(system_prompt="Be brief. " * 30_000)
    assert "Be brief." in place.asked()[0].prompt


async def test_a_flag_unknown_to_codex_is_reported_at_once(place: ToolPlace) -> None:
    place.settings["args"] = ["--no-such-flag"]
    place.follows(Say("never said"))
    with pytest.raises(UnrecoverableError, match="refused to start"):
        await place.ask()
