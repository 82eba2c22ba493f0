"""The agent of a round that asks: `python -m tests.chaos.asking HOME [TASK]`. It and `asker` are copied beside the
repository. With a task it is one that came by itself, and works where it is asked to; else the fleet has started it.

It does its task in one piece.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from tests.fleet.asker import Asker

CONDUCT = {"atomic": True}
WORK = 'echo "$1" > "task-$1.txt"; git add -A; git commit -qm "Do task $1"'


NOTHING_YET = 3
"""Its task is not to be done yet, or it could not do it: it comes again."""


class Witnessed(Asker):
    """Writes the file of its task, and nothing else."""

    def __init__(self, task: int, address: str, credential: str) -> None:
        super().__init__(CONDUCT, address, credential)
        self.task = task
        self.place = ""

    def write(self, name: str, text: str) -> None:  # noqa: ARG002  (it knows better)
        words = ["sh", "-c", WORK, "sh", str(self.task)]
        subprocess.run(words, check=False, cwd=self.place or None)


class Guest(Witnessed):
    def live(self) -> int:
        super().live()
        self.call("logout")
        return 0 if self.instance_stopped == "completed" else NOTHING_YET

    def write(self, name: str, text: str) -> None:
        self.place = self.place or self.call("get_my_task")["path"]
        super().write(name, text)


def tell(path: Path, line: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(handle, f"{line}\n".encode())
    finally:
        os.close(handle)


if __name__ == "__main__":
    result, kind = Path(sys.argv[1]), Guest if len(sys.argv) > 2 else Witnessed
    number = int(sys.argv[2] if len(sys.argv) > 2 else os.environ["GENBA_ISSUE"])
    who = f"{number} {os.environ.get('GENBA_RUN', '')}".strip()
    tell(result / "starts.txt", who)
    alone = os.open(result / "lives" / f"{number}.lock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        tell(result / "doubled.txt", who)
    address, credential = os.environ["GENBA_MCP_URL"], os.environ["GENBA_CREDENTIAL"]
    sys.exit(kind(number, address, credential).live())
