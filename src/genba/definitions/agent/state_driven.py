"""Agents that ask for their next action: what they need, and what would have no effect for them.

Law: the server says what is next. An agent that asks has no steps, no completion and no prompts of its own but the
system prompt; one that declares them is refused, rather than read in part.
"""

from collections.abc import Iterator
from typing import Any

from genba.definitions.steps.steps_registry import Step, StepsRegistry
from genba.domain.problems import Problem

STATE_DRIVEN = "stateDriven"
STEP = "work"
"""The one step of an agent that asks: a whole life of an instance."""
SERVER = "genba"
"""The name of the server of tools that it asks."""
REGISTRY = StepsRegistry(entry_step=STEP, steps={STEP: Step(transitions={"next": None})})
COMPLETION = {"type": "stepMachine"}
"""What stands where other agents say when they are done: it is never looked at."""

_NO_STEPS = "has no effect: an agent that asks for its next action has no steps of its own"
_HINT = "take it out, or runner.flow.mode: loop"
_NOTHING = {
    "completion": "has no effect: the agent is done when its report is verified",
    "flow.prompts": "has no effect: an agent that asks for its next action has no prompts but the system prompt",
    "actions.enabled": "has no effect: nothing that an agent that asks for its next action writes is read",
    "actions.outputFormat": "has no effect: nothing that an agent that asks for its next action writes is read",
    "actions.handlers": "has no effect: nothing that an agent that asks for its next action writes is read",
    "limits.reasks": "has no effect: nothing that an agent that asks for its next action writes is read",
}


def is_state_driven(values: dict[str, Any]) -> bool:
    """Whether these values of an agent.json are those of an agent that asks for its next action."""
    return bool(_at(values, "flow.mode") == STATE_DRIVEN)


def without_effect(values: dict[str, Any], shown: str, registry: str, has_registry: bool) -> Iterator[Problem]:
    """Declarations that have no effect for an agent that asks for its next action."""
    if not is_state_driven(values):
        if _at(values, "flow.hierarchy") is not None:
            message = "only an agent that asks for its next action is a worker or a manager"
            yield Problem(
                shown, "runner.flow.hierarchy", message, 'set runner.flow.mode: "stateDriven", or take it out'
            )
        return
    for path, why in _NOTHING.items():
        if _at(values, path) is not None:
            yield Problem(shown, f"runner.{path}", why, _HINT)
    if _at(values, "boundaries.permissionMode") == "plan":
        message = "an agent that only plans may call no tool, and could not ask for its next action"
        yield Problem(shown, "runner.boundaries.permissionMode", message, "acceptEdits")
    if has_registry:
        yield Problem(registry, "", _NO_STEPS, "delete the file, or runner.flow.mode: loop")


def with_completion(values: dict[str, Any]) -> dict[str, Any]:
    """The same values, whole."""
    runner = values.get("runner")
    if not is_state_driven(values) or not isinstance(runner, dict) or "completion" in runner:
        return values
    return {**values, "runner": {**runner, "completion": COMPLETION}}


def _at(values: dict[str, Any], path: str) -> Any:
    node: Any = values.get("runner")
    for key in path.split("."):
        node = node.get(key) if isinstance(node, dict) else None
    return node
