"""Tells people what waits for them: each notice once, by whichever process comes first.

Nothing waits for a notification. An error is stored with it and it is sent again, later each time; it
never delays a session. Where nothing is due nothing is written.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, TypeVar

import msgspec

from genba.blackboard.fleet.notifications import NotificationBoard
from genba.coordination.engine.lease_owners import lives, one_here
from genba.definitions.project.notify_section import NotifySettings
from genba.domain.errors import GenbaError, RateLimited, RecoverableError
from genba.domain.fleet.notifications import Notification, NotificationEntry
from genba.domain.ports import Channel
from genba.domain.text_limits import cut, one_line

T = TypeVar("T")

MOST_ATTEMPTS = 10
_FIRST_BACKOFF = 10.0
_LONGEST_BACKOFF = 3600.0
_RATE_LIMITED = 60.0
"""How long to wait where the other side names no time."""
_MOST_AT_ONCE = 50
_LONGEST_QUESTION = 1_000
_LONGEST_TITLE = 200
_LOOK_SECONDS = 1.0
_AFTER_TROUBLE_SECONDS = 10.0
_LAST_SECONDS = 10.0
"""How long an ending executor waits for the last notifications."""


class _Outcome(Enum):
    """What came of one notice."""

    SENT = auto()
    GIVEN_UP = auto()
    LATER = auto()
    NONE = auto()
    """There was none to send."""


class Notifier:
    """Sends what is due on the channels that this process has."""

    def __init__(
        self,
        board: NotificationBoard,
        channels: Mapping[str, Channel],
        settings: NotifySettings,
        *,
        redact: Callable[[str], str] = lambda text: text,
        tell: Callable[[str], None] = lambda _message: None,
        owner: str = "",
        patience: float = _LAST_SECONDS,
    ) -> None:
        self.board = board
        self.channels = dict(channels)
        self.settings = settings
        self.redact = redact
        self.tell = tell
        """Hears in a sentence that a channel does not work, once until it works again."""
        self.owner = owner or one_here()
        self.patience = patience
        """How long it goes on, once it is stopped, for what is due in the end."""
        self._troubled: set[str] = set()

    async def send_due(self) -> int:
        """Send what is due now; how many were sent. Raises only what the database does."""
        names = tuple(self.channels)
        asked = (names, self.settings.kinds, self.settings.reminder_hours)
        if not names or not await _aside(lambda: self.board.due(*asked, lives)):
            return 0
        await _aside(lambda: self.board.record(*asked))
        counted = await asyncio.gather(*(self._drain(name, channel) for name, channel in self.channels.items()))
        return sum(counted)

    async def run(self, stop: asyncio.Event) -> None:
        """Send what becomes due until it is stopped; then what is due at the end, for a short time."""
        stopping = asyncio.ensure_future(stop.wait())
        try:
            while not stop.is_set():
                sending = asyncio.ensure_future(self.send_due())
                pause = await self._sent_or_stopped(sending, stopping)
                await asyncio.wait({stopping}, timeout=pause)
            with contextlib.suppress(Exception):  # nothing keeps the executor from ending
                await asyncio.wait_for(self.send_due(), self.patience / 2)
        finally:
            stopping.cancel()

    async def _sent_or_stopped(self, sending: asyncio.Future[int], stopping: asyncio.Future[Any]) -> float:
        """How long to pause after what was sent, or was cut off by the end."""
        try:
            await asyncio.wait({sending, stopping}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({sending}, timeout=self.patience / 2)
        finally:
            sending.cancel()
            await asyncio.wait({sending})
        error = None if sending.cancelled() else sending.exception()
        if error is None:
            return _LOOK_SECONDS
        # The database is unreachable, or the error is unexpected: other channels continue.
        self._say("all channels", error.message if isinstance(error, GenbaError) else type(error).__name__)
        return _AFTER_TROUBLE_SECONDS

    async def try_out(self, notice: Notification) -> dict[str, str]:
        """Send one notice on each channel now; by channel, what went wrong, and nothing where it did not."""
        values = {}
        for name, channel in self.channels.items():
            try:
                await channel.send(notice)
                values[name] = ""
            except GenbaError as error:
                values[name] = error.message
        return values

    async def _drain(self, name: str, channel: Channel) -> int:
        sent = 0
        for _ in range(_MOST_AT_ONCE):
            entry = await _aside(lambda: self.board.claim(self.owner, name, lives))
            outcome = _Outcome.NONE if entry is None else await self._carry_out(entry, channel)
            sent += outcome is _Outcome.SENT
            if outcome in (_Outcome.NONE, _Outcome.LATER):  # the rest of the channel waits too
                break
        return sent

    async def _carry_out(self, entry: NotificationEntry, channel: Channel) -> _Outcome:
        if entry.attempts > MOST_ATTEMPTS:  # its senders died each time
            await self._give_up(entry, f"given up after {MOST_ATTEMPTS} attempts")
            return _Outcome.GIVEN_UP
        try:
            await channel.send(self._clean(entry.notice))
        except GenbaError as error:
            return await self._troubled_by(entry, error)
        except asyncio.CancelledError:
            await asyncio.shield(_aside(lambda: self.board.postpone(self.owner, entry, "it was cut off", seconds=0)))
            raise
        except Exception as error:  # noqa: BLE001  (a foreign channel: its message may hold secrets)
            await self._give_up(entry, f"unexpected error: {type(error).__name__}")
            return _Outcome.GIVEN_UP
        await _aside(lambda: self.board.sent(self.owner, entry))
        self._troubled.discard(entry.channel)
        return _Outcome.SENT

    async def _troubled_by(self, entry: NotificationEntry, error: GenbaError) -> _Outcome:
        message = self.redact(error.message)
        if not isinstance(error, RecoverableError):
            await self._give_up(entry, message)
            return _Outcome.GIVEN_UP
        if entry.attempts >= MOST_ATTEMPTS:
            await self._give_up(entry, f"{message}; given up after {entry.attempts} attempts")
            return _Outcome.GIVEN_UP
        seconds = min(_FIRST_BACKOFF * 2.0 ** (entry.attempts - 1), _LONGEST_BACKOFF)
        if isinstance(error, RateLimited):
            seconds = _RATE_LIMITED
        seconds = max(seconds, error.retry_after or 0)
        await _aside(lambda: self.board.postpone(self.owner, entry, message, seconds, everyone=min(seconds, 60.0)))
        self._say(entry.channel, message)
        return _Outcome.LATER

    async def _give_up(self, entry: NotificationEntry, message: str) -> None:
        await _aside(lambda: self.board.fail(self.owner, entry, message))
        self._say(entry.channel, message)

    def _say(self, channel: str, message: str) -> None:
        if channel not in self._troubled:
            self._troubled.add(channel)
            self.tell(f"notifications by {channel}: {message}  genba notify")

    def _clean(self, notice: Notification) -> Notification:
        """Text of people and agents, without secrets and shortened."""
        return msgspec.structs.replace(
            notice,
            project=cut(one_line(self.redact(notice.project)), _LONGEST_TITLE),
            title=cut(one_line(self.redact(notice.title)), _LONGEST_TITLE),
            question=cut(self.redact(notice.question), _LONGEST_QUESTION),
        )


async def _aside(work: Callable[[], T]) -> T:
    """The database is asked beside the loop."""
    return await asyncio.to_thread(work)
