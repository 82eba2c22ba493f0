"""What is refused at the door, with its code, and with nothing changed."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from genba.definitions.project.work_sections import FleetSettings, WorkflowSettings
from genba.domain.errors import GitError
from tests.mcp.door import MODERN, MODES, Door, error, open_house, report, request, routed

ABSENT = "gbs_0123456789abcdef_" + "x" * 43
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("create_task", {}, "title: Field required"),
    ("create_task", {"title": ""}, "title: String should have at least 1 character"),
    ("create_task", {"title": "x" * 301}, "title: String should have at most 300 characters"),
    ("create_task", {"title": "x", "body": "x" * 20_001}, "body: String should have at most 20000 characters"),
    ("create_task", {"title": "x", "priority": "now"}, "priority: Input should be 'critical', 'high'"),
    ("create_task", {"title": "x", "colour": "red"}, "colour: Extra inputs are not permitted"),
    ("create_tasks_batch", {"tasks": []}, "tasks: List should have at least 1 item"),
    ("create_tasks_batch", {"tasks": [{"title": "x"}] * 101}, "tasks: List should have at most 100 items"),
    ("create_tasks_batch", {"tasks": [{"title": "x"}, {"body": "y"}]}, "tasks.1.title: Field required"),
    ("update_task_status", {"task_id": 0, "status": "done"}, "task_id: Input should be greater than or equal to 1"),
    ("update_task_status", {"task_id": 1, "status": "finished"}, "status: Input should be 'backlog', 'open'"),
    ("update_task_status", {"task_id": "one", "status": "done"}, "task_id: Input should be a valid integer"),
    ("assign_task", {"task_id": 1, "agent": ""}, "agent: String should have at least 1 character"),
    ("report_blocked", {"reason": "x" * 4_001}, "reason: String should have at most 4000 characters"),
    ("send_message", {"content": "x" * 10_001}, "content: String should have at most 10000 characters"),
    ("get_next_action", {"session_token": 7}, "session_token: Input should be a valid string"),
    ("get_next_action", {"session_token": "x" * 301}, "session_token: String should have at most 300 characters"),
]


@pytest.mark.parametrize(
    ("tool", "arguments", "problem"), WRONG, ids=[f"{at}-{each[0]}" for at, each in enumerate(WRONG)]
)
async def test_arguments_that_do_not_fit_are_named_and_never_repeated(
    door: Door, tool: str, arguments: dict[str, Any], problem: str
) -> None:
    caller = await door.context.spawn(door.context.task())
    before = door.context.everything()

    async with door.client(Authorization=f"Bearer {caller.token}") as client:
        found = error(await client.call_tool(tool, arguments))

    assert found["code"] == "validation"
    assert problem in found["message"]
    assert found["hint"].startswith(f"{tool} takes: ")
    assert "xxxx" not in json.dumps(found)
    assert door.context.everything() == before


@pytest.mark.parametrize("mode", MODES)
async def test_a_list_that_was_written_as_text_is_read(door: Door, mode: str) -> None:
    task = door.context.task()
    caller = await door.context.fetched(await door.context.spawn(task))

    async with door.client(mode, Authorization=f"Bearer {caller.token}") as client:
        plan = json.dumps([{"title": "Cut it", "local_id": "cut"}, {"title": "Glue it", "depends_on": ["cut"]}])
        report(await client.call_tool("create_tasks_batch", {"tasks": plan}))

    assert door.context.children(task) == ["Cut it: open", "Glue it: open"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_million_characters_are_refused_with_a_limit(door: Door, mode: str) -> None:
    caller = await door.context.fetched(await door.context.spawn(door.context.task()))
    before = door.context.everything()

    async with door.client(mode, Authorization=f"Bearer {caller.token}") as client:
        for tool, arguments in (
            ("create_task", {"title": "x", "body": "x" * 1_000_000}),
            ("create_task", {"title": "x", "goals": [{"type": "x", "more": ["y"] * 300_000}]}),
            ("save_context", {"progress": "x" * 1_000_000}),
            ("get_next_action", {"x" * 1_000_000: 1}),
        ):
            found = error(await client.call_tool(tool, arguments))
            assert found["code"] == "limit"
            assert len(json.dumps(found)) < 1000

    assert door.context.everything() == before


async def test_a_request_that_is_too_large_is_not_even_read(door: Door) -> None:
    body = json.dumps(request("save_context", {"progress": "x" * 3_000_000})).encode()

    status, answer = await door.raw(body, **routed("save_context"))

    assert status == 413
    assert json.loads(answer)["error"]["data"]["code"] == "limit"


async def test_a_refused_caller_does_not_learn_the_reason(door: Door) -> None:
    agent, passkey = await door.context.external_agent("visitor")
    secret = await door.credential(door.context.task())
    before = door.context.everything()
    tried: list[dict[str, str]] = [
        {},
        {"agent_id": agent, "passkey": f"{passkey}x"},
        {"agent_id": "nobody", "passkey": passkey},
        {"agent_id": agent, "passkey": passkey, "project_id": "another"},
        {"passkey": f"{secret}x"},
    ]

    found = []
    async with door.client() as client:
        for arguments in tried:
            found.append(error(await client.call_tool("authenticate", arguments)))
        for token in (ABSENT, "", "gbs_", "nonsense", secret):
            refusal = await client.call_tool("get_next_action", {"session_token": token})
            found.append(error(refusal))

    assert {each["code"] for each in found} == {"not_authenticated"}
    assert {each["action"] for each in found} == {"exit"}
    assert len({each["message"] for each in found}) == 1
    assert door.context.everything() == before


async def test_a_one_time_secret_is_good_once(door: Door) -> None:
    secret = await door.credential(door.context.task())

    async with door.client(Authorization=f"Bearer {secret}") as client:
        report(await client.call_tool("authenticate", {}))
        again = error(await client.call_tool("authenticate", {}))

    assert (again["code"], again["action"]) == ("not_authenticated", "exit")


async def test_a_secret_that_is_no_token_opens_nothing_but_authentication(door: Door) -> None:
    agent, passkey = await door.context.external_agent("visitor")

    async with door.client(Authorization=f"Bearer {passkey}", **{"Genba-Agent": agent}) as client:
        assert error(await client.call_tool("list_tasks", {}))["code"] == "not_authenticated"


@pytest.mark.parametrize("mode", MODES)
async def test_the_right_code_reaches_the_caller(door: Door, mode: str) -> None:
    context = door.context
    task, other = context.task(), context.task("Build a boat")
    caller = await context.spawn(task)
    before = context.everything()

    async with door.client(mode, Authorization=f"Bearer {caller.token}") as client:
        codes = {}
        for tool, arguments in (
            ("assign_task", {"task_id": task, "agent": "tester"}),
            ("list_workers", {}),
            ("get_task", {"task_id": other}),
            ("update_task_status", {"task_id": task, "status": "done"}),
            ("create_task", {"title": "Cut it"}),
        ):
            codes[tool] = error(await client.call_tool(tool, arguments))["code"]

    assert codes == {
        "assign_task": "forbidden",
        "list_workers": "forbidden",
        "get_task": "not_found",
        "update_task_status": "out_of_order",
        "create_task": "out_of_order",
    }
    assert context.everything() == before


async def test_what_goes_wrong_inside_stays_inside(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    task = door.context.task()
    caller = await door.context.fetched(await door.context.spawn(task))
    door.context.desk.script[task] = [GitError("fatal: /somewhere/secret is locked")]

    async with door.client(Authorization=f"Bearer {caller.token}") as client:
        found = error(await client.call_tool("report_completed", {}))

    assert found["code"] == "conflict"
    assert caller.token not in caplog.text


async def test_no_secret_is_ever_logged(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    agent, passkey = await door.context.external_agent("visitor")
    secret = await door.credential(door.context.task())

    async with door.client(Authorization=f"Bearer {secret}") as client:
        token = report(await client.call_tool("authenticate", {}))["session_token"]
        await client.call_tool("get_next_action", {"session_token": token})
        await client.call_tool("authenticate", {"agent_id": agent, "passkey": passkey})
        await client.call_tool("authenticate", {"agent_id": agent, "passkey": passkey, "colour": passkey})
        await client.call_tool("get_task", {"session_token": token, "task_id": token})

    ours = "\n".join(line.getMessage() for line in caplog.records if not line.name.startswith(("mcp.client", "http")))
    for hidden in (secret, passkey, token):
        assert hidden.rpartition("_")[2] not in ours


async def test_a_secret_that_an_agent_writes_down_is_not_kept(door: Door) -> None:
    caller = await door.context.fetched(await door.context.spawn(door.context.task()))
    bearer = {"authorization": f"Bearer {caller.token}"}
    title = f"Use {caller.token}"
    goal = {"type": "file_exists", "path": f"docs/{caller.token}"}

    await door.call("save_context", {"progress": f"my token is {caller.token}."}, **bearer)
    await door.call("create_tasks_batch", {"tasks": [{"title": title, "goals": [goal]}]}, **bearer)
    await door.call("report_blocked", {"reason": f"who takes {caller.token}?"}, **bearer)

    everything = str(door.context.everything())
    assert caller.token not in everything
    assert "my token is [redacted]." in everything
    assert "Use [redacted]" in everything
    assert "who takes [redacted]?" in everything


@pytest.mark.parametrize("mode", MODES)
async def test_a_tool_that_there_is_not_is_an_error_of_the_protocol(door: Door, mode: str) -> None:
    async with door.client(mode) as client:
        with pytest.raises(MCPError) as refusal:
            await client.call_tool("delete_everything", {})

    assert refusal.value.error.code == -32602


# ── who asks, and how often ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "0.0.0.0", "[::2]:1"])
@pytest.mark.parametrize("version", [MODERN, "2025-11-25"])
async def test_a_name_that_is_not_of_this_machine_is_turned_away(door: Door, host: str, version: str) -> None:
    body = json.dumps(request("help", {})).encode()

    status, _ = await door.raw(body, **{**routed("help"), "mcp_protocol_version": version, "host": host})

    assert status == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1.evil.example", "http://["])
async def test_a_page_of_another_origin_is_refused(door: Door, origin: str) -> None:
    status, answer = await door.raw(json.dumps(request("help", {})).encode(), **routed("help"), origin=origin)

    assert status == 403
    assert json.loads(answer)["error"]["data"]["code"] == "forbidden"


async def test_anybody_may_ask_whether_it_lives(door: Door) -> None:
    assert await door.raw(b"", path="/healthz", method="GET") == (200, b'{"status":"ok"}')
    assert (await door.raw(b"", path="/nowhere", method="GET"))[0] == 404


async def test_ten_thousand_requests_of_a_runaway_client_are_cut_short_and_hurt_no_other(tmp_path: Path) -> None:
    settings = FleetSettings(workflow=WorkflowSettings(wait_seconds=0, calls_per_minute=600, max_repeats=100_000))
    async with open_house(tmp_path, settings) as context:
        runaway, other = await context.spawn(context.task()), await context.spawn(context.task("Build a boat"))
        before = context.everything()
        async with Door.opened(context) as door:
            began = time.monotonic()
            seen = await _run_away(door, runaway.token, 10_000)
            more = 20 * (time.monotonic() - began)
            status, answer = await door.call("get_next_action", {}, authorization=f"Bearer {other.token}")
        await context.service.settle()

        assert set(seen) == {"ok", "limit", "429"}
        assert seen["ok"] <= 600 + more + 1
        assert seen["ok"] + seen["limit"] <= 1200 + 2 * more + 1
        assert (status, answer["result"]["structuredContent"]["action"]) == (200, "get_task")
        assert context.everything() == before


async def _run_away(door: Door, token: str, count: int) -> dict[str, int]:
    """As many requests as it can make, over connections that are kept open: how often each thing was answered."""
    seen: dict[str, int] = {}
    body = json.dumps(request("get_next_action", {})).encode()
    head = {
        "Host": f"127.0.0.1:{door.port}",
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Authorization": f"Bearer {token}",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "get_next_action",
        "Content-Length": str(len(body)),
    }
    sent = b"POST /mcp HTTP/1.1\r\n" + b"".join(f"{key}: {value}\r\n".encode() for key, value in head.items())

    async def one(times: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        for _ in range(times):
            writer.write(sent + b"\r\n" + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            result = await reader.readexactly(int(length.split(b":")[1]))
            status = answer.split(b" ", 2)[1].decode()
            word = status if status != "200" else ("limit" if b'"code":"limit"' in result else "ok")
            seen[word] = seen.get(word, 0) + 1
        writer.close()
        await writer.wait_closed()

    async with asyncio.timeout(300):
        await asyncio.gather(*(one(count // 20) for _ in range(20)))
    assert sum(seen.values()) == count
    return seen
