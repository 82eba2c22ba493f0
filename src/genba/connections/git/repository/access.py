"""Letting git in at a forge: by a token that only its own process has, at one host, and nowhere else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from genba.connections.git.repository.commands import Git

TOKEN_VARIABLE = "GENBA_FORGE_TOKEN"  # noqa: S105  (the name of a variable)
_HELPER = (
    '!f() { test "$1" = get || exit 0; printf \'username=x-access-token\\npassword=%s\\n\' "$'
    + TOKEN_VARIABLE
    + '"; }; f'
)


def origin_of(url: str) -> str:
    """Where the repositories of a forge lie, by the address of its API: on its host, or beside `api.`."""
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    return f"{scheme.lower()}://{host.lower() if path.strip('/') else host.lower().removeprefix('api.')}"


class RemoteAccess:
    """The credentials of a forge, for the remotes that lie on it.

    Law: the token is in no argument, no address and no file. Git asks for it by a helper that reads a variable of the
    git process, and the helper answers for this origin alone, wherever the server sends git on to. The certificate of
    the server is checked, whatever the settings of the repository say; a token in plain text meets no proxy.
    """

    def __init__(self, origin: str, token: Callable[[str], Awaitable[str]]) -> None:
        self.origin = origin.rstrip("/")
        """Scheme and host, such as https://github.com."""
        self.token = token

    async def args(self, git: Git, remote: str, push: bool) -> tuple[tuple[str, ...], dict[str, str]]:
        """The arguments and environment with which git reaches a remote; empty where it lies elsewhere."""
        asked = ("remote", "get-url", *(("--push",) if push else ()), "--", remote)
        found = await git.run(*asked, allow=(0, 2, 128))
        address = found.stdout.strip()
        if not address.startswith(f"{self.origin}/") or "=" in address or "\n" in address:
            return (), {}
        helper = f"credential.{self.origin}.helper"
        lines: tuple[str, ...] = ("-c", "credential.helper=", "-c", f"{helper}=", "-c", f"{helper}={_HELPER}")
        lines += ("-c", f"http.{address}.sslVerify=true")
        if not self.origin.startswith("https://"):
            lines += ("-c", f"http.{address}.proxy=")
        return lines, {TOKEN_VARIABLE: await self.token(self.origin)}
