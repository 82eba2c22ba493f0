"""Bringing work back from the sandbox: as a bundle that is made inside, and taken apart outside.

What the instance planted in its repository may run while the bundle is made: that is in the sandbox, where it can do
no more than before. Outside only bytes arrive; small work is read where it lies (`private_objects`). They are bounded
in size and time, every object is checked by git as strictly as it can (`git fetch` does not check what comes from a
bundle), all that they lead to must have come with them or have been given to the instance before, and none of it is
part of the user's repository until then. An instance that knows the name of another object cannot claim it.
"""

import asyncio
import contextlib
import os
import re
import stat
from pathlib import Path
from typing import IO

import msgspec

from genba.connections.git.private.packs import Packs
from genba.connections.git.private.private_objects import LooseWork, read_loose
from genba.connections.git.private.private_repositories import (
    borrowed_commit,
    borrowed_objects,
    make_writable,
    ordinary,
    read_plain,
)
from genba.connections.git.private.repository_state import read_state
from genba.connections.git.private.size_limits import weigh, weigh_little
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.removal import remove_tree
from genba.domain.errors import BoundaryViolationError, DiskFullError, GitError
from genba.domain.ports import Sandbox
from genba.domain.processes import Command, Ending, Exit
from genba.domain.sessions.sandbox import Bind, SandboxLimits, SandboxSpec
from genba.domain.sessions.workspaces import Workspace

_MAKE = """
ulimit -f "$1" || exit 3
git --git-dir "$2" for-each-ref --format='%(objectname) %(refname)' > refs || exit 3
shift
folder=$1
shift
exec git --git-dir "$folder" bundle create -q bundle --exclude='refs/remotes/*' --all --not "$@"
"""
_BLOCK = 512
_NOTHING_NEW = "empty bundle"
_LISTED = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64}) (refs/[^\x00-\x20\x7f]{1,1000})")
_LARGEST_LIST = 4 * 1024 * 1024
_LARGEST_HEADER = 4 * 1024 * 1024
_MEMORY = 3 * 1024**3
"""What git may use to look at a bundle, besides the size of one: a small pack can ask for a lot."""
_LOOSE_BELOW = 100
"""A pack of fewer objects is taken apart, as git does it: a pack for every few commits would slow the repository."""
_BIG = ("-c", "core.bigFileThreshold=32m")
"""Larger files are never held in memory whole."""


class BundleLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much may come back at once."""

    bytes: int = 1024 * 1024 * 1024
    seconds: float = 300.0
    refs: int = 1000
    sandbox_limits: SandboxLimits = SandboxLimits()
    """What git may use inside while it makes the bundle."""


class _Return(msgspec.Struct, frozen=True, kw_only=True):
    """What is brought back, from which session, and what it may build on."""

    layout: RepositoryLayout
    workspace: Workspace
    known: tuple[str, ...]
    also: tuple[str, ...]
    limits: BundleLimits
    given: tuple[Path, ...]
    """The folders of the objects that the instance was given; no other object of the user's may be built on."""

    @property
    def private_dir(self) -> Path:
        return self.layout.private_dir(self.workspace.git_dir)

    @property
    def quarantine(self) -> Path:
        return self.private_dir / "quarantine"

    @property
    def environment(self) -> dict[str, str]:
        """For a git that sees the quarantine and what was given, and nothing else."""
        given = ":".join(_quoted(str(folder)) for folder in self.given)
        return {"GIT_OBJECT_DIRECTORY": str(self.quarantine), "GIT_ALTERNATE_OBJECT_DIRECTORIES": given}


async def bring(
    layout: RepositoryLayout,
    sandbox: Sandbox,
    workspace: Workspace,
    known: tuple[str, ...],
    also: tuple[str, ...],
    limits: BundleLimits,
) -> dict[str, str]:
    """Every ref of the private repository; all that they lead to is in the user's repository afterwards.

    `known` are commits that both have; `also` are commits that must arrive too, though no ref names them.
    """
    private_dir = layout.private_dir(workspace.git_dir)
    outbox, own = private_dir / "outbox", private_dir / "given"
    for folder in (outbox, own):
        await asyncio.to_thread(remove_tree, folder)
    outbox.mkdir(parents=True)
    make_writable(private_dir / "repository")
    try:
        given = await _given(layout, workspace, known, own)
        returned = _Return(layout=layout, workspace=workspace, known=known, also=also, limits=limits, given=given)
        little = await asyncio.to_thread(
            read_loose, private_dir / "repository", ordinary(layout, private_dir), known, also
        )
        if little is not None and len(little.refs) <= limits.refs:
            with contextlib.suppress(BoundaryViolationError):  # it may take git to see the whole of it
                return await _take_little(returned, little)
        return await _take_bundle(returned, sandbox)
    finally:
        for folder in (outbox, own):
            await asyncio.to_thread(remove_tree, folder)


