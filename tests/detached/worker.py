"""A worker in a process of its own, to be killed: asks the first question of a run, and says what it hears.

python -m tests.detached.worker MEMORY GRACE_SECONDS
"""

import asyncio
import sys
from pathlib import Path

import msgspec

from genba.connections.processes.orphans import take_in_orphans
from tests.detached.posts import Memory, posted


async def main(memory: Memory) -> None:
    post = await posted(Path(memory.root), memory.agent, memory)
    adapter = post.adapter(grace_seconds=float(sys.argv[2]))
    async with adapter.open_environment(post.workspace) as session:
        instance = await adapter.start(session)
        post.fork_server.open()
        say(f"fork_server {post.fork_server.process}")
        reply = await adapter.execute(instance, post.ask(), lambda stream, line: say(f"{stream} {line}"))
        await adapter.stop(instance)
    say(f"reply {reply.text.split()}")


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


take_in_orphans()
asyncio.run(main(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Memory)))
