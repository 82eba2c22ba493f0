"""A checkout between two goals: the files of the commit are as they were, and what was built stays."""

import os
import shutil
from pathlib import Path

import pytest

from genba.connections.git.checkouts import GitCheckouts
from genba.connections.git.layout import RepositoryLayout
from tests.project import Project


@pytest.fixture
async def checkout(project: Project) -> tuple[GitCheckouts, Path, str]:
    project.write("check.sh", "exit 1\n")
    project.write(".gitignore", "built\n")
    project.write("src/code.py", "x = 1\n")
    commit = project.commit()
    checkouts = GitCheckouts(await RepositoryLayout.find(project.root))
    return checkouts, Path(await checkouts.open(commit)), commit


async def test_what_a_command_rewrote_is_put_back_and_what_it_built_stays(
    checkout: tuple[GitCheckouts, Path, str],
) -> None:
    checkouts, folder, commit = checkout
    (folder / "check.sh").write_text("exit 0\n")
    (folder / "README.md").unlink()
    (folder / "built").write_text("kept\n")
    (folder / "conftest.py").write_text("planted for the next goal\n")

    await checkouts.restore(str(folder), commit)

    assert (folder / "check.sh").read_text() == "exit 1\n"
    assert (folder / "README.md").exists()
    assert (folder / "built").read_text() == "kept\n"
    assert not (folder / "conftest.py").exists()
    await checkouts.close(str(folder))
    assert not folder.exists()


async def test_a_file_that_looks_the_same_to_stat_is_put_back_too(checkout: tuple[GitCheckouts, Path, str]) -> None:
    checkouts, folder, commit = checkout
    seen = (folder / "check.sh").stat()
    (folder / "check.sh").write_text("exit 0\n")
    os.utime(folder / "check.sh", ns=(seen.st_atime_ns, seen.st_mtime_ns))
    kept = folder.parent / "index"
    os.utime(kept, (kept.stat().st_mtime + 60, kept.stat().st_mtime + 60))

    await checkouts.restore(str(folder), commit)

    assert (folder / "check.sh").read_text() == "exit 1\n"


async def test_a_command_cannot_hide_what_it_rewrote(
    checkout: tuple[GitCheckouts, Path, str], project: Project, tmp_path: Path
) -> None:
    checkouts, folder, commit = checkout
    (folder / "check.sh").write_text("exit 0\n")
    project.git("update-index", "--assume-unchanged", "check.sh", cwd=folder)
    project.git("config", "filter.evil.smudge", f"touch {tmp_path}/ran; cat", cwd=folder)
    (folder / ".git/info").mkdir(exist_ok=True)
    (folder / ".git/info/attributes").write_text("* filter=evil\n")

    await checkouts.restore(str(folder), commit)

    assert (folder / "check.sh").read_text() == "exit 1\n"
    assert not (tmp_path / "ran").exists()


async def test_a_link_that_a_command_left_is_not_followed(
    checkout: tuple[GitCheckouts, Path, str], tmp_path: Path
) -> None:
    checkouts, folder, commit = checkout
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "code.py").write_text("precious\n")
    shutil.rmtree(folder / "src")
    (folder / "src").symlink_to(outside)
    shutil.rmtree(folder / ".git")
    (folder / ".git").symlink_to(outside)

    await checkouts.restore(str(folder), commit)

    assert (outside / "code.py").read_text() == "precious\n"
    assert sorted(path.name for path in outside.iterdir()) == ["code.py"]
    assert (folder / "src/code.py").read_text() == "x = 1\n"


async def test_what_a_setup_made_stays_and_what_it_rewrote_does_not(project: Project) -> None:
    project.write("check.sh", "exit 1\n")
    commit = project.commit()
    blob = project.git("rev-parse", f"{commit}:check.sh")
    checkouts = GitCheckouts(await RepositoryLayout.find(project.root))
    folder = Path(await checkouts.open(commit, (("test_new.py", blob), ("README.md", blob))))
    (folder / "node_modules" / "a b").mkdir(parents=True)
    (folder / "node_modules" / "a b" / "index.js").write_text("installed\n")
    (folder / "a*[1].txt").write_text("made by the setup\n")
    (folder / "check.sh").write_text("exit 0\n")

    await checkouts.restore(str(folder), commit, keep=True)
    (folder / "planted.py").write_text("by a goal\n")
    (folder / "test_new.py").write_text("by a goal\n")
    await checkouts.restore(str(folder), commit)

    assert (folder / "node_modules" / "a b" / "index.js").read_text() == "installed\n"
    assert (folder / "a*[1].txt").exists()
    assert (folder / "check.sh").read_text() == "exit 1\n"
    assert (folder / "test_new.py").read_text() == (folder / "README.md").read_text() == "exit 1\n"
    assert not (folder / "planted.py").exists()
    await checkouts.close(str(folder))
