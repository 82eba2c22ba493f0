"""The mark of the processes that Genba starts for itself, and how such a process ended.

Genba ends children that it did not start (`processes/orphans.py`). It knows its own by a variable in their environment.
Law: every process that is started with an environment of its own gets that environment from `own_environment`.
"""

import os
import select
import subprocess
from collections.abc import Mapping

OWN = "GENBA_OWN_PROCESS"
"""In the environment of everything that Genba starts for itself, such as git. Agents never get it."""


class LostProcessError(Exception):
    """Another part collected the exit code of a process. It is not known how it ended."""


def own_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The same environment, with the mark of this process where it has one."""
    mark = os.environ.get(OWN)
    return {**environment, OWN: mark} if mark is not None else dict(environment)


def exit_code(process: "subprocess.Popen[bytes]", seconds: float | None = None) -> int:
    """Wait for a process. Raises subprocess.TimeoutExpired, and LostProcessError where Python would answer 0."""
    try:
        handle = os.pidfd_open(process.pid)
    except (AttributeError, OSError) as error:
        if isinstance(error, ProcessLookupError):
            raise LostProcessError(f"the exit code of process {process.pid} was collected by another one") from error
        return process.wait(seconds)  # no such call on this system
    try:
        waiting = select.poll()
        waiting.register(handle, select.POLLIN)
        if not waiting.poll(None if seconds is None else seconds * 1000):
            assert seconds is not None  # noqa: S101  (without a limit, poll waits)
            raise subprocess.TimeoutExpired(process.args, seconds)
        try:
            ended = os.waitid(os.P_PIDFD, handle, os.WEXITED | os.WNOWAIT)
        except ChildProcessError as error:
            raise LostProcessError(f"the exit code of process {process.pid} was collected by another one") from error
    finally:
        os.close(handle)
    process.wait()
    assert ended is not None  # noqa: S101  (only WNOHANG returns nothing)
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
