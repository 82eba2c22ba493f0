import hashlib
import hmac
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.domain.fleet.records import Escalation, EscalationKind
from tests.notices.conftest import Desk
from tests.notices.receiver import Receiver, receiving
from tests.project import Finished, Project


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def asking(project: Project) -> Project:
    """A project in which task 1 asks something."""
    project.issue(1, "Add a page")
    escalate(project, EscalationKind.QUESTION, "which colour?")
    return project


def escalate(project: Project, kind: EscalationKind, question: str) -> None:
    with project.board() as board:
        FleetBoard(board).escalate(Escalation(task=1, kind=kind, question=question), None)


def send(project: Project, notify: dict[str, Any], **environment: str) -> Finished:
    """Have all notices sent that are due."""
    project.write(".genba/config.yaml", yaml.safe_dump({"notify": notify}))
    return project.genba("notify", "--retry", check=0, cwd=None, **environment)


def webhook(receiver: Receiver, **more: Any) -> dict[str, Any]:
    return {"webhook": {"url": receiver.address, **more}}


def test_notices_go_to_an_address(asking: Project, receiver: Receiver) -> None:
    send(asking, {"webhook": {"url": f"{receiver.address}/here"}})
    (post,) = receiver.posts
    assert (post.path, post.json["task"], post.json["question"]) == ("/here", 1, "which colour?")


def test_the_address_may_be_in_a_variable(asking: Project, receiver: Receiver) -> None:
    settings = {"webhook": {"url_env": "CHAT"}}
    result = send(asking, settings)
    assert "no address: CHAT is not set" in result.out
    shown = send(asking, settings, CHAT=f"{receiver.address}/a-secret-path")
    assert [post.path for post in receiver.posts] == ["/a-secret-path"]
    assert "a-secret-path" not in shown.out + shown.err


def test_notices_are_signed_with_a_secret_from_a_variable(asking: Project, receiver: Receiver) -> None:
    settings = webhook(receiver, secret_env="SIGNING")
    assert "no secret to sign with: SIGNING is not set" in send(asking, settings).out
    assert receiver.posts == []
    send(asking, settings, SIGNING="a secret of ours")
    (post,) = receiver.posts
    wanted = hmac.new(b"a secret of ours", post.body, hashlib.sha256).hexdigest()
    assert post.headers["Genba-Signature"] == f"sha256={wanted}"


def test_an_answer_may_take_so_long(asking: Project, receiver: Receiver) -> None:
    receiver.silent.set()
    result = send(asking, webhook(receiver, timeout_seconds=0.3))
    assert "127.0.0.1 did not answer within 0.3 s" in result.out


def test_http_to_another_host_must_be_allowed(asking: Project) -> None:
    address = "http://hooks.invalid/secret"
    refused = send(asking, {"webhook": {"url": address}})
    assert "could read it" in refused.out
    allowed = send(asking, {"webhook": {"url": address, "plain_http": True, "timeout_seconds": 5}})
    assert "hooks.invalid" in allowed.out
    assert "could read it" not in allowed.out
    assert "secret" not in refused.out + allowed.out


def test_a_notice_is_shown_on_the_desktop(asking: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    desk = Desk(tmp_path_factory.mktemp("desk"))
    path = f"{desk.folder}:{asking.environment.get('PATH', '')}:/usr/local/bin:/usr/bin:/bin"
    send(asking, {"desktop": False}, PATH=path, DISPLAY=":0")
    assert desk.shown() == []
    send(asking, {"desktop": True}, PATH=path, DISPLAY=":0")
    (shown,) = desk.shown()
    assert "which colour?" in shown[-1]


def test_only_what_is_named_is_reported(asking: Project, receiver: Receiver) -> None:
    escalate(asking, EscalationKind.BUDGET, "the day is used up")
    send(asking, {**webhook(receiver), "kinds": ["budget"]})
    assert [post.json["kind"] for post in receiver.posts] == ["budget"]
    send(asking, webhook(receiver))
    assert [post.json["kind"] for post in receiver.posts] == ["budget", "question"]


def test_it_is_reported_again_after_so_many_hours(asking: Project, receiver: Receiver) -> None:
    send(asking, webhook(receiver))
    earlier = (datetime.now(UTC) - timedelta(hours=3)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    asking.sql(f"UPDATE notices SET created_at = '{earlier}', sent_at = '{earlier}'")
    send(asking, {**webhook(receiver), "reminder_hours": 4})
    send(asking, {**webhook(receiver), "reminder_hours": 2})
    assert [post.json["reminder"] for post in receiver.posts] == [0, 1]
    assert len({post.json["id"] for post in receiver.posts}) == 2
