"""A door for tests: the server of a house on a port, clients of every kind, and raw requests."""

import asyncio
import contextlib
import http.client
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult

from genba.blackboard.tasks.board import Blackboard
from genba.definitions.project.work_sections import FleetSettings
from genba.entrypoints.mcp.http import serve_port
from tests.workflow.context import House

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
MODES = ("auto", "legacy")
_ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


@contextlib.asynccontextmanager
async def open_house(folder: Path, settings: FleetSettings | None = None) -> AsyncIterator[House]:
    boards: list[Blackboard] = []

    def open_board() -> Blackboard:
        boards.append(Blackboard.open(str(folder / "board.db"), "a project"))
        return boards[-1]

    made = House(open_board, settings)
    try:
        yield made
    finally:
        await made.close()
        for board in boards:
            board.close()


class Door:
    """Where the server answers, and how it is asked."""

    def __init__(self, url: str, context: House) -> None:
        self.url = url
        self.context = context
        self.port = urlsplit(url).port or 0

    @classmethod
    @contextlib.asynccontextmanager
    async def opened(cls, context: House) -> AsyncIterator["Door"]:
        async with serve_port(context.service, "127.0.0.1", 0) as url:
            yield cls(url, context)

    @contextlib.asynccontextmanager
    async def client(self, mode: str = "auto", **headers: str) -> AsyncIterator[Client]:
        """A client of the SDK, with headers of its own on every request."""
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http_client:
            transport = streamable_http_client(self.url, http_client=http_client)
            async with Client(transport, mode=mode) as client:
                yield client

    async def credential(self, task: int, agent: str = "writer") -> str:
        """The secret of an instance that was started for a task."""
        return await self.context.runs.credential(self.context.begin(task, agent))

    async def raw(
        self,
        body: bytes,
        *,
        path: str = "/mcp",
        method: str = "POST",
        **headers: str,
    ) -> tuple[int, bytes]:
        return await asyncio.to_thread(raw, self.port, body, path, method, headers)

    async def call(self, tool: str, arguments: dict[str, Any], **headers: str) -> tuple[int, dict[str, Any]]:
        status, body = await self.raw(json.dumps(request(tool, arguments)).encode(), **routed(tool), **headers)
        answer: dict[str, Any] = json.loads(body) if body else {}
        return status, answer


def raw(
    port: int, body: bytes, path: str = "/mcp", method: str = "POST", headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body or None, {**ordinary(), **_dashed(headers or {})})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def ordinary() -> dict[str, str]:
    return {"content-type": "application/json", "accept": "application/json, text/event-stream"}


def _dashed(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def routed(tool: str) -> dict[str, str]:
    """The headers by which a request of the newest protocol is routed."""
    return {"mcp_protocol_version": MODERN, "mcp_method": "tools/call", "mcp_name": tool}


def request(tool: str, arguments: dict[str, Any], number: int = 1) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments, "_meta": _ENVELOPE}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def report(result: CallToolResult) -> dict[str, Any]:
    """What a call came to, which must be the same in both of its forms."""
    assert not result.is_error, result
    structured = result.structured_content
    assert isinstance(structured, dict)
    assert json.loads(result.content[0].text) == structured  # type: ignore[union-attr]
    return structured


def error(result: CallToolResult) -> dict[str, str]:
    """Why a call was refused."""
    assert result.is_error, result
    structured = result.structured_content
    assert isinstance(structured, dict)
    assert json.loads(result.content[0].text) == structured  # type: ignore[union-attr]
    found: dict[str, str] = structured["error"]
    assert set(found) == {"code", "message", "hint", "action"}
    return found
