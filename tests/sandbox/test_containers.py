import ast
import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from genba.connections.processes.supervisor import ProcessSupervisor
from genba.connections.sandbox.containers.containers import ContainerSandbox
from genba.domain.errors import NotFoundError, UnrecoverableError
from genba.domain.ports import Sandbox
from genba.domain.processes import Command, Ending, Exit
from genba.domain.sessions.sandbox import (
    Bind,
    Dialer,
    EgressPort,
    Entry,
    Overlay,
    SandboxKind,
    SandboxLimits,
    SandboxSpec,
)
from genba.testing.sandbox_conformance import _WRITABLE, LimitsSuite, SandboxSuite
from genba.testing.sandbox_integrity import IntegritySuite
from tests.sandbox.engines import Engine, engine_of

PATH = "/usr/local/bin:/usr/bin:/bin"
DEADLINE_SECONDS = 60.0


@pytest.fixture(scope="session", params=[SandboxKind.DOCKER, SandboxKind.PODMAN])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with engine_of(request.param, shared) as started:
        yield started


@pytest.fixture
def sandbox(engine: Engine) -> Sandbox:
    return engine.sandbox()


class TestContainers(SandboxSuite):
    async def test_nothing_of_the_kernel_can_be_changed(  # type: ignore[override]  # pytest gives what is named
        self, sandbox: Sandbox, spec: SandboxSpec, engine: Engine
    ) -> None:
        if engine.kind is not SandboxKind.DOCKER:
            await super().test_nothing_of_the_kernel_can_be_changed(sandbox, spec)
            return
        done = await run_in(engine, spec, "python3", "-c", _WRITABLE)
        assert done.stderr == ""
        assert set(ast.literal_eval(done.stdout)) <= {f"/proc/pressure/{name}" for name in ("cpu", "io", "memory")}


class TestIntegrity(IntegritySuite):
    pass


class TestLimits(LimitsSuite):
    pass


def command(spec: SandboxSpec, *argv: str, **changes: Any) -> Command:
    usual = Command(
        argv=argv,
        workdir=spec.tree,
        environment={"PATH": PATH},
        timeout_seconds=DEADLINE_SECONDS,
        idle_seconds=DEADLINE_SECONDS,
        mark=f"mark-{spec.run}",
    )
    return msgspec.structs.replace(usual, **changes)


def inside(folder: str, name: str) -> Path:
    return Path(folder, name)


def unheard(_stream: str, _line: str) -> None:
    """Nothing listens."""


async def run_in(engine: Engine, spec: SandboxSpec, *argv: str, **changes: Any) -> Exit:
    handle = await engine.sandbox().open(spec)
    try:
        return await handle.run(command(spec, *argv, **changes), unheard)
    finally:
        await handle.close()


def left_of(engine: Engine, spec: SandboxSpec) -> str:
    """The containers of a run, living or dead."""
    return engine.ask("ps", "--all", "--quiet", "--filter", f"label=genba.run={spec.run}")


async def test_what_is_written_in_the_tree_belongs_to_the_caller(engine: Engine, spec: SandboxSpec) -> None:
    ended = await run_in(engine, spec, "sh", "-c", "echo made > made.txt; mkdir -p a/b; touch ~/kept")
    assert (ended.ending, ended.code, ended.stderr) == (Ending.EXITED, 0, "")
    made = inside(spec.tree, "made.txt")
    assert made.read_text() == "made\n"
    assert {made.stat().st_uid, inside(spec.tree, "a/b").stat().st_uid} == {os.getuid()}
    assert inside(spec.home, "kept").exists()
    assert left_of(engine, spec) == ""


async def test_the_instance_has_no_right_that_could_widen_its_sandbox(engine: Engine, spec: SandboxSpec) -> None:
    tried = """
        grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status
        for place in / /etc /usr /var /root /home /opt /sys /proc/sys/kernel; do
            touch $place/planted && echo wrote $place
        done
        cat /etc/shadow && echo read
        unshare --user true && echo unshared
        mount -t tmpfs none /home && echo mounted
        ls /sys/class/net
    """
    ended = await run_in(engine, spec, "sh", "-c", tried)
    lines = [line.split() for line in ended.stdout.splitlines()]
    assert sorted(lines) == [
        ["CapBnd:", "0000000000000000"],
        ["CapEff:", "0000000000000000"],
        ["NoNewPrivs:", "1"],
        ["Seccomp:", "2"],
        ["lo"],
    ]


