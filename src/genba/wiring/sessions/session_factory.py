"""Constructs sessions: one of its own, a review, the closing of landed work, and a session of a fleet."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from genba.application.sandbox.agent_environment import AgentEnvironmentKeeper, WorkflowDoor
from genba.application.sessions.host import host_name
from genba.application.sessions.session_record import remember
from genba.application.verification.session_task import check_task
from genba.connections.clock import SystemClock
from genba.connections.git.merging.merge import GitRepository
from genba.connections.git.repository.stale_locks import clear_locks
from genba.connections.git.worktrees.worktrees import GitWorkingTrees
from genba.connections.journal.jsonl import SUFFIX, JsonlJournal, Listener
from genba.connections.processes.environment import passed_on
from genba.connections.tracker.nothing import NoTracker
from genba.definitions.agent.agent_json import Finalize
from genba.definitions.agent.completion import ExternalState, walk
from genba.domain.errors import ConfigurationError, UsageError
from genba.domain.events import Notice
from genba.domain.problems import Problem
from genba.domain.processes import claim_mark
from genba.domain.redaction import Redactor
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.sandbox import SandboxKind
from genba.execution.delivery.finalize import no_forge
from genba.execution.run_values import RunPlan, RunResult
from genba.execution.session import Session
from genba.execution.session_context import (
    AgentContext,
    AnswerContext,
    GitContext,
    OpenEnvironment,
    SandboxSummary,
    SessionContext,
    TrackerContext,
)
from genba.execution.session_progress import SessionProgress
from genba.judgement.language.sentences import in_language
from genba.wiring.sandbox.agent_identity import agent_identity, identity_variables
from genba.wiring.sandbox.environment_ports import environment_ports
from genba.wiring.sandbox.preload import load_ahead
from genba.wiring.sandbox.sandboxes import make, sandbox_chooser
from genba.wiring.sessions.agent_checks import LazyChecks, looks_at_files, validators_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from genba.application.facilitator.facilitator_agent import FieldAnswers
    from genba.application.sessions.reviews import ReviewSession
    from genba.application.tracker.github import GitHubOffice
    from genba.definitions.agent.definition import AgentDefinition
    from genba.domain.events import Event
    from genba.domain.ports import AgentAdapter, Inbox, Processes, Rework, Sandbox, TaskLedger
    from genba.domain.sessions.agent_adapter import BaseAdapter
    from genba.execution.delivery.task_updates import TaskContext
    from genba.execution.verification.session_verification import VerificationContext
    from genba.wiring.project.project_context import ProjectContext


class PreparedSession:
    """A session that is ready to start, and what is released when it ends."""

    def __init__(
        self,
        base: SessionBase,
        session: Session,
        *,
        office: GitHubOffice | None = None,
        review: ReviewSession | None = None,
    ) -> None:
        self.session = session
        self.journal = base.journal
        self.trees = base.trees
        self.keeper = base.keeper
        self.answers = base.answers
        """What an agent that facilitates has seen."""
        self.office = office
        """Its connections are closed when the session ends."""
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
            return await self.session.execute()
        return await self.review.execute(self.session)


def standalone_session(context: ProjectContext, plan: RunPlan, listeners: tuple[Listener, ...] = ()) -> PreparedSession:
    """A session of its own: it reads its issue and delivers its work itself."""
    if plan.review is not None:
        return _review_session(context, plan, listeners)
    base = SessionBase(context, plan, listeners, of_its_own=True)
    return base.prepared(base.session_context(task=base.task(), verification=base.verification()))


async def execute_closing(context: ProjectContext, plan: RunPlan) -> RunResult:
    """Close a session whose work a fleet has landed. The fleet keeps its connections open."""
    base = SessionBase(context, plan, (), of_its_own=False)
    closing = base.session_context(task=base.task(), verification=base.verification())
    return await base.prepared(closing).execute()


def _review_session(context: ProjectContext, plan: RunPlan, listeners: tuple[Listener, ...]) -> PreparedSession:
    from genba.application.sessions.reviews import ReviewSession  # noqa: PLC0415  (only a review pays for it)

    review = ReviewSession(context, plan)
    base = SessionBase(context, plan, listeners, of_its_own=True)
    return base.prepared(base.session_context(answer=review.answer(base.trees, base.journal)), review=review)


class SessionBase:
    """What sessions of their own and sessions of a fleet have in common."""

    def __init__(
        self, context: ProjectContext, plan: RunPlan, listeners: tuple[Listener, ...], *, of_its_own: bool
    ) -> None:
        definition = plan.definition
        self.context = context
        self.plan = plan
        self.of_its_own = of_its_own
        """False in a fleet, whose executor reads the tracker for all of its sessions."""
        context.check_writable()
        self.adapter, self.answers = _with_answers(context, plan, context.adapter(definition))
        self.handlers = context.handlers(definition)
        self._check_plan()
        choice = sandbox_chooser(context).choose(definition, plan.accepts_risk)
        self.kind = choice.kind
        folder = context.layout.run_folder(plan.run)
        path = journal_path(context, definition, plan.run)
        self.redactor = Redactor(os.environ)
        if context.project.file.telemetry.enabled:
            from genba.connections.telemetry.process import session_listener  # noqa: PLC0415  (off by default)

            content = context.project.file.telemetry.content
            listeners = (*listeners, session_listener(plan.run, content, context.project.source))
        self.journal = JsonlJournal(
            path,
            plan.run,
            definition.name,
            plan.issue,
            self.redactor,
            listeners,
            before_first=lambda: remember(context.ports.files, folder, plan, path),
        )
        self.keeper, self.trees = agent_environment(context, plan, choice.kind, self.adapter, self.journal.emit)
        self.processes = sweeping(context, choice.kind, self.keeper.sandbox, folder)
        self.sandbox = SandboxSummary(
            kind=str(choice.kind),
            network=str(definition.environment.network) if choice.kind.is_sandboxed else "",
            missing=choice.fallen_back,
        )

    def _check_plan(self) -> None:
        """Refuse what could never end well."""
        plan = self.plan
        if self.of_its_own:
            check_task(self.context, plan)
        if plan.definition.state_driven and self.of_its_own:
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
        command, github = self.context.project.file.forge, self.context.project.file.tracker.github
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

    def session_context(
        self,
        task: TaskContext | None = None,
        verification: VerificationContext | None = None,
        answer: AnswerContext | None = None,
    ) -> SessionContext:
        """The context of a session that no fleet carries out."""
        return SessionContext(
            agent=self.agent(self.adapter, self.keeper.open, self.processes),
            git=self.git(self.trees, self.rework()),
            tracker=self.tracker(),
            journal=self.journal,
            clock=SystemClock(),
            redact=self.redactor.text,
            task=task,
            verification=verification,
            answer=answer,
            inbox=self.inbox(),
        )

    def prepared(
        self,
        session_context: SessionContext,
        progress: SessionProgress | None = None,
        review: ReviewSession | None = None,
    ) -> PreparedSession:
        session = Session(self.plan, session_context, progress)
        office = self.context.office() if self.of_its_own else None
        return PreparedSession(self, session, office=office, review=review)

    # ── groups of the context ────────────────────────────────────────────────────────────────────────────────────────

    def agent(self, adapter: AgentAdapter, open_environment: OpenEnvironment, processes: Processes) -> AgentContext:
        completions, actions = self.handlers
        return AgentContext(
            adapter=adapter,
            open_environment=open_environment,
            processes=processes,
            completion_handlers=completions,
            action_handlers=actions,
            fits_schema=_fits,
            jitter=_jitter,
            commits_for_it=self.adapter.commits and self.plan.definition.file.runner.execution.worktree.enabled,
            sandbox=self.sandbox,
        )

    def git(self, trees: Any, rework: Rework | None) -> GitContext:
        layout = self.context.layout
        variables = {**agent_variables(self.context, self.plan), **self.plan.definition.environment.environment}
        checks = LazyChecks(
            lambda processes: validators_of(layout, processes, variables), self.keeper, self.context.processes
        )
        return GitContext(trees=trees, repository=GitRepository(layout), checks=checks, rework=rework)

    def rework(self) -> Rework | None:
        """Merges what others pushed to its pull request; None for work that is not proposed on GitHub."""
        finalize = self.plan.definition.file.runner.execution.finalize
        if self.context.office() is None or not finalize.create_pr:
            return None
        from genba.connections.git.merging.merge_target import GitRework  # noqa: PLC0415  (only with pull requests)

        return GitRework(self.context.layout, finalize.remote)

    def tracker(self) -> TrackerContext:
        """The tracker of the project. A session of its own reads it first; in a fleet the executor does."""
        context, run, office = self.context, self.plan.run, self.context.office()
        tracker = context.tracker(run) if self.plan.issue is not None else NoTracker()
        if office is None:
            return TrackerContext(tracker=tracker, forge=context.forge(run))
        proposes = self.plan.definition.file.runner.execution.finalize.create_pr and context.project.file.forge is None
        if not self.of_its_own or self.plan.issue is None:
            return TrackerContext(tracker=tracker, forge=context.forge(run), follows_pull_requests=proposes)
        from genba.application.tracker.github import FreshTracker  # noqa: PLC0415  (only with GitHub)

        def note(message: str) -> None:
            self.journal.emit(Notice(message=self.redactor.text(message)))

        return TrackerContext(
            tracker=FreshTracker(tracker, office, note),
            forge=office.forge(run, note) if proposes else context.forge(run),
            follows_pull_requests=proposes,
            refresh=partial(office.refresh, say=note),
        )

    def inbox(self) -> Inbox | None:
        if not self._is_verified:
            return None
        from genba.application.verification.session_task import inbox_of  # noqa: PLC0415  (only with a task or goals)

        return inbox_of(self.context, self.plan.issue)

    @property
    def _is_verified(self) -> bool:
        """True when a task or the settings ask for a verification."""
        return self._has_ledger or self.context.project.rules is not None or self.plan.base_branch is not None

    @property
    def _has_ledger(self) -> bool:
        return self.plan.issue is not None and (self.context.office() is not None or self.context.has_board())

    def ledger(self) -> TaskLedger:
        office = self.context.office()
        if office is not None:
            return office.ledger()
        from genba.blackboard.fleet.session_ledger import SessionRecorder  # noqa: PLC0415  (only a task needs a database)

        return SessionRecorder(self.context.board(), partial(in_language, self.context.project.language))

    def task(self, ledger: TaskLedger | None = None) -> TaskContext | None:
        """The blackboard as the session sees it; None for a session without a task."""
        if not self._has_ledger:
            return None
        from genba.execution.delivery.task_updates import TaskContext  # noqa: PLC0415  (see ledger)

        context, review = self.context, self.context.project.fleet.review
        return TaskContext(
            ledger=ledger or self.ledger(),
            host=host_name(),
            is_branch_held=context.is_running,
            stages=context.project.stages,
            knows_agent=lambda name: name in context.registry.folders(),
            reviewer=review.agent,
            review_rounds=review.rounds,
        )

    def verification(self) -> VerificationContext | None:
        """Verifies the work; None when neither a task nor the settings ask for it."""
        if not self._is_verified:
            return None
        from genba.application.verification.policies import policy_resolver  # noqa: PLC0415
        from genba.execution.verification.session_verification import VerificationContext  # noqa: PLC0415
        from genba.wiring.verification.verifier import verifier  # noqa: PLC0415  (only with goals)

        context, plan = self.context, self.plan
        fence = context.fence(self.kind, self.keeper.sandbox, plan.definition.environment)
        # A goal ends whatever carries its mark; it may be checked while an instance lives that asks what is next.
        mark = claim_mark(plan.run) if plan.definition.state_driven else plan.run
        return VerificationContext(
            policies=policy_resolver(context),
            verifier=verifier(context.layout, context.processes, self.redactor.text, mark, fence, plan.definition.name),
        )


def agent_environment(
    context: ProjectContext,
    plan: RunPlan,
    kind: SandboxKind,
    adapter: BaseAdapter,
    emit: Callable[[Event], None],
    workflow: WorkflowDoor | None = None,
) -> tuple[AgentEnvironmentKeeper, Any]:
    """The environment of the instances of a session, and the worktrees that fit its sandbox."""
    definition, layout = plan.definition, context.layout
    sandbox = _sandbox(context, kind, adapter, definition)
    trees, parts = _trees(context, kind, sandbox, plan)
    keeper = AgentEnvironmentKeeper(
        definition=definition,
        adapter=adapter,
        ports=environment_ports(),
        sandbox=sandbox,
        kind=kind,
        processes=context.processes,
        folder=layout.run_folder(plan.run),
        top=layout.top,
        ignored=layout.ignored,
        environment=agent_variables(context, plan),
        emit=emit,
        parts=parts,
        clear=partial(clear_locks, layout),
        workflow=workflow,
    )
    return keeper, trees


def sweeping(context: ProjectContext, kind: SandboxKind, sandbox: Sandbox | None, folder: Path) -> Processes:
    """Ends the processes that a dead session left, wherever they are."""
    if sandbox is None or kind not in (SandboxKind.DOCKER, SandboxKind.PODMAN):
        return context.processes
    from genba.application.sandbox.goal_commands import EnclosedSweeps  # noqa: PLC0415  (only containers need it)

    return EnclosedSweeps(sandbox, context.processes, context.ports.files, folder / "sandbox")


def journal_path(context: ProjectContext, definition: AgentDefinition, run: str) -> Path:
    directory = definition.file.runner.logging.directory.replace("{name}", definition.name)
    context.refuse_links(directory, definition.file.runner.execution.worktree.root)
    if not Path(directory).is_absolute():
        context.layout.exclude(f"/{directory.strip('/')}/")
    return context.layout.top / directory / f"{run}{SUFFIX}"


def agent_variables(context: ProjectContext, plan: RunPlan) -> dict[str, str]:
    """The environment variables of an agent."""
    identity = agent_identity(plan.definition, plan.issue)
    own = {"PYTHONDONTWRITEBYTECODE": "1"}  # compiled files that are committed by accident are rejected
    return {**passed_on(os.environ, *context.layout.folders), **own, **identity_variables(identity, plan.run)}


def _with_answers(
    context: ProjectContext, plan: RunPlan, adapter: BaseAdapter
) -> tuple[BaseAdapter, FieldAnswers | None]:
    """The adapter; for an agent that facilitates, with what Genba sees of the issues."""
    declared = (plan.definition.adapter_type, *plan.definition.capabilities)
    if "facilitator" not in declared and "facilitate-action" not in declared:
        return adapter, None
    from genba.application.facilitator.facilitator_agent import ACTION, FieldAnswers  # noqa: PLC0415  (only for a facilitator)
    from genba.connections.agents.facilitator import FieldAdapter, PhrasingAdapter  # noqa: PLC0415  (see above)

    if isinstance(adapter, FieldAdapter):
        answers = FieldAnswers(context, plan)
        return FieldAdapter(adapter.settings, adapter.folder, answers), answers
    if ACTION in plan.definition.capabilities:
        answers = FieldAnswers(context, plan)
        return PhrasingAdapter(adapter, answers), answers
    return adapter, None


def _sandbox(
    context: ProjectContext, kind: SandboxKind, adapter: BaseAdapter, definition: AgentDefinition
) -> Sandbox | None:
    """None where there is no sandbox, and no egress port that would need one."""
    if not kind.is_sandboxed and not adapter.uses_egress:
        return None
    load_ahead(passed_on(os.environ, *context.layout.folders))
    return make(kind, context.processes, definition.environment.options)


def _trees(context: ProjectContext, kind: SandboxKind, sandbox: Sandbox | None, plan: RunPlan) -> tuple[Any, Any]:
    """The worktrees, and what a sandbox shows of their private repositories; a plain worktree without a sandbox."""
    if not kind.is_sandboxed or sandbox is None:
        return GitWorkingTrees(context.layout), None
    from genba.connections.git.private.bundles import BundleLimits  # noqa: PLC0415  (only a sandbox needs it)
    from genba.connections.git.private.sandboxed_worktrees import SandboxedWorktrees  # noqa: PLC0415

    definition = plan.definition
    # A layer is mounted by one at a time: not for an instance whose work is verified while it lives.
    overlays = kind is SandboxKind.BUBBLEWRAP and not looks_at_files(definition) and not definition.state_driven
    # A bundle has a size limit of its own, however little the agent may write.
    limits = BundleLimits(sandbox_limits=msgspec.structs.replace(definition.environment.limits, disk_mb=None))
    identity = agent_identity(definition, plan.issue)
    trees = SandboxedWorktrees(context.layout, sandbox, overlays=overlays, limits=limits, identity=identity)
    return trees, trees.private_binds


def _jitter() -> float:
    return os.urandom(1)[0] / 256


def _fits(schema: dict[str, Any], value: Any) -> bool:
    from genba.definitions.agent.json_schema import problems_in_value  # noqa: PLC0415  (only agents with schemas pay)

    return not problems_in_value(schema, value, most=1)
