"""The action for a ready task: which session starts on it, or why none does."""

import msgspec

from genba.domain.fleet.records import EscalationKind, FleetSession, Plan, Purpose
from genba.domain.sessions.loop_state import Feedback
from genba.domain.sessions.outcomes import Outcome
from genba.domain.tasks.task import Blocker, BlockerKind, Task, TaskStatus
from genba.domain.timestamps import is_backing_off
from genba.judgement.language.sentences import in_language
from genba.judgement.scheduling import escalations, spending
from genba.judgement.scheduling.actions import (
    Block,
    CreateSubtasks,
    RejectPlan,
    SchedulerAction,
    Start,
    Wait,
    WaitReason,
)
from genba.judgement.scheduling.assignment import (
    Assignment,
    LeftToPerson,
    NoAgent,
    PhaseCompleted,
    assign,
    assign_next,
    named,
    phase_completed_by,
    reviewers,
)
from genba.judgement.scheduling.attempts import Attempt, NoAttemptLeft, next_attempt
from genba.judgement.scheduling.scheduler_view import SchedulerView

_CAME_BACK = (Outcome.ABORTED, Outcome.INCOMPLETE)
"""Outcomes of a session that landed the parts of a task, where only a worker can go on."""


def start_task(at: SchedulerView, task: Task) -> SchedulerAction:
    """The one move for a ready task that no session works on."""
    if task.review_of is not None:
        return _review(at, task)
    if _taken_apart(at, task):
        return _plan(at, task)
    if (completed := _completed_manager(at, task)) is not None:
        return _brought_home(at, task, completed)
    if (manager := at.manager_of(task)) is not None:
        return _try(at, task, Purpose.MANAGE, manager.agent, manager.why)
    parts = at.parts(task)
    if not parts:
        return _assigned(at, task, Purpose.WORK)
    known = [at.field.tasks[number] for number in parts if number in at.field.tasks]
    if len(known) == len(parts) and all(part.status is TaskStatus.CANCELLED for part in known):
        return _all_cancelled(at, task)
    return _assigned(at, task, Purpose.INTEGRATE)


# ── work ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _assigned(at: SchedulerView, task: Task, purpose: Purpose) -> SchedulerAction:
    stages = at.stages(task)
    found = assign_next(task, at.me.agents, at.settings.work.agent, stages)
    if isinstance(found, NoAgent):
        kind = WaitReason.PERSON if isinstance(found, LeftToPerson) else WaitReason.AGENT
        return Wait(task=task.number, kind=kind, why=found.why)
    if isinstance(found, PhaseCompleted):
        return _waits_for_a_person(task, found)
    return _try(at, task, purpose, found.agent, found.why)


def _waits_for_a_person(task: Task, left: PhaseCompleted) -> Wait:
    why = f"{left.why}: say who goes on  {left.command}"
    return Wait(task=task.number, kind=WaitReason.PERSON, why=why)


def _unless_left_open(at: SchedulerView, task: Task, found: Assignment) -> SchedulerAction:
    """The next attempt of this agent; a wait where it completed its phase and the task stayed open."""
    left = phase_completed_by(task, found.agent)
    if left is not None:
        return _waits_for_a_person(task, left)
    return _try(at, task, Purpose.INTEGRATE, found.agent, found.why)


def _try(
    at: SchedulerView, task: Task, purpose: Purpose, first: str, why: str, gap: Feedback | None = None
) -> SchedulerAction:
    failures = at.failures(task.number, purpose)
    manages = first in at.managers
    alike = [agent.name for agent in at.me.agents if agent.manages is manages]
    settings = at.settings.attempts
    if purpose in (Purpose.WORK, Purpose.INTEGRATE) and at.stages(task):  # a stage is its agent's own
        settings = msgspec.structs.replace(settings, alternates=(), per_agent=settings.max)
    found = next_attempt(first, failures, alike, settings)
    if isinstance(found, NoAttemptLeft) and at.is_managed(task):
        return Block(
            task=task.number,
            blocker=Blocker(BlockerKind.FAILED, in_language(at.settings.workflow.language, found.reason)),
        )
    if isinstance(found, NoAttemptLeft):
        return escalations.attempts(at, task, found.reason, failures)
    return _start(at, task, purpose, found, why, gap)


