"""A project in its repository, with everything wired together."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from genba.application.project import project_context as application
from genba.application.sessions.host import host_name
from genba.application.verification.session_task import check_task
from genba.connections.agents.catalogue import adapter_class
from genba.connections.clock import SystemClock
from genba.connections.forge.command import CommandForge
from genba.connections.git.merging.merge import GitRepository
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.repository.stale_locks import clear_locks
from genba.connections.git.worktrees.worktrees import GitWorkingTrees
from genba.connections.journal.jsonl import SUFFIX, JournalFiles, JsonlJournal, Listener, read_journal
from genba.connections.processes import environment
from genba.connections.processes.environment import passed_on
from genba.connections.processes.orphans import take_in_orphans
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.connections.tracker.nothing import NoTracker
from genba.definitions.agent.agent_json import Finalize
from genba.definitions.agent.completion import ExternalState, walk
from genba.definitions.agent.definition import AgentDefinition
from genba.definitions.agent.registry import with_agents
from genba.definitions.project.project import Project, load_project
from genba.domain.errors import ConfigurationError, UsageError
from genba.domain.ports import Forge, Processes, Sandbox, TaskLedger, Tracker
from genba.domain.problems import Problem
from genba.domain.processes import claim_mark
from genba.domain.redaction import Redactor
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.sandbox import SandboxKind
from genba.execution.delivery.finalize import no_forge
from genba.execution.loop.resume import read_resumption
from genba.execution.run import Run, RunPlan, RunResult
from genba.execution.session_context import SessionContext
from genba.judgement.language.sentences import in_language
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
from genba.wiring.sandbox.agent_environment import AgentEnvironmentKeeper
from genba.wiring.sandbox.agent_identity import agent_identity, identity_variables
from genba.wiring.sandbox.preload import load_ahead
from genba.wiring.sandbox.sandbox_choice import choose, make
from genba.wiring.sessions.agent_checks import LazyChecks, looks_at_files, validators_of
from genba.wiring.sessions.session_record import keep, raised, recall, remember

if TYPE_CHECKING:
    from genba.application.tracker.github import GitHubOffice
    from genba.application.verification.maker import Maker
    from genba.definitions.project.sandbox_section import AgentEnvironment
    from genba.domain.events import Event
    from genba.execution.verification.verify import Verifier
    from genba.wiring.facilitator.facilitator_agent import FieldAnswers
    from genba.wiring.sessions.reviews import ReviewSession
    from genba.wiring.verification.verifier import GoalSandbox

__all__ = ["PreparedRun", "ProjectContext", "adapter_files", "new_run_id", "read_journal"]

Dress = Callable[[SessionContext, AgentEnvironmentKeeper], SessionContext]
"""Changes what a run sees of the outside."""

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

    def journal_path(self, definition: AgentDefinition, run: str) -> Path:
        directory = definition.file.runner.logging.directory.replace("{name}", definition.name)
        self.refuse_links(directory, definition.file.runner.execution.worktree.root)
        if not Path(directory).is_absolute():
            self.layout.exclude(f"/{directory.strip('/')}/")
        return self.layout.top / directory / f"{run}{SUFFIX}"

    def prepare(self, plan: RunPlan, listeners: tuple[Listener, ...] = (), dress: Dress | None = None) -> PreparedRun:
        """Everything a run needs, before it touches anything. `dress` changes the world that it sees."""
        definition, alone = plan.definition, dress is None
        review = self._review(plan) if plan.review is not None else None
        self.check_writable()
        adapter, answers = self._told(plan, self.adapter(definition))
        completion_handlers, action_handlers = self.handlers(definition)
        self._check_plan(plan, alone)
        choice = choose(definition, self.layout, self.processes, plan.accepts_risk)
        checked = {**self._environment(plan), **definition.quarters.environment}
        folder = self.layout.run_folder(plan.run)
        path = self.journal_path(definition, plan.run)
        redactor = Redactor(os.environ)
        if self.project.file.telemetry.enabled:
            from genba.wiring.project.telemetry import listening  # noqa: PLC0415  (off by default)

            listeners = (*listeners, listening(self, plan.run))
        journal = JsonlJournal(
            path,
            plan.run,
            definition.name,
            plan.issue,
            redactor,
            listeners,
            before_first=lambda: remember(folder, plan, path),
        )
        keeper, trees = self.quarters(plan, choice.kind, adapter, journal.emit)
        world = SessionContext(
            adapter=adapter,
            adapter_commits=adapter.commits and definition.file.runner.execution.worktree.enabled,
            trees=trees,
            repository=GitRepository(self.layout),
            checks=LazyChecks(lambda around: validators_of(self.layout, around, checked), keeper, self.processes),
            processes=self.sweeping(choice.kind, keeper.sandbox, folder),
            tracker=self.tracker(plan.run) if plan.issue is not None else NoTracker(),
            forge=self._forge(plan.run),
            journal=journal,
            clock=SystemClock(),
            redact=redactor.text,
            jitter=_jitter,
            completion_handlers=completion_handlers,
            action_handlers=action_handlers,
            quarters=keeper.open,
            sandbox=str(choice.kind),
            network=str(definition.quarters.network) if choice.kind.is_sandboxed else "",
            fallen_back=choice.fallen_back,
            **self._reviewing(plan),
            **self._judging(plan, redactor, choice.kind, keeper.sandbox),
        )
        office = self.office()
        if office is not None:
            from genba.wiring.tracker.session_tracker import with_github  # noqa: PLC0415  (only with GitHub)

            world = with_github(office, self.layout, world, plan, alone=alone)
        world = dress(world, keeper) if dress is not None else world
        world = review.dress(world) if review is not None else world
        mine = office if alone else None
        run = Run(plan, world, _fits)
        return PreparedRun(run, journal, trees, keeper, office=mine, review=review, answers=answers)

    def _reviewing(self, plan: RunPlan) -> dict[str, Any]:
        """Who reviews the work on a task; nothing for a run without one."""
        if plan.issue is None:
            return {}
        review = self.project.fleet.review
        return {"reviewer": review.agent, "review_rounds": review.rounds}

    def _review(self, plan: RunPlan) -> ReviewSession:
        from genba.wiring.sessions.reviews import ReviewSession  # noqa: PLC0415  (only a review pays for it)

        assert plan.review is not None  # noqa: S101  (the caller looked)
        return ReviewSession(self, plan, plan.review)

    def _told(self, plan: RunPlan, adapter: Any) -> tuple[Any, FieldAnswers | None]:
        """The adapter; whoever declares that it facilitates is given what is seen of the field."""
        declared = (plan.definition.adapter_type, *plan.definition.capabilities)
        if "facilitator" not in declared and "facilitate-action" not in declared:
            return adapter, None
        from genba.wiring.facilitator.facilitator_agent import answered_by_code  # noqa: PLC0415  (only a facilitator needs it)

        return answered_by_code(self, plan, adapter)

    def quarters(
        self, plan: RunPlan, kind: SandboxKind, adapter: Any, emit: Callable[[Event], None]
    ) -> tuple[AgentEnvironmentKeeper, Any]:
        """Where the instances of a run live, and the working trees that fit the walls around them."""
        definition = plan.definition
        sandbox = self._sandbox(kind, adapter, definition)
        trees = self._trees(kind, sandbox, plan)
        keeper = AgentEnvironmentKeeper(
            definition=definition,
            adapter=adapter,
            sandbox=sandbox,
            kind=kind,
            processes=self.processes,
            folder=self.layout.run_folder(plan.run),
            top=self.layout.top,
            ignored=self._ignored,
            environment=self._environment(plan),
            emit=emit,
            parts=getattr(trees, "private_binds", None),
            clear=partial(clear_locks, self.layout),
        )
        return keeper, trees

    def _check_plan(self, plan: RunPlan, alone: bool) -> None:
        """Refuse what could never end well."""
        if alone:
            check_task(self, plan)
        if plan.definition.state_driven and alone:
            raise UsageError(
                f"{plan.definition.name} asks for its next action, and only a fleet answers it",
                unchanged="nothing was started, nothing was changed.",
                hint="genba work",
            )
        self._check_forge(plan.definition.file.runner.execution.finalize)
        if plan.issue is None and any(isinstance(part, ExternalState) for part in walk(plan.definition.completion)):
            message = "externalState works on an issue, and none was given"
            raise ConfigurationError((Problem("command line", "--issue", message),))

    def _check_forge(self, finalize: Finalize) -> None:
        command, github = self.project.file.forge, self.project.file.tracker.github
        if finalize.create_pr and command is None and github is None:
            raise ConfigurationError((no_forge(),))
        only_there = {
            "prDraft": finalize.pr_draft,
            "prReviewers": bool(finalize.pr_reviewers),
            "prMerge": finalize.pr_merge != "people",
        }
        asked = next((name for name, given in only_there.items() if given), "")
        if finalize.create_pr and asked and (command is not None or github is None):
            message = "a command opens pull requests as it says itself: this takes tracker.github, and no forge"
            raise ConfigurationError((Problem("", f"runner.execution.finalize.{asked}", message),))

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

    def _judging(self, plan: RunPlan, redactor: Redactor, kind: SandboxKind, sandbox: Sandbox | None) -> dict[str, Any]:
        """What a run needs to be verified: nothing at all when neither a task nor the settings ask for it."""
        ledger: TaskLedger | None = None
        office = self.office()
        if plan.issue is not None and office is not None:
            ledger = office.ledger()
        elif plan.issue is not None and self.has_board():
            from genba.blackboard.fleet.session_ledger import SessionRecorder  # noqa: PLC0415  (see board)

            ledger = SessionRecorder(self.board(), partial(in_language, self.project.language))
        if ledger is None and self.project.rules is None and plan.base_branch is None:
            return {}
        from genba.application.verification.session_task import inbox_of  # noqa: PLC0415
        from genba.execution.verification.policy import PolicyResolver  # noqa: PLC0415
        from genba.wiring.verification.verifier import verifier  # noqa: PLC0415  (only a run with goals pays for it)

        fence, agent = self.fence(kind, sandbox, plan.definition.quarters), plan.definition.name
        # A goal ends whatever carries its mark; it may be checked while an instance lives that asks what is next.
        mark = claim_mark(plan.run) if plan.definition.state_driven else plan.run
        judge = verifier(self.layout, self.processes, redactor.text, mark, fence, agent)
        return {
            "ledger": ledger,
            "inbox": inbox_of(self, plan.issue),
            "rulebook": PolicyResolver(self.ports.repository.history(), self.project.rules, self.project.source),
            "verifier": judge,
            "stages": self.project.stages,
            "knows_agent": lambda name: name in self.registry.folders(),
            "host": host_name(),
            "is_running": self.is_running,
        }

    def _sandbox(self, kind: SandboxKind, adapter: Any, definition: AgentDefinition) -> Sandbox | None:
        """What raises the walls; None where there are none, and no gate that would need them."""
        if not kind.is_sandboxed and not hasattr(adapter, "provider"):
            return None
        load_ahead(passed_on(os.environ, *self.layout.folders))
        return make(kind, self.processes, definition.quarters.options)

    def sweeping(self, kind: SandboxKind, sandbox: Sandbox | None, folder: Path) -> Processes:
        """What ends the processes that a dead run left, wherever they are."""
        if sandbox is None or kind not in (SandboxKind.DOCKER, SandboxKind.PODMAN):
            return self.processes
        from genba.wiring.sandbox.goal_commands import EnclosedSweeps  # noqa: PLC0415  (only walls need it)

        return EnclosedSweeps(sandbox, self.processes, folder / "sandbox")

    def _trees(self, kind: SandboxKind, sandbox: Sandbox | None, plan: RunPlan) -> Any:
        """Behind walls an agent gets a repository of its own; without them, a plain working tree."""
        if not kind.is_sandboxed or sandbox is None:
            return GitWorkingTrees(self.layout)
        from genba.connections.git.private.bundles import BundleLimits  # noqa: PLC0415  (only walls need it)
        from genba.connections.git.private.sandboxed_worktrees import SandboxedWorktrees  # noqa: PLC0415

        definition = plan.definition
        # A layer is mounted by one at a time: not for an instance whose work is looked at while it lives.
        overlays = kind is SandboxKind.BUBBLEWRAP and not looks_at_files(definition) and not definition.state_driven
        # A bundle has a size of its own that it may have, however little the agent may write.
        limits = BundleLimits(sandbox_limits=msgspec.structs.replace(definition.quarters.limits, disk_mb=None))
        identity = agent_identity(definition, plan.issue)
        return SandboxedWorktrees(self.layout, sandbox, overlays=overlays, limits=limits, identity=identity)

    async def _ignored(self, names: tuple[str, ...]) -> frozenset[str]:
        """Which of these paths of the user's checkout git ignores."""
        asked = "\0".join(names)
        words = ("check-ignore", "--stdin", "-z")
        top, git_dir = self.layout.top, self.layout.git_dir
        done = await self.layout.git.run(*words, tree=top, git_dir=git_dir, stdin=asked, allow=(0, 1))
        return frozenset(name for name in done.stdout.split("\0") if name)

    def fence(
        self, kind: SandboxKind, sandbox: Sandbox | None = None, agent: AgentEnvironment | None = None
    ) -> GoalSandbox | None:
        """The sandbox of the commands of goals, with the network of an agent; None where the kind has none."""
        if not kind.is_sandboxed:
            return None
        from genba.wiring.verification.verifier import GoalSandbox  # noqa: PLC0415  (see examination)

        settings = self.project.file.sandbox
        return GoalSandbox(self.layout, kind, sandbox or make(kind, self.processes, settings.options), settings, agent)

    def _forge(self, run: str) -> Forge | None:
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

    def _environment(self, plan: RunPlan) -> dict[str, str]:
        identity = agent_identity(plan.definition, plan.issue)
        own = {"PYTHONDONTWRITEBYTECODE": "1"}  # compiled files that are committed by accident are rejected
        return {**passed_on(os.environ, *self.layout.folders), **own, **identity_variables(identity, plan.run)}


