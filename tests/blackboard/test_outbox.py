"""Every change on the outside is written down first, and sent once, in order, at its pace."""

import asyncio
import itertools
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from genba.blackboard.database.store import Transaction
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.tracker import outbox as rows
from genba.blackboard.tracker.outbox_order import NextSend
from genba.domain.errors import (
    AccessRefusedError,
    NotAllowedError,
    NotFoundError,
    RateLimited,
    RemoteUnavailable,
    StateConflictError,
    UnavailableError,
    UnrecoverableError,
    UsageError,
)
from genba.domain.tracker.outbox import (
    CloseIssue,
    DeliveryReceipt,
    KeepComment,
    OutboxEntry,
    OutboxStatus,
    Pace,
    PostComment,
    Relabel,
    RemoteChange,
)
from genba.testing.outbox_conformance import RemoteChangesSuite
from genba.testing.outbox_doubles import Fault, MemoryChanges
from tests.blackboard.acting import HUMAN, add
from tests.blackboard.outboxes import Desk

HELLO = PostComment(issue=1, body="Hello.")


class TestMemoryDeeds(RemoteChangesSuite):
    @pytest.fixture
    def changes(self) -> MemoryChanges:
        return MemoryChanges()

    @pytest.fixture
    def head(self) -> str:
        return "c1"


@pytest.fixture
def desk(board: Blackboard) -> Desk:
    return Desk(board)


# ── recording ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_deed_is_recorded_together_with_the_change_that_asks_for_it_or_not_at_all(
    board: Blackboard, desk: Desk
) -> None:
    def change_of_mind(tx: Transaction) -> None:
        rows.record(tx, "hello", HELLO)
        raise UsageError("no")

    with pytest.raises(UsageError):
        board.store.write(change_of_mind)
    assert desk.outbox.list(all=True) == ()
    entry = board.store.write(lambda tx: rows.record(tx, "hello", HELLO, run="worker-1"))
    assert (entry.key, entry.change, entry.lane, entry.status, entry.run) == (
        "hello",
        HELLO,
        "issue:1",
        OutboxStatus.PENDING,
        "worker-1",
    )


def test_the_first_deed_of_a_key_counts_however_often_it_is_asked_for(desk: Desk) -> None:
    first = desk.outbox.record("hello", HELLO)
    again = desk.outbox.record("hello", PostComment(issue=1, body="Hello, later."))
    assert (again.id, again.change) == (first.id, HELLO)
    assert len(desk.outbox.list()) == 1


async def test_a_comment_that_is_kept_takes_the_newest_words_and_is_sent_again_where_others_were_sent(
    desk: Desk,
) -> None:
    changes = MemoryChanges()
    for words in ("one", "two"):
        desk.outbox.record("kept", KeepComment(issue=1, name="status", body=words))
    assert len(desk.outbox.list()) == 1
    await desk.sender(changes).send()
    desk.outbox.record("kept", KeepComment(issue=1, name="status", body="two"))
    assert desk.outbox.left() == 0
    desk.outbox.record("kept", KeepComment(issue=1, name="status", body="three"))
    await desk.sender(changes).send()
    assert [effect.change for effect in changes.effects] == [
        KeepComment(issue=1, name="status", body="two"),
        KeepComment(issue=1, name="status", body="three"),
    ]
    assert changes.comments_of(1) == ["three"]


async def test_newer_words_of_a_kept_comment_are_not_lost_while_older_ones_are_being_sent(desk: Desk) -> None:
    class Slow(MemoryChanges):
        async def apply(self, change: RemoteChange, key: str) -> DeliveryReceipt:
            made = await super().apply(change, key)
            if len(self.effects) == 1:
                desk.outbox.record("kept", KeepComment(issue=1, name="status", body="newer"))
            return made

    changes = Slow()
    desk.outbox.record("kept", KeepComment(issue=1, name="status", body="older"))
    result = await desk.sender(changes).send()
    assert changes.comments_of(1) == ["newer"]
    assert result.left == 0


