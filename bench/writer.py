"""One of many writers: `python -m bench.writer DATABASE SHARED OWN TIMES`."""

import sys

from genba.blackboard.tasks.board import Blackboard
from genba.domain.tasks.task import Actor, ActorKind, StatusChange, TaskEdit, TaskStatus


def main() -> None:
    path, shared, own, times = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    board = Blackboard.open(path, "bench")
    actor = Actor(ActorKind.ORCHESTRATOR, f"writer {own}")
    for at in range(times):
        board.edit(shared, TaskEdit(add_labels=(f"{own}-{at}",)), actor)
        board.change_status(own, StatusChange(to=TaskStatus.IN_PROGRESS, actor=actor))
        board.change_status(own, StatusChange(to=TaskStatus.OPEN, actor=actor))
    board.close()


if __name__ == "__main__":
    main()
