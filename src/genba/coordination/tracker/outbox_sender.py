"""Carries out what is in the outbox: one change at a time, each once, in order.

Law: nothing is sent again blindly. What was begun and did not end well is looked for first; only what is not there is
sent. Rate limits and outages keep everything waiting until their time; credentials that are not taken keep it waiting
for a person. What the other side refuses fails, and holds its lane; the others go on.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from genba.blackboard.tracker.outbox import Outbox
from genba.blackboard.tracker.outbox_order import LEASE_SECONDS, NextSend
from genba.coordination.engine.lease_owners import lives, one_here
from genba.definitions.project.tracker_section import GitHubSettings
from genba.domain.errors import AccessRefusedError, GenbaError, NotAllowedError, RateLimited, RecoverableError
from genba.domain.ports import Clock, RemoteChanges
from genba.domain.tracker.outbox import DeliveryReceipt, OutboxEntry, OutboxStatus, Pace, SendResult

T = TypeVar("T")

_FIRST_BACKOFF = 5.0
_LONGEST_BACKOFF = 3600.0
_LONGEST_FOR_ALL = 60.0
_RATE_LIMITED = 60.0
"""How long to wait where the other side names no time."""
_REFUSED = 60.0
_LOOK_AGAIN = 0.5
"""Seconds between checks whether another sender has ended."""
_SHORT = 10.0
"""Who was refused something waits no longer than this for what else there is."""
_GRACE = 5.0
"""How long a wish to stop waits for a request that is under way."""


class _Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Why a change was not made, as far as anybody knows, and what follows."""

    message: str
    seconds: float = 0.0
    """How long the change itself waits."""
    everyone: float = 0.0
    """How long all of them wait."""
    firm: bool = False
    fails: bool = False
    refused: bool = False


class _Outcome(msgspec.Struct, frozen=True, kw_only=True):
    entry: OutboxEntry | None = None
    """The entry, where it has ended or failed."""
    refused: str = ""
    alone: bool = False
    """Whether only this one is refused, and the others are not."""


