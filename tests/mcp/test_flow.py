"""The whole flow of a worker through real HTTP, with clients of both eras of the protocol."""

import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult

from genba.definitions.project.work_sections import FleetSettings, WorkflowSettings
from genba.entrypoints.mcp.http import serve_socket
from tests.mcp.door import MODES, Door, error, open_house, report
from tests.workflow.context import House


class Asker:
    """An agent that passes its token with every call."""

    def __init__(self, client: Client, token: str = "") -> None:
        self.client = client
        self.token = token

    async def call(self, tool: str, **arguments: Any) -> CallToolResult:
        carried = {"session_token": self.token} if self.token else {}
        result = await self.client.call_tool(tool, {**carried, **arguments})
        assert isinstance(result, CallToolResult)
        return result

    async def report(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return report(await self.call(tool, **arguments))

    async def next(self) -> str:
        action = await self.report("get_next_action")
        assert action["instruction"]
        number = action.get("subtask", {}).get("number")
        return f"{action['action']} #{number}" if number else str(action["action"])


async def authenticated(client: Client, **arguments: str) -> Asker:
    connected = report(await client.call_tool("authenticate", arguments))
    return Asker(client, connected["session_token"])


async def walk(asker: Asker, context: House, task: int) -> None:
    """From the first question to the exit."""
    assert await asker.next() == "get_task"
    brief = await asker.report("get_my_task")
    assert (brief["task"]["number"], brief["branch"]) == (task, f"genba/{task}")
    assert await asker.next() == "create_subtasks"
    made = await asker.report(
        "create_tasks_batch",
        key="plan",
        tasks=[
            {"title": "Glue it", "local_id": "glue", "depends_on": ["cut"]},
            {"title": "Cut it", "local_id": "cut"},
        ],
    )
    numbers = {each["title"]: each["number"] for each in made["subtasks"]}
    for number in (numbers["Cut it"], numbers["Glue it"]):
        assert await asker.next() == f"start_subtask #{number}"
        await asker.report("update_task_status", task_id=number, status="in_progress")
        assert await asker.next() == f"execute_subtask #{number}"
        await asker.report("save_context", progress="cut", next_steps="glue")
        assert (await asker.report("update_task_status", task_id=number, status="done"))["done"]
    assert await asker.next() == "report_completion"
    context.desk.script[task] = [False, True]
    claimed = await asker.report("report_completed", summary="It flies.")
    assert not claimed["verified"]
    assert claimed["evidence"]["task"] == task
    assert await asker.next() == "rework"
    assert (await asker.report("report_completed"))["verified"]
    assert await asker.next() == "exit"
    await asker.report("logout")


@pytest.mark.parametrize("mode", MODES)
async def test_a_worker_walks_through_its_whole_task(door: Door, mode: str) -> None:
    task = door.context.task()
    secret = await door.credential(task)

    async with door.client(mode, Authorization=f"Bearer {secret}") as client:
        asker = await authenticated(client)
        await walk(asker, door.context, task)
        assert error(await asker.call("get_next_action"))["code"] == "not_authenticated"

    assert [piece.split(": ")[1] for piece in door.context.children(task)] == ["done", "done"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_token_in_the_header_needs_no_argument(door: Door, mode: str) -> None:
    caller = await door.context.spawn(door.context.task())

    async with door.client(mode, Authorization=f"Bearer {caller.token}") as client:
        assert await Asker(client).next() == "get_task"
        assert report(await client.call_tool("help", {}))["action"] == "get_task"


async def test_an_external_agent_shows_its_passkey_in_the_header_and_its_name_in_another(door: Door) -> None:
    task = door.context.task()
    agent, passkey = await door.context.external_agent("visitor")

    async with door.client(Authorization=f"Bearer {passkey}", **{"Genba-Agent": agent}) as client:
        asker = await authenticated(client)
        assert await asker.next() == "get_task"
        assert (await asker.report("list_tasks"))["tasks"][0]["number"] == task
        await asker.report("logout")


async def test_an_external_agent_may_also_say_it_all_in_the_call(door: Door) -> None:
    door.context.task()
    agent, passkey = await door.context.external_agent("visitor")

    async with door.client() as client:
        asker = await authenticated(client, agent_id=agent, passkey=passkey, project_id=door.context.project)
        assert await asker.next() == "get_task"
        await asker.report("logout")


async def test_a_socket_in_the_file_system_serves_the_same(context: House, tmp_path: Path) -> None:
    path = tmp_path / "genba.sock"
    task = context.task()
    secret = await context.runs.credential(context.begin(task))
    path.touch()

    async with serve_socket(context.service, path):
        assert path.is_socket()
        assert path.stat().st_mode & 0o777 == 0o600
        carried = {"Authorization": f"Bearer {secret}"}
        transport = httpx2.AsyncHTTPTransport(uds=str(path))
        async with httpx2.AsyncClient(transport=transport, headers=carried) as http_client:
            reached = streamable_http_client("http://127.0.0.1:1/mcp", http_client=http_client)
            async with Client(reached) as client:
                await walk(await authenticated(client), context, task)

    assert not path.exists()


async def test_a_server_that_follows_another_at_a_socket_takes_its_place(context: House, tmp_path: Path) -> None:
    path = tmp_path / "genba.sock"
    caller = await context.spawn(context.task())

    async with serve_socket(context.service, path), serve_socket(context.another(), path):
        transport = httpx2.AsyncHTTPTransport(uds=str(path))
        carried = {"Authorization": f"Bearer {caller.token}"}
        async with httpx2.AsyncClient(transport=transport, headers=carried) as http_client:
            reached = streamable_http_client("http://127.0.0.1:1/mcp", http_client=http_client)
            async with Client(reached) as client:
                assert await Asker(client).next() == "get_task"
    assert not path.exists()


async def test_a_server_that_dies_is_replaced_between_any_two_calls(context: House) -> None:
    task = context.task()
    secret = await context.runs.credential(context.begin(task))
    token = ""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("get_my_task", {}),
        ("create_tasks_batch", {"key": "plan", "tasks": [{"title": "Cut it"}]}),
        ("create_tasks_batch", {"key": "plan", "tasks": [{"title": "Cut it"}]}),
    ]

    async with Door.opened(context) as door, door.client(Authorization=f"Bearer {secret}") as client:
        token = (await authenticated(client)).token
    for tool, arguments in calls:
        context.restart()
        async with Door.opened(context) as door, door.client() as client:
            await Asker(client, token).report(tool, **arguments)

    assert context.children(task) == ["Cut it: open"]


async def test_everything_that_tools_say_is_in_the_language_of_the_project(tmp_path: Path) -> None:
    settings = FleetSettings(workflow=WorkflowSettings(language="ja"))
    japanese = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
    async with open_house(tmp_path, settings) as context, Door.opened(context) as door:
        secret = await door.credential(context.task())
        async with door.client(Authorization=f"Bearer {secret}") as client:
            assert japanese.search(str(client.instructions))
            listed = (await client.list_tools()).tools
            assert all(japanese.search(str(tool.title)) and japanese.search(str(tool.description)) for tool in listed)
            connected = report(await client.call_tool("authenticate", {}))
            asker = Asker(client, connected["session_token"])
            await asker.next()
            answers = [connected, await asker.report("get_my_task"), await asker.report("save_context", progress="p")]
            one = {"session_token": asker.token, "tool": "logout"}
            helped = [await asker.report("help"), report(await client.call_tool("help", one))]
            answers += [await asker.report("report_blocked", reason="x"), await asker.report("logout")]
    assert [answer["next"] for answer in answers if not japanese.search(answer["next"])] == []
    lines = [text for answer in helped for text in (answer["text"], *answer["tools"].values())]
    assert [text for text in lines if not japanese.search(text)] == []
