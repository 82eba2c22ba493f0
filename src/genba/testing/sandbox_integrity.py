"""What every sandbox must withstand: tested code that forges its exit code, and system calls that reach beyond it.

Fixtures as in `sandbox_conformance`.
"""

import ast
import os
import textwrap

import msgspec
import pytest

from genba.domain.ports import Sandbox
from genba.domain.processes import Ending
from genba.domain.sessions.sandbox import SandboxSpec
from genba.testing.sandbox_conformance import run_in

FORGERIES_SCRIPT = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
numbers = {"x86_64": (101, 310, 311), "aarch64": (117, 270, 271)}.get(os.uname().machine, ())

def call(number, *values):
    return libc.syscall(number, *(ctypes.c_long(value) for value in values))

def with_getfd():
    handle = call(434, 1, 0)
    for number in range(64):
        taken = call(438, handle, number, 0)
        if taken >= 0 and "eventfd" in os.readlink(f"/proc/self/fd/{taken}"):
            os.write(taken, (1).to_bytes(8, sys.byteorder))

def with_memory():
    at = int(open("/proc/1/syscall").read().split()[-1], 16)
    memory = os.open("/proc/1/mem", os.O_RDWR)
    exits = b"\\x31\\xff\\xb8\\xe7\\x00\\x00\\x00\\x0f\\x05" if len(sys.argv) < 3 else b""
    os.pwrite(memory, exits, at)

def with_files():
    for name in os.listdir("/proc/1/fd"):
        with open(f"/proc/1/fd/{name}", "wb") as file:
            file.write((1).to_bytes(8, sys.byteorder))

def with_status_lines():
    for number in range(3, 64):
        try:
            os.write(number, b'{"exit-code": 0}' + bytes([10]))
        except OSError:
            pass

def with_signals():
    for pid in [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()] + [0]:
        for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGKILL):
            try:
                if pid:
                    os.kill(pid, number)
            except OSError:
                pass

def with_tracing():
    for number in numbers:
        if number == numbers[0]:
            if call(number, 16, 1, 0, 0) == 0:
                print("traced")

try:
    globals()["with_" + sys.argv[1]]()
except OSError:
    pass
os._exit(9)
"""
MEMORY_SCRIPT = """
import os
for name in os.listdir("/proc"):
    for file in ("mem", "clear_refs") if name.isdigit() else ():
        try:
            os.close(os.open(f"/proc/{name}/{file}", os.O_WRONLY))
            print("opened", name, file)
        except OSError:
            pass
"""
FORGERIES = ("getfd", "memory", "files", "status_lines", "signals", "tracing")

_CALLS = """
import ctypes, errno, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
for line in sys.stdin:
    name, *fields = line.split()
    number, *values = [int(field, 0) for field in fields if field]
    ctypes.set_errno(0)
    done = libc.syscall(ctypes.c_long(number), *(ctypes.c_ulong(value) for value in values))
    print(name, "done" if done >= 0 else errno.errorcode[ctypes.get_errno()], flush=True)
