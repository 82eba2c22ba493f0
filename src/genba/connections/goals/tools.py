"""Which tools a command would run, as one text: a result counts only as long as they are the same.

Looked at are the programs that a command names, with the interpreters of scripts, and the folders that tools are
installed to: those of PATH, the packages of Python and node beside them, and those of version managers. An upgrade
writes there. Nothing is run and nothing is kept in memory, so that a process that runs for days sees an upgrade too.
"""

import glob
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping

from genba.domain.goals.goal import CommandLine

_NAME = re.compile(r"[A-Za-z0-9_.+-]+")
_PYTHON = re.compile(r"python[0-9.]*")
_FIRST_LINE = 256
_PACKAGES = ("lib*/python3*/site-packages", "lib*/python3*/dist-packages", "local/lib/python3*/dist-packages")
_OF_NODE = ("lib/node_modules", "share/nodejs")
_MANAGED = {
    "RUSTUP_HOME": (".rustup", ("settings.toml", "toolchains", "update-hashes", "update-hashes/*")),
    "PYENV_ROOT": (".pyenv", ("version", "versions")),
    "RBENV_ROOT": (".rbenv", ("version", "versions")),
    "NVM_DIR": (".nvm", ("alias/default", "versions/node")),
    "VOLTA_HOME": (".volta", ("tools/image/*", "tools/user/platform.json")),
    "ASDF_DATA_DIR": (".asdf", ("installs/*",)),
    "JAVA_HOME": ("", ("release",)),
    "": ("", (".tool-versions", ".local/lib/python3*/site-packages", ".local/share/mise/installs/*")),
}
"""Where version managers write down what is installed: by their variable, or below HOME."""


def identity(commands: Iterable[CommandLine], environment: Mapping[str, str]) -> str:
    """What the tools of some commands are now. It differs after one of them was installed, upgraded or removed."""
    path = [folder for folder in environment.get("PATH", os.defpath).split(os.pathsep) if folder.startswith("/")]
    programs: dict[str, None] = {}
    for command in commands:
        for name in _names(command):
            _add_program(programs, name, path)
    looked_at = dict.fromkeys([*path, *programs, *_packages(path, programs), *_managed(environment)])
    return "\n".join(_seen(place) for place in looked_at)


def _names(command: CommandLine) -> list[str]:
    if not isinstance(command, str):
        return list(command)
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _add_program(programs: dict[str, None], name: str, path: list[str]) -> None:
    """A program by its name or its whole path, and what interprets it. What lies in the tree is part of the tree."""
    found = (name if _is_program(name) else "") if name.startswith("/") else _on_path(name, path)
    if not found or found in programs:
        return
    programs[found] = None
    for interpreter in _interpreters(found):
        _add_program(programs, interpreter, path)


def _on_path(name: str, path: list[str]) -> str:
    if not _NAME.fullmatch(name):
        return ""
    places = (f"{folder}/{name}" for folder in path)
    return next((place for place in places if _is_program(place)), "")


def _is_program(place: str) -> bool:
    return os.access(place, os.X_OK) and os.path.isfile(place)  # noqa: PTH113  (several times for each goal)


def _interpreters(program: str) -> list[str]:
    """What the first line of a script names: an interpreter, and what `env` is to look for."""
    try:
        with open(program, "rb") as file:  # noqa: PTH123  (see above)
            first = file.read(_FIRST_LINE)
    except OSError:
        return []
    if not first.startswith(b"#!"):
        return []
    command_line = first[2:].partition(b"\n")[0].decode("utf-8", "replace").split()
    return [arg for arg in command_line if not arg.startswith("-")]


def _packages(path: list[str], programs: dict[str, None]) -> Iterator[str]:
    """Folders of packages beside each interpreter: by where it is called, and by where it really is."""
    named = [place for place in (*programs, sys.executable) if _PYTHON.fullmatch(os.path.basename(place))]  # noqa: PTH119
    folders = [*path, *(os.path.dirname(place) for place in named)]  # noqa: PTH120
    folders += [os.path.dirname(os.path.realpath(place)) for place in named]  # noqa: PTH120
    for prefix in dict.fromkeys(os.path.dirname(folder.rstrip("/")) for folder in folders):  # noqa: PTH120
        for pattern in (*_PACKAGES, *_OF_NODE):
            yield from sorted(glob.glob(f"{glob.escape(prefix)}/{pattern}"))  # noqa: PTH207


def _managed(environment: Mapping[str, str]) -> Iterator[str]:
    home = environment.get("HOME", "")
    for variable, (folder, patterns) in _MANAGED.items():
        root = environment.get(variable, "") or (f"{home}/{folder}" if folder or not variable else "")
        if root.startswith("/"):
            for pattern in patterns:
                yield from sorted(glob.glob(f"{glob.escape(root.rstrip('/'))}/{pattern}"))  # noqa: PTH207


def _seen(place: str) -> str:
    """A file or folder as it is now; a link by what it leads to."""
    real = os.path.realpath(place)
    try:
        found = os.stat(real)  # noqa: PTH116
    except OSError:
        return f"{place} none"
    return f"{place} {real} {found.st_ino} {found.st_size} {found.st_mtime_ns}"
