"""What becomes of a session that waits: it goes on, lands, is sent back, asks a person, or waits on.

Between its parts a session holds no worker, so whatever it waits for is read from the field again at every look.
"""

from typing import assert_never

import msgspec

from genba.domain.fleet.records import (
    Cause,
    EntryStatus,
    Escalation,
    EscalationKind,
    FleetSession,
    MergeEntry,
    Purpose,
    Review,
    WaitsFor,
)
from genba.domain.sessions.loop_state import CONFLICT, Feedback
from genba.domain.sessions.outcomes import Outcome
from genba.domain.tasks.task import Task, TaskStatus
from genba.domain.timestamps import hours_between, is_backing_off, is_before, later
from genba.judgement.language.sentences import in_language
from genba.judgement.language.wording import say
from genba.judgement.scheduling import escalations, spending
from genba.judgement.scheduling.actions import (
    AskReview,
    Close,
    Continue,
    EndSession,
    Queue,
    Reopen,
    SchedulerAction,
    Wait,
    WaitReason,
)
from genba.judgement.scheduling.assignment import no_reviewer, reviewers
from genba.judgement.scheduling.scheduler_view import SchedulerView
from genba.judgement.tracking.pull_requests import FAILED_CHECKS, waits_for
from genba.judgement.verification.paths import some
from genba.judgement.verification.reviews import findings_gap
from genba.judgement.workflow.handovers import answer_gap
from genba.judgement.workflow.wake_conditions import wake_feedback, wake_reason

ABORTED = "aborted"
_CAUSES = {CONFLICT: Cause.CONFLICT, FAILED_CHECKS: Cause.FAILED}
"""By what a pull request came back with: why its author goes on."""


def next_for_session(at: SchedulerView, task: Task, session: FleetSession) -> SchedulerAction:
    """The one move for a session that waits. Where its agent cannot be asked, its task is open again."""
    move = _go_on(at, task, session)
    if not isinstance(move, Continue) or not (why := _cannot_ask(at, session, move)):
        return move
    reason = f"{move.reason}, and {why}"
    return EndSession(
        run=session.run, task=task.number, part=session.part, outcome=ABORTED, reason=reason, gives_back=True
    )


def _cannot_ask(at: SchedulerView, session: FleetSession, move: Continue) -> str:
    """Why the agent of a session cannot go on with it; empty when it can, or when this move asks no agent."""
    if session.external and move.asks:
        return "its agent came by itself"
    lands = session.purpose is Purpose.INTEGRATE and session.agent in at.managers
    return "a manager does not work itself" if lands and move.gap is not None else ""


def _go_on(at: SchedulerView, task: Task, session: FleetSession) -> SchedulerAction:
    if task.status.ended:
        return _end(session, f"#{task.number} is {task.status}")
    match session.waits_for:
        case WaitsFor.ANSWER:
            return _after_answer(at, task, session)
        case WaitsFor.REVIEW | WaitsFor.MERGE:
            return _bring_home(at, task, session)
        case WaitsFor.BUDGET:
            return _after_budget(at, task, session)
        case WaitsFor.PULL_REQUEST:
            return _proposed(at, task, session)
        case WaitsFor.PARTS:
            return _after_parts(at, task, session)
        case WaitsFor.RESUME | WaitsFor.NOTHING:
            return _after_suspending(at, task, session)
        case _:
            assert_never(session.waits_for)


def _after_answer(at: SchedulerView, task: Task, session: FleetSession) -> SchedulerAction:
    if (asked := at.asked(task.number, EscalationKind.QUESTION)) is not None:
        return _wait(task, WaitReason.PERSON, f'it asks: {asked.question}  genba answer {task.number} "…"')
    found = at.decided(task.number, EscalationKind.QUESTION, part=session.part)
    if found is None or (found.run and found.run != session.run):
        return escalations.question(at, task, session)
    if found.status == "rejected":
        return _end(session, _words("its question was rejected", found))
    approved = say(at.settings.workflow.language, "approved_answer") if found.status == "approved" else ""
    answer = found.answer or approved
    gap = answer_gap(found.question, answer)
    return _blocked_or(task, _continue(session, Cause.ANSWER, "its question is answered", gap))


