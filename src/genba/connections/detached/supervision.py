"""Supervises one question in a process of its own.

It outlives the worker that asked. It ends with its agent: with an answer, when it is stopped, and when no worker has
watched it for too long.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from genba.connections.detached.job_dir import Attempt, Question, Request
from genba.connections.detached.output_log import Recorder
from genba.connections.detached.results import Failure, Result
from genba.domain.errors import DiskFullError, GenbaError
from genba.domain.redaction import OutputRedactor, Redactor, without_tokens
from genba.domain.sessions.replies import Reply

_LONGEST_LOOK_SECONDS = 1.0
_LOOKS_PER_GRACE = 5
_FULL_DISK = 74

AskAgent = Callable[[Request, Attempt, Recorder, str], Coroutine[Any, Any, Reply]]
"""Starts the agent, asks it once and ends it; the text is the credential for its own calls, if it makes any."""


def run_supervised(question: Question, attempt: Attempt, ask: AskAgent) -> int:
    """Ask, and write the result. Returns the exit code of the process."""
    attempt.reserve()
    if sys.version_info < (3, 12) and _reports_ends():  # newer ones do without a thread by themselves
        asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
    # Not asyncio.run: the process ends right after this, and with it whatever the loop would take apart.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    return loop.run_until_complete(_supervise(question, attempt, ask))


def _reports_ends() -> bool:
    """True when the kernel reports by itself that a process has ended; an old one, or a sandbox around us, may not."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


async def _supervise(question: Question, attempt: Attempt, ask: AskAgent) -> int:
    request = question.request()
    recorder = Recorder(attempt, OutputRedactor(Redactor(os.environ)))
    credential = question.take_secret() if request.workflow else ""
    asking = asyncio.create_task(ask(request, attempt, recorder, credential))
    switch = _Switch(asking)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, switch.end, "it was stopped")
    guard = asyncio.create_task(_guard(question, request.grace_seconds, switch))
    try:
        reply = await asking
        result = Result(reply=msgspec.structs.replace(reply, text=without_tokens(reply.text)))
    except asyncio.CancelledError:
        result = Result(suspended=switch.why or "it was cancelled")
    except GenbaError as error:
        result = Result(failure=Failure.of(error))
    except Exception as error:  # noqa: BLE001  (the outermost edge of a supervisor)
        traceback.print_exc()
        result = Result(failure=Failure.of(error))
    finally:
        guard.cancel()
        with contextlib.suppress(DiskFullError):
            recorder.close()
    try:
        attempt.write(result)
    except DiskFullError:
        return _FULL_DISK
    return 0


class _Switch:
    """Ends the agent, once: ending takes its time, and must not be cut short."""

    def __init__(self, asking: asyncio.Task[Reply]) -> None:
        self.asking = asking
        self.why = ""

    def end(self, why: str) -> None:
        if not self.why:
            self.why = why
            self.asking.cancel()


async def _guard(question: Question, grace_seconds: float, switch: _Switch) -> None:
    """Stop an agent that no worker watches, before it spends more money."""
    loop = asyncio.get_running_loop()
    pause = min(_LONGEST_LOOK_SECONDS, grace_seconds / _LOOKS_PER_GRACE)
    last_seen = loop.time()
    while loop.time() - last_seen < grace_seconds:
        await asyncio.sleep(pause)
        if question.is_watched():
            last_seen = loop.time()
    switch.end(f"no worker watched it for {grace_seconds:g} s")
