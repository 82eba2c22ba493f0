"""One process of git, from its start to what it said."""

import os
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from typing import IO, Any

Said = subprocess.CompletedProcess[str]
Stdin = str | IO[bytes] | None


def answer(
    argv: list[str],
    cwd: str,
    environment: Mapping[str, str],
    stdin: Stdin,
    seconds: float | None = None,
    keeps: tuple[int, ...] = (),
) -> Said:
    """Start git, wait for its end, and say what it said. Whoever takes longer than `seconds` is ended.

    What it `keeps` open is a lock of ours: where we die first, git holds it until it is done.
    """
    if seconds is None and hasattr(os, "memfd_create"):
        return _at_leisure(argv, cwd, environment, stdin, keeps)
    fed: dict[str, Any] = {"stdin": stdin}
    if stdin is None or isinstance(stdin, str):
        fed = {"input": _bytes(stdin or "")}
    done = subprocess.run(
        argv,
        cwd=cwd,
        env=environment,
        capture_output=True,
        check=False,
        timeout=seconds,
        pass_fds=keeps,
        start_new_session=True,  # ctrl-c is for Genba to hear; git is never cut in the middle of a write
        **fed,
    )
    return subprocess.CompletedProcess(argv, done.returncode, _text(done.stdout), _text(done.stderr))


def _at_leisure(
    argv: list[str], cwd: str, environment: Mapping[str, str], stdin: Stdin, keeps: tuple[int, ...]
) -> Said:
    """The same for whoever may take its time: files in memory need nobody who reads while it runs."""
    with ExitStack() as files:
        out, told = (files.enter_context(_in_memory()) for _ in range(2))
        given: IO[bytes] | int = subprocess.DEVNULL
        if isinstance(stdin, str) and stdin:
            given = files.enter_context(_in_memory())
            given.write(_bytes(stdin))
            given.seek(0)
        elif stdin is not None and not isinstance(stdin, str):
            given = stdin
        with subprocess.Popen(
            argv, cwd=cwd, env=environment, stdin=given, stdout=out, stderr=told, pass_fds=keeps, start_new_session=True
        ) as process:
            code = process.wait()
        return subprocess.CompletedProcess(argv, code, _whole(out), _whole(told))


def _in_memory() -> IO[bytes]:
    return os.fdopen(os.memfd_create("git"), "w+b")


def _bytes(text: str) -> bytes:
    """A text as git gets it. What was no text when it came out of git goes in again as it was."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def _whole(file: IO[bytes]) -> str:
    file.seek(0)
    return _text(file.read())


def _text(said: bytes) -> str:
    """All of it, as text whose lines end as they do everywhere else."""
    text = said.decode("utf-8", "backslashreplace")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
