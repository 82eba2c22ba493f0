"""A project in its repository, as the use cases take it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from genba.application.project.database import ProjectDatabase
from genba.definitions.agent.completion import Custom, walk
from genba.definitions.agent.handlers import CompletionHandler, load_action
from genba.definitions.agent.registry import AgentRegistry
from genba.domain.errors import NotFoundError, StateConflictError
from genba.domain.problems import did_you_mean

if TYPE_CHECKING:
    from genba.application.ports import (
        Detection,
        Environments,
        Files,
        GitHubAccess,
        GoalResults,
        Housekeeping,
        JournalPages,
        Journals,
        Layout,
        Locations,
        NotificationChannels,
        RepositoryAccess,
    )
    from genba.application.tracker.github import GitHubOffice
    from genba.application.verification.maker import Maker
    from genba.blackboard.tasks.board import Blackboard
    from genba.definitions.agent.definition import AgentDefinition
    from genba.definitions.project.goal_sections import TaskTypeSettings
    from genba.definitions.project.project import Project
    from genba.definitions.project.tracker_section import GitHubSettings
    from genba.domain.ports import Processes
    from genba.domain.sessions.agent_adapter import BaseAdapter
    from genba.domain.tasks.task import Actor
    from genba.domain.views.workers import MemoryUse
    from genba.execution.verification.verify import Verifier

_LONGEST_NAME = 255
"""Bytes of a file name; no file system takes a longer one."""


class ProjectPorts(msgspec.Struct, frozen=True, kw_only=True):
    """How the use cases of one project reach the outside."""

    processes: Processes
    repository: RepositoryAccess
    locations: Locations
    files: Files
    journals: Journals
    pages: Callable[[], JournalPages]
    memory: Callable[[frozenset[int], frozenset[str]], MemoryUse]
    """The memory in use by processes, and by the processes that carry a mark."""
    environments: Environments
    detection: Detection
    load_adapter: Callable[[AgentDefinition], BaseAdapter]
    """Raises ConfigurationError where the settings name no adapter, or one that cannot be used."""
    verifier: Callable[[Maker, str], Verifier]
    """Verifies in the sandbox of the agent that made the work; the processes that it starts carry the mark."""
    results: Callable[[], GoalResults]
    github: Callable[[GitHubSettings], GitHubAccess]
    channels: NotificationChannels
    housekeeping: Callable[[], Housekeeping]


class ProjectContext:
    """A project in its repository: its folders, settings, agents and blackboard."""

    def __init__(self, layout: Layout, project: Project, ports: ProjectPorts) -> None:
        self._layout = layout
        self.project = project
        self.registry = AgentRegistry(project)
        self.ports = ports
        self._database = ProjectDatabase(layout, project, ports.locations)
        self._office: GitHubOffice | None = None

    @property
    def layout(self) -> Layout:
        return self._layout

    @property
    def processes(self) -> Processes:
        return self.ports.processes

    @property
    def name(self) -> str:
        return self.project.name or self.layout.main.name

    def check_writable(self) -> None:
        """Raises StateConflictError where Genba cannot write its own files."""
        own = self.layout.own
        place = next(path for path in (own, *own.parents) if path.exists())
        if not os.access(place, os.W_OK):
            raise StateConflictError(
                f"{place} cannot be written, and Genba keeps its records there",
                unchanged="nothing was started, nothing was changed.",
                hint=f"see who may write it: ls -ld {place}",
            )

    # ── agents ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def check(self, definition: AgentDefinition) -> None:
        """Raises ConfigurationError where the adapter or a handler of an agent cannot be used."""
        if definition.file.runner.adapter is not None:
            self.adapter(definition)
        self.handlers(definition)

    def adapter(self, definition: AgentDefinition) -> BaseAdapter:
        return self.ports.load_adapter(definition)

    def handlers(self, definition: AgentDefinition) -> tuple[dict[str, Any], dict[str, Any]]:
        """The completion handlers and the action handlers of an agent."""
        folder = Path(definition.folder)
        completions = {
            part.key: CompletionHandler(part.completion_handler, folder, part.options)
            for part in walk(definition.completion)
            if isinstance(part, Custom)
        }
        actions = {
            kind: load_action(reference, folder)
            for kind, reference in definition.file.runner.actions.handlers.items()
            if not reference.startswith("builtin:")
        }
        return completions, actions

    # ── the repository ───────────────────────────────────────────────────────────────────────────────────────────────

    def refuse_links(self, *places: str | Path) -> None:
        """Raises StateConflictError where Genba would write through a link that the repository commits."""
        self.ports.locations.refuse_links(*places)

    def is_running(self, branch: str) -> bool:
        """True while a session holds this branch."""
        path = self.layout.branch_lock(branch)
        return path.is_file() and self.ports.locations.is_locked(path)

    # ── journals ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def journals(self) -> list[Path]:
        """Every journal of the project, newest first. Sessions record where they wrote."""
        recorded = self.layout.own.glob("runs/*/journal")
        return self.ports.journals.in_folders({Path(path.read_text("utf-8")).parent for path in recorded})

    def find_journal(self, run: str) -> Path:
        pointer = self.layout.run_folder(run) / "journal"
        is_name = "/" not in run and len(run.encode("utf-8", "replace")) <= _LONGEST_NAME
        if is_name and pointer.is_file() and (journal := Path(pointer.read_text("utf-8"))).is_file():
            return journal
        run = run[:_LONGEST_NAME]
        known = [path.stem for path in self.journals()]
        raise NotFoundError(f'there is no session "{run}"', hint=did_you_mean(run, known) or "genba sessions --all")

    # ── the blackboard ───────────────────────────────────────────────────────────────────────────────────────────────

    def database(self) -> str:
        """The address or the file of the database."""
        return self._database.address()

    def has_board(self) -> bool:
        return self._database.exists()

    def board(self, make: bool = True) -> Blackboard:
        """The blackboard of this project, made when it is first needed. An agent makes none."""
        return self._database.board(make and not os.environ.get("GENBA_RUN"))

    def adopt(self) -> None:
        """Bind the database to this repository, whichever it belonged to."""
        self._database.adopt()

    def close(self) -> None:
        self._database.close()

    # ── issues, and who acts ─────────────────────────────────────────────────────────────────────────────────────────

    def office(self) -> GitHubOffice | None:
        """The tracker on GitHub; None where the issues live elsewhere."""
        github = self.project.file.tracker.github
        if self._office is None and github is not None:
            from genba.application.tracker.github import GitHubOffice  # noqa: PLC0415  (only with GitHub)

            self._office = GitHubOffice(self, github, self.ports.github(github))
        return self._office

    def actor(self) -> Actor:
        """Who typed the command: a person, or an agent, whose processes all carry its name."""
        from genba.domain.tasks.task import Actor, ActorKind  # noqa: PLC0415  (a session without a task needs none)

        if os.environ.get("GENBA_RUN"):
            return Actor(ActorKind.WORKER, os.environ.get("GENBA_AGENT") or os.environ["GENBA_RUN"])
        return Actor(ActorKind.HUMAN, _user())

    def task_type(self, name: str) -> TaskTypeSettings:
        """The settings of a task type. Raises NotFoundError."""
        from genba.definitions.project.goal_sections import TaskTypeSettings  # noqa: PLC0415  (see actor)
        from genba.execution.verification.policy import known_types  # noqa: PLC0415

        known = known_types(self.project.rules)
        if name not in known:
            raise NotFoundError(
                f'"{name[:80]}" is not a type of task',
                unchanged="nothing was changed.",
                hint=f"{did_you_mean(name, known)}   of your own: task_types in .genba/config.yaml",
            )
        rules = self.project.rules
        return rules.task_types.get(name, TaskTypeSettings()) if rules is not None else TaskTypeSettings()

    def session_of(self, number: int) -> str:
        """The newest session on a task, if it can be resumed here."""
        run = self.board().newest_session(number).run
        return run if run and (self.layout.run_folder(run) / "journal").is_file() else ""

    def results(self) -> GoalResults:
        return self.ports.results()


def _user() -> str:
    """The name of the user of this process."""
    import getpass  # noqa: PLC0415  (only commands that write to the blackboard ask)

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return f"user {os.getuid()}"
