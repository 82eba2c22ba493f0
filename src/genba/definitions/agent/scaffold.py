"""A new agent, ready to be edited: it passes its check from the first moment."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from genba.definitions.agent.state_driven import STATE_DRIVEN
from genba.domain.errors import StateConflictError, UsageError

_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
_ASKED: dict[str, Any] = {
    "topic": {
        "type": "string",
        "description": "What to work on",
        "default": "Do what the issue asks for.",
        "cli": "--topic",
    },
    "issue": {"type": "number", "description": "Number of the issue", "cli": "--issue"},
}
"""Parameters for a person, who names a topic, and for `genba work`, which names an issue."""
_ISSUE = "{uv-issue_title}\n\n{uv-issue_body}"


def _steps(name: str) -> dict[str, str]:
    gate = {"allowedIntents": ["next", "repeat"], "fallbackIntent": "repeat"}
    registry = {
        "entryStep": "plan",
        "steps": {
            "plan": {
                "stepKind": "work",
                "c2": "work",
                "c3": "plan",
                "structuredGate": {**gate, "handoffFields": ["plan"]},
                "transitions": {"next": "implement"},
            },
            "implement": {
                "stepKind": "work",
                "c2": "work",
                "c3": "implement",
                "structuredGate": gate,
                "transitions": {"next": "close"},
                "completionConditions": [{"validator": "commits-exist"}, {"validator": "git-clean"}],
                "onFailure": {"action": "retry", "maxAttempts": 3},
            },
            "close": {
                "stepKind": "closure",
                "c2": "closure",
                "c3": "close",
                "structuredGate": {"allowedIntents": ["closing", "repeat"], "fallbackIntent": "repeat"},
                "completionConditions": [{"validator": "commits-exist"}, {"validator": "git-clean"}],
            },
        },
    }
    return {
        "agent.json": _json(_agent(name, "stepMachine", {}, _ASKED)),
        "steps_registry.json": _json(registry),
        "prompts/system.md": f"You are {name}. You work alone, on a branch of your own.\n",
        "prompts/steps/work/plan/f_default.md": f"# Plan\n\nMake a short plan for: {{uv-topic}}\n\n{_ISSUE}\n",
        "prompts/steps/work/implement/f_default.md": "# Implement\n\n{uv-plan_plan}\n\nCommit your work.\n",
        "prompts/steps/closure/close/f_default.md": "# Close\n\nLook at your work once more: {uv-topic}\n",
    }


def _simple(name: str) -> dict[str, str]:
    registry = {"steps": {"work": {"completionConditions": [{"validator": "git-clean"}]}}}
    most = {"type": "integer", "description": "How many iterations", "default": 1, "cli": "--max-iterations"}
    parameters = {**_ASKED, "maxIterations": most}
    return {
        "agent.json": _json(_agent(name, "iterationBudget", {}, parameters)),
        "steps_registry.json": _json(registry),
        "prompts/system.md": f"You are {name}. You work alone, on a branch of your own.\n",
        "prompts/work.md": f"{{uv-topic}}\n\n{_ISSUE}\n\nCommit your work.\n",
    }


def _state_driven(name: str) -> dict[str, str]:
    return {
        "agent.json": _json(
            {
                "name": name,
                "displayName": name.replace("-", " ").title(),
                "description": "Say here what the agent is for",
                "parameters": {"issue": {"type": "number", "required": True, "cli": "--issue"}},
                "runner": {"flow": {"mode": STATE_DRIVEN, "hierarchy": "worker"}},
            }
        ),
        "prompts/system.md": f"You are {name}. You work alone, on a branch of your own. Commit your work.\n",
    }


TEMPLATES = {"steps": _steps, "simple": _simple, "state-driven": _state_driven}


def scaffold(agents: Path, name: str, template: str) -> tuple[Path, ...]:
    """Write the files of a new agent, all or none; an agent that is already there is left alone."""
    folder = agents / agent_name(name)
    if folder.exists():
        raise StateConflictError(
            f"{folder} is already there", unchanged="nothing was changed.", hint=f"genba agent show {name}"
        )
    return write_agent(agents, name, TEMPLATES[template](name))


def agent_name(name: str) -> str:
    """The name itself, if an agent can have it."""
    if not _NAME.fullmatch(name):
        raise UsageError(f'"{name}" is not a name for an agent', hint="small letters, digits and dashes: my-agent")
    return name


def write_agent(agents: Path, name: str, files: dict[str, str]) -> tuple[Path, ...]:
    """Write the files of an agent into its new folder, all or none."""
    with prepared_agent(agents, name, files) as beside:
        beside.rename(agents / name)
    return tuple(agents / name / relative for relative in files)


@contextmanager
def prepared_agent(agents: Path, name: str, files: dict[str, str]) -> Iterator[Path]:
    """A folder beside the agents with the files of one, to be renamed. What is not renamed is removed."""
    agents.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=agents))
    try:
        for relative, text in files.items():
            path = beside / relative
            if not path.resolve().is_relative_to(beside.resolve()):
                raise UsageError(f'"{relative}" leaves the agent\'s folder', unchanged="nothing was written.")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        beside.chmod(0o777 & ~_umask())
        yield beside
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _umask() -> int:
    """The mask that every other folder is made with; a temporary one is for its maker's eyes only."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _agent(name: str, kind: str, config: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "displayName": name.replace("-", " ").title(),
        "description": "Say here what the agent is for",
        "parameters": parameters,
        "runner": {"completion": {"type": kind, "config": config}},
    }


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
