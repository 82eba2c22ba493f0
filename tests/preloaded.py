"""Real processes without the start of an interpreter, forked from one that has loaded everything.

Loading is most of what a short command costs, and it is the same each time. What comes out is a process as any other:
its own number, its own environment, folder and streams, killed and waited for as any other. Two things differ: /proc
shows the command line and the environment of the process that it was forked from. A test of those, of the
start itself, or of a variable that an interpreter or a loader reads as it starts, starts its process.
`GENBA_TEST_FORK=0` starts everybody.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[1]
GENBA = Path(sys.executable).parent / "genba"
READ_AT_START = ("LANG", "LC_", "LD_", "PYTHON", "MALLOC_", "GLIBC_")
"""How variables begin that have their effect before the first line of a program, or while it is loaded."""
LOADED_LATE = (
    "dbos._sys_db_postgres", "dbos._sys_db_sqlite", "encodings.ascii", "getpass", "jsonschema_rs", "psutil", "psycopg",
    "sqlalchemy.dialects.postgresql.psycopg", "sqlalchemy.dialects.sqlite.pysqlite",
)  # fmt: skip
"""What a fleet loads while it works."""
_LARGEST = 1 << 20
_LOCK = threading.Lock()


def can_fork(environment: Mapping[str, str]) -> bool:
    own = ordinary_environment()
    return os.environ.get("GENBA_TEST_FORK") != "0" and _read_at_start(environment) == _read_at_start(own)


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}


def ordinary_environment() -> dict[str, str]:
    """The environment of an ordinary shell: nothing that makes Python behave in its own way."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


