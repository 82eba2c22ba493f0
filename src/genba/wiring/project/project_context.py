"""A project in its repository, with everything wired together."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from genba.application.project import project_context as application
from genba.connections.agents.catalogue import adapter_class
from genba.connections.forge.command import CommandForge
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.journal.jsonl import JournalFiles, read_journal
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
from genba.execution.loop.resume import read_resumption
from genba.execution.run_values import RunPlan
from genba.wiring.project.connections import (
    OwnFiles,
    RepositoryLocations,
    RepositoryReaders,
    connect_github,
    goal_results,
    journal_pages,
    load_adapter,
    memory_in_use,
)
from genba.wiring.sandbox.sandbox_choice import make
from genba.wiring.sessions.session_record import keep, raised, recall

if TYPE_CHECKING:
    from genba.application.verification.maker import Maker
    from genba.definitions.project.sandbox_section import AgentEnvironment
    from genba.execution.verification.verify import Verifier
    from genba.wiring.verification.verifier import GoalSandbox

__all__ = ["ProjectContext", "adapter_files", "new_run_id", "read_journal"]

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
            environments=environment,
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
        """For who only looks, or stops what runs: settings that cannot be used are in nobody's way, and are told."""
        from genba.definitions.project.config_recovery import usable_project  # noqa: PLC0415  (a run does not need it)

        layout = await RepositoryLayout.find(folder)
        project, wrong = usable_project(layout.top)
        return cls(layout, project), wrong

    def resumed(self, run: str, limits: dict[str, Any]) -> RunPlan:
        """The plan of a run that was cut off: its own frozen definition, and the state that its journal tells."""
        events = read_journal(self.find_journal(run), output=False)
        left = read_resumption(run, events)
        folder = self.layout.run_folder(run)
        memory = recall(folder, run)
        definition = raised(memory.definition, limits)
        if definition is not memory.definition:
            keep(folder / "run.json", msgspec.structs.replace(memory, definition=definition))
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
        """A verifier in the sandbox of whoever made the work."""
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


def new_run_id(agent: str) -> str:
    """Sorts by time, reads well, and is never given twice."""
    return f"{agent}-{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}"
