"""The connections behind the ports of a project."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from genba.connections.agents.catalogue import adapter_class, known_adapters
from genba.connections.atomic_write import put
from genba.connections.git.repository.committed_links import refuse_committed_links
from genba.connections.git.repository.layout import RepositoryLayout, identity_at
from genba.connections.git.repository.locks import is_held
from genba.connections.private_folders import make_private_folder
from genba.connections.processes.environment import without_own_tools
from genba.domain.convert import shape
from genba.domain.errors import ConfigurationError, NotFoundError
from genba.domain.problems import Problem
from genba.domain.tracker.github_tokens import handed_over

if TYPE_CHECKING:
    from genba.connections.git.merging.diff import GitDiff
    from genba.connections.git.merging.merge_target import GitTarget
    from genba.connections.git.repository.history import GitHistory
    from genba.connections.git.scanning.issue_scan import GitScan
    from genba.connections.git.worktrees.worktrees import GitWorkingTrees
    from genba.connections.github.connection import GitHubConnection
    from genba.connections.goals.results import FileResults
    from genba.connections.journal.pages import JournalPieces
    from genba.definitions.agent.definition import AgentDefinition
    from genba.definitions.project.tracker_section import GitHubSettings
    from genba.domain.goals.detection import Detected
    from genba.domain.ports import Channel, Processes
    from genba.domain.sessions.agent_adapter import BaseAdapter
    from genba.domain.views.workers import MemoryUse
    from genba.wiring.project.housekeeping import RepositoryHousekeeping

_OWN_TOKEN = "an agent that needs a token gets one of its own: export AGENT_TOKEN=…, and name AGENT_TOKEN here"  # noqa: S105  (a hint)


class RepositoryReaders:
    """Readers of one repository; git code is loaded by those who read."""

    def __init__(self, layout: RepositoryLayout) -> None:
        self.layout = layout

    def history(self) -> GitHistory:
        from genba.connections.git.repository.history import GitHistory  # noqa: PLC0415  (a session may need none)

        return GitHistory(self.layout.git)

    def scan(self) -> GitScan:
        from genba.connections.git.scanning.issue_scan import GitScan  # noqa: PLC0415  (see history)

        return GitScan(self.layout)

    def worktrees(self) -> GitWorkingTrees:
        from genba.connections.git.worktrees.worktrees import GitWorkingTrees  # noqa: PLC0415  (see history)

        return GitWorkingTrees(self.layout)

    def diff(self) -> GitDiff:
        from genba.connections.git.merging.diff import GitDiff  # noqa: PLC0415  (see history)

        return GitDiff(self.layout.git)

    def target(self, remote: str) -> GitTarget:
        from genba.connections.git.merging.merge_target import GitTarget  # noqa: PLC0415  (see history)

        return GitTarget(self.layout, remote)

    async def drop_branch(self, branch: str, run: str, began: str) -> str:
        from genba.connections.git.merging.drop_branch import drop_branch  # noqa: PLC0415  (see history)

        return await drop_branch(self.layout, branch, run, began)


class RepositoryLocations:
    """What git and the kernel say of places in one repository."""

    def __init__(self, layout: RepositoryLayout) -> None:
        self.layout = layout

    def refuse_links(self, *places: str | Path) -> None:
        refuse_committed_links(self.layout, *places)

    def is_locked(self, path: Path) -> bool:
        return is_held(path)

    def identity(self) -> tuple[str, bool]:
        return self.layout.identity()

    def identity_at(self, common: Path) -> str:
        return identity_at(common)


class OwnFiles:
    """Files of Genba's own."""

    def make_private_folder(self, path: str | Path) -> None:
        make_private_folder(path)

    def put(self, path: Path, content: bytes, *, mode: int = 0o666) -> None:
        put(path, content, mode=mode)

    def size(self, path: Path) -> int:
        from genba.connections.git.worktrees.housekeeping import folder_size  # noqa: PLC0415  (only for gc)

        return folder_size(path)


class GoalDetection:
    """Commands of a project. Each reader is loaded where it is used."""

    def detect_in(self, folder: Path) -> Detected:
        from genba.connections.goals.detection import detect_in  # noqa: PLC0415  (see above)

        return detect_in(folder)

    def look_in(self, folder: Path, more: tuple[str, ...]) -> tuple[dict[str, str], list[str]]:
        from genba.connections.goals.detection import look_in  # noqa: PLC0415  (see above)

        return look_in(folder, more)

    def python_tests(self, folder: Path) -> dict[str, str]:
        from genba.connections.goals.detection import python_tests  # noqa: PLC0415  (see above)

        return python_tests(folder)

    def command_problem(self, command: str, folder: Path, environment_path: str | None) -> str:
        from genba.connections.goals.command_problem import command_problem  # noqa: PLC0415  (see above)

        return command_problem(command, folder, environment_path)


