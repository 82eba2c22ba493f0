"""The tiers and the shares of the tests."""

from pathlib import Path

import pytest

from tests import tiers

FOLDER = Path(__file__).parent
NAMES = [f"tests/a.py::test_x[{number}]" for number in range(6)]


def exists(test: str) -> bool:
    file, _, name = test.partition("::")
    return (FOLDER / file).is_file() and f"def {name}(" in f"def ({(FOLDER / file).read_text(encoding='utf-8')}"


def test_each_file_and_test_that_is_listed_exists() -> None:
    assert [test for test in (*tiers.table(), *tiers.EXTENDED) if not exists(test)] == []


def test_a_number_keeps_every_nth_test_of_a_slow_file_in_the_quick_tier() -> None:
    names = [*NAMES, "tests/a.py::test_y", "tests/b.py::test_x", "tests/b.py::test_y"]

    assert [name for name, slow in zip(names, tiers.extended(names, {"a.py": 3}), strict=True) if not slow] == [
        NAMES[0],
        NAMES[3],
        "tests/a.py::test_y",
        "tests/b.py::test_x",
        "tests/b.py::test_y",
    ]


def test_slow_files_are_sampled_by_what_their_tests_cost() -> None:
    seconds = {"slow.py": [4.0, 4.0], "many.py": [0.01] * 1000, "short.py": [2.0], "slowest.py": [100.0]}

    assert tiers.measured(seconds) == {"slow.py": 17, "slowest.py": 43}


def test_the_shares_are_a_partition_of_the_tests() -> None:
    for name in NAMES:
        assert sum(tiers.in_share(name, (number, 6)) for number in range(1, 7)) == 1


@pytest.mark.parametrize("text", ["0/6", "7/6", "1", "a/b", ""])
def test_a_share_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(pytest.UsageError, match="k/n"):
        tiers.parse_share(text)
