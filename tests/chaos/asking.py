"""The agent of a round that asks: `python -m tests.chaos.asking HOME`. It and `asker` are copied beside the repository.

It does its task in one piece, and says which commits it made.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.fleet.asker import Asker

CONDUCT = {"atomic": True}


class Witnessed(Asker):
    """Writes the file of its task, and nothing else."""

    def __init__(self, home: Path, task: int, address: str, credential: str) -> None:
        super().__init__(CONDUCT, address, credential)
        self.home = home
        self.task = task

    def write(self, name: str, text: str) -> None:  # noqa: ARG002  (it knows better)
        line = 'echo "$1" > "task-$1.txt"; git add -A; git commit -qm "Do task $1" && git rev-parse HEAD >> "$2"'
        subprocess.run(["sh", "-c", line, "sh", str(self.task), str(self.home / "commits.txt")], check=False)


def tell(path: Path, line: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(handle, f"{line}\n".encode())
    finally:
        os.close(handle)


if __name__ == "__main__":
    told, number = Path(sys.argv[1]), int(os.environ["GENBA_ISSUE"])
    tell(told / "starts.txt", str(number))
    address, credential = os.environ["GENBA_MCP_URL"], os.environ["GENBA_CREDENTIAL"]
    sys.exit(Witnessed(told, number, address, credential).live())