"""

_COLUMN = 1 if os.uname().machine == "aarch64" else 0
_UPPER_HALF = 1 << 32
REFUSED_CALLS: dict[str, tuple[tuple[int, ...], str]] = {
    "ptrace": (((101, 117)[_COLUMN], 0, 0, 0, 0), "EPERM"),
    "process_vm_readv": (((310, 270)[_COLUMN], 1, 0, 0, 0, 0, 0), "EPERM"),
    "process_vm_writev": (((311, 271)[_COLUMN], 1, 0, 0, 0, 0, 0), "EPERM"),
    "pidfd_getfd": ((438, 0, 0, 0), "EPERM"),
    "kcmp": (((312, 272)[_COLUMN], 1, 1, 0, 0, 0), "EPERM"),
    "io_uring_setup": ((425, 0, 0), "ENOSYS"),
    "io_uring_enter": ((426, 0, 0, 0, 0, 0), "ENOSYS"),
    "io_uring_register": ((427, 0, 0, 0, 0), "ENOSYS"),
    "clone3": ((435, 0, 0), "ENOSYS"),
    "bpf": (((321, 280)[_COLUMN], 0, 0, 0), "EPERM"),
    "userfaultfd": (((323, 282)[_COLUMN], 0), "EPERM"),
    "perf_event_open": (((298, 241)[_COLUMN], 0, 0, 0, 0, 0), "EPERM"),
    "keyctl": (((250, 219)[_COLUMN], 0, 0, 0, 0, 0), "EPERM"),
    "add_key": (((248, 217)[_COLUMN], 0, 0, 0, 0, 0), "EPERM"),
    "request_key": (((249, 218)[_COLUMN], 0, 0, 0, 0), "EPERM"),
    "open_by_handle_at": (((304, 265)[_COLUMN], 0, 0, 0), "EPERM"),
    "unshare": (((272, 97)[_COLUMN], 0), "EPERM"),
    "setns": (((308, 268)[_COLUMN], 0, 0), "EPERM"),
    "mount": (((165, 40)[_COLUMN], 0, 0, 0, 0, 0), "EPERM"),
    "fsopen": ((430, 0, 0), "EPERM"),
    "open_tree": ((428, 0, 0, 0), "EPERM"),
    "clone-user": (((56, 220)[_COLUMN], 0x10000000, 0, 0, 0, 0), "EPERM"),
    "socket-vsock": (((41, 198)[_COLUMN], 40, 1, 0), "EAFNOSUPPORT"),
    "socket-vsock-above": (((41, 198)[_COLUMN], _UPPER_HALF + 40, 1, 0), "EAFNOSUPPORT"),
    "socket-alg": (((41, 198)[_COLUMN], 38, 5, 0), "EAFNOSUPPORT"),
    "ioctl-sti": (((16, 29)[_COLUMN], 0, 0x5412, 0), "EPERM"),
    "ioctl-sti-above": (((16, 29)[_COLUMN], 0, _UPPER_HALF + 0x5412, 0), "EPERM"),
    "personality-compat": (((135, 92)[_COLUMN], 0x0400000), "EPERM"),
    "personality-odd": (((135, 92)[_COLUMN], 0x80040000), "EPERM"),
    "personality-asked": (((135, 92)[_COLUMN], 0xFFFFFFFF), "done"),
}
"""Calls of the kernel with their arguments, and what each is answered. Without a filter the answers are others."""


async def calls_in(
    sandbox: Sandbox, spec: SandboxSpec, calls: dict[str, tuple[tuple[int, ...], str]]
) -> dict[str, str]:
    """What the kernel answers to each call, made by a process of its own."""
    lines = "".join(f"{name} {' '.join(map(str, words))}\n" for name, (words, _) in calls.items())
    done = await run_in(sandbox, spec, "python3", "-c", _CALLS, stdin=lines)
    assert done.code == 0, done.stderr
    pairs = (line.partition(" ") for line in done.stdout.splitlines())
    return {name: answer for name, _, answer in pairs}


class IntegritySuite:
    """Exit codes are true, and the kernel refuses what no build or test needs."""

    @pytest.mark.parametrize("forgery", FORGERIES)
    async def test_tested_code_cannot_forge_its_exit_code(
        self, sandbox: Sandbox, spec: SandboxSpec, forgery: str
    ) -> None:
        done = await run_in(sandbox, spec, "python3", "-c", FORGERIES_SCRIPT, forgery)
        assert (done.ending, done.code, done.stdout) == (Ending.EXITED, 9, ""), done

    async def test_tested_code_cannot_rewrite_the_shell_that_it_runs_in(
        self, sandbox: Sandbox, spec: SandboxSpec
    ) -> None:
        done = await run_in(sandbox, spec, "sh", "-c", 'python3 -c "$1"; exit 9', "sh", MEMORY_SCRIPT)
        assert (done.ending, done.code, done.stdout) == (Ending.EXITED, 9, "")

    async def test_files_are_written_and_moved_in_every_place_of_the_cell(
        self, sandbox: Sandbox, spec: SandboxSpec
    ) -> None:
        line = (
            'cd "$1" && mkdir a b && echo x >a/f && mv a/f b/g && mv b a/ && cat a/b/g && echo y >/dev/null && rm -r a'
        )
        for place in (spec.tree, spec.home, "/tmp"):  # noqa: S108  (inside)
            done = await run_in(sandbox, spec, "sh", "-c", line, "sh", place)
            assert (done.code, done.stdout, done.stderr) == (0, "x\n", "")

    async def test_a_command_inherits_its_three_streams_and_nothing_else(
        self, sandbox: Sandbox, spec: SandboxSpec
    ) -> None:
        done = await run_in(sandbox, spec, "sh", "-c", "ls /proc/$$/fd; ls -l /proc/1/fd 2>/dev/null | grep -c eventfd")
        assert set(done.stdout.split()) <= {"0", "1", "2", "10"}

    async def test_the_process_that_reports_an_exit_code_is_not_inside(
        self, sandbox: Sandbox, spec: SandboxSpec
    ) -> None:
        script = "import os; print(os.getppid(), [name for name in os.listdir('/proc') if name.isdigit()])"
        done = await run_in(sandbox, spec, "python3", "-c", script)
        parent, _, others = done.stdout.partition(" ")
        assert parent == "0"
        assert len(ast.literal_eval(others)) <= 3  # the command, and what collects orphans

    async def test_orphans_are_collected(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        script = """
            for i in 1 2 3 4 5; do (sleep 0.1 &) ; done; sleep 0.5
            cat /proc/[0-9]*/stat | grep -c ') Z '
        """
        assert (await run_in(sandbox, spec, "sh", "-c", script)).stdout == "0\n"

    async def test_dangerous_system_calls_are_refused(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        refused = await calls_in(sandbox, spec, REFUSED_CALLS)
        assert refused == {name: answer for name, (_, answer) in REFUSED_CALLS.items()}

    async def test_ptrace_is_permitted_where_the_project_allows_it(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        tried = {name: REFUSED_CALLS[name] for name in ("ptrace", "process_vm_readv", "pidfd_getfd", "unshare")}
        traced = await calls_in(sandbox, msgspec.structs.replace(spec, allow_ptrace=True), tried)
        assert traced == {"ptrace": "done", "process_vm_readv": "done", "pidfd_getfd": "EPERM", "unshare": "EPERM"}
        for forgery in FORGERIES:
            done = await run_in(
                sandbox, msgspec.structs.replace(spec, allow_ptrace=True), "python3", "-c", FORGERIES_SCRIPT, forgery
            )
            assert done.code not in (0,)

    async def test_ordinary_programs_notice_no_filter(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        script = """
            import asyncio, multiprocessing, socket, subprocess, threading
            threads = [threading.Thread(target=lambda: None) for _ in range(4)]
            [thread.start() for thread in threads]
            socket.socketpair()
            for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK): socket.socket(family, socket.SOCK_RAW
                if family == socket.AF_NETLINK else socket.SOCK_STREAM).close()
            async def child(): return await (await asyncio.create_subprocess_exec("true")).wait()
            assert asyncio.run(child()) == 0
            with multiprocessing.get_context("fork").Pool(2) as pool: assert pool.map(abs, [-1, -2]) == [1, 2]
            print("fine")
        """
        done = await run_in(sandbox, spec, "python3", "-c", textwrap.dedent(script))
        assert (done.stdout, done.stderr) == ("fine\n", "")
