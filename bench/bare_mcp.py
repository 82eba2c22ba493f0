"""The least that could be called the same: a tool of the SDK that reads one row. `python -m bench.bare_mcp FILE`."""

import socket
import sqlite3
import sys
from typing import TypedDict

import uvicorn
from mcp.server import MCPServer

SCHEMA = "CREATE TABLE agent_connections (token TEXT PRIMARY KEY, action TEXT, instruction TEXT)"


class Answer(TypedDict):
    action: str
    instruction: str


def main(path: str) -> None:
    rows = sqlite3.connect(path, check_same_thread=False)
    server = MCPServer("bare")

    @server.tool()
    async def get_next_action(session_token: str) -> Answer:
        """What to do next."""
        found = rows.execute(
            "SELECT action, instruction FROM agent_connections WHERE token = ?", (session_token,)
        ).fetchone()
        return Answer(action=found[0], instruction=found[1])

    app = server.streamable_http_app(stateless_http=True, json_response=True)
    config = uvicorn.Config(app, log_config=None, access_log=False)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main(sys.argv[1])
