"""A project in its repository, with everything wired together."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genba.application.project import project_context as application
from genba.connections.agents.catalogue import adapter_class
from genba.connections.forge.command import CommandForge
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.journal.jsonl import JournalFiles
from genba.connections.processes import environment
from genba.connections.processes.environment import passed_on
from genba.connections.processes.orphans import take_in_orphans
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.connections.tracker.nothing import NoTracker
from genba.definitions.agent.registry import with_agents
from genba.definitions.project.project import Project, load_project
from genba.domain.errors import ConfigurationError
from genba.domain.ports import Forge, Sandbox, Tracker
from genba.domain.redaction import Redactor
from genba.domain.sessions.sandbox import SandboxKind
from genba.wiring.project.connections import (
    GoalDetection,
    NotificationChannels,
    OwnFiles,
    RepositoryLocations,
    RepositoryReaders,
    connect_github,
    goal_results,
    housekeeping,
    journal_pages,
    load_adapter,
    memory_in_use,
)
from genba.wiring.sandbox.sandboxes import make

if TYPE_CHECKING:
    from genba.application.verification.maker import Maker
    from genba.definitions.project.sandbox_section import AgentEnvironment
    from genba.execution.verification.verify import Verifier
    from genba.wiring.verification.verifier import GoalSandbox

__all__ = ["ProjectContext", "adapter_files"]

_FORGE_VARIABLES = ("GH_TOKEN", "GITHUB_TOKEN", "GITLAB_TOKEN", "GH_HOST", "GITLAB_HOST")


class ProjectContext(application.ProjectContext):
    """A project with its connections."""

    def __init__(self, layout: RepositoryLayout, project: Project) -> None:
        processes = ProcessSupervisor()
        ports = application.ProjectPorts(
            processes=processes,
            repository=RepositoryReaders(layout),
            locations=RepositoryLocations(layout),
            files=OwnFiles(),
            journals=JournalFiles(),
            pages=journal_pages,
            memory=memory_in_use,
            channels=NotificationChannels(processes, layout.top),
            housekeeping=partial(housekeeping, layout),
            environments=environment,
            detection=GoalDetection(),
            load_adapter=partial(load_adapter, layout),
            verifier=self._verifier,
            results=partial(goal_results, layout),
            github=lambda settings: connect_github(settings, processes, layout),
        )
        super().__init__(layout, project, ports)
        self._repository = layout
        if (github := project.file.tracker.github) is not None:
            from genba.connections.git.repository.access import RemoteAccess, origin_of  # noqa: PLC0415  (only with GitHub)

            layout.git.access = RemoteAccess(origin_of(github.url), self._token)

    @property
    def layout(self) -> RepositoryLayout:
        return self._repository

    @classmethod
    async def find(cls, folder: Path) -> ProjectContext:
        take_in_orphans()
        layout = await RepositoryLayout.find(folder)
        try:
            project = load_project(layout.top)
        except ConfigurationError as error:
            raise with_agents(layout.top, error) from error
        return cls(layout, project)

    @classmethod
    async def find_to_look(cls, folder: Path) -> tuple[ProjectContext, ConfigurationError | None]:
        """For commands that only read or stop. Returns the error of invalid settings instead of raising it."""
        from genba.definitions.project.config_recovery import usable_project  # noqa: PLC0415  (a run does not need it)

        layout = await RepositoryLayout.find(folder)
        project, wrong = usable_project(layout.top)
        return cls(layout, project), wrong

    async def _token(self, origin: str) -> str:
        office = self.office()
        return await office.github.token(origin) if office is not None else ""

    def tracker(self, run: str = "") -> Tracker:
        office = self.office()
        if office is not None:
            return office.tracker(run)
        if not self.has_board():
            return NoTracker()
        from genba.blackboard.tracker.local_tracker import BlackboardTracker  # noqa: PLC0415  (see board)

        return BlackboardTracker(self.board())

    def _verifier(self, maker: Maker, mark: str) -> Verifier:
        """A verifier in the sandbox of the agent that made the work."""
        from genba.wiring.sandbox.goal_sandboxes import fence_for  # noqa: PLC0415  (only what verifies pays for it)
        from genba.wiring.verification.verifier import verifier  # noqa: PLC0415

        redact = Redactor(os.environ).text
        return verifier(self.layout, self.processes, redact, mark, fence_for(self, maker), maker.agent)

    def fence(
        self, kind: SandboxKind, sandbox: Sandbox | None = None, agent: AgentEnvironment | None = None
    ) -> GoalSandbox | None:
        """The sandbox of the commands of goals, with the network of an agent; None where the kind has none."""
        if not kind.is_sandboxed:
            return None
        from genba.wiring.verification.verifier import GoalSandbox  # noqa: PLC0415  (see examination)

        settings = self.project.file.sandbox
        return GoalSandbox(self.layout, kind, sandbox or make(kind, self.processes, settings.options), settings, agent)

    def forge(self, run: str) -> Forge | None:
        settings, office = self.project.file.forge, self.office()
        if settings is None:
            return office.forge(run) if office is not None else None
        tokens = {name: os.environ[name] for name in _FORGE_VARIABLES if name in os.environ}
        return CommandForge(
            settings.open,
            settings.find,
            self.processes,
            self.layout.top,
            {**passed_on(os.environ, *self.layout.folders), **tokens},
            settings.timeout_seconds,
        )


def adapter_files() -> dict[str, tuple[Any, str]]:
    """The files and sections that the built-in adapters read, for their schemas."""
    from genba.connections.agents.custom import ReplyFile  # noqa: PLC0415  (only for schemas)
    from genba.connections.agents.scripted import Script  # noqa: PLC0415

    commands = ("acp", "claude-code", "codex", "custom", "opencode")
    return {
        **{name: (adapter_class(name).settings_type, f"runner.adapter with the type {name}") for name in commands},
        "reply": (ReplyFile, "the reply file that a custom command may write"),
        "script": (Script, "the script of a scripted agent"),
    }
