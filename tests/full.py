"""Run everything, and keep the result in docs/measured/tests.json: `make test-all`."""

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

from bench import ledgers, machine
from bench.measuring import Row

ABOUT = (
    "The whole test suite: both tiers of the tests, with a death at every boundary on both databases and the container"
    " image, then fuzzing, rounds of chaos, and a day of work by a fast clock"
)
ENVIRONMENT = {"GENBA_TEST_IMAGE": "1", "GENBA_FUZZ_EXAMPLES": "300", "GENBA_CHAOS_ROUNDS": "20"}
STEPS = {
    "fuzzing": ("tests.fuzz", "--minutes", "10", "--seed", "1"),
    "chaos: 60 rounds": ("tests.chaos", "--rounds", "60"),
    "soak": ("bench.soak", "--no-ledger"),
}


@dataclass(frozen=True)
class Counts:
    passed: int
    failed: int
    """Failures and errors."""
    skipped: int


def counts(report: Path) -> Counts:
    """What a JUnit report says."""
    suites = ET.parse(report).getroot().iter("testsuite")
    numbers = [
        {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")} for suite in suites
    ]
    failed = sum(each["failures"] + each["errors"] for each in numbers)
    skipped = sum(each["skipped"] for each in numbers)
    return Counts(sum(each["tests"] for each in numbers) - failed - skipped, failed, skipped)


def run(*args: str) -> tuple[int, float]:
    """The exit status of a Python module, and the minutes that it took."""
    began = time.monotonic()
    status = subprocess.run([sys.executable, "-m", *args], check=False, env=os.environ | ENVIRONMENT).returncode
    return status, (time.monotonic() - began) / 60


def rows(found: Counts, minutes: float, steps: dict[str, tuple[int, float]]) -> list[Row]:
    """A row for the tests and for each step. A step that ends with another status than 0 counts as one failure."""
    figure = f"{found.passed:,} passed, {found.skipped:,} skipped, {minutes:.0f} minutes"
    result = [Row("tests that failed", figure, float(found.failed), 0.0)]
    for name, (status, spent) in steps.items():
        figure = f"exit status {status}, {spent:.0f} minutes"
        result.append(Row(f"{name}: failures", figure, float(status != 0), 0.0))
    return result


def main() -> int:
    facts, commit = machine.facts(), ledgers.commit()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        status, minutes = run("pytest", "-n", "auto", "--dist", "worksteal", f"--junitxml={report}", *sys.argv[1:])
        if not report.exists():
            return status
        found = counts(report)
    steps = {name: run(*args) for name, args in STEPS.items()}
    measured = rows(found, minutes, steps)
    ledgers.write("tests", ABOUT, "make test-all", measured, machine=facts, commit_=commit)
    return 0 if all(row.holds for row in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
