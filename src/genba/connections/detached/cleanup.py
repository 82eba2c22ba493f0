"""Removes files that are not needed when a segment has ended: its journal has the output, its steps the answers."""

import contextlib
from pathlib import Path

from genba.connections.detached.job_dir import QUESTIONS, Question

_SMALL = 64 * 1024
"""Bytes of a file that may stay: it shows later what happened."""
_LOUD = ("output.jsonl", "result.json", "log")


def remove_output(run_folder: Path, part: int) -> None:
    """Remove the long output of the agents of one segment. A question that a process still holds is left alone."""
    for folder in (run_folder / QUESTIONS).glob(f"{part}-*"):
        if Question(folder).is_held():
            continue
        for name in _LOUD:
            for path in folder.glob(f"*/{name}"):
                with contextlib.suppress(OSError):
                    if path.stat().st_size > _SMALL:
                        path.unlink()
