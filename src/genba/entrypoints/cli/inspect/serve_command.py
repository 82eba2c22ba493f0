"""`genba serve`: the dashboard of a project, for the browsers of this machine."""

import asyncio
import contextlib
import gc
import hashlib
import html
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import click
import msgspec

from genba.application.verification.decisions import people_only
from genba.domain.errors import UsageError
from genba.entrypoints.cli.admin.mcp_commands import is_loopback, quiet_logs
from genba.entrypoints.cli.failures import show_warning
from genba.entrypoints.cli.project_lookup import project_here, run_async
from genba.wiring import ProjectContext

PORT = 8420
_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says."""

    host: str
    port: int
    public_url: str = ""
    read_only: bool = False
    open_browser: bool = False
    new_token: bool = False


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 takes a free one.")
@click.option("--public-url", default="", metavar="URL", help="How browsers reach it through a proxy with TLS.")
@click.option("--read-only", is_flag=True, help="Allow no changes.")
@click.option("--open", "open_browser", is_flag=True, help="Open it in your browser.")
@click.option("--new-token", is_flag=True, help="Replace the tokens; all browsers sign in again.")
@click.option("--i-accept-the-risk", is_flag=True, help="Listen also where other machines can reach it.")
def serve(
    host: str,
    port: int,
    public_url: str,
    read_only: bool,
    open_browser: bool,
    new_token: bool,
    i_accept_the_risk: bool,
) -> None:
    """Serve the dashboard, and print the link to sign in."""
    if not is_loopback(host) and not i_accept_the_risk:
        raise UsageError(
            f"{host[:80]} can be reached from other machines, and its traffic is not encrypted",
            hint="genba serve   listens on this machine only; behind a proxy with TLS add --i-accept-the-risk",
        )
    if public_url and (urlsplit(public_url).scheme not in ("http", "https") or not urlsplit(public_url).hostname):
        raise UsageError(
            f'"{public_url[:80]}" is not an address', hint="genba serve --public-url https://genba.example.org"
        )
    asked = Asked(
        host=host,
        port=port,
        public_url=public_url.rstrip("/"),
        read_only=read_only,
        open_browser=open_browser,
        new_token=new_token,
    )
    context = project_here()
    people_only(context, "open the dashboard")
    quiet_logs()
    with contextlib.suppress(asyncio.CancelledError, KeyboardInterrupt):  # it is how one ends it
        run_async(_serve(context, asked))


async def _serve(context: ProjectContext, asked: Asked) -> None:
    from genba.application.dashboard.keys import web_keys  # noqa: PLC0415
    from genba.application.dashboard.queries import DashboardQueries  # noqa: PLC0415
    from genba.application.project.notifications import notices_sent  # noqa: PLC0415
    from genba.application.verification.decisions import Decisions  # noqa: PLC0415
    from genba.application.workflow.service import open_service  # noqa: PLC0415
    from genba.entrypoints.listeners import bound_port, serving  # noqa: PLC0415  (only a server needs these)
    from genba.entrypoints.mcp import http as mcp  # noqa: PLC0415
    from genba.entrypoints.web.app import application  # noqa: PLC0415
    from genba.entrypoints.web.live import Hub  # noqa: PLC0415
    from genba.entrypoints.web.security import Passes  # noqa: PLC0415
    from genba.entrypoints.web.site import Site  # noqa: PLC0415

    keys = web_keys(context.layout.own, os.environ, context.ports.files, fresh=asked.new_token)
    with contextlib.closing(bound_port(asked.host, asked.port, "genba serve --port=0")) as listening:
        port = listening.getsockname()[1]
        name = f"genba-{hashlib.sha256(f'{context.layout.main}:{port}'.encode()).hexdigest()[:10]}"
        secure = asked.public_url.startswith("https://")
        public = urlsplit(asked.public_url).netloc
        passes = Passes(keys=keys, name=name, read_only=asked.read_only, secure=secure, public=public)
        with contextlib.closing(DashboardQueries(context)) as queries:
            hub = Hub(queries.stamp)
            site = Site(queries, Decisions(context, context.actor()), hub)
            service = open_service(context)
            asking = mcp.application(service, loopback=is_loopback(asked.host))
            app = application(
                site,
                passes,
                _hosts(asked),
                beside={"/mcp": asking},
                background=[lambda: asking.router.lifespan_context(asking)],
            )
            gc.freeze()  # loaded modules never become garbage
            async with serving(app, listening), notices_sent(context, show_warning), contextlib.aclosing(hub):
                link = _tell(asked, port, keys.operator, keys.viewer)
                with (
                    _opened(link, context.layout.own / "enter.html") if asked.open_browser else contextlib.nullcontext()
                ):
                    await asyncio.Event().wait()


def _hosts(asked: Asked) -> frozenset[str]:
    """The names under which it answers: a page that was lured to another name of this address gets nothing."""
    named = {urlsplit(asked.public_url).hostname or ""} if asked.public_url else set()
    if is_loopback(asked.host):
        return frozenset({*_NAMES, asked.host, *named} - {""})
    return frozenset({*_NAMES, *named}) if named else frozenset()


def _tell(asked: Asked, port: int, operator: str, viewer: str) -> str:
    """The links go to stdout, so that they can be piped; each lets its holder in."""
    shown = f"[{asked.host}]" if ":" in asked.host else asked.host
    address = asked.public_url or f"http://{shown}:{port}"
    full = f"{address}/enter#token={viewer if asked.read_only else operator}"
    click.echo(full)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    if not asked.read_only:
        click.echo(f"to look only: {address}/enter#token={viewer}", err=True)
    click.echo("serving; ctrl-c ends it", err=True)
    return full


@contextlib.contextmanager
def _opened(link: str, page: Path) -> Iterator[None]:
    """Open a link in the browser by way of a file that only this user can read.

    Anybody on the machine can read what a program is started with, and so can an agent: the link is no argument.
    """

    def open_it() -> None:
        import webbrowser  # noqa: PLC0415  (only who asks for it)

        if not webbrowser.open(page.as_uri()):
            show_warning("there is no browser to open here; open the link yourself")

    page.unlink(missing_ok=True)
    shown = html.escape(link)
    descriptor = os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(
            '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Genba</title>'
            f'<meta http-equiv="refresh" content="0;url={shown}"><p><a href="{shown}">Come in</a></p>\n'
        )
    try:
        # A browser that is waited for, such as one in a terminal, wants to be answered meanwhile.
        threading.Thread(target=open_it, name="browser", daemon=True).start()
        yield
    finally:
        page.unlink(missing_ok=True)
