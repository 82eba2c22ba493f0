"""A server of one tool, `pick`: by stdin and stdout as a program, or over HTTP for those who have the token."""

import contextlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PICK = {"name": "pick", "description": "Pick an apple", "inputSchema": {"type": "object"}}


def answer(asked: dict[str, Any], result: str) -> dict[str, Any] | None:
    """What MCP wants to hear; None where it wants to hear nothing."""
    if "id" not in asked:
        return None
    version = asked.get("params", {}).get("protocolVersion", "2025-06-18")
    about = {"name": "orchard", "version": "1"}
    results: dict[str, dict[str, Any]] = {
        "initialize": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about},
        "tools/list": {"tools": [PICK]},
        "tools/call": {"content": [{"type": "text", "text": f"an apple, {result}"}]},
    }
    found = results.get(asked["method"])
    reply = {"result": found} if found is not None else {"error": {"code": -32601, "message": "no such method"}}
    return {"jsonrpc": "2.0", "id": asked["id"], **reply}


@contextlib.contextmanager
def orchard(token: str) -> Iterator[str]:
    """The address of a server that lives as long as the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.headers.get("authorization") != f"Bearer {token}":
                self._send(401, None)
            else:
                reply = answer(asked, "over HTTP")
                self._send(202 if reply is None else 200, reply)

        def do_GET(self) -> None:
            self._send(405, None)

        def _send(self, status: int, reply: dict[str, Any] | None) -> None:
            body = b"" if reply is None else json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


if __name__ == "__main__":
    for line in sys.stdin:
        if reply := answer(json.loads(line), " ".join(sorted(os.environ))):
            sys.stdout.write(f"{json.dumps(reply)}\n")
            sys.stdout.flush()
