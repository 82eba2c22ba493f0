"""The MCP server over stdin and stdout, for an agent that starts it as its own process.

Law: stdout carries the protocol and nothing else.
"""

from collections.abc import Mapping

from genba.coordination.workflow.service import WorkflowService
from genba.entrypoints.mcp.server import Context, RequestCredentials, build
from genba.entrypoints.mcp.stale_connections import sweeping
from genba.entrypoints.mcp.stdio_streams import spoken

SECRETS = ("GENBA_CREDENTIAL", "GENBA_PASSKEY")
AGENT = "GENBA_AGENT_ID"
PROJECT = "GENBA_PROJECT_ID"


class StdioTransport:
    """One caller for as long as the process lives: its secret is in the environment, its token is remembered."""

    door = "stdio"

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._secret = next((environment[name] for name in SECRETS if environment.get(name)), "")
        self._agent = environment.get(AGENT, "")
        self._project = environment.get(PROJECT, "")
        self._token = ""

    def carried(self, _: Context) -> RequestCredentials:
        return RequestCredentials(token=self._token, secret=self._secret, agent=self._agent, project=self._project)

    def connected(self, token: str) -> None:
        self._token = token


async def serve_stdio(service: WorkflowService, environment: Mapping[str, str]) -> None:
    """Answer until stdin ends or stdout is closed."""
    server = build(service, StdioTransport(environment))
    async with sweeping(service), spoken() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
