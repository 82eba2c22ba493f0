"""What is no request at all: never a fault of the server, never a wait without an end."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from genba.application.workflow.server import WorkflowServer
from genba.definitions.project.work_sections import FleetSettings, WorkflowSettings
from genba.domain.workflow.actions import Tool
from genba.entrypoints.mcp.http import serve_port, serve_socket
from tests.mcp.door import LEGACY, MODERN, open_house, raw, request, routed

VERSIONS = (MODERN, LEGACY, "2025-03-26", "", "1999-01-01", "x" * 200)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30)
PLAIN = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
)
METHODS = st.sampled_from(["tools/call", "tools/list", "initialize", "ping", "server/discover", "resources/list", ""])
NAMES = st.sampled_from([str(tool) for tool in Tool]) | st.text(max_size=10)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    wide = FleetSettings(workflow=WorkflowSettings(wait_seconds=0, calls_per_minute=1_000_000))
    found: list[int] = []
    ready, leave = threading.Event(), threading.Event()

    async def serve() -> None:
        async with (
            open_house(tmp_path_factory.mktemp("board"), wide) as context,
            serve_port(context.service, "127.0.0.1", 0) as url,
        ):
            found.append(urlsplit(url).port or 0)
            ready.set()
            await asyncio.to_thread(leave.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(60)
        yield found[0]
    finally:
        leave.set()
        thread.join(60)


def lives(port: int) -> bool:
    return raw(port, b"", "/healthz", "GET")[0] == 200


@given(body=st.binary(max_size=300), version=st.sampled_from(VERSIONS))
@example(body=b"", version=MODERN)
@example(body=b"{", version=LEGACY)
@example(body=b"[" * 100_000, version=MODERN)
@example(body=b"[" * 100_000, version=LEGACY)
@example(body=b'{"id": ' + b"9" * 10_000 + b"}", version=MODERN)
@example(body=b"\xff\xfe\x00", version=LEGACY)
@example(body=b"null", version=MODERN)
@settings(max_examples=100)
def test_bytes_that_are_no_json_are_answered_as_such(port: int, body: bytes, version: str) -> None:
    status, _ = raw(port, body, headers={"mcp_protocol_version": version} if version else {})

    assert 400 <= status < 500


@given(
    message=st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "x"]), PLAIN)
    | st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": LEAVES, "method": METHODS, "params": PLAIN})
    | st.lists(PLAIN, max_size=3),
    version=st.sampled_from(VERSIONS),
)
@settings(max_examples=200)
def test_json_that_is_no_request_is_never_a_fault_of_the_server(port: int, message: Any, version: str) -> None:
    status, _ = raw(port, json.dumps(message).encode(), headers={"mcp_protocol_version": version} if version else {})

    assert status < 500


@given(name=NAMES, arguments=st.dictionaries(st.text(max_size=10), PLAIN, max_size=4) | PLAIN)
@example(name="create_tasks_batch", arguments={"tasks": "[" * 10_000})
@example(name="create_task", arguments={"title": "\ud800"})
@example(name="authenticate", arguments={"passkey": "gbk_\x00", "agent_id": "\x00"})
@example(name="get_task", arguments={"task_id": 10**400})
@example(name="get_next_action", arguments={"session_token": "gbs_\x00_\x00"})
@settings(max_examples=200)
def test_any_arguments_of_any_tool_are_answered_with_a_code(port: int, name: str, arguments: Any) -> None:
    sent = request(name, {})
    sent["params"]["arguments"] = arguments
    named = {**routed("x"), "mcp_name": name} if name.isascii() and name.isprintable() and name else routed("x")

    status, body = raw(port, json.dumps(sent).encode(), headers=named)

    assert status < 500
    answer = json.loads(body)
    if "result" in answer:
        assert answer["result"]["isError"]
        assert answer["result"]["structuredContent"]["error"]["code"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("version", [MODERN, LEGACY])
def test_other_methods_are_refused_or_answered_but_never_kept_waiting(port: int, method: str, version: str) -> None:
    status, _ = raw(port, b"", "/mcp", method, {"mcp_protocol_version": version, "accept": "application/json"})

    assert 400 <= status < 500
    assert lives(port)


@given(
    name=st.sampled_from(["authorization", "genba_agent", "mcp_session_id", "content_type", "accept", "mcp_name"]),
    value=st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=200),
)
@settings(max_examples=100)
def test_any_header_is_answered(port: int, name: str, value: str) -> None:
    headers = {**routed("get_next_action"), name: value}

    status, _ = raw(port, json.dumps(request("get_next_action", {})).encode(), headers=headers)

    assert status < 500


async def test_the_server_of_a_fleet_serves_at_its_socket_and_leaves_nothing(tmp_path: Path) -> None:
    async with open_house(tmp_path) as context:
        server = WorkflowServer(context.service, serve_socket, tmp_path / "s")
        server.open()
        assert (tmp_path / "s").is_socket()
        server.close()

    assert not (tmp_path / "s").exists()
