"""Trees that were written in a sandbox are removed without following a link, whatever state they are in."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from genba.connections.removal import remove_tree, removed_afterwards

_AS_ORDINARY_USER = """
import sys
from genba.connections.removal import remove_tree
sys.exit(0 if remove_tree(sys.argv[1]) else 1)
"""


def test_links_are_removed_and_what_they_lead_to_stays(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    tree = tmp_path / "tree"
    (tree / "folder").mkdir(parents=True)
    (tree / "link").symlink_to(outside)
    (tree / "folder/up").symlink_to("../..")
    os.mkfifo(tree / "pipe")
    assert remove_tree(tree)
    assert not os.path.lexists(tree)
    assert (outside / "kept").read_text() == "kept"
    (tmp_path / "itself").symlink_to(outside)
    assert remove_tree(tmp_path / "itself")
    assert (outside / "kept").exists()


def test_closed_folders_go_and_no_mode_outside_changes(tmp_path: Path) -> None:
    """Older versions of `tempfile.TemporaryDirectory` change the mode of what a link in a closed folder leads to."""
    base = tmp_path / "place"
    outside = base / "outside"
    (outside / "inner").mkdir(parents=True)
    (outside / "file").write_text("kept")
    tree = base / "tree"
    (tree / "closed/deeper").mkdir(parents=True)
    (tree / "closed/link").symlink_to(outside)
    (tree / "closed/file-link").symlink_to(outside / "file")
    (tree / "unread").mkdir()
    (tree / "unread/file").write_text("x")
    modes = {outside: 0o500, outside / "file": 0o400, tree / "closed": 0o500, tree / "unread": 0o000}
    ordinary = 65534 if os.geteuid() == 0 else None
    if ordinary is not None:
        for path in (base, *base.rglob("*")):
            os.chown(path, ordinary, ordinary, follow_symlinks=False)
        for parent in tmp_path.parents[:3]:
            if parent.stat().st_uid == 0 and str(parent) != "/tmp":
                parent.chmod(parent.stat().st_mode | 0o011)
        tmp_path.chmod(0o755)
    for path, mode in modes.items():
        path.chmod(mode)
    done = subprocess.run([sys.executable, "-c", _AS_ORDINARY_USER, str(tree)], user=ordinary, check=False)
    assert done.returncode == 0
    assert not tree.exists()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (outside, outside / "file")] == [0o500, 0o400]


def test_folders_without_end_are_removed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    here = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(1500):
        os.mkdir("deeper-and-deeper", dir_fd=here)  # longer than a path may be
        inner = os.open("deeper-and-deeper", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    assert remove_tree(tree)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_removed_afterwards_also_after_an_error(tmp_path: Path) -> None:
    def fail(place: Path) -> None:
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        (place / "file").write_text("x")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), removed_afterwards(tmp_path, "own-") as place:
        fail(place)
    assert list(tmp_path.iterdir()) == []
    assert remove_tree(tmp_path / "nothing")
