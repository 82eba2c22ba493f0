"""Hostile users of tasks, goals and verification: told what is wrong, never kept waiting, and nothing is changed."""

from hypothesis import given
from hypothesis import strategies as st

from genba.judgement.paths import _compiled, _walk, matches

_PARTS = st.sampled_from(("*", "**", "**/", "a", "b", "/", "?", "{a,b}", "{ab,a}", "a/", "."))
_NAMES = st.text("ab.", min_size=1, max_size=4)


@given(st.lists(_PARTS, min_size=1, max_size=6), st.lists(_NAMES, min_size=1, max_size=4))
def test_a_glob_fits_the_same_paths_whichever_way_it_is_read(parts: list[str], names: list[str]) -> None:
    glob, path = _compiled("".join(parts)), "/".join(names)
    assert _walk(glob, path) == (glob.expression.fullmatch(path) is not None)


def test_no_glob_and_no_path_takes_longer_than_anybody_can_wait() -> None:
    assert not matches("a" * 250, "*a" * 40 + "b")
    assert not matches("a" * 4000, "*a*a*b")
    assert not matches("a/" * 2000 + "a", "**/a" * 30 + "/b")
    assert matches("a/" * 2000 + "b", "**/a/" * 30 + "**/b")