def _after_budget(at: SchedulerView, task: Task, session: FleetSession) -> SchedulerAction:
    found = spending.reached(at.field, at.settings, task, session.agent)
    if found is None:
        if task.status is TaskStatus.BLOCKED and at.asked(task.number, EscalationKind.BUDGET) is not None:
            return Reopen(task=task.number, reason="there is budget again")
        return _blocked_or(task, _continue(session, Cause.RESUMED, "there is budget again"))
    if found.scope != spending.TASK:
        return _wait(task, WaitReason.BUDGET, found.text, found.until)
    if at.asked(task.number, EscalationKind.BUDGET) is not None:
        return _wait(task, WaitReason.PERSON, f"{found.text}  genba approve {task.number}")
    result = at.decided(task.number, EscalationKind.BUDGET, limit_usd=found.limit)
    if result is not None and result.status == "rejected":
        return _end(session, _words("no more may be spent on it", result))
    return escalations.budget(at, task, session, found)


def _after_suspending(at: SchedulerView, task: Task, session: FleetSession) -> SchedulerAction:
    if at.asked(task.number, EscalationKind.STOPPED) is not None:
        return _wait(task, WaitReason.PERSON, f"a person stopped it  genba approve {task.number}")
    entry = at.entry(session.run)
    if entry is not None and entry.status is EntryStatus.MERGED and entry.commit == session.verified:
        return _closed_later(at, task, session, entry)
    return _blocked_or(task, _continue(session, Cause.RESUMED, "it was suspended"))


def _after_parts(at: SchedulerView, task: Task, session: FleetSession) -> SchedulerAction:
    """A manager that was stopped goes on when a part of its task needs it."""
    found = wake_reason(at, task, session.agent)
    if not found:
        return _wait(task, WaitReason.PARTS, "others carry out its parts")
    return _blocked_or(task, _continue(session, Cause.WOKEN, found, wake_feedback(found)))


# ── work that is proposed on a forge ─────────────────────────────────────────────────────────────────────────────────


def _proposed(at: SchedulerView, task: Task, session: FleetSession) -> SchedulerAction:
    """People and checks judge it there. What they say goes to its author; the forge decides its end."""
    found, gap = at.field.proposals.get(task.number), at.field.findings.get(task.number)
    if task.status is TaskStatus.REVIEW and gap is None:
        standing = (
            f"pull request #{found.number}: {waits_for(found)}" if found is not None else "its pull request is open"
        )
        return _wait(task, WaitReason.PULL_REQUEST, standing)
    if (asked := at.asked(task.number, EscalationKind.QUESTION)) is not None:
        return _wait(task, WaitReason.PERSON, f'{asked.question}  genba answer {task.number} "…"')
    if gap is not None:
        return _blocked_or(task, _back_from_forge(at, task, session, gap))
    result = at.decided(task.number, EscalationKind.QUESTION)
    if result is None or result.run != session.run:
        return _blocked_or(task, _continue(session, Cause.RESUMED, "its work is not in review"))
    if result.status == "rejected":
        return _end(session, _words("its pull request was closed", result))
    gap = answer_gap(result.question, result.answer or say(at.settings.workflow.language, "go_on_answer"))
    return _blocked_or(task, _continue(session, Cause.ANSWER, "its question is answered", gap))


def _back_from_forge(at: SchedulerView, task: Task, session: FleetSession, gap: Feedback) -> SchedulerAction:
    """Reviewers may want changes as often as they like. What fails is tried a few times, then a person is asked."""
    cause = _CAUSES.get(gap.check, Cause.FINDINGS)
    reason = gap.detail.partition("\n")[0].partition(". ")[0]
    if cause is not Cause.FINDINGS and session.rounds >= at.settings.merge.rounds:
        kind = EscalationKind.CONFLICT if cause is Cause.CONFLICT else EscalationKind.FAILED
        if at.asked(task.number, kind) is not None:
            return _wait(task, WaitReason.PERSON, f"{reason}  genba approve {task.number}")
        result = at.decided(task.number, kind, round=session.rounds)
        if result is None or result.run != session.run:
            return escalations.proposal(at, task, session, reason, kind)
        if result.status == "rejected":
            return _end(session, _words(reason, result))
        words = say(at.settings.workflow.language, "person_says", words=result.answer) if result.answer else ""
        gap = msgspec.structs.replace(gap, output="\n".join(text for text in (gap.output, words) if text))
    return _continue(session, cause, reason, gap)


