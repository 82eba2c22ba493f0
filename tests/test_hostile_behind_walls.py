"""A hostile agent behind each kind of walls, through the door that users go through.

It plants what git on the host would run, reads what it can reach, calls whoever listens, writes where it may not, and
leaves a daemon. Nothing of that happens outside, nothing is left, and what ended a session is named.
"""

import json
import os
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from genba.domain.walls import SandboxKind
from tests.project import COMMIT, GENBA, Project, ordinary_environment, until
from tests.sandbox.engines import engine_of
from tests.test_supervision import living
from tests.walls import needs_bubblewrap

SECRET = "only-for-the-user-4711"


@pytest.fixture(params=["bubblewrap", "docker", "podman"])
def walled(
    request: pytest.FixtureRequest, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Project]:
    """A project whose agents live behind one kind of walls."""
    kind = SandboxKind(request.param)
    sandbox: dict[str, object] = {"kind": str(kind), "limits": {"memory_mb": 300, "processes": 150, "disk_mb": 60}}
    if kind is SandboxKind.BUBBLEWRAP:
        needs_bubblewrap()
        project.write(".genba/config.yaml", yaml.safe_dump({"sandbox": sandbox}))
        yield project
        return
    shared = tmp_path_factory.getbasetemp()
    with engine_of(kind, shared.parent if os.environ.get("PYTEST_XDIST_WORKER") else shared) as engine:
        if engine.host:
            project.environment["DOCKER_HOST"] = engine.host
        sandbox["options"] = list(engine.options)
        project.write(".genba/config.yaml", yaml.safe_dump({"sandbox": sandbox}))
        yield project


@contextmanager
def listening(project: Project) -> Iterator[tuple[int, str, list[str]]]:
    """Servers of the host that nobody behind walls may reach: a port, a socket in a folder, and who called."""
    called: list[str] = []
    path = str(project.root.parent / "host.sock")
    port = socket.create_server(("127.0.0.1", 0))
    local = socket.socket(socket.AF_UNIX)
    local.bind(path)
    local.listen()
    for server, name in ((port, "port"), (local, "socket")):
        threading.Thread(target=_note_calls, args=(server, name, called), daemon=True).start()
    try:
        yield port.getsockname()[1], path, called
    finally:
        for server in (port, local):
            server.close()


def _note_calls(server: socket.socket, name: str, called: list[str]) -> None:
    while True:
        try:
            server.accept()[0].close()
        except OSError:
            return
        called.append(name)


HOSTILE = """
import os, socket, subprocess, sys
home, port, path, trap, outside, word = sys.argv[1:]
tried = []
def attempt(what, call):
    try:
        tried.append(f"{what}: {call()!r}"[:300])
    except BaseException as error:
        tried.append(f"{what}: {type(error).__name__}")

def run(line):
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60).stdout

# What git on the host would run, if it ever looked in here.
plant = f"#!/bin/sh\\necho $0 >> {trap}\\n"
git = run("git rev-parse --absolute-git-dir").strip()
for name in ("pre-commit", "post-commit", "post-checkout", "post-merge", "post-index-change", "reference-transaction"):
    attempt("hook", lambda: (os.makedirs(f"{git}/hooks", exist_ok=True), open(f"{git}/hooks/{name}", "w").write(plant),
                             os.chmod(f"{git}/hooks/{name}", 0o755)))
for setting in ("core.fsmonitor", "core.sshCommand", "core.pager", "diff.external", "filter.x.clean", "filter.x.smudge",
                "uploadpack.packObjectsHook", "core.alternateRefsCommand", "gpg.program", "credential.helper"):
    run(f"git config {setting} 'echo {setting} >> {trap}; false'")
open(".gitattributes", "w").write("* filter=x diff=x merge=x\\n")
run("git init -q embedded && cd embedded && git config core.fsmonitor 'echo embedded >> " + trap + "' "
    "&& git -c user.name=a -c user.email=a@a commit -q --allow-empty -m in")
os.symlink(f"{home}/.ssh/id_rsa", "key-link")
os.symlink("/etc/shadow", "shadow-link")
os.symlink(outside, "outside-link")
attempt("alternates", lambda: open(f"{git}/objects/info/alternates", "a").write(f"{home}/other/.git/objects\\n"))

# What it would like to read, and whom it would like to call.
for name in (f"{home}/.ssh/id_rsa", f"{home}/.aws/credentials", "/etc/shadow", f"/proc/{os.getppid()}/environ"):
    attempt(f"read {name}", lambda: open(name).read())
attempt("environment", lambda: sorted(os.environ.items()))
attempt("processes", lambda: [open(f"/proc/{pid}/environ").read() for pid in os.listdir("/proc") if pid.isdigit()])
attempt("loopback", lambda: socket.create_connection(("127.0.0.1", int(port)), 3))
attempt("socket", lambda: socket.socket(socket.AF_UNIX).connect(path))
attempt("docker", lambda: socket.socket(socket.AF_UNIX).connect("/var/run/docker.sock"))

# Where it would like to write.
for name in (f"{outside}/here", f"{home}/.bashrc", "/usr/local/bin/planted", "/etc/planted", f"{outside}/../planted"):
    attempt(f"write {name}", lambda: open(name, "w").write("planted"))
attempt("through a link", lambda: open("outside-link/there", "w").write("planted"))

subprocess.Popen(["setsid", "env", "-i", "sleep", word], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                 stderr=subprocess.DEVNULL)
open("tried.txt", "w").write("\\n".join(tried))
run("git add tried.txt .gitattributes && git commit -q --no-verify -m hostile")
print("done")
"""


