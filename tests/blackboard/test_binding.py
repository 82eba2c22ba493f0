"""An SQLite file belongs to one repository: a second one that names it is refused, and changes nothing."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from genba.blackboard.tasks.board import Blackboard
from tests.blackboard.conftest import Postgres
from tests.project import Project


def another(project: Project, folder: Path) -> Project:
    """A second repository of the same user."""
    folder.mkdir(parents=True)
    made = Project(folder, dict(project.environment))
    made.git("init", "-q", "-b", "main")
    for name, value in (("user.name", "Test User"), ("user.email", "user@localhost")):
        made.git("config", name, value)
    made.write("README.md", "second\n")
    made.git("add", "-A")
    made.git("commit", "-qm", "Begin")
    return made


def projects(file: Path) -> list[tuple[str, ...]]:
    connection = sqlite3.connect(file)
    try:
        return connection.execute("SELECT id, name FROM projects").fetchall()
    finally:
        connection.close()


def at(project: Project, address: str | Path) -> Project:
    """The same repository, with its tasks at another address."""
    return Project(project.root, {**project.environment, "GENBA_DATABASE_URL": str(address)})


def titles(project: Project) -> list[str]:
    found = project.genba("task", "list", "--json", check=0).json
    return [task["title"] for task in found]


@pytest.fixture
def first(project: Project) -> Project:
    project.genba("task", "add", "The first task", check=0)
    return project


@pytest.mark.parametrize("way", ["absolute", "url", "relative", "link", "settings"])
def test_a_second_repository_that_points_at_the_same_file_is_refused(first: Project, tmp_path: Path, way: str) -> None:
    file = first.root / ".genba" / "genba.db"
    second = another(first, tmp_path / "second" / "shop")
    if way == "settings":
        second.write(".genba/config.yaml", f"project: {{name: {first.root.name}}}\ndatabase: {{url: '{file}'}}\n")
    elif way == "link":
        (second.root / ".genba").mkdir()
        (second.root / ".genba" / "genba.db").symlink_to(file)
    else:
        named = {
            "absolute": str(file),
            "url": f"sqlite:///{file}",
            "relative": f"../../{first.root.name}/.genba/genba.db",
        }
        second = at(second, named[way])
    before = projects(file)
    for words in (("task", "list"), ("task", "add", "Not yours"), ("status",), ("work",)):
        done = second.genba(*words, check=5)
        assert "genba migrate --adopt" in done.err
        assert "The first task" not in done.out
    assert projects(file) == before
    assert titles(first) == ["The first task"]


def test_a_clone_is_a_second_repository_too(first: Project, tmp_path: Path) -> None:
    first.git("clone", "-q", str(first.root), str(tmp_path / "elsewhere" / first.root.name))
    clone = Project(tmp_path / "elsewhere" / first.root.name, dict(first.environment))
    refused = clone.genba("task", "list", check=5, GENBA_DATABASE_URL=str(first.root / ".genba" / "genba.db"))
    assert str(first.root) in refused.err


def test_a_copy_of_a_repository_is_a_second_one_for_a_file_outside(first: Project, tmp_path: Path) -> None:
    file = tmp_path / "boards" / "shop.db"
    first.genba("task", "add", "Outside", check=0, GENBA_DATABASE_URL=str(file))
    shutil.copytree(first.root, tmp_path / "copy", symlinks=True)
    copy = Project(tmp_path / "copy", dict(first.environment))
    copy.genba("task", "list", check=5, GENBA_DATABASE_URL=str(file))
    assert titles(copy) == ["The first task"]  # its own file was copied with it
    assert titles(at(first, file)) == ["Outside"]


def test_a_repository_that_was_moved_and_renamed_keeps_its_file(first: Project, tmp_path: Path) -> None:
    file = tmp_path / "boards" / "shop.db"
    first.genba("task", "add", "Outside", check=0, GENBA_DATABASE_URL=str(file))
    first.root.rename(tmp_path / "moved")
    moved = Project(tmp_path / "moved", dict(first.environment))
    assert titles(moved) == ["The first task"]
    assert titles(at(moved, file)) == ["Outside"]
    assert [name for _, name in projects(file)] == ["moved"]


def test_a_linked_worktree_is_the_same_repository(first: Project, tmp_path: Path) -> None:
    first.git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "side")
    linked = Project(tmp_path / "linked", dict(first.environment))
    assert titles(linked) == ["The first task"]


def test_without_its_own_folder_a_repository_still_has_the_file_in_its_checkout(first: Project) -> None:
    shutil.rmtree(first.root / ".git" / "genba")
    assert titles(first) == ["The first task"]


def test_a_file_is_taken_over_when_a_person_says_so(first: Project, tmp_path: Path) -> None:
    file = first.root / ".genba" / "genba.db"
    second = another(first, tmp_path / "second")
    at(second, file).genba("migrate", "--adopt", check=0)
    assert titles(at(second, file)) == ["The first task"]
    refused = first.genba("task", "list", check=5)
    assert str(second.root) in refused.err
    second.genba("migrate", "--adopt", GENBA_RUN="run_1", GENBA_DATABASE_URL=str(tmp_path / "x.db"), check=5)


def test_an_older_file_belongs_to_the_repository_that_it_lies_in(project: Project, tmp_path: Path) -> None:
    with project.board() as board:  # as a Genba before this one made it: bound to no repository
        assert board.store.project
    second = another(project, tmp_path / "second")
    file = project.root / ".genba" / "genba.db"
    second.genba("task", "list", check=5, GENBA_DATABASE_URL=str(file))
    project.genba("task", "add", "Still mine", check=0)


def test_projects_on_postgresql_are_known_by_their_names(project: Project, postgres: Postgres, tmp_path: Path) -> None:
    address = postgres.database()
    at(project, address).genba("task", "add", "Here", check=0)
    other = another(project, tmp_path / "other")
    assert titles(at(other, address)) == []
    clone = another(project, tmp_path / "host" / project.root.name)  # another host has the same project
    assert titles(at(clone, address)) == ["Here"]
    at(clone, address).genba("migrate", "--adopt", check=2)


def test_the_blackboard_alone_asks_for_no_repository(tmp_path: Path) -> None:
    with Blackboard.open(str(tmp_path / "a.db"), "one") as board:
        assert board.store.project