# ── the way home: review, merge queue ────────────────────────────────────────────────────────────────────────────────


def _bring_home(at: SchedulerView, task: Task, session: FleetSession) -> SchedulerAction:
    """Verified work: it is reviewed where that is wanted, queued, and sent back when it does not land."""
    entry = at.entry(session.run)
    if entry is not None and entry.commit != session.verified and entry.status.ended:
        entry = None
    if entry is not None and entry.status is EntryStatus.MERGED:
        return _landed(at, task, session, entry)
    if task.status is TaskStatus.BLOCKED:
        return _blocked(task)
    if task.status is not TaskStatus.REVIEW or not session.verified:
        return _continue(session, Cause.RESUMED, "its work is not in review")
    if entry is None:
        return _into_queue(at, task, session)
    return _in_queue(at, task, session, entry)


def _landed(at: SchedulerView, task: Task, session: FleetSession, entry: MergeEntry) -> SchedulerAction:
    """Only the closure is left. One that fails is tried again, later each time, and then a person decides."""
    close, landed = _close(session, entry), entry.landed or entry.commit
    failed = session.reason if session.waits_for is WaitsFor.MERGE else ""
    if not failed:
        return close
    settings = at.settings.attempts
    since = hours_between(entry.finished_at, session.heartbeat_at) * 3600
    again = later(session.heartbeat_at, max(settings.backoff_seconds, since))
    if since < settings.backoff_seconds * 2.0**settings.max:
        why = f"it landed on {entry.target}, and its closure is tried again: {failed}"
        return (
            _wait(task, WaitReason.BACKOFF, why, again)
            if is_backing_off(at.now, session.heartbeat_at, again)
            else close
        )
    if at.asked(task.number, EscalationKind.ATTEMPTS) is not None:
        return _wait(task, WaitReason.PERSON, f"it landed, and cannot be closed: {failed}  genba approve {task.number}")
    result = at.decided(task.number, EscalationKind.ATTEMPTS)
    if result is None or (result.evidence.get("landed"), result.evidence.get("part")) != (landed, session.part):
        return escalations.closure(at, task, session, entry.target, landed)
    if result.status == "rejected":
        return Close(task=task.number, run=session.run, commit=entry.commit, landed=landed)
    return close


def _closed_later(at: SchedulerView, task: Task, session: FleetSession, entry: MergeEntry) -> SchedulerAction:
    """The machine had no room for the closure. That is no failed attempt: it is tried until there is some."""
    again = later(session.heartbeat_at, at.settings.attempts.backoff_seconds)
    if not is_backing_off(at.now, session.heartbeat_at, again):
        return _close(session, entry)
    why = f"it landed on {entry.target}, and is closed when there is room: {session.reason}"
    return _wait(task, WaitReason.BACKOFF, why, again)


def _close(session: FleetSession, entry: MergeEntry) -> Continue:
    landed = entry.landed or entry.commit
    return _continue(session, Cause.LANDED, f"it landed on {entry.target}", landed=landed)


def _in_queue(at: SchedulerView, task: Task, session: FleetSession, entry: MergeEntry) -> SchedulerAction:
    match entry.status:
        case EntryStatus.QUEUED | EntryStatus.MERGING:
            return _wait(task, WaitReason.MERGE, f"in the merge queue of {entry.target}: {entry.status}")
        case EntryStatus.STUCK:
            return _wait(task, WaitReason.MERGE, f"{entry.target} cannot be moved: {entry.detail}  genba queue")
        case EntryStatus.CONFLICT:
            return _sent_back(at, task, session, entry, EscalationKind.CONFLICT)
        case EntryStatus.FAILED:
            return _sent_back(at, task, session, entry, EscalationKind.FAILED)
        case EntryStatus.WITHDRAWN | EntryStatus.MERGED:
            if is_before(entry.finished_at, session.heartbeat_at):
                return _queue(at, task, session)
            return _sent_back(at, task, session, entry, EscalationKind.CONFLICT)
        case _:
            assert_never(entry.status)