@pytest.mark.parametrize("key", ["", "two words", "a-->b", "x" * 201, "-x", "a\nb"])
def test_a_key_cannot_end_the_marker_that_it_stands_in(desk: Desk, key: str) -> None:
    with pytest.raises(UsageError):
        desk.outbox.record(key, HELLO)


def test_a_deed_belongs_to_the_task_of_its_issue_where_there_is_one(board: Blackboard, desk: Desk) -> None:
    number = add(board)
    desk.outbox.record("hello", PostComment(issue=number, body="Hello."))
    assert [entry.key for entry in board.store.read(lambda tx: rows.pending(tx, number))] == ["hello"]
    assert board.store.read(lambda tx: rows.pending(tx, 99)) == []


# ── order ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_effects_are_sent_in_the_order_in_which_they_were_recorded(desk: Desk) -> None:
    changes = MemoryChanges(issues=(1, 2))
    for number, issue in enumerate((1, 2, 1, 2, 1), 1):
        desk.comment(f"c{number}", issue)
    result = await desk.sender(changes).send()
    assert changes.keys == ["c1", "c2", "c3", "c4", "c5"]
    assert [entry.key for entry in result.sent] == changes.keys
    assert (result.left, result.until, result.why) == (0, "", "")
    entry = desk.outbox.show(result.sent[0].id)
    assert (entry.status, entry.attempts) == (OutboxStatus.DONE, 1)
    assert entry.receipt == DeliveryReceipt(address="memory://issue/1", number=1)


async def test_what_is_refused_fails_and_holds_its_lane_while_the_others_go_on(desk: Desk) -> None:
    changes = MemoryChanges(issues=(1, 2))
    changes.faults.append(Fault(error=UnrecoverableError("the issue is locked")))
    first, second, other = desk.comment("c1"), desk.comment("c2"), desk.comment("c3", 2)
    result = await desk.sender(changes).send()
    assert changes.keys == ["c3"]
    assert [entry.id for entry in result.failed] == [first]
    assert [(entry.id, entry.status) for entry in desk.outbox.list()] == [
        (first, OutboxStatus.FAILED),
        (second, OutboxStatus.PENDING),
    ]
    assert desk.outbox.show(first).error == "the issue is locked"
    assert desk.outbox.show(other).status is OutboxStatus.DONE
    assert desk.outbox.retry(first).status is OutboxStatus.PENDING
    await desk.sender(changes).send()
    assert changes.keys == ["c3", "c1", "c2"]


async def test_what_is_dropped_is_never_sent_and_lets_the_next_one_pass(desk: Desk) -> None:
    changes = MemoryChanges()
    changes.faults.append(Fault(error=UnrecoverableError("the issue is locked")))
    first, _ = desk.comment("c1"), desk.comment("c2")
    await desk.sender(changes).send()
    dropped = desk.outbox.drop(first, HUMAN)
    assert (dropped.status, dropped.error) == (OutboxStatus.DROPPED, "dropped by ada")
    await desk.sender(changes).send()
    assert changes.keys == ["c2"]
    with pytest.raises(StateConflictError):
        desk.outbox.drop(first, HUMAN)
    with pytest.raises(StateConflictError):
        desk.outbox.retry(first)
    with pytest.raises(NotFoundError):
        desk.outbox.show(99)


async def test_who_waits_for_one_deed_sends_what_stands_before_it_and_nothing_else(desk: Desk) -> None:
    changes = MemoryChanges(issues=(1, 2))
    for number in range(1, 9):
        desk.comment(f"other{number}", 2)
    desk.comment("before")
    desk.comment("this")
    desk.comment("after")
    result = await desk.sender(changes).send(key="this")
    assert changes.keys == ["before", "this"]
    assert result.left == 9


# ── once ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("after", [False, True])
async def test_after_an_error_that_proves_nothing_a_deed_is_looked_for_before_it_is_sent_again(
    desk: Desk, after: bool
) -> None:
    changes = MemoryChanges()
    changes.faults += [Fault(error=RemoteUnavailable("502 Bad Gateway"), after=after)]
    desk.comment("c1")
    desk.comment("c2")
    result = await desk.sender(changes).send()
    assert changes.keys == ["c1", "c2"]
    assert changes.looks == 1
    first = result.sent[0]
    assert first.receipt is not None
    assert (first.receipt.existed, first.attempts) == (after, 1 if after else 2)
    assert desk.clock.elapsed() - desk.begun >= 5