async def _given(layout: RepositoryLayout, workspace: Workspace, known: tuple[str, ...], own: Path) -> tuple[Path, ...]:
    """Where the objects are that the instance was given: those of its base, and a pack in `own` of what came later."""
    packs = Packs(layout)
    if await asyncio.to_thread(packs.is_partial):
        return (layout.common / "objects",)  # a partial clone lacks objects that no pack can have
    borrowed = borrowed_commit(workspace, read_state(layout.private_dir(workspace.git_dir)))
    given = [await packs.ensure(borrowed)]
    if beyond := tuple(commit for commit in dict.fromkeys(known) if commit != borrowed):
        (own / "pack").mkdir(parents=True)
        await packs.pack(own / "pack", beyond, borrowed)
        given.append(own)
    return tuple(given)


async def _take_little(returned: _Return, little: LooseWork) -> dict[str, str]:
    with (returned.private_dir / "outbox" / "pack").open("w+b", buffering=0) as file:
        file.write(little.pack)
        file.seek(0)
        pack = (file, little.count) if little.count else None
        await _take(returned, pack, tuple(little.refs.values()), little)
    return little.refs


async def _take_bundle(returned: _Return, sandbox: Sandbox) -> dict[str, str]:
    private_dir, workspace, limits = returned.private_dir, returned.workspace, returned.limits
    (private_dir / "sandbox").mkdir(exist_ok=True)
    (private_dir / "home").mkdir(exist_ok=True)
    done = await _make(returned.layout, sandbox, workspace, returned.known, limits)
    empty = done.code != 0 and _NOTHING_NEW in done.stderr
    if done.ending is not Ending.EXITED or (done.code != 0 and not empty):
        raise _not_made(workspace, done, limits)
    refs = _listed(read_plain(private_dir / "outbox" / "refs", _LARGEST_LIST), workspace, limits)
    if empty:
        await _take(returned, None, tuple(refs.values()))
        return refs
    with _opened(private_dir / "outbox" / "bundle", workspace, limits) as file:
        start = _start_of_pack(file)
        if start is None:
            raise BoundaryViolationError(f"what {workspace.run} brought back is no bundle")
        # The last field of the head of a pack is how many objects it has.
        count = int.from_bytes(os.pread(file.fileno(), 12, start)[8:12], "big")
        os.lseek(file.fileno(), start, os.SEEK_SET)
        await _take(returned, (file, count), tuple(refs.values()))
    return refs


async def _take(
    returned: _Return, pack: tuple[IO[bytes], int] | None, refs: tuple[str, ...], little: LooseWork | None = None
) -> None:
    """Take a pack, if there is one, into the user's repository, where it is good and the tips are whole with it."""
    quarantine, span = returned.quarantine, _span((*refs, *returned.also), returned.known)
    await asyncio.to_thread(remove_tree, quarantine)
    (quarantine / "pack").mkdir(parents=True)
    try:
        if pack is not None:
            await _unpack(returned, *pack)
        await _check(returned, span)
        await _weigh(returned, span, little)
        await asyncio.to_thread(_let_in, quarantine, returned.layout.common / "objects")
    finally:
        await asyncio.to_thread(remove_tree, quarantine)


