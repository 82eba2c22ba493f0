"""The folders that a definition chooses for Genba's own things: none may hide, or swallow, a file of the user's.

Genba keeps these folders out of `git status`. A folder with other things in it would vanish from there too.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from genba.definitions.agent.agent_json import AgentFile
from genba.domain.problems import Problem

_ROOT = "runner.execution.worktree.root"
_DIRECTORY = "runner.logging.directory"
_JOURNAL = ".jsonl"
_KEEPERS = (".gitignore", ".gitkeep")


def check_places(file: AgentFile, shown: str, repository: Path | None) -> Iterator[Problem]:
    """Every problem of the chosen folders; with the repository at hand, also what is in the way there."""
    worktree, directory = file.runner.execution.worktree, file.runner.logging.directory.replace("{name}", file.name)
    for at, text, absolute in ((_ROOT, worktree.root, False), (_DIRECTORY, directory, True)):
        wrong = _wrong_path(text, absolute)
        if not wrong and repository is not None:
            foreign = _foreign_tree if at == _ROOT else _foreign_file
            wrong = _in_the_way(repository, text, foreign)
        if wrong:
            yield Problem(shown, at, wrong, "a folder of its own: .worktrees" if at == _ROOT else "")


def _wrong_path(text: str, absolute_is_fine: bool) -> str:
    path = PurePosixPath(text)
    if path.is_absolute() and absolute_is_fine:
        return ""
    if path.is_absolute() or ".." in path.parts:
        return f'"{text}" leaves the repository'
    if not path.parts:
        return f'"{text}" is the repository itself'
    if path.parts[0].casefold() == ".git":
        return f'"{text}" is inside of git\'s own folder'
    return ""


def _in_the_way(repository: Path, text: str, foreign: Callable[[Path], str]) -> str:
    folder = repository / text
    try:
        nearest = next(path for path in (folder, *folder.parents) if path.is_symlink() or path.exists())
        if not nearest.is_dir():
            return f'"{text}" cannot be made: {nearest} is not a folder'
        if not folder.is_dir() or PurePosixPath(text).is_absolute() or _is_ours(repository, text):
            return ""
        found = foreign(folder)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        return f'"{text[:80]}" is not a path: {why}'
    return f'"{text}" has something else in it, {found}, which `git status` would no longer show' if found else ""


def _foreign_tree(folder: Path) -> str:
    """What is no working tree in a folder of working trees."""
    found = (path.name for path in folder.iterdir() if not path.name.startswith(".") and not (path / ".git").exists())
    return min(found, default="")


def _foreign_file(folder: Path) -> str:
    """What is no journal in a folder of journals."""
    for _, _, names in os.walk(folder):
        for name in names:
            if not name.endswith(_JOURNAL) and name not in _KEEPERS:
                return name
    return ""


def _is_ours(repository: Path, text: str) -> bool:
    """Whether Genba has taken this folder before: it then stands in git's list of what is not shown."""
    try:
        git = repository / ".git"
        if git.is_file():
            own = Path(git.read_text("utf-8").removeprefix("gitdir:").strip())
            git = own / (own / "commondir").read_text("utf-8").strip()
        return f"/{text.strip('/')}/" in (git / "info" / "exclude").read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return False
