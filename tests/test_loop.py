"""The loop on doubles: what would take real time, real money or a real provider."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from genba.definitions.agent.agent_json import Limits
from genba.definitions.agent.definition import AgentDefinition
from genba.definitions.agent.loading import load_definition
from genba.domain.errors import AgentUnavailable, GenbaError, RateLimited
from genba.domain.events import AskRetried, LoopEnded
from genba.domain.ports import AgentInstance
from genba.domain.processes import OutputListener
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.replies import Ask, Reply, Usage
from genba.domain.sessions.workspaces import MergeResult, MergeStatus
from genba.domain.tracker.issues import Issue
from genba.execution.loop.resume import read_resumption
from genba.execution.run_values import RunPlan, RunResult
from genba.execution.session import Session
from genba.testing.doubles import (
    ManualClock,
    MemoryJournal,
    MemoryRepository,
    MemoryTracker,
    MemoryTrees,
    ReplyingAgent,
    ScriptedChecks,
    facts,
)
from tests.doubles.sessions import session_context


class Table:
    """A whole run on doubles, without a process, a disk or a clock."""

    def __init__(self, definition: AgentDefinition, *answers: Reply | GenbaError) -> None:
        self.definition = definition
        self.agent = ReplyingAgent(*answers)
        self.clock = ManualClock()
        self.journal = MemoryJournal()
        self.tracker = MemoryTracker(Issue(number=7, title="Seven"))
        self.repository = MemoryRepository()
        self.trees = MemoryTrees(facts())
        self.checks = ScriptedChecks({})

    async def run(self, **parameters: Any) -> RunResult:
        context = session_context(
            self.agent,
            trees=self.trees,
            repository=self.repository,
            checks=self.checks,
            tracker=self.tracker,
            journal=self.journal,
            clock=self.clock,
        )
        plan = RunPlan(run="run-1", definition=self.definition, parameters=parameters)
        result = await Session(plan, context).execute()
        self.agent.finish()
        return result


class ClosedMeanwhile(MemoryTracker):
    async def read(self, number: int) -> Issue:
        issue = await super().read(number)
        self.issues[number] = msgspec.structs.replace(issue, state="closed")
        return issue


@pytest.fixture
def define(tmp_path: Path) -> Any:
    def make(completion: dict[str, Any], **more: Any) -> AgentDefinition:
        folder = tmp_path / "worker"
        (folder / "prompts").mkdir(parents=True)
        parameters = more.pop("parameters", {})
        steps = more.pop("steps", {"work": {}})
        entry_step = more.pop("entry", None)
        runner = {"completion": completion, **more}
        file = {"name": "worker", "description": "A worker", "parameters": parameters, "runner": runner}
        (folder / "agent.json").write_text(json.dumps(file))
        entry = {"entryStep": entry_step} if entry_step else {}
        (folder / "steps_registry.json").write_text(json.dumps({"steps": steps, **entry}))
        (folder / "prompts/system.md").write_text("Work.\n")
        return load_definition(folder, "worker", [], [])

    return make


ONCE = {"type": "iterationBudget", "config": {"maxIterations": 1}}
SIGNAL = {"type": "keywordSignal", "config": {"completionKeyword": "FINISHED"}}


async def test_a_rate_limit_waits_for_its_reset_and_costs_no_iteration(define: Any) -> None:
    table = Table(define(ONCE, limits={"retries": 0}), RateLimited("later", retry_after=900), Reply(text="done"))

    result = await table.run()

    assert (result.outcome, result.iterations) == (Outcome.COMPLETED, 1)
    assert table.clock.slept == [900]


async def test_a_rate_limit_beyond_the_time_of_the_run_suspend_it(define: Any) -> None:
    table = Table(define(ONCE, limits={"wallTimeSeconds": 600}), RateLimited("later", retry_after=900))

    result = await table.run()

    assert result.outcome is Outcome.BUDGET_EXHAUSTED
    assert "900 s" in result.reason
    assert table.clock.slept == []


async def test_waits_between_tries_double_up_to_their_limit(define: Any) -> None:
    limits = {"retries": 4, "retryDelaySeconds": 2, "retryMaxDelaySeconds": 10}
    table = Table(define(ONCE, limits=limits), *[AgentUnavailable("crashed")] * 4, Reply(text="done"))

    result = await table.run()

    assert result.outcome is Outcome.COMPLETED
    assert table.clock.slept == [2, 4, 8, 10]
    assert [event.attempt for event in table.journal.of(AskRetried)] == [1, 2, 3, 4]


async def test_the_session_is_resumed_in_the_next_iteration(define: Any) -> None:
    completion = {"type": "iterationBudget", "config": {"maxIterations": 2}}
    table = Table(define(completion), Reply(text="one", session_id="s-1"), Reply(text="two", session_id="s-1"))

    await table.run()

    assert [ask.session_id for ask in table.agent.asked] == [None, "s-1"]


@pytest.mark.parametrize(
    ("limits", "output"),
    [
        ({"tokens": 150}, "200 of 150 tokens"),
        ({"costUsd": 0.5}, "$0.6 of $0.5"),
        ({"maxIterations": 2}, "2 of 2 iter"),
    ],
)
async def test_reaching_a_budget_is_never_success(define: Any, limits: dict[str, Any], output: str) -> None:
    reply = Reply(text="still working", usage=Usage(60, 40, 0.3))
    table = Table(define(SIGNAL, limits=limits), reply, reply)

    result = await table.run()

    assert result.outcome is Outcome.BUDGET_EXHAUSTED
    assert output in result.reason
    assert table.repository.messages == []


async def test_the_issue_is_closed_only_after_its_work_has_arrived(define: Any) -> None:
    definition = define(
        {"type": "externalState", "config": {"validators": ["commits-exist"]}},
        parameters={"issue": {"type": "number", "required": True}},
        integrations={"github": {"enabled": True}},
    )
    table = Table(definition, Reply(text="done"))
    table.repository.results = [MergeResult(status=MergeStatus.CONFLICT, paths=("a",))]

    result = await table.run(issue=7)

    assert result.outcome is Outcome.BLOCKED
    assert not table.tracker.issues[7].closed


async def test_an_issue_that_was_closed_outside_completes_when_its_checks_hold(define: Any) -> None:
    definition = define(
        {"type": "externalState", "config": {"validators": ["commits-exist"]}},
        parameters={"issue": {"type": "number", "required": True}},
    )
    table = Table(definition, Reply(text='{"status": "in_progress"}'))
    table.tracker = ClosedMeanwhile(Issue(number=7, title="Seven"))

    result = await table.run(issue=7)

    assert result.outcome is Outcome.COMPLETED
    assert "closed outside" in result.reason


async def test_nothing_is_scheduled_or_judged_by_a_model(define: Any) -> None:
    table = Table(define(ONCE), Reply(text="done"))

    await table.run()

    assert len(table.agent.asked) == 1


class SlowAgent(ReplyingAgent):
    """Every answer takes five seconds."""

    def __init__(self, clock: ManualClock, *answers: Reply | GenbaError) -> None:
        super().__init__(*answers)
        self.clock = clock

    async def execute(self, instance: AgentInstance, ask: Ask, received: OutputListener) -> Reply:
        self.clock.time += 5
        return await super().execute(instance, ask, received)


async def test_the_time_of_a_run_counts_its_second_questions_too(define: Any) -> None:
    gate = {"allowedIntents": ["next"]}
    steps = {"work": {"structuredGate": gate, "transitions": {"next": "end"}}, "end": {"stepKind": "closure"}}
    definition = define({"type": "stepMachine"}, steps=steps, limits={"wallTimeSeconds": 8, "reasks": 5}, entry="work")
    table = Table(definition)
    table.agent = SlowAgent(table.clock, *[Reply(text="prose")] * 2)

    result = await table.run()

    assert result.outcome is Outcome.BUDGET_EXHAUSTED
    assert len(table.agent.asked) == 2
    ended = table.journal.of(LoopEnded)[-1]
    assert ended.seconds == 10
    assert result.hint.endswith("--set runner.limits.wallTimeSeconds=16")


async def test_what_was_spent_is_not_given_again_to_a_resumed_run(define: Any) -> None:
    table = Table(define(SIGNAL), Reply(text="one", usage=Usage(10, 5)), AgentUnavailable("gone"))
    table.definition = msgspec.structs.replace(
        table.definition,
        file=msgspec.structs.replace(
            table.definition.file,
            runner=msgspec.structs.replace(table.definition.file.runner, limits=Limits(retries=0)),
        ),
    )
    await table.run()

    left = read_resumption("run-1", table.journal.events)

    assert left.state is not None
    assert (left.state.usage.tokens, left.state.iterations, left.state.outcome) == (15, 1, None)
