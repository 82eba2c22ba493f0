"""A process that writes as fast as it can: `python -m tests.blackboard.writers ADDRESS SHARED COUNT`."""

import os
import sys

from genba.blackboard.tasks.board import Blackboard
from genba.domain.tasks.task import StatusChange, TaskEdit, TaskStatus
from tests.blackboard.acting import HUMAN, ORCHESTRATOR, add

SWITCH = (TaskStatus.IN_PROGRESS, TaskStatus.OPEN)


def main(address: str, shared: int, count: int) -> None:
    with Blackboard.open(address, "a project") as board:
        own = add(board, f"Of {os.getpid()}")
        for at in range(count):
            board.edit(shared, TaskEdit(add_labels=(f"{os.getpid()}-{at}",)), HUMAN)
            board.comment(shared, f"{os.getpid()}-{at}", HUMAN)
            board.change_status(own, StatusChange(to=SWITCH[at % 2], actor=ORCHESTRATOR))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
