"""Whole runs with the real agents, `genba run iterator --adapter X --issue N`: to the merge, or to the error."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from genba.domain.tasks.task import TaskStatus
from tests.bubblewrap import needs_bubblewrap
from tests.clis import cli, path_with_clis
from tests.project import GENBA, Project, ordinary_environment, until
from tests.standins.model_server import Answer, Cut, Fail, Hang, ModelServer, Run, Turn, Write

KEY = "sk-only-the-host-holds-this"
COMMANDS = {"claude-code": "claude", "codex": "codex", "opencode": "opencode"}
QUICK = ["claude-code", "codex"]
"""Those that start in less than a second: the others are not asked the same thing twice."""

PATIENCE = 120
"""How many seconds an agent may take to begin, on a machine that is busy."""


def says(action: str, **more: Any) -> Answer:
    return Answer({**more, "next_action": {"action": action}})


WORK = (
    Write("hello.txt", "hello\n"),
    Run("git add hello.txt; git commit -qm 'Say hello'; true"),
    says("handoff", summary="it is written"),
)
CLOSE = (says("closing", status="completed"),)


class Place:
    """A project with an issue, whose agents talk to the scripted model."""

    def __init__(self, project: Project, model: ModelServer, adapter: str, sandbox: str) -> None:
        cli(COMMANDS[adapter])
        if sandbox == "bubblewrap":
            needs_bubblewrap()
        self.project, self.model, self.adapter = project, model, adapter
        self.words = ["iterator", "--adapter", adapter, "--issue", "7", "--sandbox", sandbox]
        project.issue(7, "Say hello", "Write hello.txt.")
        project.environment["PATH"] = path_with_clis()

    def follows(self, *rounds: tuple[Turn, ...]) -> None:
        """Let the model follow a script, one round for each question of a conversation."""
        self._asks(self.model.rounds("run", *rounds))

    def answers(self, rounds: dict[str, tuple[Turn, ...]]) -> None:
        """Let the model follow a script by what it is asked, whatever came before."""
        self._asks(self.model.answers("run", rounds))

    def _asks(self, url: str) -> None:
        if self.adapter == "claude-code":
            self.project.environment |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY}
        else:
            self.project.environment["OPENAI_API_KEY"] = KEY
            self.words += ["--set", f"runner.adapter.baseUrl={url}/v1"]
        if self.adapter == "opencode":
            self.words += ["--set", "runner.adapter.provider.name=openai", "--model", "stub-model"]
            self.words += ["--set", "runner.adapter.provider.npm=@ai-sdk/openai-compatible"]

    def run(self, *words: str, check: int | None = 0) -> dict[str, Any]:
        return self.project.run(*self.words, *words, check=check)

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """A run that goes on while the test looks at it, and no longer."""
        log = self.project.root.parent / "run.log"
        with log.open("wb") as file:
            run = subprocess.Popen(
                [str(GENBA), "run", *self.words, *words],
                cwd=self.project.root,
                env={**ordinary_environment(), **self.project.environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        try:
            yield run
        except AssertionError as error:
            error.add_note(log.read_text(errors="replace"))
            raise
        finally:
            run.kill()
            run.wait()


@pytest.fixture
def place(request: pytest.FixtureRequest, project: Project, model: ModelServer) -> Place:
    adapter, sandbox = request.param
    return Place(project, model, adapter, sandbox)


def places(*adapters: str, sandbox: str = "bubblewrap") -> pytest.MarkDecorator:
    return pytest.mark.parametrize("place", [(each, sandbox) for each in adapters], indirect=True, ids=adapters)


def busy(word: str) -> Run:
    """A tool that never comes back, with a child in a session of its own."""
    return Run(f"setsid sleep {word} & sleep {word}")


def running(word: str) -> list[str]:
    """The processes of the machine that have this word on their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if word.encode() in line and path.parent.name != str(os.getpid()):
            found.append(line.replace(b"\0", b" ").decode(errors="replace"))
    return found


@places("claude-code", "codex", "opencode")
def test_in_the_sandbox_an_issue_is_worked_on_judged_verified_and_merged(place: Place) -> None:
    place.follows(WORK, CLOSE)

    result = place.run("--mode", "iterate")
    asked = place.model.asked("run")

    assert (result["outcome"], result["verdict"], result["merge"]) == ("completed", "done", "merged")
    assert result["sandbox"] == "bubblewrap"
    assert place.project.git("show", "main:hello.txt") == "hello"
    assert place.project.task(7).status is TaskStatus.DONE
    assert place.project.steps_walked() == ["continuation.issue", "closure.issue"]
    assert asked[-1].asked
    assert asked[-1].asked.round == 1, "the second question went on with the conversation of the first"
    assert {request.key for request in asked} == {KEY}
    assert result["usage"]["output_tokens"] == 42 * len(asked)


