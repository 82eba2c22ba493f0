"""Everything that a verification needs, wired together. Only what verifies loads this module."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from genba import __version__
from genba.connections.clock import SystemClock
from genba.connections.git.checkouts import GitCheckouts
from genba.connections.git.history import GitHistory
from genba.connections.git.layout import RepositoryLayout
from genba.connections.goals.results import FileResults
from genba.connections.goals.runner import GoalEngine
from genba.connections.goals.validators import ValidatorRunner
from genba.connections.process.environment import passed_on
from genba.connections.secrets.scanner import GitSecretScanner
from genba.definitions.project import Project
from genba.definitions.sandbox_file import AgentSandbox, Ceiling, SandboxSettings
from genba.definitions.sandbox_file import quarters as quarters_of
from genba.domain.ports import Processes, Sandbox
from genba.domain.processes import is_of_one_process, service_mark
from genba.domain.verification import Subject
from genba.domain.walls import SandboxKind
from genba.execution.policies import Policy, Rulebook
from genba.execution.verifying import Verifier

_NOBODY = "goals"
"""Who the commands of goals are where no agent is known that wrote what they run."""


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """What `genba verify` is to look at, and what it is held to."""

    shown: str
    """As the user named it."""
    number: int | None
    """The task, where it is one."""
    agent: str = "iterator"
    """Who worked on the task last, to go on with it."""
    subject: Subject | None
    policy: Policy
    recorded: bool = True
    """Whether the verdict counts for the task: not when it was held to less than the task is."""


def engine(layout: RepositoryLayout, processes: Processes, environment: dict[str, str]) -> GoalEngine:
    """Runs goals, the same for a working tree and for a clean checkout."""
    history = GitHistory(layout.git)
    scanner = GitSecretScanner(processes, environment, layout.common, history.read, layout.own / "secrets")
    return GoalEngine(processes, environment, scanner)


def validators(layout: RepositoryLayout, processes: Processes, environment: dict[str, str]) -> ValidatorRunner:
    return ValidatorRunner(engine(layout, processes, environment))


def results(layout: RepositoryLayout) -> FileResults:
    return FileResults(layout.own / "goals")


def verifier(
    layout: RepositoryLayout,
    processes: Processes,
    redact: Callable[[str], str],
    mark: str,
    fence: Fence | None = None,
    agent: str = "",
) -> Verifier:
    """Looks at commits. With a fence around them, commands of goals run behind walls.

    What they run was written by an agent, so to Genba they are no person, but that agent.
    """
    environment = passed_on(os.environ)
    known_as = {"GENBA_RUN": mark, "GENBA_AGENT": agent or _NOBODY}

    def runner_for(policy: Policy) -> GoalEngine:
        around = fence.around(policy, processes) if fence is not None and policy.walls else processes
        return engine(layout, around, {**environment, **policy.environment, **known_as})

    return Verifier(
        history=GitHistory(layout.git),
        checkouts=GitCheckouts(layout, mark, partial(_left_by, processes), filters=fence is None),
        runner_for=runner_for,
        results=results(layout),
        clock=SystemClock(),
        environment=fingerprint({**environment, "GENBA_SANDBOX": fence.kind if fence is not None else ""}),
        mark=mark,
        redact=redact,
    )


async def _left_by(processes: Processes, dead: str) -> None:
    """End what somebody left running who was killed while it verified. A run that was resumed ends its own."""
    for each in (dead, service_mark(dead)) if is_of_one_process(dead) else ():
        await processes.sweep(each)


async def sweep_checkouts(layout: RepositoryLayout, processes: Processes) -> None:
    """Take away the checkouts of whoever was killed while it verified."""
    await GitCheckouts(layout, left_by=partial(_left_by, processes)).sweep()


class Fence:
    """The walls of a project, for the commands of its goals."""

    def __init__(
        self, layout: RepositoryLayout, kind: SandboxKind, sandbox: Sandbox, settings: SandboxSettings
    ) -> None:
        self.layout = layout
        self.kind = str(kind)
        self.sandbox = sandbox
        self.settings = settings

    def around(self, policy: Policy, processes: Processes) -> Processes:
        from genba.wiring.goal_walls import Checkouts, EnclosedCommands  # noqa: PLC0415  (only walls need it)

        quarters = quarters_of(Ceiling(sandbox=self.settings), AgentSandbox())
        cells = Checkouts(
            self.layout,
            quarters.limits,
            quarters.read,
            quarters.image,
            policy.network,
            quarters.allow,
            passed_on(os.environ),
        )
        return EnclosedCommands(self.sandbox, processes, cells.cell)


def rulebook(layout: RepositoryLayout, project: Project) -> Rulebook:
    return Rulebook(GitHistory(layout.git), project.rules, project.source)


def fingerprint(environment: dict[str, str]) -> str:
    """What a result depends on besides the tree and the goal: the machine, the tools, and this program."""
    parts = [platform.platform(), sys.version, __version__, str(Path(sys.executable))]
    parts += [f"{name}={value}" for name, value in sorted(environment.items())]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()
