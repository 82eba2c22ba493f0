"""Sets a session up, until its first question. What is refused here leaves nothing behind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from genba.domain.errors import ConfigurationError, GenbaError, NotFoundError
from genba.domain.events import Notice, RunResumed, RunStarted
from genba.domain.problems import Problem
from genba.domain.processes import claim_mark, service_mark
from genba.domain.sessions.loop_state import CONFLICT, Feedback
from genba.domain.sessions.trailers import trailers
from genba.domain.sessions.workspaces import Workspace, WorkspaceRequest
from genba.domain.tracker.issues import Issue
from genba.execution.delivery.issue_updates import IssueKeeper
from genba.execution.loop.journal_steps import GroundlessSteps
from genba.execution.run_values import Opened, RunPlan
from genba.execution.session_context import SessionContext

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from genba.domain.ports import Rework, Steps
    from genba.domain.tasks.task import Task
    from genba.execution.delivery.task_updates import TaskKeeper
    from genba.execution.verification.policy import BaseRules, Policy, PolicyResolver
    from genba.execution.verification.session_verification import Proof


class ReadySession(msgspec.Struct, frozen=True, kw_only=True):
    """A session that is set up."""

    opened: Opened
    workspace: Workspace
    steps: Steps
    proof: Proof | None
    """Verifies the work, where a task or the Definition of Done asks for it."""


class SessionSetup:
    """Opens the workspace and takes the task: for the first time, or after another process has died."""

    def __init__(
        self,
        plan: RunPlan,
        context: SessionContext,
        issues: IssueKeeper,
        tasks: TaskKeeper | None,
        claiming: asyncio.Lock,
    ) -> None:
        self.plan = plan
        self.context = context
        self.definition = plan.definition
        self.settings = plan.definition.file.runner
        self.issues = issues
        self.tasks = tasks
        self.claiming = claiming
        self._opened_here = False
        self._proof: Proof | None = None

    async def enter(self) -> ReadySession:
        """Open the session, or go on with what another process has opened."""
        steps = self.context.steps
        opened = await steps.run("open", self._open, Opened)
        workspace = opened.workspace
        if not self._opened_here:
            workspace, steps = await self._open_again(opened, steps)
        return ReadySession(opened=opened, workspace=workspace, steps=steps, proof=self._proof)

    async def _open(self) -> Opened:
        resumed = self.plan.workspace is not None
        issue, requirements = await self.issues.read(resumed)
        task = await self.tasks.check(resumed) if self.tasks is not None else await self._read_task()
        await self._check_remote()
        workspace = await self._workspace(issue)
        self._proof, gap = await self._claim(workspace, task, fresh=not resumed)
        workspace, conflicts = await self._with_what_others_did(workspace, self.plan.gap or gap)
        await self._tell_start(workspace, issue)
        self._opened_here = True
        return Opened(
            workspace=workspace,
            issue=issue,
            requirements=requirements,
            gap=gap,
            conflicts=conflicts,
            reviewed=self.tasks.reviewed if self.tasks is not None else "",
        )

    async def _open_again(self, opened: Opened, steps: Steps) -> tuple[Workspace, Steps]:
        """Go on where a process has died that had opened all this. Without its worktree only delivery is left."""
        workspace = opened.workspace
        if not self.plan.delivered:
            try:
                workspace = await self.context.git.trees.reopen(workspace)
            except NotFoundError as gone:  # who delivered may have taken it away before they died
                steps = GroundlessSteps(steps, gone)
            await self.sweep(self.plan.run)
        task = await self.tasks.look() if self.tasks is not None else await self._read_task()
        self._proof, _ = await self._claim(workspace, task, fresh=False)
        self.context.journal.emit(RunResumed(process=self.plan.process, commits=self.plan.commits))
        return workspace, steps

    def _policies(
        self, policies: PolicyResolver, first: BaseRules, base_branch: str
    ) -> Callable[[str], Awaitable[Policy]]:
        """What work over a base is held to now: the goals of the task may be edited, and the base may move."""
        known = {first.base: first}

        async def policy_of(base: str) -> Policy:
            if base not in known:
                known[base] = await policies.read(base, base_branch)
            task = await self.tasks.look() if self.tasks is not None else await self._read_task()
            return known[base].policy(task, self.plan.may_change)

        return policy_of

    async def _read_task(self) -> Task | None:
        """The task of a session that does not claim it: its goals apply all the same."""
        if self.context.task is None or self.plan.issue is None:
            return None
        return await self.context.task.ledger.look(self.plan.issue)

    async def _claim(
        self, workspace: Workspace, task: Task | None, fresh: bool
    ) -> tuple[Proof | None, Feedback | None]:
        """Freeze what the work is held to, and take the task. A refusal leaves no new worktree behind.

        Returns what verifies the work, and the feedback that the attempt before has left open.
        """
        try:
            proof = await self._proof_of(workspace, task)
            if self.tasks is None or (self.plan.delivered and task is not None and task.has_let_go_of(self.plan.run)):
                return proof, None
            return proof, await self.tasks.begin(workspace, self.plan.process)
        except GenbaError:
            if fresh and not workspace.taken_from:
                await self.context.git.trees.close(workspace)
            raise

    async def _proof_of(self, workspace: Workspace, task: Task | None) -> Proof | None:
        verification = self.context.verification
        if verification is None or self.plan.delivered:
            return None
        rules = await verification.policies.read(workspace.base, workspace.base_branch)
        policy = rules.policy(task, self.plan.may_change)
        if task is None and not policy.declared:
            return None
        current = self._policies(verification.policies, rules, workspace.base_branch)
        return verification.proof(self.context, self.definition, policy, self.tasks, current, self.claiming)

    async def _workspace(self, issue: Issue | None) -> Workspace:
        if self.plan.workspace is not None:
            if self.plan.delivered:
                return self.plan.workspace
            workspace = await self.context.git.trees.reopen(self.plan.workspace)
            await self.sweep(self.plan.run)
            return await self._over_its_base(workspace)
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
            only_reads=self.definition.only_reads,
        )
        workspace = await self.context.git.trees.open(request)
        if workspace.taken_from:
            await self.sweep(workspace.taken_from)
        return workspace

    async def _over_its_base(self, workspace: Workspace) -> Workspace:
        """Work that came back goes on from what it would have landed as."""
        if not self.plan.over or self.context.git.rework is None:
            return workspace
        await self._adopt(self.context.git.rework, workspace, self.plan.over, workspace.base_branch)
        return msgspec.structs.replace(workspace, base=self.plan.over)

    async def _with_what_others_did(
        self, workspace: Workspace, gap: Feedback | None
    ) -> tuple[Workspace, tuple[str, ...]]:
        """Work that came back from its pull request goes on from what others pushed to its branch.

        Where it conflicts with its target, that is merged into it. What comes back are the paths with markers in them.
        """
        rework, finalize = self.context.git.rework, self.settings.execution.finalize
        if gap is None or rework is None or not (finalize.create_pr and workspace.isolated) or self.plan.delivered:
            return workspace, ()
        conflicts: tuple[str, ...] = ()
        pushed = await rework.tip(workspace.branch)
        if pushed:
            conflicts += await self._adopt(rework, workspace, pushed, f"what others pushed to {workspace.branch}")
        target = finalize.pr_target or workspace.base_branch
        over = await rework.tip(target) if gap.check == CONFLICT else ""
        if over:
            conflicts += await self._adopt(rework, workspace, over, target)
            workspace = msgspec.structs.replace(workspace, base=over)
        return workspace, conflicts

    async def _adopt(self, rework: Rework, workspace: Workspace, commit: str, what: str) -> tuple[str, ...]:
        """Bring a commit into the branch; returns the paths in conflict."""
        message = f"Merge {what} into {workspace.branch}\n\n"
        message += trailers(self.plan.issue, self.definition.name, self.plan.run)
        adopted = await rework.adopt(workspace, commit, message)
        if adopted.rescued:
            self.context.journal.emit(
                Notice(message=f"work that was not committed is kept: git show {adopted.rescued}")
            )
        return adopted.paths

    async def sweep(self, run: str) -> None:
        """End what a run that died has left: its agent, and a service that one of its goals had started."""
        marks = [run, service_mark(run)]
        if self.definition.state_driven:
            marks += [claim_mark(run), service_mark(claim_mark(run))]
        for mark in marks:
            await self.context.agent.processes.sweep(mark)

    async def _check_remote(self) -> None:
        finalize = self.settings.execution.finalize
        if not (finalize.push or finalize.create_pr) or await self.context.git.repository.has_remote(finalize.remote):
            return
        message = f'there is no remote "{finalize.remote}" to push to'
        problem = Problem("", "runner.execution.finalize.remote", message, "git remote -v   or   --push-remote NAME")
        raise ConfigurationError((problem,))

    async def _tell_start(self, workspace: Workspace, issue: Issue | None) -> None:
        fresh = self.plan.workspace is None
        taken = await self.context.git.trees.observe(workspace) if fresh and workspace.taken_from else None
        started = RunStarted(
            adapter=self.definition.adapter_type or "",
            model=self.definition.shown_model,
            definition=self.definition.digest,
            workspace=workspace,
            project=self.plan.project,
            commits=len(taken.commits) if taken else 0,
            title=issue.title if issue else "",
            parameters=self.plan.parameters,
            limits=msgspec.to_builtins(self.settings.limits) | {"maxIterations": self.definition.iteration_cap},
            process=self.plan.process,
            sandbox=self.context.agent.sandbox.kind,
            network=self.context.agent.sandbox.network,
        )
        if fresh:
            self.context.journal.emit(started)
            if self.context.agent.sandbox.missing:
                self.context.journal.emit(
                    Notice(message=f"the agent runs without a sandbox: {self.context.agent.sandbox.missing}")
                )
            if taken is not None:
                message = f"goes on with what {workspace.taken_from} left on {workspace.branch}"
                self.context.journal.emit(Notice(message=message))
        else:
            resumed = RunResumed(process=self.plan.process, commits=self.plan.commits, started=started)
            self.context.journal.emit(resumed)