class Forked(subprocess.Popen[bytes]):
    """A process that was forked. It is asked and killed as one that was started."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdout: int,
        stderr: int,
        start_new_session: bool = False,
    ) -> None:
        self.args = list(words)
        self.returncode: int | None = None
        self.stdin = self.stdout = self.stderr = None
        self._child_created = False  # the interpreter has no child to wait for
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = {"words": list(words), "cwd": str(cwd), "env": dict(env), "session": start_new_session}
        with theirs, Path(os.devnull).open("rb") as nothing:
            handles = [theirs.fileno(), nothing.fileno(), stdout, stderr]
            socket.send_fds(_fork_server(), [json.dumps(request).encode()], handles)
        output = self._line.recv(4096).decode()
        if not output.isdigit():
            self._line.close()
            raise OSError(f"{words[0]} was not forked: {output or 'nobody answers'}")
        self.pid = int(output)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._line.settimeout(timeout)
            try:
                result = self._line.recv(4096)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            assert result, f"whoever forked {self.args!r} is gone"
            self.returncode = os.waitstatus_to_exitcode(int(result))
            self._line.close()
        return self.returncode

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)


def run(
    words: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float, start_new_session: bool = False
) -> "subprocess.CompletedProcess[str]":
    if not can_fork(env):
        return subprocess.run(
            words,
            cwd=cwd,
            env={**env, **_way_to_the_tests(words)},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
            start_new_session=start_new_session,
        )
    streams, ends = zip(*(os.pipe() for _ in range(2)), strict=True)
    files = [os.fdopen(stream, encoding="utf-8") for stream in streams]
    try:
        process = Forked(words, cwd=cwd, env=env, stdout=ends[0], stderr=ends[1], start_new_session=start_new_session)
    except BaseException:
        for file in files:
            file.close()
        raise
    finally:
        for end in ends:
            os.close(end)
    return _received(process, files, timeout)


def _received(process: Forked, files: Sequence[IO[str]], timeout: float) -> "subprocess.CompletedProcess[str]":
    received: dict[int, str] = {}
    failed: list[Exception] = []

    def hear(place: int) -> None:
        try:
            with files[place] as file:
                received[place] = file.read()
        except (OSError, ValueError) as error:
            failed.append(error)

    deadline = time.monotonic() + timeout
    listeners = [threading.Thread(target=hear, args=[place], daemon=True) for place in range(2)]
    for listener in listeners:
        listener.start()
    for listener in listeners:
        listener.join(max(0.0, deadline - time.monotonic()))
        if listener.is_alive():
            process.kill()
            raise subprocess.TimeoutExpired(process.args, timeout)
    code = process.wait(max(0.0, deadline - time.monotonic()))
    if failed:
        raise failed[0]
    return subprocess.CompletedProcess(process.args, code, received[0], received[1])


def start(
    words: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdout: int,
    stderr: int,
    start_new_session: bool = True,
) -> "subprocess.Popen[bytes]":
    """In the background."""
    if can_fork(env):
        return Forked(words, cwd=cwd, env=env, stdout=stdout, stderr=stderr, start_new_session=start_new_session)
    return subprocess.Popen(
        words,
        cwd=cwd,
        env={**env, **_way_to_the_tests(words)},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=start_new_session,
    )


def _way_to_the_tests(words: Sequence[str]) -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT)} if words[1] in ("-m", "-c") else {}


def _fork_server() -> socket.socket:
    with _LOCK:
        return _start_fork_server()


@functools.cache
def _start_fork_server() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for line in (ours, theirs):
        line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LARGEST)
    with theirs, Path(os.devnull).open("r+b") as nothing:
        words = [sys.executable, str(Path(__file__)), str(theirs.fileno())]
        fork_server = subprocess.Popen(
            words, env=ordinary_environment(), pass_fds=[theirs.fileno()], stdin=nothing, stdout=nothing
        )

    def leave() -> None:
        ours.close()
        fork_server.wait()

    atexit.register(leave)
    return ours


# From here on: what the process does that forks.


def serve(control: socket.socket) -> None:
    waiting: dict[int, socket.socket] = {}
    bell, rung = os.pipe()
    for handle in (bell, rung):
        os.set_blocking(handle, False)
    signal.set_wakeup_fd(rung)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([control.fileno(), bell], [], [])
        if bell in ready:
            os.read(bell, 4096)
            _tell_ends(waiting)
        if control.fileno() not in ready:
            continue
        text, handles, _, _ = socket.recv_fds(control, _LARGEST, 4)
        if not text:
            return
        child = os.fork()
        if not child:
            signal.signal(signal.SIGINT, interrupted)
            _become(json.loads(text), handles)
        waiting[child] = socket.socket(fileno=handles[0])
        for handle in handles[1:]:
            os.close(handle)


def _tell_ends(waiting: dict[int, socket.socket]) -> None:
    while waiting:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        with waiting.pop(child) as line, contextlib.suppress(OSError):
            line.send(str(status).encode())


def _become(request: dict[str, Any], handles: list[int]) -> None:
    """Be the process that was asked for; never comes back."""
    code = 1
    try:
        with socket.socket(fileno=handles[0]) as line:
            try:
                _settle(request, handles)
            except Exception as error:
                line.send(str(error).encode())
                raise
            line.send(str(os.getpid()).encode())
        _play(request["words"])
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        if leaving.code is not None and not isinstance(leaving.code, int):
            sys.stderr.write(f"{leaving.code}\n")
    except BaseException:  # noqa: BLE001  (it is the outermost edge of a process)
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _settle(request: dict[str, Any], handles: list[int]) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for stream, handle in enumerate(handles[1:]):
        os.dup2(handle, stream)
    for place in list(Path("/proc/self/fd").iterdir()):
        if int(place.name) > 2 and int(place.name) != handles[0]:
            with contextlib.suppress(OSError):
                os.close(int(place.name))
    for number, mode, name in ((0, "r", "stdin"), (1, "w", "stdout"), (2, "w", "stderr")):
        # A stream remembers whether it was a file or a pipe.
        old = getattr(sys, name)
        new = os.fdopen(number, mode, encoding=old.encoding, errors=old.errors, closefd=False)
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)
    if request["session"]:
        os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()


def _play(words: list[str]) -> None:
    if words[0] == str(GENBA):
        sys.argv = words
        sys.path[0] = str(GENBA.parent)
        from genba.entrypoints.cli.main import main

        main()
        return
    python, option, program, *rest = words
    assert python == sys.executable, words
    assert option in ("-m", "-c"), words
    sys.path[0] = str(ROOT)
    if option == "-m":
        sys.argv = [program, *rest]
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.argv = [option, *rest]
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})


def load() -> None:
    """Everything of the product, and what it loads late. Whatever does not load here fails where it is needed."""
    import genba

    found = [module.name for module in pkgutil.walk_packages(genba.__path__, "genba.", onerror=lambda _name: None)]
    for name in (*found, *LOADED_LATE):
        if not name.endswith("__main__") and not name.startswith("genba.testing"):
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    gc.freeze()  # what is shared stays so


if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # packages of the tests have names of others, such as mcp
    load()
    serve(socket.socket(fileno=int(sys.argv[1])))
