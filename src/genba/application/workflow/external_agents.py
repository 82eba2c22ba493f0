"""External agents: agents that connect by themselves, such as a user's own Claude Code.

An external agent works in its own worktree on its own branch, in a session like any other. Genba cannot prompt it, so
only its lease shows that it is alive. When it leaves, its work stays on its branch and its task is open again.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from genba.application.sessions.branches import base_branch_of, branch_of
from genba.application.sessions.host import host_name
from genba.application.sessions.preflight import preflight
from genba.application.verification.claims import judge_claim, tip_of
from genba.application.verification.policies import policy_resolver
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.fleet.session_ledger import SessionRecorder
from genba.coordination.scheduler.handover_notes import leave_note, note_for
from genba.coordination.scheduler.orchestrator import run_id
from genba.coordination.scheduler.session import let_go
from genba.coordination.scheduler.session_plan import SegmentState, SessionPlan, write_state
from genba.coordination.workflow.boards import refused
from genba.coordination.workflow.work_verifier import VerificationResult, WorkLocation
from genba.definitions.agent.layers import Layer
from genba.domain.decoding import reader
from genba.domain.errors import DiskFullError, GenbaError, NotFoundError, StateConflictError, UnavailableError
from genba.domain.fleet.records import BranchHandover, FleetSnapshot, Purpose, SegmentEnd, SegmentOrder, WaitsFor
from genba.domain.goals.verification import Subject
from genba.domain.sessions.loop_state import LoopState
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.session import SessionStart
from genba.domain.sessions.workspaces import Workspace, WorkspaceRequest
from genba.domain.tasks.task import Actor, ActorKind, StatusChange, Task, TaskStatus
from genba.domain.workflow.actions import AgentConnection, ErrorCode, Evidence, Hierarchy, WorkflowError

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext
    from genba.definitions.agent.definition import AgentDefinition

_STAND_IN = "iterator"
_NEVER_ASKED: dict[str, Any] = {
    "runner": {
        "adapter": {"type": "custom", "command": "false"},
        "integrations": {"github": {"enabled": False}},
        "execution": {"finalize": {"autoMerge": True, "push": False, "createPr": False}},
    }
}
"""What lands for an external agent is brought home by a definition that is never asked anything."""


class ExternalAgentVerifier:
    """Gives external agents a place, and looks at what they made of it."""

    def __init__(self, context: ProjectContext) -> None:
        self.context = context
        self.board = FleetBoard(context.board())
        self.trees = context.ports.repository.worktrees()

    # ── taking a task ────────────────────────────────────────────────────────────────────────────────────────────────

    async def take(self, connection: AgentConnection, number: int) -> AgentConnection:
        try:
            return await self._take(connection, number)
        except GenbaError as error:
            raise refused(error) from error

    async def _take(self, connection: AgentConnection, number: int) -> AgentConnection:
        field = await asyncio.to_thread(self.board.field)
        task = field.tasks.get(number)
        if task is None:
            raise NotFoundError(f"there is no task #{number}")
        for session in field.sessions:
            if session.task == number and session.status == "running" and session.external:
                if session.agent != connection.agent:
                    raise StateConflictError(f"{session.run} works on #{number}")
                return msgspec.structs.replace(connection, run=session.run, task=number)
        return await self._begin(connection, task, field)

    async def _begin(self, connection: AgentConnection, task: Task, field: FleetSnapshot) -> AgentConnection:
        base = await preflight(self.context)
        purpose = Purpose.MANAGE if connection.hierarchy is Hierarchy.MANAGER else Purpose.WORK
        made = await asyncio.to_thread(self.board.sessions, task.number)
        attempt = max((session.attempt for session in made), default=0) + 1
        run = run_id(self.board.store.project, connection.agent, task.number, attempt, purpose)
        base_branch = await base_branch_of(self.context, base, task, field)
        plan = SessionPlan(
            definition=self._definition(),
            parameters={"issue": task.number},
            project=self.context.project.name,
            branch=branch_of(task, purpose, field),
            base_branch=base_branch,
        )
        order = SegmentOrder(
            run=run, task=task.number, agent=connection.agent, attempt=attempt, purpose=purpose, external=True
        )
        begin = partial(
            self.board.start,
            order,
            executor=connection.id,
            host=host_name(),
            plan=msgspec.json.encode(plan).decode(),
            base_branch=base_branch,
        )
        await asyncio.to_thread(begin)
        taken = msgspec.structs.replace(connection, run=run, task=task.number)
        if purpose is Purpose.WORK:
            try:
                await self._open(taken, task, plan)
            except (UnavailableError, DiskFullError):
                raise  # it has the task all the same, and finds it when it asks again
            except GenbaError as error:
                await self.let_go(taken, error.message)
                raise
        return taken

    def _definition(self) -> AgentDefinition:
        return self.context.registry.load(_STAND_IN, [Layer("an external agent", _NEVER_ASKED)])

    async def _open(self, connection: AgentConnection, task: Task, plan: SessionPlan) -> Workspace:
        """A working tree. It is kept for an agent that comes back; its branch is not locked in between."""
        workspace = await self._tree(connection.run, connection.agent, task, plan)
        start = _start_in(workspace, connection.agent)
        await SessionRecorder(self.board.board).begin(task.number, start, lambda _older: False)
        return workspace

    async def _tree(self, run: str, agent: str, task: Task, plan: SessionPlan) -> Workspace:
        request = WorkspaceRequest(
            run=run,
            agent=agent,
            root=plan.definition.file.runner.execution.worktree.root,
            isolated=True,
            branch=plan.branch,
            base_branch=plan.base_branch,
            issue=task.number,
            issue_title=task.title,
        )
        workspace = await self.trees.open(request)
        self.trees.let_go(workspace.branch)
        return workspace

    async def _workspace(self, connection: AgentConnection) -> tuple[Task, SessionPlan, Workspace]:
        number = self._bound(connection)
        task = await asyncio.to_thread(self.board.board.get, number)
        plan = reader(SessionPlan).decode(await asyncio.to_thread(self.board.plan_of, connection.run))
        return task, plan, await self._open(connection, task, plan)

    def _bound(self, connection: AgentConnection) -> int:
        if connection.spawned or connection.task is None or not connection.run:
            raise WorkflowError(ErrorCode.FORBIDDEN, "this is for agents that came by themselves, and have a task")
        return connection.task

    # ── the place, and what is in it ─────────────────────────────────────────────────────────────────────────────────

    async def place(self, connection: AgentConnection) -> WorkLocation:
        number = self._bound(connection)
        language = self.context.project.language
        note = await asyncio.to_thread(note_for, self.board, number, language=language)
        if connection.hierarchy is Hierarchy.MANAGER:
            branch, base, base_branch, task = await self._of_manager(connection)
            path = ""
        else:
            task, plan, workspace = await self._workspace(connection)
            branch, base, base_branch, path = workspace.branch, workspace.base, plan.base_branch, workspace.path
        policy = await policy_resolver(self.context).freeze(base, base_branch, task)
        goals = tuple(line.removeprefix("- ") for line in policy.described(language).splitlines())
        return WorkLocation(branch=branch, base_branch=base_branch, path=path, note=note, goals=goals)

    async def judge(self, connection: AgentConnection) -> VerificationResult:
        if connection.hierarchy is Hierarchy.MANAGER:
            branch, base, base_branch, task = await self._of_manager(connection)
            subject = Subject(
                commit=await tip_of(self.context, branch), base=base, branch=branch, base_branch=base_branch
            )
            return await judge_claim(self.context, task, subject, run=connection.run, agent=connection.agent)
        task, _, workspace = await self._workspace(connection)
        return await judge_claim(
            self.context, task, await self._subject(workspace), run=connection.run, agent=connection.agent
        )

    async def judge_subtask(self, connection: AgentConnection, number: int) -> VerificationResult:
        _, _, workspace = await self._workspace(connection)
        step = await asyncio.to_thread(self.board.board.get, number)
        subject = await self._subject(workspace)
        if subject.dirty:
            message = f"these changes are not committed: {', '.join(subject.dirty[:5])}"
            return VerificationResult(
                done=False, commit=subject.commit, evidence=Evidence(task=number, summary=message)
            )
        return await judge_claim(
            self.context, step, subject, run=connection.run, agent=connection.agent, own_goals=True
        )

    async def _subject(self, workspace: Workspace) -> Subject:
        seen = await self.trees.observe(workspace)
        return Subject(
            commit=seen.head,
            base=workspace.base,
            branch=workspace.branch,
            base_branch=workspace.base_branch,
            dirty=seen.dirty,
            strayed=seen.strayed,
        )

    async def _of_manager(self, connection: AgentConnection) -> tuple[str, str, str, Task]:
        """The branch that the parts of its task are merged into, where that begins and lands, and the task."""
        field = await asyncio.to_thread(self.board.field)
        task = field.tasks.get(self._bound(connection))
        if task is None:
            raise NotFoundError(f"there is no task #{connection.task}")
        base = await preflight(self.context)
        above = await base_branch_of(self.context, base, task, field)
        branch = branch_of(task, Purpose.INTEGRATE, field)
        if await self.context.layout.git.commit_of(f"refs/heads/{branch}") is None:
            branch = above
        fork = await self.context.layout.git.run("merge-base", await tip_of(self.context, above), branch, allow=(0, 1))
        return branch, fork.stdout.strip() or await tip_of(self.context, above), above, task

    # ── leaving ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def hand_over(self, connection: AgentConnection, commit: str) -> None:
        number = self._bound(connection)
        if (await asyncio.to_thread(self.board.session, connection.run)).status != "running":
            return  # it was handed over before
        if connection.hierarchy is Hierarchy.MANAGER:
            await self._hand_over_branch(connection, number, commit)
            return
        task, plan, workspace = await self._workspace(connection)
        actor = Actor(ActorKind.ORCHESTRATOR, connection.run)
        change = StatusChange(to=TaskStatus.REVIEW, actor=actor, commit=commit, session=connection.run)
        end = SegmentEnd(
            run=connection.run, part=1, waits_for=WaitsFor.REVIEW, verified=commit, state=_verified(plan, workspace)
        )
        moved = change if task.status is TaskStatus.IN_PROGRESS else None
        await asyncio.to_thread(self.board.move_and_end, number, moved, end)

    async def _hand_over_branch(self, connection: AgentConnection, number: int, commit: str) -> None:
        """A manager has no worktree: a session of its own brings the branch of its subtasks home."""
        field = await asyncio.to_thread(self.board.field)
        task, project = field.tasks[number], self.board.store.project
        made = await asyncio.to_thread(self.board.sessions, number)
        attempt = max(session.attempt for session in made) + 1
        run = run_id(project, connection.agent, number, attempt, Purpose.INTEGRATE)
        own = reader(SessionPlan).decode(await asyncio.to_thread(self.board.plan_of, connection.run))
        plan = msgspec.structs.replace(own, branch=branch_of(task, Purpose.INTEGRATE, field))
        workspace = await self._tree(run, connection.agent, task, plan)
        given = BranchHandover(
            manager=connection.run,
            order=SegmentOrder(
                run=run, task=number, agent=connection.agent, attempt=attempt, purpose=Purpose.INTEGRATE, external=True
            ),
            start=_start_in(workspace, connection.agent),
            executor=connection.id,
            commit=commit,
            plan=msgspec.json.encode(plan).decode(),
            base_branch=plan.base_branch,
            state=_verified(plan, workspace),
        )
        await asyncio.to_thread(self.board.hand_over_branch, given)

    async def let_go(self, connection: AgentConnection, why: str) -> None:
        if connection.spawned or connection.task is None or not connection.run:
            return
        await asyncio.to_thread(self._end, connection, Outcome.INCOMPLETE, why or "its agent has left")
        await asyncio.to_thread(leave_note, self.board, connection.task, connection.run)

    def _end(self, connection: AgentConnection, outcome: Outcome, reason: str) -> None:
        """The session is over, and its task is free. One that was handed over already is left as it is."""
        assert connection.task is not None  # noqa: S101  (seen by who calls)
        session = self.board.session(connection.run)
        if session.status != "running" or not session.external:
            return
        let_go(self.board, connection.task, connection.run, reason)
        self.board.end_part(SegmentEnd(run=connection.run, part=session.part, outcome=outcome, reason=reason))


def _start_in(workspace: Workspace, agent: str) -> SessionStart:
    return SessionStart(
        run=workspace.run,
        agent=agent,
        branch=workspace.branch,
        base=workspace.base,
        workdir=workspace.path,
        host=host_name(),
    )


def _verified(plan: SessionPlan, workspace: Workspace) -> str:
    """The state of a session that has nothing left to ask: its work is verified."""
    loop = LoopState(step=plan.definition.entry_step(None)).end(Outcome.COMPLETED, "its claim was verified")
    return write_state(SegmentState(loop=loop, workspace=workspace))
