"""Whole runs of doubles whose agent answers anything: each comes to an end that can be written down."""

import asyncio
import json
from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st

from genba.definitions.agent.definition import AgentDefinition
from genba.definitions.agent.loading import load_definition
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.replies import Reply, Usage
from genba.execution.run_values import RunPlan
from genba.execution.session import Session
from genba.testing.doubles import MemoryTrees, ReplyingAgent, ScriptedChecks, facts
from tests.doubles.sessions import session_context
from tests.fuzz.mutation import as_json, spoilt
from tests.fuzz.targets import Target, folder

MOST = 8
OUTPUT: dict[str, Any] = {
    "status": "in_progress",
    "next_action": {"action": "next", "reason": "r", "target": "work"},
    "plan": {"text": "a", "list": [1, 2]},
    "summary": "s",
    "closure_action": "close",
    "closure": {"labels": {"add": ["a"], "remove": ["b"]}},
    "complete": True,
    "type": "note",
}


@st.composite
def answers(draw: st.DrawFn) -> list[tuple[bool, bytes, bool]]:
    return [
        (draw(st.booleans()), as_json(draw(spoilt(OUTPUT)) if draw(st.integers(0, 3)) else OUTPUT), draw(st.booleans()))
        for _ in range(draw(st.integers(1, MOST)))
    ]


def feed_answers(given: list[tuple[bool, bytes, bool]]) -> None:
    replies = [_reply(structured, content) for structured, content, _ in given]
    lines = [CheckResult("holds", CheckStatus.PASSED if holds else CheckStatus.FAILED, "no") for _, _, holds in given]
    while len(replies) < 5 * MOST:
        replies.append(Reply(text="done"))
        lines.append(CheckResult("holds", CheckStatus.FAILED, "no"))
    trees = MemoryTrees(*[facts(tree=f"t{number}") for number in range(len(replies))])
    context = session_context(ReplyingAgent(*replies), trees=trees, checks=ScriptedChecks({"holds": lines}))
    plan = RunPlan(run="r", definition=_definition(), parameters={})
    result = asyncio.run(Session(plan, context).execute())
    assert result.iterations <= MOST
    assert msgspec.json.decode(msgspec.json.encode(result))["outcome"] in list(Outcome)


def _reply(structured: bool, content: bytes) -> Reply:
    try:
        value = json.loads(content) if structured else None
    except (ValueError, RecursionError):
        value = None
    text = content.decode("utf-8", "replace")
    return Reply(
        text=f"```json\n{text}\n```", structured=value if isinstance(value, dict) else None, usage=Usage(1, 1, 0.1)
    )


@cache
def _definition() -> AgentDefinition:
    gate = {
        "allowedIntents": ["next", "repeat", "jump"],
        "fallbackIntent": "repeat",
        "handoffFields": ["plan", "summary"],
    }
    jump = {"targets": ["work", "again"]}
    steps = {
        "work": {"structuredGate": gate, "transitions": {"next": "again", "jump": jump}},
        "again": {"structuredGate": gate, "transitions": {"next": "close", "jump": jump}},
        "close": {
            "stepKind": "closure",
            "structuredGate": {"allowedIntents": ["closing", "repeat"], "fallbackIntent": "repeat"},
            "completionConditions": [{"validator": "holds"}],
        },
    }
    registry = {"entryStep": "work", "steps": steps, "validators": {"holds": {"type": "command", "command": "x"}}}
    actions = {"enabled": True, "types": ["note"], "handlers": {"note": "builtin:record"}}
    limits = {"maxIterations": MOST, "reasks": 1, "retries": 0}
    runner = {"completion": {"type": "stepMachine"}, "limits": limits, "actions": actions}
    with folder() as root:
        home = root / "worker"
        (home / "prompts").mkdir(parents=True)
        (home / "agent.json").write_text(json.dumps({"name": "worker", "description": "x", "runner": runner}))
        (home / "steps_registry.json").write_text(json.dumps(registry))
        (home / "prompts/system.md").write_text("x")
        (home / "prompts/again.md").write_text("Again\n")
        return load_definition(home, "worker", [], [])


RUN_TARGETS: tuple[Target, ...] = (Target("replies", answers(), feed_answers, share=40),)
