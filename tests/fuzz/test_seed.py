"""One seed plays all of `make fuzz` again: what was found once is found once more."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DRAWING = """
from hypothesis import given, strategies as st
from tests.fuzz.outside import tried

@tried(share=5)
@given(st.integers())
def test_drawing(number):
    with open("drawn", "a") as file:
        file.write(f"{number}\\n")
"""


def drawn(folder: Path, seed: int, examples: int) -> str:
    """What Hypothesis draws in a search of so many examples; with 0, in the share."""
    (folder / "drawn").write_text("")
    (folder / "test_drawing.py").write_text(DRAWING)
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}", "test_drawing.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GENBA_FUZZ_EXAMPLES": str(examples)}
    subprocess.run([sys.executable, *words], cwd=folder, env=environment, check=True, capture_output=True, timeout=100)
    return (folder / "drawn").read_text()


def test_the_seed_says_what_a_long_search_draws_and_the_share_is_always_the_same(tmp_path: Path) -> None:
    first = drawn(tmp_path, seed=1, examples=20)
    assert len(first.split()) >= 20
    assert drawn(tmp_path, seed=1, examples=20) == first
    assert drawn(tmp_path, seed=2, examples=20) != first
    assert drawn(tmp_path, seed=1, examples=0) == drawn(tmp_path, seed=2, examples=0)


@pytest.mark.parametrize("given", ["SEED=7", "SEED="])
def test_both_halves_of_the_fuzzing_get_the_same_seed(given: str) -> None:
    done = subprocess.run(["make", "-n", "fuzz", given], cwd=ROOT, check=True, capture_output=True, text=True)
    seeds = re.findall(r"-seed[ =](\d+)", done.stdout)
    assert len(seeds) == 2
    assert seeds[0] == seeds[1]
    assert given == "SEED=" or seeds[0] == "7"
