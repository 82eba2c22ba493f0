"""What every kind of sandbox must do: a suite for all of them, and more for those that isolate.

Fixtures: `sandbox`, of which `problem()` is empty; `spec`, whose places are folders of their own that exist.
A command inside finds sh, bash, coreutils, git and python3 on an ordinary PATH.
"""

import asyncio
import contextlib
import os
import re
import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from genba.domain.ports import Sandbox, SandboxHandle
from genba.domain.processes import Command, Ending, Exit
from genba.domain.sessions.sandbox import Bind, EgressPort, Overlay, SandboxLimits, SandboxSpec

PATH = "/usr/local/bin:/usr/bin:/bin"
PATIENCE_SECONDS = 60.0
_ANYTHING = 100_000


def command_in(spec: SandboxSpec, *argv: str, **changes: Any) -> Command:
    usual = Command(
        argv=argv,
        workdir=spec.tree,
        environment={"PATH": PATH},
        timeout_seconds=PATIENCE_SECONDS,
        idle_seconds=PATIENCE_SECONDS,
        mark=f"mark-{spec.run}",
    )
    return msgspec.structs.replace(usual, **changes)


async def run_in(sandbox: Sandbox, spec: SandboxSpec, *argv: str, **changes: Any) -> Exit:
    async with opened(sandbox, spec) as handle:
        return await handle.run(command_in(spec, *argv, **changes), unheard)


@asynccontextmanager
async def opened(sandbox: Sandbox, spec: SandboxSpec) -> AsyncIterator[SandboxHandle]:
    handle = await sandbox.open(spec)
    try:
        yield handle
    finally:
        await handle.close()


def unheard(_stream: str, _line: str) -> None:
    """A listener that ignores output."""


def living_with(word: str) -> list[int]:
    """Processes of this machine that have the word on their command line, dead ones left out."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            if state not in "ZX" and word.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


async def until_gone(word: str) -> None:
    """Wait until no process has the word on its command line; fail when one still has it after a while."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while left := living_with(word):
        assert time.monotonic() < deadline, f"still alive: {left}"
        await asyncio.sleep(0.02)


def at(place: str, name: str = "") -> Path:
    return Path(place, name)


def is_there(place: str, name: str) -> bool:
    return os.path.exists(f"{place}/{name}")  # noqa: PTH110  (in a closed folder there is nothing to see)


def another(spec: SandboxSpec, name: str) -> SandboxSpec:
    """A second sandbox beside a first one."""
    beside = Path(spec.tree).parent / name
    for folder in ("tree", "home", "sandbox"):
        (beside / folder).mkdir(parents=True)
    places = {"folder": str(beside / "sandbox"), "tree": str(beside / "tree"), "home": str(beside / "home")}
    return msgspec.structs.replace(spec, run=f"{spec.run}-{name}", **places)


