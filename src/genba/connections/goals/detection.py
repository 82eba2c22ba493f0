"""Finding out the commands of a project in a folder. What an agent planted there to be read is not followed."""

import itertools
import os
from pathlib import Path

from genba.domain.detection import DETECTION_FILES, Detected, detect

_READ_BYTES = 1024 * 1024
_WORKFLOWS = ".github/workflows"
_MOST_WORKFLOWS = 20


def detect_in(folder: Path) -> Detected:
    """The commands of the project in a folder."""
    return detect({name: _text(folder, name) for name in DETECTION_FILES}, _names(folder))


def look_in(folder: Path, more: tuple[str, ...]) -> tuple[dict[str, str], list[str]]:
    """The texts of the files that tell how a project is worked on, these ones too, and the names at its top."""
    texts = {name: _text(folder, name) for name in (*DETECTION_FILES, *more, *_workflows(folder))}
    return {name: text for name, text in texts.items() if text}, _names(folder)


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


def _text(folder: Path, name: str) -> str:
    """The text of a file that an agent may have written. A link that leaves the folder is no file of the project."""
    try:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()) or not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(_READ_BYTES).decode("utf-8", errors="replace")
    except (OSError, ValueError, RuntimeError):
        return ""