async def test_variables_arrive_whole_and_stand_on_no_command_line(engine: Engine, spec: SandboxSpec) -> None:
    secret = "one line\nand 'another' \"$HOME\" \\ `id`"
    seen: list[str] = []

    def look(stream: str, line: str) -> None:
        if line == "running":
            args = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.parent.exists()]
            seen.extend(arg.decode(errors="replace") for arg in args if b"and 'another'" in arg)
            inside(spec.tree, "go").touch()

    waits = (
        'echo running; until [ -e go ]; do sleep 0.05; done; printf %s "$SECRET" >said; printf %s "$DOCKER_HOST" >host'
    )
    environment = {
        "PATH": PATH,
        "SECRET": secret,
        "DOCKER_HOST": "unix:///nowhere",
        "LD_PRELOAD": "",
        "HOME": "/nowhere",
    }
    handle = await engine.sandbox().open(spec)
    try:
        ended = await handle.run(command(spec, "sh", "-c", waits, environment=environment), look)
    finally:
        await handle.close()
    assert ended.code == 0
    assert inside(spec.tree, "said").read_text() == secret
    assert inside(spec.tree, "host").read_text() == "unix:///nowhere"
    assert seen == []


async def test_paths_may_have_commas_colons_quotes_and_spaces(
    engine: Engine, spec: SandboxSpec, tmp_path: Path
) -> None:
    tree = tmp_path / 'a tree, "quoted": x=y,readonly'
    tree.mkdir()
    odd = msgspec.structs.replace(spec, tree=str(tree))
    ended = await run_in(engine, odd, "sh", "-c", "pwd; touch here")
    assert (ended.stdout, ended.stderr) == (f"{tree}\n", "")
    assert (tree / "here").exists()


async def test_binds_lie_over_the_tree_and_what_is_readable_is_not_written(
    engine: Engine, spec: SandboxSpec, tmp_path: Path
) -> None:
    shown, hidden = tmp_path / "shown", tmp_path / "hidden"
    shown.mkdir()
    (shown / "fact").write_text("fact\n")
    hidden.write_text("over\n")
    inside(spec.tree, "config").write_text("under\n")
    inside(spec.tree, "locked").mkdir()
    binds = (
        Bind(source=str(hidden), target=f"{spec.tree}/config"),
        Bind(source="/dev/null", target=f"{spec.tree}/config"),
        Bind(source=str(hidden), target=f"{spec.tree}/config"),
    )
    readable = (str(shown), f"{spec.tree}/locked", "/does/not/exist")
    laid = msgspec.structs.replace(spec, binds=binds, readable=readable)
    write = f"for f in config {shown}/new locked/new; do echo x > $f && echo wrote $f; done"
    line = f"cat config {shown}/fact; {write}; touch free"
    ended = await run_in(engine, laid, "sh", "-c", line)
    assert ended.stdout == "over\nfact\n"
    assert inside(spec.tree, "free").exists()


@pytest.fixture
def other_file_system(tmp_path: Path) -> Iterator[Path]:
    below = tmp_path / "shown/below"
    below.mkdir(parents=True)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "none", str(below)], check=False).returncode:
        pytest.skip("not run: only root, and not every root, can mount another file system")
    yield below
    subprocess.run(["umount", str(below)], check=True)


async def test_a_file_system_below_a_readable_folder_is_not_written_either(
    engine: Engine, spec: SandboxSpec, other_file_system: Path
) -> None:
    (other_file_system / "fact").write_text("fact\n")
    shown = msgspec.structs.replace(spec, readable=(str(other_file_system.parent),))
    line = f"cat {other_file_system}/fact; echo x > {other_file_system}/planted"
    ended = await run_in(engine, shown, "sh", "-c", line)
    assert (ended.stdout, ended.code == 0) == ("fact\n", False)
    assert not (other_file_system / "planted").exists()


