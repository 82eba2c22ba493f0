"""Turns of the merge queue in a process of their own, through the engine; prints how long they took.

Usage: python -m bench.queue_turns, in the repository.
"""

import asyncio
import sys
import time
from pathlib import Path

import msgspec

from genba.application.verification.merge_verification import Proving
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.connections.git.merging.merge_target import GitTarget
from genba.coordination.engine.durable_engine import MERGES, Engine
from genba.coordination.merge_queue.queue import MergeQueue
from genba.domain.fleet.merge_queue import QueuePassOrder
from genba.domain.ports import Steps
from genba.wiring.project.project_context import ProjectContext


async def main() -> None:
    context = await ProjectContext.find(Path.cwd())
    board = FleetBoard(context.board())
    done = asyncio.Event()

    async def turn(payload: str, steps: Steps) -> str:
        target, proving = GitTarget(context.layout, context.project.fleet.merge.remote), Proving(context, board)
        report = await MergeQueue(board, target, proving.verify, lambda _news: None).handle(payload, steps)
        done.set()
        return report

    handlers = {"turn": turn}
    engine = await Engine.open(
        context.database(), executor="bench", workers=1, handlers=handlers, forgetful=tuple(handlers)
    )
    try:
        began = time.perf_counter()
        number = 0
        while board.entries("main"):
            number += 1
            done.clear()
            order = QueuePassOrder(target="main", turn=number)
            payload = msgspec.json.encode(order).decode()
            await engine.enqueue(kind="turn", id=order.workflow, payload=payload, queue=MERGES, partition="main")
            await done.wait()
        sys.stdout.write(f"{time.perf_counter() - began}\n")
    finally:
        await engine.close()
        context.close()


if __name__ == "__main__":
    asyncio.run(main())
