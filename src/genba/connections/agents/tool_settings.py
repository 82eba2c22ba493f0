"""What every command-line tool accepts in `runner.adapter`, and what that means for its session."""

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated

import msgspec
from msgspec import Meta

from genba.connections.agents.private_home import private_folder
from genba.connections.agents.shared_files import write_shared
from genba.domain.errors import NotFoundError
from genba.domain.sessions.sandbox import McpServer

VariableName = Annotated[str, Meta(pattern="^[^=]+$")]
Word = Annotated[str, Meta(min_length=1)]
ServerName = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]+$")]


class McpServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """One server of `mcpServers`: an address, or a command that the tool starts."""

    url: Annotated[str, Meta(description="The address of a server that speaks streamable HTTP.")] = ""
    token_env: Annotated[
        str, Meta(description="The variable of your environment that holds the bearer token of the server.")
    ] = ""
    command: Annotated[str, Meta(description="The command of a server that speaks over stdin and stdout.")] = ""
    args: Annotated[tuple[str, ...], Meta(description="The words of the command.")] = ()
    env: Annotated[dict[VariableName, str], Meta(description="Variables for the command.")] = {}
    required: Annotated[bool, Meta(description="Fail the question when the server cannot be reached.")] = True


class ToolSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What `runner.adapter` takes with the type of any command-line tool."""

    type: str
    command: Annotated[str, Meta(description="The program, as a path or a word that is found on the path.")] = ""
    models: Annotated[dict[Word, Word], Meta(description="Names of models, and what the tool calls them.")] = {}
    base_url: Annotated[str, Meta(description="Where the model is, instead of the provider's own address.")] = ""
    env: Annotated[dict[VariableName, str], Meta(description="Variables for the tool.")] = {}
    pass_env: Annotated[
        tuple[VariableName, ...], Meta(description="Variables of your own environment that the tool may see.")
    ] = ()
    mcp_servers: Annotated[dict[ServerName, McpServerSettings], Meta(description="Servers of more tools.")] = {}
    home_files: Annotated[
        tuple[Word, ...],
        Meta(description="Files of your HOME that are copied into the private one, such as those of a login."),
    ] = ()
    args: Annotated[tuple[str, ...], Meta(description="More words for the command line of the tool.")] = ()


def setting_problem(settings: ToolSettings, environment: Mapping[str, str]) -> str:
    """Why the settings cannot work for someone with this environment; empty when they can."""
    for name, server in settings.mcp_servers.items():
        if bool(server.url) == bool(server.command):
            return f"mcpServers.{name} has either a url or a command"
        if server.token_env and not server.url:
            return f"mcpServers.{name}.tokenEnv goes with a url"
        if server.token_env and server.token_env not in environment:
            return f"mcpServers.{name}.tokenEnv: {server.token_env} is not set"
    for name in settings.home_files:
        if not _is_inside(name):
            return f"homeFiles: {name} is not a path inside of HOME"
        if not (Path(environment.get("HOME", "")) / name).is_file():
            return f"homeFiles: there is no file ~/{name}"
    return ""


def servers_of(settings: ToolSettings) -> tuple[McpServer, ...]:
    return tuple(
        McpServer(
            name=name,
            url=server.url,
            token_variable=server.token_env,
            command=(server.command, *server.args) if server.command else (),
            environment=server.env,
            required=server.required,
        )
        for name, server in settings.mcp_servers.items()
    )


def own_variables(settings: ToolSettings, servers: tuple[McpServer, ...]) -> dict[str, str]:
    """What the user chose to let the tool see: named variables, the tokens of its servers, and fixed ones."""
    wanted = (*settings.pass_env, *(server.token_variable for server in servers))
    return {**{name: os.environ[name] for name in wanted if name in os.environ}, **settings.env}


def copy_home_files(names: tuple[str, ...], home: str) -> None:
    """Bring files of the user's HOME into the private one, readable by the user alone.

    A copy that the tool has renewed since is kept.
    """
    own = Path(os.environ.get("HOME", ""))
    for name in names:
        source, target = own / name, Path(home) / name
        if not home or not _is_inside(name):
            continue
        try:
            if target.is_file() and target.stat().st_mtime >= source.stat().st_mtime:
                continue
            private_folder(home, str(Path(name).parent))
            write_shared(target, source.read_bytes())
        except OSError as error:
            raise NotFoundError(f"~/{name} cannot be copied: {error.strerror}", hint="check homeFiles") from error


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and name not in ("", ".")
