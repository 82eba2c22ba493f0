"""What the use cases need of the outside, besides the ports of the domain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING, Protocol

from genba.domain.ports import Channel, Clock, History, RemoteChanges, RemoteIssues, ResultStore, WorkingTrees

if TYPE_CHECKING:
    from genba.domain.events import Event
    from genba.domain.facilitation import Scanned, ScanPosition, SeenCommit
    from genba.domain.goals.detection import Detected
    from genba.domain.tasks.housekeeping import Candidate, SessionLeftovers
    from genba.domain.tracker.remote import TrackerAccess
    from genba.domain.views.session import JournalLines, SessionFacts
    from genba.domain.views.task import CommitLine, FileDiff, FileLine


class GitCommands(Protocol):
    """Git on the repository of the project."""

    async def run(
        self,
        *arguments: str,
        git_dir: Path | None = None,
        stdin: str | None = None,
        allow: tuple[int, ...] = (0,),
    ) -> CompletedProcess[str]:
        """Run git. Raises GitError for an exit code that is not allowed."""
        ...

    async def text(self, *arguments: str) -> str: ...

    async def commit_of(self, ref: str) -> str | None: ...

    async def is_ancestor(self, commit: str, of: str) -> bool: ...


class Layout(Protocol):
    """The folders of one repository, and those of Genba in it."""

    @property
    def top(self) -> Path: ...

    @property
    def main(self) -> Path: ...

    @property
    def git_dir(self) -> Path: ...

    @property
    def common(self) -> Path: ...

    @property
    def own(self) -> Path: ...

    @property
    def folders(self) -> tuple[Path, ...]: ...

    @property
    def git(self) -> GitCommands: ...

    def run_folder(self, run: str) -> Path: ...

    def branch_lock(self, branch: str) -> Path: ...

    def exclude(self, *patterns: str) -> None:
        """Keep paths out of `git status` without changing a file of the user."""
        ...

    async def checkouts(self) -> dict[str, Path]:
        """Every branch that is checked out, with its folder."""
        ...


class CommitHistory(History, Protocol):
    async def branch_of(self, name: str) -> str:
        """The name of a local branch, or an empty string."""
        ...


class IssueScan(Protocol):
    """The commits that name issues."""

    async def scan(self, base: str, position: ScanPosition | None = None) -> Scanned: ...

    async def again(self, commits: Iterable[str]) -> Scanned: ...

    async def naming(self, base: str, number: int) -> list[SeenCommit]: ...

    async def is_reverted(self, commit: str, base: str) -> bool: ...

    async def remotes(self) -> tuple[str, ...]: ...


class Worktrees(WorkingTrees, Protocol):
    def let_go(self, branch: str) -> None:
        """Release the lock of a branch; its worktree stays."""
        ...

    async def uncommitted(self, tree: Path) -> tuple[str, ...]: ...


class FilesChanged(Protocol):
    @property
    def files(self) -> Sequence[FileLine]: ...

    @property
    def total(self) -> int: ...

    @property
    def added(self) -> int: ...

    @property
    def removed(self) -> int: ...


class Diff(Protocol):
    """Compares two commits that are named by their whole hashes."""

    def commits(self, base: str, commit: str) -> tuple[CommitLine, ...]: ...

    def files(self, base: str, commit: str) -> FilesChanged: ...

    def file(self, base: str, commit: str, path: str, before: str = "") -> FileDiff: ...


class Following(Protocol):
    async def follow(self, target: str) -> str:
        """Fast-forward a branch to its remote; returns why it stays behind, or an empty string."""
        ...


class RepositoryAccess(Protocol):
    """Readers of the repository of the project."""

    def history(self) -> CommitHistory: ...

    def scan(self) -> IssueScan: ...

    def worktrees(self) -> Worktrees: ...

    def diff(self) -> Diff: ...

    def target(self, remote: str) -> Following: ...

    async def drop_branch(self, branch: str, run: str, began: str) -> str:
        """Delete the branch of a session that delivers no commit; returns the ref that keeps its commits, if any."""
        ...


class Locations(Protocol):
    """What must hold of a place before Genba writes there."""

    def refuse_links(self, *places: str | Path) -> None:
        """Raises StateConflictError where a path leads through a link that the repository commits."""
        ...

    def is_locked(self, path: Path) -> bool: ...

    def identity(self) -> tuple[str, bool]:
        """The id of the repository, and whether it was made by this call."""
        ...

    def identity_at(self, common: Path) -> str:
        """The id of the repository with this git folder; empty where there is none."""
        ...


class Files(Protocol):
    """Files that no other user may read, written whole or not at all."""

    def make_private_folder(self, path: str | Path) -> None: ...

    def put(self, path: Path, content: bytes, *, mode: int = 0o666) -> None: ...

    def size(self, path: Path) -> int:
        """The bytes of a file or a folder; links are not followed."""
        ...


class Journals(Protocol):
    """The journals of sessions."""

    def in_folders(self, folders: Iterable[Path]) -> list[Path]:
        """Every journal in these folders, newest first."""
        ...

    def read(self, path: Path, output: bool = True) -> Iterator[Event]: ...

    def follow(self, path: Path) -> Iterator[list[Event]]:
        """What is there, then at each step what was written since; never ends."""
        ...

    def name(self, run: str) -> str:
        """The file name of the journal of a session."""
        ...


class JournalPages(Protocol):
    """Bounded candidates of a journal, and its summary."""

    def last_lines(self, path: Path, before: int | None = None, lines: int = ...) -> JournalLines: ...

    def lines_after(self, path: Path, after: int) -> JournalLines: ...

    def line_at(self, path: Path, offset: int) -> bytes: ...

    def overview(self, path: Path) -> SessionFacts: ...


class GoalResults(ResultStore, Protocol):
    def end_of_log(self, name: str, most: int) -> tuple[str, bool]:
        """The last bytes of a log, and whether more stands before them."""
        ...


class Environments(Protocol):
    """What started programs may see of an environment."""

    def passed_on(self, environment: Mapping[str, str], *project: Path) -> dict[str, str]: ...

    def without_own_tools(self, environment: Mapping[str, str], *project: Path) -> dict[str, str]: ...


class Detection(Protocol):
    """What the files of a project and the programs of this machine say of its commands."""

    def detect_in(self, folder: Path) -> Detected: ...

    def look_in(self, folder: Path, more: tuple[str, ...]) -> tuple[dict[str, str], list[str]]:
        """The texts of known files, and the names of all files at the top."""
        ...

    def python_tests(self, folder: Path) -> dict[str, str]: ...

    def command_problem(self, command: str, folder: Path, environment_path: str | None) -> str:
        """Why a command could not be run here; empty where it could."""
        ...


class NotificationChannels(Protocol):
    """The channels by which this process can notify a person."""

    def desktop_problem(self, environment: Mapping[str, str]) -> str:
        """Why there is no desktop to show a notification; empty where there is one."""
        ...

    def webhook_problem(self, url: str, plain_http: bool) -> str:
        """Why an address cannot be used; empty where it can."""
        ...

    def host_of(self, url: str) -> str: ...

    def desktop(self) -> Channel: ...

    def webhook(self, url: str, secret: str, timeout_seconds: float) -> Channel: ...


class SharedSessions(Protocol):
    """What a remote has of the sessions of this repository."""

    async def listed(self, *refs: str) -> dict[str, str]: ...

    async def forget(self, run: str, branch: str) -> bool:
        """Delete what the remote has of a session, if other refs there have all of its commits."""
        ...


class Housekeeping(Protocol):
    """Finds and clears away what ended work left in the repository."""

    def alone(self) -> AbstractAsyncContextManager[None]:
        """No other process clears away meanwhile; in the end what was discarded before is deleted."""
        ...

    async def find(self, runs: Mapping[str, SessionLeftovers], before: float, rescued: bool) -> Sequence[Candidate]: ...

    async def discard(self, name: str, *paths: Path) -> str:
        """Move paths out of the way, in this order, and have them deleted in the background."""
        ...

    def has_agent(self, folder: Path) -> bool:
        """True while an agent of the session with this folder runs."""
        ...

    def shared(self, remote: str) -> SharedSessions: ...


class GitHubAccess(Protocol):
    """The connection of a project to GitHub. Nothing is sent before it is needed."""

    @property
    def issues(self) -> RemoteIssues: ...

    @property
    def changes(self) -> RemoteChanges: ...

    @property
    def clock(self) -> Clock: ...

    async def token(self, origin: str) -> str:
        """The token for git at an origin. Raises AccessRefusedError where that may get none."""
        ...

    async def check(self) -> TrackerAccess: ...

    async def close(self) -> None: ...
