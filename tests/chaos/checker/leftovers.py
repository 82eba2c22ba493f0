"""What a fleet must not leave behind: processes, locks, working trees, branches, refs, files, rows, connections."""

import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.chaos.checker.findings import Finding, Law
from tests.chaos.checker.repository import Repository
from tests.chaos.checker.rows import Board

_BRANCH = re.compile(r"refs/heads/genba/(\d+)-.*")
_KEPT = ("refs/genba/rescue/", "refs/genba/landed/")
"""Refs that are there to stay."""
_HALF_DONE = (
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_LOG",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
)
_TEMPORARY = re.compile(
    r"genba/landing\.json|genba/(index|registering)-.*|genba/(checkouts|trash)/.+|genba/.*\.new|genba/goals/\..*|genba/secrets/.+"
    r"|genba/runs/[^/]+/workflow\.\d+|genba/runs/.*/(request\.\d+|credential(\.\d+)?)"
    r"|genba/private/[^/]+/(fresh-|old-).*|info/exclude\.\d+"
)
_SHARED = ("genba-ports-", f"genba-{os.getuid()}")
"""Folders that all projects of a user have in common."""
_UNFINISHED = ("PENDING", "ENQUEUED", "DELAYED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")
_OPEN_ENTRIES = ("queued", "merging", "stuck")
_LOCK = re.compile(r"genba/locks/.+|genba/runs/.*/lock")
_PAUSE = 0.02


def nothing_left(board: Board, repository: Repository, home: Path, patience: float) -> Iterator[Finding]:
    waits = {number for number, row in board.tasks.items() if row["status"] == "blocked"}
    found = [
        *_in_rows(board, waits),
        *_in_refs(repository, board, waits),
        *_in_trees(repository, waits),
        *_in_files(repository, home),
        *_in_checkout(repository),
        *_patiently(lambda: [*_processes(repository.root, home), *_held(repository, board)], patience),
    ]
    if board.on_server:
        found += _patiently(board.left_on_server, patience)
    yield from (Finding(Law.NOTHING_LEFT, what) for what in found)


def _patiently(look: Callable[[], list[str]], patience: float) -> list[str]:
    deadline = time.monotonic() + patience
    while (left := look()) and time.monotonic() < deadline:
        time.sleep(_PAUSE)
    return left


def _in_rows(board: Board, waits: set[int]) -> Iterator[str]:
    for row in board.of("sessions"):
        number = board.numbers.get(row["task_id"], 0)
        if row["status"] == "running" or (row["status"] == "waiting" and number not in waits):
            yield f"the session {row['run']} of #{number} is {row['status']}"
    for row in board.of("merge_entries"):
        if row["status"] in _OPEN_ENTRIES:
            yield f"#{board.numbers.get(row['task_id'])} is {row['status']} in the merge queue"
    for row in board.of("agent_connections"):
        if row["status"] == "active" and (
            row["spawned"] or row["run"]
        ):  # an external agent may sit there with nothing to do
            yield f"the connection {row['id']} of {row['run']} is taken"
    ended = {row["run"] for row in board.of("sessions") if row["status"] == "ended"}
    for row in board.of("credentials"):
        if row["run"] in ended and row["used_at"] is None and row["revoked_at"] is None:
            yield f"the credential {row['id']} of {row['run']} is still good"
    yield from (f"the executor {row['id']} is live" for row in board.of("executors") if row["status"] == "live")
    yield from (f"#{number} is held" for number, row in board.tasks.items() if row["held"])
    yield from (f"the project is {switch}" for switch in ("paused", "stopping") if board.project.get(switch))
    yield from (
        f"the workflow {row['workflow_uuid']} is {row['status']}"
        for row in board.workflows
        if row["status"] in _UNFINISHED
    )


