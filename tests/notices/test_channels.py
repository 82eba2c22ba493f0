"""Channels: what leaves this machine, to whom, and what does not."""

import hashlib
import hmac
import logging
from pathlib import Path

import pytest

from genba.connections.notifications.desktop import DesktopChannel, desktop_problem, words
from genba.connections.notifications.webhook import WebhookChannel, url_problem
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.domain.errors import AgentUnavailable, RateLimited, RemoteUnavailable, UnrecoverableError
from genba.domain.ports import Channel
from genba.testing.notice_conformance import ChannelSuite, Sent, a_notice
from genba.testing.notice_doubles import MemoryChannel
from tests.notices.conftest import Desk
from tests.notices.receiver import Receiver

LINUX = "linux"


class TestChannels(ChannelSuite):
    @pytest.fixture(params=["webhook", "desktop", "double"])
    def both(
        self, request: pytest.FixtureRequest, receiver: Receiver, desk: Desk, tmp_path: Path
    ) -> tuple[Channel, Sent]:
        if request.param == "webhook":
            return WebhookChannel(receiver.address), lambda: [post.json["question"] for post in receiver.posts]
        if request.param == "desktop":
            shown = DesktopChannel(ProcessSupervisor(), desk.environment, LINUX, str(tmp_path))
            return shown, lambda: [words[-1] for words in desk.shown()]
        double = MemoryChannel()
        return double, lambda: [notice.question for notice in double.notices]

    @pytest.fixture
    def channel(self, both: tuple[Channel, Sent]) -> Channel:
        return both[0]

    @pytest.fixture
    def sent(self, both: tuple[Channel, Sent]) -> Sent:
        return both[1]


async def test_a_webhook_gets_everything_that_a_person_needs_to_decide(receiver: Receiver) -> None:
    await WebhookChannel(f"{receiver.address}/a/path").send(a_notice())
    (post,) = receiver.posts
    result = post.json
    assert post.path == "/a/path"
    assert result.pop("sent_at")
    assert result == {
        "version": 1,
        "event": "needs_you",
        "id": "prj_1-escalation-7",
        "kind": "question",
        "project": "shop",
        "task": 12,
        "title": "Add a page",
        "question": "Which colour?",
        "command": 'genba answer 12 "…"',
        "run": "",
        "since": "2026-11-16T12:00:00.000000Z",
        "reminder": 0,
        "text": 'shop: #12 needs you (question)\nAdd a page\nWhich colour?\ngenba answer 12 "…"',
    }
    assert post.headers["Idempotency-Key"] == post.headers["Genba-Notice"] == "prj_1-escalation-7"


async def test_a_webhook_is_signed_with_its_secret_and_not_without_one(receiver: Receiver) -> None:
    await WebhookChannel(receiver.address, "a secret").send(a_notice())
    await WebhookChannel(receiver.address).send(a_notice())
    signed, plain = receiver.posts
    wanted = hmac.new(b"a secret", signed.body, hashlib.sha256).hexdigest()
    assert signed.headers["Genba-Signature"] == f"sha256={wanted}"
    assert "Genba-Signature" not in plain.headers


