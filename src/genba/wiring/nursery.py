"""The nursery: loads everything that a supervisor needs, once, and forks one for each question.

Started by a worker as `python -m genba.wiring.nursery NUMBER`, with the number of an open socket to that worker.
"""

import functools
import importlib
import os
import socket
import sys

from genba.connections.agents.catalogue import ADAPTERS, adapter_class
from genba.connections.detached.forking import ForkingNursery
from genba.connections.detached.nursery import Birth
from genba.connections.detached.places import Request
from genba.connections.detached.results import Result
from genba.connections.journal.redaction import without_tokens
from genba.connections.process.environment import passed_on
from genba.connections.process.orphans import take_in_orphans
from genba.domain.reading import reader
from genba.wiring.run_memory import RunMemory
from genba.wiring.supervising import supervise

_NEEDED_SOON = (
    "asyncio.subprocess",
    "concurrent.futures.thread",
    "genba.connections.gates.broker",
    "genba.connections.gates.forward",
    "genba.connections.gates.proxy",
    "genba.connections.gates.socket_forward",
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
    for kind in (Request, Result, RunMemory):
        reader(kind)  # how a type is read is found out once
    without_tokens("")  # so is what it looks for
    ForkingNursery(line, supervise, _load).serve()


def _load(birth: Birth) -> None:
    """Built-in kinds only: nobody knows what those of other packages do when they are loaded."""
    if birth.adapter in ADAPTERS:
        reader(adapter_class(birth.adapter).settings_type)
    if birth.walls:
        _look_around()


@functools.cache
def _look_around() -> None:
    from genba.connections.sandbox.bubblewrap import look_around  # noqa: PLC0415  (only walls need it)
    from genba.connections.sandbox.system_folders import toolchain_folders  # noqa: PLC0415

    toolchain_folders(passed_on(os.environ))
    look_around()


if __name__ == "__main__":
    main()