class NotificationChannels:
    """The desktop that this process was started on, and webhooks. Each is loaded where the settings name it."""

    def __init__(self, processes: Processes, folder: Path) -> None:
        self.processes = processes
        self.folder = folder

    def desktop_problem(self, environment: Mapping[str, str]) -> str:
        from genba.connections.notifications.desktop import desktop_problem  # noqa: PLC0415  (see above)

        return desktop_problem(environment, sys.platform)

    def webhook_problem(self, url: str, plain_http: bool) -> str:
        from genba.connections.notifications.webhook import url_problem  # noqa: PLC0415  (see above)

        return url_problem(url, plain_http)

    def host_of(self, url: str) -> str:
        from genba.connections.notifications.webhook import host_of  # noqa: PLC0415  (see above)

        return host_of(url)

    def desktop(self) -> Channel:
        from genba.connections.notifications.desktop import DesktopChannel  # noqa: PLC0415  (see above)

        return DesktopChannel(self.processes, os.environ, sys.platform, str(self.folder))

    def webhook(self, url: str, secret: str, timeout_seconds: float) -> Channel:
        from genba.connections.notifications.webhook import WebhookChannel  # noqa: PLC0415  (see above)

        return WebhookChannel(url, secret, timeout_seconds=timeout_seconds)


def housekeeping(layout: RepositoryLayout) -> RepositoryHousekeeping:
    from genba.wiring.project.housekeeping import RepositoryHousekeeping  # noqa: PLC0415  (only for gc)

    return RepositoryHousekeeping(layout)


def goal_results(layout: RepositoryLayout) -> FileResults:
    from genba.connections.goals.results import FileResults  # noqa: PLC0415  (only for goals)

    return FileResults(layout.own / "goals")


def memory_in_use(processes: frozenset[int], marks: frozenset[str]) -> MemoryUse:
    from genba.connections.processes.memory import look  # noqa: PLC0415  (only for the dashboard)

    return look(processes, marks)


def journal_pages() -> JournalPieces:
    from genba.connections.journal.pages import JournalPieces  # noqa: PLC0415  (only for the dashboard)

    return JournalPieces()


def connect_github(settings: GitHubSettings, processes: Processes, layout: RepositoryLayout) -> GitHubConnection:
    from genba.connections.clock import SystemClock  # noqa: PLC0415  (only with GitHub)
    from genba.connections.github.connection import GitHubConnection  # noqa: PLC0415  (only with GitHub)

    return GitHubConnection(settings, processes, layout.top, SystemClock())


def load_adapter(layout: RepositoryLayout, definition: AgentDefinition) -> BaseAdapter:
    """Raises ConfigurationError where the settings name no adapter, or one that cannot be used."""
    raw = definition.file.runner.adapter
    source = definition.sources.get("runner.adapter.type", definition.sources["name"])
    if raw is None:
        known = ", ".join(known_adapters())
        line = 'agents: {default: {adapter: {type: custom, command: "…"}}}'
        hint = f"in .genba/config.yaml:  {line}   known: {known}"
        message = f'agent "{definition.name}" has no adapter; set agents.default.adapter in .genba/config.yaml'
        problem = Problem(source, "runner.adapter", message, hint)
        raise ConfigurationError((problem,), hint="genba doctor   says which agents there are")
    try:
        kind = adapter_class(str(raw["type"]))
    except NotFoundError as error:
        problem = Problem(source, "runner.adapter.type", error.message, error.hint)
        raise ConfigurationError((problem,), hint=f"genba agent check {definition.name}") from error
    settings, problems = shape(raw, kind.settings_type, source, "runner.adapter")
    problems += tuple(
        Problem(
            source,
            path,
            f"{word} holds a GitHub token, and no file of the repository hands that to an agent",
            _OWN_TOKEN,
        )
        for path, word in handed_over(raw, "runner.adapter")
    )
    if settings is None or problems:
        raise ConfigurationError(problems, hint=f"genba agent check {definition.name}")
    adapter = kind(settings, Path(definition.folder))
    message = adapter.problem(without_own_tools(os.environ, *layout.folders))
    if message:
        problem = Problem(source, "runner.adapter.command", message, "check runner.adapter")
        raise ConfigurationError((problem,), hint=f"genba agent show {definition.name} --explain")
    return adapter
