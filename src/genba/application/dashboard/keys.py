"""The keys of the dashboard: who shows one of them may look, or look and act.

Law: they are in one file that only this user can read, or in the environment; never in a log, an event or an argument.
"""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

import msgspec

from genba.application.ports import Files
from genba.domain.decoding import reader
from genba.domain.errors import GenbaError

OPERATOR_VARIABLE = "GENBA_SERVE_TOKEN"
VIEWER_VARIABLE = "GENBA_SERVE_VIEWER_TOKEN"
_BYTES = 24
_SHORTEST = 16


class WebKeys(msgspec.Struct, frozen=True, kw_only=True):
    """What opens the dashboard, and what its cookies are signed with."""

    operator: str
    viewer: str
    signing: str


def web_keys(folder: Path, environment: Mapping[str, str], files: Files, fresh: bool = False) -> WebKeys:
    """The keys of a project; made once, and again with `fresh`. The environment wins."""
    path = folder / "serve.json"
    if fresh:
        path.unlink(missing_ok=True)
    kept = _read(path) or _made(path, files)
    named = {
        "operator": environment.get(OPERATOR_VARIABLE, ""),
        "viewer": environment.get(VIEWER_VARIABLE, ""),
    }
    given = {name: value for name, value in named.items() if value}
    if any(len(value) < _SHORTEST for value in given.values()):
        raise GenbaError(
            f"a token of the dashboard has at least {_SHORTEST} characters",
            unchanged="nothing was started.",
            hint="python3 -c 'import secrets; print(secrets.token_urlsafe(24))'   makes one",
        )
    return msgspec.structs.replace(kept, **given)


def _read(path: Path) -> WebKeys | None:
    try:
        return reader(WebKeys).decode(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise GenbaError(
            f"{path} cannot be read: {error}", unchanged="nothing was started.", hint="genba serve --new-token"
        ) from error


def _made(path: Path, files: Files) -> WebKeys:
    """Two who make them at once end with the same ones: the file is put in place by the first."""
    keys = WebKeys(
        operator=secrets.token_urlsafe(_BYTES),
        viewer=secrets.token_urlsafe(_BYTES),
        signing=secrets.token_urlsafe(_BYTES),
    )
    files.make_private_folder(path.parent)
    draft = path.with_name(f".{path.name}.{os.getpid():x}")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(keys))
        os.link(draft, path)
    except FileExistsError:
        return _read(path) or keys
    finally:
        draft.unlink(missing_ok=True)
    return keys