async def test_a_deed_that_others_do_often_first_is_looked_for_before_the_first_attempt(desk: Desk) -> None:
    changes = MemoryChanges()
    await changes.apply(CloseIssue(issue=1), "somebody")
    desk.outbox.record("close", CloseIssue(issue=1))
    await desk.sender(changes).send()
    assert changes.keys == ["somebody"]


async def test_a_deed_that_always_breaks_keeps_no_other_lane_from_going_on(desk: Desk) -> None:
    class Broken(MemoryChanges):
        async def apply(self, change: RemoteChange, key: str) -> DeliveryReceipt:
            if key == "broken":
                raise RemoteUnavailable("502 Bad Gateway")
            return await super().apply(change, key)

    changes = Broken(issues=(1, 2))
    desk.comment("broken")
    for number in range(1, 20):
        desk.comment(f"c{number}", 2)
    result = await desk.sender(changes).send(patience=600)
    assert changes.keys == [f"c{number}" for number in range(1, 20)]
    assert result.left == 1
    assert result.why == "502 Bad Gateway"


async def test_an_unexpected_error_fails_without_its_text(desk: Desk) -> None:
    changes = MemoryChanges()
    changes.faults.append(Fault(error=ValueError("token ghp_abc")))
    number = desk.comment("c1")
    await desk.sender(changes).send()
    entry = desk.outbox.show(number)
    assert entry.status is OutboxStatus.FAILED
    assert entry.error == "unexpected error: ValueError"


async def test_a_sender_cut_off_in_the_middle_leaves_the_effect_to_be_looked_for(desk: Desk) -> None:
    begun = asyncio.Event()

    class Hanging(MemoryChanges):
        async def apply(self, change: RemoteChange, key: str) -> DeliveryReceipt:
            made = await super().apply(change, key)
            begun.set()
            await asyncio.Event().wait()
            return made

    desk.comment("c1")
    changes = Hanging()
    sending = asyncio.ensure_future(desk.sender(changes).send())
    await begun.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    rest = MemoryChanges()
    rest._effects = changes._effects
    result = await desk.sender(rest).send()
    assert rest.keys == ["c1"]
    assert result.sent[0].receipt is not None
    assert result.sent[0].receipt.existed


async def test_a_sender_cut_off_before_anything_is_sent_returns_the_lease(board: Blackboard, desk: Desk) -> None:
    waiting = asyncio.Event()
    loop = asyncio.get_running_loop()
    go_on = threading.Event()

    class Slow(rows.Outbox):
        def claim(self, *arguments: Any, **named: Any) -> NextSend:
            turn = super().claim(*arguments, **named)
            loop.call_soon_threadsafe(waiting.set)
            assert go_on.wait(30)
            return turn

    desk.comment("c1")
    changes, sender = MemoryChanges(), desk.sender(MemoryChanges())
    sender.outbox = Slow(board.store, desk.now)
    sending = asyncio.ensure_future(sender.send())
    await waiting.wait()
    sending.cancel()
    loop.call_later(0.01, go_on.set)
    with pytest.raises(asyncio.CancelledError):
        await sending
    result = await desk.sender(changes).send(patience=1)
    assert changes.keys == ["c1"]
    assert result.left == 0


async def test_a_database_that_is_away_after_the_effect_doubles_nothing(board: Blackboard, desk: Desk) -> None:
    class Away(rows.Outbox):
        def end(self, *_arguments: Any, **_named: Any) -> OutboxEntry:
            raise UnavailableError("the database is away")

    desk.comment("c1")
    changes = MemoryChanges()
    sender = desk.sender(changes)
    sender.outbox = Away(board.store, desk.now)
    with pytest.raises(UnavailableError):
        await sender.send()
    result = await desk.sender(changes).send(patience=10)
    assert changes.keys == ["c1"]
    assert result.left == 0


