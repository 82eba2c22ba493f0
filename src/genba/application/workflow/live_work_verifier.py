"""The desk of a fleet: looks at the work of instances that it started, while they live.

Calls come in on the loop of the server; the work of a run is looked at on the loop of the run, one claim at a time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from genba.application.verification.claims import evidence_of, judge_claim, tip_of
from genba.application.verification.policies import policy_resolver
from genba.coordination.workflow.work_verifier import VerificationResult, WorkLocation
from genba.domain.errors import StateConflictError
from genba.domain.goals.verification import Subject
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.workflow.actions import AgentConnection, ErrorCode, Evidence, Hierarchy, WorkflowError

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext
    from genba.domain.tasks.task import Task
    from genba.execution.session import Session
    from genba.execution.session_progress import SessionProgress

T = TypeVar("T")


class LiveSegment(Protocol):
    """A segment of a session that is under way in this process."""

    @property
    def session(self) -> Session: ...

    @property
    def progress(self) -> SessionProgress: ...

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...


FindPart = Callable[[str], LiveSegment | None]
"""By run: the part of it that is under way in this process."""

_MOST_NAMED = 5
_PATIENCE_SECONDS = 20.0
"""Less than the clients of agents wait for an answer."""
_LOOK_AGAIN_SECONDS = 0.05


class Landing(msgspec.Struct, frozen=True):
    """Where the parts of a task come together, and where the task lands."""

    branch: str
    base_branch: str


class LiveWorkVerifier:
    """Verifies by git alone."""

    def __init__(
        self,
        context: ProjectContext,
        part_of: FindPart,
        landing: Callable[[int], Awaitable[Landing]],
        patience: float = _PATIENCE_SECONDS,
        leaving: Callable[[], bool] = lambda: False,
    ) -> None:
        self.context = context
        self.part_of = part_of
        self.landing = landing
        self.patience = patience
        """Seconds in which a part that is not under way may begin."""
        self.leaving = leaving
        """Whether no part begins here any more."""

    async def place(self, connection: AgentConnection) -> WorkLocation:
        live = await self._live(connection)
        return await _on_its_loop(live, self._place(connection, live.session))

    async def judge(self, connection: AgentConnection) -> VerificationResult:
        live = await self._live(connection)
        judge = self._judge_parts if connection.hierarchy is Hierarchy.MANAGER else self._judge_work
        return await _on_its_loop(live, judge(connection, live.session))

    async def judge_subtask(self, connection: AgentConnection, number: int) -> VerificationResult:
        live = await self._live(connection)
        return await _on_its_loop(live, self._judge_step(connection, live.session, number))

    async def take(self, connection: AgentConnection, number: int) -> AgentConnection:
        raise _not_for_external_agents(connection, number)

    async def hand_over(self, connection: AgentConnection, commit: str) -> None:
        """The run of the instance does that, when the instance has ended."""

    async def let_go(self, connection: AgentConnection, why: str) -> None:
        """So does this."""

    async def _live(self, connection: AgentConnection) -> LiveSegment:
        """The part of an instance, when its working tree is open.

        After a restart the agent may call before its worktree is open: this waits for it.
        """
        deadline = time.monotonic() + self.patience
        while True:
            live = self.part_of(connection.run) if connection.spawned else None
            if live is not None and live.progress.workspace is not None:
                return live
            if self.leaving() or time.monotonic() >= deadline:
                break
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        message = "no process here runs this session now" if live is None else "its working tree is not there yet"
        raise WorkflowError(ErrorCode.CONFLICT, message, hint="call it again in a few seconds", action="retry")

    async def _place(self, connection: AgentConnection, session: Session) -> WorkLocation:
        if connection.hierarchy is Hierarchy.MANAGER:
            landing = await self.landing(_task(connection))
            task = await self._read(_task(connection))
            policy = await policy_resolver(self.context).freeze(
                await tip_of(self.context, landing.base_branch), landing.base_branch, task
            )
            return WorkLocation(
                branch=landing.branch,
                base_branch=landing.base_branch,
                note=session.progress.notes(),
                goals=_lines(policy.described(self.context.project.language)),
            )
        workspace = session.progress.workspace
        assert workspace is not None  # noqa: S101  (see _live)
        proof = session.progress.proof
        return WorkLocation(
            branch=workspace.branch,
            base_branch=workspace.base_branch,
            path=workspace.path,
            note=session.progress.notes(),
            goals=_lines(proof.policy.described(self.context.project.language)) if proof is not None else (),
        )

    async def _judge_work(self, connection: AgentConnection, session: Session) -> VerificationResult:
        proved = await session.progress.claim()
        if proved.red is None:
            return VerificationResult(done=True, commit=proved.commit)
        if proved.red.status is CheckStatus.ERROR:
            raise StateConflictError(f"the work could not be verified: {proved.red.detail}")
        proof = session.progress.proof
        last = proof.last if proof is not None else None
        if last is not None and not last.done and last.subject.commit == proved.commit:
            return VerificationResult(done=False, commit=proved.commit, evidence=evidence_of(last, _task(connection)))
        return VerificationResult(
            done=False, commit=proved.commit, evidence=_evidence_for(proved.red, _task(connection), proved.commit)
        )

    async def _judge_step(self, connection: AgentConnection, session: Session, number: int) -> VerificationResult:
        """A step of a plan, on the newest commit of the branch that all steps are made on."""
        async with session.progress.claiming:
            workspace = session.progress.workspace
            assert workspace is not None  # noqa: S101  (see _live)
            seen = await session.context.git.trees.observe(workspace)
            subject = Subject(
                commit=seen.head,
                base=workspace.base,
                branch=workspace.branch,
                base_branch=workspace.base_branch,
                strayed=seen.strayed,
            )
            if seen.dirty:
                message = f"not everything is committed: {', '.join(seen.dirty[:_MOST_NAMED])}"
                return VerificationResult(done=False, commit=seen.head, evidence=Evidence(task=number, summary=message))
            step = await self._read(number)
            return await judge_claim(
                self.context, step, subject, run=connection.run, agent=connection.agent, own_goals=True
            )

    async def _judge_parts(self, connection: AgentConnection, session: Session) -> VerificationResult:
        """What the parts of a manager's task have come to, on the branch that they were merged into."""
        async with session.progress.claiming:
            landing = await self.landing(_task(connection))
            commit, base = await tip_of(self.context, landing.branch), await tip_of(self.context, landing.base_branch)
            fork = await self.context.ports.repository.history().fork_point(base, commit)
            subject = Subject(commit=commit, base=fork or base, branch=landing.branch, base_branch=landing.base_branch)
            task = await self._read(_task(connection))
            emit = session.context.journal.emit
            return await judge_claim(self.context, task, subject, run=connection.run, agent=connection.agent, emit=emit)

    async def _read(self, number: int) -> Task:
        return await asyncio.to_thread(self.context.board().get, number)


async def _on_its_loop(live: LiveSegment, work: Coroutine[Any, Any, T]) -> T:
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, live.loop))


def _lines(goals: str) -> tuple[str, ...]:
    return tuple(line.removeprefix("- ") for line in goals.splitlines())


def _task(connection: AgentConnection) -> int:
    if connection.task is None:
        raise WorkflowError(ErrorCode.OUT_OF_ORDER, "you have no task", hint="call get_next_action")
    return connection.task


def _evidence_for(red: CheckResult, task: int, commit: str) -> Evidence:
    return Evidence(task=task, commit=commit, verdict=red.name, summary=red.detail, output=red.output)


def _not_for_external_agents(connection: AgentConnection, number: int) -> WorkflowError:
    message = f"{connection.agent} was started for its own task, and cannot take #{number}"
    return WorkflowError(ErrorCode.FORBIDDEN, message, hint="call get_next_action")
