"""Clients that only ask, over connections that are kept: `python -m bench.mcp_clients PORT SECONDS < TOKENS`.

One line of stdin is one client with its token. What comes out is JSON: the calls, and the median and the slowest of a
hundred in milliseconds.
"""

import asyncio
import json
import sys
import time

VERSION = "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}


def request(port: int, token: str) -> bytes:
    params = {"name": "get_next_action", "arguments": {"session_token": token}, "_meta": _META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    head = {
        "Host": f"127.0.0.1:{port}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "get_next_action",
        "Content-Length": str(len(body)),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    return f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode() + body


async def client(port: int, token: str, until: float, took: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sent = request(port, token)
    while time.perf_counter() < until:
        began = time.perf_counter()
        writer.write(sent)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        body = await reader.readexactly(length)
        took.append(time.perf_counter() - began)
        if not head.startswith(b"HTTP/1.1 200") or b'"isError":true' in body or b'"action":"' not in body:
            sys.exit(f"not answered: {head[:40]!r} {body[:300]!r}")
    writer.close()


async def main(port: int, seconds: float, tokens: list[str]) -> None:
    took: list[float] = []
    began = time.perf_counter()
    await asyncio.gather(*(client(port, token, began + seconds, took) for token in tokens))
    passed = time.perf_counter() - began
    took.sort()
    values = {
        "rate": len(took) / passed,
        "p50": took[len(took) // 2] * 1000,
        "p99": took[min(len(took) - 1, len(took) * 99 // 100)] * 1000,
    }
    print(json.dumps(values))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]), sys.stdin.read().split()))