# ── pace ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_pause_is_kept_between_two_changes_also_by_different_processes(
    desk: Desk, open_board: Callable[..., Blackboard]
) -> None:
    changes, times = MemoryChanges(), []
    changes.at = lambda point: times.append(desk.clock.elapsed()) if point == "do" else None
    for number in range(1, 7):
        desk.comment(f"c{number}")
    for number in range(1, 7):
        other = Desk(open_board(), desk.clock)
        other.begun = desk.begun
        await other.sender(changes).send(key=f"c{number}")
    assert changes.keys == [f"c{number}" for number in range(1, 7)]
    assert [later - earlier for earlier, later in itertools.pairwise(times)] == [1.0] * 5


async def test_so_many_changes_an_hour_and_no_more_are_sent(desk: Desk) -> None:
    changes, times = MemoryChanges(), []
    changes.at = lambda point: times.append(desk.clock.elapsed()) if point == "do" else None
    for number in range(25):
        desk.comment(f"c{number}")
    await desk.sender(changes, per_hour=10).send(patience=60)
    assert len(changes.keys) == 10
    outlook = desk.outbox.outlook(Pace(per_hour=10))
    assert outlook.why == "at most 10 changes an hour are sent"
    await desk.sender(changes, per_hour=10).send()
    assert len(changes.keys) == 25
    for start in times:
        assert sum(1 for other in times if start <= other < start + 3600) <= 10


async def test_a_deed_of_several_requests_counts_as_many(desk: Desk) -> None:
    changes = MemoryChanges()
    desk.outbox.record("labels", Relabel(issue=1, add=("a",), remove=("b", "c")))
    desk.comment("c1")
    begun = desk.clock.elapsed()
    await desk.sender(changes).send()
    assert desk.clock.elapsed() - begun == 3.0


@pytest.mark.parametrize("hours", [-30, -1, 1, 30])
async def test_a_clock_that_is_set_causes_no_endless_wait_and_doubles_nothing(desk: Desk, hours: int) -> None:
    changes = MemoryChanges()
    changes.faults.append(Fault(error=RateLimited("slow down", retry_after=600)))
    for number in range(12):
        desk.comment(f"c{number}")
    await desk.sender(changes, per_hour=10).send(patience=60)
    desk.set_by = timedelta(hours=hours)
    begun = desk.clock.elapsed()
    result = await desk.sender(changes, per_hour=10).send()
    assert result.left == 0
    assert changes.keys == [f"c{number}" for number in range(12)]
    assert desk.clock.elapsed() - begun <= 3 * 3600


async def test_patience_is_the_most_that_is_waited(desk: Desk) -> None:
    changes = MemoryChanges()
    for number in range(1, 9):
        desk.comment(f"c{number}")
    result = await desk.sender(changes).send(patience=3)
    assert len(changes.keys) == 4
    assert (result.left, result.why) == (4, "the pause between two changes")
    assert (await desk.sender(changes).send(patience=0)).sent == ()
    assert (await desk.sender(changes).send(longest_wait=2)).left == 0


# ── limits, outages, credentials ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_rate_limit_delays_every_caller_until_its_time(desk: Desk) -> None:
    changes = MemoryChanges(issues=(1, 2))
    changes.faults.append(Fault(error=RateLimited("slow down", retry_after=900)))
    first = desk.comment("c1")
    desk.comment("c2", 2)
    result = await desk.sender(changes).send(patience=60)
    assert (result.left, result.why, result.until) == (2, "slow down", "2026-11-16T12:15:00.000000Z")
    desk.outbox.retry(first)
    desk.outbox.unpause()
    assert (await desk.sender(changes).send(patience=60)).sent == ()
    assert changes.looks == 0
    await desk.sender(changes).send()
    assert changes.keys == ["c1", "c2"]
    assert desk.clock.elapsed() - desk.begun >= 900


