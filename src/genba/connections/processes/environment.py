"""What a started process may see of the user's environment: a short list, and never a secret by accident.

The environment that Genba runs from is Genba's alone: its Python, its pytest and what else is installed there
are not what a project is tested with. So they are not on the PATH of detection, setup, goals and agents.
"""

import functools
import json
import os
import sys
import urllib.parse
from collections.abc import Mapping
from pathlib import Path

_PASSED = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR", "TEMP", "TMP",
    "VIRTUAL_ENV", "PYENV_VERSION", "NVM_DIR", "JAVA_HOME", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
})  # fmt: skip
_LISTS = ("PATH", "PYTHONPATH")
_ROOTS = ("VIRTUAL_ENV", "PYTHONHOME", "UV_PROJECT_ENVIRONMENT")
_PARTS = ("bin", "lib", "lib64", "include", "Scripts")
_LARGEST = 64 * 1024


def passed_on(environment: Mapping[str, str], *project: Path) -> dict[str, str]:
    """The part of an environment that agents and checks are started with, for the project in these folders."""
    seen = without_own_tools(environment, *project)
    return {name: value for name, value in seen.items() if name in _PASSED or name.startswith("LC_")}


def without_own_tools(environment: Mapping[str, str], *project: Path) -> dict[str, str]:
    """An environment in which the tools of the virtual environment that Genba runs from are not found.

    They stay where that environment is the project's own: it lies in its folder, or has the project installed.
    """
    own = own_environment()
    if own is None or not _names(environment, own) or _is_of(own, tuple(str(folder) for folder in project)):
        return dict(environment)
    seen = dict(environment)
    for name in _LISTS:
        if name in seen:
            kept = [entry for entry in seen[name].split(os.pathsep) if not _is_part(entry, own)]
            seen[name] = os.pathsep.join(kept)
    for name in _ROOTS:
        if seen.get(name) and _is_part(seen[name], own):
            del seen[name]
    return seen


def own_environment() -> str | None:
    """The virtual environment that Genba runs from; None for a Python of the system, which everybody has."""
    return os.path.realpath(sys.prefix) if sys.prefix != sys.base_prefix else None


def _names(environment: Mapping[str, str], own: str) -> bool:
    """Whether anything in an environment leads there."""
    entries = [entry for name in _LISTS for entry in environment.get(name, "").split(os.pathsep)]
    return any(_is_part(entry, own) for entry in (*entries, *(environment.get(name, "") for name in _ROOTS)) if entry)


def _is_part(path: str, own: str) -> bool:
    """Whether a path is an environment, or a folder of its programs or packages, and not just something in it."""
    real = os.path.realpath(path) if path else ""
    return real == own or any(_lies_in(real, f"{own}/{part}") for part in _PARTS)


def _lies_in(path: str, folder: str) -> bool:
    real = os.path.realpath(path) if path else ""
    return real == folder or real.startswith(f"{folder}{os.sep}")


@functools.cache
def _is_of(own: str, project: tuple[str, ...]) -> bool:
    """Whether an environment is that of a project in these folders."""
    roots = tuple(os.path.realpath(folder) for folder in project)
    return any(_lies_in(own, root) and not _in_another_repository(own, root) for root in roots) or any(
        _lies_in(place, root) and not _in_another_repository(place, root)
        for place in _installed_from(own)
        for root in roots
    )


def _in_another_repository(path: str, root: str) -> bool:
    """Whether a repository lies between the two: a clone of Genba in a folder of the project is not the project."""
    folder = path
    while folder != root and folder != os.path.dirname(folder):  # noqa: PTH120  (plain words of a path)
        if os.path.lexists(f"{folder}/.git"):
            return True
        folder = os.path.dirname(folder)  # noqa: PTH120
    return False


def _installed_from(own: str) -> list[str]:
    """The folders from which packages of an environment were installed, as pip, uv and poetry write down."""
    found = []
    for file in Path(own).glob("lib/python*/site-packages/*.dist-info/direct_url.json"):
        try:
            with file.open("rb") as opened:
                url = json.loads(opened.read(_LARGEST)).get("url", "")
        except (OSError, ValueError, AttributeError, RecursionError):
            continue
        if isinstance(url, str) and url.startswith("file://"):
            found.append(os.path.realpath(urllib.parse.unquote(url.removeprefix("file://"))))
    return found
