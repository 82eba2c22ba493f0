"""The checks of an agent in its working tree, and what runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from genba.definitions.agent.completion import ExternalState, walk
from genba.definitions.agent.definition import AgentDefinition
from genba.domain.ports import Checks, Processes
from genba.domain.sessions.evidence import CommitsExistCheck, FilesChangedCheck, GitCleanCheck

if TYPE_CHECKING:
    from genba.application.sandbox.agent_environment import AgentEnvironmentKeeper
    from genba.connections.git.repository.layout import RepositoryLayout
    from genba.domain.sessions.evidence import Check, CheckResult
    from genba.domain.sessions.workspaces import Workspace


class LazyChecks:
    """The checks of an agent, loaded when the first of them must be run: many runs have none."""

    def __init__(
        self, make: Callable[[Processes], Checks], keeper: AgentEnvironmentKeeper, processes: Processes
    ) -> None:
        self.make = make
        self.keeper = keeper
        self.processes = processes

    async def run(self, name: str, check: Check, workspace: Workspace, mark: str) -> CheckResult:
        return await self.make(self._around(workspace)).run(name, check, workspace, mark)

    def _around(self, workspace: Workspace) -> Processes:
        """Runs a check in a worktree in the sandbox of its agent, since it runs what the agent wrote."""
        sandbox = self.keeper.sandbox
        if sandbox is None or not self.keeper.kind.is_sandboxed:
            return self.processes
        from genba.application.sandbox.goal_commands import EnclosedCommands  # noqa: PLC0415  (only a sandbox needs it)

        return EnclosedCommands(
            sandbox, self.processes, self.keeper.ports.host, lambda _command: self.keeper.spec(workspace)
        )


def looks_at_files(definition: AgentDefinition) -> bool:
    """Whether a check looks at the working tree from outside, where a layer over a template is not to be seen."""
    steps = definition.registry.steps.values()
    named = {condition.validator for step in steps for condition in step.completion_conditions}
    named |= {
        name for part in walk(definition.completion) if isinstance(part, ExternalState) for name in part.validators
    }
    by_git = (GitCleanCheck, CommitsExistCheck, FilesChangedCheck)
    return any(not isinstance(definition.find_check(name), by_git) for name in named)


def validators_of(layout: RepositoryLayout, processes: Processes, environment: dict[str, str]) -> Checks:
    from genba.wiring.verification.verifier import validators  # noqa: PLC0415  (see LazyChecks)

    return validators(layout, processes, environment)