async def test_a_port_forwards_both_ways_and_passes_on_the_end_of_input(engine: Engine, spec: SandboxSpec) -> None:
    async def serve(reader: Any, writer: Any) -> None:
        output = await reader.read()
        writer.write(b"%d bytes" % len(output))
        await writer.drain()

    size = 3_000_000
    gated = msgspec.structs.replace(spec, egress_ports=(EgressPort(name="counter", port=4711, serve=serve),))
    talk = (
        "import socket; s = socket.create_connection(('127.0.0.1', 4711));"
        f"s.sendall(b'x' * {size}); s.shutdown(socket.SHUT_WR); print(s.recv(100).decode())"
    )
    handle = await engine.sandbox().open(gated)
    try:
        assert handle.ports == {"counter": 4711}
        ended = await handle.run(command(gated, "/usr/bin/python3", "-c", talk), unheard)
        assert (ended.stdout, ended.stderr) == (f"{size} bytes\n", "")
        names = await handle.run(
            command(gated, "sh", "-c", "ls /gates; ls /sys/class/net; ls -d /proc/[0-9]*"), unheard
        )
        assert "4711" not in names.stdout
        assert left_of(engine, gated) != ""
    finally:
        await handle.close()
        await handle.close()
    assert left_of(engine, gated) == ""


async def test_a_service_is_reached_from_outside_and_reaches_nothing_there(engine: Engine, spec: SandboxSpec) -> None:
    script = (
        "import socket\ntry:\n    socket.create_connection(('127.0.0.1', {port}), 5)\n    print('reached the host')\n"
        "except OSError:\n    pass\nserver = socket.create_server(('127.0.0.1', {port}))\n"
        "print('listening', flush=True)\nprint(server.accept()[0].recv(100).decode())\n"
    )
    dialers: list[Dialer] = []
    listening = asyncio.Event()
    served = msgspec.structs.replace(spec, entry=Entry(opened=dialers.append))
    with socket.create_server(("127.0.0.1", 0)) as of_the_host:
        port = of_the_host.getsockname()[1]
        handle = await engine.sandbox().open(served)
        try:
            asked = command(served, "/usr/bin/python3", "-c", script.format(port=port))
            asked = msgspec.structs.replace(asked, lines=lambda _: listening.set())
            running = asyncio.create_task(handle.run(asked, unheard))
            await asyncio.wait_for(listening.wait(), 120)
            with await asyncio.to_thread(dialers[0].take) as reached:
                reached.connect(("::ffff:127.0.0.1", port))
                reached.sendall(b"hello")
                done = await running
        finally:
            await handle.close()
    assert done.stdout.splitlines() == ["listening", "hello"]
    with pytest.raises(ConnectionRefusedError):
        dialers[0].take()


async def test_limits_are_named_when_they_are_run_into(engine: Engine, spec: SandboxSpec) -> None:
    limits = SandboxLimits(memory_mb=128, processes=40, disk_mb=32, cpus=4096)
    limited = msgspec.structs.replace(spec, limits=limits)
    hogs = {
        "memory": ("/usr/bin/python3", "-c", "x = bytearray(1 << 30); import time; time.sleep(60)"),
        "processes": ("bash", "-c", ":(){ :|:& };:; sleep 60"),
        "disk": ("sh", "-c", "head -c 64000000 /dev/zero > big; sleep 60"),
    }
    for kind, hog in hogs.items():
        ended = await run_in(engine, limited, *hog)
        assert [violation.kind for violation in ended.violations] == [kind]
        assert ended.code != 0
    assert left_of(engine, spec) == ""


async def test_nothing_is_left_after_a_timeout_or_a_cancelled_run(engine: Engine, spec: SandboxSpec) -> None:
    stubborn = ("bash", "-c", "trap '' TERM; setsid env -i sleep 300 & echo up; while :; do sleep 300; done")
    ended = await run_in(engine, spec, *stubborn, timeout_seconds=2)
    assert ended.ending is Ending.TIMED_OUT
    assert left_of(engine, spec) == ""
    up = asyncio.Event()
    handle = await engine.sandbox().open(spec)
    task = asyncio.create_task(
        handle.run(command(spec, *stubborn), lambda _stream, line: up.set() if line == "up" else None)
    )
    await asyncio.wait_for(up.wait(), DEADLINE_SECONDS)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert left_of(engine, spec) == ""
    await handle.close()