class Sender:
    """Sends what is in the outbox, as fast as its pace allows."""

    def __init__(
        self, outbox: Outbox, changes: RemoteChanges, settings: GitHubSettings, clock: Clock, owner: str = ""
    ) -> None:
        self.outbox = outbox
        self.changes = changes
        self.settings = settings
        self.pace = pace_of(settings)
        self.clock = clock
        self.owner = owner or one_here()
        """No two senders have the same name, also not in one process."""

    async def send(
        self,
        patience: float | None = None,
        *,
        key: str = "",
        longest_wait: float | None = None,
        on_end: Callable[[OutboxEntry], None] | None = None,
    ) -> SendResult:
        """Send what there is, or what stands before one change and that change itself.

        It takes no longer than `patience`, but for a request that is under way; None waits as long as it takes. It
        gives up before it would wait for longer than `longest_wait` at once. `on_end` gets each entry that ended.
        Raises nothing that the other side does.
        """
        if not key and not await _aside(self.outbox.left):
            return SendResult()
        try:
            return await self._send(patience, key, longest_wait, on_end)
        except BaseException:
            with contextlib.suppress(GenbaError):
                await asyncio.shield(_aside(lambda: self.outbox.release(self.owner)))
            raise

    async def _send(
        self,
        patience: float | None,
        key: str,
        longest_wait: float | None,
        on_end: Callable[[OutboxEntry], None] | None,
    ) -> SendResult:
        begun = self.clock.elapsed()
        sent: list[OutboxEntry] = []
        failed: list[OutboxEntry] = []
        refused = ""
        while True:
            lane, over = await self._lane(key)
            if over:
                return await self._result(sent, failed, NextSend(), refused)
            turn = await self._claim(lane)
            if turn.entry is not None:
                outcome = await _uncut(self._carry_out(turn, turn.entry))
                if outcome.entry is not None:
                    (failed if outcome.entry.status is OutboxStatus.FAILED else sent).append(outcome.entry)
                    if on_end is not None:
                        on_end(outcome.entry)
                if outcome.refused and not outcome.alone:
                    return await self._result(sent, failed, NextSend(why=outcome.refused), outcome.refused)
                refused = refused or outcome.refused
                continue
            wait = min(turn.wait, _LOOK_AGAIN) if turn.holder else turn.wait
            late = patience is not None and self.clock.elapsed() - begun + wait > patience
            if not turn.until or late or (longest_wait is not None and turn.wait > longest_wait and not turn.holder):
                return await self._result(sent, failed, turn, refused)
            if refused and (key or turn.wait > _SHORT) and not turn.holder:
                return await self._result(sent, failed, turn, refused)
            await self.clock.sleep(wait)

    async def _lane(self, key: str) -> tuple[str, bool]:
        """The lane of a key, and whether there is nothing to do for it any more."""
        if not key:
            return "", False
        entry = await _aside(lambda: self.outbox.by_key(key))
        if entry is None:
            return "", True
        return entry.lane, entry.status.ended or entry.status is OutboxStatus.FAILED

    async def _claim(self, lane: str) -> NextSend:
        """The next turn. Who wants to stop meanwhile gives it back: nothing was sent."""
        claiming = asyncio.ensure_future(_aside(lambda: self.outbox.claim(self.owner, self.pace, lane, lives)))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            await asyncio.wait({claiming})
            turn = NextSend() if claiming.exception() is not None else claiming.result()
            entry = turn.entry
            if entry is not None:
                await _aside(lambda: self.outbox.postpone(self.owner, entry, "it was cut off", seconds=0))
            raise

    async def _result(
        self, sent: list[OutboxEntry], failed: list[OutboxEntry], turn: NextSend, refused: str = ""
    ) -> SendResult:
        left = await _aside(self.outbox.left)
        return SendResult(
            sent=tuple(sent), failed=tuple(failed), left=left, until=turn.until, why=turn.why, refused=refused
        )

    async def _carry_out(self, turn: NextSend, entry: OutboxEntry) -> _Outcome:
        if turn.look:
            seen = await self._asked(self.changes.find(entry.change, entry.key), entry)
            if isinstance(seen, _Trouble):
                return await self._troubled(entry, seen)
            if seen is not None:
                return await self._end(entry, msgspec.structs.replace(seen, existed=True))
            begun = await _aside(lambda: self.outbox.begin(self.owner, entry))
            if begun is None:
                await _aside(lambda: self.outbox.release(self.owner))
                return _Outcome()
            entry = begun
        receipt = await self._asked(self.changes.apply(entry.change, entry.key), entry)
        if isinstance(receipt, _Trouble):
            return await self._troubled(entry, receipt)
        return await self._end(entry, receipt)

    async def _asked(self, work: Coroutine[Any, Any, T], entry: OutboxEntry) -> T | _Trouble:
        """What the other side says. The lease is kept meanwhile; what is cut off here is looked for later."""
        task = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait({task}, timeout=LEASE_SECONDS / 3))[0]:
                await _aside(lambda: self.outbox.renew(self.owner))
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            cut = _Trouble(message="it was cut off", seconds=self.pace.settle_seconds)
            await self._troubled(entry, cut)
            raise
        error = task.exception()
        return task.result() if error is None else _judged(error, entry.attempts)

    async def _end(self, entry: OutboxEntry, receipt: DeliveryReceipt) -> _Outcome:
        return _Outcome(entry=await _aside(lambda: self.outbox.end(self.owner, entry, receipt)))

    async def _troubled(self, entry: OutboxEntry, trouble: _Trouble) -> _Outcome:
        if trouble.fails:
            return _Outcome(entry=await _aside(lambda: self.outbox.fail(self.owner, entry, trouble.message)))
        await _aside(
            lambda: self.outbox.postpone(
                self.owner,
                entry,
                trouble.message,
                seconds=trouble.seconds,
                everyone=trouble.everyone,
                firm=trouble.firm,
            )
        )
        return _Outcome(refused=trouble.message if trouble.refused else "", alone=not trouble.everyone)


def pace_of(settings: GitHubSettings) -> Pace:
    return Pace(per_hour=settings.mutations_per_hour, pause_seconds=settings.mutation_pause_seconds)


def _judged(error: BaseException, attempts: int) -> _Trouble:
    """What becomes of a change with which something went wrong."""
    tries = max(0, min(attempts, 20) - 1)
    match error:
        case RateLimited():
            seconds = error.retry_after or min(_RATE_LIMITED * 2.0**tries, _LONGEST_BACKOFF)
            return _Trouble(message=error.message, everyone=seconds, firm=True)
        case RecoverableError():
            named = error.retry_after or 0.0
            seconds = max(min(_FIRST_BACKOFF * 2.0**tries, _LONGEST_BACKOFF), named)
            everyone = max(min(seconds, _LONGEST_FOR_ALL), named)
            return _Trouble(message=error.message, seconds=seconds, everyone=everyone)
        case NotAllowedError():
            # It alone waits: a token that may not move cards must not keep comments from being sent.
            return _Trouble(message=error.message, seconds=min(_REFUSED * 2.0**tries, _LONGEST_BACKOFF), refused=True)
        case AccessRefusedError():
            return _Trouble(message=error.message, everyone=_REFUSED, refused=True)
        case GenbaError():
            return _Trouble(message=error.message, fails=True)
        case Exception():
            # Its message may hold a secret: foreign errors are translated where the foreign thing is called.
            return _Trouble(message=f"unexpected error: {type(error).__name__}", fails=True)
    raise error


async def _uncut(work: Coroutine[Any, Any, T]) -> T:
    """A wish to stop waits a little for what is under way, then cuts it off."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not (await asyncio.wait({task}, timeout=_GRACE))[0]:
            task.cancel()
            await asyncio.wait({task})
        if not task.cancelled():
            task.exception()
        raise


async def _aside(work: Callable[[], T]) -> T:
    """The database is asked beside the loop."""
    return await asyncio.to_thread(work)
