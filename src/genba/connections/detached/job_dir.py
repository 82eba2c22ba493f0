"""The folder of one question: its request, who holds it, who watches, the output, and the result.

It lies in the folder of the run, where no instance can see it: what is read here was written by Genba.

    request.json   the request to the supervisor
    lock           held by the supervisor for all of its life; says who that is
    watch          held by the watching worker; without one for too long, the supervisor suspends the agent
    starts         one line for each supervisor that was started: its number and the time
    credential     a secret for the next supervisor alone, which takes it away before its agent starts
    1/, 2/, …      one folder for each start: output.jsonl, offset, result.json, log
"""

import os
import time
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import msgspec

from genba.connections.atomic_write import put
from genba.connections.detached.process_lock import Holder, is_held, is_shared, sharing, take, telling_of_full_disks
from genba.connections.detached.results import Result, whole_text
from genba.connections.private_folders import make_private_folder
from genba.domain.decoding import reader
from genba.domain.sessions.replies import Ask
from genba.domain.sessions.sandbox import SandboxKind
from genba.domain.sessions.workspaces import Workspace

QUESTIONS = "supervised"
_RESERVE = b" " * 8192


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The request to a supervisor. What is to run is in the memory of the run, and secrets are in its environment."""

    run: str
    top: str
    git_dir: str
    common: str
    """The repository: its checkout, the folder of git's own for it, and the one that all checkouts share."""
    kind: SandboxKind
    workspace: Workspace
    ask: Ask
    grace_seconds: float
    """How long the agent goes on without a worker that watches."""
    workflow: str = ""
    """The file that says where an agent is answered that asks what is next; empty for all others."""


class Attempt:
    """One start of a supervisor for a question."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = int(path.name)
        self.output = path / "output.jsonl"
        self.offset = path / "offset"
        self.log = path / "log"
        self._result = path / "result.json"
        self._reserve = path / "reserve"

    def result(self) -> Result | None:
        """What it came to; None as long as it has come to nothing, or to what a fallen machine left unreadable."""
        try:
            return reader(Result).decode(self._result.read_bytes())
        except (FileNotFoundError, ValueError, RecursionError):
            return None

    def has_result(self) -> bool:
        return self._result.exists()

    def reserve(self) -> None:
        """Room for a short result, however full the disk gets."""
        with telling_of_full_disks(self._reserve):
            self._reserve.touch(mode=0o600)
            self._reserve.write_bytes(_RESERVE)

    def write(self, result: Result) -> None:
        """All of it or nothing."""
        content = result.encoded()
        with telling_of_full_disks(self._result):
            if len(content) > len(_RESERVE):
                put(self._result, content, mode=0o600)
                self._reserve.unlink(missing_ok=True)
                return
            descriptor = os.open(self._reserve, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                _write_all(descriptor, content.ljust(len(_RESERVE)))
                os.ftruncate(descriptor, len(content))
            finally:
                os.close(descriptor)
            self._reserve.replace(self._result)


class Question:
    """The folder of one question."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = path / "lock"
        self._watch = path / "watch"
        self._starts = path / "starts"
        self._request = path / "request.json"
        self._credential = path / "credential"

    @classmethod
    def of(cls, run_folder: Path, part: int, number: int) -> "Question":
        """The same question of the same part of a run has the same folder, however often it is put."""
        return cls(run_folder / QUESTIONS / f"{part}-{number}")

    @property
    def run_folder(self) -> Path:
        return self.path.parent.parent

    def make(self) -> None:
        with telling_of_full_disks(self.path):
            make_private_folder(self.path)
            for file in (self.lock, self._watch, self._starts):
                file.touch(mode=0o600)

    def ask(self, request: Request) -> None:
        """Write the request, before a supervisor is started for it."""
        try:
            content = msgspec.json.encode(request)
        except UnicodeEncodeError:
            content = msgspec.json.encode(whole_text(msgspec.to_builtins(request)))
        with telling_of_full_disks(self._request):
            put(self._request, content, mode=0o600)

    def request(self) -> Request:
        return reader(Request).decode(self._request.read_bytes())

    def hand(self, secret: str) -> None:
        """Leave a secret for the next supervisor. One that was not taken is replaced."""
        with telling_of_full_disks(self._credential):
            put(self._credential, secret.encode(), mode=0o600)

    def take_secret(self, only: str | None = None) -> str:
        """The secret that was left, which is gone from here with that; empty where there is none, or another one."""
        try:
            secret = self._credential.read_text("utf-8")
        except FileNotFoundError:
            return ""
        if only is not None and secret != only:
            return ""
        self._credential.unlink(missing_ok=True)
        return secret

    def newest(self) -> Attempt | None:
        with suppress(FileNotFoundError):
            numbers = [int(name) for name in os.listdir(self.path) if name.isdigit()]  # noqa: PTH208  (often)
            if numbers:
                return Attempt(self.path / str(max(numbers)))
        return None

    def result(self) -> Result | None:
        """What the question came to: a suspended agent has not answered, and is asked again."""
        newest = self.newest()
        result = newest.result() if newest is not None else None
        return None if result is None or result.suspended else result

    def begin(self) -> Attempt:
        """A new start. Only who holds the lock may do this."""
        newest = self.newest()
        number = newest.number + 1 if newest is not None else 1
        with telling_of_full_disks(self.path):
            path = self.path / str(number)
            path.mkdir(mode=0o700)
        return Attempt(path)

    def take_lock(self) -> int | None:
        return take(self.lock)

    def claim(self, descriptor: int) -> None:
        """Say who holds the lock, and count the start."""
        mine = Holder.of(os.getpid())
        with telling_of_full_disks(self.path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, msgspec.json.encode(mine), 0)
            with self._starts.open("ab") as file:
                file.write(f"{mine.process} {time.time():.3f}\n".encode())

    def is_held(self) -> bool:
        return is_held(self.lock)

    def holder(self) -> Holder | None:
        """The holder of the lock; None when there is none, or it has not written its process id yet."""
        try:
            found = reader(Holder).decode(self.lock.read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        return found if found.is_alive() else None

    def watching(self) -> AbstractContextManager[None]:
        return sharing(self._watch)

    def is_watched(self) -> bool:
        return is_shared(self._watch)

    def starts(self) -> int:
        """How often a supervisor was started for it."""
        try:
            return len(self._starts.read_bytes().splitlines())
        except FileNotFoundError:
            return 0


def questions(run_folder: Path) -> list[Question]:
    """Every question of a run."""
    try:
        return [Question(path) for path in (run_folder / QUESTIONS).iterdir() if path.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