async def test_a_name_and_a_password_in_the_address_are_used_and_those_of_netrc_are_not(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    await WebhookChannel(receiver.address.replace("//", "//ada:secret@")).send(a_notice())
    await WebhookChannel(receiver.address).send(a_notice())
    named, plain = receiver.posts
    assert named.headers["Authorization"] == "Basic YWRhOnNlY3JldA=="
    assert "Authorization" not in plain.headers


@pytest.mark.parametrize(
    ("status", "headers", "error", "wait"),
    [
        (429, {"Retry-After": "7"}, RateLimited, 7),
        (429, {}, RateLimited, None),
        (503, {"Retry-After": "9"}, RemoteUnavailable, 9),
        (503, {"Retry-After": "99999999"}, RemoteUnavailable, 3600),
        (500, {"Retry-After": "Mon, 16 Nov 2026 12:00:00 GMT"}, RemoteUnavailable, None),
        (408, {}, RemoteUnavailable, None),
    ],
)
async def test_what_may_pass_is_tried_again(
    receiver: Receiver, status: int, headers: dict[str, str], error: type[RateLimited], wait: float | None
) -> None:
    receiver.answers.append((status, headers))
    with pytest.raises(error) as caught:
        await WebhookChannel(receiver.address).send(a_notice())
    assert caught.value.retry_after == wait


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
async def test_what_is_refused_is_not(receiver: Receiver, status: int) -> None:
    receiver.answers.append((status, {}))
    with pytest.raises(UnrecoverableError, match=f"refuses it: {status}"):
        await WebhookChannel(receiver.address).send(a_notice())


async def test_a_notification_follows_no_redirect(receiver: Receiver) -> None:
    receiver.answers.append((307, {"Location": "http://elsewhere.invalid/secret-path"}))
    with pytest.raises(UnrecoverableError, match=r"sends us on to elsewhere\.invalid") as caught:
        await WebhookChannel(receiver.address).send(a_notice())
    assert "secret-path" not in caught.value.message
    assert len(receiver.posts) == 1


async def test_no_call_waits_longer_than_its_limit(receiver: Receiver) -> None:
    receiver.silent.set()
    with pytest.raises(RemoteUnavailable, match=r"127\.0\.0\.1 did not answer within 0\.2 s"):
        await WebhookChannel(receiver.address, timeout_seconds=0.2).send(a_notice())


async def test_the_address_is_never_shown(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "T0001-B0002-very-secret"
    channel = WebhookChannel(f"{receiver.address}/services/{secret}?token={secret}")
    await channel.send(a_notice())
    receiver.answers.append((500, {}))
    with pytest.raises(RemoteUnavailable) as refused:
        await channel.send(a_notice())
    with pytest.raises(RemoteUnavailable) as absent:
        await WebhookChannel(f"http://127.0.0.1:1/{secret}").send(a_notice())
    message = f"{refused.value} {absent.value} {channel!r} {caplog.text}"
    assert secret not in message
    assert absent.value.__cause__ is None


@pytest.mark.parametrize(
    ("url", "allowed", "problem"),
    [
        ("https://hooks.example/x", False, ""),
        ("http://localhost:8080/x", False, ""),
        ("http://[::1]:8080/x", False, ""),
        ("http://hooks.example/x", True, ""),
        (
            "http://hooks.example/secret",
            False,
            "it is http, and anyone between here and hooks.example could read it",
        ),
        ("file:///etc/passwd", False, "it is no address that begins with https://"),
        ("hooks.example/secret", False, "it is no address that begins with https://"),
        ("https://[bad/secret", False, "it is no address"),
        ("https://hooks.example:port/secret", False, "it is no address"),
    ],
)
def test_only_https_and_this_machine_are_notified(url: str, allowed: bool, problem: str) -> None:
    assert url_problem(url, allowed) == problem


async def test_a_question_notifies_no_group_of_users(receiver: Receiver) -> None:
    await WebhookChannel(receiver.address).send(a_notice("<!channel> a & b"))
    assert "&lt;!channel&gt; a &amp; b" in receiver.posts[0].json["text"]
    assert receiver.posts[0].json["question"] == "<!channel> a & b"


def test_on_linux_a_notification_is_words_after_the_options_and_its_markup_does_not_count() -> None:
    shown = words(a_notice("--hint <b>bold</b> & `id`\x1b[2J"), LINUX)
    assert shown[:4] == ("notify-send", "--app-name=Genba", "--urgency=normal", "--")
    assert shown[4] == "Genba: shop: #12 needs you (question)"
    assert shown[5] == 'Add a page\n--hint &lt;b&gt;bold&lt;/b&gt; &amp; `id` [2J\ngenba answer 12 "…"'


def test_on_macos_the_words_are_no_part_of_the_script() -> None:
    hostile = '" & (do shell script "id") & "'
    shown = words(a_notice(hostile), "darwin")
    script = shown[: shown.index("end run") + 1]
    assert shown[0] == "osascript"
    assert not any(hostile in word for word in script)
    assert hostile in shown[-1]
    assert len(shown) == len(script) + 2
    assert not shown[-2].startswith("-")


def test_where_there_is_no_desktop_nothing_is_shown(desk: Desk) -> None:
    assert desktop_problem(desk.environment, LINUX) == ""
    assert desktop_problem({"PATH": desk.environment["PATH"]}, LINUX) == "there is no desktop here"
    assert desktop_problem({"PATH": "/nowhere", "DISPLAY": ":0"}, LINUX) == "notify-send is not installed"
    assert "no way to show it" in desktop_problem(desk.environment, "plan9")


async def test_a_desktop_that_does_not_answer_is_asked_again(desk: Desk, tmp_path: Path) -> None:
    (desk.folder / "notify-send").write_text("#!/bin/sh\necho no server >&2\nexit 1\n")
    with pytest.raises(AgentUnavailable, match="notify-send did not show it: no server"):
        await DesktopChannel(ProcessSupervisor(), desk.environment, LINUX, str(tmp_path)).send(a_notice())
