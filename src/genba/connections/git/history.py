"""What git shows of commits and files, without a checkout."""

import asyncio
from typing import NamedTuple

from genba.connections.git.commands import Git
from genba.connections.git.remembering import Listing, is_hash
from genba.domain.errors import GitError, NotFoundError
from genba.domain.verification import BranchFacts, CommitFacts, FileChange

_LARGEST_TEXT = 4 * 1024 * 1024
_COMMITS = ("log", "-z", "--boundary", "--format=%m%x00%H%x00%T%x00%P%x00%s")
"""The commits of a span, and behind a `-` those that it begins at: their trees tell which commits change nothing."""
_BOUNDARY = "-"
_CHANGES = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--abbrev=64")
_SUBMODULE = "160000"
_TOUCHED = ("log", "-z", "--diff-merges=separate", "--root", "--name-only", "--no-renames", "--format=")


class Row(NamedTuple):
    """A commit of a span."""

    mark: str
    sha: str
    tree: str
    parents: str
    subject: str

    @property
    def is_own(self) -> bool:
        """Whether it belongs to the span; otherwise the span begins at it."""
        return self.mark != _BOUNDARY


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
        log, raw = await asyncio.gather(commits_over(self.git, base, commit), changes_over(self.git, base, commit))
        changes, rows = parse_changes(raw), parse_rows(log)
        trees = {row.sha: row.tree for row in rows}
        own = [row for row in rows if row.is_own]
        self._derive(base, commit, changes)
        return BranchFacts(
            base=base,
            commit=commit,
            tree=trees.get(commit) or await self.git.text("rev-parse", "--verify", f"{commit}^{{tree}}"),
            commits=tuple(
                CommitFacts(sha=row.sha, subject=row.subject, empty=_repeats(row.tree, row.parents, trees))
                for row in own
            ),
            changes=tuple(changes),
            touched=await self._touched(base, commit, own, changes),
        )

    async def _touched(self, base: str, commit: str, own: list[Row], changes: list[FileChange]) -> tuple[str, ...]:
        """Every path that one of the commits touched. A single commit on the base touched what changed."""
        if [row.parents for row in own] == [base]:
            return tuple(sorted(change.path for change in changes))
        touched = await _asked(self.git, (base, commit), *_TOUCHED, f"{base}..{commit}")
        return tuple(sorted({name for name in touched.split("\0") if name.strip("\n")}))

    def _derive(self, base: str, commit: str, changes: list[FileChange]) -> None:
        """The files of a commit are those of its base and what changed: they need not be listed again."""
        memory = self.git.memory
        known = memory.listings.get(base)
        if known is None or not is_hash(commit) or memory.listings.get(commit) is not None:
            return
        now = dict(known)
        for change in changes:
            if change.status == "D":
                now.pop(change.path, None)
            else:
                now[change.path] = (change.new_mode, change.new_blob)
        memory.listings.put(commit, now)

    async def files(self, commit: str) -> tuple[str, ...]:
        return tuple(await self._listing(commit))

    async def _listing(self, commit: str) -> Listing:
        if (known := self.git.memory.listings.get(commit)) is not None:
            return known
        listing = {}
        for entry in (await self.git.run("ls-tree", "-r", "-z", "--full-tree", commit)).stdout.split("\0"):
            about, _, path = entry.partition("\t")
            if path:
                mode, _, blob = about.split(" ")
                listing[path] = (mode, blob)
        if is_hash(commit):
            self.git.memory.listings.put(commit, listing)
        return listing

    async def read(self, names: tuple[str, ...]) -> dict[str, str]:
        """The text of each `blob` or `commit:path`; what is not there, or is no text, is left out."""
        askable = [name for name in dict.fromkeys(names) if "\n" not in name]
        if not askable:
            return {}
        blobs = {name: await self._blob(name) for name in askable}
        found = await self._contents([blob for blob in dict.fromkeys(blobs.values()) if blob])
        texts: dict[str, str] = {}
        for name, blob in blobs.items():
            content = found.get(blob)
            if content is not None and b"\0" not in content:
                try:
                    texts[name] = content.decode("utf-8")
                except UnicodeDecodeError:
                    continue
        return texts

    async def _blob(self, name: str) -> str:
        """What a name stands for, by its hash where that can be told without asking; empty where there is no file."""
        commit, colon, path = name.partition(":")
        if not colon or not is_hash(commit) or _is_odd(path):
            return name
        found = (await self._listing(commit)).get(path)
        return found[1] if found is not None and found[0] != _SUBMODULE else ""

    async def _contents(self, names: list[str]) -> dict[str, bytes]:
        memory = self.git.memory.blobs
        found = {name: content for name in names if (content := memory.get(name)) is not None}
        missing = [name for name in names if name not in found]
        if missing:
            told = await asyncio.to_thread(self.git.batch, missing, _LARGEST_TEXT)
            for name, content in told.items():
                if is_hash(name):
                    memory.put(name, content)
            found |= told
        return found

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


async def commits_over(git: Git, base: str, commit: str) -> str:
    """The commits from a base to a commit, as `parse_rows` reads them."""
    told = await _asked(git, (base, commit), *_COMMITS, f"{base}..{commit}")
    for row in parse_rows(told):
        git.memory.know(row.sha, row.tree, tuple(row.parents.split()))
    return told


async def changes_over(git: Git, base: str, commit: str) -> str:
    """What differs between two commits, as `diff-tree --raw -z` tells it."""
    return await _asked(git, (base, commit), *_CHANGES, base, commit)


async def _asked(git: Git, about: tuple[str, ...], *words: str) -> str:
    return await git.fixed(*words) if all(map(is_hash, about)) else (await git.run(*words)).stdout


def _is_odd(path: str) -> bool:
    """Whether git would read a path otherwise than it is listed."""
    return not path or path.startswith(("./", "../", "/")) or "\\" in path or not path.isascii()


def parse_rows(output: str) -> list[Row]:
    """The commits of a span, newest first. No text of a commit can pose as another one."""
    fields = output.split("\0")
    return [Row(*row) for row in zip(fields[::5], fields[1::5], fields[2::5], fields[3::5], fields[4::5], strict=False)]


def _repeats(own: str, parents: str, trees: dict[str, str]) -> bool:
    """Whether a commit has the tree of one of its parents: it changes nothing, or only joins two lines."""
    return any(trees.get(parent) == own for parent in parents.split())


def parse_changes(output: str) -> list[FileChange]:
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
