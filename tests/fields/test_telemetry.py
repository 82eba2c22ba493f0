from collections.abc import Iterator

import pytest

from tests.notices.receiver import Receiver, receiving
from tests.project import Project


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def sent(project: Project, receiver: Receiver, settings: str) -> bytes:
    """Everything that a run tells the collector."""
    project.agent(
        script={"turns": [{"do": [{"run": "git commit -q --allow-empty -m x"}], "reply": "the words of an agent"}]}
    )
    project.write(".genba/config.yaml", f"telemetry: {settings}\n")
    project.run("worker", check=None, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.address)
    return b"".join(post.body for post in receiver.posts)


def test_traces_and_metrics_are_sent_where_that_is_wanted(project: Project, receiver: Receiver) -> None:
    assert sent(project, receiver, "{enabled: false}") == b""
    assert b"invoke_agent worker" in sent(project, receiver, "{enabled: true}")
    assert {post.path for post in receiver.posts} == {"/v1/traces", "/v1/metrics"}


def test_telemetry_content_is_sent_only_on_request(project: Project, receiver: Receiver) -> None:
    assert b"the words of an agent" not in sent(project, receiver, "{enabled: true}")
    assert b"the words of an agent" in sent(project, receiver, "{enabled: true, content: true}")
