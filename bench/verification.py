"""The second look at a tree beside the first: what was checked is not run again."""

import subprocess
import sys
import tempfile
from pathlib import Path

from bench.measuring import Row, command, side_by_side

GENBA = Path(sys.executable).parent / "genba"
SUITE_SECONDS = 6
TESTS = f"""
import time
import unittest


class Suite(unittest.TestCase):
    def test_as_slow_as_a_small_suite(self) -> None:
        time.sleep({SUITE_SECONDS})
"""
CONFIG = """
dod:
  - tests_pass: python3 -m unittest -q
  - no_secrets
"""


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="genba-bench-") as folder:
        root = _repository(Path(folder))
        found = side_by_side(
            2,
            first=command(str(GENBA), "verify", "work", "--fresh", cwd=str(root)),
            second=command(str(GENBA), "verify", "work", cwd=str(root)),
        )
    figure = f"{found['second'] * 1000:.0f} ms beside {found['first']:.1f} s, of which {SUITE_SECONDS} s is its suite"
    return [Row("a second verification of the same tree / the first", figure, found["second"] / found["first"], 0.05)]


def _repository(folder: Path) -> Path:
    root = folder / "repository"
    root.mkdir()

    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=B", "-c", "user.email=b@localhost", *words], cwd=root, check=True)

    git("init", "-q", "-b", "main")
    (root / ".genba").mkdir()
    (root / ".genba" / "config.yaml").write_text(CONFIG)
    (root / "test_suite.py").write_text(TESTS)
    git("add", "-A")
    git("commit", "-q", "-m", "Begin")
    git("switch", "-q", "-c", "work")
    (root / "work.txt").write_text("work\n")
    git("add", "-A")
    git("commit", "-q", "-m", "Work")
    git("switch", "-q", "main")
    return root
