"""An orchestrator that finds nothing to do, in a process of its own, opened as `genba work` opens it.

Usage, in the repository: `python -m bench.ticks ROUNDS` prints what each look took of the processor, in seconds;
`python -m bench.ticks idle` works until it is suspended, and prints how often it looked.
"""

import asyncio
import gc
import json
import signal
import sys
import time
from pathlib import Path

from genba.domain.fleet.records import FleetSnapshot
from genba.wiring.project.project_context import ProjectContext
from genba.wiring.sessions.fleet import Fleet

WARM = 2
"""Looks before those that count: the first one reads everything."""


async def measured(rounds: int) -> dict[str, object]:
    context = await ProjectContext.find(Path.cwd())
    async with Fleet.open(context, workers=4) as fleet:
        gc.freeze()
        assert fleet.orchestrator is not None
        took = []
        for _ in range(rounds + WARM):
            began = time.process_time()
            await fleet.orchestrator.tick()
            took.append(time.process_time() - began)
        waits, begun = len(fleet.orchestrator.waits), len(fleet.orchestrator.field.sessions)
    context.close()
    return {"seconds": took[WARM:], "waits": waits, "sessions": begun}


async def idle() -> dict[str, object]:
    looks = 0
    context = await ProjectContext.find(Path.cwd())
    async with Fleet.open(context, workers=4) as fleet:
        assert fleet.orchestrator is not None
        looked = fleet.orchestrator.looked

        def counted(field: FleetSnapshot) -> None:
            nonlocal looks
            looks += 1
            looked(field)

        fleet.orchestrator.looked = counted
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, fleet.suspend)
        print("open", flush=True)
        await fleet.work()
    context.close()
    return {"looks": looks}


if __name__ == "__main__":
    result = asyncio.run(idle() if sys.argv[1] == "idle" else measured(int(sys.argv[1])))
    print(json.dumps(result), flush=True)
