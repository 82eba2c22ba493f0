"""Doubles of what a verification looks at: a history in memory, checkouts that are names, results in a dictionary."""

from genba.domain.errors import NotFoundError
from genba.domain.goals.verification import BranchFacts, CommitFacts, FileChange, Kept
from genba.domain.sessions.evidence import CheckResult

_FILE = "100644"
_NOTHING = "000000"


class MemoryHistory:
    """Commits as dictionaries of texts. Each has one parent, or none."""

    def __init__(self) -> None:
        self.trees: dict[str, dict[str, str]] = {}
        self.parents: dict[str, str] = {}
        self.branches: dict[str, str] = {}

    def commit(self, name: str, files: dict[str, str], parent: str = "") -> str:
        """Write a commit down; it is known by its name."""
        self.trees[name] = dict(files)
        self.parents[name] = parent
        return name

    async def commit_of(self, name: str) -> str | None:
        found = self.branches.get(name, name)
        return found if found in self.trees else None

    async def fork_point(self, base: str, commit: str) -> str | None:
        line = self._line(base)
        return next((each for each in self._line(commit) if each in line), None)

    async def facts(self, base: str, commit: str) -> BranchFacts:
        known = self._line(base)
        own = [each for each in self._line(commit) if each not in known]
        touched = {path for each in own for path in self._changed(self.parents[each], each)}
        return BranchFacts(
            base=base,
            commit=commit,
            tree=self._tree(commit),
            commits=tuple(
                CommitFacts(sha=each, subject=each, empty=self.trees[each] == self.trees.get(self.parents[each], {}))
                for each in own
            ),
            changes=tuple(self._change(base, commit, path) for path in sorted(self._changed(base, commit))),
            touched=tuple(sorted(touched)),
        )

    async def files(self, commit: str) -> tuple[str, ...]:
        return tuple(sorted(self.trees[commit]))

    async def read(self, names: tuple[str, ...]) -> dict[str, str]:
        texts = {_blob(text): text for tree in self.trees.values() for text in tree.values()}
        for name in names:
            commit, colon, path = name.partition(":")
            if colon and path in self.trees.get(commit, {}):
                texts[name] = self.trees[commit][path]
        return {name: texts[name] for name in names if name in texts}

    def _line(self, commit: str) -> list[str]:
        line = []
        while commit:
            line.append(commit)
            commit = self.parents[commit]
        return line

    def _tree(self, commit: str) -> str:
        return "tree:" + repr(sorted(self.trees[commit].items()))

    def _changed(self, old: str, new: str) -> set[str]:
        before, after = self.trees.get(old, {}), self.trees[new]
        return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}

    def _change(self, base: str, commit: str, path: str) -> FileChange:
        before, after = self.trees[base].get(path), self.trees[commit].get(path)
        status = "A" if before is None else ("D" if after is None else "M")
        return FileChange(
            status=status,
            path=path,
            old_mode=_NOTHING if before is None else _FILE,
            new_mode=_NOTHING if after is None else _FILE,
            old_blob=_blob(before),
            new_blob=_blob(after),
        )


class MemoryCheckouts:
    """Folders that are only names; it knows which are open."""

    def __init__(self) -> None:
        self.opened: list[tuple[str, tuple[tuple[str, str], ...]]] = []
        self.open_now: set[str] = set()

    async def open(self, commit: str, over: tuple[tuple[str, str], ...] = (), sandboxed: bool = True) -> str:  # noqa: ARG002
        folder = f"/checkouts/{len(self.opened)}-{commit}"
        self.opened.append((commit, over))
        self.open_now.add(folder)
        return folder

    async def renew(self, folder: str, setup: bool = False, kept: Kept | None = None) -> None:  # noqa: ARG002
        assert folder in self.open_now, f"{folder} is not open"

    async def changed(self, folder: str) -> tuple[str, ...]:
        assert folder in self.open_now, f"{folder} is not open"
        return ()

    async def keep(self, folder: str) -> None:
        assert folder in self.open_now, f"{folder} is not open"

    async def close(self, folder: str) -> None:
        self.open_now.discard(folder)


class MemoryResults:
    def __init__(self) -> None:
        self.kept: dict[str, CheckResult] = {}
        self.logs: dict[str, str] = {}

    def find(self, key: str) -> CheckResult | None:
        return self.kept.get(key)

    def keep(self, key: str, result: CheckResult, reusable: bool) -> str:
        name = key[:12] if reusable else f"{key[:12]}-{len(self.logs):06x}"
        self.logs[name] = result.output
        if reusable:
            self.kept[key] = result
        return name

    def log(self, name: str) -> str:
        if name not in self.logs:
            raise NotFoundError(f'there is no log "{name}" of a goal')
        return self.logs[name]


def _blob(text: str | None) -> str:
    return "0" * 40 if text is None else f"blob:{text}"
