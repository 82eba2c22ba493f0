"""One process of git, from its start to its output."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import IO

from genba.connections.own_processes import LostProcessError, exit_code, own_environment
from genba.domain.errors import GitError

Output = subprocess.CompletedProcess[str]
Stdin = str | IO[bytes] | None


def answer(
    argv: list[str],
    cwd: str,
    environment: Mapping[str, str],
    stdin: Stdin,
    seconds: float | None = None,
    keeps: tuple[int, ...] = (),
) -> Output:
    """Start git, wait for its end, and return its output. A process that takes longer than `seconds` is ended.

    What it `keeps` open is a lock of ours: where we die first, git holds it until it is done.
    """
    given = _bytes(stdin) if isinstance(stdin, str) else stdin
    code, out, result = _ended(argv, cwd, environment, given, seconds, keeps)
    return subprocess.CompletedProcess(argv, code, _text(out), _text(result))


def answer_bytes(argv: list[str], cwd: str, environment: Mapping[str, str], stdin: bytes, seconds: float) -> bytes:
    """What git prints, byte by byte. Raises CalledProcessError and TimeoutExpired. For a thread that has time."""
    code, out, result = _ended(argv, cwd, environment, stdin, seconds)
    if code != 0:
        raise subprocess.CalledProcessError(code, argv, out, result)
    return out


def _ended(
    argv: list[str],
    cwd: str,
    environment: Mapping[str, str],
    stdin: bytes | IO[bytes] | None,
    seconds: float | None,
    keeps: tuple[int, ...] = (),
) -> tuple[int, bytes, bytes]:
    """The exit code of git and what it printed, through files in memory: no thread has to read while git runs."""
    with ExitStack() as files:
        out, result = (files.enter_context(_in_memory()) for _ in range(2))
        given: IO[bytes] | int = subprocess.DEVNULL
        if isinstance(stdin, bytes) and stdin:
            given = files.enter_context(_in_memory())
            given.write(stdin)
            given.seek(0)
        elif stdin is not None and not isinstance(stdin, bytes):
            given = stdin
        with subprocess.Popen(
            argv, cwd=cwd, env=own_environment(environment), stdin=given, stdout=out, stderr=result, pass_fds=keeps,
            start_new_session=True,  # ctrl-c is for Genba to hear; git is never cut in the middle of a write
        ) as process:  # fmt: skip
            try:
                code = code_of(process, seconds)
            except BaseException:
                kill(process)
                raise
        return code, _whole(out), _whole(result)


def code_of(process: "subprocess.Popen[bytes]", seconds: float | None = None) -> int:
    """Wait for git. Raises GitError where it is not known how git ended: that is never taken for success."""
    try:
        return exit_code(process, seconds)
    except LostProcessError as error:
        raise GitError(f"git did not say how it ended: {error}") from error


def kill(process: "subprocess.Popen[bytes]") -> None:
    """End a process with all that it started: it leads a session of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def ended_in_time(process: "subprocess.Popen[bytes]", seconds: float) -> Iterator[threading.Event]:
    """Kill a process that takes longer than `seconds`; the event says whether that was necessary."""
    late = threading.Event()

    def end() -> None:
        late.set()
        kill(process)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()


def _in_memory() -> IO[bytes]:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("git"), "w+b")
    import tempfile  # noqa: PLC0415  (it brings four compressors along)

    return tempfile.TemporaryFile()


def _bytes(text: str) -> bytes:
    """A text as git gets it. What was no text when it came out of git goes in again as it was."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def _whole(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _text(data: bytes) -> str:
    """All of it, as text whose lines end as they do everywhere else."""
    text = data.decode("utf-8", "backslashreplace")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
