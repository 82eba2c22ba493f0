"""Loads everything that a supervisor needs, once, and forks one for each question.

Started by a worker: `python -m genba.wiring.sessions.fork_server NUMBER`, the number of an open socket to it.
"""

import functools
import importlib
import os
import socket
import sys

from genba.application.sessions.session_record import RunMemory
from genba.connections.agents.catalogue import ADAPTERS, adapter_class
from genba.connections.detached.fork_server import ForkServer
from genba.connections.detached.fork_server_client import SpawnRequest
from genba.connections.detached.job_dir import Request
from genba.connections.detached.results import Result
from genba.connections.processes.environment import passed_on
from genba.connections.processes.orphans import take_in_orphans
from genba.domain.decoding import reader
from genba.domain.redaction import without_tokens
from genba.wiring.sessions.supervisor import supervise

_NEEDED_SOON = (
    "asyncio.subprocess",
    "concurrent.futures.thread",
    "genba.connections.egress.broker",
    "genba.connections.egress.port_forward",
    "genba.connections.egress.proxy",
    "genba.connections.egress.socket_forward",
    "genba.connections.egress.session_token",
    "genba.connections.git.private.bundles",
    "genba.connections.git.private.sandboxed_worktrees",
    "genba.connections.processes.ports",
    "genba.connections.sandbox.bubblewrap.bubblewrap",
    "genba.connections.sandbox.worktree",
    "genba.wiring.sandbox.readable_paths",
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
    ForkServer(line, supervise, _load).serve()


def _load(birth: SpawnRequest) -> None:
    """Built-in kinds only: loading one of another package may have side effects."""
    if birth.adapter in ADAPTERS:
        reader(adapter_class(birth.adapter).settings_type)
    if birth.sandboxed:
        _look_around()


@functools.cache
def _look_around() -> None:
    from genba.connections.sandbox.bubblewrap.bubblewrap import look_around  # noqa: PLC0415  (only a sandbox needs it)
    from genba.connections.sandbox.system_folders import toolchain_folders  # noqa: PLC0415

    toolchain_folders(passed_on(os.environ))
    look_around()


if __name__ == "__main__":
    main()
