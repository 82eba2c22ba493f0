"""Bring agents of climpt's into a project: converted, checked, then written, all of them or none."""

import re
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from genba.definitions.agent.loading import load_definition
from genba.definitions.agent.scaffold import agent_name, prepared_agent, write_agent
from genba.definitions.climpt.conversion import ConvertedAgent, convert_agent
from genba.domain.errors import NotFoundError, StateConflictError, UsageError


def agents_at(path: Path) -> tuple[Path, ...]:
    """The folder of one agent, or those of all agents in a folder. Links to folders elsewhere are no agents."""
    if (path / "agent.json").is_file():
        return (path.resolve(),)
    top = path.resolve()
    found = tuple(sorted(file.parent for file in top.glob("*/agent.json") if not file.parent.name.startswith(".")))
    if not found:
        raise NotFoundError(
            f"{path} has no agent.json, and no folder in it has one", hint="name the folder of an agent"
        )
    outside = [each for each in found if not each.resolve().is_relative_to(top)]
    if outside:
        raise UsageError(f"{outside[0]} is a link out of {path}", hint=f"genba agent import {outside[0]} --from climpt")
    return found


def converted(paths: tuple[Path, ...], name: str = "") -> tuple[ConvertedAgent, ...]:
    """The agents in these folders, converted, and checked as `genba agent check` would. Nothing is written for good."""
    if name and len(paths) > 1:
        raise UsageError(f"--name is for one agent, and there are {len(paths)}", hint="name the folder of one of them")
    names = [agent_name(name or re.sub(r"[^a-z0-9]+", "-", path.name.lower()).strip("-")) for path in paths]
    twice = [own for own, count in Counter(names).items() if count > 1]
    if twice:
        raise UsageError(f"two of the agents would be named {twice[0]}", hint="import one of them alone, with --name")
    made = tuple(convert_agent(path, own) for path, own in zip(paths, names, strict=True))
    with tempfile.TemporaryDirectory(prefix="genba-import-") as folder:
        for each in made:
            write_agent(Path(folder), each.name, each.files)
            load_definition(Path(folder) / each.name, f".agent/{each.name}", [], [])
    return made


def write_imported(agents: Path, made: tuple[ConvertedAgent, ...], replace: bool) -> dict[str, Path]:
    """Write converted agents. With `replace` those of the same names are kept: their new places by name."""
    there = [each for each in made if (agents / each.name).exists() or (agents / each.name).is_symlink()]
    if there and not replace:
        raise StateConflictError(
            f"{agents / there[0].name} is already there",
            unchanged="nothing was changed.",
            hint=f"--replace   keeps it as .{there[0].name}.before-import; or --name OTHER",
        )
    kept: dict[str, Path] = {}
    with ExitStack() as stack:  # everything is on the disk before the first folder is renamed
        ready = [(each.name, stack.enter_context(prepared_agent(agents, each.name, each.files))) for each in made]
        for name, beside in ready:
            folder = agents / name
            if folder.exists() or folder.is_symlink():
                kept[name] = _free(agents / f".{name}.before-import")
                folder.rename(kept[name])
            try:
                beside.rename(folder)
            except BaseException:
                if name in kept and not folder.exists():
                    kept[name].rename(folder)
                raise
    return kept


def _free(path: Path) -> Path:
    number, free = 1, path
    while free.exists() or free.is_symlink():
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    return free
