"""Laws that hold for every input, not only for the examples."""

import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from genba.definitions.agent.agent_json import AgentFile
from genba.definitions.agent.layers import Layer, leaves, merge
from genba.definitions.agent.loading import load_definition
from genba.definitions.steps.steps_registry import StepsRegistry
from genba.definitions.steps.templates import fill
from genba.domain.convert import shape
from genba.domain.redaction import HIDDEN, Redactor
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.replies import Reply
from genba.execution.run_values import RunPlan
from genba.execution.session import Session
from genba.judgement.loop.structured_output import last_block
from genba.testing.doubles import MemoryTrees, ReplyingAgent, ScriptedChecks, facts
from tests.doubles.sessions import session_context

WORDS = st.sampled_from(["a", "b", "c", "runner", "flow"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(WORDS, JSON, max_size=4)


@given(OBJECTS, OBJECTS, OBJECTS)
def test_every_value_of_the_highest_layer_survives_and_names_its_source(low: Any, middle: Any, high: Any) -> None:
    merged = merge([Layer("low", low), Layer("middle", middle), Layer("high", high)])

    values = dict(leaves(merged.values))
    for path, value in leaves(high):
        if value != {} and path:
            assert values[path] == value
            assert merged.sources[path] == "high"
    assert all(merged.source_of(path) in ("low", "middle", "high") for path in values if path)


@given(st.text(), st.text())
def test_what_a_value_contains_is_never_read_as_a_template(before: str, value: str) -> None:
    assert fill("{uv-x}", {"x": value, "y": "no"}) == value
    assert fill("{uv-x}{uv-y}", {"x": "{uv-y}", "y": before}) == "{uv-y}" + before


@given(JSON)
def test_any_json_becomes_an_agent_or_problems_and_never_a_crash(raw: Any) -> None:
    for kind in (AgentFile, StepsRegistry):
        value, problems = shape(raw, kind, "file.json")
        assert (value is None) == bool(problems)


@given(st.text(min_size=8).filter(lambda text: text.strip() == text and HIDDEN not in text and len(text.strip()) >= 8))
def test_a_secret_of_the_environment_never_survives(secret: str) -> None:
    redactor = Redactor({"MY_TOKEN": secret})
    result = redactor.value({"a": [f"it is {secret}!"], "b": {"deep": secret}})
    assert secret not in json.dumps(result, ensure_ascii=False).replace(HIDDEN, "")


@given(st.text())
def test_prose_is_searched_for_structured_output_without_a_crash(text: str) -> None:
    found = last_block(text)
    assert found is None or isinstance(found, dict)


ACTIONS = st.sampled_from(["next", "repeat", "closing", "nonsense"])
STATUSES = st.sampled_from(["completed", "in_progress", None])
TURNS = st.lists(st.tuples(ACTIONS, STATUSES, st.booleans(), st.integers(0, 2)), min_size=40, max_size=40)


@settings(max_examples=60)
@given(TURNS)
async def test_no_sequence_of_replies_completes_a_run_whose_checks_fail(
    turns: list[tuple[str, str | None, bool, int]],
) -> None:
    definition = _two_steps()
    replies, outcome = [], []
    for action, status, holds, _tree in turns:
        structured = {"next_action": {"action": action}, **({"status": status} if status else {})}
        replies.append(Reply(text="", structured=structured))
        outcome.append(CheckResult("holds", CheckStatus.PASSED if holds else CheckStatus.FAILED, "no"))
    checks = ScriptedChecks({"holds": outcome})
    trees = MemoryTrees(*[facts(tree=f"t{tree}") for _, _, _, tree in turns])
    context = session_context(ReplyingAgent(*replies), trees=trees, checks=checks)

    result = await Session(RunPlan(run="r", definition=definition, parameters={}), context).execute()

    assert result.iterations <= definition.file.runner.limits.max_iterations
    if result.outcome is Outcome.COMPLETED:
        used = len(turns) - len(checks.results["holds"])
        assert used > 0
        assert outcome[used - 1].passed
    assert msgspec.json.decode(msgspec.json.encode(result))["outcome"] in list(Outcome)


def _two_steps() -> Any:
    condition = [{"validator": "holds"}]
    steps = {
        "work": {
            "structuredGate": {"allowedIntents": ["next", "repeat"], "fallbackIntent": "repeat"},
            "transitions": {"next": "close"},
        },
        "close": {
            "stepKind": "closure",
            "structuredGate": {"allowedIntents": ["closing", "repeat"], "fallbackIntent": "repeat"},
            "completionConditions": condition,
        },
    }
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "worker"
        (home / "prompts").mkdir(parents=True)
        runner = {"completion": {"type": "stepMachine"}, "limits": {"maxIterations": 8, "reasks": 1}}
        (home / "agent.json").write_text(json.dumps({"name": "worker", "description": "x", "runner": runner}))
        validators = {"holds": {"type": "command", "command": "x"}}
        registry = {"entryStep": "work", "steps": steps, "validators": validators}
        (home / "steps_registry.json").write_text(json.dumps(registry))
        (home / "prompts/system.md").write_text("x")
        return load_definition(home, "worker", [], [])
