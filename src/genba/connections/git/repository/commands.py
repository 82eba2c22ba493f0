"""Running git, always from outside the places where agents write."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

from genba.connections.git.repository.commit_writer import SETTINGS, Writing, write_commit
from genba.connections.git.repository.environment import LOCAL_SECONDS, REMOTE_SECONDS, host_environment
from genba.connections.git.repository.git_errors import error_line, verb
from genba.connections.git.repository.object_cache import Memory
from genba.connections.git.repository.run_process import Output, answer, answer_bytes, code_of, ended_in_time
from genba.connections.git.worktrees.overlay_mount import mounted, read_overlay
from genba.connections.git.worktrees.status_cache import Stillness
from genba.connections.own_processes import own_environment
from genba.domain.errors import BoundaryViolationError, DiskFullError, GitError
from genba.domain.hashes import is_hash

if TYPE_CHECKING:
    from genba.connections.git.agent_trees.staging import KnownIndex
    from genba.connections.git.repository.access import RemoteAccess

_HARDENED = (
    "-c", "genba.hardened=true",
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never",
    "-c", "log.showSignature=false", "-c", "diff.orderFile=/dev/null", "-c", "advice.graftFileDeprecated=false",
    "-c", "submodule.recurse=false", "-c", "core.untrackedCache=false",
    "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true",
)  # fmt: skip
"""Settings of the user's that would run something, or say something in between what is read."""
_TIDYING_NOTHING = ("-c", "gc.auto=0", "-c", "maintenance.auto=false")
"""Who tidies up in the background has everything that git has, for as long as that takes: also a lock."""
_THROUGH_AN_OVERLAY = ("-c", "core.checkStat=minimal", "-c", "core.trustctime=false")
"""A file that is seen through another mount has another number, and is the same file."""
_OF_FILES = r"^(core\.(autocrlf|eol|safecrlf|filemode|symlinks|ignorecase|precomposeunicode|excludesfile)$|filter\.)"
_OF_THE_HOST = ("filter.", "core.excludesfile")
_BRANCHES = "refs/heads/"
_PLAIN_BRANCH = re.compile(r"refs/heads(/[A-Za-z0-9_][A-Za-z0-9_+=%-]*(\.[A-Za-z0-9_+=%-]+)*)+")
_LONGEST_REF = 4096
_LONGEST_NOTE = 8000
_SMALLEST_ROOM = 64 * 1024
_NO_ROOM = (
    "No space left on device",
    "Disk quota exceeded",
    "unable to write file ",
    "nable to write new index file",
    "ould not write new index file",
)
"""What git says when there is no room. Of a file that it checks out, and of its index, it says no reason."""
_LEAVING_SECONDS = 10.0
"""A cancelled caller waits so long for its git: what that one still writes would lie there unseen."""
_CHUNK = 1024 * 1024


