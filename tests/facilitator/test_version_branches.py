"""Branches and merges whose names have a number that is a version, a date or a count of something else."""

from typing import Any

from tests.project import Project

VERSIONS = {
    "3.x": 3,
    "hotfix/5.1": 5,
    "hotfix/5-1": 5,
    "origin/release/4.2.0": 4,
    "origin/release/4": 4,
    "support/9.0.x": 9,
    "support/9": 9,
    "v1.2": 1,
    "v1": 1,
    "release-2024.1": 2024,
    "maint-2.4": 2,
    "maint/2": 2,
    "stable/6": 6,
    "6-1-stable": 6,
    "team/lts/20": 20,
    "12.0-rc1": 12,
    "13-0-rc1": 13,
    "14-x": 14,
    "dependabot/npm_and_yarn/foo-7.1": 7,
    "renovate/major-8": 8,
    "sprint/10": 10,
    "environments/11": 11,
    "2025/01/cleanup": 2025,
    "2026-01-cleanup": 2026,
}
ISSUES = {
    "31-add-login": 31,
    "fix/32": 32,
    "issue-33": 33,
    "feature/GH-34-x": 34,
    "ada/35-3d-view": 35,
    "36": 36,
    "hotfix/37": 37,
    "bugfix/38-v2-parser": 38,
    "39-upgrade-to-3.2": 39,
}


def states(project: Project) -> dict[int, dict[str, Any]]:
    return {each["issue"]: each for each in project.genba("facilitate", "--json").json["assessments"]}


def begin(project: Project, names: dict[str, int]) -> None:
    for number in sorted(set(names.values())):
        project.issue(number, "Tidy up")
    for name in names:
        project.git("switch", "-q", "-c", name, "main")
        project.write(f"{name.replace('/', '-')}.txt", "work\n")
        project.commit("Change something")
    project.git("switch", "-q", "main")


def test_a_branch_of_a_version_is_no_work_on_the_issue_of_that_number(project: Project) -> None:
    begin(project, VERSIONS)
    found = states(project)
    values = {name: found[number]["evidence"] for name, number in VERSIONS.items()}
    assert {name: each for name, each in values.items() if "no commit, no branch" not in each[0]} == {}
    assert {each["state"] for each in found.values()} == {"incomplete"}


def test_a_merge_of_a_version_is_no_work_on_the_issue_of_that_number(project: Project) -> None:
    """The titles share a word with the names, so that nothing but the rule keeps them apart."""
    for number in set(VERSIONS.values()):
        project.issue(number, "cleanup stable rc1 branches")
    for name in VERSIONS:
        for message in (
            f"Merge branch '{name}'",
            f"Merge remote-tracking branch 'origin/{name}'",
            f"Merge tag '{name}'",
        ):
            project.git("commit", "-q", "--allow-empty", "-m", message)
    for message in ("Fix #4.2 of the protocol", "Closes #5.1", "Merge pull request #90 from acme/stable/6"):
        project.git("commit", "-q", "--allow-empty", "-m", message)
    found = states(project)
    assert {number: each["evidence"] for number, each in found.items() if each["state"] != "incomplete"} == {}
    assert {each["evidence"][0] for each in found.values()} == {"no commit, no branch, no pull request, no session"}
    assert not [each for each in found.values() if "only mentions it" in "".join(each["evidence"])]


def test_tags_are_no_work(project: Project) -> None:
    project.issue(4, "Tidy up")
    project.git("switch", "-q", "-c", "elsewhere")
    project.commit("Change something")
    for name in ("4", "4-tidy-up", "fix/4", "v4"):
        project.git("tag", name)
    project.git("switch", "-q", "main")
    project.git("branch", "-D", "elsewhere")
    assert states(project)[4]["state"] == "incomplete"


def test_a_branch_that_is_named_after_an_issue_is_work_on_it(project: Project) -> None:
    begin(project, ISSUES)
    found = states(project)
    values = {name: found[number]["state"] for name, number in ISSUES.items()}
    assert values == dict.fromkeys(ISSUES, "in_progress")
