"""What the engine tells of itself.

Law: DBOS writes nothing to the terminal. What it holds for an error becomes news, unless it is how a workflow ended.
"""

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable

import msgspec

from genba.coordination.engine import checkpoints
from genba.domain.errors import GenbaError

_POISONED = "MaxRecoveryAttemptsExceededError"


class EngineEvent(msgspec.Struct, frozen=True):
    """What happened to the engine itself."""

    kind: str
    """engine.lost | engine.back | engine.suspended | engine.error"""
    message: str


class _EngineLogHandler(logging.Handler):
    """The log of DBOS: its own errors become events, everything else is dropped."""

    def __init__(self, loop: asyncio.AbstractEventLoop, say: Callable[[EngineEvent], None]) -> None:
        super().__init__(logging.ERROR)
        self._loop = loop
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else sys.exception()  # it often tells only the words of one
        # How a workflow ended stands in its row; that another one has it, or that it was cancelled, is no fault.
        # A poisoned workflow is reported in words alone: one that cannot start has no other sign.
        of_workflow = type(error).__module__.partition(".")[0] == "dbos"
        if isinstance(error, GenbaError) or (of_workflow and (record.exc_info or type(error).__name__ == _POISONED)):
            return
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(
                self._say, EngineEvent("engine.error", _error_text(error) or _unforeseen(error, record))
            )


def _error_text(error: BaseException | None) -> str:
    """What everybody knows of: a database that does not answer. The engine asks it again by itself."""
    from sqlalchemy.exc import InterfaceError, OperationalError  # noqa: PLC0415  (loaded with the engine, not before)

    if not isinstance(error, (InterfaceError, OperationalError)):
        return ""
    return f"the database did not answer the engine, which asks again: {str(error.orig).strip().partition(chr(10))[0]}"


def _unforeseen(error: BaseException | None, record: logging.LogRecord) -> str:
    """The engine's own words are for who knows it; what went wrong is for everybody."""
    output = checkpoints.keep(error).message if error else record.getMessage()
    return f"the engine met an unexpected error: {' '.join(output.split())}"


def quieten(loop: asyncio.AbstractEventLoop, say: Callable[[EngineEvent], None]) -> None:
    """Before DBOS is asked for anything: it puts a handler of its own where there is none."""
    logger = logging.getLogger("dbos")
    logger.handlers[:] = [_EngineLogHandler(loop, say)]
    logger.setLevel(logging.ERROR)
    logger.propagate = False


def log(news: EngineEvent) -> None:
    logging.getLogger("genba.engine").error("%s: %s", news.kind, news.message)
