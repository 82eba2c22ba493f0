"""Where Genba keeps its own things in a repository: below the git directory, out of the user's sight."""

import os
from pathlib import Path

from genba.connections.git.commands import Git, discover


class RepositoryLayout:
    """The folders of one repository."""

    def __init__(self, top: Path, git_dir: Path, common: Path) -> None:
        self.top = top
        self.git_dir = git_dir
        self.common = common
        self.git = Git(common)

    @classmethod
    async def find(cls, folder: Path) -> "RepositoryLayout":
        return cls(*await discover(folder))

    @property
    def own(self) -> Path:
        return self.common / "genba"

    @property
    def repository_lock(self) -> Path:
        return self.own / "locks" / "repository"

    def branch_lock(self, branch: str) -> Path:
        return self.own / "locks" / "branches" / branch.replace("%", "%25").replace("/", "%2F")

    def run_folder(self, run: str) -> Path:
        return self.own / "runs" / run

    def exclude(self, *patterns: str) -> None:
        """Keep Genba's folders out of `git status`, without touching a file of the user's."""
        path = self.common / "info" / "exclude"
        known = path.read_text(encoding="utf-8") if path.is_file() else ""
        missing = [pattern for pattern in patterns if pattern not in known.splitlines()]
        if missing:
            path.parent.mkdir(parents=True, exist_ok=True)
            start = "" if not known or known.endswith("\n") else "\n"
            fresh = path.with_name(f"exclude.{os.getpid()}")
            fresh.write_text(known + start + "".join(f"{pattern}\n" for pattern in missing), encoding="utf-8")
            fresh.replace(path)

    async def checkouts(self) -> dict[str, Path]:
        """Every branch that is checked out somewhere, and where."""
        found: dict[str, Path] = {}
        where = Path()
        for line in (await self.git.run("worktree", "list", "--porcelain")).stdout.splitlines():
            word, _, rest = line.partition(" ")
            if word == "worktree":
                where = Path(rest)
            elif word == "branch":
                found[rest.removeprefix("refs/heads/")] = where
        return found
