"""Reads pull requests back into the tasks whose work they bring."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import assert_never

import msgspec

from genba.blackboard.database.sanitize import now, seen
from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.fleet import escalations
from genba.blackboard.tasks import status_gateway, task_records
from genba.blackboard.tasks.task_rows import task_with_rows
from genba.blackboard.tracker import pull_request_terms
from genba.blackboard.tracker.issue_copy import (
    TrackerBoard,
    add_findings,
    card_of,
    hand_over,
    handed,
    keep_pull_requests,
    pull_requests_of_branch,
    row_of,
    set_value,
    unwatch,
    value,
)
from genba.blackboard.tracker.outbox import drop, in_lane, record
from genba.definitions.project.tracker_section import GitHubSettings
from genba.domain.decoding import reader
from genba.domain.errors import GenbaError, NotFoundError, StateConflictError, UsageError
from genba.domain.fleet.records import Escalation, EscalationKind
from genba.domain.ports import Clock, RemoteIssues
from genba.domain.tasks.task import Actor, ActorKind, Blocker, BlockerKind, StatusChange, Task, TaskEdit, TaskStatus
from genba.domain.text_limits import one_line
from genba.domain.timestamps import hours_between
from genba.domain.tracker.outbox import (
    CloseIssue,
    DeliveryReceipt,
    MergePullRequest,
    OpenPullRequest,
    OutboxStatus,
    Relabel,
    SetCardStatus,
)
from genba.domain.tracker.remote import PullRequestNews, PullRequestOutcome, PullRequestState, Terms, TrackedPullRequest
from genba.judgement.tracking.issue_changes import GITHUB, owner_of
from genba.judgement.tracking.pull_requests import (
    ClosedUnmerged,
    Conflict,
    Merge,
    Merged,
    Rework,
    Verdict,
    Wait,
    read_back,
    standing_of,
)

_GENBA = Actor(ActorKind.ORCHESTRATOR, "genba")
_TRACKER = Actor(ActorKind.TRACKER, GITHUB)
_BATCH = 50
_UNSURE = ("", "unknown")
_MOMENT_SECONDS = 1.0
_CHECKS_BEGIN_SECONDS = 600.0
"""How long checks may take to begin, where a repository has any."""

_MOVED = Statement("""
SELECT e.id, t.number, e.data FROM events e JOIN tasks t ON t.id = e.task_id
WHERE e.project_id = :project AND e.id > :after AND e.kind = 'status_changed' AND t.tracker = 'github' ORDER BY e.id
""")
_AT_WORK = Statement("SELECT run FROM sessions WHERE task_id = :task AND status = 'running'")
_NEWEST_EVENT = Statement("SELECT coalesce(max(id), 0) FROM events WHERE project_id = :project")
_CHECKED = Statement("""
SELECT 1 FROM pull_requests WHERE project_id = :project AND data LIKE :checked LIMIT 1
""")
_OPENED = Statement("""
SELECT change, receipt, status FROM outbox
WHERE project_id = :project AND lane IN (:of_issue, :of_branch) AND kind = 'pull_request' ORDER BY id DESC
""")


class Reader:
    """Looks at the pull requests of tasks that have not ended, and does what they mean."""

    def __init__(self, remote: RemoteIssues, board: TrackerBoard, settings: GitHubSettings, clock: Clock) -> None:
        self.remote = remote
        self.board = board
        self.settings = settings
        self.clock = clock

    async def read_back(self) -> tuple[PullRequestNews, ...]:
        """Each pull request as it is now, and what was done about it."""
        news = []
        for terms, found in await self._look():
            try:
                result = await asyncio.to_thread(self._settle, terms, found)
            except (StateConflictError, UsageError) as error:  # a failure of one does not stop the others
                result = _news(terms.task, found, Wait(why=error.message))
            if result is not None:
                news.append(result)
        return tuple(news)

    async def foresee(self) -> tuple[PullRequestNews, ...]:
        """The same, and nothing is done."""

        def foresee(terms: Terms, found: TrackedPullRequest) -> PullRequestNews:
            def judge(tx: Transaction) -> Verdict:
                task = task_with_rows(tx, terms.task).task
                return read_back(task, terms, found, handed(tx, task.number), _checks_to_come(tx, found))

            return _news(terms.task, found, self.board.store.read(judge))

        return tuple([await asyncio.to_thread(foresee, terms, found) for terms, found in await self._look()])

    async def _look(self) -> list[tuple[Terms, TrackedPullRequest]]:
        wanted = await asyncio.to_thread(self.board.store.read, _followed)
        unknown = [terms for terms, number in wanted if number is None]
        numbers = [number for _, number in wanted if number]
        found = await self._requests(numbers)
        # A forge begins to try a merge when it is first asked about it: a moment later it knows.
        unsure = [
            one.number for one in found.values() if one.state is PullRequestState.OPEN and one.mergeable in _UNSURE
        ]
        if unsure:
            await self.clock.sleep(_MOMENT_SECONDS)
            found |= await self._requests(unsure)
        looked = [(terms, found[number]) for terms, number in wanted if number and number in found]
        for terms in unknown:
            newest = await self.remote.pull_request_of(terms.branch)
            if newest is not None and terms.about(newest):
                looked.append((terms, _clean(newest)))
        return looked

    async def _requests(self, numbers: Sequence[int]) -> dict[int, TrackedPullRequest]:
        found: dict[int, TrackedPullRequest] = {}
        for at in range(0, len(numbers), _BATCH):
            for request in await self.remote.pull_requests(numbers[at : at + _BATCH]):
                found[request.number] = _clean(request)
        return found

    def _settle(self, terms: Terms, found: TrackedPullRequest) -> PullRequestNews | None:
        return self.board.store.write(lambda tx: settle(tx, terms, found))

    def settle_merged(self, tx: Transaction, task: Task) -> bool:
        """An issue was closed: if that was by the merge of its pull request, its task is done by that."""
        terms = pull_request_terms.find(tx, task.number)
        merged = [one for one in _requests(tx, terms) if one.state is PullRequestState.MERGED] if terms else []
        if terms is None or not merged:
            return False
        settle(tx, terms, merged[0])
        return True

    # ── cards ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def move_cards(self) -> tuple[int, ...]:
        """Have the card of each issue whose task came to another status moved, where the settings name one for it."""
        board = self.settings.board
        if board is None:
            return ()
        return self.board.store.write(self._move_cards)

    def _move_cards(self, tx: Transaction) -> tuple[int, ...]:
        board = self.settings.board
        known = value(tx, "cards_position")
        newest = tx.one(_NEWEST_EVENT, project=tx.project)
        set_value(tx, "cards_position", str(newest[0] if newest else 0))
        if board is None or not known:
            return ()
        owner = board.owner or owner_of(self.settings)
        last: dict[int, tuple[int, str]] = {}
        for event, number, data in tx.all(_MOVED, project=tx.project, after=int(known)):
            word = str(getattr(board.statuses, msgspec.json.decode(data).get("to", ""), ""))
            if word:  # a status without a place leaves the card where it was
                last[number] = (event, word)
        moved = []
        for number, (event, word) in last.items():
            row = row_of(tx, number)
            card = card_of(row.issue, owner, board.number) if row else None
            if card is not None and card.status == word:
                continue
            change = SetCardStatus(issue=number, owner=owner, project=board.number, field=board.field, status=word)
            record(tx, f"card:{number}:{event}", change)
            moved.append(number)
        return tuple(moved)


def settle(tx: Transaction, terms: Terms, found: TrackedPullRequest) -> PullRequestNews | None:
    """Do what a pull request means for its task; None when the task has ended."""
    task = task_with_rows(tx, terms.task).task
    if task.status.ended:
        unwatch(tx, task)
        return None
    verdict = read_back(task, terms, found, handed(tx, task.number), _checks_to_come(tx, found))
    if isinstance(verdict, Rework | Conflict | ClosedUnmerged) and (at_work := tx.one(_AT_WORK, task=task.id)):
        verdict = Wait(why=f"{at_work[0]} is still at work on it")  # it may be about to propose something newer
    keep_pull_requests(tx, [found], task, watched=not isinstance(verdict, Merged | ClosedUnmerged))
    _give_up_older_merges(tx, terms, found, verdict)
    match verdict:
        case Merged():
            _finish(tx, task, terms, verdict)
        case Rework() | Conflict():
            back = StatusChange(to=TaskStatus.IN_PROGRESS, actor=_GENBA, reason=verdict.reason, session=terms.run)
            status_gateway.change_status(tx, task.number, back)
            add_findings(tx, task.number, verdict.gap)
            hand_over(tx, task.number, verdict.handed)
        case ClosedUnmerged():
            _ask(tx, task, terms, found, verdict)
        case Merge():
            _have_merged(tx, task, terms, verdict)
        case Wait():
            pass
        case _:
            assert_never(verdict)
    return _news(task.number, found, verdict)


def _clean(found: TrackedPullRequest) -> TrackedPullRequest:
    """What the databases can keep, with names that stand in one line."""
    reviews = tuple(
        msgspec.structs.replace(
            review,
            author=one_line(review.author),
            body=seen(review.body),
            findings=tuple(seen(finding) for finding in review.findings),
        )
        for review in found.reviews
    )
    checks = tuple(
        msgspec.structs.replace(check, name=one_line(check.name), detail=seen(check.detail), url=one_line(check.url))
        for check in found.checks
    )
    names = {"author": one_line(found.author), "merged_by": one_line(found.merged_by), "title": seen(found.title)}
    return msgspec.structs.replace(found, reviews=reviews, checks=checks, **names)


def _checks_to_come(tx: Transaction, found: TrackedPullRequest) -> bool:
    """Whether the checks of a pull request may not have begun: others have had some, and this one is new."""
    age = abs(hours_between(found.updated_at or found.created_at, now())) * 3600
    if found.checks or age > _CHECKS_BEGIN_SECONDS:
        return False
    return tx.one(_CHECKED, project=tx.project, checked='%"checks":[{%') is not None


def _finish(tx: Transaction, task: Task, terms: Terms, verdict: Merged) -> None:
    """The work is on its target. What was verified is done; what was not is as its tracker tells it."""
    by = f" by {verdict.by}" if verdict.by else ""
    reason = verdict.note or f"{verdict.finalized}{by}"
    ends = terms.closure.close
    if task.status is TaskStatus.REVIEW and terms.commit:
        if task.requires_review and verdict.approved_by:
            status_gateway.approve(tx, task.number, terms.commit, Actor(ActorKind.HUMAN, verdict.approved_by))
        change = StatusChange(
            to=TaskStatus.DONE if ends else TaskStatus.OPEN,
            actor=_GENBA,
            reason=reason,
            commit=terms.commit,
            finalized=verdict.finalized,
            session=terms.run,
            phase="" if ends else terms.agent,
        )
    else:
        message = f"{verdict.finalized}, while it was {task.status}"
        change = StatusChange(to=TaskStatus.DONE, actor=_TRACKER, reason=message, finalized=verdict.finalized)
    try:
        if ends or change.to is TaskStatus.OPEN:
            status_gateway.change_status(tx, task.number, change)
    except GenbaError:  # what only ends a phase is left to people
        if not ends:
            raise
        # a part that is still open, a verdict that is not there: people have decided otherwise
        message = f"{verdict.finalized}; {reason}"
        status_gateway.change_status(
            tx,
            task.number,
            StatusChange(to=TaskStatus.DONE, actor=_TRACKER, reason=message, finalized=verdict.finalized),
        )
    _close(tx, task, terms)
    unwatch(tx, task)
    pull_request_terms.forget(tx, task.number)


def _close(tx: Transaction, task: Task, terms: Terms) -> None:
    """What its session wants done to the issue once the work is merged."""
    closure, number = terms.closure, task.number
    add = tuple(label for label in closure.add_labels if label not in task.labels)
    remove = tuple(label for label in closure.remove_labels if label in task.labels)
    key = f"{terms.run or number}:merged"
    if add or remove:
        task_records.edit(tx, number, TaskEdit(add_labels=add, remove_labels=remove), _GENBA, None)
    if task.tracker != GITHUB:
        return  # a task of our own has no issue there
    if add or remove:
        record(tx, f"{key}:labels", Relabel(issue=number, add=add, remove=remove), run=terms.run)
    row = row_of(tx, number)
    if closure.close and (row is None or row.state != "closed"):
        record(tx, f"{key}:close", CloseIssue(issue=number), run=terms.run)


def _ask(tx: Transaction, task: Task, terms: Terms, found: TrackedPullRequest, verdict: ClosedUnmerged) -> None:
    escalation = Escalation(
        task=task.number,
        kind=EscalationKind.QUESTION,
        question=verdict.question,
        run=terms.run,
        commit=terms.commit,
        evidence={"pull_request": found.url or f"#{found.number}", "branch": terms.branch},
    )
    escalations.escalate(tx, escalation, Blocker(BlockerKind.NEEDS_INPUT, verdict.question))
    pull_request_terms.forget(tx, task.number)


def _have_merged(tx: Transaction, task: Task, terms: Terms, verdict: Merge) -> None:
    if task.requires_review and (judge := verdict.approved_by):
        status_gateway.approve(tx, task.number, terms.commit, Actor(ActorKind.HUMAN, judge))
    change = MergePullRequest(
        number=verdict.number,
        commit=verdict.commit,
        issue=task.number,
        method=terms.method,
        title=terms.title,
        body=terms.body,
    )
    wanted_before = [
        entry
        for entry in in_lane(tx, f"issue:{task.number}")
        if isinstance(entry.change, MergePullRequest) and _names(entry.change, verdict.number, verdict.commit)
    ]
    if any(entry.status is not OutboxStatus.DROPPED for entry in wanted_before):
        return
    # What was given up is wanted again: the same key would say that it is over.
    again = f":{len(wanted_before) + 1}" if wanted_before else ""
    record(tx, f"merge:{verdict.number}:{verdict.commit}{again}", change, run=terms.run)


def _give_up_older_merges(tx: Transaction, terms: Terms, found: TrackedPullRequest, verdict: Verdict) -> None:
    """A merge goes once it is not wanted any more: nothing is merged against who has had second thoughts.

    One that is being sent is left alone. One that was refused stands in the way of whatever comes after it.
    """
    for entry in in_lane(tx, f"issue:{terms.task}"):
        change = entry.change
        if not isinstance(change, MergePullRequest) or entry.status.ended or entry.status is OutboxStatus.SENDING:
            continue
        same = _names(change, found.number, terms.commit)
        if entry.status is OutboxStatus.FAILED:
            over = not same or not isinstance(verdict, Wait | Merge)
        else:
            undecided = isinstance(verdict, Wait) and verdict.untried
            over = not same or not (undecided or isinstance(verdict, Merge | Merged))
        if over:
            drop(tx, entry.id, _GENBA, datetime.now(UTC))


def _names(change: MergePullRequest, number: int, commit: str) -> bool:
    return (change.number, change.commit) == (number, commit)


def _followed(tx: Transaction) -> list[tuple[Terms, int | None]]:
    """What is followed, with the number of its pull request: None where only its branch can tell, 0 before it is made.

    The pull request of a task that has ended is not followed.
    """
    found: list[tuple[Terms, int | None]] = []
    for terms in pull_request_terms.every(tx):
        try:
            ended = task_with_rows(tx, terms.task).task.status.ended
        except NotFoundError:
            continue
        if not ended:
            found.append((terms, _number_of(tx, terms)))
    return found


def _number_of(tx: Transaction, terms: Terms) -> int | None:
    requests = _requests(tx, terms)
    if requests and requests[0].state is PullRequestState.OPEN:
        return requests[0].number
    opened = _opened(tx, terms)
    if opened is not None and 0 < opened <= terms.after:
        opened = None
    if opened == 0 or not requests:
        return opened
    return max(opened or 0, requests[0].number)


def _requests(tx: Transaction, terms: Terms) -> list[TrackedPullRequest]:
    """The pull requests of its branch: the open one first, then the newest."""
    found = [one for one in pull_requests_of_branch(tx, terms.branch) if terms.about(one)] if terms.branch else []
    return sorted(found, key=lambda one: one.state is not PullRequestState.OPEN)


def _opened(tx: Transaction, terms: Terms) -> int | None:
    """The number under which the outbox opened the pull request of a branch; 0 while it is on its way."""
    lanes = {"of_issue": f"issue:{terms.task}", "of_branch": f"branch:{terms.branch}"}
    for change, receipt, status in tx.all(_OPENED, project=tx.project, **lanes):
        if reader(OpenPullRequest).decode(change).branch != terms.branch:
            continue
        if status in (OutboxStatus.PENDING, OutboxStatus.SENDING):
            return 0
        if receipt:
            return reader(DeliveryReceipt).decode(receipt).number
    return None


def _news(task: int, found: TrackedPullRequest, verdict: Verdict) -> PullRequestNews:
    outcome, result = _described(verdict)
    return PullRequestNews(
        number=found.number,
        task=task,
        url=found.url,
        standing=standing_of(found),
        verdict=outcome,
        result=result,
        untried=isinstance(verdict, Wait) and verdict.untried,
    )


def _described(verdict: Verdict) -> tuple[PullRequestOutcome, str]:
    match verdict:
        case Merged():
            return PullRequestOutcome.MERGED, verdict.finalized
        case Rework():
            return PullRequestOutcome.REWORK, verdict.reason
        case Conflict():
            return PullRequestOutcome.CONFLICT, verdict.reason
        case ClosedUnmerged():
            return PullRequestOutcome.CLOSED, verdict.question
        case Merge():
            return PullRequestOutcome.MERGE, f"{verdict.why}: Genba merges it"
        case Wait():
            return PullRequestOutcome.WAIT, verdict.why
        case _:
            assert_never(verdict)
