"""What Genba shows to GitHub to be let in. Nothing that prints one of these shows a secret."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from genba.connections.github.settings import AppSettings, GitHubSettings
from genba.domain.errors import AccessRefusedError
from genba.domain.ports import Processes
from genba.domain.processes import Command

RunGh = Callable[[tuple[str, ...]], Awaitable[str]]
"""Runs gh with these words; what it printed, or nothing where it failed or is not there."""

_KEY_VARIABLE = "GENBA_GITHUB_APP_KEY"
_LONGEST_TOKEN = 10_000
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class TokenCredentials:
    """A token, and where it was found."""

    __slots__ = ("source", "token")

    def __init__(self, token: str, source: str) -> None:
        self.token = token
        self.source = source

    def __repr__(self) -> str:
        return f"TokenCredentials(source={self.source!r})"


class AppCredentials:
    """A GitHub App with the key that proves it. Its tokens live for an hour and are renewed by themselves."""

    __slots__ = ("id", "installation", "key", "source")

    def __init__(self, app: AppSettings, key: str, source: str) -> None:
        self.id = app.id
        self.installation = app.installation
        self.key = key
        self.source = source

    def __repr__(self) -> str:
        return f"AppCredentials(id={self.id!r}, installation={self.installation}, source={self.source!r})"


Credentials = TokenCredentials | AppCredentials


async def find_credentials(settings: GitHubSettings, environ: Mapping[str, str], run_gh: RunGh) -> Credentials:
    """Genba's own variable; the App of the settings; GITHUB_TOKEN; what gh knows. The first one that is there."""
    host = host_of(settings.url)
    if own := _variable(environ, "GENBA_GITHUB_TOKEN"):
        return own
    if settings.app is not None:
        return _app(settings.app, environ)
    if _is_meant_for(host, environ) and (general := _variable(environ, "GITHUB_TOKEN")):
        return general
    of_gh = "GH_TOKEN" if _is_githubs(host) else "GH_ENTERPRISE_TOKEN"
    if known_to_gh := _variable(environ, of_gh):
        return known_to_gh
    said = (await run_gh(("auth", "token", "--hostname", host))).strip()
    if said:
        return TokenCredentials(_clean(said, "gh auth token"), "gh auth token")
    why = "GITHUB_TOKEN is not set" if _is_meant_for(host, environ) else "GITHUB_TOKEN is for github.com"
    raise AccessRefusedError(
        f"there is no token for {host}: GENBA_GITHUB_TOKEN is not set, {why}, `gh auth token` has none, "
        "and no GitHub App is named under tracker.github.app",
        unchanged="nothing was read from GitHub, and nothing was changed there.",
        hint=f"gh auth login --hostname {host}",
    )


def gh_by(processes: Processes, environ: Mapping[str, str], folder: Path) -> RunGh:
    """Runs the gh of the user. What it prints is handed on to nobody else."""

    async def run(words: tuple[str, ...]) -> str:
        command = Command(
            argv=("gh", *words),
            workdir=str(folder),
            environment={**environ, "GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1"},
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


def host_of(url: str) -> str:
    """The name under which gh knows the server of an API."""
    host = urlsplit(url).hostname or ""
    return "github.com" if host == "api.github.com" else host.removeprefix("api.")


def _is_githubs(host: str) -> bool:
    return host == "github.com" or host.endswith(".ghe.com")


def _is_meant_for(host: str, environ: Mapping[str, str]) -> bool:
    """Whether GITHUB_TOKEN, which many tools share, is for this host.

    The address stands in a file of the repository. It alone must not lead such a token to any other server: the
    environment has to name that one as well, as GitHub Actions does on an Enterprise server, and as gh wants it.
    """
    named = {urlsplit(environ.get("GITHUB_SERVER_URL", "")).hostname, environ.get("GH_HOST", "").lower()}
    return _is_githubs(host) or host in _LOOPBACK or host in named


def _variable(environ: Mapping[str, str], name: str) -> TokenCredentials | None:
    value = environ.get(name, "").strip()
    return TokenCredentials(_clean(value, name), name) if value else None


def _clean(token: str, source: str) -> str:
    """A token is one word of plain characters; anything else would break out of its header."""
    if len(token) > _LONGEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise AccessRefusedError(
            f"what {source} has is no token: it is too long, or has characters that no token has",
            hint="gh auth login",
        )
    return token


def _app(app: AppSettings, environ: Mapping[str, str]) -> AppCredentials:
    if key := environ.get(_KEY_VARIABLE, "").strip():
        return AppCredentials(app, key.replace("\\n", "\n"), _KEY_VARIABLE)
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
    return AppCredentials(app, key, str(path))
