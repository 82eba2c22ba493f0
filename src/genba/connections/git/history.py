"""What git shows of commits and files, without a checkout."""

import asyncio

from genba.connections.git.commands import Git
from genba.domain.errors import GitError, NotFoundError
from genba.domain.verification import BranchFacts, CommitFacts, FileChange

_LARGEST_TEXT = 4 * 1024 * 1024
_COMMITS = ("log", "-z", "--boundary", "--format=%m%x00%H%x00%T%x00%P%x00%s")
"""The commits of a span, and behind a `-` those that it begins at: their trees tell which commits change nothing."""
_BOUNDARY = "-"
_TOUCHED = ("log", "-z", "--diff-merges=separate", "--root", "--name-only", "--no-renames", "--format=")


class GitHistory:
    """Reads objects. Nothing here depends on a working tree, so nothing that lies in one can mislead it."""

    def __init__(self, git: Git) -> None:
        self.git = git

    async def commit_of(self, name: str) -> str | None:
        return None if name.startswith("-") else await self.git.commit_of(name)

    async def fork_point(self, base: str, commit: str) -> str | None:
        done = await self.git.run("merge-base", base, commit, allow=(0, 1, 128))
        return done.stdout.strip() or None

    async def facts(self, base: str, commit: str) -> BranchFacts:
        span = f"{base}..{commit}"
        log, changes, touched = await asyncio.gather(
            self.git.run(*_COMMITS, span),
            self.git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--abbrev=64", base, commit),
            self.git.run(*_TOUCHED, span),
        )
        rows = _rows(log.stdout)
        trees = {sha: tree for _, sha, tree, _, _ in rows}
        own = [row for row in rows if row[0] != _BOUNDARY]
        return BranchFacts(
            base=base,
            commit=commit,
            tree=trees.get(commit) or await self.git.text("rev-parse", "--verify", f"{commit}^{{tree}}"),
            commits=tuple(
                CommitFacts(sha=sha, subject=subject, empty=bool(parents) and _repeats(tree, parents, trees))
                for _, sha, tree, parents, subject in own
            ),
            changes=tuple(_changes(changes.stdout)),
            touched=tuple(sorted({name for name in touched.stdout.split("\0") if name.strip("\n")})),
        )

    async def files(self, commit: str) -> tuple[str, ...]:
        done = await self.git.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
        return tuple(name for name in done.stdout.split("\0") if name)

    async def read(self, names: tuple[str, ...]) -> dict[str, str]:
        """The text of each `blob` or `commit:path`; what is not there, or is no text, is left out."""
        askable = [name for name in dict.fromkeys(names) if "\n" not in name]
        if not askable:
            return {}
        found = await asyncio.to_thread(self.git.batch, askable, _LARGEST_TEXT)
        texts: dict[str, str] = {}
        for name, content in found.items():
            if b"\0" not in content:
                try:
                    texts[name] = content.decode("utf-8")
                except UnicodeDecodeError:
                    continue
        return texts

    async def branch_of(self, name: str) -> str:
        """The name of a local branch, or an empty string."""
        done = await self.git.run("show-ref", "--verify", "--quiet", f"refs/heads/{name}", allow=(0, 1, 128))
        return name if done.returncode == 0 else ""


async def known_commit(history: GitHistory, name: str) -> str:
    """The commit of a name that must be one. A branch comes first: a tag of the same name does not stand for it."""
    found = await history.commit_of(f"refs/heads/{name}") or await history.commit_of(name)
    if found is None:
        raise NotFoundError(f'"{name}" is no task, no branch and no commit', hint="genba task list   git branch --all")
    return found


def _rows(output: str) -> list[tuple[str, str, str, str, str]]:
    """Mark, commit, tree, parents and subject of each commit. No text of a commit can pose as another one."""
    fields = output.split("\0")
    return list(zip(fields[::5], fields[1::5], fields[2::5], fields[3::5], fields[4::5], strict=False))


def _repeats(own: str, parents: str, trees: dict[str, str]) -> bool:
    """Whether a commit has the tree of one of its parents: it changes nothing, or only joins two lines."""
    return any(trees.get(parent) == own for parent in parents.split())


def _changes(output: str) -> list[FileChange]:
    """The lines of `diff-tree --raw -z`: a header and a path for each file."""
    fields = output.split("\0")
    found = []
    for header, path in zip(fields[::2], fields[1::2], strict=False):
        words = header.lstrip(":").split(" ")
        if len(words) != 5:  # noqa: PLR2004  (two modes, two blobs, a status)
            raise GitError(f"git told a change that cannot be read: {header[:80]}")
        old_mode, new_mode, old_blob, new_blob, status = words
        change = FileChange(
            status=status[0], path=path, old_mode=old_mode, new_mode=new_mode, old_blob=old_blob, new_blob=new_blob
        )
        found.append(change)
    return found
