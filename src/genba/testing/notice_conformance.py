"""What every channel must do: the real ones and their double alike."""

from collections.abc import Callable

from genba.domain.fleet.notifications import Notification
from genba.domain.fleet.records import EscalationKind
from genba.domain.ports import Channel

Sent = Callable[[], list[str]]
"""What came out at the other end: one text for each notice, with what it asks in it."""


def a_notice(question: str = "Which colour?", key: str = "prj_1-escalation-7") -> Notification:
    return Notification(
        key=key,
        kind=EscalationKind.QUESTION,
        project="shop",
        task=12,
        title="Add a page",
        question=question,
        command='genba answer 12 "…"',
        since="2026-11-16T12:00:00.000000Z",
    )


class ChannelSuite:
    """Fixtures: `channel`, and `sent`, which returns what came out of it so far."""

    async def test_a_notice_comes_out_with_what_it_asks(self, channel: Channel, sent: Sent) -> None:
        await channel.send(a_notice("Which colour?"))
        (result,) = sent()
        assert "Which colour?" in result

    async def test_a_notice_may_be_sent_again(self, channel: Channel, sent: Sent) -> None:
        for _ in range(2):
            await channel.send(a_notice())
        assert len(sent()) == 2

    async def test_no_text_of_anybody_breaks_a_channel(self, channel: Channel, sent: Sent) -> None:
        hostile = (
            '"; rm -rf ~; echo "',
            "<b>&amp;<!channel>",
            "$(id)`id`",
            "-e --help",
            "\x1b[2J\x07\r\n",
            "場" * 5_000,
        )
        for text in hostile:
            await channel.send(a_notice(text))
        assert len(sent()) == len(hostile)
