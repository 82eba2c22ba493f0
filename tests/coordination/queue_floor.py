"""A repository with branches that want to land, a queue for them, and a judge that looks at what would land."""

import subprocess
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from genba.connections.git.merging.merge_target import GitTarget
from genba.connections.git.repository.layout import RepositoryLayout
from genba.coordination.merge_queue.queue import MergeQueue
from genba.domain.fleet.merge_queue import EntryEnd, MergeHistory, QueueEvent, QueuePassOrder, QueuePassReport
from genba.domain.fleet.records import EntryStatus, MergeEntry
from genba.domain.goals.verification import Subject
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from tests.project import Project

T = TypeVar("T")
Verdict = CheckResult | None


class MemoryQueue:
    """The verbs of the blackboard that a turn uses, over a list."""

    def __init__(self) -> None:
        self.rows: dict[int, MergeEntry] = {}
        self.merges: list[int] = []
        """Each time that an entry went from another status to merged."""

    def add(self, entry: MergeEntry) -> MergeEntry:
        made = msgspec.structs.replace(entry, id=len(self.rows) + 1)
        self.rows[made.id] = made
        return made

    def entries(self, target: str | None = None, open_only: bool = True) -> list[MergeEntry]:
        return [
            row
            for row in self.rows.values()
            if target in (None, row.target) and not (open_only and row.status.ended)
        ]  # fmt: skip

    def take(self, ids: Sequence[int]) -> list[MergeEntry]:
        before = (EntryStatus.QUEUED, EntryStatus.STUCK)
        taken = [number for number in ids if self.rows[number].status in before]
        self._move(ids, before, EntryStatus.MERGING)
        return [self.rows[number] for number in taken]

    def release(self, ids: Sequence[int]) -> None:
        self._move(ids, (EntryStatus.MERGING,), EntryStatus.QUEUED)

    def _move(self, ids: Sequence[int], before: tuple[EntryStatus, ...], after: EntryStatus) -> None:
        for number in ids:
            if self.rows[number].status in before:
                self.rows[number] = msgspec.structs.replace(self.rows[number], status=after)

    def settle(
        self,
        id: int,  # noqa: A002
        status: EntryStatus,
        landed: str = "",
        paths: tuple[str, ...] = (),
        detail: str = "",
        over: str = "",
    ) -> None:
        row = self.rows[id]
        if row.status.ended:
            return
        if status is EntryStatus.MERGED:
            self.merges.append(row.task)
        self.rows[id] = msgspec.structs.replace(
            row, status=status, landed=landed, paths=paths, detail=detail, over=over
        )  # fmt: skip

    def settle_all(self, ends: Sequence[EntryEnd]) -> None:
        for end in ends:
            self.settle(end.entry.id, end.status, end.landed, end.paths, end.detail, end.over)

    def passed_by(self, ids: Sequence[int]) -> None:
        for number in ids:
            row = self.rows[number]
            self.rows[number] = msgspec.structs.replace(row, turns=row.turns + 1)

    def withdraw(self, task: int) -> None:
        for row in self.entries():
            if row.task == task:
                self.rows[row.id] = msgspec.structs.replace(row, status=EntryStatus.WITHDRAWN)


class Killed(BaseException):
    """The process dies here."""


class Remembered:
    """Steps as a durable engine has them: what a finished one came to outlives the process, as JSON.

    It can die at a boundary: with `2n` before the step of that number, with `2n + 1` after its work and before anybody
    has written down what it came to.
    """

    def __init__(self) -> None:
        self.results: dict[str, bytes] = {}
        self.names: list[str] = []
        self.done = 0
        self.dies_at: int | None = None

    async def run(self, name: str, work: Callable[[], Awaitable[T]], kind: type[T]) -> T:
        if name in self.results:
            return msgspec.json.decode(self.results[name], type=kind)
        self._boundary()
        made = await work()
        self._boundary()
        self.results[name] = msgspec.json.encode(made)
        self.names.append(name)
        return msgspec.json.decode(self.results[name], type=kind)

    def _boundary(self) -> None:
        self.done += 1
        if self.dies_at is not None and self.done > self.dies_at:
            self.dies_at = None
            raise Killed


