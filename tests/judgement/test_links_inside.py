"""Nothing in a branch points out of the repository."""

import pytest

from tests.judgement.branches import Branch, Inner, Link, branch

LIES: dict[str, tuple[Branch, str]] = {
    "absolute": (branch({}, {"a": Link("/etc/passwd")}), "a points to /etc/passwd"),
    "out by dots": (branch({}, {"docs/a": Link("../../secret")}), "docs/a leaves the repository: ../../secret"),
    "out by dots in between": (branch({}, {"a": Link("b/../../c")}), "leaves the repository"),
    "out through a folder": (
        branch({}, {"x/y/up": Link(".."), "deep/link": Link("../x/y/up/../../c")}),
        "leaves the repository",
    ),
    "through an absolute folder": (branch({}, {"a": Link("/tmp"), "b": Link("a/c")}), "b goes through a to /tmp"),
    "a drive": (branch({}, {"a": Link("C:/windows")}), "points to C:/windows"),
    "into git": (branch({}, {"a": Link(".git/config")}), "git's own folder"),
    "into git by capitals": (branch({}, {"a": Link("b/../.GIT/config")}), "git's own folder"),
    "changed on the way": (branch({"a": Link("b")}, {"a": Link("../b")}), "leaves the repository"),
    "in circles": (branch({}, {"a": Link("b"), "b": Link("a")}), "goes in circles"),
    "to nothing": (branch({}, {"a": Link("")}), "points to nothing"),
    "a repository inside": (branch({}, {"vendor/lib": Inner("1" * 40)}), "vendor/lib is a repository of its own"),
    "a file that became a repository": (branch({"a": "x\n"}, {"a": Inner("1" * 40)}), "repository of its own"),
    "a name that leaves": (branch({}, {"a/../../b": "x\n"}), "leaves its folder"),
    "a name with backslashes that leaves": (branch({}, {"a\\..\\..\\b": "x\n"}), "leaves its folder"),
    "a name of git": (branch({}, {"sub/.GIT/config": "x\n"}), "git's own folder"),
    "a short name of git": (branch({}, {"GIT~1/config": "x\n"}), "git's own folder"),
    "an invisible name of git": (branch({}, {".g\u200cit/config": "x\n"}), "git's own folder"),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_points_outside_is_seen(lie: str) -> None:
    made, wanted = LIES[lie]
    result = made.links()
    assert not result.passed
    assert wanted in result.detail


@pytest.mark.parametrize(
    "made",
    [
        branch({}, {"a": Link("b"), "docs/c": Link("../src/./c")}),
        branch({}, {"docs": Link("documentation"), "x": Link("docs/../a")}),
        branch({"a": Link("/etc")}, {"a": Link("/etc"), "b": "x\n"}),
        branch({"a": Link("/etc")}, {}),
        branch({"a": Link("/etc")}, {"a": "now a file\n"}),
        branch({"vendor": Inner("1" * 40)}, {"vendor": Inner("2" * 40)}),
        branch({}, {".gitignore": "x\n", ".github/a.yml": "x\n", "git.py": "x\n", "a~1": "x\n", "...": "x\n"}),
        branch(
            {}, {"vendor/lib": Inner("1" * 40), ".gitmodules": '[submodule "lib"]\n\tpath = vendor/lib\n\turl = x\n'}
        ),
    ],
)
def test_what_stays_inside_is_fine(made: Branch) -> None:
    result = made.links()
    assert result.passed, result.output
