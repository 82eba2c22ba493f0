"""Sends the notices of a project that are due, in a process of its own, which may be killed on the way.

python -m tests.blackboard.notice_process ADDRESS FILE [POINT]
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from genba.blackboard.fleet.notifications import NotificationBoard
from genba.blackboard.tasks.board import Blackboard
from genba.coordination.scheduler.notifications import Notifier
from genba.definitions.project.notify_section import NotifySettings
from genba.testing.notice_doubles import MemoryChannel


def main(address: str, file: str, deadly: str = "") -> None:
    def at(reached: str) -> None:
        if reached == deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    with Blackboard.open(address, "a project") as board:
        channel = MemoryChannel(file=Path(file), at=at)
        asyncio.run(Notifier(NotificationBoard(board.store), {"webhook": channel}, NotifySettings()).send_due())


if __name__ == "__main__":
    main(*sys.argv[1:])