async def test_a_command_that_was_swept_away_has_run(engine: Engine, spec: SandboxSpec) -> None:
    up = asyncio.Event()
    handle = await engine.sandbox().open(spec)
    endless = command(spec, "sh", "-c", "echo up; sleep 300", lines=lambda _line: up.set())
    task = asyncio.create_task(handle.run(endless, unheard))
    await asyncio.wait_for(up.wait(), DEADLINE_SECONDS)
    await handle.close()
    ended = await asyncio.wait_for(task, DEADLINE_SECONDS)
    assert (ended.ending, ended.stdout) == (Ending.EXITED, "up\n")
    assert ended.code != 0
    assert left_of(engine, spec) == ""


KILLED = """
import asyncio, sys
import msgspec
from genba.connections.processes.orphans import take_in_orphans
from genba.domain.sessions.sandbox import EgressPort, SandboxSpec
from tests.sandbox.engines import Engine
from tests.sandbox.test_containers import command

async def serve(reader, writer): pass

async def main():
    take_in_orphans()
    engine = msgspec.json.decode(sys.argv[1], type=Engine)
    run, folder, tree, home = sys.argv[2:]
    ports = (EgressPort(name="g", port=5000, serve=serve),)
    spec = SandboxSpec(run=run, folder=folder, tree=tree, home=home, egress_ports=ports)
    handle = await engine.sandbox().open(spec)
    await handle.run(command(spec, "sh", "-c", "echo up; sleep 300"), lambda _, line: print(line, flush=True))

asyncio.run(main())
"""


async def test_what_a_killed_genba_left_is_swept_by_its_mark_and_its_gates_end_alone(
    engine: Engine, spec: SandboxSpec
) -> None:
    args = (msgspec.json.encode(engine).decode(), spec.run, spec.folder, spec.tree, spec.home)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", KILLED, *args), stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert process.stdout is not None
    async with asyncio.timeout(DEADLINE_SECONDS):
        while (line := await process.stdout.readline()) not in (b"up\n", b""):
            pass
    assert line == b"up\n"
    process.send_signal(signal.SIGKILL)
    await process.wait()
    mark = f"mark-{spec.run}"
    assert engine.ask("ps", "--all", "--quiet", "--filter", f"label=genba.mark={mark}") != ""
    handle = await engine.sandbox().open(spec)
    assert await handle.sweep(mark) >= 1
    assert await handle.sweep(mark) == 0
    async with asyncio.timeout(DEADLINE_SECONDS):
        while left_of(engine, spec):  # noqa: ASYNC110  (the engine sends no event)
            await asyncio.sleep(0.1)
    await handle.close()


def plain_image(engine: Engine, tmp_path: Path, *programs: str) -> str:
    """An image with a shell, some programs, and nothing else of this machine."""
    name = f"localhost/genba-test:{tmp_path.name.lower()[:40].strip('-_.')}-{os.getpid()}"
    needed = {Path("/bin", program) for program in programs}
    for program in tuple(needed):
        output = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
        needed |= {Path(arg) for arg in output.split() if arg.startswith("/")}
    archive = tmp_path / "image.tar"
    with tarfile.open(archive, "w", dereference=True) as tar:
        for path in sorted(needed):
            tar.add(path, recursive=False)
        folder = tarfile.TarInfo("etc")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(folder)
    engine.ask("import", "--change", 'ENTRYPOINT ["/bin/false"]', str(archive), name)
    return name


async def test_an_image_of_the_user_is_all_there_is_and_says_what_it_lacks(
    engine: Engine, spec: SandboxSpec, tmp_path: Path
) -> None:
    bare = plain_image(engine, tmp_path, "sh", "ls")
    try:
        imaged = msgspec.structs.replace(spec, image=bare)
        ended = await run_in(engine, imaged, "ls", "/")
        assert (ended.ending, ended.stderr) == (Ending.CANNOT_START, f"git: not found in the image {bare}")
    finally:
        engine.ask("rmi", "--force", bare)
    whole = plain_image(engine, tmp_path, "sh", "ls", "git")
    try:
        imaged = msgspec.structs.replace(spec, image=whole)
        ended = await run_in(engine, imaged, "ls", "/bin")
        assert ended.stdout.split() == ["git", "ls", "sh"]
        absent = await run_in(engine, imaged, "claude", "-p")
        assert (absent.ending, absent.stderr) == (Ending.CANNOT_START, f"claude: not found in the image {whole}")
    finally:
        engine.ask("rmi", "--force", whole)


