"""Claims: that a task is completed, or that it cannot go on.

No claim is believed. A claim starts a verification, and only its result counts.
"""

from genba.coordination.workflow.answers import BlockReported, ClaimResult
from genba.coordination.workflow.boards import Boards, actor_of, refused
from genba.coordination.workflow.claims import Claims
from genba.coordination.workflow.external_tasks import ExternalTasks
from genba.coordination.workflow.work_verifier import WorkVerifier
from genba.domain.errors import GenbaError
from genba.domain.fleet.records import Escalation, EscalationKind
from genba.domain.tasks.task import Blocker, BlockerKind
from genba.domain.workflow.actions import (
    AgentConnection,
    ErrorCode,
    ExitReason,
    Hierarchy,
    Note,
    Phase,
    Tool,
    WorkflowError,
)

LONGEST_REASON, LONGEST_SUMMARY = 4_000, 10_000


class Reports:
    def __init__(self, boards: Boards, desk: WorkVerifier, taking: ExternalTasks, claims: Claims) -> None:
        self._boards = boards
        self._board = boards.board
        self._desk = desk
        self._taking = taking
        self._claims = claims

    async def completed(self, connection: AgentConnection, summary: str) -> ClaimResult:
        held(summary, LONGEST_SUMMARY, "summary", empty=True)
        number = await self._boards.task_of(connection)
        name = f"{connection.id}:{number}"
        if not self._claims.is_running(name):
            await self._boards.permitted(connection, Tool.REPORT_COMPLETED)
        return await self._claims.settled(name, lambda: self._judged(connection, number, summary))

    async def blocked(self, connection: AgentConnection, reason: str, number: int | None) -> BlockReported:
        held(reason, LONGEST_REASON, "reason")
        _, task = await self._boards.permitted(connection, Tool.REPORT_BLOCKED)
        about = task if number is None or number == task.number else await self._boards.child(connection, number)
        if about is not task and connection.hierarchy is Hierarchy.MANAGER:
            await self._boards.write(
                lambda: self._board.ask_human(about.number, reason, run=connection.run, actor=actor_of(connection)),
                ErrorCode.INVALID_TRANSITION,
            )
            return BlockReported(task=about.number, reason=reason)
        message = reason if about is task else f"subtask #{about.number}: {reason}"
        if connection.spawned:
            await self._boards.write(lambda: self._board.stop_instance(connection.id, ExitReason.BLOCKED, message))
        else:
            await self._ask(connection, task.number, message)
        return BlockReported(task=task.number, reason=message)

    async def _judged(self, connection: AgentConnection, task: int, summary: str) -> ClaimResult:
        if summary.strip():
            note = Note(progress=plain(summary))
            await self._boards.write(lambda: self._board.save_note(task, connection.run, connection.agent, note))
        try:
            judged = await self._desk.judge(connection)
            if not judged.done:
                return ClaimResult(
                    verified=False, commit=judged.commit, evidence=self._boards.in_language(judged.evidence)
                )
            # Handed over first: after a death in between no task counts as done without its work.
            await self._desk.hand_over(connection, judged.commit)
            await self._boards.write(lambda: self._board.mark(task, connection.run, connection.agent, Phase.COMPLETED))
        except GenbaError as error:
            raise refused(error) from error
        return ClaimResult(verified=True, commit=judged.commit)

    async def _ask(self, connection: AgentConnection, task: int, reason: str) -> None:
        """An external agent cannot go on: its task waits for a person, and no process of Genba reports that for it."""
        question = Escalation(task=task, kind=EscalationKind.QUESTION, question=reason, run=connection.run)
        blocker = Blocker(BlockerKind.NEEDS_INPUT, reason)
        await self._boards.write(lambda: self._boards.fleet.escalate(question, blocker))
        await self._boards.write(lambda: self._board.stop_instance(connection.id, ExitReason.BLOCKED, reason))
        await self._taking.let_go(connection, reason)


def held(text: str, most: int, what: str, *, empty: bool = False) -> None:
    """Refuse a text that is too long, or that is not there."""
    if not empty and not text.strip():
        raise WorkflowError(ErrorCode.VALIDATION, f"{what} is empty", hint="say it in a sentence or two")
    if len(text) > most:
        raise WorkflowError(
            ErrorCode.VALIDATION,
            f"{what} has {len(text)} characters, and at most {most} are kept",
            hint="make it shorter",
        )


def plain(text: str) -> str:
    """A text of an agent, which never looks like a phase: those are written by the service alone."""
    return f" {text}" if text.startswith("workflow:") else text