async def _make(
    layout: RepositoryLayout, sandbox: Sandbox, workspace: Workspace, known: tuple[str, ...], limits: BundleLimits
) -> Exit:
    private_dir = layout.private_dir(workspace.git_dir)
    outbox = str(private_dir / "outbox")
    sandbox_limits = await sandbox.open(
        SandboxSpec(
            run=workspace.run,
            folder=str(private_dir / "sandbox"),
            tree=outbox,
            home=str(private_dir / "home"),
            binds=(
                Bind(source=str(private_dir / "repository"), target=workspace.git_dir),
                borrowed_objects(layout, workspace),
            ),
            limits=limits.sandbox_limits,
        )
    )
    command = Command(
        argv=("sh", "-c", _MAKE, "sh", str(limits.bytes // _BLOCK), workspace.git_dir, *known),
        workdir=outbox,
        environment={
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(private_dir / "home"),
            "LC_ALL": "C",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_ALLOW_PROTOCOL": "none",  # any command can make a repository fetch what it lacks
        },
        timeout_seconds=limits.seconds,
        idle_seconds=limits.seconds,
        mark=f"{workspace.run}.bundle",
    )
    try:
        return await sandbox_limits.run(command, lambda _stream, _line: None)
    finally:
        await sandbox_limits.close()


def _not_made(workspace: Workspace, done: Exit, limits: BundleLimits) -> GitError | BoundaryViolationError:
    begun = f"the work of {workspace.run} could not be brought back from its sandbox: "
    if done.violations:
        return BoundaryViolationError(begun + "; ".join(f"{each.kind}: {each.detail}" for each in done.violations))
    if done.ending is not Ending.EXITED:
        return GitError(f"{begun}git {done.ending.replace('_', ' ')} after {done.seconds:.0f} seconds")
    lines = done.stderr.strip().splitlines()
    telling = [line for line in lines if line.startswith(("fatal:", "error:"))]
    size = f"git ended with {done.code}; a bundle may have {limits.bytes // (1024 * 1024)} MB"
    return GitError(begun + (telling or lines or [size])[0][:500])


def _listed(content: bytes | None, workspace: Workspace, limits: BundleLimits) -> dict[str, str]:
    """The refs that the private repository says it has, read as strictly as anything that an instance says."""
    refs: dict[str, str] = {}
    lines = (content or b"").decode("utf-8", "surrogateescape").splitlines()
    for line in lines:
        found = _LISTED.fullmatch(line)
        if found is None or found[1] == "0" * len(found[1]):
            raise BoundaryViolationError(f"the refs of {workspace.run} cannot be read: {line[:80]!r}")
        if not found[2].startswith("refs/remotes/"):  # what it fetched from elsewhere is not its work
            refs[found[2]] = found[1]
    if content is None or len(refs) > limits.refs:
        message = "no list that can be read" if content is None else f"{len(refs)} refs"
        raise BoundaryViolationError(f"{workspace.run} has {message}; {limits.refs} refs may be brought back")
    return refs


async def _unpack(returned: _Return, file: IO[bytes], count: int) -> None:
    """Check every object of a pack, which begins where the file is at, into a folder of its own."""
    args = ("unpack-objects", "-q") if count < _LOOSE_BELOW else ("index-pack", "--stdin", "--fix-thin")
    limits = returned.limits
    try:
        await returned.layout.git.run(
            *_BIG,
            *args,
            "--strict",
            f"--max-input-size={limits.bytes}",
            stdin=file,
            environment=returned.environment,
            seconds=limits.seconds,
            memory=limits.bytes + _MEMORY,
        )
    except DiskFullError:
        raise
    except GitError as error:
        run = returned.workspace.run
        raise BoundaryViolationError(f"what {run} brought back was refused: {_why(error)}") from error


def _opened(bundle: Path, workspace: Workspace, limits: BundleLimits) -> IO[bytes]:
    """A bundle that is a plain file and not too large. No process can write to it any more: its sandbox is closed."""
    try:
        descriptor = os.open(bundle, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise BoundaryViolationError(f"{workspace.run} brought back no bundle: {error.strerror}") from error
    file = os.fdopen(descriptor, "rb", buffering=0)
    entry = os.fstat(descriptor)
    if not stat.S_ISREG(entry.st_mode) or entry.st_size > limits.bytes:
        file.close()
        message = f"{entry.st_size} bytes" if stat.S_ISREG(entry.st_mode) else "no plain file"
        raise BoundaryViolationError(f"what {workspace.run} brought back is no bundle that can be taken: {message}")
    return file


def _start_of_pack(file: IO[bytes]) -> int | None:
    """Where the pack begins in a bundle. What stands before it is only passed over."""
    head = os.pread(file.fileno(), _LARGEST_HEADER, 0)
    end = head.find(b"\n\n")
    known = head.startswith((b"# v2 git bundle\n", b"# v3 git bundle\n"))
    return end + 2 if known and end > 0 else None


async def _check(returned: _Return, span: str) -> None:
    """All that the tips lead to must be there.

    What is known is named, and not all refs: while others make their working trees, some of those lead nowhere yet.
    """
    try:
        await returned.layout.git.run(
            *("rev-list", "--objects", "--quiet", "--stdin"),
            stdin=span,
            environment=returned.environment,
            seconds=returned.limits.seconds,
            memory=returned.limits.bytes + _MEMORY,
        )
    except GitError as error:
        run = returned.workspace.run
        raise BoundaryViolationError(f"what {run} committed is not whole: {_why(error)}") from error


def _span(tips: tuple[str, ...], known: tuple[str, ...]) -> str:
    """What the tips lead to and what is known does not, as `rev-list` reads it."""
    return "".join(f"{line}\n" for line in dict.fromkeys((*tips, *(f"^{commit}" for commit in known))))


async def _weigh(returned: _Return, span: str, little: LooseWork | None) -> None:
    """Nothing comes in that is more than can be laid out: a few trees can say a hundred million files."""
    git, apart, workspace = returned.layout.git, returned.environment, returned.workspace
    try:
        if little is not None:
            await asyncio.to_thread(weigh_little, git, apart, workspace.base, little.roots, little.new)
        else:
            await asyncio.to_thread(weigh, git, apart, workspace.base, span)
    except GitError as error:
        raise BoundaryViolationError(f"what {workspace.run} committed cannot be weighed: {_why(error)}") from error
    except BoundaryViolationError as error:
        raise BoundaryViolationError(f"what {workspace.run} brought back was refused: {error.message}") from error


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _let_in(quarantine: Path, objects: Path) -> None:
    """Move what was found good; a pack before its index, since the index is what makes it count."""
    files = [Path(folder) / name for folder, _, names in os.walk(quarantine) for name in names]
    for path in sorted(files, key=lambda path: path.suffix == ".idx"):
        target = objects / path.relative_to(quarantine)
        target.parent.mkdir(exist_ok=True)
        path.replace(target)


def _why(error: GitError) -> str:
    lines = "\n".join(
        (*getattr(error, "__notes__", ()), error.message)
    ).splitlines()  # the notes have all of git's output
    telling = [line for line in lines if "error:" in line or "fatal:" in line]
    return (telling or lines[-1:])[0].rpartition("error: ")[2].rpartition("fatal: ")[2][:300]
