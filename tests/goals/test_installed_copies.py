"""Tests that import an installed copy of the project say nothing about a commit."""

import json
import os
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