class UnwalledSuite:
    """What holds with a sandbox and without: commands in it behave as commands do."""

    async def test_a_command_works_in_the_tree_and_has_its_own_home(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        done = await run_in(sandbox, spec, "sh", "-c", "pwd; echo work > made; echo kept > ~/kept; echo $HOME")
        assert (done.ending, done.code, done.stderr) == (Ending.EXITED, 0, "")
        assert done.stdout.split() == [spec.tree, spec.home]
        assert at(spec.tree, "made").read_text() == "work\n"
        assert at(spec.home, "kept").stat().st_uid == os.getuid()

    async def test_streams_and_exit_codes_pass_through(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        on_output: list[tuple[str, str]] = []
        lines: list[bytes] = []
        async with opened(sandbox, spec) as handle:
            command = command_in(spec, "sh", "-c", "cat; echo bad >&2; exit 7", stdin="one\ntwo\n", lines=lines.append)
            done = await handle.run(command, lambda stream, line: on_output.append((stream, line)))
        assert (done.ending, done.code, done.stdout, done.stderr) == (Ending.EXITED, 7, "one\ntwo\n", "bad\n")
        assert lines == [b"one", b"two"]
        assert on_output[0][0] == "started"
        apart = {(stream, line) for stream, text in on_output for line in text.split("\n")}
        assert {("stdout", "one"), ("stdout", "two"), ("stderr", "bad")} <= apart
        assert done.violations == ()

    async def test_output_is_kept_of_a_command_that_reads_no_stdin(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        async with opened(sandbox, spec) as handle:
            for _ in range(6):
                command = command_in(spec, "sh", "-c", "echo out; echo bad >&2", stdin="x" * 5000)
                done = await handle.run(command, unheard)
                assert (done.ending, done.code, done.stdout, done.stderr) == (Ending.EXITED, 0, "out\n", "bad\n")

    async def test_a_signal_is_reported_as_a_signal(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        for name, number in (("KILL", 9), ("TERM", 15), ("SEGV", 11)):
            done = await run_in(sandbox, spec, "sh", "-c", f"kill -{name} $$")
            assert (done.ending, done.code) == (Ending.EXITED, -number)

    async def test_variables_arrive_as_they_are(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        value = "two\nlines, 'quotes' \"and\" $HOME \\ ü"
        done = await run_in(
            sandbox,
            spec,
            "python3",
            "-c",
            "import os; print(os.environ['ODD'])",
            environment={"PATH": PATH, "ODD": value},
        )
        assert done.stdout == value + "\n"

    async def test_garbage_and_long_lines_pass_through(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        lengths: list[int] = []
        script = "import sys; sys.stdout.buffer.write(b'\\xff\\x00' * 2000000 + b'\\nlast\\n')"
        done = await run_in(sandbox, spec, "python3", "-c", script, lines=lambda line: lengths.append(len(line)))
        assert done.code == 0
        assert lengths == [4_000_000, 4]

    async def test_a_command_that_never_ends_is_ended(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        word = f"{_ANYTHING}.{secrets.randbelow(10**9)}"
        for changes, ending in (
            ({"timeout_seconds": 1.0}, Ending.TIMED_OUT),
            ({"idle_seconds": 1.0}, Ending.WENT_SILENT),
        ):
            done = await run_in(sandbox, spec, "sh", "-c", f"trap '' TERM; sleep {word} & sleep {word}", **changes)
            assert done.ending is ending
            assert living_with(word) == []

    async def test_a_command_that_is_not_there_never_ran(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        done = await run_in(sandbox, spec, "there-is-no-such-command")
        assert done.never_ran
        assert "there-is-no-such-command" in done.stderr

    async def test_nothing_outlives_a_command(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        word = f"{_ANYTHING}.{secrets.randbelow(10**9)}"
        script = f"setsid sleep {word} & (trap '' TERM HUP; exec sleep {word}) & echo begun; exit 0"
        done = await run_in(sandbox, spec, "bash", "-c", script)
        assert (done.code, done.stdout) == (0, "begun\n")
        assert living_with(word) == []

    async def test_who_is_asked_to_stop_leaves_nothing(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        word = f"{_ANYTHING}.{secrets.randbelow(10**9)}"
        begun = asyncio.Event()
        async with opened(sandbox, spec) as handle:
            command = command_in(spec, "sh", "-c", f"echo begun; sleep {word}", lines=lambda _: begun.set())
            running = asyncio.create_task(handle.run(command, unheard))
            await asyncio.wait_for(begun.wait(), PATIENCE_SECONDS)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            assert running.cancelled()
            assert living_with(word) == []

    async def test_a_sweep_ends_what_carries_the_mark(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        word = f"{_ANYTHING}.{secrets.randbelow(10**9)}"
        begun = asyncio.Event()
        async with opened(sandbox, spec) as handle:
            command = command_in(spec, "sh", "-c", f"echo begun; sleep {word}", lines=lambda _: begun.set())
            running = asyncio.create_task(handle.run(command, unheard))
            await asyncio.wait_for(begun.wait(), PATIENCE_SECONDS)
            assert await handle.sweep(command.mark) > 0
            assert (await asyncio.wait_for(running, PATIENCE_SECONDS)).code != 0
            assert await handle.sweep(command.mark) == 0
        assert living_with(word) == []

    async def test_a_gate_leads_to_its_handler_both_ways(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(65536):
                writer.write(data.upper())
                await writer.drain()

        gated = msgspec.structs.replace(spec, egress_ports=(EgressPort(name="shout", port=3129, serve=shout),))
        async with opened(sandbox, gated) as handle:
            for count in (3, 1_000_000):
                done = await handle.run(
                    command_in(gated, "python3", "-c", _SAYS, str(handle.ports["shout"]), str(count)), unheard
                )
                assert (done.code, done.stdout, done.stderr) == (0, f"{count} A\n", "")

    async def test_a_handler_that_fails_closes_its_connection_and_nothing_else(
        self, sandbox: Sandbox, spec: SandboxSpec
    ) -> None:
        async def leave(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
            raise ConnectionResetError

        gated = msgspec.structs.replace(spec, egress_ports=(EgressPort(name="broken", port=3129, serve=leave),))
        async with opened(sandbox, gated) as handle:
            for _ in range(2):
                done = await handle.run(
                    command_in(gated, "python3", "-c", _SAYS, str(handle.ports["broken"]), "1"), unheard
                )
                assert done.code in (0, 1)
                assert "A" not in done.stdout

    async def test_closing_twice_is_safe(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        handle = await sandbox.open(spec)
        await handle.run(command_in(spec, "true"), unheard)
        await handle.close()
        await handle.close()


_SAYS = """
import socket, sys, threading
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 30)
count = int(sys.argv[2])
def talk():
    connection.sendall(b"a" * count)
    connection.shutdown(socket.SHUT_WR)
threading.Thread(target=talk).start()
received = b""
while data := connection.recv(65536):
    received += data
print(len(received), received[:1].decode())
"""


class SandboxSuite(UnwalledSuite):
    """The tree can be written and nothing else; everything of the host that the spec does not name is away."""

    async def test_nothing_but_the_places_of_the_cell_can_be_written(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        outside = at(spec.tree).parent / "outside"
        outside.mkdir()
        word = f"planted-{secrets.token_hex(8)}"
        places = [
            "/", "/usr", "/usr/local/bin", "/etc", "/var", "/home", "/root", "/opt", "/dev", "/sys", "/proc",
            str(outside), str(outside.parent), str(Path.home()),
        ]  # fmt: skip
        script = f'for place in "$@"; do mkdir -p $place; echo x > $place/{word}; done; echo x > /tmp/{word}; exit 0'
        done = await run_in(sandbox, spec, "sh", "-c", script, "sh", *places)
        assert done.code == 0
        assert [place for place in (*places, "/tmp") if is_there(place, word)] == []  # noqa: S108

    async def test_nothing_of_the_kernel_can_be_changed(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        done = await run_in(sandbox, spec, "python3", "-c", _WRITABLE)
        assert (done.stdout, done.stderr) == ("[]\n", "")

    async def test_files_of_the_host_cannot_be_read(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        secret = at(spec.tree).parent / "secret"
        secret.write_text("the secret")
        readable = "".join(f"cat {path}; " for path in (secret, "/etc/shadow", "/etc/gshadow", "/etc/sudoers"))
        done = await run_in(sandbox, spec, "sh", "-c", f"ls -A {secret.parent}; {readable} ls -A ~root/.ssh /root/.ssh")
        assert "secret" not in done.stdout
        assert "root:" not in done.stdout
        assert set(done.stdout.split()) <= {at(place).name for place in (spec.tree, spec.home)}

    async def test_the_home_of_the_user_is_empty(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        done = await run_in(sandbox, spec, "ls", "-A", str(Path.home()))
        shown = (spec.tree, spec.home, *spec.readable, *spec.writable)
        leading = {
            at(place).relative_to(Path.home()).parts[0] for place in shown if at(place).is_relative_to(Path.home())
        }
        assert set(done.stdout.split("\n")) - {""} <= leading

    async def test_a_link_out_of_the_tree_leads_nowhere(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        secret = at(spec.tree).parent / "secret"
        secret.write_text("the secret")
        at(spec.tree, "link").symlink_to(secret)
        at(spec.tree, "folder").symlink_to(secret.parent)
        done = await run_in(sandbox, spec, "sh", "-c", "cat link folder/secret; echo x > link; echo x > folder/secret")
        assert done.stdout == ""
        assert secret.read_text() == "the secret"

    async def test_processes_of_the_host_cannot_be_seen(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        word = f"{_ANYTHING}.{secrets.randbelow(10**9)}"
        neighbour = await asyncio.create_subprocess_exec("sleep", word)
        try:
            done = await run_in(sandbox, spec, "sh", "-c", "cat /proc/[0-9]*/cmdline; ls -d /proc/[0-9]*; kill -9 -1")
        finally:
            neighbour.kill()
            await neighbour.wait()
        assert word not in done.stdout
        assert len(re.findall(r"/proc/[0-9]+$", done.stdout, re.MULTILINE)) < 12

    async def test_the_environment_of_genba_stays_outside(
        self, sandbox: Sandbox, spec: SandboxSpec, monkeypatch: Any
    ) -> None:
        secret = secrets.token_hex(16)
        monkeypatch.setenv("GENBA_TEST_SECRET", secret)
        done = await run_in(sandbox, spec, "sh", "-c", "env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'")
        assert f"HOME={spec.home}" in done.stdout
        assert secret not in done.stdout

    async def test_a_variable_stands_on_no_command_line(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        secret = secrets.token_hex(16)
        seen: list[int] = []
        script = "echo begun; until [ -e go ]; do sleep 0.02; done"

        def look(_line: bytes) -> None:
            seen.extend(living_with(secret))
            at(spec.tree, "go").touch()

        environment = {"PATH": PATH, "SECRET": secret}
        done = await run_in(sandbox, spec, "sh", "-c", script, environment=environment, lines=look)
        assert (done.code, seen) == (0, [])

    async def test_the_loopback_of_the_host_is_out_of_reach(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_server(("::1", 0), family=socket.AF_INET6) as six,
        ):
            ports = [str(one.getsockname()[1]) for one in (server, six)]
            done = await run_in(sandbox, spec, "python3", "-c", _CONNECTS, "tcp", *ports)
        assert (done.stdout, done.stderr) == ("refused\n" * 4, "")

    async def test_sockets_of_the_host_are_out_of_reach(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        name = f"genba-{secrets.token_hex(8)}"
        path = f"/tmp/{name}.sock"  # noqa: S108  (a path that a socket can have)
        with socket.socket(socket.AF_UNIX) as named, socket.socket(socket.AF_UNIX) as abstract:
            try:
                named.bind(path)
                named.listen()
                abstract.bind(f"\0{name}")
                abstract.listen()
                done = await run_in(sandbox, spec, "python3", "-c", _CONNECTS, "unix", path, f"@{name}")
            finally:
                at(path).unlink(missing_ok=True)
        assert (done.stdout, done.stderr) == ("refused\n" * 2, "")

    async def test_only_the_gates_lead_out(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"hello")

        egress_ports = (EgressPort(name="one", port=3128, serve=greet), EgressPort(name="two", port=3129, serve=greet))
        gated = msgspec.structs.replace(spec, egress_ports=egress_ports)
        async with opened(sandbox, gated) as handle:
            assert handle.ports == {"one": 3128, "two": 3129}
            done = await handle.run(
                command_in(gated, "python3", "-c", _CONNECTS, "tcp", "3128", "3129", "3130", "22"), unheard
            )
        assert done.stdout.split() == ["connected", "refused"] * 2 + ["refused"] * 4

    async def test_there_are_no_rights_to_gain(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        script = """
            grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status
            unshare --user true && echo unshared
            mount -t tmpfs none /tmp && echo mounted
            chroot / true && echo chrooted
            ls /sys/class/net
        """
        done = await run_in(sandbox, spec, "sh", "-c", script)
        nothing = "0" * 16
        result = {tuple(line.split()) for line in done.stdout.splitlines()} - {("lo",)}
        assert result == {("CapEff:", nothing), ("CapBnd:", nothing), ("NoNewPrivs:", "1")}

    async def test_a_daemon_without_a_name_is_gone_too(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        word = f"{_ANYTHING}.{secrets.randbelow(10**9)}"
        script = f"setsid env -i /usr/bin/sleep {word} <&- >&- 2>&- & for i in 1 2 3; do true; done; echo begun"
        done = await run_in(sandbox, spec, "bash", "-c", script)
        assert (done.code, done.stdout) == (0, "begun\n")
        assert living_with(word) == []

    async def test_two_cells_do_not_see_each_other(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        one, two = another(spec, "one"), another(spec, "two")
        word = f"{_ANYTHING}.{secrets.randbelow(10**9)}"
        begun = asyncio.Event()
        async with opened(sandbox, one) as first, opened(sandbox, two) as second:
            script = f"echo mine > /tmp/mine; echo mine > mine; echo begun; sleep {word}"
            command = command_in(one, "sh", "-c", script, lines=lambda _: begun.set())
            running = asyncio.create_task(first.run(command, unheard))
            await asyncio.wait_for(begun.wait(), PATIENCE_SECONDS)
            look = f"cat {one.tree}/mine /tmp/mine; ls {one.tree} {one.home}; cat /proc/[0-9]*/cmdline"
            done = await second.run(command_in(two, "sh", "-c", look), unheard)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        assert "mine" not in done.stdout.replace(look, "").replace(look.replace(" ", "\0"), "")
        assert word not in done.stdout

    async def test_what_is_only_read_is_never_written(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        beside = at(spec.tree).parent / "shared"
        beside.mkdir()
        (beside / "known").write_text("known")
        at(spec.tree, "guarded").mkdir()
        at(spec.tree, "guarded/known").write_text("known")
        shown = msgspec.structs.replace(spec, readable=(*spec.readable, str(beside), f"{spec.tree}/guarded"))
        script = f"cat {beside}/known guarded/known; echo x > {beside}/known; echo x > guarded/known; rm -rf guarded"
        done = await run_in(sandbox, shown, "sh", "-c", script)
        assert done.stdout == "knownknown"
        assert [path.read_text() for path in (beside / "known", at(spec.tree, "guarded/known"))] == ["known"] * 2

    async def test_binds_are_laid_over_all_the_rest(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        beside = at(spec.tree).parent / "beside"
        beside.mkdir()
        (beside / "file").write_text("other")
        (beside / "folder").mkdir()
        at(spec.tree, "file").write_text("own")
        at(spec.tree, "folder").mkdir()
        binds = (
            Bind(source=str(beside / "file"), target=f"{spec.tree}/file"),
            Bind(source=str(beside / "folder"), target=f"{spec.tree}/folder", writable=True),
        )
        bound = msgspec.structs.replace(spec, binds=binds)
        script = "cat file; echo x > file; rm -f file; mv file gone; echo made > folder/made"
        done = await run_in(sandbox, bound, "sh", "-c", script)
        assert done.stdout == "other"
        assert (at(spec.tree, "file").read_text(), (beside / "file").read_text()) == ("own", "other")
        assert (beside / "folder/made").read_text() == "made\n"
        assert not at(spec.tree, "folder/made").exists()

    async def test_git_works_inside(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        script = """
            git init -q . && git config user.name A && git config user.email a@localhost
            echo a > a && git add a && git commit -q -m A && git log --format=%s
        """
        done = await run_in(sandbox, spec, "sh", "-ec", script)
        assert (done.code, done.stdout, done.stderr) == (0, "A\n", "")


_WRITABLE = """
import os
found = []
for place in ("/proc", "/sys"):
    for root, folders, files in os.walk(place):
        if root == "/proc":
            folders[:] = [name for name in folders if not name.isdigit() and name not in ("self", "thread-self")]
        for name in files:
            path = os.path.join(root, name)
            if os.path.realpath(path).startswith("/dev/"):
                continue
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                found.append(path)
            except OSError:
                pass
print([path for path in found if not os.path.samefile(path, "/dev/null")][:5])
"""

_CONNECTS = """
import socket, sys
kind, *targets = sys.argv[1:]
def tries(target):
    if kind == "unix":
        yield socket.AF_UNIX, target.replace("@", "\\0")
    else:
        yield socket.AF_INET, ("127.0.0.1", int(target))
        yield socket.AF_INET6, ("::1", int(target))
for target in targets:
    for family, address in tries(target):
        try:
            with socket.socket(family) as one:
                one.settimeout(10)
                one.connect(address)
                print("connected")
        except OSError:
            print("refused")
"""


_BOMB = """
import os, time
for _ in range(400):  # a bomb that no machine would feel, should there be no limit at all
    try:
        if os.fork() == 0:
            break
    except OSError:
        time.sleep(0.01)
time.sleep(60)
"""


class LimitsSuite:
    """What passes a limit is ended, and the limit is named."""

    async def test_who_takes_too_much_memory_is_ended(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        limits = SandboxLimits(memory_mb=64)
        script = "import time\nheld = []\nwhile True:\n    held.append(b'x' * 4_000_000); time.sleep(0.02)"
        done = await run_in(sandbox, msgspec.structs.replace(spec, limits=limits), "python3", "-c", script)
        assert [found.kind for found in done.violations] == ["memory"]
        assert done.violations[0].detail == "used more than its 64 MB of memory (sandbox.limits.memory_mb)"
        assert done.code != 0

    async def test_children_count_towards_the_memory_of_all(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        limits = SandboxLimits(memory_mb=96)
        hog = "import time; held = bytearray(b'x' * 40_000_000); time.sleep(60)"
        script = f'for i in 1 2 3 4 5 6; do python3 -c "{hog}" & done; wait'
        done = await run_in(sandbox, msgspec.structs.replace(spec, limits=limits), "bash", "-c", script)
        assert [found.kind for found in done.violations] == ["memory"]

    async def test_a_fork_bomb_is_ended(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        limits = SandboxLimits(processes=32)
        done = await run_in(sandbox, msgspec.structs.replace(spec, limits=limits), "python3", "-c", _BOMB)
        assert [found.kind for found in done.violations] == ["processes"]
        assert "32 processes and threads (sandbox.limits.processes)" in done.violations[0].detail

    async def test_who_writes_too_much_is_ended(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        limits = SandboxLimits(disk_mb=20)
        script = "i=0; while true; do i=$((i+1)); head -c 2000000 /dev/zero > part-$i; sleep 0.02; done"
        done = await run_in(sandbox, msgspec.structs.replace(spec, limits=limits), "bash", "-c", script)
        assert [found.kind for found in done.violations] == ["disk"]
        assert done.violations[0].detail == "wrote more than its 20 MB to disk (sandbox.limits.disk_mb)"

    async def test_holes_in_files_count_as_written(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        limits = SandboxLimits(disk_mb=20)
        script = "for i in 1 2 3 4; do truncate -s 9M ~/part-$i part-$i; done; sleep 60"
        done = await run_in(sandbox, msgspec.structs.replace(spec, limits=limits), "bash", "-c", script)
        assert [found.kind for found in done.violations] == ["disk"]

    @pytest.mark.parametrize("place", ["tree", "home", "/tmp"])  # noqa: S108  (of the sandbox)
    async def test_who_makes_too_many_files_is_ended(self, sandbox: Sandbox, spec: SandboxSpec, place: str) -> None:
        limits = SandboxLimits(memory_mb=512, files=300)
        folder = {"tree": spec.tree, "home": spec.home}.get(place, place)
        script = f"mkdir {folder}/d; for i in $(seq 400); do : > {folder}/d/f-$i; done; sleep 60"
        done = await run_in(sandbox, msgspec.structs.replace(spec, limits=limits), "bash", "-c", script)
        assert [found.kind for found in done.violations] == ["files"]
        expected = "made more than its 300 files, folders and links (sandbox.limits.files)"
        assert done.violations[0].detail == expected

    async def test_a_walk_over_what_was_written_follows_no_link(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        limits = SandboxLimits(disk_mb=30, files=200)
        script = "ln -s /usr a; ln -s / b; mkdir c; ln -s .. c/d; sleep 3.5; echo done"
        done = await run_in(sandbox, msgspec.structs.replace(spec, limits=limits), "bash", "-c", script)
        assert (done.stdout, done.violations) == ("done\n", ())

    async def test_work_within_its_limits_is_left_alone(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        limits = SandboxLimits(memory_mb=256, processes=64, disk_mb=64, cpus=1)
        script = "head -c 5000000 /dev/zero > part; for i in 1 2 3 4 5; do sleep 0.1 & done; wait; sleep 0.5; echo done"
        done = await run_in(sandbox, msgspec.structs.replace(spec, limits=limits), "bash", "-c", script)
        assert (done.code, done.stdout, done.violations) == (0, "done\n", ())


class OverlaySuite:
    """A working tree that is a thin layer over a template. Fixture besides: `overlay`, on a file system that can."""

    async def test_the_layer_keeps_the_changes_and_the_template_none(
        self, sandbox: Sandbox, spec: SandboxSpec, overlay: Overlay
    ) -> None:
        lower, upper = at(overlay.lower), at(overlay.upper)
        (lower / "folder").mkdir()
        for name in ("same", "changed", "removed", "folder/old"):
            (lower / name).write_text(name)
        layered = msgspec.structs.replace(spec, overlay=overlay)
        script = "cat same; echo new > changed; rm removed; echo made > folder/made; ls -m . folder"
        done = await run_in(sandbox, layered, "sh", "-c", script)
        assert (done.code, done.stdout) == (0, "same.:\nchanged, folder, same\n\nfolder:\nmade, old\n")
        assert (lower / "changed").read_text() == "changed"
        assert (lower / "removed").exists()
        assert sorted(path.name for path in upper.iterdir()) == ["changed", "folder", "removed"]
        assert (upper / "changed").read_text() == "new\n"
        assert (upper / "removed").is_char_device()
        assert (upper / "folder/made").read_text() == "made\n"
        assert list(at(spec.tree).iterdir()) == []

    async def test_the_next_command_finds_what_the_last_one_left(
        self, sandbox: Sandbox, spec: SandboxSpec, overlay: Overlay
    ) -> None:
        layered = msgspec.structs.replace(spec, overlay=overlay)
        async with opened(sandbox, layered) as handle:
            for number in range(5):
                done = await handle.run(command_in(layered, "sh", "-c", f"cat made; echo {number} > made"), unheard)
                assert done.stdout == (f"{number - 1}\n" if number else "")
        assert await self._read_again(sandbox, layered) == "4\n"

    async def _read_again(self, sandbox: Sandbox, layered: SandboxSpec) -> str:
        return (await run_in(sandbox, layered, "cat", "made")).stdout

    async def test_the_layers_themselves_are_out_of_reach(
        self, sandbox: Sandbox, spec: SandboxSpec, overlay: Overlay
    ) -> None:
        layered = msgspec.structs.replace(spec, overlay=overlay)
        script = (
            f"for place in {overlay.lower} {overlay.upper} {overlay.work}; do echo x > $place/planted; done; exit 0"
        )
        await run_in(sandbox, layered, "sh", "-c", script)
        assert list(at(overlay.lower).iterdir()) == []
        assert list(at(overlay.upper).iterdir()) == []
