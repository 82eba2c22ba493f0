"""The files of one agent in the format of climpt."""

import os
import re
from pathlib import Path
from typing import Any

from genba.definitions.agent.folder import AgentFolder
from genba.domain.errors import ConfigurationError, NotFoundError
from genba.domain.problems import Problem

_FRONT_MATTER = re.compile(r"\A---\r?\n.*?\r?\n---\r?\n+", re.DOTALL)
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_MOST_FILES = 2000


class ClimptAgent:
    """Reads the folder of one agent. A folder with a link or a path that leads out of it is refused."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = AgentFolder(path, path.name)
        self.read: set[str] = set()
        self.files = self._files()
        if "agent.json" not in self.files:
            raise NotFoundError(f"{path} has no agent.json", hint="genba agent import .agent/NAME --from climpt")

    def json(self, name: str) -> dict[str, Any]:
        """A JSON object of the folder; nothing where there is no such file. Broken files are refused."""
        if not self._is_there(name):
            return {}
        value = self.folder.json(name)
        if value is None:
            raise refused(*self.folder.problems)
        return value

    def text(self, name: str) -> tuple[str, bool] | None:
        """A prompt, and whether front matter was taken from it; None where there is no such file."""
        if not self._is_there(name):
            return None
        text = self.folder.text(name, name, "")
        if text is None:
            raise refused(*self.folder.problems)
        plain = _FRONT_MATTER.sub("", text)
        return plain, plain != text

    def inside(self, base: str) -> str:
        """A folder that is named from the top of the repository, relative to the agent's own: `.agent/x/prompts`."""
        _, mark, rest = f"/{base.strip('/')}/".partition(f"/{self.path.name}/")
        return rest.strip("/") if mark else base.strip("/")

    def _is_there(self, name: str) -> bool:
        """Whether there is such a file, which is then read. A path that leads out of the folder is refused."""
        if self.folder.inside(name, self.folder.shown_as, "") is None:
            raise refused(*self.folder.problems)
        if not self.folder.has(name):
            return False
        self.read.add(name)
        return True

    def _files(self) -> tuple[str, ...]:
        """Every file of the folder, relative to it. Raises for links that lead out of it, and for too many files."""
        root, found, seen = self.path.resolve(), [], 0
        for above, folders, names in os.walk(root):
            seen += len(folders) + len(names)
            if seen > _MOST_FILES:
                why = f"has more than {_MOST_FILES} files and folders"
                raise refused(Problem(self.path.name, "", why, "name the folder of one agent"))
            for path in (Path(above, name) for name in sorted([*folders, *names])):
                if path.is_symlink() and not path.resolve().is_relative_to(root):
                    raise refused(Problem(path.relative_to(root).as_posix(), "", "is a link out of the agent's folder"))
                if path.is_file():
                    found.append(path.relative_to(root).as_posix())
        return tuple(sorted(found))


def refused(*problems: Problem) -> ConfigurationError:
    """The error for an original that is not read any further."""
    return ConfigurationError(tuple(problems), hint="fix the original, or import another folder")


def word(value: Any, file: str, key: str) -> str:
    """A name that becomes a part of a path; empty where there is none. Raises for one that is no plain word."""
    text = "" if value is None else str(value)
    if text and not _WORD.fullmatch(text):
        shown = text.encode("utf-8", "backslashreplace").decode()[:80]
        raise refused(Problem(file, key, f'"{shown}" is no name of a file', "letters, digits, dots and dashes"))
    return text


def object_at(raw: Any, key: str) -> dict[str, Any]:
    """The object at a key; empty where there is something else."""
    value = raw.get(key) if isinstance(raw, dict) else None
    return value if isinstance(value, dict) else {}


def objects_at(raw: Any, key: str) -> dict[str, dict[str, Any]]:
    """The objects in the object at a key, without what is none."""
    return {name: each for name, each in object_at(raw, key).items() if isinstance(each, dict)}


def list_at(raw: Any, key: str) -> list[Any]:
    """The list at a key; empty where there is something else."""
    value = raw.get(key) if isinstance(raw, dict) else None
    return value if isinstance(value, list) else []


def text_at(raw: Any, key: str) -> str:
    """The text at a key; empty where there is something else."""
    value = raw.get(key) if isinstance(raw, dict) else None
    return value if isinstance(value, str) else ""


def value_at(raw: Any, path: str) -> Any:
    """The value at a dotted path; None where there is none."""
    for part in path.split("."):
        raw = raw.get(part) if isinstance(raw, dict) else None
    return raw
