"""A little is deleted at once, much in the background, and nothing that a link leads to."""

import time
from pathlib import Path

from genba.connections.git.worktrees.trash import delete_later

DEADLINE = 30.0


def _filled(folder: Path, names: int) -> Path:
    (folder / "inner").mkdir(parents=True)
    for number in range(names):
        (folder / "inner" / f"{number}.txt").write_text("x")
    return folder


def test_a_little_is_gone_at_once(tmp_path: Path) -> None:
    kept = _filled(tmp_path / "kept", 1)
    little = _filled(tmp_path / "little", 5)
    (little / "away").symlink_to(kept)

    delete_later(little, tmp_path / "never-there", None)

    assert not little.exists()
    assert (kept / "inner" / "0.txt").read_text() == "x"


def test_an_unreadable_folder_is_deleted_too(tmp_path: Path) -> None:
    closed = _filled(tmp_path / "closed", 2)
    (closed / "inner").chmod(0)

    delete_later(closed)

    _until_gone(closed)


def test_much_is_deleted_by_another_process(tmp_path: Path) -> None:
    much = _filled(tmp_path / "much", 300)

    delete_later(much)

    _until_gone(much)


def _until_gone(folder: Path) -> None:
    deadline = time.monotonic() + DEADLINE
    while folder.exists():
        assert time.monotonic() < deadline, "it was not deleted"
        time.sleep(0.01)
