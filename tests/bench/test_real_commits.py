"""How often the guards ask, counted on real commits."""

import pytest

from bench import headlines, real_commits
from bench.ledgers import Ledger
from bench.real_commits import Judged
from tests.project import Project

OLD = "def test_a():\n    assert 1 + 1 == 2\n"


def test_those_who_are_asked_are_counted_by_what_they_change() -> None:
    found = real_commits.summary(
        [Judged("a"), Judged("b", ("tests_kept",)), Judged("c", ("tests_kept", "protected_paths")), Judged("d")]
    )

    assert found.rows[0].figure == "2 of 4 (50 %): 2 change tests that were there, 1 change what judges the work"
    assert found.rows[1].figure == "0 of 2"
    assert all(row.holds for row in found.rows)
    assert found.more["sent_back"] == {"b": ["tests_kept"], "c": ["tests_kept", "protected_paths"]}


def test_an_allowed_caller_that_is_refused_is_over_the_limit() -> None:
    found = real_commits.summary([Judged("b", ("tests_kept",), ("tests_kept",))])

    assert [row.holds for row in found.rows] == [True, False]


@pytest.mark.parametrize(("count", "chosen"), [(2, ["f", "d"]), (5, ["f", "e", "d", "c", "b"]), (6, [])])
def test_commits_are_spread_and_the_first_of_all_is_left_out(count: int, chosen: list[str]) -> None:
    assert real_commits.spread(["f", "e", "d", "c", "b", "a"], count) == chosen


def test_a_changed_test_needs_leave_and_lands_with_it(project: Project) -> None:
    project.write("tests/test_a.py", OLD)
    project.commit()
    project.write("code.py", "def one():\n    return 1\n")
    plain = project.commit()
    project.write("tests/test_a.py", OLD.replace("== 2", "> 0"))
    changed = project.commit()

    assert real_commits.judged(project.root, plain) == Judged(plain[:10])
    assert real_commits.judged(project.root, changed) == Judged(changed[:10], ("tests_kept",))


def test_the_table_says_how_often_they_ask() -> None:
    found = real_commits.summary([Judged("a"), Judged("b", ("tests_kept",))])
    ledger = Ledger("Real commits", "make bench", "2026-01-05", "", {}, tuple(found.rows), found.more)
    missing = Ledger("Real commits", "make bench", "2026-01-05", "", {}, (found.rows[0],), {})
    (headline,) = (each for each in headlines.HEADLINES if each.part == "real_commits")

    assert headline.figure(ledger) == "1 of 2 (50 %)"
    assert headline.beside is not None
    assert headline.beside(ledger) == "with the named permission, returned again: 0 of 1"
    assert headline.beside(missing) == ""
