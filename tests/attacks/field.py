"""A user's machine in a folder: a home with secrets, repositories, servers, and the real `genba` of some checkout."""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.project import GENBA, Project, ordinary_environment

TARGET = Path(os.environ.get("GENBA_ATTACK_TARGET", str(GENBA)))
"""The `genba` that is attacked: of this checkout, or of another one."""
OLD = "GENBA_ATTACK_OLD" in os.environ
"""Whether it takes all options of an engine from the settings, as it did before they were narrowed."""
MARK = "ATTACK "
PROBES = Path(__file__).with_name("probes.py")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str
    seconds: float
    hung: bool = False
    peak_mb: int = 0

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Field(Project):
    """A project, all around it, and the kind of its sandbox."""

    kind: str = "worktree"
    options: tuple[str, ...] = ()
    word: str = field(default_factory=lambda: secrets.token_hex(6))
    before: Callable[[], None] | None = None
    """What the process of `genba` does before it becomes it."""
    ended: list[Ended] = field(default_factory=list)

    @property
    def place(self) -> Path:
        return self.root.parent

    @property
    def home(self) -> Path:
        return self.place / "home"

    @property
    def canaries(self) -> Path:
        """A folder outside of all sandboxes: whatever appears there was written on the host."""
        return self.place / "canaries"

    def secret(self, name: str) -> str:
        return f"canary-{name}-{self.word}"

    def canary(self, name: str) -> str:
        """A shell line that shows by its file that the host ran it."""
        return f"touch {self.canaries}/{name}"

    def sprung(self, name: str) -> str:
        """Evidence when the canary is there, which is taken away for the next stage."""
        file = self.canaries / name
        if not file.exists():
            return ""
        file.unlink()
        return "the host ran what was planted"

    def settle(self, **sections: Any) -> None:
        """Add to the settings of the project."""
        file = self.root / ".genba" / "config.yaml"
        known = yaml.safe_load(file.read_text()) if file.exists() else {}
        for name, value in sections.items():
            known[name] = {**known.get(name, {}), **value} if isinstance(value, dict) else value
        self.write(".genba/config.yaml", yaml.safe_dump(known, sort_keys=False))

    def actor(self, command: str | list[str], name: str = "worker", **adapter: Any) -> None:
        """Declare an agent that is a command, and commit it."""
        self.agent(name, adapter={"type": "custom", "command": command, **adapter})

    def probe(self, scripts: Mapping[str, str], **parameters: Any) -> None:
        """Put scripts beside a program that runs each of them alone, with `P` as their parameters.

        The secret that they look for stands there backwards: a file of the base is no find.
        """
        parameters["canary"] = parameters.get("canary", "")[::-1]
        given = {"canaries": str(self.canaries), "home": str(self.home), "root": str(self.root), "word": self.word}
        self.write("attack/scripts.json", json.dumps({"scripts": scripts, "parameters": {**given, **parameters}}))
        self.write("attack/probes.py", PROBES.read_text())

    def branch(self, name: str, files: Mapping[str, str], base: str = "main") -> str:
        """A branch with these files, as if an agent had made it."""
        self.git("checkout", "-q", "-B", name, base)
        for path, text in files.items():
            self.write(path, text)
        commit = self.commit(f"Work on {name}")
        self.git("checkout", "-q", base)
        return commit

    def play(self, *words: str, seconds: float = 60, cwd: Path | None = None, **environment: Any) -> Ended:
        """Run `genba`, and kill it with everything it started when it takes longer."""
        out, err = self.place / "stdout", self.place / "stderr"
        begun = time.monotonic()
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                [str(TARGET), *words],
                cwd=cwd or self.root,
                env={**ordinary_environment(), **self.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                preexec_fn=self.before,  # noqa: PLW1509
            )
            code, peak, hung = waited(process, begun + seconds)
        done = Ended(
            code,
            out.read_bytes().decode(errors="replace"),
            err.read_bytes().decode(errors="replace"),
            time.monotonic() - begun,
            hung,
            peak,
        )
        self.ended.append(done)
        return done

    def told(self) -> str:
        return (
            f"exit {self.ended[-1].code}\n{self.ended[-1].out[-3000:]}\n{self.ended[-1].err[-3000:]}"
            if self.ended
            else ""
        )

    def start(self, *words: str, **environment: str) -> "subprocess.Popen[bytes]":
        """Start `genba` in the background."""
        with (self.place / "stdout").open("wb") as stdout:
            return subprocess.Popen(
                [str(TARGET), *words],
                cwd=self.root,
                env={**ordinary_environment(), **self.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def journals(self) -> str:
        """All that runs wrote down."""
        files = sorted((self.root / "tmp" / "logs").rglob("*.jsonl"))
        return "\n".join(each.read_text(errors="replace") for each in files)

    def goal_logs(self) -> str:
        """All that goals printed."""
        files = sorted((self.root / ".git" / "genba" / "goals").rglob("*.log"))
        return "\n".join(each.read_text(errors="replace") for each in files)

    def reported(self) -> dict[str, dict[str, str]]:
        """What the probes of an agent printed, by attack."""
        lines = (json.loads(line) for line in self.journals().splitlines() if "agent_output" in line)
        return reports([text for line in lines for text in str(line.get("text", "")).splitlines()])

    def verify(self, name: str, *words: str, seconds: float = 60) -> Any:
        """`genba verify`, and its verification; nothing where it did not come to its end."""
        done = self.play("verify", name, "--json", *words, seconds=seconds)
        try:
            return done.json["verification"]
        except (ValueError, KeyError, TypeError):
            return {}


def reports(lines: list[str]) -> dict[str, dict[str, str]]:
    """What probes wrote on these lines, by attack."""
    found = {}
    for line in lines:
        _, mark, text = line.partition(MARK)
        if mark:
            with contextlib.suppress(ValueError):
                result = json.loads(text)
                found[result["attack"]] = result
    return found


def waited(process: "subprocess.Popen[bytes]", deadline: float) -> tuple[int, int, bool]:
    """Exit code, the most memory in MB, and whether it had to be killed."""
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage.ru_maxrss // 1024, False
        if time.monotonic() > deadline:
            peak = peak_of(process.pid)
            end(process)
            return -9, peak, True
        time.sleep(0.01)


def peak_of(pid: int) -> int:
    """The most memory that a living process had, in MB."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024
    return 0


def end(process: "subprocess.Popen[bytes]") -> None:
    """Kill a `genba` that was started here, and what lives in its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream:
            with contextlib.suppress(OSError):
                stream.close()


class Listener:
    """A server of the host that remembers what it was sent."""

    def __init__(self, family: socket.AddressFamily = socket.AF_INET, address: Any = ("127.0.0.1", 0)) -> None:
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(address)
        self.socket.listen(64)
        self.heard: list[bytes] = []
        self.connections = 0
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._answer, args=[client], daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            client.settimeout(5)
            text = client.recv(65536)
            self.heard.append(text)
            body = b'{"canary": "reached"}'
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            client.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def clear(place: Path) -> None:
    """Delete a folder of the tests, however deep what an agent left in it is."""
    assert place.resolve().is_relative_to(Path(tempfile.gettempdir()).resolve()), place
    assert place.name.startswith("attack"), place
    subprocess.run(["rm", "-rf", "--", str(place)], check=False, capture_output=True)


def made(place: Path, kind: str, options: tuple[str, ...] = (), host: str = "") -> Field:
    """A field with one commit on main, and settings that name the kind of sandbox."""
    place.chmod(0o755)
    root = place / "repository"
    for name in ("home", "canaries"):
        (place / name).mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    environment = {"HOME": str(place / "home"), "GIT_CONFIG_NOSYSTEM": "1", "GENBA_SANDBOX": kind}
    environment |= {"PATH": os.environ["PATH"]}
    if host:
        environment["DOCKER_HOST"] = host
    if options and not OLD:
        environment["GENBA_SANDBOX_OPTIONS"] = " ".join(options)
    found = Field(root, environment, kind=kind, options=options if OLD else ())
    found.git("config", "user.name", "Test User")
    found.git("config", "user.email", "user@localhost")
    found.write("README.md", "# A project\n")
    found.settle(sandbox={"kind": kind, **({"options": list(found.options)} if found.options else {})})
    found.commit("Begin")
    return found
