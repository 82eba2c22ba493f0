"""emulate, a stand-in for GitHub that others made, behind a door at which the contract listens."""

import http.client
import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.github import material
from tests.standins.github.recorded import Exchange

TOKENS = {"octocat": "fake_octocat_token", "reviewer": "fake_reviewer_token"}
REPOSITORY = "octocat/hello-world"
_SEED = {
    "tokens": {
        TOKENS["octocat"]: {"login": "octocat", "scopes": ["repo", "user", "read:org", "project"]},
        TOKENS["reviewer"]: {"login": "reviewer", "scopes": ["repo"]},
    },
    "github": {
        "users": [
            {"login": "octocat", "email": "octocat@example.com"},
            {"login": "reviewer", "email": "reviewer@example.com"},
        ],
        "orgs": [{"login": "my-org", "members": [{"login": "octocat", "role": "admin"}]}],
        "repos": [{"owner": "octocat", "name": "hello-world", "auto_init": True}],
    },
}
_SECONDS = 60
_ITS_FAULTS = re.compile(
    r"^GET /repos/\{owner\}/\{repo\} answer 200: at [./\w]*: .*(network_count|subscribers_count)"
    r"|^\S+ \S+/(installations|app)\S* answer"
    r"|^GET \S+/check-runs answer 200: at check_runs/\d+/output: .annotations_url. is a required property"
    r"|^POST \S+/requested_reviewers answer 200: GitHub has no such answer"
)
"""Where emulate is known to leave GitHub's description: these are no faults of ours."""


@dataclass
class Emulate:
    """A running emulate: its address, and what was asked there."""

    url: str
    port: int
    tokens: dict[str, str] = field(default_factory=lambda: dict(TOKENS))
    repository: str = REPOSITORY
    exchanges: list[Exchange] = field(default_factory=list)


@contextmanager
def running(folder: Path, check: Callable[[Exchange], list[str]]) -> Iterator[Emulate]:
    """Emulate on a free port, seeded, behind the door; gone at the end."""
    seed = folder / "seed.json"
    seed.write_text(json.dumps(_SEED), encoding="utf-8")
    door = _Door(("127.0.0.1", 0), _Forward)
    made = Emulate(url=f"http://127.0.0.1:{door.server_port}", port=0)
    process = _started(seed, made)
    door.behind, door.made, door.check = made.port, made, check
    thread = threading.Thread(target=door.serve_forever, args=(0.05,), name="emulate", daemon=True)
    thread.start()
    try:
        yield made
    finally:
        door.shutdown()
        door.server_close()
        thread.join(_SECONDS)
        process.kill()
        process.communicate()


def _started(seed: Path, made: Emulate) -> "subprocess.Popen[str]":
    output = ""
    for _ in range(5):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            made.port = free.getsockname()[1]
        words = ["start", "--service", "github", "--port", str(made.port), "--base-url", made.url, "--seed", str(seed)]
        process = subprocess.Popen(
            [*material.emulate(), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(seed.parent), "NO_COLOR": "1"},
        )
        given_up = threading.Timer(_SECONDS, process.kill)
        given_up.start()
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.strip() == "Ready.":
                given_up.cancel()
                return process
        given_up.cancel()
        process.communicate()
        output = "".join(lines)
    raise AssertionError(f"emulate did not start: {output}")


class _Door(ThreadingHTTPServer):
    daemon_threads = True
    behind: int
    made: Emulate
    check: Callable[[Exchange], list[str]]


class _Forward(BaseHTTPRequestHandler):
    """Hands a request on, and the answer back, and tells the contract of both."""

    protocol_version = "HTTP/1.1"
    server: _Door

    def _forward(self) -> None:
        sent = self.rfile.read(int(self.headers.get("content-length") or 0))
        behind = http.client.HTTPConnection("127.0.0.1", self.server.behind, timeout=_SECONDS)
        kept = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
        behind.request(self.command, self.path, body=sent or None, headers={**kept, "connection": "close"})
        answer = behind.getresponse()
        answered = answer.read()
        behind.close()
        exchange = Exchange(
            method=self.command,
            target=self.path,
            sent=sent,
            status=answer.status,
            answered=answered,
            content_type=answer.getheader("content-type", ""),
            agent=self.headers.get("user-agent", ""),
        )
        self.server.made.exchanges.append(exchange)
        self.server.check(exchange)
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "keep-alive", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        if answer.status not in (204, 304):
            self.send_header("content-length", str(len(answered)))
        self.end_headers()
        self.wfile.write(answered)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _forward  # noqa: N815  (the names are those of http.server)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name is that of http.server)
        pass


def not_its_faults(violations: list[str]) -> list[str]:
    """What is wrong, without what emulate is known for."""
    return [one for one in violations if not _ITS_FAULTS.search(one)]