def test_nothing_of_a_hostile_agent_reaches_the_host(walled: Project) -> None:
    home = walled.root.parent / "home of the user"
    (home / ".ssh").mkdir(parents=True)
    (home / ".aws").mkdir()
    for name in (".ssh/id_rsa", ".aws/credentials", ".bashrc"):
        (home / name).write_text(SECRET)
    outside, trap = walled.root.parent / "outside", walled.root.parent / "trap"
    outside.mkdir()
    walled.environment["HOME"] = str(home)
    word = f"8{os.getpid()}.{id(walled) % 10**6}"
    walled.write("hostile.py", HOSTILE)
    before = walled.git("for-each-ref", "--format=%(refname) %(objectname)")
    with listening(walled) as (port, path, called):
        words = [sys.executable, "hostile.py", str(home), str(port), path, str(trap), str(outside), word]
        walled.agent(adapter={"type": "custom", "command": shlex.join(words)})
        result = walled.run("worker", "--no-merge", check=None, ANTHROPIC_API_KEY=SECRET, AWS_SECRET_ACCESS_KEY=SECRET)
        walled.genba("verify", result["branch"])
        walled.git("status")
    assert not trap.exists(), trap.read_text()
    assert list(outside.iterdir()) == []
    assert called == []
    assert (home / ".bashrc").read_text() == SECRET
    assert not Path("/usr/local/bin/planted").exists()
    assert living(word) == []
    tried = walled.git("show", f"{result['branch']}:tried.txt")
    assert SECRET not in tried
    assert "loopback: ConnectionRefusedError" in tried
    assert _refs(walled) - set(before.splitlines()) == {f"refs/heads/{result['branch']}"} | _kept(walled)


def _refs(project: Project) -> set[str]:
    return set(project.git("for-each-ref", "--format=%(refname)").splitlines()) - {"refs/heads/main"}


def _kept(project: Project) -> set[str]:
    """What Genba itself keeps of a run that is not over: always below its own name."""
    return {name for name in _refs(project) if name.startswith("refs/genba/")}


BOMBS = {
    "memory": f"{sys.executable} -c 'x = [bytearray(10**8) for _ in range(40)]; import time; time.sleep(60)'",
    "processes": "bomb() { bomb | bomb & }; bomb; sleep 60",
    "disk": "dd if=/dev/zero of=big bs=1M count=400 2>/dev/null; sleep 60",
}


@pytest.mark.parametrize("what", BOMBS)
def test_an_agent_that_takes_too_much_is_ended_and_the_limit_is_named(walled: Project, what: str) -> None:
    walled.agent(adapter={"type": "custom", "command": BOMBS[what]}, limits={"askTimeoutSeconds": 50, "retries": 0})
    result = walled.run("worker", check=1)
    assert result["outcome"] == "failed"
    assert what in result["reason"]
    assert "sandbox.limits" in result["reason"]


def test_deleted_objects_are_told_and_the_repository_of_the_user_stays_whole(walled: Project) -> None:
    line = (
        "echo work > work.txt && git add -A && git commit -qm work && "
        "find $(git rev-parse --absolute-git-dir)/objects -type f -name '??????*' -delete; echo done"
    )
    walled.agent(adapter={"type": "custom", "command": line})
    result = walled.run("worker", check=1)
    assert result["outcome"] != "completed"
    assert result["reason"]
    assert "missing" not in walled.git("fsck", "--no-dangling")
    assert walled.git("status", "--short") == ""


def test_what_a_killed_run_left_behind_walls_is_ended_by_the_one_that_resumes_it(walled: Project) -> None:
    word = f"7{os.getpid()}.{id(walled) % 10**6}"
    again = walled.root.parent / "again"
    settings = yaml.safe_load(walled.read(".genba/config.yaml"))
    settings["sandbox"]["read"] = [str(walled.root.parent)]
    walled.write(".genba/config.yaml", yaml.safe_dump(settings))
    walled.agent(adapter={"type": "custom", "command": f"test -e {again} || sleep {word}; {COMMIT}"})
    process = subprocess.Popen(
        [str(GENBA), "run", "worker", "--quiet"],
        cwd=walled.root,
        env={**ordinary_environment(), **walled.environment},
        stderr=subprocess.DEVNULL,
    )
    until(lambda: living(word), 60)
    process.kill()
    process.wait()
    again.touch()
    run = json.loads(walled.genba("logs", "--json", check=0).out.splitlines()[0])["run"]
    assert walled.run("--resume", run)["outcome"] == "completed"
    assert living(word) == []