def _into_queue(at: SchedulerView, task: Task, session: FleetSession) -> SchedulerAction:
    if not task.requires_review or task.approved == session.verified:
        return _queue(at, task, session)
    found = next((one for one in reversed(at.reviews(task.number)) if one.commit == session.verified), None)
    if found is None or found.status == "stale":
        return _ask_review(at, task, session)
    if found.status == "changes":
        return _changes(at, task, session, found)
    if found.status == "open" and found.reviewer_type == "ai":
        if at.asked(task.number, EscalationKind.REVIEW) is not None:
            return _wait(task, WaitReason.PERSON, f"a person must approve it  genba approve {task.number}")
        return _wait(task, WaitReason.REVIEW, f"#{found.task} reviews it")
    language = at.settings.workflow.language
    why = say(language, "ask_review", commit=session.verified[:7])
    if task.reviewer_type == "ai" and not _reviewers(at, task):
        reason = no_reviewer(at.settings.review.agent, at.me.agents)
        why = say(language, "ask_no_reviewer", why=in_language(language, reason), asked=why)
    return _person_reviews(at, task, session, why, found)


def after_single_session(at: SchedulerView, task: Task, session: FleetSession) -> SchedulerAction | None:
    """What the fleet does for verified work that waits for its review since `genba run` ended.

    It lands what is approved, unless that session delivers it in another way: then a person resumes it.
    """
    if session.outcome != Outcome.BLOCKED or session.executor or not task.requires_review or not session.verified:
        return None
    entry = at.entry(session.run)
    if entry is not None and entry.commit == session.verified and entry.status is not EntryStatus.WITHDRAWN:
        return Reopen(task=task.number, reason=_trouble(entry))
    if task.approved == session.verified:
        return _queue(at, task, session) if session.base_branch else None
    last = next((one for one in reversed(at.reviews(task.number)) if one.commit == session.verified), None)
    if last is not None and last.status == "changes" and at.asked(task.number, EscalationKind.REVIEW) is None:
        return Reopen(task=task.number, reason="a reviewer requests changes")
    return _into_queue(at, task, session) if last is None or last.status != "changes" else None


def _person_reviews(at: SchedulerView, task: Task, session: FleetSession, why: str, last: Review) -> SchedulerAction:
    asked = at.asked(task.number, EscalationKind.REVIEW)
    if asked is not None and asked.commit in ("", session.verified):
        return _wait(task, WaitReason.PERSON, f"a person must approve it  genba approve {task.number}")
    return escalations.review(at, task, session, session.verified, why, last)


def _ask_review(at: SchedulerView, task: Task, session: FleetSession) -> AskReview:
    asked = AskReview(task=task.number, commit=session.verified, reviewer_type=task.reviewer_type)
    if task.reviewer_type != "ai":
        return asked
    if able := _reviewers(at, task):
        return msgspec.structs.replace(asked, assignee=able[0])
    return msgspec.structs.replace(
        asked, reviewer_type="human", reason=no_reviewer(at.settings.review.agent, at.me.agents)
    )


def _reviewers(at: SchedulerView, task: Task) -> tuple[str, ...]:
    return reviewers("", at.settings.review.agent, at.me.agents, at.authors(task.number))


def _changes(at: SchedulerView, task: Task, session: FleetSession, found: Review) -> SchedulerAction:
    """A reviewer wants changes: they go to the author, a bounded number of times, then a person decides."""
    rounds = at.settings.review.rounds
    findings = found.findings
    wanted = sum(one.status == "changes" for one in at.reviews(task.number))
    unchanged = session.reviews >= wanted  # it received every verdict, and came back with the same commit
    if session.reviews >= rounds or unchanged:
        result = at.decided(task.number, EscalationKind.REVIEW, round=session.reviews)
        if result is None or result.status != "rejected" or result.commit not in ("", session.verified):
            why = say(at.settings.workflow.language, "ask_unchanged" if unchanged else "ask_rounds", rounds=rounds)
            return _person_reviews(at, task, session, why, found)
        findings = tuple(dict.fromkeys((*((result.answer,) if result.answer else ()), *findings)))
    gap = findings_gap(
        findings,
        commit=found.commit,
        reviewer=found.reviewer,
        round=session.reviews + 1,
        rounds=max(rounds, 1),
        language=at.settings.workflow.language,
    )
    return _continue(session, Cause.FINDINGS, "a reviewer wants changes", gap)


