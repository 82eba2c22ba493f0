import tarfile
import zipfile
from pathlib import Path

import pytest

from release import sbom
from release.locks import ROOT
from release.wheel import SUMS, NotTheSame, build_twice, sums, tracked, write_sums

EPOCH = "1700000000"


def test_two_builds_in_other_folders_times_modes_and_languages_are_the_same_bytes(tmp_path: Path) -> None:
    """One pair of builds for everything that is to be seen in it: it is the dear part."""
    if not (ROOT / ".git").exists():
        pytest.skip("not run: this is no clone, so nobody knows what is tracked")
    built = build_twice(ROOT, tmp_path, EPOCH)
    assert sums(tmp_path) == built
    wheel_carries_the_list_of_what_is_inside(tmp_path)
    nothing_is_in_them_that_is_not_tracked(tmp_path)


def wheel_carries_the_list_of_what_is_inside(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(".dist-info/sboms/genba.cdx.json"))
        assert wheel.read(name) == sbom.PLACE.read_bytes()


def nothing_is_in_them_that_is_not_tracked(built: Path) -> None:
    known = set(tracked(ROOT))
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        packed = {f"src/{name}" for name in wheel.namelist() if ".dist-info/" not in name}
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        sources = {member.name.partition("/")[2]: member for member in archive.getmembers() if member.isfile()}
    assert packed - known == set()
    assert set(sources) - known == {"PKG-INFO"}
    assert {(member.uid, member.gid, member.uname, member.gname) for member in sources.values()} == {(0, 0, "", "")}
    assert not any(member.mode & 0o022 for member in sources.values())


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises((NotTheSame, OSError)):
        build_twice(ROOT / "nowhere", tmp_path / "dist", EPOCH)
    assert not (tmp_path / "dist").exists()


def test_the_sums_can_be_checked_by_others(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    write_sums(tmp_path)
    digest = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
    assert (tmp_path / SUMS).read_text() == f"{digest}  a.txt\n"
