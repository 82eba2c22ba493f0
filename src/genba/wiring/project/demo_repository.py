"""The repository of the demo, asked by the same git as every other."""

from pathlib import Path

from genba.connections.git.repository.commands import ask_git
from genba.domain.errors import GitError


def git_lines(folder: Path, *words: str) -> list[str]:
    """What git prints, line by line; nothing where it refuses."""
    return ask_git(folder, *words).stdout.splitlines()


def do_git(folder: Path, *words: str) -> None:
    """Raises where git refuses."""
    done = ask_git(folder, *words)
    if done.returncode != 0:
        raise GitError(f"git {words[0]}: {done.stderr.strip()}")
