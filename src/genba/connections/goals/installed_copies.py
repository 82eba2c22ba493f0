"""Copies of the project that are installed where its goals run: tests must not pass on one of them.

`pip install .` and `pip install -e .` write down the folder that they installed. Tests import such a copy where the
commit has no package of that name in the places that goals look in first, and then say nothing about the commit. Where
a Python is named by its path, its copies are not found; a package that the commit has lost is.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

from genba.connections.untrusted_files import UntrustedFolder

_LARGEST = 1024 * 1024
_SOURCES = (".", "src")
"""Where goals look first: see `commands.surroundings`."""
_MODULES = (".py", ".so", ".pyd")
_NO_PRODUCT = ("tests", "test", "docs", "setup", "conftest", "noxfile", "tasks")
_MOST_TESTS = 5000


def untested_package(path: str, repository: Path, commit: Path) -> str:
    """The package that tests would import from an installed copy, and not from the commit; nothing where there is none.

    `path` is the PATH of the goals, `repository` the folder that the user installed, `commit` has the files.
    """
    for packages in _site_packages(path):
        for info in packages.glob("*.dist-info"):
            if _installed_from(info, repository):
                missing = [name for name in _top_level(info, packages, repository) if not _has(commit, name)]
                if missing:
                    return f"{missing[0]} of {packages}"
    return ""


def _site_packages(path: str) -> Iterator[Path]:
    seen = set()
    for folder in path.split(os.pathsep):
        if folder and folder not in seen:
            seen.add(folder)
            yield from Path(folder).parent.glob("lib/python3*/site-packages")


def _installed_from(info: Path, repository: Path) -> bool:
    told = _read(info / "direct_url.json")
    try:
        url = str(json.loads(told).get("url", "")) if told else ""
    except (ValueError, AttributeError):
        return False
    parts = urlsplit(url)
    if parts.scheme != "file":
        return False
    folder = Path(os.path.realpath(unquote(parts.path)))
    top = Path(os.path.realpath(repository))
    return folder == top or top in folder.parents


def _top_level(info: Path, packages: Path, repository: Path) -> list[str]:
    """The names that an installed distribution can be imported by."""
    files = [line.partition(",")[0] for line in _read(info / "RECORD").splitlines()]
    names = {file.partition("/")[0] for file in files if file.endswith("/__init__.py") and file.count("/") == 1}
    names |= {Path(file).stem for file in files if "/" not in file and file.endswith(_MODULES) and file[:2] != "__"}
    for file in files:
        if file.endswith(".pth") and "/" not in file:
            for line in _read(packages / file).splitlines():
                place = Path(line)
                if place.is_absolute() and place.is_dir() and place.is_relative_to(os.path.realpath(repository)):
                    names |= {each.parent.name for each in place.glob("*/__init__.py")}
    return sorted(name for name in names if name.isidentifier() and name not in _NO_PRODUCT)


def _has(commit: Path, name: str) -> bool:
    for source in _SOURCES:
        package = commit / source / name
        if any(os.path.isfile(f"{package}/__init__{end}") for end in _MODULES):  # noqa: PTH113
            return True
        if any(os.path.isfile(f"{package}{end}") for end in _MODULES):  # noqa: PTH113
            return True
    return False


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""


def lost_packages(before: Iterable[str], after: Iterable[str]) -> frozenset[str]:
    """The packages and modules that can be imported from the first paths, and of which no file is among the second."""
    left = {part for path in after if path.endswith(".py") for part in _parts_of_module(path)}
    return frozenset(name for path in before if (name := _importable(path)) and name not in left)


def imported_by_tests(names: frozenset[str], commit: Path, paths: Iterable[str]) -> str:
    """The first of the names that a test of the commit imports; nothing where none does."""
    wanted = re.compile(rf"^[ \t]*(?:from|import)[ \t]+({'|'.join(sorted(map(re.escape, names)))})\b", re.MULTILINE)
    folder = UntrustedFolder(commit)
    for path in islice((path for path in paths if _is_test(path)), _MOST_TESTS):
        text = (folder.read_start(path, _LARGEST) or b"").decode("utf-8", "replace")
        if found := wanted.search(text):
            return found[1]
    return ""


def _importable(path: str) -> str:
    """The name by which a file at an import root is imported; nothing for what no product imports."""
    parts = path.removeprefix("src/").split("/")
    if not path.endswith(".py") or len(parts) > 2 or (len(parts) == 2 and parts[1] != "__init__.py"):  # noqa: PLR2004
        return ""
    name = parts[0].removesuffix(".py")
    return name if name.isidentifier() and name not in _NO_PRODUCT and not _is_test(path) else ""


def _parts_of_module(path: str) -> Iterator[str]:
    *folders, file = path.split("/")
    yield from folders
    yield file.removesuffix(".py")


def _is_test(path: str) -> bool:
    *folders, name = path.split("/")
    is_named = name == "conftest.py" or name.startswith("test_") or name.endswith("_test.py")
    return name.endswith(".py") and (is_named or bool({"tests", "test"} & set(folders)))