class QueueFloor:
    """Everything that a turn needs. The judge wants the file `sum.txt`, where there is one, to be the sum of `n/*`."""

    def __init__(self, project: Project, target: GitTarget, board: MemoryQueue) -> None:
        self.project = project
        self.target = target
        self.board = board
        self.news: list[QueueEvent] = []
        self.verified: list[tuple[int, str]] = []
        self.meanwhile: list[Callable[[], object]] = []
        self.machinery_breaks: set[int] = set()
        self.turns = 0

    @classmethod
    async def make(cls, project: Project, remote: str = "", board: MemoryQueue | None = None) -> "QueueFloor":
        layout = await RepositoryLayout.find(project.root)
        return cls(project, GitTarget(layout, remote), board or MemoryQueue())

    def branch(self, task: int, files: dict[str, str], base: str = "main", subject: str = "") -> str:
        """A branch of Genba's with one commit; the checkout of the user is left where it was."""
        name, tree = f"genba/{task}-work", self.project.root.parent / f"tree-{task}"
        self.project.git("worktree", "add", "-q", "-b", name, str(tree), base)
        for path, text in files.items():
            file = tree / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        self.project.git("add", "-A", cwd=tree)
        author = f"Agent {task} <agent{task}@agents.invalid>"
        self.project.git("commit", "-qm", subject or f"Work on {task}", f"--author={author}", cwd=tree)
        commit = self.project.git("rev-parse", "HEAD", cwd=tree)
        self.project.git("worktree", "remove", "--force", str(tree))
        return commit

    def entry(self, task: int, files: dict[str, str], *, base: str = "main", **fields: object) -> MergeEntry:
        """A branch that is queued."""
        commit = self.branch(task, files, base)
        return self.queue(task, commit, **fields)

    def queue(self, task: int, commit: str, **fields: object) -> MergeEntry:
        entry = MergeEntry(
            task=task, run=f"worker-{task}", branch=f"genba/{task}-work", commit=commit, target="main",
            title=f"Task {task}", agent="worker",
        )  # fmt: skip
        return self.board.add(msgspec.structs.replace(entry, **fields))

    async def verify(self, entry: MergeEntry, subject: Subject) -> Verdict:
        self.verified.append((entry.task, subject.commit))
        if self.meanwhile:
            self.meanwhile.pop(0)()
        if entry.task in self.machinery_breaks:
            return CheckResult("verification", CheckStatus.ERROR, "the machine broke")
        return self.judge(subject.commit)

    def judge(self, commit: str) -> Verdict:
        names = self.project.git("ls-tree", "-r", "--name-only", commit).splitlines()
        if "sum.txt" not in names:
            return None
        numbers = [int(self.project.git("show", f"{commit}:{name}")) for name in names if name.startswith("n/")]
        output = int(self.project.git("show", f"{commit}:sum.txt"))
        if output == sum(numbers):
            return None
        return CheckResult(
            "goals_not_met", CheckStatus.FAILED, "1 goal failed", f"sum.txt says {output}, not {numbers}"
        )

    def turn(self, most_taken: int = 25) -> MergeQueue:
        return MergeQueue(self.board, self.target, self.verify, self.news.append, most_taken)

    async def run(
        self, *, history: MergeHistory = MergeHistory.MERGE, batch: int = 1, steps: Remembered | None = None,
        most_taken: int = 25, target: str = "main",
    ) -> QueuePassReport:  # fmt: skip
        """One turn, through JSON as the engine calls it."""
        self.turns += 1
        order = QueuePassOrder(target=target, turn=self.turns, history=history, batch=batch)
        payload = msgspec.json.encode(order).decode()
        output = await self.turn(most_taken).handle(payload, steps or Remembered())
        return msgspec.json.decode(output, type=QueuePassReport)

    def status(self, task: int) -> EntryStatus:
        return self.row(task).status

    def row(self, task: int) -> MergeEntry:
        return [row for row in self.board.rows.values() if row.task == task][-1]

    def log(self, *words: str, ref: str = "main") -> list[str]:
        return self.project.git("log", "--format=%s", *words, ref).splitlines()

    def all_green(self, ref: str = "main") -> bool:
        """Whether every commit that the target ever stood on is green."""
        commits = self.project.git("rev-list", "--first-parent", ref).splitlines()
        return all(self.judge(commit) is None for commit in commits)

    def told(self, kind: str) -> list[QueueEvent]:
        return [news for news in self.news if news.kind == kind]


def number(task: int, value: int = 1) -> dict[str, str]:
    """A file that goes into the sum without touching it."""
    return {f"n/{task}": f"{value}\n"}


def clone(project: Project, remote: Path, where: Path) -> Project:
    """Another host: a clone of the same remote."""
    subprocess.run(["git", "clone", "-q", str(remote), str(where)], check=True)
    made = Project(where, project.environment)
    made.git("config", "user.name", "Test User")
    made.git("config", "user.email", "user@localhost")
    return made