def _queue(at: SchedulerView, task: Task, session: FleetSession) -> Queue:
    before = at.entry(session.run)
    return Queue(
        run=session.run,
        task=task.number,
        commit=session.verified,
        target=session.base_branch or at.settings.merge.base_branch,
        round=before.round + 1 if before is not None else 1,
    )


def _sent_back(
    at: SchedulerView, task: Task, session: FleetSession, entry: MergeEntry, kind: EscalationKind
) -> SchedulerAction:
    """Work that does not land goes to its author with the evidence, a bounded number of rounds, then to a person."""
    words = ""
    if session.rounds >= at.settings.merge.rounds:
        if at.asked(task.number, kind) is not None:
            return _wait(task, WaitReason.PERSON, f"{_trouble(entry)}  genba approve {task.number}")
        result = at.decided(task.number, kind, round=session.rounds)
        if result is None or result.run != session.run:
            return escalations.merge(at, task, session, entry, kind)
        if result.status == "rejected":
            return _end(session, _words(f"it did not land: {_trouble(entry)}", result))
        words = result.answer
    if entry.status is EntryStatus.WITHDRAWN:
        return _continue(session, Cause.RESUMED, "its branch is looked at again")
    cause = Cause.CONFLICT if kind is EscalationKind.CONFLICT else Cause.FAILED
    return _continue(session, cause, _trouble(entry), _merge_gap(at, session, entry, cause, words))


def _merge_gap(at: SchedulerView, session: FleetSession, entry: MergeEntry, cause: Cause, words: str) -> Feedback:
    language = at.settings.workflow.language
    key = "conflict_feedback" if cause is Cause.CONFLICT else "failed_feedback"
    detail = say(language, key, target=entry.target, paths=some(entry.paths, 20))
    person = say(language, "person_says", words=words) if words else ""
    output = "\n".join(text for text in (entry.detail, person) if text)
    attempt = session.rounds + 1
    most = max(at.settings.merge.rounds, attempt)
    return Feedback(check=str(cause), detail=detail, output=output, claim="", attempt=attempt, max_attempts=most)


def _trouble(entry: MergeEntry) -> str:
    if entry.status is EntryStatus.CONFLICT:
        return f"it conflicts with {entry.target} in {some(entry.paths)}"
    if entry.status is EntryStatus.WITHDRAWN:
        return f"it was taken out of the merge queue of {entry.target}: {entry.detail}"
    return f"it fails on {entry.target} after the merge"


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _continue(
    session: FleetSession, cause: Cause, reason: str, gap: Feedback | None = None, landed: str = ""
) -> Continue:
    return Continue(
        run=session.run,
        task=session.task,
        part=session.part + 1,
        cause=cause,
        reason=reason,
        gap=gap,
        landed=landed,
    )


def _end(session: FleetSession, reason: str) -> EndSession:
    return EndSession(run=session.run, task=session.task, part=session.part, outcome=ABORTED, reason=reason)


def _blocked_or(task: Task, move: SchedulerAction) -> SchedulerAction:
    return _blocked(task) if task.status is TaskStatus.BLOCKED else move


def _blocked(task: Task) -> Wait:
    reason = task.blocker.reason if task.blocker else "it is blocked"
    return _wait(task, WaitReason.PERSON, f"blocked: {reason}  genba task show {task.number}")


def _wait(task: Task, kind: WaitReason, why: str, until: str = "") -> Wait:
    return Wait(task=task.number, kind=kind, why=why, until=until)


def _words(what: str, decision: Escalation) -> str:
    return f"{what}: {decision.answer}" if decision.answer else what
