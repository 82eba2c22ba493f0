"""A project: its repository root, its settings, and where its agents are declared."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from genba.definitions.command_words import command_problem
from genba.definitions.layers import Layer
from genba.definitions.project_file import ProjectFile
from genba.domain.errors import ConfigurationError
from genba.domain.problems import Problem
from genba.domain.shapes import read_plain, shape

CONFIG_FILES = (".genba/config.yaml", ".agentmine/config.yaml")
"""Where a project's settings are looked for, the first that exists."""


class Project:
    """Read once when a command starts."""

    def __init__(self, root: Path, file: ProjectFile, source: str) -> None:
        self.root = root
        self.file = file
        self.source = source

    @property
    def name(self) -> str:
        """The name for people; a project without one is not named."""
        return self.file.project.name if self.file.project is not None else ""

    @property
    def agents_folder(self) -> Path:
        return self.root / self.file.agent_discovery_path

    def layers_for(self, agent: str) -> list[Layer]:
        return [Layer(self.source, values) for values in self.file.layers_for(agent)]


def load_project(root: Path) -> Project:
    """The settings of the repository at `root`; a project without a file has the defaults."""
    for name in CONFIG_FILES:
        path = root / name
        if path.is_file():
            return Project(root, _read(path, name), name)
    return Project(root, ProjectFile(), "defaults")


def _read(path: Path, shown: str) -> ProjectFile:
    value, problems = shape(_yaml(path, shown), ProjectFile, shown)
    if value is not None:
        problems = tuple(_place_problems(path.parent.parent, value.agent_discovery_path, shown))
        problems += tuple(_forge_problems(value, shown))
    if value is None or problems:
        raise ConfigurationError(problems, hint="genba schema config")
    return value


def _place_problems(root: Path, relative: str, shown: str) -> Iterator[Problem]:
    at = "agent_discovery_path"
    try:
        target = (root / relative).resolve()
        there = target.exists()
    except (OSError, ValueError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        yield Problem(shown, at, f'"{relative[:80]}" is not a path: {why}')
        return
    if not target.is_relative_to(root.resolve()):
        yield Problem(shown, at, f'"{relative}" leaves the repository')
    elif there and not target.is_dir():
        yield Problem(shown, at, f'"{relative}" is not a folder')


def _forge_problems(file: ProjectFile, shown: str) -> Iterator[Problem]:
    if file.forge is None:
        return
    for name, words in (("open", file.forge.open), ("find", file.forge.find)):
        if words and (wrong := command_problem(words)):
            yield Problem(shown, f"forge.{name}", wrong)


def _yaml(path: Path, shown: str) -> Any:
    import yaml  # noqa: PLC0415  (most runs have no YAML to read, and its import is a fifth of their time)

    try:
        value, problems = read_plain(lambda: yaml.safe_load(path.read_text(encoding="utf-8")), shown, "YAML")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise ConfigurationError((Problem(shown, at, f"not YAML: {problem}"),), hint="genba schema config") from error
    except OSError as error:
        raise ConfigurationError((Problem(shown, "", f"cannot be read: {error.strerror}"),)) from error
    if problems:
        raise ConfigurationError(problems, hint="genba schema config")
    return {} if value is None else value
