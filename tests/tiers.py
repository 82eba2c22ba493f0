"""The tier of each test: `make test` runs the quick tier, `make test-all` runs both, CI the quick tier and a share.

A test is quick unless a rule of `EXTENDED` matches it. A rule keeps one case in `every` of each test function in the
quick tier, beginning with the first, in the order of definition; with 0 it keeps none. The order of the cases and an
`every` that shares no divisor with the length of a matrix make the sample meet each side of the matrix.
"""

import os
import zlib
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase

import pytest

SHARE = "GENBA_TEST_SHARE"
"""k/n: of the extended tests only the k-th of n shares."""
EXTENDED: dict[str, int] = {"fleet/test_chaos_*.py::*": 7}
"""The names of tests without their parameters, below `tests/`, and `every`. The first match counts."""


def rule(test: str) -> int:
    """`every` for a test function such as `fleet/test_x.py::test_y`."""
    return next((every for pattern, every in EXTENDED.items() if fnmatchcase(test, pattern)), 1)


def extended(names: Sequence[str]) -> list[bool]:
    """Whether each test, in the order of collection, belongs to the extended tier."""
    cases: Counter[str] = Counter()
    result = []
    for name in names:
        function = name.partition("[")[0].removeprefix("tests/")
        every = rule(function)
        result.append(every == 0 or cases[function] % every != 0)
        cases[function] += 1
    return result


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
    for item, is_extended in zip(items, extended([item.nodeid for item in items]), strict=True):
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
