"""The image of a container where the user names none: empty folders and links, so that the host's own system fits in.

It is made on this machine and needs no network. Its name carries a hash of what is in it, so a newer Genba, or a host
that was written again, makes another one.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import io
import os
import tarfile
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from genba.connections.sandbox.containers.engine import Client
from genba.connections.sandbox.system_folders import system_links
from genba.domain.errors import NotFoundError
from genba.domain.processes import Ending

_FOLDERS = ("dev", "etc", "gates", "home", "nix", "opt", "proc", "root", "run", "sys", "tmp", "usr", "var", "var/tmp")
_POLL_SECONDS = 0.05


async def image_of_the_host(client: Client) -> str:
    """The name of the image for the host's own system; it is made when it is not there yet."""
    content = _layout()
    name = f"localhost/genba-sandbox:{hashlib.sha256(content).hexdigest()[:16]}"
    if await _is_there(client, name):
        return name
    async with _one_at_a_time():
        if not await _is_there(client, name):
            with tempfile.NamedTemporaryFile(prefix="genba-sandbox-", suffix=".tar") as file:
                file.write(content)
                file.flush()
                await client.output("import", file.name, name)
    return name


async def image_of_the_user(client: Client, name: str) -> str:
    """Raises NotFoundError: nothing is fetched in the middle of a run."""
    if not await _is_there(client, name):
        engine = client.engine.kind.value
        raise NotFoundError(f"{engine} has no image {name}", hint=f"{engine} pull {name}")
    return name


async def image_id(client: Client, name: str) -> str:
    """The hash of an image; empty where there is none of that name."""
    asked = await client.ask("image", "inspect", "--format", "{{.Id}}", name)
    return asked.stdout.strip() if asked.ending is Ending.EXITED and asked.code == 0 else ""


async def _is_there(client: Client, name: str) -> bool:
    return bool(await image_id(client, name))


def _layout() -> bytes:
    """The same bytes for the same layout."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        for folder in _FOLDERS:
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for path, target in sorted(system_links().items()):
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, target, 0o777
            archive.addfile(entry)
    return written.getvalue()


@contextlib.asynccontextmanager
async def _one_at_a_time() -> AsyncIterator[None]:
    """A lock between all of this user's runs. Without it nothing breaks: one image is made twice, and has one name."""
    path = Path(tempfile.gettempdir()) / f"genba-sandbox-{os.getuid()}.lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        yield
        return
    try:
        await _locked(descriptor)
        yield
    finally:
        os.close(descriptor)


async def _locked(descriptor: int) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await asyncio.sleep(_POLL_SECONDS)
        else:
            return