@places("claude-code", "codex", "opencode", sandbox="worktree")
def test_without_a_sandbox_the_same_issue_is_merged_too(place: Place) -> None:
    place.follows(WORK, CLOSE)

    result = place.run("--mode", "iterate")

    assert (result["outcome"], result["merge"], result["sandbox"]) == ("completed", "merged", "worktree")
    assert place.project.git("show", "main:hello.txt") == "hello"


@places(*QUICK)
def test_all_four_steps_of_the_iterator_are_one_conversation(place: Place) -> None:
    place.follows(
        (says("next", plan="write it"),),
        (*WORK[:2], says("next", summary="it is written")),
        (says("next", findings=[]),),
        CLOSE,
    )

    result = place.run()

    assert result["outcome"] == "completed"
    assert result["iterations"] == 4
    assert [event for event in place.project.events() if event["event"] == "reply_rejected"] == []


FAILURES: dict[str, tuple[tuple[Turn, ...], str]] = {
    "a wrong key": ((Fail(401),), "key"),
    "a model that is not for this key": ((Fail(403),), "key"),
    "a question that the provider does not take": ((Fail(400, "no such model"),), "no such model"),
    "a provider that stays broken": ((Fail(500),), "cannot be reached"),
}
PASSING: dict[str, tuple[Turn, ...]] = {
    "a rate limit": (Fail(429, times=2, retry_after=1),),
    "a crowd": (Fail(529, times=3),),
    "a broken line": (Cut(times=2),),
    "a silence": (Hang(times=1),),
}
IMPATIENT = (
    *("--set", "runner.limits.retryDelaySeconds=0.01", "--set", "runner.limits.retries=3"),
    *("--set", "runner.limits.idleTimeoutSeconds=8"),
)


@places(*QUICK)
@pytest.mark.parametrize("failure", FAILURES)
def test_the_run_fails_and_says_why_with(place: Place, failure: str) -> None:
    turns, word = FAILURES[failure]
    place.follows(turns)

    result = place.run("--mode", "iterate", *IMPATIENT, check=1)

    assert (result["outcome"], result["iterations"], result["merge"]) == ("failed", 0, None)
    assert word in result["reason"]
    assert KEY not in str(place.project.events())
    assert place.project.task(7).status is TaskStatus.OPEN


@places(*QUICK)
@pytest.mark.parametrize("trouble", PASSING)
def test_the_run_survives(place: Place, trouble: str) -> None:
    place.answers({"# Work on": (*PASSING[trouble], *WORK), "# Close issue": CLOSE})

    result = place.run("--mode", "iterate", *IMPATIENT)

    assert (result["outcome"], result["iterations"], result["merge"]) == ("completed", 2, "merged")
    assert place.project.git("show", "main:hello.txt") == "hello"


@places("claude-code", "codex", "opencode")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_a_run_that_is_killed_while_a_tool_works(place: Place, how: signal.Signals) -> None:
    word = f"86{uuid4().int % 10**9}"
    place.answers({"# Work on": (busy(word), *WORK), "# Close issue": CLOSE})

    with place.started("--mode", "iterate") as run:
        until(lambda: len([line for line in running(word) if line.startswith("sleep")]) == 2, PATIENCE)
        run.send_signal(how)
        run.wait(60)
        until(lambda: running(word) == [])
        until(lambda: [each for each in running(str(place.project.root)) if COMMANDS[place.adapter] in each] == [])

    assert run.returncode == (-how if how is signal.SIGKILL else run.returncode)
    assert run.returncode != 0


@places(*QUICK)
def test_a_run_that_was_killed_while_a_tool_worked_is_resumed_and_merged(place: Place) -> None:
    word = f"87{uuid4().int % 10**9}"
    plan = (says("next", plan="write it"),)
    place.answers({"# Understand": plan, "# Work on": (WORK[0], busy(word), WORK[2]), "# Close issue": CLOSE})
    with place.started() as run:
        until(lambda: running(word), PATIENCE)
        run.kill()
        run.wait(60)
        until(lambda: running(word) == [])
    place.answers(
        {"# Understand": plan, "# Work on": (Run("echo hello > hello.txt"), *WORK[1:]), "# Close issue": CLOSE}
    )
    name = json.loads(place.project.genba("logs", "--json", check=0).out.splitlines()[0])["run"]

    result = place.project.run("--resume", name)

    assert (result["outcome"], result["merge"]) == ("completed", "merged")
    assert place.project.git("show", "main:hello.txt") == "hello"
    assert place.project.steps_walked() == ["initial.issue", "continuation.issue", "closure.issue"]
