"""What is let go of when a part of a run has ended: its journal tells what was heard, its steps what was answered."""

import contextlib
from pathlib import Path

from genba.connections.detached.job_dir import QUESTIONS, Question

_SMALL = 64 * 1024
"""Bytes of a file that is in nobody's way, and tells who looks later what happened."""
_LOUD = ("output.jsonl", "result.json", "log")


def remove_output(run_folder: Path, part: int) -> None:
    """Remove what the agents of one part have said at length. A question that somebody still holds is left alone."""
    for folder in (run_folder / QUESTIONS).glob(f"{part}-*"):
        if Question(folder).is_held():
            continue
        for name in _LOUD:
            for path in folder.glob(f"*/{name}"):
                with contextlib.suppress(OSError):
                    if path.stat().st_size > _SMALL:
                        path.unlink()
