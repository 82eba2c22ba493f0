"""One run of one agent, from its workspace to its closure."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

import msgspec

from genba.definitions.completion import ExternalState, walk
from genba.definitions.definition import AgentDefinition
from genba.domain.errors import DiskFullError, GenbaError, NotFoundError
from genba.domain.events import EffectDone, EffectPlanned, LoopEnded, RunEnded, RunResumed, RunStarted
from genba.domain.issues import Issue, IssueChange
from genba.domain.loop_state import LoopState
from genba.domain.outcomes import Outcome
from genba.domain.replies import AgentSession, Usage
from genba.domain.workspaces import MergeStatus, Workspace, WorkspaceRequest
from genba.execution.asking import Asking
from genba.execution.finalizing import Finalized, Finalizer
from genba.execution.loop import Loop
from genba.execution.observing import Observing
from genba.execution.prompting import Prompts
from genba.execution.world import World
from genba.judgement.closure import change_on_block, change_on_completion, change_on_start
from genba.judgement.completion import SchemaFit
from genba.judgement.verdicts import Judge

PARKED = "parked: it was told to stop, and can go on from here"


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to run. A resumed run has a workspace and a state already."""

    run: str
    definition: AgentDefinition
    parameters: dict[str, Any]
    project: str = ""
    mode: str | None = None
    branch: str | None = None
    base_branch: str | None = None
    workspace: Workspace | None = None
    state: LoopState | None = None
    merged: str = ""
    process: int = 0

    @property
    def issue(self) -> int | None:
        number = self.parameters.get("issue")
        return int(number) if isinstance(number, int | float) else None


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended, with everything that a screen or a script needs."""

    run: str
    agent: str
    outcome: Outcome
    reason: str
    hint: str = ""
    iterations: int
    seconds: float
    usage: Usage
    branch: str
    workdir: str
    merged: str = ""
    merge: MergeStatus | None = None
    conflicts: tuple[str, ...] = ()
    pull_request: str = ""
    issue: int | None = None


class Run:
    """Drives the loop from the journal: needs no database."""

    def __init__(self, plan: RunPlan, world: World, fits: SchemaFit) -> None:
        self.plan = plan
        self.world = world
        self.fits = fits
        self.definition = plan.definition
        self.settings = plan.definition.file.runner
        self.state = plan.state or LoopState(step=plan.definition.entry_step(plan.mode))

    async def execute(self) -> RunResult:
        issue, requirements = await self._issue()
        workspace = await self._workspace(issue)
        self._tell_start(workspace, issue)
        began = self.world.clock.elapsed()
        try:
            await self._change_issue(change_on_start(self.settings.integrations.github), "start")
            await self._loop(workspace, issue, requirements)
        except asyncio.CancelledError:
            await self.world.processes.sweep(self.plan.run)
            self._reached(self.state.end(Outcome.INCOMPLETE, PARKED))
        except DiskFullError as error:
            error.hint = error.hint or f"free some space, then: genba run --resume {self.plan.run}"
            error.unchanged = f"the work is kept on {workspace.branch}, in {workspace.path}"
            raise
        return await _finish(self._end(self.state, workspace, issue, began))

    def _reached(self, state: LoopState) -> None:
        self.state = state

    async def _issue(self) -> tuple[Issue | None, tuple[Issue, ...]]:
        """The issue and the requirements, when the agent takes an issue at all."""
        number = self.plan.issue
        if number is None:
            return None, ()
        needs_tracker = self.settings.integrations.github.enabled or any(
            isinstance(part, ExternalState) for part in walk(self.definition.completion)
        )
        try:
            issue = await self.world.tracker.read(number)
        except NotFoundError:
            if needs_tracker:
                raise
            return Issue(number=number, title=""), ()
        label = self.settings.integrations.github.labels.requirements
        return issue, await self.world.tracker.labelled(label) if label else ()

    async def _workspace(self, issue: Issue | None) -> Workspace:
        if self.plan.workspace is not None:
            await self.world.processes.sweep(self.plan.run)
            return await self.world.trees.reopen(self.plan.workspace)
        worktree = self.settings.execution.worktree
        request = WorkspaceRequest(
            run=self.plan.run,
            agent=self.definition.name,
            root=worktree.root,
            isolated=worktree.enabled,
            branch=self.plan.branch,
            base_branch=self.plan.base_branch,
            issue=self.plan.issue,
            issue_title=issue.title if issue else "",
        )
        workspace = await self.world.trees.open(request)
        if workspace.taken_from:
            await self.world.processes.sweep(workspace.taken_from)
        return workspace

    def _tell_start(self, workspace: Workspace, issue: Issue | None) -> None:
        if self.plan.workspace is not None:
            self.world.journal.emit(RunResumed(process=self.plan.process))
            return
        self.world.journal.emit(
            RunStarted(
                adapter=self.definition.adapter_type or "",
                model=self.settings.flow.default_model,
                definition=self.definition.digest,
                workspace=workspace,
                project=self.plan.project,
                title=issue.title if issue else "",
                parameters=self.plan.parameters,
                limits=msgspec.to_builtins(self.settings.limits),
                process=self.plan.process,
            )
        )

    async def _loop(self, workspace: Workspace, issue: Issue | None, requirements: tuple[Issue, ...]) -> None:
        if self.state.outcome is Outcome.COMPLETED:
            return
        session = AgentSession(
            run=self.plan.run,
            agent=self.definition.name,
            workdir=workspace.path,
            folder=self.world.files,
            environment=self.world.environment,
        )
        judge = Judge(self.definition, self.world.completion_handlers, self.fits)
        prompts = Prompts(self.definition, self.plan.run, workspace, self.plan.parameters, issue, requirements)
        observing = Observing(judge, self.world, workspace, self.plan.issue)
        instance = await self.world.adapter.start(session)
        asking = Asking(self.definition, self.world, instance, self.plan.issue)
        try:
            loop = Loop(self.definition, self.world, workspace, judge, prompts, asking, observing)
            await loop.run(self.state, self._reached)
        finally:
            await asyncio.shield(self.world.adapter.stop(instance))

    async def _end(self, state: LoopState, workspace: Workspace, issue: Issue | None, began: float) -> RunResult:
        outcome, reason = state.outcome or Outcome.FAILED, state.reason
        self.world.journal.emit(LoopEnded(outcome=outcome, reason=reason))
        hint = f"genba run --resume {self.plan.run}" if outcome is not Outcome.COMPLETED else ""
        finalized = Finalized(done=False)
        if outcome is Outcome.COMPLETED:
            finalized = await self._finalize(state, workspace, issue)
            if not finalized.done:
                outcome, reason, hint = _not_finalized(finalized)
        elif outcome is Outcome.BLOCKED:
            await self._change_issue(change_on_block(self.settings.integrations.github, reason), "blocked")
        merged = finalized.commit if finalized.merge is MergeStatus.MERGED else self.plan.merged
        seconds = round(self.world.clock.elapsed() - began, 3)
        self.world.journal.emit(
            RunEnded(
                outcome=outcome,
                reason=reason,
                usage=state.usage,
                iterations=state.iterations,
                seconds=seconds,
                merged=merged,
            )
        )
        return RunResult(
            run=self.plan.run,
            agent=self.definition.name,
            outcome=outcome,
            reason=reason,
            hint=hint,
            iterations=state.iterations,
            seconds=seconds,
            usage=state.usage,
            branch=workspace.branch,
            workdir=workspace.path,
            merged=merged,
            merge=finalized.merge,
            conflicts=finalized.paths,
            pull_request=finalized.pull_request,
            issue=self.plan.issue,
        )

    async def _finalize(self, state: LoopState, workspace: Workspace, issue: Issue | None) -> Finalized:
        """Out of the working tree first, then the issue: nothing is closed whose work did not arrive."""
        title, body = self._message(workspace, issue)
        finalizer = Finalizer(self.world, workspace, self.settings.execution.finalize, self.plan.run)
        finalized = await finalizer.finalize(title, body)
        if not finalized.done:
            return finalized
        change = change_on_completion(self.settings.integrations.github, state.closure)
        try:
            await self._change_issue(change, "closure")
        except GenbaError as error:
            reason = f"the issue could not be closed: {error.message}"
            return msgspec.structs.replace(finalized, done=False, reason=reason, hint=error.hint)
        return finalized

    async def _change_issue(self, change: IssueChange, why: str) -> None:
        if change.empty or self.plan.issue is None:
            return
        detail = {"issue": self.plan.issue, "why": why, **msgspec.to_builtins(change)}
        self.world.journal.emit(EffectPlanned(effect="issue", detail=detail))
        await self.world.tracker.change(self.plan.issue, change)
        self.world.journal.emit(EffectDone(effect="issue", detail=detail))

    def _message(self, workspace: Workspace, issue: Issue | None) -> tuple[str, str]:
        name = f"{issue.title} (#{issue.number})" if issue and issue.title else workspace.branch
        trailers = [f"Issue: {issue.number}"] if issue else []
        trailers += [f"Genba-Agent: {self.definition.name}", f"Genba-Run: {self.plan.run}"]
        return f"Merge {name}", "\n".join(trailers) + "\n"


async def _finish(ending: Coroutine[Any, Any, RunResult]) -> RunResult:
    """The end of a run is short and is not cut in two: a wish to stop is heard when it is over."""
    task = asyncio.ensure_future(ending)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    return task.result()


def _not_finalized(finalized: Finalized) -> tuple[Outcome, str, str]:
    outcome = Outcome.BLOCKED if finalized.merge is MergeStatus.CONFLICT else Outcome.INCOMPLETE
    return outcome, finalized.reason, finalized.hint
