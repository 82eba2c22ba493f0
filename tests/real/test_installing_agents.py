import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clis import BINARIES, cli

HERE = Path(__file__).parent.parent / "clis"
ROOT = HERE.parent.parent


def install(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The installer on a machine without node, npm and network."""
    bare = {"PATH": str(folder), "HOME": str(folder), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, **environment}
    words = [sys.executable, str(HERE / "install.py"), str(folder / "clis")]
    return subprocess.run(words, env=bare, capture_output=True, text=True, check=False)


def test_without_a_network_it_says_loudly_what_will_not_run(tmp_path: Path) -> None:
    done = install(tmp_path)

    assert done.returncode == 0
    assert re.search(r"^NOT INSTALLED: claude, codex, gemini, opencode, [\w, -]+\. ", done.stderr, re.MULTILINE)
    assert "Every test with one of them will say: not run." in done.stderr
    assert not (tmp_path / "clis").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["clis.lock"]


def test_where_the_agents_are_required_the_same_is_a_failure(tmp_path: Path) -> None:
    assert install(tmp_path, GENBA_REQUIRE_CLIS="1").returncode == 1


@pytest.mark.parametrize(("required", "end"), [("0", "Skipped"), ("1", "Failed")])
def test_a_test_without_its_agent_is_never_passed(tmp_path: Path, required: str, end: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from tests.clis import cli; cli('claude')"],
        cwd=ROOT,
        env={**os.environ, "GENBA_CLIS": str(tmp_path), "GENBA_REQUIRE_CLIS": required},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode != 0
    assert re.search(rf"{end}: not run: claude is not installed in .*; hint: make clis", done.stderr)


def test_what_is_there_is_what_the_lock_names() -> None:
    wanted = json.loads((HERE / "package.json").read_text())["dependencies"]
    claude = subprocess.run([cli("claude"), "--version"], capture_output=True, text=True, check=True).stdout
    there = {name: json.loads((BINARIES.parent / name / "package.json").read_text())["version"] for name in wanted}

    assert there == {name: version.rpartition("@")[2] for name, version in wanted.items()}
    assert wanted["@anthropic-ai/claude-code"] in claude


def test_the_lock_is_exact_and_names_no_registry() -> None:
    text = (HERE / "package-lock.json").read_text()
    wanted = json.loads((HERE / "package.json").read_text())["dependencies"]

    assert "://" not in text
    assert "resolved" not in text
    exact = r"(npm:@[\w/-]+@)?\d+\.\d+\.\d+(-[a-z]+\.\d+)?"
    assert all(re.fullmatch(exact, version) for version in wanted.values())
    assert json.loads(text)["packages"][""]["dependencies"] == wanted
