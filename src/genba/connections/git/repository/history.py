"""What git shows of commits and files, without a checkout."""

import asyncio

from genba.connections.git.repository.commands import Git
from genba.connections.git.repository.loose_objects import read_blob
from genba.connections.git.repository.object_cache import Listing
from genba.connections.git.scanning.commit_range import (
    Row,
    asked,
    changes_between,
    changes_over,
    commits_over,
    parse_changes,
    parse_rows,
)
from genba.domain.goals.verification import BranchFacts, CommitFacts, FileChange
from genba.domain.hashes import is_hash

_LARGEST_TEXT = 4 * 1024 * 1024
_SUBMODULE = "160000"
_FEW = 10
"""So many commits are compared without asking git."""
_TOUCHED = ("log", "-z", "--diff-merges=separate", "--root", "--name-only", "--no-renames", "--format=")


class GitHistory:
    """Reads objects. Nothing here depends on a working tree, so nothing that lies in one can mislead it."""

    def __init__(self, git: Git) -> None:
        self.git = git

    async def commit_of(self, name: str) -> str | None:
        return None if name.startswith("-") else await self.git.commit_of(name)

    async def fork_point(self, base: str, commit: str) -> str | None:
        if is_hash(base) and is_hash(commit) and self.git.memory.is_known_ancestor(base, commit):
            return base
        done = await self.git.run("merge-base", base, commit, allow=(0, 1, 128))
        return done.stdout.strip() or None

    async def facts(self, base: str, commit: str) -> BranchFacts:
        log, raw = await asyncio.gather(commits_over(self.git, base, commit), changes_over(self.git, base, commit))
        changes, rows = _changes(raw), parse_rows(log)
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
        if (read := _touched_by(self.git, own)) is not None:
            return tuple(sorted(read))
        touched = await asked(self.git, (base, commit), *_TOUCHED, f"{base}..{commit}")
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
        """What a name stands for, by its hash where that needs no process; empty where there is no file."""
        commit, colon, path = name.partition(":")
        if not colon or not is_hash(commit) or _is_odd(path):
            return name
        found = (await self._listing(commit)).get(path)
        return found[1] if found is not None and found[0] != _SUBMODULE else ""

    async def _contents(self, names: list[str]) -> dict[str, bytes]:
        memory = self.git.memory.blobs
        found = {name: content for name in names if (content := memory.get(name)) is not None}
        for name in names:
            if name not in found and is_hash(name) and (content := read_blob(self.git.git_dir, name)) is not None:
                memory.put(name, content)
                found[name] = content
        missing = [name for name in names if name not in found]
        if missing:
            result = await asyncio.to_thread(self.git.batch, missing, _LARGEST_TEXT)
            for name, content in result.items():
                if is_hash(name):
                    memory.put(name, content)
            found |= result
        return found

    async def branch_of(self, name: str) -> str:
        """The name of a local branch, or an empty string."""
        done = await self.git.run("show-ref", "--verify", "--quiet", f"refs/heads/{name}", allow=(0, 1, 128))
        return name if done.returncode == 0 else ""


def _touched_by(git: Git, own: list[Row]) -> set[str] | None:
    """What a few commits changed, each beside each of its parents; None where git must be asked."""
    found: set[str] = set()
    if len(own) > _FEW or not all(row.parents for row in own):
        return None
    for row in own:
        for parent in row.parents.split():
            changes = changes_between(git, parent, row.sha)
            if changes is None:
                return None
            found |= {change.path for change in changes}
    return found


def _is_odd(path: str) -> bool:
    """Whether git would read a path otherwise than it is listed."""
    return not path or path.startswith(("./", "../", "/")) or "\\" in path or not path.isascii()


def _repeats(own: str, parents: str, trees: dict[str, str]) -> bool:
    """Whether a commit has the tree of one of its parents: it changes nothing, or only joins two lines."""
    return any(trees.get(parent) == own for parent in parents.split())


def _changes(output: str) -> list[FileChange]:
    return [
        FileChange(
            status=change.status,
            path=change.path,
            old_mode=change.old_mode,
            new_mode=change.new_mode,
            old_blob=change.old_blob,
            new_blob=change.new_blob,
        )
        for change in parse_changes(output)
    ]
