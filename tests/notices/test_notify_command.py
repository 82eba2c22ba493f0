"""`genba notify`, and the processes that send notices by themselves."""

from typing import Any

import pytest

from genba.domain.tasks.task import TaskStatus
from tests.fleet.yard import Yard
from tests.notices.receiver import Receiver
from tests.project import Project


def settings(project: Project, receiver: Receiver) -> None:
    project.write(".genba/config.yaml", f"notify: {{webhook: {{url: '{receiver.address}'}}}}\n")


def test_a_test_notice_is_sent_on_each_channel_and_what_happened_is_reported(
    project: Project, receiver: Receiver
) -> None:
    settings(project, receiver)
    done = project.genba("notify", "--test", check=0)
    assert "✓ webhook" in done.out
    (post,) = receiver.posts
    assert (post.json["event"], post.json["kind"], post.json["project"]) == ("test", None, "repository")
    receiver.answers.append((404, {}))
    failed = project.genba("notify", "--test", "--json", check=1)
    assert failed.json == {"channels": {"webhook": {"sent": False, "problem": "127.0.0.1 refuses it: 404"}}}


def test_a_test_without_a_channel_says_how_to_name_one(project: Project) -> None:
    done = project.genba("notify", "--test", check=5)
    assert "the settings name no channel" in done.err
    assert "notify: {desktop: true}" in done.err


def test_a_look_names_the_channels_and_makes_no_blackboard(project: Project, receiver: Receiver) -> None:
    settings(project, receiver)
    done = project.genba("notify", check=0)
    assert done.out == "✓ webhook  127.0.0.1, not signed\n"
    assert not (project.root / ".genba" / "genba.db").exists()
    assert receiver.posts == []


def test_an_agent_sends_no_notices(project: Project, receiver: Receiver) -> None:
    settings(project, receiver)
    done = project.genba("notify", "--test", check=5, cwd=None, GENBA_RUN="worker-1")
    assert "an agent may not send notices" in done.err
    assert receiver.posts == []


@pytest.mark.parametrize(("line", "wrong"), [("webhok: {}", "webhok"), ("kinds: [questions]", "kinds")])
def test_unknown_names_are_refused_before_anything_runs(project: Project, line: str, wrong: str) -> None:
    project.write(".genba/config.yaml", f"notify: {{{line}}}\n")
    done = project.genba("notify", check=3)
    assert f"notify.{wrong}" in done.err


def test_the_doctor_says_what_a_channel_lacks(project: Project) -> None:
    project.write(".genba/config.yaml", "notify: {webhook: {secret_env: SIGNING}}\n")
    url = "https://hooks.invalid/a-secret-path"

    def finding(**environment: str) -> dict[str, Any]:
        project.environment.update(environment)
        found: list[dict[str, Any]] = project.genba("doctor", "--json").json["findings"]
        return next(each for each in found if each["name"] == "notices by webhook")

    assert finding()["detail"] == "no address: GENBA_WEBHOOK_URL is not set"
    assert finding(GENBA_WEBHOOK_URL=url)["detail"] == "no secret to sign with: SIGNING is not set"
    fine = finding(SIGNING="a secret of ours")
    assert (fine["health"], fine["detail"]) == ("fine", "hooks.invalid, signed with SIGNING")


def test_a_fleet_tells_what_it_asks_and_a_channel_that_is_broken_stops_nothing(
    project: Project, receiver: Receiver
) -> None:
    with Yard(project) as yard:
        yard.agent()
        yard.set(notify={"webhook": {"url": receiver.address}})
        yard.task(1, "Add a page", requires_review=True, reviewer_type="human")
        receiver.answers.append((404, {}))
        yard.work(check=None)
        assert [(post.json["task"], post.json["kind"]) for post in receiver.posts] == [(1, "review")]
        assert "refuses it: 404" in yard.genba("notify").out
        assert yard.look(1).status is TaskStatus.REVIEW
        yard.genba("notify", "--retry")
        assert [post.json["id"] for post in receiver.posts] == [receiver.posts[0].json["id"]] * 2
