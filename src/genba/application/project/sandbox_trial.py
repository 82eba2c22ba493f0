"""Tries a sandbox: does step by step what a session does in it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec

from genba.definitions.project.sandbox_section import LimitsSection
from genba.domain.errors import GenbaError
from genba.domain.ports import Sandbox
from genba.domain.processes import Command, Ending, Exit
from genba.domain.sessions.sandbox import EgressPort, Overlay, SandboxKind, SandboxLimits, SandboxSpec

_SECONDS = 90.0
_PORT, _CODE = 3128, 7
_STEPS = {
    "start": ("a command did not start", ""),
    "tree": ("the worktree could not be written", "check the free space and the permissions of the repository"),
    "home": ("HOME could not be written", "check the free space and the permissions of the repository"),
    "temporary": ("/tmp could not be written", ""),  # noqa: S108  (of the cell)
    "hidden": ("a file beside the worktree could be read", "do not use this kind of sandbox"),
    "filter": ("system calls are not filtered", "use a kernel with CONFIG_SECCOMP_FILTER"),
    "git": ("git could not commit", "install git where the sandbox sees it: in /usr, or in the image"),
    "port": ("the egress port could not be reached", ""),
}
"""What a session needs, in this order: what it means when it fails, and the remedy."""
_SCRIPT = """
echo "ok start"
echo x > written && cat written > /dev/null && echo "ok tree"
echo x > "$HOME/written" && echo "ok home"
echo x > /tmp/written && echo "ok temporary"
(read -r genba_line < {beside}) 2>/dev/null || echo "ok hidden"
while read -r genba_name genba_value; do
  case "$genba_name $genba_value" in "Seccomp: 2") echo "ok filter";; esac
done < /proc/self/status
git init -q . && git add written && \
git -c user.name=genba -c user.email=genba@localhost commit -q --no-gpg-sign -m trial && \
git cat-file -e HEAD:written && echo "ok git"
{python} -c 'import socket; socket.create_connection(("127.0.0.1", {port}), 10)' 2>/dev/null ||
bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' 2>/dev/null ||
curl -s -m 10 http://127.0.0.1:{port}/ >/dev/null 2>&1 || wget -q -T 10 -O - http://127.0.0.1:{port}/ >/dev/null 2>&1
exit {code}
"""


class Trial(msgspec.Struct, frozen=True):
    """What came of it. Both are empty when everything worked."""

    problem: str = ""
    remedy: str = ""


async def try_sandbox(
    scratch: Callable[[str | Path, str], AbstractContextManager[Path]],
    kind: SandboxKind,
    sandbox: Sandbox,
    folder: Path,
    readable: tuple[str, ...],
    image: str = "",
    overlay: bool = False,
) -> Trial:
    """Open the sandbox as a session does, and report the first step that fails. Leaves nothing in the folder."""
    with scratch(folder, "trial-") as place:
        spec, reached = _spec(place, readable, image, overlay)
        try:
            handle = await sandbox.open(spec)
            try:
                done = await handle.run(_command(spec), _unheard)
            finally:
                await handle.close()
        except GenbaError as error:
            return Trial(error.message, error.hint or "")
        except OSError as error:
            return Trial(f"{kind} does not work here: {error}")
        return _result(done, bool(reached))


def _spec(place: Path, readable: tuple[str, ...], image: str, overlay: bool) -> tuple[SandboxSpec, list[str]]:
    reached: list[str] = []

    async def serve(_reader: Any, writer: Any) -> None:
        reached.append("reached")
        writer.write(b"HTTP/1.0 204 No Content\r\n\r\n")

    for name in ("tree", "home", "sandbox", *(("lower", "upper", "work") if overlay else ())):
        (place / name).mkdir(mode=0o700)
    (place / "beside").write_text("secret\n", "utf-8")
    layers = Overlay(lower=str(place / "lower"), upper=str(place / "upper"), work=str(place / "work"))
    limits = LimitsSection()
    spec = SandboxSpec(
        run=place.name,
        folder=str(place / "sandbox"),
        tree=str(place / "tree"),
        home=str(place / "home"),
        readable=readable,
        overlay=layers if overlay else None,
        egress_ports=(EgressPort(name="trial", port=_PORT, serve=serve),),
        limits=SandboxLimits(
            memory_mb=limits.memory_mb, processes=limits.processes, disk_mb=limits.disk_mb, files=limits.files
        ),
        image=image,
    )
    return spec, reached


def _command(spec: SandboxSpec) -> Command:
    beside = shlex.quote(str(Path(spec.tree).parent / "beside"))
    script = _SCRIPT.format(beside=beside, python=shlex.quote(sys.executable), port=_PORT, code=_CODE)
    return Command(
        argv=("sh", "-c", script),
        workdir=spec.tree,
        environment={"PATH": os.environ.get("PATH", os.defpath)},
        timeout_seconds=_SECONDS,
        idle_seconds=_SECONDS,
        mark=f"doctor-{os.getpid()}-{spec.run}",
    )


def _result(done: Exit, reached: bool) -> Trial:
    passed = {line.removeprefix("ok ") for line in done.stdout.splitlines() if line.startswith("ok ")}
    if reached:
        passed.add("port")
    last = done.stderr.strip().splitlines()[-1][:200] if done.stderr.strip() else ""
    for step, (problem, remedy) in _STEPS.items():
        if step not in passed:
            return Trial(f"{problem}: {last}" if last else problem, remedy)
    if done.violations:
        return Trial(f"a small command ran into a limit: it {done.violations[0].detail}", "raise sandbox.limits")
    if (done.ending, done.code) != (Ending.EXITED, _CODE):
        return Trial(f"a command that exits with {_CODE} was reported as {done.ending}, {done.code}")
    return Trial()


def _unheard(_stream: str, _line: str) -> None:
    """What it says is in its end."""
