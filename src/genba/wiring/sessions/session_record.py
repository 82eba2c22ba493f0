"""The frozen record of a session, read when it is resumed and by the supervisor of its agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from genba.connections.atomic_write import put
from genba.connections.private_folders import make_private_folder
from genba.definitions.agent.completion import IterationBudget
from genba.definitions.agent.definition import AgentDefinition
from genba.domain.convert import shape
from genba.domain.decoding import reader
from genba.domain.errors import ConfigurationError, StateConflictError
from genba.execution.run_values import ReviewOrder, RunPlan


class RunMemory(msgspec.Struct, frozen=True):
    """What a resumed run needs word by word, and the journal tells only without its secrets."""

    definition: AgentDefinition
    parameters: dict[str, Any]
    may_change: tuple[str, ...] = ()
    accepts_risk: bool = False
    mode: str | None = None
    review: ReviewOrder | None = None


def remember(folder: Path, plan: RunPlan, journal: Path) -> None:
    """Freeze what runs, and where its journal is: for the user's eyes only, and to be resumed by."""
    make_private_folder(folder)
    folder.chmod(0o700)
    memory = folder / "run.json"
    if not memory.exists():
        keep(
            memory,
            RunMemory(plan.definition, plan.parameters, plan.may_change, plan.accepts_risk, plan.mode, plan.review),
        )
    put(folder / "journal", str(journal).encode())


def keep(path: Path, memory: RunMemory) -> None:
    put(path, msgspec.json.encode(memory), mode=0o600)


def recall(folder: Path, run: str) -> RunMemory:
    try:
        return reader(RunMemory).decode((folder / "run.json").read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise StateConflictError(
            f"what {run} was to do can no longer be read", hint="start a new run on the same branch: --branch NAME"
        ) from error


def raised(definition: AgentDefinition, settings: dict[str, Any]) -> AgentDefinition:
    """A resumed run keeps its definition; only its budgets may be raised."""
    if not settings:
        return definition
    file = msgspec.to_builtins(definition.file)
    runner = settings.get("runner", {})
    file["runner"]["limits"] |= runner.get("limits", {})
    changed, problems = shape(file, type(definition.file), "command line")
    if changed is None:
        raise ConfigurationError(problems)
    most = runner.get("completion", {}).get("config", {}).get("maxIterations")
    completion = definition.completion
    if most is not None and isinstance(completion, IterationBudget):
        budget, problems = shape({"maxIterations": most}, IterationBudget, "command line", "runner.completion.config")
        if budget is None:
            raise ConfigurationError(problems)
        completion = budget
    return msgspec.structs.replace(definition, file=changed, completion=completion)
