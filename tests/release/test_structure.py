"""`make check` names packages that grew too large, and commit subjects that cannot be searched."""

from pathlib import Path

from release.locks import ROOT
from release.structure import large_packages, subjects_since, wrong_subjects


def test_a_package_with_too_many_modules_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "src" / "genba" / "domain"
    folder.mkdir(parents=True)
    for number in range(15):
        (folder / f"m{number}.py").touch()
    (folder / "__init__.py").touch()
    assert large_packages(tmp_path) == []
    (folder / "m15.py").touch()
    assert large_packages(tmp_path) == ["src/genba/domain has 16 modules, more than 15: split it by subject"]


def test_a_subject_names_its_area_and_is_short() -> None:
    assert wrong_subjects(["git: disable auto-gc while a branch lock is held"]) == []
    assert len(wrong_subjects(["Let nobody wait", "git: " + "x" * 70, "git:nothing"])) == 3


def test_packages_of_this_project_are_small_enough() -> None:
    assert large_packages(ROOT) == []


def test_a_commit_that_is_not_known_has_no_subjects() -> None:
    assert subjects_since("0" * 40, ROOT) == []
