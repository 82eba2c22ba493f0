"""Check locked packages for known vulnerabilities: `make audit`, also in CI.

pip-audit asks OSV about the locks; this module asks it about the scripts of the dashboard. OSV includes the advisories
of PyPI. A finding fails unless `accepted.toml` accepts it with a reason and an end date. Packages without an answer are
reported, and fail only with GENBA_REQUIRE_AUDIT=1.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from release.locks import ROOT
from release.sbom import CARRIED

LOCKS = (
    "requirements.lock",
    "requirements-build.lock",
    "requirements-dev.lock",
    "tests/clis/node.lock",
    "tests/fuzz/requirements.lock",
)
ACCEPTED = ROOT / "release" / "accepted.toml"
OSV = "https://api.osv.dev/v1/query"
REQUIRED = "GENBA_REQUIRE_AUDIT"
TIMEOUT = 15
LONGEST = 600


class Finding(msgspec.Struct, frozen=True):
    """A known vulnerability of a locked package."""

    package: str
    version: str
    names: tuple[str, ...]
    fixed_in: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        fixed = f"; fixed in {', '.join(self.fixed_in)}" if self.fixed_in else "; no version fixes it"
        return f"{self.package} {self.version}: {', '.join(self.names)}{fixed}"


class Accepted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An accepted finding. From the day `until` on it counts again."""

    id: str
    package: str
    reason: str
    until: datetime.date

    def covers(self, finding: Finding, today: datetime.date) -> bool:
        return today < self.until and self.package == finding.package and self.id in finding.names


class Answer(msgspec.Struct, frozen=True):
    """The answer of one service: checked packages, findings, and unchecked packages with their reason."""

    asked: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()
    unanswered: dict[str, str] = {}


def read_accepted(path: Path) -> list[Accepted]:
    found = msgspec.convert(tomllib.loads(path.read_text("utf-8")), dict[str, list[Accepted]])
    accepted = found.pop("accepted", [])
    if found or not all(one.reason.strip() for one in accepted):
        raise msgspec.ValidationError(f"{path.name}: only [[accepted]], each with a reason")
    return accepted


def ask(locks: Iterable[Path], osv: str) -> Answer | str:
    """The answer of pip-audit for the locks; a string is the reason why there is none. Installs nothing."""
    with tempfile.TemporaryDirectory() as cache:
        args = [sys.executable, "-m", "pip_audit", "--require-hashes", "--disable-pip", "--format", "json"]
        args += ["--progress-spinner", "off", "--timeout", str(TIMEOUT), "--cache-dir", cache]
        args += ["--vulnerability-service", "osv", "--osv-url", osv]
        args += [arg for lock in locks for arg in ("--requirement", str(lock))]
        try:
            done = subprocess.run(args, capture_output=True, text=True, check=False, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            return f"no answer within {LONGEST} s"
    try:
        return _parsed(json.loads(done.stdout)["dependencies"])
    except (ValueError, KeyError, TypeError):
        last = (done.stderr.strip() or "no output").splitlines()[-1]
        return f"pip-audit ended with {done.returncode}: {last[:300]}"


def _parsed(packages: list[dict[str, Any]]) -> Answer:
    asked, findings, unanswered = set(), [], {}
    for one in packages:
        if "skip_reason" in one:
            unanswered[one["name"]] = one["skip_reason"]
            continue
        asked.add(one["name"])
        for vulnerability in one["vulns"]:
            names = (vulnerability["id"], *sorted(set(vulnerability.get("aliases", ())) - {vulnerability["id"]}))
            findings.append(Finding(one["name"], one["version"], names, tuple(vulnerability.get("fix_versions", ()))))
    return Answer(frozenset(asked), tuple(findings), unanswered)


def ask_scripts(osv: str) -> Answer | str:
    """The answer of OSV for the scripts of the dashboard, which pip-audit does not know."""
    asked, findings = set(), []
    for package in CARRIED:
        question = json.dumps({"package": {"purl": package.purl}}).encode()
        request = urllib.request.Request(osv, question, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                vulnerabilities = json.load(answer).get("vulns", [])
                asked.add(package.name)
                named = [(each["id"], *each.get("aliases", ())) for each in vulnerabilities]
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
            return f"{type(error).__name__}: {error}"[:300]
        findings += [Finding(package.name, package.version, names) for names in named]
    return Answer(frozenset(asked), tuple(findings))


def gather(locks: Sequence[Path], osv: str) -> tuple[set[Finding], dict[str, str], int]:
    """The findings, the packages that were not audited with their reason, and the number of audited ones."""
    findings: set[Finding] = set()
    unanswered: dict[str, str] = {}
    count = 0
    print(f"asking OSV about {', '.join(lock.name for lock in locks)}", flush=True)
    for what, answer in (
        ("all locked packages", ask(locks, osv)),
        ("the scripts of the dashboard", ask_scripts(osv)),
    ):
        if isinstance(answer, str):
            unanswered[what] = answer
            continue
        findings |= set(answer.findings)
        unanswered |= answer.unanswered
        count += len(answer.asked)
    return findings, unanswered, count


def judge(findings: Iterable[Finding], accepted: Sequence[Accepted], today: datetime.date) -> list[str]:
    """The failures: findings that are not accepted, and expired acceptances."""
    open_findings = [finding.line for finding in findings if not any(one.covers(finding, today) for one in accepted)]
    expired = [f"{one.package}: {one.id} was accepted until {one.until}" for one in accepted if one.until <= today]
    return sorted(open_findings) + sorted(expired)


def main(args: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description="Check locked packages for known vulnerabilities.")
    options.add_argument("--osv-url", default=OSV)
    options.add_argument("--accepted", type=Path, default=ACCEPTED)
    options.add_argument("locks", nargs="*", type=Path, default=[ROOT / name for name in LOCKS])
    given = options.parse_args(args)
    today = datetime.datetime.now(datetime.UTC).date()
    findings, unanswered, count = gather(given.locks, given.osv_url)
    failures = judge(findings, read_accepted(given.accepted), today)
    for line in failures:
        print(f"FOUND: {line}", file=sys.stderr)
    if unanswered:
        line = "=" * 78
        names = sorted(unanswered)
        print(f"{line}\nnot run: {len(names)} not audited: {', '.join(names)}", file=sys.stderr)
        for why in sorted(set(unanswered.values()))[:3]:
            print(f"  {why}", file=sys.stderr)
        print(line, file=sys.stderr)
    if count:
        print(f"{count} audited, {len(findings)} with a known vulnerability, {len(failures)} of them not accepted")
    return 1 if failures or (unanswered and os.environ.get(REQUIRED) == "1") else 0


if __name__ == "__main__":
    sys.exit(main())
