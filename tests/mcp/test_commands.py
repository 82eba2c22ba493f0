import asyncio
import json
import os
import signal
import subprocess
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from genba.blackboard.workflow.workflow_board import WorkflowBoard
from genba.coordination.workflow.tokens import hashed, new_passkey
from tests.clis import cli, path_with_clis
from tests.mcp.door import MODES, error, report
from tests.preloaded import GENBA, ordinary_environment
from tests.project import Project

CLIENTS = ("claude-code", "codex", "opencode")


async def external_agent(project: Project) -> dict[str, str]:
    """An agent that may come by itself, as its environment knows it."""
    passkey = new_passkey()
    with project.board() as board:
        agent = WorkflowBoard(board).register("visitor", passkey_hash=await hashed(passkey))
    return {"GENBA_AGENT_ID": agent.id, "GENBA_PASSKEY": passkey}


def environment(project: Project, **more: str) -> dict[str, str]:
    return {**ordinary_environment(), **project.environment, **more}


# ── stdin and stdout ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", MODES)
async def test_an_external_agent_authenticates_once_and_the_process_remembers_it(project: Project, mode: str) -> None:
    project.issue(1, "Build a kite")
    server = StdioServerParameters(
        command=str(GENBA), args=["mcp"], cwd=project.root, env=environment(project, **await external_agent(project))
    )

    async with Client(server, mode=mode) as client:
        assert len((await client.list_tools()).tools) == 17
        refused = error(await client.call_tool("get_next_action", {}))
        assert refused["code"] == "not_authenticated"
        assert report(await client.call_tool("authenticate", {}))["agent"] == "visitor"
        assert report(await client.call_tool("get_next_action", {}))["action"] == "get_task"
        report(await client.call_tool("logout", {}))


def test_stdout_carries_the_protocol_and_nothing_else(project: Project) -> None:
    project.issue(1, "Build a kite")
    spoken = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        },
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    process = subprocess.Popen(
        [GENBA, "mcp"],
        cwd=project.root,
        env=environment(project),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        process.stdin.write("".join(json.dumps(each) + "\n" for each in spoken) + "this is no JSON\n")
        process.stdin.flush()
        answers: list[dict[str, Any]] = []
        while {1, 2} - {answer.get("id") for answer in answers if "result" in answer}:
            answers.append(json.loads(process.stdout.readline()))
        rest, _ = process.communicate(timeout=120)

    answers += [json.loads(line) for line in rest.splitlines()]
    assert {answer["jsonrpc"] for answer in answers} == {"2.0"}
    assert process.returncode == 0


def test_outside_of_a_repository_it_says_so_on_stderr(tmp_path: Path, project: Project) -> None:
    done = project.genba("mcp", cwd=tmp_path)

    assert (done.code != 0, done.out) == (True, "")
    assert "error:" in done.err


# ── a port ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def served(project: Project, *words: str) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    process = await asyncio.create_subprocess_exec(
        GENBA,
        "mcp",
        "--http",
        "--port",
        "0",
        *words,
        cwd=project.root,
        env=environment(project),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(120):
            yield (await process.stdout.readline()).decode().strip(), process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_first_line_is_the_address_and_a_signal_ends_it(project: Project, number: signal.Signals) -> None:
    project.issue(1, "Build a kite")
    carried = await external_agent(project)

    async with served(project) as (url, process):
        assert url.startswith("http://127.0.0.1:")
        async with Client(url) as client:
            arguments = {"agent_id": carried["GENBA_AGENT_ID"], "passkey": carried["GENBA_PASSKEY"]}
            connected = report(await client.call_tool("authenticate", arguments))
            asked = await client.call_tool("get_next_action", {"session_token": connected["session_token"]})
            assert report(asked)["action"] == "get_task"
        process.send_signal(number)
        async with asyncio.timeout(60):
            code = await process.wait()

    assert code in (0, 1)


async def test_a_port_that_is_taken_is_named(project: Project) -> None:
    project.issue(1, "Build a kite")

    async with served(project) as (url, _):
        port = url.rpartition(":")[2].partition("/")[0]
        done = await asyncio.to_thread(project.genba, "mcp", "--http", "--port", port)

    assert done.code == 5
    assert f"127.0.0.1:{port} cannot be listened on" in done.err
    assert "--port=0" in done.err


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_other_machines_are_kept_out_unless_a_setting_allows_them(project: Project, host: str) -> None:
    done = project.genba("mcp", "--http", "--host", host)

    assert done.code == 2
    assert "--i-accept-the-risk" in done.err


# ── output for other programs ────────────────────────────────────────────────────────────────────────────────────────


def file_of(project: Project, client: str) -> Path:
    return (
        project.root / {"claude-code": ".mcp.json", "codex": ".codex/config.toml", "opencode": "opencode.json"}[client]
    )


def kept(path: Path, client: str) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    whole: dict[str, Any] = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    servers: dict[str, Any] = whole[{"claude-code": "mcpServers", "codex": "mcp_servers", "opencode": "mcp"}[client]]
    return servers


@pytest.mark.parametrize("client", CLIENTS)
def test_an_entry_is_written_once_and_holds_no_secret(project: Project, client: str) -> None:
    path = file_of(project, client)

    first = project.genba("mcp", "install", client, check=0, GENBA_PASSKEY="gbk_hidden")
    written = path.read_text(encoding="utf-8")
    again = project.genba("mcp", "install", client, check=0, GENBA_PASSKEY="gbk_hidden")

    assert "wrote" in first.out
    assert "already" in again.out
    assert path.read_text(encoding="utf-8") == written
    assert "gbk_" not in written
    assert str(project.root) not in written
    assert "GENBA_PASSKEY" in written
    assert list(kept(path, client)) == ["genba"]
    assert "export GENBA_AGENT_ID=agt_… GENBA_PASSKEY=gbk_…" in first.err


@pytest.mark.parametrize("client", CLIENTS)
def test_another_choice_replaces_the_entry_and_keeps_everything_else(project: Project, client: str) -> None:
    path = file_of(project, client)
    path.parent.mkdir(exist_ok=True)
    section = {"claude-code": "mcpServers", "opencode": "mcp"}.get(client)
    if section:
        path.write_text(json.dumps({"theme": "dark", section: {"other": {"command": "x"}}}, indent=4), encoding="utf-8")
    else:
        own = '[mcp_servers.genba]\ncommand = "old"\n[mcp_servers.genba.env]\nA = "1"\n\n'
        text = f'# mine\nmodel = "m"  # why\n\n{own}'
        path.write_text(f'{text}# about other\n[mcp_servers.other]\ncommand = "x"\n', encoding="utf-8")

    project.genba("mcp", "install", client, check=0)
    project.genba("mcp", "install", client, "--http", "http://127.0.0.1:8765/mcp", "--agent", "agt_1", check=0)

    servers = kept(path, client)
    assert servers["other"] == {"command": "x"}
    assert servers["genba"]["url"] == "http://127.0.0.1:8765/mcp"
    assert "command" not in servers["genba"]
    text = path.read_text(encoding="utf-8")
    if section:
        assert '\n    "theme": "dark"' in text
    else:
        assert text.startswith('# mine\nmodel = "m"  # why\n')
        assert "# about other\n[mcp_servers.other]" in text


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("claude-code", '{\n  // mine\n  "mcpServers": {}\n}\n'),
        ("claude-code", '{"mcpServers": []}'),
        ("claude-code", "[]"),
        ("opencode", '{"mcp": {} /* mine */}'),
        ("codex", 'mcp_servers = { other = { command = "x" } }\n'),
        ("codex", "not = [toml\n"),
        ("codex", "mcp_servers = 1\n"),
    ],
)
def test_a_file_that_would_lose_something_is_left_and_the_entry_is_printed(
    project: Project, client: str, text: str
) -> None:
    path = file_of(project, client)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")

    done = project.genba("mcp", "install", client)

    assert done.code == 5
    assert path.read_text(encoding="utf-8") == text
    assert "genba" in done.out
    assert "by hand" in done.err


