"""Where globs meet, what overlap costs, and which tasks wait for each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genba.judgement.scheduling.critical_path import chains, circles
from genba.judgement.scheduling.overlap import Writer, globs_meet, price
from genba.judgement.verification.paths import matches
from tests.judgement.fleets import task

MEET = [
    ("src/**", "src/app.py"),
    ("src/", "src/deep/app.py"),
    ("src/**/*.py", "src/app/**"),
    ("*.py", "src/app.py"),
    ("*.py", "src/"),
    ("**/test_*.py", "tests/unit/**"),
    ("src/{a,b}/x.py", "src/b/*"),
    ("/Makefile", "Makefile"),
    ("src/?.py", "src/a.py"),
    ("a*c", "ab*"),
    (":tests", "tests/test_a.py"),
    (":docs", "docs/"),
    ("src/*/", "src/a/b/c.py"),
]
APART = [
    ("src/**", "docs/**"),
    ("src/*.py", "src/deep/app.py"),
    ("src/a.py", "src/b.py"),
    ("*.py", "*.md"),
    ("src/{a,b}/x.py", "src/c/*"),
    ("/Makefile", "tools/Makefile"),
    ("src/?.py", "src/ab.py"),
    (":tests", ":docs"),
    (":tests", "src/app.py"),
    ("src/a*/x", "src/b*/x"),
]


@pytest.mark.parametrize(("first", "second"), MEET)
def test_globs_that_one_path_can_fit_meet(first: str, second: str) -> None:
    assert globs_meet(first, second)
    assert globs_meet(second, first)


@pytest.mark.parametrize(("first", "second"), APART)
def test_globs_that_no_path_can_fit_do_not_meet(first: str, second: str) -> None:
    assert not globs_meet(first, second)
    assert not globs_meet(second, first)


PATHS = st.lists(st.sampled_from(["a", "b", "ab", "x.py", "a.md"]), min_size=1, max_size=4).map("/".join)
GLOBS = st.lists(
    st.sampled_from(["a", "b", "*", "**", "?", "a*", "*.py", "{a,b}", "*b"]), min_size=1, max_size=4
).flatmap(lambda parts: st.sampled_from(["", "/"]).map(lambda end: "/".join(parts) + end))


@given(PATHS, GLOBS, GLOBS)
def test_two_globs_that_a_path_fits_always_meet(path: str, first: str, second: str) -> None:
    if matches(path, first) and matches(path, second):
        assert globs_meet(first, second)


def test_globs_made_to_take_for_ever_are_taken_to_meet() -> None:
    assert globs_meet("a" + "*a" * 200, "a" + "*b" * 200)


def test_the_price_names_the_most_expensive_neighbour() -> None:
    writers = (
        Writer(task=2, scope=("src/",)),
        Writer(task=3, changed=("src/a.py",)),
        Writer(task=4, scope=("docs/",)),
    )
    found = price(1, ("src/**",), writers)
    assert (found.value, found.reason, found.too_much) == (1.6, "#3 has changed src/a.py", True)


def test_many_neighbours_that_say_nothing_do_not_add_up() -> None:
    found = price(1, (), [Writer(task=number) for number in range(2, 50)])
    assert (found.value, found.too_much) == (0.1, False)


def test_a_name_with_control_characters_is_not_shown_as_it_is() -> None:
    found = price(1, ("*",), [Writer(task=2, changed=("a\x1b[2J",))])
    assert "\x1b" not in found.reason


def test_the_longest_chain_behind_a_task_counts() -> None:
    tasks = {
        1: task(1),
        2: task(2, dependencies=(1,)),
        3: task(3, dependencies=(2,)),
        4: task(4, dependencies=(1,)),
        5: task(5, children=(3,)),
        6: task(6),
    }
    assert chains(tasks) == {1: 3, 2: 2, 3: 1, 4: 0, 5: 0, 6: 0}


EDGES = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)), max_size=16)


@given(EDGES)
def test_circles_are_found_exactly_where_something_can_never_end(edges: list[tuple[int, int]]) -> None:
    needs = {number: tuple({to for start, to in edges if start == number}) for number in range(1, 9)}
    tasks = {number: task(number, dependencies=needed) for number, needed in needs.items()}
    left = dict(needs)
    while free := [number for number, needed in left.items() if not set(needed) & set(left)]:
        for number in free:
            del left[number]
    found = circles(tasks)
    assert bool(found) == bool(left)
    for circle in found:
        assert all(after in needs[number] for number, after in zip(circle, circle[1:] + circle[:1], strict=True))
    assert set(chains(tasks)) == set(tasks)
