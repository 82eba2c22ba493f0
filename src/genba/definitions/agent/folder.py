"""An agent's folder: every path in a definition stays inside it."""

import json
import os
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from genba.domain.convert import LARGEST_FILE, file_text, one_of_each, read_plain
from genba.domain.problems import Problem


class AgentFolder:
    """Reads files of one agent and collects the problems of doing so."""

    def __init__(self, path: Path, shown_as: str, language: str = "en") -> None:
        self.path = path
        self.shown_as = shown_as
        self.language = language
        """Prompts in this language are read where they are there."""
        self.problems: list[Problem] = []

    @cached_property
    def _root(self) -> Path:
        return self.path.resolve()

    def _target(self, relative: str) -> Path:
        """Where a path of this folder really leads. Where no part of it is a link, there is no way to walk."""
        at = str(self._root)
        parts = PurePosixPath(relative).parts
        if "\0" in relative or ".." in parts or relative.startswith("/"):
            return (self.path / relative).resolve()
        for part in parts:
            at = f"{at}/{part}"
            if os.path.islink(at):  # noqa: PTH114  (asked for every file of every agent)
                return (self.path / relative).resolve()
        return Path(at)

    def shown(self, relative: str) -> str:
        return f"{self.shown_as}/{relative}"

    def in_language(self, relative: str) -> str:
        """The file to read for a prompt: `NAME.ja.md` beside `NAME.md`, in a project whose language is ja."""
        own = f"{relative.removesuffix('.md')}.{self.language}.md"
        return own if relative.endswith(".md") and self.has(own) else relative

    def inside(self, relative: str, file: str, at: str) -> Path | None:
        """The path of a file of this agent, or a problem when it leads out of the folder."""
        try:
            target = self._target(relative)
            target.exists()
        except (OSError, ValueError, RuntimeError) as error:
            self.problems.append(Problem(file, at, f'"{relative[:80]}" is not a path: {_why(error)}'))
            return None
        if not target.is_relative_to(self._root):
            self.problems.append(Problem(file, at, f'"{relative}" leaves the agent\'s folder'))
            return None
        return target

    def text(self, relative: str, file: str, at: str) -> str | None:
        """The text of a file that the definition names, in the language of the project where there is one."""
        relative = self.in_language(relative)
        target = self.inside(relative, file, at)
        if target is None:
            return None
        if not target.is_file():
            self.problems.append(Problem(file, at, f"no such file: {self.shown(relative)}"))
            return None
        try:
            with target.open("rb") as opened:
                return file_text(opened.read(LARGEST_FILE + 1))
        except (OSError, ValueError) as error:
            self.problems.append(Problem(file, at, f"cannot be read: {self.shown(relative)}: {_why(error)}"))
            return None

    def has(self, relative: str) -> bool:
        try:
            target = self._target(relative)
            return target.is_relative_to(self._root) and target.is_file()
        except (OSError, ValueError, RuntimeError):
            return False

    def json(self, relative: str) -> dict[str, Any] | None:
        """A JSON object of the folder; None with a problem when it is broken."""
        shown = self.shown(relative)
        text = self.text(relative, shown, "")
        if text is None:
            return None
        value, problems = read_plain(lambda: json.loads(text, object_pairs_hook=one_of_each), shown, "JSON")
        if problems:
            self.problems.extend(problems)
            return None
        if not isinstance(value, dict):
            self.problems.append(Problem(shown, "", "expected a JSON object"))
            return None
        return value


def _why(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 (byte {error.start})"
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
