"""Keeps a fleet in step with its tracker: looks at it every so often, and sends what is in the outbox.

Law: a failure here stops nothing. It is reported once and tried again. Of several hosts one looks, the others read
what it wrote down.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from genba.blackboard.database.sanitize import now
from genba.blackboard.tracker import pull_request_terms
from genba.blackboard.tracker.issue_copy import TrackerBoard
from genba.coordination.tracker.outbox_sender import Sender
from genba.coordination.tracker.tracker_sync import Synchronizer, SyncInProgressError
from genba.definitions.project.tracker_section import GitHubSettings
from genba.domain.errors import GenbaError, RecoverableError, StateConflictError
from genba.domain.timestamps import hours_between
from genba.domain.tracker.remote import PullRequestOutcome, SyncResult, Terms

_LOOKED = "looked_at"
_SEND_AGAIN_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 60.0
_MOST_NAMED = 5
_LOOKS = 5
_LONGEST_LOOK_SECONDS = 2.0

Say = Callable[[str], None]
Follow = Callable[[Terms], Awaitable[str]]
"""Brings the branch here along with what was merged on the forge; says why it stays behind."""


class Follower:
    """One executor's side of the tracker."""

    def __init__(
        self,
        board: TrackerBoard,
        synchronizer: Synchronizer,
        sender: Sender,
        settings: GitHubSettings,
        say: Say,
        wake: Callable[[], None],
        follow: Follow,
    ) -> None:
        self.board = board
        self.synchronizer = synchronizer
        self.sender = sender
        self.settings = settings
        self.say = say
        self.wake = wake
        self.follow = follow
        self._one_at_a_time = asyncio.Lock()
        self._changes = self._known = 0
        """How many passes changed something, and how many of them were asked about."""
        self._undecided = False
        """Whether a pull request waits for GitHub alone."""
        self._not_before = 0.0
        """By the clock of the loop: no request goes to GitHub before that time, as GitHub asked."""
        self._reported: dict[str, str] = {}
        """By attempt: the last message."""

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Look once, then go on looking and sending beside whatever is done meanwhile."""
        await self.look()
        beside = [asyncio.ensure_future(self._looking()), asyncio.ensure_future(self._sending())]
        try:
            yield
        finally:
            for one in beside:
                one.cancel()
            await asyncio.wait(beside)

    async def look(self) -> bool:
        """One look at the tracker; whether anything changed by it. What it means is on the blackboard afterwards."""
        async with self._one_at_a_time:
            changed = await self._look()
        self._changes += changed
        return changed

    async def _look(self) -> bool:
        if asyncio.get_running_loop().time() < self._not_before:
            return False
        before = await asyncio.to_thread(self.board.store.read, pull_request_terms.every)
        try:
            result = await self.synchronizer.sync()
        except SyncInProgressError:
            return False
        except StateConflictError as error:
            self._tell("look", error.message)
            return False
        except GenbaError as error:
            self._tell("look", f"GitHub could not be looked at: {error.message}")
            if isinstance(error, RecoverableError) and error.retry_after:
                self._not_before = asyncio.get_running_loop().time() + error.retry_after
            return False
        await asyncio.to_thread(self.board.set_values, {_LOOKED: now()})
        self._reported.pop("look", None)
        self._report(result)
        merged = {news.task for news in result.news if news.verdict is PullRequestOutcome.MERGED}
        for terms in before:
            if terms.task in merged:
                await self._bring_along(terms)
        self.wake()
        self._undecided = any(news.untried for news in result.news)
        return bool(changes_of(result)) or any(news.verdict is not PullRequestOutcome.WAIT for news in result.news)

    async def changed(self) -> bool:
        """Send all that can be sent, and look at what came of it; whether there is anything new.

        A pull request that GitHub has not tried yet is looked at a few times: it needs no action.
        """
        sent, known = await self._sent(), self._known
        for _ in range(_LOOKS):
            await self.look()
            if self._changes != known or not self._undecided:
                break
            await asyncio.sleep(min(self.settings.sync_seconds, _LONGEST_LOOK_SECONDS))
        self._known = self._changes
        return sent or self._known != known

    async def _sent(self) -> bool:
        if not self.settings.send:
            return False
        result = await self.sender.send(None, longest_wait=_LONGEST_WAIT_SECONDS)
        if result.left:
            why = f": {result.why}" if result.why else ""
            self.say(f"{result.left} changes are not on GitHub yet{why}   genba outbox list")
        return bool(result.sent)

    async def _bring_along(self, terms: Terms) -> None:
        try:
            behind = await self.follow(terms)
        except GenbaError as error:
            behind = error.message
        if behind:
            self._tell(f"follow {terms.target}", f"{terms.target} stays behind here: {behind}")

    async def _looking(self) -> None:
        while True:
            await asyncio.sleep(self.settings.sync_seconds)
            if not await self._is_fresh():
                await self._bear(self.look, "look")

    async def _is_fresh(self) -> bool:
        """Whether a host read the tracker a moment ago."""
        try:
            looked = await asyncio.to_thread(self.board.value, _LOOKED)
        except GenbaError:
            return True
        # A look in time to come was written by a clock that was wrong: it counts for nothing.
        return bool(looked) and abs(hours_between(looked, now())) * 3600 < self.settings.sync_seconds * 0.9

    async def _sending(self) -> None:
        while self.settings.send:
            await self._bear(self._send, "send")
            await asyncio.sleep(_SEND_AGAIN_SECONDS)

    async def _send(self) -> None:
        result = await self.sender.send(None, longest_wait=_LONGEST_WAIT_SECONDS)
        for entry in result.failed:
            self.say(f"GitHub refuses entry {entry.id} of the outbox: {entry.error}   genba outbox show {entry.id}")
        if result.refused:
            self._tell("send", f"nothing is sent to GitHub: {result.refused}   genba outbox list")
        elif result.sent:
            self._reported.pop("send", None)
            self.wake()

    async def _bear(self, work: Callable[[], Awaitable[object]], what: str) -> None:
        """The outermost edge: every failure is reported, and the next pass follows."""
        try:
            await work()
        except GenbaError as error:
            self._tell(what, error.message)
            if isinstance(error, RecoverableError) and error.retry_after:
                await asyncio.sleep(error.retry_after)
        except Exception as error:  # noqa: BLE001  (the edge of a task that runs by itself)
            self._tell(what, f"GitHub is left alone for a while: {type(error).__name__}")
            await asyncio.sleep(_LONGEST_WAIT_SECONDS)

    def _tell(self, what: str, message: str) -> None:
        if self._reported.get(what) != message:
            self._reported[what] = message
            self.say(message)

    def _report(self, result: SyncResult) -> None:
        for words, numbers in changes_of(result).items():
            named = ", ".join(f"#{number}" for number in numbers[:_MOST_NAMED])
            more = f" and {len(numbers) - _MOST_NAMED} more" if len(numbers) > _MOST_NAMED else ""
            self.say(f"{words}: {named}{more}")
        for news in result.news:
            if news.verdict is not PullRequestOutcome.WAIT:
                self._tell(f"pull request {news.number}", f"pull request #{news.number} of #{news.task}: {news.result}")
        for note in result.notes:
            self._tell(f"note {note}", note)


def changes_of(result: SyncResult) -> dict[str, tuple[int, ...]]:
    """What became of issues, in words; what nothing became of is left out."""
    found = {
        "new from GitHub": result.added,
        "closed on GitHub": result.closed,
        "reopened on GitHub": result.reopened,
        "gone from GitHub": result.gone,
    }
    return {words: numbers for words, numbers in found.items() if numbers}