async def test_an_image_without_a_shell_cannot_start_and_the_engine_says_why(
    engine: Engine, spec: SandboxSpec, tmp_path: Path
) -> None:
    image = plain_image(engine, tmp_path, "ls")
    try:
        ended = await run_in(engine, msgspec.structs.replace(spec, image=image), "ls", "/")
    finally:
        engine.ask("rmi", "--force", image)
    assert ended.ending is Ending.CANNOT_START
    assert "/bin/sh" in ended.stderr


async def test_an_image_that_is_not_there_is_not_fetched(engine: Engine, spec: SandboxSpec) -> None:
    with pytest.raises(NotFoundError) as refused:
        await engine.sandbox().open(msgspec.structs.replace(spec, image="localhost/no-such-image:1"))
    assert refused.value.hint == f"{engine.kind} pull localhost/no-such-image:1"


async def test_a_tree_over_a_template_is_refused(engine: Engine, spec: SandboxSpec) -> None:
    overlay = Overlay(lower="/l", upper="/u", work="/w")
    with pytest.raises(UnrecoverableError, match="over a template"):
        await engine.sandbox().open(msgspec.structs.replace(spec, overlay=overlay))


@pytest.mark.parametrize("kind", [SandboxKind.DOCKER, SandboxKind.PODMAN])
@pytest.mark.parametrize(
    "options",
    [
        ("--privileged",),
        ("--network=host",),
        ("-v/:/host",),
        ("--cap-add", "ALL"),
        ("--security-opt", "seccomp=unconfined"),
        ("--device-cgroup-rule=a *:* rwm",),
        ("--gpus", "all"),
        ("--env-host",),
        ("--rootfs",),
        ("--ulimit", "--privileged"),
        ("--ulimit", "nofile=1:1", "another-image"),
        ("--ulimit",),
        ("another-image", "sh"),
    ],
)
@pytest.mark.parametrize("by_project", [True, False])
def test_an_option_that_is_not_on_the_list_is_refused(
    kind: SandboxKind, options: tuple[str, ...], by_project: bool
) -> None:
    own, of_project = ((), options) if by_project else (options, ())
    with pytest.raises(UnrecoverableError) as refused:
        ContainerSandbox(kind, ProcessSupervisor(), options=own, project_options=of_project)
    assert refused.value.hint is not None
    assert "--ulimit" in refused.value.hint


@pytest.mark.parametrize("kind", [SandboxKind.DOCKER, SandboxKind.PODMAN])
@pytest.mark.parametrize(
    "options", [("--runtime", "./runtime"), ("--root", "store"), ("--hooks-dir=hooks",), ("--conmon", "/tmp/conmon")]
)
def test_a_repository_names_no_program_and_no_folder_of_the_engine(kind: SandboxKind, options: tuple[str, ...]) -> None:
    with pytest.raises(UnrecoverableError, match=r"sandbox\.options"):
        ContainerSandbox(kind, ProcessSupervisor(), project_options=options)


needs_docker = pytest.mark.skipif(shutil.which("docker") is None, reason="not run: docker is not installed")


@pytest.mark.parametrize("kind", [SandboxKind.DOCKER, SandboxKind.PODMAN])
def test_a_missing_engine_is_named_with_the_way_to_install_it(kind: SandboxKind, tmp_path: Path) -> None:
    sandbox = ContainerSandbox(kind, ProcessSupervisor(), environment={"PATH": str(tmp_path)})
    assert sandbox.problem().startswith(f"{kind} is not installed: apt-get install {kind}")


@needs_docker
def test_a_docker_that_does_not_run_is_named_with_the_way_to_start_it(tmp_path: Path) -> None:
    sandbox = ContainerSandbox(SandboxKind.DOCKER, ProcessSupervisor(), f"unix://{tmp_path}/nobody.sock")
    assert "systemctl start docker" in sandbox.problem()


@needs_docker
def test_an_engine_on_another_machine_is_refused() -> None:
    sandbox = ContainerSandbox(SandboxKind.DOCKER, ProcessSupervisor(), "tcp://localhost:1")
    assert "another machine" in sandbox.problem()
