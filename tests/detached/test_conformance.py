"""An adapter behind a supervisor is an adapter like any other."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from genba.connections.agents.scripted import ScriptedAdapter
from genba.connections.detached.adapter import DetachedAdapter
from genba.connections.detached.results import Failure, Result
from genba.domain.errors import (
    AgentTimeout,
    AgentUnavailable,
    BoundaryViolationError,
    ConfigurationError,
    DiskFullError,
    GenbaError,
    NotFoundError,
    RateLimited,
    RecoverableError,
    StateConflictError,
    UnexpectedError,
    UnrecoverableError,
)
from genba.domain.ports import Processes
from genba.domain.problems import Problem
from genba.domain.processes import Command
from genba.domain.sessions.replies import AgentSession, Reply, Usage
from genba.testing.conformance import AgentAdapterSuite, ProcessesSuite
from tests.detached.conftest import MakePost
from tests.detached.posts import Post
from tests.project import Project

AGENTS: dict[str, dict[str, Any]] = {
    "custom": {"adapter": {"type": "custom", "command": "cat >/dev/null; echo hello"}},
    "custom by file": {
        "adapter": {
            "type": "custom",
            "command": """printf '{"text": "hello"}' > {reply_file}; test -s {prompt_file}""",
        }
    },
    "scripted": {"script": {"turns": [{"reply": "hello"}, {"reply": "hello again"}]}},
}


class TestDetachedAdapters(AgentAdapterSuite):
    @pytest.fixture(params=list(AGENTS))
    async def post(self, request: pytest.FixtureRequest, project: Project, posts: MakePost) -> Post:
        project.agent(**AGENTS[request.param])
        return await posts()

    @pytest.fixture
    def adapter(self, post: Post) -> DetachedAdapter:
        return post.adapter()

    @pytest.fixture
    def session(self, post: Post) -> AgentSession:
        return AgentSession(
            run=post.run,
            agent="worker",
            workdir=post.workspace.path,
            folder=str(post.folder / "asks"),
            environment={},
            processes=post.context.processes,
        )


class TestSparingProcesses(ProcessesSuite):
    @pytest.fixture
    async def processes(self, project: Project, posts: MakePost) -> Processes:
        project.agent()
        return (await posts()).adapter().processes

    @pytest.fixture
    def command(self, project: Project) -> Callable[[int], Command]:
        def make(code: int) -> Command:
            return Command(
                argv=("sh", "-c", f"echo hello; exit {code}"),
                workdir=str(project.root),
                environment={"PATH": "/usr/bin:/bin"},
                timeout_seconds=20,
                idle_seconds=20,
                mark=f"mark-{project.root.parent.name}",
            )

        return make


@pytest.mark.parametrize(
    "error",
    [
        RateLimited("come back later", retry_after=42.5, hint="wait"),
        AgentTimeout("it went silent"),
        AgentUnavailable("it crashed", hint="look"),
        RecoverableError("something"),
        UnrecoverableError("no", unchanged="nothing was changed.", hint="genba"),
        BoundaryViolationError("it left its walls"),
        StateConflictError("not now"),
        NotFoundError("no such command"),
        DiskFullError("no room"),
        ConfigurationError((Problem("a.yaml", "b", "c", "d"), Problem("e", "f", "g")), hint="check"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_comes_back_as_the_same_class_with_the_same_words(error: GenbaError) -> None:
    again = Failure.of(error).error()
    assert type(again) is type(error)
    assert vars(again) == vars(error)


def test_an_unexpected_error_comes_back_as_such() -> None:
    class Finer(AgentTimeout):
        """Of an adapter of another package."""

    assert type(Failure.of(ZeroDivisionError("by zero")).error()) is UnexpectedError
    assert Failure.of(ZeroDivisionError("by zero")).error().message == "ZeroDivisionError: by zero"
    assert type(Failure.of(Finer("too late")).error()) is AgentTimeout
    assert type(Failure(kind="NoSuchError", message="what?").error()) is UnexpectedError


def test_the_time_to_come_back_passes_without_any_poll() -> None:
    late = Result(failure=Failure.of(RateLimited("later", retry_after=60.0)), at=0.0)
    with pytest.raises(RateLimited) as result:
        late.taken(replayed=True)
    assert result.value.retry_after is not None
    assert 0 < result.value.retry_after < 1
    with pytest.raises(RateLimited) as result:
        late.taken(replayed=False)
    assert result.value.retry_after == 60.0


async def test_every_field_of_a_reply_comes_through(project: Project, posts: MakePost) -> None:
    turn = {
        "reply": {"next_action": {"action": "closing"}, "deep": [1, {"two": "三"}]},
        "usage": {"input_tokens": 3, "output_tokens": 4, "cost_usd": 0.5},
        "tools": ["Read", "Edit"],
        "session": "abc",
    }
    project.agent(script={"turns": [turn]})
    reply = await (await posts()).put()
    assert reply.structured == turn["reply"]
    assert (reply.usage, reply.tools_used, reply.session_id) == (Usage(3, 4, 0.5), ("Read", "Edit"), "abc")


async def test_errors_of_the_agent_are_those_of_an_agent_in_the_same_process(project: Project, posts: MakePost) -> None:
    turns = [{"rate_limit": 30.0}, {"do": [{"exit": 3}]}, {"expect": "another prompt"}, {"do": [{"sleep": 60}]}]
    project.agent(script={"turns": turns})
    post = await posts()
    inside = post.prepared.session.context.agent.adapter
    assert isinstance(inside, ScriptedAdapter)
    for number in (1, 2, 3):
        with pytest.raises(GenbaError) as there:
            await post.put(number)
        async with post.prepared.keeper.open(post.workspace) as session:
            with pytest.raises(GenbaError) as here:
                await inside.execute(await inside.start(session), post.ask(number), post.heard)
        assert type(there.value) is type(here.value)
        assert vars(there.value) == vars(here.value)
    adapter = post.adapter()
    async with adapter.open_environment(post.workspace) as session:
        with pytest.raises(AgentTimeout):
            await adapter.execute(await adapter.start(session), post.ask(4, timeout_seconds=0.3), post.heard)


async def test_an_existing_answer_is_used_without_another_question(project: Project, posts: MakePost) -> None:
    project.agent(script={"turns": [{"reply": "once", "do": [{"run": "echo asked >> asked.txt"}, {"print": "word"}]}]})
    post = await posts()
    first = await post.put()
    received = list(post.lines)
    assert await post.put() == first
    assert post.lines == received
    assert post.question().starts() == 1
    assert (Path(post.workspace.path) / "asked.txt").read_text() == "asked\n"


async def test_another_part_of_the_run_asks_again(project: Project, posts: MakePost) -> None:
    project.agent(script={"turns": [{"reply": "hello"}], "repeat": True})
    post = await posts()
    await post.put()
    await post.put(adapter=post.adapter(part=2))
    assert (post.question(part=1).starts(), post.question(part=2).starts()) == (1, 1)


def test_half_a_character_is_replaced_and_does_not_lose_the_answer() -> None:
    result = Result(reply=Reply(text="half \ud800", structured={"a\udfff": ["\ud800"]}))
    assert b"half" in result.encoded()
