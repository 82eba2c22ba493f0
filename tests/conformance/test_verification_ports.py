"""What a verification looks at, and the doubles of it, pass the same suites."""

import subprocess
from pathlib import Path

import pytest

from genba.connections.git.private.checkouts import GitCheckouts
from genba.connections.git.repository.history import GitHistory
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.goals.results import FileResults
from genba.domain.ports import Checkouts, History, ResultStore
from tests.doubles.verification_conformance import CheckoutsSuite, HistorySuite, ResultStoreSuite
from tests.doubles.verification_doubles import MemoryCheckouts, MemoryHistory, MemoryResults


def git(root: Path, *words: str) -> str:
    named = ("-c", "user.name=T", "-c", "user.email=t@localhost", *words)
    return subprocess.run(["git", *named], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "a.txt").write_text("one")
    (root / "old.txt").write_text("old")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Begin")
    git(root, "switch", "-q", "-c", "work")
    (root / "a.txt").write_text("two")
    (root / "new.txt").write_text("new")
    (root / "old.txt").unlink()
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Work")
    git(root, "commit", "-q", "--allow-empty", "-m", "Nothing")
    return root


class TestHistories(HistorySuite):
    @pytest.fixture(params=["git", "double"])
    async def history(self, request: pytest.FixtureRequest, repository: Path) -> History:
        if request.param == "git":
            return GitHistory((await RepositoryLayout.find(repository)).git)
        memory = MemoryHistory()
        memory.branches = {
            "main": memory.commit("c0", {"a.txt": "one", "old.txt": "old"}),
            "work": memory.commit("c2", {"a.txt": "two", "new.txt": "new"}, "c1"),
        }
        memory.commit("c1", {"a.txt": "two", "new.txt": "new"}, "c0")
        return memory


class TestCheckouts(CheckoutsSuite):
    @pytest.fixture(params=["git", "double"])
    async def checkouts(self, request: pytest.FixtureRequest, repository: Path) -> Checkouts:
        if request.param == "git":
            return GitCheckouts(await RepositoryLayout.find(repository))
        return MemoryCheckouts()

    @pytest.fixture
    def commit(self, repository: Path) -> str:
        return git(repository, "rev-parse", "work")

    @pytest.fixture
    def blob(self, repository: Path) -> str:
        return git(repository, "rev-parse", "main:old.txt")


class TestResultStores(ResultStoreSuite):
    @pytest.fixture(params=["files", "double"])
    def results(self, request: pytest.FixtureRequest, tmp_path: Path) -> ResultStore:
        return FileResults(tmp_path / "goals") if request.param == "files" else MemoryResults()


async def test_a_checkout_has_the_commit_and_nothing_else(repository: Path) -> None:
    checkouts = GitCheckouts(await RepositoryLayout.find(repository))
    (repository / "left.txt").write_text("not committed")
    (repository / ".git" / "hooks" / "post-checkout").write_text("#!/bin/sh\ntouch hooked\n")
    (repository / ".git" / "hooks" / "post-checkout").chmod(0o755)
    folder = Path(await checkouts.open(git(repository, "rev-parse", "work")))
    await checkouts.renew(str(folder))

    assert names(folder) == [".git", "a.txt", "new.txt"]
    assert git(folder, "rev-parse", "HEAD") == git(repository, "rev-parse", "work")
    assert git(folder, "status", "--porcelain") == ""
    assert git(folder, "branch", "--all") == "* (no branch)"
    git(folder, "commit", "-q", "--allow-empty", "-m", "inside")
    await checkouts.close(str(folder))

    assert names(folder.parent.parent) == []
    assert "inside" not in git(repository, "log", "--all", "--format=%s")


async def test_what_is_laid_over_a_checkout_follows_no_link(repository: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("precious")
    (repository / "deep").symlink_to(outside)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "Link")
    blob = git(repository, "rev-parse", "main:old.txt")
    checkouts = GitCheckouts(await RepositoryLayout.find(repository))

    folder = Path(await checkouts.open(git(repository, "rev-parse", "work"), (("deep/b.txt", blob),)))
    await checkouts.renew(str(folder))

    assert (folder / "deep" / "b.txt").read_text() == "old"
    assert (outside / "b.txt").read_text() == "precious"
    await checkouts.close(str(folder))


async def test_the_checkouts_of_the_dead_are_swept(repository: Path) -> None:
    layout = await RepositoryLayout.find(repository)
    dead = layout.own / "checkouts" / "abc-1-def"
    (dead / "tree").mkdir(parents=True)
    (layout.own / "checkouts" / "abc-1-def.lock").touch()
    living, checkouts = GitCheckouts(layout), GitCheckouts(layout)
    kept = await living.open(git(repository, "rev-parse", "work"))

    folder = await checkouts.open(git(repository, "rev-parse", "work"))

    assert len(names(layout.own / "checkouts")) == 4
    assert dead.name not in names(layout.own / "checkouts")
    await checkouts.close(folder)
    await living.close(kept)


async def test_replaced_objects_and_grafts_change_nothing(repository: Path) -> None:
    """An agent may write beside the history; Genba reads the history itself."""
    history = GitHistory((await RepositoryLayout.find(repository)).git)
    main, work = git(repository, "rev-parse", "main"), git(repository, "rev-parse", "work")
    before = await history.facts(main, work)
    git(repository, "replace", f"{work}~1", main)
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "grafts").write_text(f"{work} {main}\n")

    assert await history.facts(main, work) == before


async def test_what_is_too_long_to_read_is_passed_over_and_hides_nothing_behind_it(repository: Path) -> None:
    (repository / "huge.txt").write_text("x" * 5_000_000)
    (repository / "z.txt").write_text("seen\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "Huge")
    history = GitHistory((await RepositoryLayout.find(repository)).git)
    asked = ("HEAD:a.txt", "HEAD:huge.txt", "HEAD:no such", "HEAD^{tree}", "HEAD:z.txt")
    assert await history.read(asked) == {"HEAD:a.txt": "two", "HEAD:z.txt": "seen\n"}
