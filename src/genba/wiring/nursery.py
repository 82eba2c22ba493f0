"""The nursery: loads everything that a supervisor needs, once, and forks one for each question.

Started by a worker as `python -m genba.wiring.nursery NUMBER`, with the number of an open socket to that worker.
"""

import importlib
import socket
import sys

from genba.connections.agents.catalogue import ADAPTERS, adapter_class
from genba.connections.detached.forking import ForkingNursery
from genba.connections.process.orphans import take_in_orphans
from genba.wiring.supervising import supervise

_NEEDED_SOON = (
    "asyncio.subprocess",
    "genba.connections.gates.broker",
    "genba.connections.gates.forward",
    "genba.connections.gates.proxy",
    "genba.connections.gates.words",
    "genba.connections.git.bundles",
    "genba.connections.git.walled",
    "genba.connections.process.ports",
    "genba.connections.sandbox.bubblewrap",
    "genba.connections.sandbox.worktree",
    "genba.wiring.surroundings",
    "shutil",
    "ssl",
)


def main() -> None:
    line = socket.socket(fileno=int(sys.argv[1]))
    line.set_inheritable(False)
    take_in_orphans()
    for name in _NEEDED_SOON:
        importlib.import_module(name)
    ForkingNursery(line, supervise, _load).serve()


def _load(adapter: str) -> None:
    """Built-in kinds only: nobody knows what those of other packages do when they are loaded."""
    if adapter in ADAPTERS:
        adapter_class(adapter)


if __name__ == "__main__":
    main()
