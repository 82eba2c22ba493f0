"""Links that a repository commits: Genba writes through none of them. A link that the user made is the user's word."""

from pathlib import Path

import pytest

from tests.project import Project

REFUSED = "is a link that the repository commits, and Genba writes nothing through it"
RUN = ("run", "worker", "--quiet")
LINKS = {
    "worktrees": ({".worktrees": "OUTSIDE"}, RUN),
    "worktrees-chain": ({".worktrees": "links/deep", "links": "OUTSIDE"}, RUN),
    "journals": ({"tmp/logs": "OUTSIDE"}, RUN),
    "above-the-journals": ({"tmp": "OUTSIDE"}, RUN),
    "database": ({".genba/genba.db": "OUTSIDE/made.db"}, ("task", "add", "A task")),
    "agents": ({".agent": "OUTSIDE"}, ("agent", "new", "helper")),
    "settings": ({".genba": "OUTSIDE"}, ("init",)),
}


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    return folder


def link(project: Project, path: str, target: str) -> None:
    place = project.root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


@pytest.mark.parametrize(("links", "words"), LINKS.values(), ids=LINKS)
def test_nothing_is_written_through_a_link_that_the_repository_commits(
    project: Project, outside: Path, links: dict[str, str], words: tuple[str, ...]
) -> None:
    if words == RUN:
        project.agent()
    if "links" in links:
        (outside / "deep").mkdir()
    before = list(outside.rglob("*"))
    for path, target in links.items():
        link(project, path, target.replace("OUTSIDE", str(outside)))
    project.git("add", "-fA")
    project.git("commit", "-q", "-m", "links")

    done = project.genba(*words, check=5)

    assert REFUSED in done.err
    assert "hint: git rm --cached -- " in done.err
    assert list(outside.rglob("*")) == before


def test_a_link_of_a_nested_repository_is_not_followed_either(project: Project, outside: Path) -> None:
    project.agent(logging={"directory": "sub/logs"})
    project.git("init", "-q", "sub")
    (project.root / "sub/logs").symlink_to(outside)
    for words in (("add", "logs"), ("-c", "user.name=N", "-c", "user.email=n@localhost", "commit", "-qm", "link")):
        project.git(*words, cwd=project.root / "sub")
    project.commit("a nested repository")

    assert REFUSED in project.genba(*RUN, check=5).err
    assert list(outside.rglob("*")) == []


def test_a_link_that_the_user_made_is_followed(project: Project, outside: Path) -> None:
    project.agent(logging={"directory": "tmp/logs"})
    (outside / "deep").mkdir()
    link(project, "tmp", str(outside))
    link(project, ".worktrees", str(outside / "deep"))
    link(project, ".genba/genba.db", str(outside / "made.db"))

    project.genba("task", "add", "A task")
    assert project.run("worker")["outcome"] == "completed"

    assert (outside / "made.db").is_file()
    assert list((outside / "logs").glob("*.jsonl"))