def _start(
    at: SchedulerView, task: Task, purpose: Purpose, chosen: Attempt, why: str, gap: Feedback | None
) -> SchedulerAction:
    if is_backing_off(at.now, chosen.since, chosen.not_before):
        message = f"{chosen.why}; it is tried again in a while"
        return Wait(task=task.number, kind=WaitReason.BACKOFF, why=message, until=chosen.not_before)
    budget = spending.reached(at.field, at.settings, task, chosen.agent)
    if budget is not None and budget.scope == spending.TASK:
        return escalations.budget(at, task, None, budget)
    if budget is not None:
        return Wait(task=task.number, kind=WaitReason.BUDGET, why=budget.text, until=budget.until)
    if other := at.fits_filter(task, chosen.agent):
        return Wait(task=task.number, kind=WaitReason.FILTER, why=other)
    return Start(
        task=task.number,
        agent=chosen.agent,
        purpose=purpose,
        attempt=at.next_attempt(task.number),
        reason=chosen.why or why,
        provider=at.agents[chosen.agent].provider,
        base_branch="" if task.parent is not None else at.settings.merge.base_branch,
        gap=gap,
    )


# ── managers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _brought_home(at: SchedulerView, task: Task, manager: FleetSession) -> SchedulerAction:
    """The parts of a task are there: its manager lands them, and no agent is asked.

    A manager does not work itself: what came back goes to a worker.
    """
    last = at.newest(task.number, Purpose.INTEGRATE)
    came_back = last is not None and last.attempt > manager.attempt and last.outcome in _CAME_BACK
    if manager.agent in at.managers and not came_back:
        return _unless_left_open(at, task, Assignment(manager.agent, "its manager says that its parts are there"))
    worker = _worker_for(at, task)
    if isinstance(worker, NoAgent):
        return Wait(task=task.number, kind=WaitReason.AGENT, why=f"a manager does not work itself, and {worker.why}")
    return _unless_left_open(at, task, worker)


def _worker_for(at: SchedulerView, task: Task) -> Assignment | NoAgent:
    """The worker whom the project names for this task; else one that did a part of it."""
    able = [agent for agent in at.me.agents if not agent.manages]
    worker = assign(msgspec.structs.replace(task, assignee=""), able, at.settings.work.agent, at.stages(task))
    if isinstance(worker, Assignment) or at.stages(task):
        return worker
    names = {agent.name for agent in able}
    parts = [at.field.tasks[number] for number in at.parts(task) if number in at.field.tasks]
    did = (part for part in parts if part.status is TaskStatus.DONE and part.assignee in names)
    part = next(did, None)
    return Assignment(part.assignee, f"it did #{part.number}") if part is not None else worker


def _completed_manager(at: SchedulerView, task: Task) -> FleetSession | None:
    """The session of its manager, where it completed and its parts are as it left them: ended, and one of them done."""
    last = at.newest(task.number, Purpose.MANAGE)
    parts = [at.field.tasks[number] for number in at.parts(task) if number in at.field.tasks]
    ended = all(part.status.ended for part in parts) and any(part.status is TaskStatus.DONE for part in parts)
    return last if last is not None and last.outcome == Outcome.COMPLETED and ended else None


def _all_cancelled(at: SchedulerView, task: Task) -> SchedulerAction:
    why = f"Every part of it was cancelled. Cancel it as well, or add a part: genba task show {task.number}"
    if at.decided(task.number, EscalationKind.STOPPED, parts="cancelled") is not None:
        return Wait(task=task.number, kind=WaitReason.PERSON, why=why)
    return escalations.stopped(at, task, why, blocks=True, parts="cancelled")


# ── plans ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _taken_apart(at: SchedulerView, task: Task) -> bool:
    """Whether a planner comes first: the task says so, or its type or a label does, and it has no parts yet."""
    settings = at.settings.decompose
    if at.parts(task) or at.depth(task) >= settings.max_depth:
        return False
    plan = at.plans.get(task.number)
    if plan is not None and plan.status == "created":
        return False
    return task.decompose or task.type in settings.types or any(label in settings.labels for label in task.labels)