def _in_refs(repository: Repository, board: Board, waits: set[int]) -> Iterator[str]:
    runs = {row["run"] for row in board.of("sessions") if board.numbers.get(row["task_id"]) in waits}
    for ref in repository.refs:
        branch = _BRANCH.fullmatch(ref)
        of_a_waiting_one = int(branch[1]) in waits if branch else ref.rpartition("/")[2] in runs
        if ref != repository.target and not ref.startswith(_KEPT) and not of_a_waiting_one:
            yield f"the ref {ref}"


def _in_trees(repository: Repository, waits: set[int]) -> Iterator[str]:
    known = set()
    for entry in _inside(repository.folder / "worktrees"):
        head = (entry / "HEAD").read_text("utf-8", "replace").strip() if (entry / "HEAD").is_file() else ""
        branch = _BRANCH.fullmatch(head.removeprefix("ref: "))
        message = (entry / "gitdir").read_text("utf-8", "replace").strip() if (entry / "gitdir").is_file() else ""
        tree = Path(message).parent
        known.add(tree.name)
        if branch is None or int(branch[1]) not in waits:
            yield f"the working tree {entry.name} at {head or 'nothing'}"
        elif not tree.is_dir():
            yield f"git knows the working tree {tree}, which is not there"
    own = repository.folder / "genba"
    for place in (*_inside(repository.root / ".worktrees"), *_inside(own / "private")):
        if place.name not in known:
            yield f"the folder {place}, which belongs to no working tree"
    for record in _inside(own / "trees"):
        branch = _BRANCH.fullmatch(f"refs/heads/{record.stem.replace('%2F', '/')}")
        if branch is None or int(branch[1]) not in waits:
            yield f"the record of a working tree, {record.name}"


def _in_files(repository: Repository, home: Path) -> Iterator[str]:
    for path in _HALF_DONE:
        if (repository.folder / path).exists():
            yield f"git is in the middle of something: {path}"
    for path in repository.own_files():
        if path.endswith(".lock"):
            yield f"the lock {path}"
        elif _TEMPORARY.fullmatch(path):
            yield f"the temporary file {path}"
    own = repository.folder / "genba"
    for inner in (*_inside(own / "trash"), *_inside(own / "checkouts")):
        if inner.is_dir():
            yield f"the folder genba/{inner.parent.name}/{inner.name}"
    for left in _inside(home / "tmp"):
        if left.name.startswith("genba-") and not left.name.startswith(_SHARED):
            yield f"the temporary file {left}"
    for folder in _inside(home / "run"):
        yield from (f"the socket {left}" for left in _inside(folder) if left.is_socket())


def _inside(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _in_checkout(repository: Repository) -> Iterator[str]:
    """The user's own: on the target, and as it is there."""
    if repository.folder == repository.root:
        return
    head = (repository.folder / "HEAD").read_text("utf-8", "replace").strip()
    if head != f"ref: {repository.target}":
        yield f"the user's checkout is at {head}"
    done = repository.git("status", "--porcelain", "--untracked-files=all")
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        yield f"the user's checkout is not clean: {line}"


def _processes(root: Path, home: Path) -> Iterator[str]:
    marks = [re.compile(re.escape(str(path).encode()) + rb"(?![\w.-])") for path in {root, home}]
    mine = _line_of(os.getpid())
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in mine:
            continue
        try:
            words = (entry / "cmdline").read_bytes()
            result = words + b"\0" + (entry / "environ").read_bytes() + b"\0" + bytes((entry / "cwd").readlink())
        except OSError:
            continue
        if any(mark.search(result) for mark in marks):
            yield f"the process {entry.name}: {words.replace(bytes(1), b' ').decode('utf-8', 'replace').strip()}"


def _line_of(process: int) -> set[int]:
    """A process and all above it."""
    found: set[int] = set()
    while process > 0 and process not in found:
        found.add(process)
        try:
            process = int(Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            break
    return found


def _held(repository: Repository, board: Board) -> Iterator[str]:
    paths = [repository.folder / path for path in repository.own_files() if _LOCK.fullmatch(path)]
    if not board.on_server:
        paths += Path(board.database).parent.glob("*.lock")
    for path in paths:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            yield f"a lock on {path} is held"
        finally:
            os.close(handle)
