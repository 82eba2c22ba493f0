import datetime
import http.server
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from release.audit import ACCEPTED, LOCKS, REQUIRED, Accepted, Finding, judge, read_accepted
from release.locks import ROOT, read

TODAY = datetime.date(2026, 11, 16)
HOLE = {
    "id": "GHSA-xxxx-yyyy-zzzz",
    "aliases": ["CVE-2026-1", "PYSEC-2026-1"],
    "summary": "a hole",
    "affected": [
        {
            "package": {"name": "click", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99.0"}]}],
        }
    ],
}


class Service(http.server.ThreadingHTTPServer):
    """Answers as OSV does. `holes` says what each package has; `status` is what it answers at all."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.holes: dict[str, list[dict[str, Any]]] = {}
        self.status = 200
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/query"


class Answering(http.server.BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        package = question["package"]
        name = package.get("name") or package["purl"].partition("/")[2].partition("@")[0]
        self.server.asked.append(name)
        holes = self.server.holes.get(name, [])
        content = json.dumps({"vulns": holes} if holes else {}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name of the library)
        """Input is ignored."""


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """Two packages of the real lock."""
    path = tmp_path / "requirements.lock"
    chosen = [package for package in read(ROOT / "requirements.lock") if package.name in {"click", "h11"}]
    lines = [f"{one.name}=={one.version} \\\n    --hash=sha256:{one.hashes[0]}\n" for one in chosen]
    path.write_text("".join(lines))
    return path


def audit(lock: Path, address: str, *words: str, required: bool = False) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GENBA_REQUIRE_AUDIT": "1" if required else ""}
    called = [sys.executable, "-m", "release.audit", "--osv-url", address, *words, str(lock)]
    return subprocess.run(called, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_what_has_no_known_hole_is_green(lock: Path, service: Service) -> None:
    done = audit(lock, service.address, required=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "7 audited, 0 with a known vulnerability" in done.stdout
    assert {"click", "h11", "htmx.org", "cytoscape"} <= set(service.asked)


def test_a_known_hole_is_red(lock: Path, service: Service) -> None:
    service.holes["click"] = [HOLE]
    done = audit(lock, service.address)
    assert done.returncode == 1
    assert "FOUND: click" in done.stderr
    assert "GHSA-xxxx-yyyy-zzzz" in done.stderr
    assert "fixed in 99.0" in done.stderr


def test_a_known_hole_in_a_script_of_the_dashboard_is_red(lock: Path, service: Service) -> None:
    service.holes["htmx.org"] = [{"id": "GHSA-aaaa-bbbb-cccc"}]
    done = audit(lock, service.address)
    assert done.returncode == 1
    assert "FOUND: htmx.org 2.0.11: GHSA-aaaa-bbbb-cccc" in done.stderr


def test_what_is_accepted_with_a_reason_is_not_red(lock: Path, service: Service, tmp_path: Path) -> None:
    service.holes["click"] = [HOLE]
    accepted = tmp_path / "accepted.toml"
    entry = '[[accepted]]\nid = "CVE-2026-1"\npackage = "click"\nreason = "not reachable"\nuntil = 2999-01-01\n'
    accepted.write_text(entry)
    assert audit(lock, service.address, "--accepted", str(accepted)).returncode == 0


@pytest.mark.parametrize("trouble", ["nobody is there", "it is broken"])
def test_a_service_that_does_not_answer_is_reported_and_never_passes(
    lock: Path, service: Service, trouble: str
) -> None:
    service.status = 503
    address = service.address if trouble == "it is broken" else "http://127.0.0.1:9/v1/query"
    required = trouble == "it is broken"
    done = audit(lock, address, required=required)
    assert done.returncode == (1 if required else 0)
    assert "not run: 2 not audited: all locked packages, the scripts of the dashboard" in done.stderr
    assert "audited, 0" not in done.stdout


def test_only_what_was_looked_at_is_accepted_and_only_until_its_day() -> None:
    finding = Finding("click", "8", ("PYSEC-1", "CVE-1"))
    other = Accepted("CVE-1", "h11", "why", TODAY + datetime.timedelta(1))
    assert judge([finding], [other], TODAY) == ["click 8: PYSEC-1, CVE-1; no version fixes it"]
    assert judge([finding], [Accepted("CVE-1", "click", "why", TODAY + datetime.timedelta(1))], TODAY) == []
    assert len(judge([finding], [Accepted("CVE-1", "click", "why", TODAY)], TODAY)) == 2


def test_nothing_is_accepted_without_a_reason(tmp_path: Path) -> None:
    accepted = tmp_path / "accepted.toml"
    accepted.write_text('[[accepted]]\nid = "CVE-1"\npackage = "click"\nreason = " "\nuntil = 2999-01-01\n')
    with pytest.raises(ValueError, match="with a reason"):
        read_accepted(accepted)
    assert all(one.reason for one in read_accepted(ACCEPTED))


def test_every_lock_is_audited() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.lock"), *ROOT.glob("tests/**/*.lock")]}
    assert found == set(LOCKS)


def test_what_is_locked_and_not_audited_is_named_in_the_documents() -> None:
    words = ["git", "ls-files", "*package-lock.json", "*.lock", "*lock.y*ml"]
    tracked = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    unaudited = set(tracked) - set(LOCKS)
    assert unaudited == {"tests/clis/package-lock.json", "tests/github/package-lock.json"}
    result = (ROOT / "docs" / "supply-chain.md").read_text("utf-8")
    assert [name for name in unaudited if f"`{name}`" not in result] == []


def test_what_is_tested_is_what_is_installed() -> None:
    """The lock of developers has every package of the lock of users, in the same version."""
    users = {(one.name, one.version, one.marker) for one in read(ROOT / "requirements.lock")}
    developers = {(one.name, one.version) for one in read(ROOT / "requirements-dev.lock")}
    assert {(name, version) for name, version, _ in users} - developers == set()


def test_the_workflow_of_the_project_wants_an_answer() -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")

    assert re.search(rf'bash \.ci/run\n +env:\n +{REQUIRED}: "1"', text)
    assert "make --jobs=3 --output-sync=target check clis collect audit" in (ROOT / ".ci" / "run").read_text("utf-8")
