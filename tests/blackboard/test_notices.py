import asyncio
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.fleet.notifications import LEASE_SECONDS, NotificationBoard
from genba.blackboard.tasks.board import Blackboard
from genba.coordination.scheduler.notifications import MOST_ATTEMPTS, Notifier
from genba.definitions.project.notify_section import Kind, NotifySettings
from genba.domain.errors import RateLimited, RemoteUnavailable, UnrecoverableError
from genba.domain.fleet.notifications import NotificationStatus
from genba.domain.fleet.records import Escalation, EscalationKind
from genba.domain.ports import Channel
from genba.testing.notice_doubles import MemoryChannel
from tests.blackboard.acting import HUMAN, add
from tests.blackboard.fleets import begin

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


class Office:
    def __init__(self, board: Blackboard) -> None:
        self.board = board
        self.fleet = FleetBoard(board)
        self.at = NOON
        self.notices = NotificationBoard(board.store, lambda: self.at)
        self.told: list[str] = []

    def ask(self, question: str = "which colour?", kind: EscalationKind = EscalationKind.QUESTION) -> int:
        """Something that waits for a person; its task."""
        session = begin(self.fleet, add(self.board, "Add a page"))
        asked = Escalation(task=session.task, kind=kind, question=question, run=session.run)
        return self.fleet.escalate(asked, None).task

    def notifier(
        self,
        channel: Channel | None = None,
        *,
        owner: str = "",
        hours: float = 0,
        kinds: tuple[Kind, ...] = (),
        patience: float = 60,
    ) -> Notifier:
        settings = NotifySettings(reminder_hours=hours)
        if kinds:
            settings = NotifySettings(reminder_hours=hours, kinds=kinds)
        channels = {} if channel is None else {"webhook": channel}
        return Notifier(
            self.notices,
            channels,
            settings,
            redact=lambda text: text.replace("hunter2", "[redacted]"),
            tell=self.told.append,
            owner=owner,
            patience=patience,
        )

    def send(self, channel: Channel | None, hours: float = 0) -> int:
        return asyncio.run(self.notifier(channel, hours=hours).send_due())

    def statuses(self) -> list[str]:
        return [str(entry.status) for entry in reversed(self.notices.newest())]

    def later(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@pytest.fixture
def office(board: Blackboard) -> Office:
    return Office(board)


def test_what_waits_for_a_person_is_notified_once(office: Office) -> None:
    channel = MemoryChannel()
    assert office.send(channel) == 0
    task = office.ask()
    assert [office.send(channel), office.send(channel)] == [1, 0]
    (result,) = channel.notices
    assert (result.task, result.kind, result.question, result.title) == (
        task,
        "question",
        "which colour?",
        "Add a page",
    )
    assert result.command == f'genba answer {task} "…"'
    assert result.project == "a project"
    assert result.key.endswith("-escalation-1")
    assert office.statuses() == ["sent"]


def test_the_kinds_that_can_be_named_are_those_that_there_are() -> None:
    assert set(NotifySettings().kinds) == set(EscalationKind)


def test_each_channel_is_notified_and_a_broken_one_does_not_delay_the_other(office: Office) -> None:
    office.ask()
    slow, quick = MemoryChannel(RemoteUnavailable("no")), MemoryChannel()
    notifier = office.notifier()
    notifier.channels = {"webhook": slow, "desktop": quick}
    assert asyncio.run(notifier.send_due()) == 1
    assert (len(slow.notices), len(quick.notices)) == (0, 1)


def test_a_process_without_a_channel_writes_nothing_down(office: Office) -> None:
    office.ask()
    assert office.send(None) == 0
    assert office.statuses() == []


def test_what_was_decided_before_its_notification_is_not_notified(office: Office) -> None:
    task = office.ask()
    office.send(MemoryChannel(RemoteUnavailable("no")))
    office.fleet.answer(task, "red", HUMAN)
    office.later(3600)
    channel = MemoryChannel()
    assert office.send(channel) == 0
    assert channel.notices == []
    assert office.statuses() == ["withdrawn"]


def test_what_may_pass_is_tried_again_later_each_time_and_then_given_up(office: Office) -> None:
    office.ask()
    channel = MemoryChannel(*(RemoteUnavailable("shop.example answers 503") for _ in range(MOST_ATTEMPTS)))
    notifier, waits = office.notifier(channel), []
    for _ in range(MOST_ATTEMPTS):
        assert asyncio.run(notifier.send_due()) == 0
        (entry,) = office.notices.newest()
        if entry.status is NotificationStatus.FAILED:
            break
        until = datetime.fromisoformat(entry.not_before)
        waits.append((until - office.at).total_seconds())
        assert asyncio.run(notifier.send_due()) == 0, "it is not due yet"
        office.at = until
    assert waits == [10, 20, 40, 80, 160, 320, 640, 1280, 2560]
    assert entry.error == f"shop.example answers 503; given up after {MOST_ATTEMPTS} attempts"
    assert channel.faults == []
    office.later(86_400)
    assert asyncio.run(notifier.send_due()) == 0
    assert office.told == ["notifications by webhook: shop.example answers 503  genba notify"], "it is told once"


def test_a_time_that_the_other_side_names_is_kept_by_everything_on_its_channel(office: Office) -> None:
    office.ask()
    office.ask()
    channel = MemoryChannel(RateLimited("slow down", retry_after=45))
    assert office.send(channel) == 0
    assert office.send(channel) == 0
    office.later(44)
    assert office.send(channel) == 0
    office.later(16)
    assert office.send(channel) == 2


def test_what_is_refused_is_given_up_at_once_and_can_be_tried_again_by_hand(office: Office) -> None:
    office.ask()
    channel = MemoryChannel(UnrecoverableError("shop.example refuses it: 404"))
    assert office.send(channel) == 0
    (entry,) = office.notices.newest()
    assert (entry.status, entry.error) == ("failed", "shop.example refuses it: 404")
    assert office.notices.retry() == 1
    assert office.send(channel) == 1


def test_an_unexpected_error_shows_none_of_its_text(office: Office) -> None:
    office.ask()
    office.send(MemoryChannel(ValueError("https://hooks.example/secret")))
    (entry,) = office.notices.newest()
    assert (entry.status, entry.error) == ("failed", "unexpected error: ValueError")


def test_a_reminder_follows_while_a_decision_is_missing(office: Office) -> None:
    task = office.ask()
    channel = MemoryChannel()
    counts = []
    for _ in range(3):
        counts.append(office.send(channel, hours=2))
        counts.append(office.send(channel, hours=2))
        office.later(7200)
    assert counts == [1, 0, 1, 0, 1, 0]
    assert [notice.reminder for notice in channel.notices] == [0, 1, 2]
    assert len(set(channel.keys)) == 3
    office.fleet.answer(task, "red", HUMAN)
    assert office.send(channel, hours=2) == 0


def test_only_the_kinds_that_are_named_are_reported(office: Office) -> None:
    office.ask()
    office.ask(kind=EscalationKind.BUDGET, question="the day is used up")
    channel = MemoryChannel()
    assert asyncio.run(office.notifier(channel, kinds=("budget",)).send_due()) == 1
    assert [notice.kind for notice in channel.notices] == ["budget"]


def test_secrets_and_long_texts_stay_here(office: Office) -> None:
    office.ask("the password is hunter2, is it not? " + "x" * 3_000)
    channel = MemoryChannel()
    office.send(channel)
    (result,) = channel.notices
    assert "hunter2" not in result.question
    assert result.question.startswith("the password is [redacted], is it not?")
    assert len(result.question) <= 1_000


def test_many_who_send_at_once_send_each_notice_once(office: Office) -> None:
    for _ in range(12):
        office.ask()
    channel = MemoryChannel()
    senders = [office.notifier(channel, owner=f"sender {number}") for number in range(4)]

    async def race() -> None:
        while await asyncio.to_thread(lambda: office.statuses().count("sent")) < 12:
            await asyncio.gather(*(sender.send_due() for sender in senders))

    asyncio.run(race())
    assert len(channel.keys) == len(set(channel.keys)) == 12


def test_the_entries_of_a_living_sender_are_taken_by_no_other(office: Office) -> None:
    office.ask()
    office.notices.record(("webhook",), ("question",))
    held = office.notices.claim("somewhere else", "webhook")
    assert held is not None
    assert office.send(MemoryChannel()) == 0
    office.later(LEASE_SECONDS + 1)
    late = MemoryChannel()
    assert office.send(late) == 1
    assert late.keys == [held.notice.key]
    office.notices.fail("somewhere else", held, "too late")
    assert office.statuses() == ["sent"]


def test_a_clock_that_is_set_back_delays_no_process(office: Office) -> None:
    office.ask()
    office.send(MemoryChannel(RemoteUnavailable("no")))
    office.notices.record(("webhook",), ("question",))
    office.later(-86_400)
    assert office.send(MemoryChannel()) == 1


async def test_a_stopped_sender_sends_what_is_due(office: Office) -> None:
    channel = MemoryChannel()
    stop = asyncio.Event()
    running = asyncio.ensure_future(office.notifier(channel).run(stop))
    await asyncio.to_thread(office.ask)
    stop.set()
    await asyncio.wait_for(running, 30)
    assert len(channel.keys) == 1


async def test_a_stop_does_not_wait_for_a_channel_that_hangs(office: Office) -> None:
    begun, stop = asyncio.Event(), asyncio.Event()

    class Hangs:
        async def send(self, _notice: object) -> None:
            begun.set()
            await asyncio.Event().wait()

    await asyncio.to_thread(office.ask)
    running = asyncio.ensure_future(office.notifier(Hangs(), patience=0.2).run(stop))
    await asyncio.wait_for(begun.wait(), 30)
    stop.set()
    await asyncio.wait_for(running, 30)
    (entry,) = await asyncio.to_thread(office.notices.newest)
    assert (entry.status, entry.error) == ("pending", "it was cut off")


def sending(address: str, file: Path, environment: dict[str, str], point: str = "") -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-m", "tests.blackboard.notice_process", address, str(file), point]
    return subprocess.Popen(words, env=environment)


def test_processes_that_send_at_the_same_time_send_each_notice_once(
    office: Office, address: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    for _ in range(10):
        office.ask()
    file = tmp_path / "sent"
    processes = [sending(address, file, environment) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert sending(address, file, environment).wait() == 0
    keys = MemoryChannel(file=file).keys
    assert len(keys) == len(set(keys)) == 10


def test_nothing_is_written_while_nothing_is_due(office: Office) -> None:
    office.ask()
    office.send(MemoryChannel(RemoteUnavailable("no")))
    asked = (("webhook",), ("question",))
    assert not office.notices.due(*asked)
    assert not office.notices.due(("desktop",), ("budget",))
    office.later(10)
    assert office.notices.due(*asked)


@pytest.mark.parametrize("point", ["send", "is sent"])
def test_a_sender_that_is_killed_loses_nothing_and_repeats_only_with_the_same_key(
    office: Office, address: str, tmp_path: Path, environment: dict[str, str], point: str
) -> None:
    office.ask()
    file = tmp_path / "sent"
    assert sending(address, file, environment, point).wait() == -signal.SIGKILL
    assert sending(address, file, environment).wait() == 0
    keys = MemoryChannel(file=file).keys
    assert len(set(keys)) == 1
    assert len(keys) == (1 if point == "send" else 2)
    assert office.statuses() == ["sent"]