def test_a_link_in_the_repository_is_not_followed(project: Project, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text("{}", encoding="utf-8")
    (project.root / ".mcp.json").symlink_to(elsewhere)

    assert project.genba("mcp", "install", "claude-code").code == 5
    assert elsewhere.read_text(encoding="utf-8") == "{}"


@pytest.mark.parametrize("client", CLIENTS)
def test_printing_writes_nothing(project: Project, client: str) -> None:
    done = project.genba("mcp", "install", client, "--print", "--http", "http://127.0.0.1:8765/mcp", check=0)

    assert "http://127.0.0.1:8765/mcp" in done.out
    assert not file_of(project, client).exists()


@pytest.mark.parametrize(
    "words",
    [
        ("--http", "ftp://x/mcp"),
        ("--http", "http://user:word@127.0.0.1/mcp"),
        ("--http", "http://127.0.0.1/${HOME}"),
        ("--agent", "gbk_secret"),
        ("--agent", "a b"),
    ],
)
def test_what_would_not_work_or_be_a_secret_is_refused(project: Project, words: tuple[str, ...]) -> None:
    done = project.genba("mcp", "install", "claude-code", *words)

    assert done.code == 2
    assert not (project.root / ".mcp.json").exists()


def asked(project: Project, *words: str) -> str:
    done = subprocess.run(
        words,
        cwd=project.root,
        env={**environment(project), "PATH": f"{GENBA.parent}{os.pathsep}{path_with_clis()}", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return done.stdout + done.stderr


def test_the_real_claude_reads_what_was_written(project: Project) -> None:
    cli("claude")
    project.genba("mcp", "install", "claude-code", check=0)

    output = asked(project, "claude", "mcp", "get", "genba")

    assert "Project config" in output
    assert "Args: mcp" in output


def test_the_real_claude_is_asked_to_keep_it_for_the_user(project: Project) -> None:
    cli("claude")
    project.issue(1, "Build a kite")
    path = f"{GENBA.parent}{os.pathsep}{path_with_clis()}"

    for _ in range(2):
        done = project.genba("mcp", "install", "claude-code", "--user", check=0, PATH=path)
        assert "claude has genba" in done.out

    output = asked(project, "claude", "mcp", "get", "genba")
    assert "User config" in output
    assert "Connected" in output


def test_the_real_codex_reads_what_was_written(project: Project) -> None:
    cli("codex")
    project.genba("mcp", "install", "codex", "--user", check=0)

    output = asked(project, "codex", "mcp", "list", "--json")

    server = json.loads(output[output.index("[\n") : output.rindex("]") + 1])[0]
    assert (server["name"], server["transport"]["args"]) == ("genba", ["mcp"])
    assert server["transport"]["env_vars"] == ["GENBA_PASSKEY", "GENBA_AGENT_ID"]


def test_the_real_opencode_connects_to_what_was_written(project: Project) -> None:
    cli("opencode")
    project.issue(1, "Build a kite")
    project.genba("mcp", "install", "opencode", check=0)

    output = asked(project, "opencode", "mcp", "list")

    assert "genba" in output
    assert "connected" in output
