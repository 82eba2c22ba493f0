"""`genba mcp`: the MCP server for agents that ask, and its registration in other programs.

Law: over stdin and stdout nothing but the protocol is written to stdout.
"""

import asyncio
import contextlib
import gc
import ipaddress
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from genba.application.project.file_replacement import place
from genba.application.verification.decisions import people_only
from genba.domain.errors import GenbaError, StateConflictError, UsageError
from genba.entrypoints.cli.failures import show_hint, show_warning
from genba.entrypoints.cli.project_lookup import here, project_here, run_async
from genba.entrypoints.mcp.client_entries import (
    AGENT,
    NAME,
    PASSKEY,
    CannotMergeError,
    Client,
    ServerAddress,
    entry,
    merged,
    section,
    snippet,
)
from genba.wiring.project.connections import OwnFiles

if TYPE_CHECKING:
    from genba.coordination.workflow.service import WorkflowService

PORT = 8765
_LONGEST_FILE = 4_000_000


@click.group("mcp", invoke_without_command=True)
@click.option("--http", "over_http", is_flag=True, help="Listen on a port, for many agents; else on stdin and stdout.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 takes a free one.")
@click.option("--i-accept-the-risk", is_flag=True, help="Listen also where other machines can reach it.")
@click.pass_context
def mcp(ctx: click.Context, over_http: bool, host: str, port: int, i_accept_the_risk: bool) -> None:
    """Serve agents that ask for their next action over MCP.

    Claude Code starts `genba mcp` by itself after `genba mcp install`.
    """
    if ctx.invoked_subcommand is not None:
        return
    loopback = is_loopback(host)
    if not loopback and not i_accept_the_risk:
        raise UsageError(
            f"{host[:80]} can be reached from other machines, and its traffic is not encrypted",
            hint="genba mcp --http   listens on this machine only; behind a proxy with TLS add --i-accept-the-risk",
        )
    quiet_logs()
    from genba.application.workflow.service import open_service  # noqa: PLC0415  (installing needs no database)

    service = open_service(project_here())
    try:
        run_async(_serve_http(service, host, port, loopback) if over_http else _serve_stdio(service))
    except asyncio.CancelledError:
        return
    finally:
        service.close()


async def _serve_stdio(service: "WorkflowService") -> None:
    from genba.entrypoints.mcp.stdio import serve_stdio  # noqa: PLC0415  (the SDK is slow to import)

    await serve_stdio(service, os.environ)


async def _serve_http(service: "WorkflowService", host: str, port: int, loopback: bool) -> None:
    from genba.entrypoints.mcp.http import serve_port  # noqa: PLC0415  (the SDK is slow to import)

    gc.freeze()  # loaded modules never become garbage
    async with serve_port(service, host, port, loopback=loopback) as url:
        click.echo(url)
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        click.echo("serving; ctrl-c ends it", err=True)
        await asyncio.Event().wait()


def quiet_logs() -> None:
    """What the libraries have to say goes to stderr, from warnings on."""
    import logging  # noqa: PLC0415  (only a server logs)

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@mcp.command("install")
@click.argument("client", type=click.Choice([str(each) for each in Client]))
@click.option("--project", "scope", flag_value="project", default=True, help="For this repository (the default).")
@click.option("--user", "scope", flag_value="user", help="For everything that you do with this program.")
@click.option("--http", "url", default="", metavar="URL", help="Reach a server that runs already, at this address.")
@click.option("--agent", default="", metavar="ID", help="The id that `genba agent register` printed.")
@click.option("--print", "only_print", is_flag=True, help="Print the entry, and write nothing.")
def install(client: str, scope: str, url: str, agent: str, only_print: bool) -> None:
    """Register this server in Claude Code, Codex or OpenCode.

    Safe to repeat. It writes no secret.
    """
    chosen = Client(client)
    _check(url, agent)
    reached = ServerAddress(command=_command(scope), url=url, agent=agent)
    if only_print:
        click.echo(snippet(chosen, entry(chosen, reached)), nl=False)
        return
    context = project_here()
    people_only(context, "change the settings of other programs")
    if chosen is Client.CLAUDE_CODE and scope == "user":
        result = _registered_in_claude(reached)
    else:
        result = _written(chosen, _file(chosen, scope, context.layout.main), scope, reached)
    click.echo(result)
    _next_steps(chosen, scope, reached)


def _check(url: str, agent: str) -> None:
    if url:
        try:
            parts = urlsplit(url)
            fits = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.username or parts.password)
        except ValueError:
            fits = False
        if not fits or not url.isascii() or re.search(r"[\s\"'\\{}$]", url):
            raise UsageError(f"{url[:80]!r} is no address of a server", hint="http://127.0.0.1:8765/mcp")
    if agent and not re.fullmatch(r"[\w.-]{1,100}", agent, re.ASCII):
        raise UsageError(f"{agent[:80]!r} is no id of an agent", hint="genba agent list")
    if agent.startswith("gbk_"):
        raise UsageError(
            "that is a passkey, and no id of an agent", hint=f"export {PASSKEY}=…   and --agent with the id"
        )


