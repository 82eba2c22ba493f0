"""Fuzzing that is guided by what was reached, where atheris is there; else it says so."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACE = Path(sys.executable).parents[1] / "fuzz"
"""Where `make fuzz` puts atheris."""
NAMES = ("adapter-streams", "steps-registry", "settings")


def play_guided(seconds: int, seed: int, say: Callable[[str], None]) -> set[str]:
    """Every parser for so many seconds; the names of those in which something was found."""
    if not (PLACE / "atheris").is_dir():
        say("not run: atheris, which is not installed here (it has no wheel for this Python)")
        return set()
    found = set()
    for name in NAMES:
        with tempfile.TemporaryDirectory(prefix="genba-atheris-") as folder:
            (Path(folder) / "corpus").mkdir()
            words = [sys.executable, "-m", "tests.fuzz.atheris_inputs", name, f"{folder}/corpus"]
            words += [
                f"-max_total_time={seconds}",
                f"-seed={seed}",
                f"-artifact_prefix={folder}/",
                "-print_final_stats=1",
            ]
            environment = {**os.environ, "PYTHONPATH": f"{PLACE}{os.pathsep}{ROOT}"}
            done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
            runs = next(
                (line.split()[-1] for line in done.stderr.splitlines() if "number_of_executed_units" in line), "?"
            )
            say(f"{'FOUND' if done.returncode else 'ok':>6}  {name:<14} {runs} inputs, guided")
            if done.returncode:
                found.add(name)
                say(done.stdout[-4000:] + done.stderr[-8000:])
                for artifact in Path(folder).glob("*-*"):
                    say(f"{artifact.name}: {artifact.read_bytes()[:2000]!r}")
    return found
