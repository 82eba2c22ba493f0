"""What 100 MB of output cost: an agent that prints them, beside `cat > file`, in turns; its journal and its memory."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.measuring import Row, clean_environment, side_by_side

SIZE = 100_000_000
ROUNDS = 3
TIMES, SECONDS = 2.0, 2.0
JOURNAL_MB = 16.0
MEMORY_MB = 64.0
GENBA = str(Path(sys.executable).parent / "genba")
_EVENT = {"type": "assistant", "message": {"content": [{"type": "text", "text": "words of a model " * 8}]}}
PRINTED: dict[str, Callable[[], bytes]] = {
    "short lines": lambda: b"hello 12\n" * (SIZE // 9),
    "empty lines": lambda: b"\n" * SIZE,
    "one line": lambda: b"x" * SIZE,
    "garbage": lambda: _garbage() * (SIZE // 1_000_000),
    "progress bars": lambda: b"  50 % [======    ]\r" * (SIZE // 20),
    "events in JSON": lambda: (line := json.dumps(_EVENT).encode() + b"\n") * (SIZE // len(line)),
}


def _garbage() -> bytes:
    import random  # noqa: PLC0415  (the same garbage each time)

    return random.Random(8).randbytes(1_000_000)


def rows() -> list[Row]:
    """One row for each kind of output, one for the longest journal, and one for memory."""
    found: list[Row] = []
    longest, memory = 0.0, 0.0
    for name, make in PRINTED.items():
        with tempfile.TemporaryDirectory(prefix="genba-bench-") as folder:
            root = Path(folder)
            (root / "printed").write_bytes(make())
            times = side_by_side(ROUNDS, cat=_cat(root), genba=_genba(_repository(root)))
            longest = max(longest, *(each.stat().st_size / 1e6 for each in root.rglob("*.jsonl")))
            loud = _memory(root / "repository")
            (root / "printed").write_bytes(b"")
            memory = max(memory, loud - _memory(root / "repository"))
        allowed = TIMES * times["cat"] + SECONDS
        figure = f"{times['genba']:.2f} s beside {times['cat']:.2f} s of cat; at most {allowed:.2f} s"
        what = f"100 MB of {name}, genba run / ({TIMES:g} × cat + {SECONDS:g} s)"
        found.append(Row(what, figure, times["genba"] / allowed, 1.0))
    found.append(Row("the longest of these journals, MB", f"at most {JOURNAL_MB:g} MB", longest, JOURNAL_MB))
    figure = f"above an agent that prints nothing; at most {MEMORY_MB:g} MB"
    found.append(Row("memory for 100 MB of output, MB", figure, memory, MEMORY_MB))
    return found


def _cat(root: Path) -> Callable[[], None]:
    def call() -> None:
        with (root / "copy").open("wb") as copy:
            subprocess.run(["cat", str(root / "printed")], stdout=copy, check=True)

    return call


def _genba(repository: Path) -> Callable[[], None]:
    def call() -> None:
        words = [GENBA, "run", "loud", "--quiet"]
        subprocess.run(words, cwd=repository, env=clean_environment(), check=True, capture_output=True)

    return call


def _memory(repository: Path) -> float:
    """The most that the largest process of a session has used. A process of its own looks: its memory is small."""
    look = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=2); "
    look += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    words = [sys.executable, "-c", look, GENBA, "run", "loud", "--quiet"]
    done = subprocess.run(words, cwd=repository, env=clean_environment(), check=True, capture_output=True, text=True)
    return int(done.stdout) / 1024


def _repository(root: Path) -> Path:
    repository = root / "repository"
    folder = repository / ".agent" / "loud"
    (folder / "prompts").mkdir(parents=True)
    runner = {
        "completion": {"type": "iterationBudget", "config": {"maxIterations": 1}},
        "adapter": {"type": "custom", "command": ["cat", str(root / "printed")]},
    }
    file = {"name": "loud", "description": "Prints a lot", "runner": runner}
    (folder / "agent.json").write_text(json.dumps(file))
    (folder / "steps_registry.json").write_text(json.dumps({"steps": {"work": {}}}))
    (folder / "prompts" / "system.md").write_text("Be loud.\n")
    words = (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "Begin"])
    who = ("-c", "user.name=Bench", "-c", "user.email=bench@localhost")
    for each in words:
        subprocess.run(["git", *who, *each], cwd=repository, check=True, capture_output=True)
    return repository
