"""The tier of each test: `make test` runs the quick tier, `make test-all` runs both, CI the quick tier and a share.

`tiers.json` has the files with slow tests, and a number for each: of the tests of that file, in the order of their
definition and with each case counted, the first of so many is quick, and the others are extended. A file that is not
listed is quick. The numbers are primes, so that the sample meets each side of a matrix of cases. After a run of all
tests, `python -m tests.tiers JUNIT.xml` writes the numbers again. No test of `EXTENDED` is quick.
"""

import json
import os
import sys
import xml.etree.ElementTree as ET
import zlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

SHARE = "GENBA_TEST_SHARE"
"""k/n: of the extended tests only the k-th of n shares."""
FILE = Path(__file__).with_name("tiers.json")
EXTENDED = frozenset(
    {
        "blackboard/test_death_of_senders.py",
        "cli/test_demo.py::test_the_story_happens_as_described_and_goes_on_with_the_answer",
        "coordination/test_merge_queue_kills.py",
        "fleet/test_pausing.py",
        "fleet/test_providers.py",
        "fleet/test_questions.py",
        "fuzz/test_seed.py",
        "github/syncing/test_on_github.py",
        "github/test_live.py",
        "real/test_demo.py",
        "real/test_first_page.py",
        "real/test_fleets_of_real_agents.py",
        "real/test_page_of_real_agents.py",
        "test_packaging.py::test_the_wheel_runs_the_demo_in_a_new_environment",
        "test_soak.py",
        "web/test_a_day_with_a_fleet.py",
        "web/test_api.py::test_a_machine_that_tries_everything_finds_nothing",
    }
)
"""Files, and tests without their parameters, that are slow at their first case already."""
PRIMES = (1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43)
SLOW_FILE, SLOW_TEST = 4.0, 0.25
"""A file is slow when its tests take more seconds than this together, and each of them more than that on average."""
QUICK_SECONDS = 0.25
"""What a test of a slow file may cost `make test` on average."""


def table() -> dict[str, int]:
    numbers: dict[str, int] = json.loads(FILE.read_text(encoding="utf-8"))
    return numbers


def extended(names: Sequence[str], numbers: Mapping[str, int]) -> list[bool]:
    """Whether each test, in the order of collection, belongs to the extended tier."""
    seen: Counter[str] = Counter()
    result = []
    for name in names:
        test = name.partition("[")[0].removeprefix("tests/")
        file = test.partition("::")[0]
        if file in EXTENDED or test in EXTENDED:
            result.append(True)
        else:
            result.append(seen[file] % numbers.get(file, 1) != 0)
            seen[file] += 1
    return result


def measured(seconds: Mapping[str, Sequence[float]]) -> dict[str, int]:
    """The number of each slow file, from the seconds that its tests took."""
    result = {}
    for file, each in sorted(seconds.items()):
        mean = sum(each) / len(each)
        if mean > SLOW_TEST and sum(each) > SLOW_FILE:
            result[file] = next((prime for prime in PRIMES if prime * QUICK_SECONDS >= mean), PRIMES[-1])
    return {file: number for file, number in result.items() if number > 1}


def parse_share(text: str) -> tuple[int, int]:
    """k and n of `k/n`. Raises `pytest.UsageError` where it is not 1 ≤ k ≤ n."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise pytest.UsageError(f'{SHARE}="{text}": write k/n with 1 <= k <= n, such as 2/6')
    return int(number), int(count)


def in_share(name: str, share: tuple[int, int]) -> bool:
    number, count = share
    return zlib.crc32(name.encode()) % count == number - 1


def mark(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the extended tests, and deselect those outside the share."""
    text = os.environ.get(SHARE)
    share = parse_share(text) if text else None
    kept: list[pytest.Item] = []
    deselected: list[pytest.Item] = []
    for item, is_extended in zip(items, extended([item.nodeid for item in items], table()), strict=True):
        if is_extended:
            item.add_marker("extended")
        outside = is_extended and share is not None and not in_share(item.nodeid, share)
        (deselected if outside else kept).append(item)
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = kept


def header() -> list[str]:
    text = os.environ.get(SHARE)
    return [f"extended tests: share {text} ({SHARE})"] if text else []


def main(report: str) -> None:
    seconds: dict[str, list[float]] = defaultdict(list)
    for case in ET.parse(report).getroot().iter("testcase"):
        parts = case.attrib["classname"].split(".")
        module = next(index for index, part in enumerate(parts) if part.startswith("test_"))
        file = "/".join(parts[1 : module + 1]) + ".py"
        if not {file, f"{file}::{case.attrib['name'].partition('[')[0]}"} & EXTENDED:
            seconds[file].append(float(case.attrib["time"]))
    FILE.write_text(json.dumps(measured(seconds), indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