class PreparedRun:
    """A run that is ready to go, and what must be let go of afterwards."""

    def __init__(
        self,
        run: Run,
        journal: JsonlJournal,
        trees: Any,
        keeper: AgentEnvironmentKeeper,
        *,
        office: GitHubOffice | None = None,
        review: ReviewSession | None = None,
        answers: FieldAnswers | None = None,
    ) -> None:
        self.run = run
        self.answers = answers
        """What an agent that facilitates has seen."""
        self.office = office
        """Its connections are let go of when the run ends."""
        self.journal = journal
        self.trees = trees
        self.keeper = keeper
        self.review = review
        """What the session does before and after a review."""

    async def execute(self) -> RunResult:
        try:
            result = await self._execute()
        finally:
            self.trees.release()
            self.journal.close()
            if self.office is not None:
                await self.office.close()
        if result.outcome is Outcome.COMPLETED:
            self.keeper.clear()
        return result

    async def _execute(self) -> RunResult:
        if self.review is None:
            return await self.run.execute()
        return await self.review.execute(self.run)


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


def _jitter() -> float:
    return os.urandom(1)[0] / 256


def _fits(schema: dict[str, Any], value: Any) -> bool:
    from genba.definitions.agent.json_schema import problems_in_value  # noqa: PLC0415  (only agents with schemas pay)

    return not problems_in_value(schema, value, most=1)
