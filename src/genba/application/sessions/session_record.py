"""The frozen record of a session, read when it is resumed and by the supervisor of its agent."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from genba.definitions.agent.completion import IterationBudget
from genba.definitions.agent.definition import AgentDefinition
from genba.domain.convert import shape
from genba.domain.decoding import reader
from genba.domain.errors import ConfigurationError, StateConflictError
from genba.execution.loop.resume import read_resumption
from genba.execution.run_values import ReviewOrder, RunPlan

if TYPE_CHECKING:
    from genba.application.ports import Files
    from genba.application.project.project_context import ProjectContext


class RunMemory(msgspec.Struct, frozen=True):
    """What a resumed run needs word by word, and the journal tells only without its secrets."""

    definition: AgentDefinition
    parameters: dict[str, Any]
    may_change: tuple[str, ...] = ()
    accepts_risk: bool = False
    mode: str | None = None
    review: ReviewOrder | None = None


def remember(files: Files, folder: Path, plan: RunPlan, journal: Path) -> None:
    """Freeze what runs, and where its journal is: for the user's eyes only, and to be resumed by."""
    files.make_private_folder(folder)
    folder.chmod(0o700)
    memory = folder / "run.json"
    if not memory.exists():
        _keep(
            files,
            memory,
            RunMemory(plan.definition, plan.parameters, plan.may_change, plan.accepts_risk, plan.mode, plan.review),
        )
    files.put(folder / "journal", str(journal).encode())


def _keep(files: Files, path: Path, memory: RunMemory) -> None:
    files.put(path, msgspec.json.encode(memory), mode=0o600)


def resumed_plan(context: ProjectContext, run: str, limits: dict[str, Any]) -> RunPlan:
    """The plan of a session that was cut off: its own frozen definition, and the state in its journal."""
    events = context.ports.journals.read(context.find_journal(run), output=False)
    left = read_resumption(run, events)
    folder = context.layout.run_folder(run)
    memory = recall(folder, run)
    definition = _raised(memory.definition, limits)
    if definition is not memory.definition:
        _keep(context.ports.files, folder / "run.json", msgspec.structs.replace(memory, definition=definition))
    return RunPlan(
        run=run,
        definition=definition,
        parameters=memory.parameters,
        workspace=left.workspace,
        state=left.state,
        merged=left.merged,
        delivered=left.delivered or (bool(left.merged) and not Path(left.workspace.path).exists()),
        commits=left.commits,
        may_change=memory.may_change,
        accepts_risk=memory.accepts_risk,
        mode=memory.mode,
        review=memory.review,
        branch=left.workspace.branch if memory.review is not None else None,
        process=os.getpid(),
    )


def new_run_id(agent: str) -> str:
    """Sorts by time, reads well, and is never given twice."""
    return f"{agent}-{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}"


def recall(folder: Path, run: str) -> RunMemory:
    try:
        return reader(RunMemory).decode((folder / "run.json").read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise StateConflictError(
            f"what {run} was to do can no longer be read", hint="start a new run on the same branch: --branch NAME"
        ) from error


def _raised(definition: AgentDefinition, settings: dict[str, Any]) -> AgentDefinition:
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
