"""What the engine tells of itself: trouble that everybody knows of in plain words, and nothing is kept silent."""

import asyncio
import logging
import sqlite3

import pytest
from sqlalchemy.exc import OperationalError

from genba.coordination.engine_news import News, quieten
from genba.domain.errors import GitError

CUT = OperationalError("SELECT 1", {}, sqlite3.OperationalError("server closed the connection\nThis probably means"))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (CUT, ["the database did not answer the engine, which asks again: server closed the connection"]),
        (KeyError("x"), ["the engine met an error that nobody foresaw: KeyError: 'x'"]),
        (GitError("how a workflow ended"), []),
    ],
    ids=["cut", "unforeseen", "ended"],
)
async def test_what_goes_wrong_in_the_engine_is_told_as_what_it_is(error: Exception, told: list[str]) -> None:
    logger, heard = logging.getLogger("dbos"), list[News]()
    before = (logger.handlers[:], logger.level, logger.propagate)
    try:
        quieten(asyncio.get_running_loop(), heard.append)

        logger.error("it went wrong", exc_info=(type(error), error, None))

        await asyncio.sleep(0)
    finally:
        logger.handlers[:], logger.level, logger.propagate = before
    assert [news.message for news in heard] == told