def _command(scope: str) -> str:
    """How a client starts this program. What others read too names no place of this machine."""
    found = shutil.which("genba")
    if scope == "user" and found is None:
        return str(Path(sys.executable).with_name("genba"))
    if found is None:
        show_warning("genba is not on your PATH: other programs cannot start it")
    return "genba"


def _file(client: Client, scope: str, root: Path) -> Path:
    home = Path.home()
    match client:
        case Client.CLAUDE_CODE:
            return root / ".mcp.json"
        case Client.CODEX if scope == "user":
            return Path(os.environ.get("CODEX_HOME") or home / ".codex") / "config.toml"
        case Client.CODEX:
            return root / ".codex" / "config.toml"
        case Client.OPENCODE:
            config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"
            folder = config if scope == "user" else root
            commented = folder / "opencode.jsonc"
            return commented if commented.exists() else folder / "opencode.json"


def _written(client: Client, path: Path, scope: str, reached: ServerAddress) -> str:
    """Put the entry into a file, in one step. What was there stays, or nothing is changed."""
    value = entry(client, reached)
    if scope == "project" and (path.is_symlink() or path.parent.is_symlink()):
        raise _by_hand(client, path, "it is a link to somewhere else", value)
    path = path.resolve()
    before = _read(client, path, value)
    try:
        after = merged(client, before or "", value)
    except CannotMergeError as error:
        raise _by_hand(client, path, str(error), value) from error
    if before == after:
        return f"{path} has the entry already"
    place(OwnFiles(), path, after)
    return f"wrote {section(client)}.{NAME} into {path}"


def _read(client: Client, path: Path, value: dict[str, object]) -> str | None:
    try:
        if path.stat().st_size > _LONGEST_FILE:
            raise _by_hand(client, path, "it is very large", value)
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise _by_hand(client, path, "it is not UTF-8", value) from error
    except OSError as error:
        raise GenbaError(f"{path}: {error.strerror}", unchanged="nothing was changed.") from error


def _by_hand(client: Client, path: Path, why: str, value: dict[str, object]) -> StateConflictError:
    click.echo(snippet(client, value), nl=False)
    return StateConflictError(
        f"{path} is left as it is: {why}", unchanged="nothing was changed.", hint="add what stands above by hand"
    )


def _registered_in_claude(reached: ServerAddress) -> str:
    """Claude Code keeps a user's servers in a file that it writes itself all the time, so it is asked to."""
    import msgspec  # noqa: PLC0415  (only here)

    text = msgspec.json.encode(entry(Client.CLAUDE_CODE, reached)).decode()
    claude = shutil.which("claude")
    if claude is None:
        click.echo(f"claude mcp add-json --scope user {NAME} '{text}'")
        raise StateConflictError(
            "claude is not on your PATH, and only claude changes your settings of it",
            unchanged="nothing was changed.",
            hint="type what stands above where claude is found",
        )
    add = [claude, "mcp", "add-json", "--scope", "user", NAME, text]
    code, output = _asked(add)
    if code and "already exists" in output:
        _asked([claude, "mcp", "remove", "--scope", "user", NAME])
        code, output = _asked(add)
    if code:
        raise GenbaError(f"claude printed: {output or 'nothing'}", hint="claude mcp list")
    return f"claude has {NAME} among your servers"


def _asked(words: list[str]) -> tuple[int, str]:
    """How another program ended, and its last line."""
    try:
        done = subprocess.run(
            words, cwd=here(), capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, type(error).__name__
    lines = (done.stderr + done.stdout).strip().splitlines()
    return done.returncode, lines[-1] if lines else ""


def _next_steps(client: Client, scope: str, reached: ServerAddress) -> None:
    lines = []
    lines.append("genba agent register NAME   tells an id and a passkey, if you have none yet")
    who = "" if reached.agent else f"{AGENT}=agt_… "
    lines.append(f"export {who}{PASSKEY}=gbk_…   in the shell that you start the program from")
    if reached.url:
        lines.append("genba mcp --http   must run meanwhile")
    match client:
        case Client.CLAUDE_CODE:
            lines.append("claude   asks once whether it may use it" if scope == "project" else "claude mcp list")
        case Client.CODEX:
            lines.append("codex mcp list" + ("   shows it once codex trusts this folder" if scope == "project" else ""))
        case Client.OPENCODE:
            lines.append("opencode mcp list")
    lines.append('then say to it: "Authenticate with genba, call get_next_action and do what it says, until exit."')
    show_hint("\n".join(lines))
