"""Tests that import an installed copy of the project say nothing about a commit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import Project

_PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"


def _install(project: Project, folder: Path, name: str, editable: bool) -> None:
    """What `pip install .`, or `pip install -e .`, leaves in a virtual environment."""
    packages = folder / "lib" / "python3.11" / "site-packages"
    info = packages / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "direct_url.json").write_text(json.dumps({"url": project.root.as_uri(), "dir_info": {}}))
    if editable:
        (packages / "__editable__.pth").write_text(f"{project.root / 'src'}\n")
        (info / "RECORD").write_text("__editable__.pth,,\n")
    else:
        (packages / name).mkdir()
        (packages / name / "__init__.py").write_text("PRICE = 3\n")
        (info / "RECORD").write_text(f"{name}/__init__.py,,\n")
    (folder / "bin").mkdir()


@pytest.fixture
def shop(project: Project, tmp_path: Path) -> Project:
    """A project whose tests find its package wherever it is installed."""
    project.write("src/shop/__init__.py", "PRICE = 3\n")
    project.write("pyproject.toml", '[project]\nname = "shop"\nversion = "1.0"\n')
    project.write("tests/test_price.py", "import shop\n\n\ndef test_price():\n    assert shop.PRICE == 3\n")
    copy = tmp_path / "venv/lib/python3.11/site-packages"
    settings = {"dod": [{"type": "tests_pass", "command": f"PYTHONPATH=$PYTHONPATH:{copy} {_PYTEST}"}]}
    project.write(".genba/config.yaml", json.dumps(settings))
    project.commit("Begin")
    return project


def test_a_lost_package_does_not_pass_by_a_copy_that_only_the_command_knows(shop: Project, tmp_path: Path) -> None:
    """The Python that has the copy is named by its path, in a script of the project."""
    copy = tmp_path / "venv/lib/python3.11/site-packages/shop"
    copy.mkdir(parents=True)
    (copy / "__init__.py").write_text("PRICE = 3\n")
    shop.write("run.sh", f"PYTHONPATH=src:{copy.parent} exec {_PYTEST}\n")
    shop.write(".genba/config.yaml", json.dumps({"dod": [{"type": "tests_pass", "command": "sh run.sh"}]}))
    shop.commit("Tests by a script")
    shop.genba("verify", "main", check=0)
    shop.git("switch", "-q", "-c", "wrecked")
    shop.git("rm", "-rqf", "src")
    shop.git("commit", "-qm", "wreck")
    done = shop.genba("verify", "wrecked", "--json")
    assert done.code != 0
    assert "the tests import shop, which this commit has lost, of another place, not this commit" in done.out


@pytest.mark.parametrize(
    ("lost", "tests"),
    [
        ("git mv src/shop src/store", "import store\n\n\ndef test_price():\n    assert store.PRICE == 3\n"),
        (
            "mkdir -p lib && git mv src/shop lib/shop",
            "import shop\n\n\ndef test_price():\n    assert shop.PRICE == 3\n",
        ),
    ],
    ids=["renamed", "moved"],
)
def test_a_package_that_is_renamed_or_moved_with_its_tests_passes(shop: Project, lost: str, tests: str) -> None:
    goal = {"type": "tests_pass", "command": f"PYTHONPATH=src:lib {_PYTEST}"}
    shop.write(".genba/config.yaml", json.dumps({"dod": [goal], "verification": {"protected_paths": []}}))
    shop.commit("Where packages are")
    shop.git("switch", "-q", "-c", "moved")
    subprocess.run(lost, shell=True, cwd=shop.root, check=True)
    shop.write("tests/test_price.py", tests)
    shop.commit("Move")
    done = shop.genba("verify", "moved", "--json")
    assert "which this commit has lost" not in done.out
    assert done.json["verification"]["results"][0]["result"]["status"] == "passed", done.out


@pytest.mark.parametrize(
    "lose",
    [
        "git mv src/shop lib",
        "mkdir src/_old && git mv src/shop src/_old/shop",
        "git rm -rqf src && mkdir -p docs/shop && touch docs/shop/__init__.py",
        "git mv src/shop/__init__.py src/shop/init.py",
        "mkdir -p shop && git mv src/shop/__init__.py shop/price.py",
    ],
)
def test_tests_that_pass_without_the_moved_package_do_not_count(shop: Project, tmp_path: Path, lose: str) -> None:
    """A copy of another origin, such as an older release from a package index."""
    copy = tmp_path / "venv/lib/python3.11/site-packages/shop"
    copy.mkdir(parents=True)
    (copy / "__init__.py").write_text("PRICE = 3\n")
    shop.git("switch", "-q", "-c", "wrecked")
    subprocess.run(lose, shell=True, cwd=shop.root, check=True)
    shop.commit("Tidy")
    done = shop.genba("verify", "wrecked", "--json")
    assert done.code != 0
    assert "the tests import shop, which this commit has lost, of another place" in done.out


@pytest.mark.parametrize("lose", ["mkdir lib && git mv src/ns lib/ns", "git rm -q src/ns/one.py"])
def test_a_package_without_init_is_not_replaced_by_a_copy(project: Project, tmp_path: Path, lose: str) -> None:
    copy = tmp_path / "venv/lib/python3.11/site-packages/ns"
    copy.mkdir(parents=True)
    for folder in (copy, project.root / "src" / "ns"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "one.py").write_text("PRICE = 3\n")
        (folder / "two.py").write_text("COST = 1\n")
    project.write("tests/test_price.py", "from ns.one import PRICE\n\n\ndef test_price():\n    assert PRICE == 3\n")
    settings = {"dod": [{"type": "tests_pass", "command": f"PYTHONPATH=src:{copy.parent} {_PYTEST}"}]}
    project.write(".genba/config.yaml", json.dumps(settings))
    project.commit("Begin")
    project.genba("verify", "main", check=0)
    project.git("switch", "-q", "-c", "wrecked")
    subprocess.run(lose, shell=True, cwd=project.root, check=True)
    project.commit("Tidy")
    done = project.genba("verify", "wrecked", "--json")
    assert done.code != 0
    assert "the tests import ns, which this commit has lost, of another place" in done.out


def test_a_package_that_tests_import_in_another_process_is_not_replaced_by_a_copy(
    shop: Project, tmp_path: Path
) -> None:
    copy = tmp_path / "venv/lib/python3.11/site-packages"
    (copy / "shop").mkdir(parents=True)
    (copy / "shop" / "__init__.py").write_text("PRICE = 3\n")
    shop.write(
        "tests/test_price.py",
        "import subprocess, sys\n\n\ndef test_price():\n"
        "    subprocess.run([sys.executable, '-c', 'import shop; assert shop.PRICE == 3'], check=True)\n",
    )
    shop.commit("Ask another process")
    shop.genba("verify", "main", check=0)
    shop.git("switch", "-q", "-c", "wrecked")
    command = "git rm -rqf src && mkdir -p docs/shop && touch docs/shop/__init__.py"
    subprocess.run(command, shell=True, cwd=shop.root, check=True)
    shop.commit("Tidy")
    assert "which this commit has lost, of another place" in shop.genba("verify", "wrecked", "--json").out


@pytest.mark.parametrize("editable", [False, True])
@pytest.mark.parametrize("destroy", ["git rm -rqf src", "git mv src/shop/__init__.py src/shop/other.py"])
def test_a_destroyed_package_does_not_pass_by_its_installed_copy(
    shop: Project, tmp_path: Path, editable: bool, destroy: str
) -> None:
    _install(shop, tmp_path / "venv", "shop", editable)
    path = f"{tmp_path}/venv/bin:{os.environ['PATH']}"
    held = shop.genba("verify", "main", "--json", PATH=path)
    assert held.code == 0, held.err
    shop.git("switch", "-q", "-c", "wrecked")
    for words in (destroy.split(), ["git", "commit", "-qm", "wreck"]):
        shop.git(*words[1:])
    shop.git("switch", "-q", "main")
    done = shop.genba("verify", "wrecked", "--json", PATH=path)
    assert done.code != 0
    assert editable or "not this commit" in done.out
