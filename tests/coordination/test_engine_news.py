"""What the engine tells of itself: trouble that everybody knows of in plain words, and nothing is kept silent."""

import asyncio
import logging
import sqlite3

import pytest
from dbos import error as faults
from sqlalchemy.exc import OperationalError

from genba.coordination.engine.engine_log import EngineEvent, quieten
from genba.domain.errors import GitError

CUT = OperationalError("SELECT 1", {}, sqlite3.OperationalError("server closed the connection\nThis probably means"))


NOT_BEGUN = faults.DBOSRecoveryError("a workflow", "nobody knows its kind")


async def heard(error: Exception, *, words_only: bool) -> list[str]:
    logger, received = logging.getLogger("dbos"), list[EngineEvent]()
    before = (logger.handlers[:], logger.level, logger.propagate)
    try:
        quieten(asyncio.get_running_loop(), received.append)
        try:
            raise error
        except Exception:
            logger.error("it went wrong: %s", error, exc_info=not words_only)  # noqa: TRY400  (as DBOS does it)
        await asyncio.sleep(0)
    finally:
        logger.handlers[:], logger.level, logger.propagate = before
    return [news.message for news in received]


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (CUT, ["the database did not answer the engine, which asks again: server closed the connection"]),
        (KeyError("x"), ["the engine met an unexpected error: KeyError: 'x'"]),
        (GitError("how a workflow ended"), []),
        (faults.MaxRecoveryAttemptsExceededError("a workflow", 5), []),
    ],
    ids=["cut", "unforeseen", "ended", "poisoned"],
)
@pytest.mark.parametrize("words_only", [False, True])
async def test_what_goes_wrong_in_the_engine_is_reported_as_what_it_is(
    error: Exception, reported: list[str], words_only: bool
) -> None:
    assert await heard(error, words_only=words_only) == reported


async def test_a_workflow_that_cannot_begin_is_not_kept_silent() -> None:
    (result,) = await heard(NOT_BEGUN, words_only=True)

    assert "nobody knows its kind" in result