async def test_credentials_that_are_rejected_lose_nothing_and_are_reported(desk: Desk) -> None:
    changes = MemoryChanges()
    changes.faults.append(Fault(error=AccessRefusedError("GitHub does not take the token")))
    desk.comment("c1")
    desk.comment("c2")
    result = await desk.sender(changes).send()
    assert (result.refused, result.left) == ("GitHub does not take the token", 2)
    assert (await desk.sender(changes).send(patience=30)).why == "GitHub does not take the token"
    desk.outbox.unpause()
    await desk.sender(changes).send(patience=30)
    assert changes.keys == ["c1", "c2"]


async def test_what_alone_is_not_allowed_keeps_nothing_else_from_being_sent(desk: Desk) -> None:
    changes = MemoryChanges(issues=(1, 2))
    changes.faults.append(Fault(error=NotAllowedError("the token may not do this")))
    desk.comment("c1", issue=1)
    desk.comment("c2", issue=1)
    desk.comment("c3", issue=2)
    result = await desk.sender(changes).send()
    assert (result.refused, result.left) == ("the token may not do this", 2)
    assert changes.keys == ["c3"]
    desk.outbox.retry_all()
    assert (await desk.sender(changes).send()).left == 0
    assert changes.keys == ["c3", "c1", "c2"]


async def test_waiting_for_something_forbidden_fails_at_once(desk: Desk) -> None:
    changes = MemoryChanges()
    changes.faults.append(Fault(error=NotAllowedError("the token may not do this")))
    desk.comment("c1")
    result = await desk.sender(changes).send(900, key="c1")
    assert result.refused == "the token may not do this"
    assert desk.clock.elapsed() - desk.begun < 10


# ── one at a time ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_two_who_send_at_once_send_each_deed_once_and_one_at_a_time(desk: Desk) -> None:
    at_work = []

    class Watched(MemoryChanges):
        async def apply(self, change: RemoteChange, key: str) -> DeliveryReceipt:
            at_work.append(key)
            for _ in range(3):
                await asyncio.sleep(0)
            assert at_work == [key]
            at_work.remove(key)
            return await super().apply(change, key)

    changes = Watched()
    for number in range(12):
        desk.comment(f"c{number}")
    results = await asyncio.gather(*(desk.sender(changes).send() for _ in range(3)))
    assert changes.keys == [f"c{number}" for number in range(12)]
    assert sum(len(result.sent) for result in results) == 12


def test_the_lease_of_another_host_lasts_until_its_time_and_not_longer(desk: Desk) -> None:
    desk.comment("c1")
    desk.comment("c2", 2)
    pace = Pace()
    turn = desk.outbox.claim("elsewhere/1/a", pace)
    assert turn.entry is not None
    waiting = desk.outbox.claim("here/1/b", pace)
    assert (waiting.entry, waiting.holder) == (None, "elsewhere/1/a")
    assert desk.outbox.claim("here/1/b", pace, lives=lambda _owner: True).holder == "elsewhere/1/a"
    dead = desk.outbox.claim("here/1/b", pace, lives=lambda _owner: False)
    assert dead.entry is None
    assert dead.why == "it was cut off, and is looked for first"
    desk.clock.time += 61
    assert desk.outbox.claim("here/1/b", pace, lives=lambda _owner: True).holder == "elsewhere/1/a"
    taken = desk.outbox.claim("here/1/b", pace)
    assert taken.entry is not None
    assert (taken.entry.key, taken.look) == ("c1", True)
    assert desk.outbox.begin("elsewhere/1/a", turn.entry) is None
    assert not desk.outbox.renew("elsewhere/1/a")


def test_what_is_being_sent_cannot_be_dropped(desk: Desk) -> None:
    number = desk.comment("c1")
    assert desk.outbox.claim("elsewhere/1/a", Pace()).entry is not None
    with pytest.raises(StateConflictError):
        desk.outbox.drop(number, HUMAN)
    desk.clock.time += 61
    assert desk.outbox.drop(number, HUMAN).status is OutboxStatus.DROPPED


def test_the_time_of_the_server_counts_where_there_is_one(board: Blackboard) -> None:
    outbox = rows.Outbox(board.store)
    outbox.record("hello", HELLO)
    assert outbox.claim("here/1/a", Pace()).entry is not None
