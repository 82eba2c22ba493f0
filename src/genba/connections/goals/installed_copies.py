"""Copies of the project that are installed where its goals run: tests must not pass on one of them.

`pip install .` and `pip install -e .` write down the folder that they installed. Tests import such a copy where the
commit has no package of that name in the places that goals look in first, and then say nothing about the commit. A
copy of another origin is found out by a control: where a package of the base is no longer in its place, the tests that
import it must fail while the files of that name are hidden.
"""

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

from genba.connections.untrusted_files import UntrustedFolder
from genba.domain.goals.goal import CommandLine

_LARGEST = 1024 * 1024
_SOURCES = (".", "src")
"""Where goals look first: see `commands.surroundings`."""
_MODULES = (".py", ".so", ".pyd")
_NO_PRODUCT = ("tests", "test", "docs", "setup", "conftest", "noxfile", "tasks")
_MOST_TESTS = 5000
MOST_LOST = 5
"""So many lost packages are looked at; each takes a run of the tests."""
HIDING_FAILED = 86


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
            parent = os.path.dirname(folder)  # noqa: PTH120  (see below)
            if os.access(parent, os.R_OK | os.X_OK):  # glob raises for a folder that the user may not look at
                yield from Path(parent).glob("lib/python3*/site-packages")


def _installed_from(info: Path, repository: Path) -> bool:
    result = _read(info / "direct_url.json")
    try:
        url = str(json.loads(result).get("url", "")) if result else ""
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
    """The packages and modules of the first paths that are no longer in their place among the second.

    One that can be imported from where goals look first has not been lost.
    """
    here, there = frozenset(before), frozenset(after)
    roots = {path: name for path in here if (name := _import_name(path, here))}
    gone = {name for path, name in roots.items() if path not in there}
    return frozenset(name for name in gone if there.isdisjoint(_first_places(name)))


def imported_by_tests(names: frozenset[str], commit: Path, paths: Iterable[str]) -> list[str]:
    """The names that tests of the commit import: by a statement, or, where a file of that name is left, in any text."""
    left = frozenset(name for name in names if places_of(name, paths))
    spelled, anywhere = ("|".join(sorted(map(re.escape, some))) for some in (names, left))
    begins = rf"^[ \t]*(?:from|import)[ \t]+({spelled})\b"
    inside = rf"(?:\b(?:from|import)|-m[\"', \t]+)[ \t]*({anywhere})\b" if left else r"(?!)()"
    wanted = re.compile(rf"{begins}|{inside}", re.MULTILINE)
    folder, found = UntrustedFolder(commit), set[str]()
    for path in islice((path for path in paths if _is_test(path)), _MOST_TESTS):
        text = (folder.read_start(path, _LARGEST) or b"").decode("utf-8", "replace")
        found.update(name for names_of in wanted.findall(text) for name in names_of if name)
    return sorted(found)


def places_of(name: str, paths: Iterable[str]) -> list[str]:
    """The folders and files of these paths that could be imported by the name."""
    found = set()
    for path in paths:
        *folders, file = path.split("/")
        if name in folders:
            found.add("/".join(folders[: folders.index(name) + 1]))
        elif file.partition(".")[0] == name and file.endswith(_MODULES):
            found.add(path)
    return sorted(found)


def without(places: Iterable[str], command_line: CommandLine) -> str:
    """A shell line that runs a command while these places are not there. HIDING_FAILED: they could not be hidden."""
    names = [shlex.quote(f"./{place}") for place in places]
    hide = " && ".join(f"mv {name} {name}.hidden" for name in names)
    back = "; ".join(f"mv {name}.hidden {name}" for name in names)
    line = command_line if isinstance(command_line, str) else shlex.join(command_line)
    return f"{hide} || exit {HIDING_FAILED}\n(\n{line}\n)\ncode=$?\n{back}\nexit $code"


def _import_name(path: str, paths: frozenset[str]) -> str:
    """The name by which a package, or a module where goals look first, is imported; nothing for what is neither.

    Every file of a package without an `__init__.py` stands for it.
    """
    *folders, file = path.split("/")
    if _is_test(path) or set(folders) & set(_NO_PRODUCT):
        return ""
    if file == "__init__.py" and folders:
        is_inner = f"{'/'.join(folders[:-1])}/__init__.py".lstrip("/") in paths
        name = "" if is_inner else folders[-1]
    elif not file.endswith(".py"):
        name = ""
    elif folders in ([], ["src"]):
        name = file.removesuffix(".py")
    else:  # a file of a package without an `__init__.py`
        is_namespace = len(folders) == 1 or (len(folders) == 2 and folders[0] == "src")  # noqa: PLR2004
        is_package = f"{'/'.join(folders)}/__init__.py" in paths
        name = folders[-1] if is_namespace and not is_package else ""
    return name if name.isidentifier() and name not in _NO_PRODUCT else ""


def _first_places(name: str) -> set[str]:
    starts = (name, f"src/{name}")
    return {f"{start}{end}" for start in starts for end in (*_MODULES, *(f"/__init__{kind}" for kind in _MODULES))}


def _is_test(path: str) -> bool:
    *folders, name = path.split("/")
    is_named = name == "conftest.py" or name.startswith("test_") or name.endswith("_test.py")
    return name.endswith(".py") and (is_named or bool({"tests", "test"} & set(folders)))
