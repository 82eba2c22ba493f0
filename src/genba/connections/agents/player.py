"""The process of a scripted agent: plays the one turn that comes on stdin. Standard library only, so it starts fast."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

UNEXPECTED = 97
"""The exit code when the prompt is not what the script expects."""


def main() -> None:
    part: dict[str, Any] = json.load(sys.stdin)
    _compare(part)
    for deed in part["do"]:
        for kind, value in deed.items():
            if kind == "run" and value is not None:
                _run(value, part["prompt"])
            elif value is not None:
                _ACTIONS[kind](value)


def _compare(part: dict[str, Any]) -> None:
    wanted = [part["expect"]] if isinstance(part["expect"], str) else part["expect"]
    missing = [text for text in wanted if text not in part["prompt"]]
    if missing:
        sys.stderr.write(f"the prompt does not contain {missing[0]!r}\n")
        sys.exit(UNEXPECTED)
    if part["model"] is not None and part["model"] != part["asked_model"]:
        sys.stderr.write(f"the model is {part['asked_model']!r}, not {part['model']!r}\n")
        sys.exit(UNEXPECTED)


def _write(value: dict[str, str]) -> None:
    path = Path(value["path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value["text"], encoding="utf-8")


def _append(value: dict[str, str]) -> None:
    path = Path(value["path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(value["text"])


def _replace(value: dict[str, str]) -> None:
    path = Path(value["path"])
    text = path.read_text(encoding="utf-8")
    if value["old"] not in text:
        sys.exit(f"{path} does not contain {value['old']!r}")
    path.write_text(text.replace(value["old"], value["new"]), encoding="utf-8")


def _delete(value: str) -> None:
    Path(value).unlink()


def _commit(value: str) -> None:
    subprocess.run(["git", "add", "-A"], check=True)
    subprocess.run(["git", "commit", "-q", "--no-verify", "-m", value], check=True)


def _run(value: str, prompt: str) -> None:
    """The prompt is its standard input: a file, so that a line that never reads it blocks nothing."""
    with _nameless_file() as file:
        file.write(prompt.encode("utf-8", "replace"))
        file.seek(0)
        subprocess.run(["sh", "-c", value], check=True, stdin=file)


def _nameless_file() -> IO[bytes]:
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("prompt"), "w+b")  # noqa: PTH123  (a number, not a path)
    import tempfile  # noqa: PLC0415  (slow to import; only where the kernel has nothing better)

    return tempfile.TemporaryFile()


def _print(value: str) -> None:
    sys.stdout.write(f"{value}\n")
    sys.stdout.flush()


def _crash(value: int) -> None:
    os.kill(os.getpid(), value)
    time.sleep(60)


_ACTIONS: dict[str, Callable[[Any], None]] = {
    "write": _write,
    "append": _append,
    "replace": _replace,
    "delete": _delete,
    "commit": _commit,
    "print": _print,
    "sleep": time.sleep,
    "crash": _crash,
    "exit": sys.exit,
}

if __name__ == "__main__":
    main()
