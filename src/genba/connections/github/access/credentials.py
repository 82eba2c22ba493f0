"""What Genba shows to GitHub to be let in. Nothing that prints one of these shows a secret."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import msgspec

from genba.connections.github.access.destinations import (
    Destination,
    HostNotNamed,
    destination,
    logged_in,
    tenant,
)
from genba.connections.github.settings import AppSettings, GitHubSettings
from genba.domain.errors import AccessRefusedError
from genba.domain.ports import Processes
from genba.domain.processes import Command
from genba.domain.tracker.github_tokens import GH_VARIABLES

RunGh = Callable[[tuple[str, ...]], Awaitable[str]]
"""Runs gh with these words; what it printed, or nothing where it failed or is not there."""

_KEY_VARIABLE = "GENBA_GITHUB_APP_KEY"
_LONGEST_TOKEN = 10_000


class TokenCredentials:
    """A token, where it was found, and the one place that it may be sent to."""

    __slots__ = ("destination", "source", "token")

    def __init__(self, token: str, source: str, destination: Destination) -> None:
        self.token = token
        self.source = source
        self.destination = destination

    def __repr__(self) -> str:
        return f"TokenCredentials(source={self.source!r})"


class AppCredentials:
    """A GitHub App with the key that proves it. Its tokens live for an hour and are renewed by themselves."""

    __slots__ = ("destination", "id", "installation", "key", "source")

    def __init__(self, app: AppSettings, key: str, source: str, destination: Destination) -> None:
        self.id = app.id
        self.installation = app.installation
        self.key = key
        self.source = source
        self.destination = destination

    def __repr__(self) -> str:
        return f"AppCredentials(id={self.id!r}, installation={self.installation}, source={self.source!r})"


Credentials = TokenCredentials | AppCredentials


async def find_credentials(settings: GitHubSettings, environ: Mapping[str, str], run_gh: RunGh) -> Credentials:
    """Genba's own variable; the App of the settings; GITHUB_TOKEN; what gh knows. The first one that is there.

    Raises AccessRefusedError where there is none, and where its address may get none: see `destination`.
    """
    try:
        place = destination(settings.url, environ)
    except HostNotNamed as refused:
        return await _of_gh_alone(refused, run_gh)
    if own := _variable(environ, "GENBA_GITHUB_TOKEN", place):
        return own
    if settings.app is not None:
        return _app(settings.app, environ, place)
    host = tenant(place.host)
    for name in ("GITHUB_TOKEN", "GH_TOKEN" if place.is_github or host.endswith(".ghe.com") else "GH_ENTERPRISE_TOKEN"):
        if found := _variable(environ, name, place):
            return found
    output = (await run_gh(("auth", "token", "--hostname", host))).strip()
    if output:
        return TokenCredentials(_clean(output, "gh auth token"), "gh auth token", place)
    raise AccessRefusedError(
        f"there is no token for {host}: GENBA_GITHUB_TOKEN is not set, GITHUB_TOKEN is not set, `gh auth token` has "
        "none, and no GitHub App is named under tracker.github.app",
        unchanged="nothing was read from GitHub, and nothing was changed there.",
        hint=f"gh auth login --hostname {host}",
    )


async def _of_gh_alone(refused: HostNotNamed, run_gh: RunGh) -> TokenCredentials:
    """What the user logged in with at a host is for that host, and no variable that many tools share is."""
    host = logged_in(refused.unnamed)
    output = (await run_gh(("auth", "token", "--hostname", host))).strip() if host else ""
    if not output:
        raise refused
    place = msgspec.structs.replace(refused.unnamed, named_by="gh auth login")
    return TokenCredentials(_clean(output, "gh auth token"), "gh auth token", place)


def gh_by(processes: Processes, environ: Mapping[str, str], folder: Path) -> RunGh:
    """Runs the gh of the user.

    It gets no token of the environment: it would show that one for any host, and here only logins are asked for.
    """
    kept = {name: value for name, value in environ.items() if name not in GH_VARIABLES}

    async def run(words: tuple[str, ...]) -> str:
        command = Command(
            argv=("gh", *words),
            workdir=str(folder),
            environment={**kept, "GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1"},
            timeout_seconds=20,
            idle_seconds=20,
            mark="gh-credentials",
        )
        try:
            done = await processes.run(command, lambda _stream, _line: None)
        except OSError:
            return ""
        return done.stdout if done.code == 0 else ""

    return run


def _variable(environ: Mapping[str, str], name: str, place: Destination) -> TokenCredentials | None:
    value = environ.get(name, "").strip()
    return TokenCredentials(_clean(value, name), name, place) if value else None


def _clean(token: str, source: str) -> str:
    """A token is one word of plain characters; anything else would break out of its header."""
    if len(token) > _LONGEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise AccessRefusedError(
            f"what {source} has is no token: it is too long, or has characters that no token has",
            hint="gh auth login",
        )
    return token


def _app(app: AppSettings, environ: Mapping[str, str], place: Destination) -> AppCredentials:
    if key := environ.get(_KEY_VARIABLE, "").strip():
        return AppCredentials(app, key.replace("\\n", "\n"), _KEY_VARIABLE, place)
    if not app.key_file:
        raise AccessRefusedError(
            f"the key of the GitHub App {app.id} is missing: {_KEY_VARIABLE} is not set, and tracker.github.app names "
            "no key_file",
            hint=f"set {_KEY_VARIABLE}, or key_file under tracker.github.app in .genba/config.yaml",
        )
    path = Path(app.key_file).expanduser()
    try:
        key = path.read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise AccessRefusedError(
            f"the key of the GitHub App {app.id} cannot be read from {path}: {why}",
            hint="check key_file under tracker.github.app in .genba/config.yaml",
        ) from error
    return AppCredentials(app, key, str(path), place)
