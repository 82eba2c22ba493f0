"""Ask whether anything that is locked has a known hole: `make audit`, a part of CI.

PyPI is asked first, by pip-audit. What it does not know goes to OSV, and so do the scripts that the dashboard carries.
A finding is red, unless `accepted.toml` has it with a reason and a day that has not come. What no service answered for
was not audited: that is said loudly, by name, and is red only with GENBA_REQUIRE_AUDIT=1. It is never "no findings".
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
    """A known hole in something that is locked."""

    package: str
    version: str
    names: tuple[str, ...]
    mended_in: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        mended = f"; mended in {', '.join(self.mended_in)}" if self.mended_in else "; no version mends it"
        return f"{self.package} {self.version}: {', '.join(self.names)}{mended}"


class Accepted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finding that somebody has looked at. On the day `until` it counts again."""

    id: str
    package: str
    reason: str
    until: datetime.date

    def covers(self, finding: Finding, today: datetime.date) -> bool:
        return today < self.until and self.package == finding.package and self.id in finding.names


class Answer(msgspec.Struct, frozen=True):
    """What one service said: who was looked up, what was found, and who was not looked up for which reason."""

    asked: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()
    unanswered: dict[str, str] = {}


def read_accepted(path: Path) -> list[Accepted]:
    found = msgspec.convert(tomllib.loads(path.read_text("utf-8")), dict[str, list[Accepted]])
    accepted = found.pop("accepted", [])
    if found or not all(one.reason.strip() for one in accepted):
        raise msgspec.ValidationError(f"{path.name}: only [[accepted]], each with a reason")
    return accepted


def ask(locks: Iterable[Path], service: Sequence[str]) -> Answer | str:
    """What pip-audit says of the locks; a string is why it could not say anything. Nothing is installed for it."""
    with tempfile.TemporaryDirectory() as cache:
        words = [sys.executable, "-m", "pip_audit", "--require-hashes", "--disable-pip", "--format", "json"]
        words += ["--progress-spinner", "off", "--timeout", str(TIMEOUT), "--cache-dir", cache, *service]
        words += [word for lock in locks for word in ("--requirement", str(lock))]
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            return f"no answer within {LONGEST} s"
    try:
        return _understood(json.loads(done.stdout)["dependencies"])
    except (ValueError, KeyError, TypeError):
        last = (done.stderr.strip() or "no words").splitlines()[-1]
        return f"pip-audit ended with {done.returncode}: {last[:300]}"


def _understood(told: list[dict[str, Any]]) -> Answer:
    asked, findings, unanswered = set(), [], {}
    for one in told:
        if "skip_reason" in one:
            unanswered[one["name"]] = one["skip_reason"]
            continue
        asked.add(one["name"])
        for hole in one["vulns"]:
            names = (hole["id"], *sorted(set(hole.get("aliases", ())) - {hole["id"]}))
            findings.append(Finding(one["name"], one["version"], names, tuple(hole.get("fix_versions", ()))))
    return Answer(frozenset(asked), tuple(findings), unanswered)


def ask_scripts(osv: str) -> Answer | str:
    """The scripts that the dashboard carries, which pip-audit does not know."""
    asked, findings = set(), []
    for package in CARRIED:
        question = json.dumps({"package": {"purl": package.purl}}).encode()
        request = urllib.request.Request(osv, question, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                holes = json.load(answer).get("vulns", [])
                asked.add(package.name)
                named = [(hole["id"], *hole.get("aliases", ())) for hole in holes]
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
            return f"{type(error).__name__}: {error}"[:300]
        findings += [Finding(package.name, package.version, names) for names in named]
    return Answer(frozenset(asked), tuple(findings))


def gather(locks: Sequence[Path], osv: str, only_osv: bool) -> tuple[set[Finding], dict[str, str], int]:
    """Every finding, what was not audited and why, and how many were."""
    answers: list[Answer] = []
    silent: dict[str, str] = {}
    for service in ([] if only_osv else [["--vulnerability-service", "pypi"]]) + [
        ["--vulnerability-service", "osv", "--osv-url", osv]
    ]:
        name = service[1]
        print(f"asking {name} about {', '.join(lock.name for lock in locks)}", flush=True)
        answer = ask(locks, service)
        if isinstance(answer, str):
            silent[name] = answer
            continue
        answers.append(answer)
        if not answer.unanswered:
            break
    scripts = ask_scripts(osv)
    asked = {name for answer in answers for name in answer.asked}
    unanswered = {name: why for answer in answers for name, why in answer.unanswered.items() if name not in asked}
    if not answers:
        unanswered = {"all that is locked": "; ".join(f"{name}: {why}" for name, why in silent.items())}
    elif unanswered:
        message = "; ".join(f"{name}: {why}" for name, why in silent.items()) or "no service knows it"
        unanswered = dict.fromkeys(unanswered, f"PyPI does not know it; {message}" if not only_osv else message)
    if isinstance(scripts, str):
        unanswered["the scripts of the dashboard"] = scripts
    else:
        answers.append(scripts)
    findings = {finding for answer in answers for finding in answer.findings}
    return findings, unanswered, sum(len(answer.asked) for answer in answers)


def judge(findings: Iterable[Finding], accepted: Sequence[Accepted], today: datetime.date) -> list[str]:
    """What is red: each finding that nobody has accepted, and each acceptance whose day has come."""
    red = [finding.line for finding in findings if not any(one.covers(finding, today) for one in accepted)]
    late = [f"{one.package}: {one.id} was accepted until {one.until}" for one in accepted if one.until <= today]
    return sorted(red) + sorted(late)


def main(words: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description="Ask whether anything that is locked has a known hole.")
    options.add_argument("--osv-url", default=OSV)
    options.add_argument("--only-osv", action="store_true", help="do not ask PyPI")
    options.add_argument("--accepted", type=Path, default=ACCEPTED)
    options.add_argument("locks", nargs="*", type=Path, default=[ROOT / name for name in LOCKS])
    given = options.parse_args(words)
    today = datetime.datetime.now(datetime.UTC).date()
    findings, unanswered, count = gather(given.locks, given.osv_url, given.only_osv)
    red = judge(findings, read_accepted(given.accepted), today)
    for line in red:
        print(f"FOUND: {line}", file=sys.stderr)
    if unanswered:
        line = "=" * 78
        names = sorted(unanswered)
        print(f"{line}\nnot run: {len(names)} not audited: {', '.join(names)}", file=sys.stderr)
        for why in sorted(set(unanswered.values()))[:3]:
            print(f"  {why}", file=sys.stderr)
        print(line, file=sys.stderr)
    if count:
        print(f"{count} audited, {len(findings)} with a known hole, {len(red)} of them not accepted")
    return 1 if red or (unanswered and os.environ.get(REQUIRED) == "1") else 0


if __name__ == "__main__":
    sys.exit(main())
