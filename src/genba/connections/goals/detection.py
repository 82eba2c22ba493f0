"""Finding out the commands of a project in a folder. What an agent planted there to be read is not followed."""

import fnmatch
import itertools
import os
from pathlib import Path

from genba.connections.untrusted_files import UntrustedFolder
from genba.domain.goals.detection import DETECTION_FILES, Detected, detect

_READ_BYTES = 1024 * 1024
_WORKFLOWS = ".github/workflows"
_MOST_WORKFLOWS = 20
_MOST_TESTS, _MOST_FOLDERS, _TEST_BYTES, _DEEPEST = 200, 5000, 64 * 1024, 6
_NOT_TESTS = frozenset({"node_modules", "venv", "site-packages", "build", "dist", "__pycache__", "target", "vendor"})


def detect_in(folder: Path) -> Detected:
    """The commands of the project in a folder."""
    return detect({name: _text(folder, name) for name in DETECTION_FILES}, _names(folder))


def look_in(folder: Path, more: tuple[str, ...]) -> tuple[dict[str, str], list[str]]:
    """The texts of the files that tell how a project is worked on, these ones too, and the names at its top."""
    texts = {name: _text(folder, name) for name in (*DETECTION_FILES, *more, *_workflows(folder))}
    return {name: text for name, text in texts.items() if text}, _names(folder)


def python_tests(folder: Path) -> dict[str, str]:
    """The beginnings of the test files in Python, by their paths: so many as tell how they are written."""
    found: dict[str, str] = {}
    for place, folders, files in itertools.islice(os.walk(folder), _MOST_FOLDERS):
        here = Path(place).relative_to(folder)
        folders[:] = sorted(
            name
            for name in folders
            if name not in _NOT_TESTS and not name.startswith(".") and len(here.parts) < _DEEPEST
        )
        for name in sorted(files):
            if fnmatch.fnmatchcase(name, "test_*.py") or name.endswith("_test.py") or name == "conftest.py":
                path = (here / name).as_posix()
                found[path] = _text(folder, path, _TEST_BYTES)
        if len(found) >= _MOST_TESTS:
            break
    return found


def _workflows(folder: Path) -> list[str]:
    try:
        found = sorted((folder / _WORKFLOWS).iterdir())[:_MOST_WORKFLOWS]
    except OSError:
        return []
    return [f"{_WORKFLOWS}/{path.name}" for path in found if path.suffix in (".yml", ".yaml")]


def _names(folder: Path) -> list[str]:
    """What is in a folder itself, folders with a slash; and one Python file of its tests, if there is any."""
    try:
        with os.scandir(folder) as entries:
            names = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries]
    except OSError:
        return []
    walks = (os.walk(folder / tests) for tests in ("tests", "test") if not (folder / tests).is_symlink())
    python = (name for walk in walks for _, _, files in walk for name in files if name.endswith(".py"))
    return [*names, *(f"tests/{name}" for name in itertools.islice(python, 1))]


def _text(folder: Path, name: str, most: int = _READ_BYTES) -> str:
    """The text of a file that an agent may have written. A link that leaves the folder is no file of the project."""
    return (UntrustedFolder(folder).read_start(name, most) or b"").decode("utf-8", errors="replace")
