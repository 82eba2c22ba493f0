"""What can still be known of settings that cannot be used: where the blackboard is, and the name of the project.

Read-only commands, and commands that stop agents, work with an invalid settings file. Nothing is guessed:
where a broken file may say that the blackboard is somewhere else, it is refused.
"""

import re
from pathlib import Path
from typing import Any

from genba.definitions.project.config_file import ProjectFile
from genba.definitions.project.project import CONFIG_FILES, Project, load_project
from genba.domain.convert import LARGEST_YAML, read_plain, shape
from genba.domain.errors import ConfigurationError

_NEEDED = ("database", "project")
_AT_THE_TOP = re.compile(r"(?:database|project)\s*:")
_ANYWHERE = re.compile(r"(?m)^[^#\n]*?\b(?:database|project)\b[\"']?\s*:")


def usable_project(root: Path) -> tuple[Project, ConfigurationError | None]:
    """The settings of a project; where they cannot be used, what is left of them, and what is wrong with them."""
    try:
        return load_project(root), None
    except ConfigurationError as error:
        return Project(root, _salvaged(root, error), "defaults"), error


def _salvaged(root: Path, error: ConfigurationError) -> ProjectFile:
    path = next((root / name for name in CONFIG_FILES if (root / name).is_file()), None)
    if path is None:  # what is wrong lies beside: the settings are the defaults
        return ProjectFile()
    try:
        with path.open("rb") as opened:
            content = opened.read(LARGEST_YAML + 1)
    except OSError:
        raise error from None
    if len(content) > LARGEST_YAML:
        raise error
    text = content.decode("utf-8", "replace")
    whole = _read(text)
    if isinstance(whole, dict):
        sections = {name: whole[name] for name in _NEEDED if name in whole}
    else:
        sections = _sections(text, error)
    file, problems = shape(sections, ProjectFile, path.name)
    if file is None or problems:
        raise error
    return file


def agents_folder(root: Path) -> str:
    """Where the agents of a project are declared, as far as its settings can be read."""
    usual = ProjectFile().agent_discovery_path
    path = next((root / name for name in CONFIG_FILES if (root / name).is_file()), None)
    try:
        text = path.read_bytes()[:LARGEST_YAML].decode("utf-8", "replace") if path is not None else ""
        settings = _read(text)
        named = settings.get("agent_discovery_path") if isinstance(settings, dict) else None
        inside = isinstance(named, str) and _is_inside(root, named)
    except (OSError, ValueError, RuntimeError):
        return usual
    return str(named) if inside else usual


def _is_inside(root: Path, named: str) -> bool:
    """Whether it is a folder of the repository. Raises for what is no path at all."""
    (root / named).stat(follow_symlinks=True)
    return (root / named).resolve().is_relative_to(root.resolve())


def _sections(text: str, error: ConfigurationError) -> dict[str, Any]:
    """The sections that are needed, each read by itself; the rest of the text may be anything."""
    found: dict[str, Any] = {}
    blocks = [block for block in re.split(r"(?m)^(?=[^\s#])", text) if _AT_THE_TOP.match(block)]
    for block in blocks:
        section = _read(block)
        if not isinstance(section, dict) or section.keys() & found.keys():
            raise error
        found |= section
    if not blocks and _ANYWHERE.search(text):
        raise error
    return found


def _read(text: str) -> Any:
    """What a text says; nothing where it is no YAML, or not plain."""
    import yaml  # noqa: PLC0415  (as in load_project)

    from genba.domain.safe_yaml import load_yaml  # noqa: PLC0415

    try:
        value, problems = read_plain(lambda: load_yaml(text), "", "YAML")
    except yaml.YAMLError:
        return None
    return None if problems else value
