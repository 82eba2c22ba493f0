"""What people decide, whichever door they come through: answer, approve, reject; pause, resume, stop; move a task.

Law: a decision is written down and nothing else. The fleet draws the consequences, now or when it works again. Only
people decide: an agent that could approve its own work would judge itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from genba.blackboard.fleet.escalations import asked_again
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.coordination.engine.worker_liveness import absent
from genba.domain.errors import StateConflictError, UsageError
from genba.domain.fleet.records import Escalation, EscalationKind
from genba.domain.tasks.task import Actor, ActorKind, StatusChange, TaskStatus
from genba.domain.views.summary import ActionResult
from genba.judgement.verification.reviews import next_of_review

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext


WORK = "genba work"


def people_only(context: ProjectContext, deed: str) -> Actor:
    """Who types; refused for an agent, whose processes all carry its name."""
    actor = context.actor()
    if actor.kind is not ActorKind.HUMAN:
        raise StateConflictError(
            f"an agent may not {deed}",
            unchanged="nothing was changed.",
            hint='genba task comment NUMBER "…"   tells a person what you need',
        )
    return actor


_APPROVED = {
    EscalationKind.QUESTION: "its question",
    EscalationKind.ATTEMPTS: "another attempt",
    EscalationKind.CONFLICT: "another attempt to merge",
    EscalationKind.FAILED: "another attempt to merge",
    EscalationKind.REVIEW: "its commit",
    EscalationKind.BUDGET: "a larger budget",
    EscalationKind.PLAN: "its plan",
    EscalationKind.STOPPED: "its next session",
}
"""What a person approves, by kind of decision."""


class Decisions:
    """The decisions of a person in one project. Each call is one write, and can be repeated."""

    def __init__(self, context: ProjectContext, actor: Actor) -> None:
        self.context = context
        self.actor = actor
        self._fleet: FleetBoard | None = None

    @property
    def board(self) -> FleetBoard:
        """The blackboard as a fleet uses it. It is not made by deciding something."""
        if self._fleet is None:
            self._fleet = FleetBoard(self.context.board(make=False))
        return self._fleet

    # ── pause, resume, stop ──────────────────────────────────────────────────────────────────────────────────────────

    def pause(self, number: int | None = None) -> ActionResult:
        """Start nothing new, while running sessions continue; or hold one task and suspend its session."""
        if number is None:
            self.board.pause_project(True, self.actor)
            return ActionResult(sentence="paused: nothing new begins; what runs now goes on", hint="genba resume")
        self.board.hold(number, True, self.actor)
        message = f"#{number} is paused: its session is suspended, and no agent starts or continues it"
        return ActionResult(sentence=message, hint=f"genba resume {number}")

    def resume(self, number: int | None = None) -> ActionResult:
        """Let the project, or one task, go on after a pause or a stop."""
        if number is None:
            self.board.pause_project(False, self.actor)
            self.board.stop_all(False, self.actor)
            return ActionResult(sentence="the project goes on", hint=onward(self.board))
        self.board.hold(number, False, self.actor)
        asked = open_one(self.board, number)
        if asked is not None and asked.kind is EscalationKind.STOPPED:
            self.board.decide(number, True, "resumed", self.actor, asked.id)
            asked = open_one(self.board, number)
        waits = f"genba decisions show {number}   waits for you"
        return ActionResult(sentence=f"#{number} goes on", hint=waits if asked is not None else onward(self.board))

    def stop(self, number: int | None = None, reason: str = "") -> ActionResult:
        """Suspend what runs now: all of it, and every `genba work` ends; or one task, until a person decides."""
        if number is None:
            self.board.stop_all(True, self.actor)
            message = "stopping: every genba work suspends its sessions and ends; branches and commits stay"
            return ActionResult(sentence=message, hint="genba resume   then  genba work")
        task = self.board.board.get(number)
        self.board.hold(number, True, self.actor)
        asked = reason or f"stopped by {self.actor.name}"
        self.board.escalate(Escalation(task=number, kind=EscalationKind.STOPPED, question=asked), None)
        message = f"#{number} is stopped: its session is suspended; its branch and its commits stay"
        return ActionResult(sentence=message, hint=f"genba resume {task.number}")

    # ── what waits for people ────────────────────────────────────────────────────────────────────────────────────────

    def answer(self, number: int, text: str, asked: int | None = None) -> ActionResult:
        """Answer what a task waits for. Its session goes on with the answer. `asked`: the question that was read."""
        text = required_text(text, f'genba answer {number} "…"')
        found = the_one(self.board, number, "an answer", asked)
        self.board.answer(number, text, self.actor, found.id)
        return ActionResult(sentence=f"#{number} is answered", hint=onward(self.board))

    def approve(
        self, number: int, commit: str | None = None, reason: str = "", asked: int | None = None
    ) -> ActionResult:
        """Approve what a task waits for. Without an open decision, the verified commit of a task in review is approved.

        `asked`: what was read, and nothing else.
        """
        found = open_one(self.board, number) if asked is None else the_one(self.board, number, "a decision", asked)
        if found is not None:
            _check_commit(found, commit)
            self.board.decide(number, True, reason, self.actor, found.id)
            return ActionResult(sentence=f"#{number} is approved: {_APPROVED[found.kind]}", hint=self._onward(found))
        self.board.board.approve(number, _verified_commit(self.board.board, number, commit), self.actor)
        return ActionResult(sentence=f"#{number} is approved: its commit", hint=self._after_review(number))

    def reject(self, number: int, reason: str, asked: int | None = None) -> ActionResult:
        """Say no to what a task waits for, and why. The reason goes back to the author or the planner.

        Without an open decision, changes are requested of the verified commit of a task in review.
        """
        reason = required_text(reason, f'genba reject {number} --reason "…"')
        if asked is None and open_one(self.board, number) is None and self.board.board.commit_in_review(number):
            commit = _verified_commit(self.board.board, number, None)
            self.board.board.reject(number, commit, reason, self.actor)
            return ActionResult(sentence=f"#{number} is rejected: its commit", hint=self._after_review(number))
        found = the_one(self.board, number, "a decision", asked)
        kind = found.kind
        self.board.decide(number, False, reason, self.actor, found.id)
        goes_on = kind in (EscalationKind.REVIEW, EscalationKind.PLAN)
        other = f"genba task cancel {number}   or let it go on: genba task unblock {number}"
        stays = "" if goes_on else ", and stays as it is"
        message = f"#{number} is rejected: {_APPROVED[kind]}{stays}"
        return ActionResult(sentence=message, hint=self._onward(found) if goes_on else other)

    def _onward(self, found: Escalation) -> str:
        return self._after_review(found.task) if found.kind is EscalationKind.REVIEW else onward(self.board)

    def _after_review(self, number: int) -> str:
        """The command that goes on with a task whose commit was judged."""
        command = onward_after_review(self.context, number)
        return onward(self.board) if command == WORK else command

    # ── one task ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def comment(self, number: int, text: str) -> ActionResult:
        self.board.board.comment(number, required_text(text, f'genba task comment {number} "…"'), self.actor)
        return ActionResult(sentence=f"#{number} has your comment", hint=f"genba task show {number}")

    def move(
        self, number: int, to: TaskStatus, reason: str = "", only_from: tuple[TaskStatus, ...] = tuple(TaskStatus)
    ) -> ActionResult:
        """Change the status of a task by hand, through the one gateway."""
        board = self.context.board(make=False)
        before = board.get(number)
        if before.status not in only_from:
            words = " or ".join(only_from)
            in_review = before.status is TaskStatus.REVIEW
            raise StateConflictError(
                f"task #{number} is {before.status}, not {words}",
                unchanged="nothing was changed.",
                hint=next_of_review(before)[1] if in_review else f"genba task show {number}",
            )
        change = StatusChange(to=to, actor=self.actor, reason=reason, version=before.version)
        after = board.change_status(number, change)
        return ActionResult(sentence=f"#{number} is {after.status}", hint=f"genba task show {number}")


def onward_after_review(context: ProjectContext, number: int) -> str:
    """The command that goes on with a task once its commit was judged: the session itself, or the fleet."""
    sessions = FleetBoard(context.board(make=False)).sessions(number)
    run = "" if any(each.status == "waiting" for each in sessions) else context.session_of(number)
    return f"genba run --resume {run}" if run else WORK


def waiting(board: FleetBoard, number: int) -> list[Escalation]:
    """What waits for a decision about a task, oldest first. A review stands for the task that it reviews."""
    task, found = board.board.get(number), board.escalations()
    own = [each for each in found if each.task == number]
    return own or [each for each in found if each.task == task.review_of]


def open_one(board: FleetBoard, number: int) -> Escalation | None:
    """The one that is decided next: the newest."""
    found = waiting(board, number)
    return found[-1] if found else None


def the_one(board: FleetBoard, number: int, what: str, asked: int | None = None) -> Escalation:
    """The same; refused where nothing waits, or something else than what was asked."""
    found = open_one(board, number)
    if found is None:
        raise StateConflictError(
            f"nothing about task #{number} waits for {what}", unchanged="nothing was changed.", hint="genba decisions"
        )
    if asked is not None and asked != found.id:
        raise asked_again(found)
    return found


def onward(board: FleetBoard) -> str:
    """The command to continue with, where no fleet runs."""
    gone = absent(board)
    return "" if any(each.id not in gone for each in board.executors()) else "genba work   goes on with it"


def required_text(text: str, hint: str) -> str:
    """The text without control characters. Raises UsageError where it is empty."""
    whole = text.replace("\0", "").encode("utf-8", "replace").decode().strip()
    if not whole:
        raise UsageError("the text is empty", unchanged="nothing was changed.", hint=hint)
    return whole


def _check_commit(escalation: Escalation, commit: str | None) -> None:
    """Who names a commit means that one and no other."""
    if commit is not None and not (escalation.commit and escalation.commit.startswith(commit.lower())):
        asked = f"that is {escalation.commit[:12]}" if escalation.commit else "it is about no commit"
        raise StateConflictError(
            f"{commit[:40]} is not what is to be approved: {asked}",
            unchanged="nothing was changed.",
            hint=f"genba decisions show {escalation.task}",
        )


def _verified_commit(board: Blackboard, number: int, commit: str | None) -> str:
    """The commit of a task in review that a person can approve without anybody having asked for it."""
    last = board.last_verification(number)
    verified = last.subject.commit if last is not None and last.done else ""
    status = board.get(number).status
    if status is not TaskStatus.REVIEW or not verified:
        raise StateConflictError(
            f"task #{number} is {status}: there is nothing to approve",
            unchanged="nothing was changed.",
            hint=f"genba task show {number}",
        )
    if commit is not None and not verified.startswith(commit.lower()):
        raise StateConflictError(
            f"{commit[:40]} is not what was verified: that is {verified[:12]}",
            unchanged="nothing was changed.",
            hint=f"git show {verified[:12]}",
        )
    return verified