class Git:
    """Git on one repository. The repository is always named; it is never looked up from a working directory."""

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = git_dir
        self._without_filters: dict[str, str] | None = None
        self._known_settings: tuple[str, ...] | None = None
        self.memory = Memory()
        self.stillness = Stillness()
        self.indexes: dict[str, KnownIndex] = {}
        """By the folder of git's own that belongs to a worktree: its index, as it was last read."""
        self.writing = Writing()
        self.access: RemoteAccess | None = None
        """What lets git in where a remote lies on the forge of the project."""

    async def reach(
        self, remote: str, *arguments: str, tree: Path, push: bool = False, seconds: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run git on something that talks to a remote, which may be down or refuse."""
        lines: tuple[str, ...] = ()
        environment: dict[str, str] = {}
        if self.access is not None:
            lines, environment = await self.access.args(self, remote, push)
        environment = {**_environment(remote=True), **environment}
        return await self.run(
            *lines, *arguments, tree=tree, environment=environment, allow=(0, 1, 128), seconds=seconds or REMOTE_SECONDS
        )

    async def fixed(self, *arguments: str) -> str:
        """The answer to a question about objects that are named by their whole hashes. Git is asked for it once."""
        result = self.memory.answers.get(arguments)
        if result is None:
            result = (await self.run(*arguments)).stdout
            self.memory.answers.put(arguments, result)
        return result

    async def run(
        self,
        *arguments: str,
        tree: Path | None = None,
        git_dir: Path | None = None,
        environment: Mapping[str, str] | None = None,
        stdin: str | IO[bytes] | None = None,
        allow: tuple[int, ...] = (0,),
        seconds: float | None = None,
        memory: int | None = None,
        filters: bool = True,
        keeps: tuple[int, ...] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run git; an exit code that is not allowed is an error. `tree` is the working tree, where one is needed.

        A worktree that is an overlay is mounted for the command. In one whose agent is sandboxed no filter
        of the user's is run: a filter is started among files that the agent wrote, and may load one of them.
        `keeps` are descriptors of locks that git holds with us, and after us. A link is no working tree of anybody's.
        """
        where = ["--git-dir", str(git_dir or self.git_dir)]
        overlay = None
        if tree is not None:
            if is_link(tree):
                raise BoundaryViolationError(f"{tree} is a link now: nothing is read or written where it leads")
            where += ["--work-tree", str(tree), "-C", str(tree)]
            private_dir = self.git_dir / "genba" / "private" / git_dir.name if git_dir is not None else None
            sandboxed = private_dir is not None and private_dir.is_dir()
            if sandboxed and _read(f"{git_dir}/gitdir").strip() == f"{tree}/.git":
                raise BoundaryViolationError(f"git is not started in {tree}: an agent can write there")
            overlay = read_overlay(private_dir) if private_dir is not None and sandboxed else None
            if sandboxed or not filters:
                environment = {**await self._no_filters(), **(environment or {})}
        settings = (*(_THROUGH_AN_OVERLAY if overlay is not None else ()), *(_TIDYING_NOTHING if keeps else ()))
        argv = ["git", *_HARDENED, *settings, *where, *arguments]
        if tree is not None and overlay is not None:
            argv = mounted(overlay, tree, argv)
        if memory is not None and (bounded := _bounded(memory)):
            argv = [*bounded, *argv]
        return await _call(argv, str(self.git_dir), environment, stdin, allow, seconds, keeps)

    async def settings_of_files(self) -> str:
        """How files are read and written, as `git config --null` tells it, filters aside.

        They are the same in the sandbox and outside, or each side would find the files of the other changed.
        """
        return "\0".join(entry for entry in await self._settings() if not entry.startswith(_OF_THE_HOST))

    async def settings_of_staging(self) -> str:
        """The same, and which file names what the user ignores everywhere: for copies of files on the host."""
        return "\0".join(entry for entry in await self._settings() if not entry.startswith("filter."))

    def aside(
        self, git_dir: Path, *arguments: str, tree: Path | None = None, stdin: bytes = b"",
        environment: Mapping[str, str] | None = None, allow: tuple[int, ...] = (0,), seconds: float = LOCAL_SECONDS,
    ) -> bytes:  # fmt: skip
        """What git prints in a repository and a tree that the host made for itself. For a thread that has time."""
        where = ["--git-dir", str(git_dir), *(["--work-tree", str(tree), "-C", str(tree)] if tree is not None else [])]
        argv = ["git", *_HARDENED, *where, *arguments]
        whole = {**_environment(), **(environment or {})}
        try:
            return answer_bytes(argv, str(git_dir), whole, stdin, seconds)
        except subprocess.TimeoutExpired as error:
            raise _took_too_long(argv, seconds) from error
        except subprocess.CalledProcessError as error:
            output = (error.stderr or error.stdout).decode("utf-8", "backslashreplace").strip()
            if error.returncode in allow:
                return bytes(error.stdout)
            if any(phrase in output for phrase in _NO_ROOM) or _is_full(str(git_dir)):
                raise DiskFullError(
                    f"the disk is full: {error_line(output) if output else 'git could not write'}"
                ) from error
            raise _refused(argv, output, error.returncode) from error

    async def _settings(self) -> tuple[str, ...]:
        if self._known_settings is None:
            args = ["git", *_HARDENED, "--git-dir", str(self.git_dir), "config", "--null", "--get-regexp", _OF_FILES]
            done = await _call(args, str(self.git_dir), None, None, (0, 1), None)
            self._known_settings = tuple(entry for entry in done.stdout.split("\0") if entry)
        return self._known_settings

    async def _no_filters(self) -> dict[str, str]:
        """Variables that turn off every filter that some settings of the user's name."""
        if self._without_filters is None:
            keys = (entry.partition("\n")[0] for entry in await self._settings())
            names = {key.rpartition(".")[0] for key in keys if key.startswith("filter.")}
            off = (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
            pairs = [(f"{name}.{key}", value) for name in sorted(names) for key, value in off]
            values = {"GIT_CONFIG_COUNT": str(len(pairs))}
            for number, (key, value) in enumerate(pairs):
                values |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
            self._without_filters = values if pairs else {}
        return self._without_filters

    def batch(self, names: list[str], largest: int | None = None) -> dict[str, bytes]:
        """The content of each object that a name leads to and that is a file; the others are left out.

        So is what is longer than `largest`: it is passed over piece by piece, since anybody can commit a huge file.
        """
        import tempfile  # noqa: PLC0415  (it loads for as long as git runs, and few runs look into files)

        argv = ["git", *_HARDENED, "--git-dir", str(self.git_dir), "cat-file", "--batch"]
        with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as output:
            asked.write("".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape"))
            asked.seek(0)
            with subprocess.Popen(
                argv, cwd=self.git_dir, env=own_environment(_environment()), stdin=asked, stdout=subprocess.PIPE,
                stderr=output, start_new_session=True,
            ) as process, ended_in_time(process, LOCAL_SECONDS) as late:  # fmt: skip
                assert process.stdout is not None  # noqa: S101  (it is a pipe)
                found = _batch(names, process.stdout, largest)
                code = code_of(process)
            if late.is_set():
                raise _took_too_long(argv, LOCAL_SECONDS)
            if code != 0:
                output.seek(0)
                raise _refused(argv, output.read().decode("utf-8", "replace").strip())
        return found

    def chunks(self, *arguments: str, stdin: str = "", environment: Mapping[str, str] | None = None) -> Iterator[bytes]:
        """What git says, piece by piece while it goes on saying it. For a thread that has time."""
        import tempfile  # noqa: PLC0415  (see batch)

        argv = ["git", *_HARDENED, "--git-dir", str(self.git_dir), *arguments]
        with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as output:
            asked.write(stdin.encode("utf-8", "surrogateescape"))
            asked.seek(0)
            with subprocess.Popen(
                argv, cwd=self.git_dir, env=own_environment({**_environment(), **(environment or {})}), stdin=asked,
                stdout=subprocess.PIPE, stderr=output, start_new_session=True,
            ) as process, ended_in_time(process, LOCAL_SECONDS) as late:  # fmt: skip
                assert process.stdout is not None  # noqa: S101  (it is a pipe)
                pipe = process.stdout.fileno()
                _widen(pipe)
                while chunk := os.read(pipe, _CHUNK):
                    yield chunk
                code = code_of(process)
            if late.is_set():
                raise _took_too_long(argv, LOCAL_SECONDS)
            if code != 0:
                output.seek(0)
                raise _refused(argv, output.read().decode("utf-8", "replace").strip())

    async def text(self, *arguments: str) -> str:
        return (await self.run(*arguments)).stdout.strip()

    async def commit_tree(
        self, tree: str, parents: tuple[str, ...], message: str, author: tuple[str, str] | None = None
    ) -> str:
        """Make a commit object: by an `author`, as (name, email), or as the user where git knows who that is."""
        if author is None and await self._is_writer() and (made := self._write_commit(tree, parents, message)):
            return made
        args = ["commit-tree", tree, *(arg for parent in parents for arg in ("-p", parent)), "-F", "-"]
        done = await self.run(
            *args, stdin=message, environment=_identity(*author) if author is not None else None, allow=(0, 128)
        )
        if done.returncode != 0:
            done = await self.run(*args, stdin=message, environment=_identity("Genba", "genba@localhost"))
        commit = done.stdout.strip()
        self.memory.know(commit, tree, parents)
        return commit

    async def _is_writer(self) -> bool:
        """Whether commits are written here without asking git: several were made just now, and git does no more."""
        writing = self.writing
        if writing.is_due():
            asked = [("config", "--null", "--get-regexp", SETTINGS), ("var", "GIT_AUTHOR_IDENT")]
            asked.append(("var", "GIT_COMMITTER_IDENT"))
            lines = [(await self.run(*args, allow=(0, 1, 128))).stdout for args in asked]
            writing.know(*lines)
        return writing.writer is not None

    def _write_commit(self, tree: str, parents: tuple[str, ...], message: str) -> str:
        assert self.writing.writer is not None  # noqa: S101  (the caller has looked)
        made = write_commit(self.git_dir, self.writing.writer, tree, parents, message)
        if made is None:
            return ""
        self.memory.know(made, tree, parents)
        return made

    async def commit_of(self, ref: str) -> str | None:
        """The commit that a name stands for. A branch that lies there in a file is read, which spares a process."""
        if ref.startswith(_BRANCHES):
            if found := _loose(self.git_dir, ref) or _packed(self.git_dir, ref):
                return found
            if found is not None:
                return None
        done = await self.run("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", allow=(0, 1, 128))
        return done.stdout.strip() or None

    async def delete_refs(self, refs: Mapping[str, str]) -> None:
        """Delete refs, all or none of them; those that are given with a commit, only if they are still on it."""
        lines = "".join(f"delete {name} {commit}".rstrip() + "\n" for name, commit in refs.items())
        if lines:
            await self.run("update-ref", "--stdin", stdin=lines)

    def loose(self, ref: str) -> str:
        """The object that the file of a ref names; nothing where it has none, whatever git knows of it otherwise."""
        return _loose(self.git_dir, ref)

    def may_have_refs(self, folder: str) -> bool:
        """Whether there may be refs below a folder; where refs are no files only git knows, and there may be."""
        if (self.git_dir / folder).exists() or (self.git_dir / "reftable").exists():
            return True
        try:
            return f" {folder}/".encode() in (self.git_dir / "packed-refs").read_bytes()
        except FileNotFoundError:
            return False

    async def commit_of_head(self, git_dir: Path) -> str | None:
        """The commit that a working tree is on, whatever its HEAD says."""
        on = branch_of(git_dir)
        if on and (found := _loose(self.git_dir, on)):
            return found
        args = ("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        done = await self.run(*args, git_dir=git_dir, allow=(0, 1, 128))
        return done.stdout.strip() or None

    async def is_ancestor(self, commit: str, of: str) -> bool:
        if is_hash(commit) and is_hash(of) and self.memory.is_known_ancestor(commit, of):
            return True
        done = await self.run("merge-base", "--is-ancestor", commit, of, allow=(0, 1))
        return done.returncode == 0


def _identity(name: str, email: str) -> dict[str, str]:
    return {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", name), ("EMAIL", email))}  # fmt: skip


@functools.cache
def _bounded(memory: int) -> tuple[str, ...]:
    """Words before a command that keep it from more memory than this, where the machine has them."""
    import shutil  # noqa: PLC0415  (it brings four compressors along)

    return ("prlimit", f"--as={memory}", "--") if shutil.which("prlimit") else ()


def _widen(pipe: int) -> None:
    """Make the pipe large enough for git to go on while the reader is busy, where the system allows it."""
    import fcntl  # noqa: PLC0415  (see batch)

    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _CHUNK)


def branch_of(git_dir: str | Path) -> str:
    """The ref of the branch that a trusted HEAD is on, read from its file; nothing where that says something else."""
    output = _read(f"{git_dir}/HEAD")
    ref = output.removeprefix("ref: ").strip()
    return ref if output.startswith("ref: ") and ref.startswith(_BRANCHES) else ""


def _loose(git_dir: Path, ref: str) -> str:
    """The object that the file of a ref names; nothing where there is none, or it says something else."""
    if ".." in ref or "\0" in ref:
        return ""
    output = _read(f"{git_dir}/{ref}").strip()
    return output if is_hash(output) else ""


def _packed(git_dir: Path, ref: str) -> str | None:
    """The object of a branch that has no file of its own: empty when there is no such branch, None when git must tell.

    It is to be asked after the file was looked for: git writes here first, and removes the file afterwards.
    """
    own = git_dir / ref
    if (
        not _PLAIN_BRANCH.fullmatch(ref)
        or not (git_dir / "refs" / "heads").is_dir()
        or own.is_file()
        or own.is_symlink()
    ):
        return None
    try:
        packed = (git_dir / "packed-refs").read_bytes()
    except FileNotFoundError:
        return ""
    except OSError:
        return None
    end = packed.find(f" {ref}\n".encode())
    if end < 0:
        return ""
    output = packed[packed.rfind(b"\n", 0, end) + 1 : end].decode("ascii", "replace")
    return output if is_hash(output) else None


def _read(path: str | Path) -> str:
    try:
        with open(path, "rb") as file:  # noqa: PTH123  (asked for a dozen times in each run)
            return file.read(_LONGEST_REF).decode("utf-8", "replace")
    except OSError:
        return ""


def _batch(names: list[str], stream: IO[bytes], largest: int | None) -> dict[str, bytes]:
    """The answers of `cat-file --batch`, in the order of the questions."""
    found: dict[str, bytes] = {}
    for name in names:
        header = stream.readline().rstrip(b"\n").rsplit(b" ", 2)
        if len(header) != 3 or not header[2].isdigit():  # noqa: PLR2004  (name, kind, size; or `name missing`)
            continue
        size = int(header[2])
        if header[1] == b"blob" and (largest is None or size <= largest):
            found[name] = stream.read(size)
        else:
            _skip(stream, size)
        stream.read(1)
    return found


def _skip(stream: IO[bytes], size: int) -> None:
    while size > 0 and (chunk := stream.read(min(size, _CHUNK))):
        size -= len(chunk)


async def discover(folder: Path) -> tuple[Path, Path, Path]:
    """The top folder, the git directory and the common git directory of the repository around a folder."""
    args = (
        "rev-parse",
        "--path-format=absolute",
        "--show-toplevel",
        "--absolute-git-dir",
        "--git-common-dir",
    )
    try:
        done = await _call(["git", *_HARDENED, *args], str(folder), None, None, (0, 128))
    except FileNotFoundError as error:
        raise GitError("git is not installed", hint="install git, then try again") from error
    lines = done.stdout.splitlines()
    if done.returncode != 0 or len(lines) != 3:  # noqa: PLR2004  (the three paths that were asked for)
        raise _not_usable(folder, done.stderr)
    top, git_dir, common = (Path(line) for line in lines)
    return top, git_dir, common


def _not_usable(folder: Path, stderr: str) -> GitError:
    if "dubious ownership" in stderr:
        return GitError(f"{folder} belongs to another user", hint=f"git config --global --add safe.directory {folder}")
    if "must be run in a work tree" in stderr:
        return GitError(f"{folder} is a bare repository: there is no checkout to work from", hint="git clone it first")
    if stderr and "not a git repository" not in stderr:
        message = "; ".join(
            line.removeprefix("fatal: ").removeprefix("error: ") for line in stderr.strip().splitlines()
        )
        return GitError(f"git cannot work in {folder}: {message}", hint="git status   says the same")
    hint = "git init && git commit --allow-empty -m start   makes one here; or cd to one of yours"
    return GitError(f"{folder} is not inside a git repository", hint=hint)


@functools.cache
def _environment(remote: bool = False) -> dict[str, str]:
    return host_environment(remote=remote)


def ask_git(folder: Path, *args: str) -> Output:
    """What git says of the user's own checkout, without an error where it refuses. For a command that waits for it."""
    argv = ["git", *_HARDENED, "-C", str(folder), *args]
    return answer(argv, str(folder), _environment(), None, LOCAL_SECONDS)


def is_link(path: str | Path) -> bool:
    return Path(path).is_symlink()


def _is_full(folder: str) -> bool:
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize < _SMALLEST_ROOM


async def _call(
    argv: list[str],
    cwd: str,
    environment: Mapping[str, str] | None,
    stdin: str | IO[bytes] | None,
    allow: tuple[int, ...],
    seconds: float | None = None,
    keeps: tuple[int, ...] = (),
) -> subprocess.CompletedProcess[str]:
    whole = {**_environment(), **(environment or {})}
    limit = seconds or LOCAL_SECONDS
    try:
        done = await _Turn(functools.partial(answer, argv, cwd, whole, stdin, limit, keeps)).wait()
    except subprocess.TimeoutExpired as error:
        raise _took_too_long(argv, limit) from error
    if done.returncode not in allow:
        output = (done.stderr or done.stdout).strip()
        if any(phrase in output for phrase in _NO_ROOM) or _is_full(cwd):
            raise DiskFullError(f"the disk is full: {error_line(output) if output else 'git could not write'}")
        raise _refused(argv, output, done.returncode)
    return done


class _Turn:
    """One call of git. It begins while a caller waits for it, or never: a lock may be released when they leave."""

    def __init__(self, call: Callable[[], Output]) -> None:
        self._call = call
        self._lock = threading.Lock()
        self._has_begun = False
        self._is_left = False

    async def wait(self) -> Output:
        """The output of git. A cancelled caller is cancelled when git has ended."""
        output = asyncio.ensure_future(asyncio.to_thread(self._begin))
        try:
            return await asyncio.shield(output)
        except asyncio.CancelledError:
            with self._lock:
                self._is_left = not self._has_begun
            if self._is_left:
                output.cancel()
                raise
            done, _ = await asyncio.wait({output}, timeout=_LEAVING_SECONDS)
            for one in done:
                one.exception()  # no other place would report it
            raise

    def _begin(self) -> Output:
        with self._lock:
            if self._is_left:
                raise GitError("the caller was cancelled")
            self._has_begun = True
        return self._call()


def _took_too_long(argv: list[str], seconds: float) -> GitError:
    error = GitError(f"git {verb(argv)}: it took longer than {seconds:g} seconds and was stopped")
    error.add_note(f"git {_shown(argv)}")
    return error


def _refused(argv: list[str], stderr: str, code: int = 1) -> GitError:
    """Git's reason for a refusal, in a line. The command and all of its output are in the notes of the error."""
    named = verb(argv)
    message = error_line(stderr) if stderr or code >= 0 else f"it was killed by signal {-code}"
    error = GitError(f"git {named}: {message.removeprefix(f'{named}: ')}")
    error.add_note(f"git {_shown(argv)}\n{stderr[:_LONGEST_NOTE]}")
    return error


def _shown(argv: list[str]) -> str:
    """A command as messages show it: without the options that every one has."""
    known = (*_HARDENED, *_THROUGH_AN_OVERLAY)
    return " ".join(arg for arg in argv[argv.index("git") + 1 :] if arg not in known)[:200]