def _plan(at: SchedulerView, task: Task) -> SchedulerAction:
    plan = at.plans.get(task.number)
    if plan is None:
        return _planned(at, task, None)
    if plan.status == "rejected":
        return _again(at, task, plan)
    most = at.settings.decompose.max_parts
    if len(plan.subtasks) > most:
        reason = f"it has {len(plan.subtasks)} parts, and at most {most} are allowed"
        return RejectPlan(plan=plan.id, task=task.number, reason=reason)
    if at.settings.decompose.approval == "auto":
        return CreateSubtasks(plan=plan.id, task=task.number)
    if at.asked(task.number, EscalationKind.PLAN) is not None:
        return Wait(task=task.number, kind=WaitReason.PERSON, why=f"its plan waits  genba approve {task.number}")
    result = at.decided(task.number, EscalationKind.PLAN, plan=plan.id)
    if result is None:
        return escalations.plan(at, task, plan)
    if result.status == "rejected":
        return RejectPlan(plan=plan.id, task=task.number, reason=result.answer or "a person rejected it")
    return CreateSubtasks(plan=plan.id, task=task.number)


def _planned(at: SchedulerView, task: Task, gap: Feedback | None) -> SchedulerAction:
    found = named(at.settings.decompose.agent, at.agents, "decompose.agent")
    if isinstance(found, NoAgent):
        return Wait(task=task.number, kind=WaitReason.AGENT, why=found.why)
    return _try(at, task, Purpose.PLAN, found.agent, "its parts are planned first", gap)


def _again(at: SchedulerView, task: Task, plan: Plan) -> SchedulerAction:
    """A rejected plan is made again with the reason, a bounded number of times, then a person decides."""
    made = [session for session in at.sessions.get(task.number, ()) if session.purpose is Purpose.PLAN]
    attempt = max((session.attempt for session in made), default=1)
    most = at.settings.attempts.max
    granted = at.decided(task.number, EscalationKind.ATTEMPTS, plan=plan.id)
    if attempt >= most and granted is None:
        asked = escalations.attempts(at, task, f"{attempt} plans were made, and the last one was rejected", made)
        asked.escalation.evidence["plan"] = plan.id
        return asked
    result = at.decided(task.number, EscalationKind.PLAN, plan=plan.id)
    reason = result.answer if result is not None and result.answer else "the plan was rejected"
    gap = Feedback(check="plan", detail=reason, output="", claim="", attempt=attempt, max_attempts=max(most, attempt))
    return _planned(at, task, gap)


# ── reviews ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _review(at: SchedulerView, task: Task) -> SchedulerAction:
    """A task that judges a commit of another one. People are asked, agents are started; an author never judges."""
    parent = at.field.tasks.get(task.review_of or 0)
    review = at.review_of.get(task.number)
    if parent is None or parent.status is not TaskStatus.REVIEW:
        return _wait_for_parent(task, "is not in review")
    if parent.approved == task.review_commit:
        return _wait_for_parent(task, "is approved already")
    kind = review.reviewer_type if review is not None else task.reviewer_type
    if kind != "ai" or at.asked(parent.number, EscalationKind.REVIEW) is not None:
        return Wait(task=task.number, kind=WaitReason.PERSON, why=f"a person reviews it  genba approve {parent.number}")
    able = reviewers(task.assignee, at.settings.review.agent, at.me.agents, at.authors(parent.number))
    if not able:
        return _ask_person(
            at, task, parent, "No agent may review it: its authors never do. Is the commit what was wanted?"
        )
    failures = at.failures(task.number, Purpose.REVIEW)
    found = next_attempt(able[0], failures, able, at.settings.attempts)
    if isinstance(found, NoAttemptLeft):
        return _ask_person(
            at, task, parent, f"Its review came to nothing: {found.reason}. Is the commit what was wanted?"
        )
    return _start(at, task, Purpose.REVIEW, found, f"it reviews #{parent.number}", None)


def _ask_person(at: SchedulerView, task: Task, parent: Task, why: str) -> SchedulerAction:
    author = next(iter(at.live(parent.number)), None)
    return escalations.review(at, parent, author, task.review_commit, why, at.review_of.get(task.number))


def _wait_for_parent(task: Task, why: str) -> Wait:
    return Wait(task=task.number, kind=WaitReason.REVIEW, why=f"#{task.review_of} {why}")
