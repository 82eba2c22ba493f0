"""Where a GitHub token may be sent: the one function that decides, for the API and for git.

Rule: github.com, and hosts that the user names in the environment (or logged in to with `gh`). The address in
`.genba/config.yaml`, a remote in `.git/config`, a redirect or a link in an answer never add a host. Over TLS only,
except to a loopback address that the user named.
"""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from genba.domain.errors import AccessRefusedError

HOST_VARIABLE = "GENBA_GITHUB_HOST"
NAMING_VARIABLES = (HOST_VARIABLE, "GH_HOST", "GITHUB_SERVER_URL", "GITHUB_API_URL")
"""What the user names hosts with; `GENBA_GITHUB_HOST` may name several, with commas between them."""
_GITHUB = frozenset({"github.com", "api.github.com", "uploads.github.com"})
_PORTS = {"https": 443, "http": 80}
_HOST = re.compile(r"[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?)*")
_IPV6 = re.compile(r"[0-9a-f:.]+")
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*/?")
_TENANT = ".ghe.com"
_LOOPBACK = re.compile(r"localhost|127(\.[0-9]{1,3}){3}|::1")


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """An address that may get a token. It is rebuilt from its parts, so that all readers read the same host."""

    scheme: str
    host: str
    port: int
    path: str = ""
    named_by: str
    """Who named the host: `github.com`, a variable of the environment, or `gh auth login`."""

    @property
    def url(self) -> str:
        return f"{self.origin}{self.path}"

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == _PORTS[self.scheme] else f":{self.port}")

    @property
    def by_tls(self) -> bool:
        return self.scheme == "https"

    @property
    def is_github(self) -> bool:
        return self.host in _GITHUB

    def covers(self, scheme: str, host: str, port: int | None) -> bool:
        """Whether a request goes to this very place."""
        return (scheme, host.lower(), port or _PORTS.get(scheme)) == (self.scheme, self.host, self.port)

    def covers_git(self, origin: str) -> bool:
        """Whether the repositories at an origin are those of this server."""
        git = _read(origin)
        return (git.scheme, git.port, tenant(git.host)) == (self.scheme, self.port, tenant(self.host))


class HostNotNamed(AccessRefusedError):
    """Only a file of the repository names the host."""

    def __init__(self, unnamed: Destination) -> None:
        super().__init__(
            f"{unnamed.host} gets no GitHub token: only the repository names it, and a file of the repository does not "
            "decide where your token goes",
            unchanged="nothing was sent.",
            hint=f"if you trust it: export {HOST_VARIABLE}={_as_named(unnamed)}",
        )
        self.unnamed = unnamed


def destination(url: str, environ: Mapping[str, str]) -> Destination:
    """The address, if a token may be sent there. Raises AccessRefusedError, and names the next command."""
    wanted = _read(url)
    named_by = "github.com" if wanted.host in _GITHUB and wanted.port == _PORTS["https"] else _namer(wanted, environ)
    if not wanted.by_tls and not (named_by and _LOOPBACK.fullmatch(wanted.host)):
        if _LOOPBACK.fullmatch(wanted.host):
            raise HostNotNamed(wanted)
        raise AccessRefusedError(
            f"{wanted.url} is not encrypted: a token sent there can be read on the way",
            unchanged="nothing was sent.",
            hint="write https:// in tracker.github.url",
        )
    if not named_by:
        raise HostNotNamed(wanted)
    return msgspec.structs.replace(wanted, named_by=named_by)


def logged_in(unnamed: Destination) -> str:
    """The name by which `gh` keeps a login of its own for an unnamed host; empty where it would show another's.

    gh answers for every host below github.com with the token of github.com.
    """
    host = tenant(unnamed.host)
    other = host.endswith((".github.com", ".github.localhost")) or (host.endswith(_TENANT) and host.count(".") > 2)  # noqa: PLR2004
    return "" if other or not unnamed.by_tls or unnamed.port != _PORTS["https"] else host


def tenant(host: str) -> str:
    """The name under which gh knows a server, by the host of its API."""
    return host.removeprefix("api.") if host == "api.github.com" or host.endswith(_TENANT) else host


def _read(url: str) -> Destination:
    """The parts of an address that can be read in one way only."""
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme.lower(), (parts.hostname or "").lower(), parts.port
    except ValueError:
        raise _unreadable() from None
    if "@" in url:
        raise AccessRefusedError(
            "the address of the API has a user or a secret in it, for everybody who reads the settings",
            unchanged="nothing was sent.",
            hint="take it out of tracker.github.url in .genba/config.yaml, and set GENBA_GITHUB_TOKEN",
        )
    known = _HOST.fullmatch(host) or (":" in host and _IPV6.fullmatch(host))
    plain = url.isascii() and url.isprintable() and not set(url) & set(" \\?#%;")
    if scheme not in _PORTS or not known or not plain or not _PATH.fullmatch(parts.path) or port == 0:
        raise _unreadable()
    path = parts.path.rstrip("/")
    return Destination(scheme=scheme, host=host, port=port or _PORTS[scheme], path=path, named_by="")


def _unreadable() -> AccessRefusedError:
    return AccessRefusedError(
        "the address of the GitHub API is not a plain https://HOST[:PORT][/PATH]: no token is sent there",
        unchanged="nothing was sent.",
        hint="check tracker.github.url in .genba/config.yaml",
    )


def _namer(wanted: Destination, environ: Mapping[str, str]) -> str:
    """The variable that names an address; empty where none does."""
    for variable in NAMING_VARIABLES:
        for word in environ.get(variable, "").split(","):
            if word.strip() and _names(word.strip(), wanted):
                return variable
    return ""


def _names(word: str, wanted: Destination) -> bool:
    """Whether a word of the user names an address: a host means https on its usual port, on loopback also http."""
    try:
        if "://" in word:
            named = _read(word)
            same_scheme = named.scheme == wanted.scheme
        else:
            named = _read(f"{wanted.scheme}://{word}")
            same_scheme = True
    except AccessRefusedError:
        return False
    return same_scheme and tenant(named.host) == tenant(wanted.host) and named.port == wanted.port


def _as_named(wanted: Destination) -> str:
    return wanted.origin.removeprefix("https://")
