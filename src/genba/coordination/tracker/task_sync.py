"""Brings tasks in line with the issues of their tracker: one issue after the other, each whole or not at all."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import assert_never

import msgspec

from genba.blackboard.database.sanitize import seen
from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tasks import dependencies, history, task_records
from genba.blackboard.tasks.status_gateway import change_status
from genba.blackboard.tasks.task_rows import task_with_rows
from genba.blackboard.tasks.task_tree import hold_relations
from genba.blackboard.tracker import outbox
from genba.blackboard.tracker.issue_copy import (
    TrackedRow,
    TrackerBoard,
    copy_comments,
    keep_pull_requests,
    refuse_own_numbers,
    row_by_reference,
    row_of,
    write_issue,
)
from genba.definitions.project.tracker_section import GitHubSettings
from genba.domain.errors import GenbaError, NotFoundError, StateConflictError
from genba.domain.tasks.task import Actor, ActorKind, Blocker, BlockerKind, StatusChange, Task, TaskStatus
from genba.domain.tracker.outbox import Relabel
from genba.domain.tracker.remote import Details, TrackedIssue, TrackedPullRequest
from genba.judgement.tracking.issue_changes import (
    GITHUB,
    OUTSIDE,
    Adopt,
    Change,
    Edit,
    IssueStatus,
    Known,
    Relations,
    StatusUpdate,
    TrackerScan,
    Wanted,
    meaning,
    outside_reason,
    relations,
)

TRACKER = Actor(ActorKind.TRACKER, GITHUB)
_GENBA = Actor(ActorKind.ORCHESTRATOR, "genba")
_OWN = "<!-- genba:"

_LAST_WORDS = Statement("""
SELECT actor_kind, kind, data FROM events WHERE task_id = :task AND kind IN ('dependency_added', 'dependency_removed')
ORDER BY id
""")

Merged = Callable[[Transaction, Task], bool]
"""Settles a task whose pull request was merged; says whether it did."""


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What became of tasks."""

    added: tuple[int, ...] = ()
    changed: tuple[int, ...] = ()
    closed: tuple[int, ...] = ()
    reopened: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, other: "Applied") -> "Applied":
        names = self.__struct_fields__
        return Applied(**{name: (*getattr(self, name), *getattr(other, name)) for name in names})

    @property
    def empty(self) -> bool:
        return self == Applied()


class Copier:
    """Acts on what was read of a tracker, by the settings of the project."""

    def __init__(
        self, board: TrackerBoard, settings: GitHubSettings, known: Known, wanted: Wanted, merged: Merged
    ) -> None:
        self.board = board
        self.settings = settings
        self.known = known
        self.wanted = wanted
        self.merged = merged

    def act_on(self, details: Details, asked: bool = False) -> Applied:
        """All of it in one transaction; where one issue cannot be acted on, each in its own."""
        issues = [_clean(issue) for issue in details.issues]
        with_requests = details.pull_requests

        def all_at_once(tx: Transaction) -> Applied:
            hold_relations(tx)
            keep_pull_requests(tx, with_requests)
            return _summed(
                [self._act(tx, issue, asked) for issue in issues] + [self._bury(tx, one) for one in details.gone]
            )

        try:
            return self.board.store.write(all_at_once)
        except StateConflictError:
            return self._one_by_one(issues, with_requests, details.gone, asked)

    def _one_by_one(
        self,
        issues: Sequence[TrackedIssue],
        requests: Sequence[TrackedPullRequest],
        gone: Sequence[str],
        asked: bool,
    ) -> Applied:
        self.board.keep_pull_requests(requests)
        parts = []
        for issue in issues:
            try:
                parts.append(self.board.store.write(lambda tx, one=issue: self._act(tx, one, asked)))  # type: ignore[misc]
            except StateConflictError as error:
                parts.append(Applied(notes=(f"#{issue.number}: {error.message}",)))
        parts += [self.board.store.write(lambda tx, one=reference: self._bury(tx, one)) for reference in gone]  # type: ignore[misc]
        return _summed(parts)

    def _act(self, tx: Transaction, issue: TrackedIssue, asked: bool) -> Applied:
        hold_relations(tx)  # who reads one issue for a person does so beside a sync
        row, task = row_of(tx, issue.number), task_of_issue(tx, issue.number)
        before = row.acted_on if row and not row.gone else None
        if before is not None and before.updated_at > issue.updated_at:
            return Applied()  # another sync has acted on a newer one
        sight = TrackerScan(
            issue=issue,
            before=before,
            was_in_field=row.in_field if row else False,
            labels=_labels_to_be(tx, issue) if task else None,
        )
        changes = meaning(sight, task, self.wanted, self.settings, self.known, asked)
        task, applied = self._carry_out(tx, issue.number, task, changes)
        write_issue(tx, issue, task, in_field=self.wanted.takes(issue))
        if task is not None:
            copied = copy_comments(tx, task.id, [one for one in issue.comments if _OWN not in one.body])
            if copied and not applied.added and not applied.changed:
                applied += Applied(changed=(issue.number,))
        return applied

    def _bury(self, tx: Transaction, reference: str) -> Applied:
        """An issue that is not there any more."""
        row = row_by_reference(tx, reference)
        if row is None or row.gone:
            return Applied()
        task = task_of_issue(tx, row.number)
        sight = TrackerScan(issue=row.issue, before=row.acted_on, was_in_field=row.in_field, gone=True)
        changes = meaning(sight, task, self.wanted, self.settings, self.known)
        task, _ = self._carry_out(tx, row.number, task, changes)
        write_issue(tx, row.issue, task, in_field=False, gone=True)
        return Applied(gone=(row.number,))

    def _carry_out(
        self, tx: Transaction, number: int, task: Task | None, changes: tuple[Change, ...]
    ) -> tuple[Task | None, Applied]:
        for change in changes:
            match change:
                case Adopt(draft=draft):
                    task = task_records.add(tx, draft, TRACKER)
                case Edit(edit=edit):
                    task = task_records.edit(tx, number, edit, TRACKER, None)
                case StatusUpdate():
                    task = self._move(tx, number, change)
                case _:
                    assert_never(change)
        return task, _summed([_foreseen(number, change) for change in changes])

    def _move(self, tx: Transaction, number: int, move: StatusUpdate) -> Task:
        if move.to is TaskStatus.DONE and self.merged(tx, task_with_rows(tx, number).task):
            return task_with_rows(tx, number).task
        return change_status(tx, number, StatusChange(to=move.to, actor=TRACKER, reason=move.reason))

    def foresee(self, details: Details) -> Applied:
        """What acting on this would come to; nothing is changed."""

        def look_at(tx: Transaction) -> Applied:
            refuse_own_numbers(tx, [issue.number for issue in details.issues])
            parts = []
            for issue in map(_clean, details.issues):
                row, task = row_of(tx, issue.number), task_of_issue(tx, issue.number)
                before = row.acted_on if row and not row.gone else None
                sight = TrackerScan(issue=issue, before=before, was_in_field=row.in_field if row else False)
                changes = meaning(sight, task, self.wanted, self.settings, self.known)
                parts += [_foreseen(issue.number, change) for change in changes]
            buried = [row.number for one in details.gone if (row := row_by_reference(tx, one)) and not row.gone]
            return _summed([*parts, Applied(gone=tuple(buried))])

        return self.board.store.read(look_at)

    # ── relations ────────────────────────────────────────────────────────────────────────────────────────────────────

    def relate(self) -> Applied:
        """Bring dependencies, parents and what stands in the way outside in line with the whole copy."""
        rows = {row.number: row for row in self.board.every()}
        known = {task.number: task for task in self.board.board.find() if task.tracker == GITHUB}
        standings = {
            number: IssueStatus(row.issue.closed, known[number].status if number in known else None)
            for number, row in rows.items()
        }
        parts = []
        for number, task in known.items():
            row = rows.get(number)
            if row is None or row.acted_on is None or task.status.ended:
                continue
            should = relations(row.issue, standings)
            if _stands(task, should, known):
                continue
            parts.append(
                self.board.store.write(lambda tx, n=number, s=should: self._relate_one(tx, n, s, known))  # type: ignore[misc]
            )
        return _summed(parts)

    def _relate_one(self, tx: Transaction, number: int, should: Relations, known: Mapping[int, Task]) -> Applied:
        task = task_with_rows(tx, number).task
        if task.status.ended:
            return Applied()
        notes: list[str] = []
        set_by_people, set_by_tracker = _last_words(tx, task.id)
        for on in sorted(set(task.dependencies) - should.dependencies):
            if on in should.dropped or on in set_by_tracker:
                dependencies.undepend(tx, number, on, TRACKER)
        for on in sorted(should.dependencies - set(task.dependencies) - set_by_people):
            notes += _refusal(lambda on=on: dependencies.depend(tx, number, on, TRACKER))  # type: ignore[misc]
        if should.parent != task.parent and (task.parent is None or task.parent in known):
            notes += _refusal(lambda: dependencies.put_below(tx, number, should.parent, TRACKER))
        notes += _refusal(lambda: _stand_in_the_way(tx, number, should.outside))
        changed = task_with_rows(tx, number).task.version != task.version
        return Applied(changed=(number,) if changed else (), notes=tuple(notes))


def _foreseen(number: int, change: Change) -> Applied:
    match change:
        case Adopt():
            return Applied(added=(number,))
        case Edit():
            return Applied(changed=(number,))
        case StatusUpdate(to=to):
            return Applied(reopened=(number,)) if to is TaskStatus.OPEN else Applied(closed=(number,))
        case _:
            assert_never(change)


def task_of_issue(tx: Transaction, number: int) -> Task | None:
    """The task of an issue, where there is one; a task of our own with its number is refused."""
    refuse_own_numbers(tx, [number])
    try:
        return task_with_rows(tx, number).task
    except NotFoundError:
        return None


def _labels_to_be(tx: Transaction, issue: TrackedIssue) -> tuple[str, ...] | None:
    """The labels of an issue once all that is on its way has arrived; None where nothing is."""
    waiting = [entry.change for entry in outbox.in_lane(tx, f"issue:{issue.number}") if not entry.status.ended]
    changes = [change for change in waiting if isinstance(change, Relabel)]
    if not changes:
        return None
    labels = dict.fromkeys(issue.labels)
    for change in changes:
        labels = dict.fromkeys(label for label in (*labels, *change.add) if label not in change.remove)
    return tuple(labels)


def _stands(task: Task, should: Relations, known: Mapping[int, Task]) -> bool:
    """Whether nothing is to be changed: the usual case, found without a transaction."""
    outside = outside_reason(should.outside) if should.outside else ""
    here = task.blocker.reason if task.blocker and task.blocker.reason.startswith(OUTSIDE) else ""
    same_way = here == outside or (bool(outside) and task.status is not TaskStatus.OPEN)
    same_parent = should.parent == task.parent or (task.parent is not None and task.parent not in known)
    extra = [on for on in task.dependencies if on in known and on not in should.dependencies]
    return same_way and same_parent and not extra and should.dependencies <= set(task.dependencies)


def _stand_in_the_way(tx: Transaction, number: int, outside: Sequence[str]) -> None:
    task = task_with_rows(tx, number).task
    by_tracker = task.blocker is not None and task.blocker.reason.startswith(OUTSIDE)
    if outside and task.status is TaskStatus.OPEN:
        reason = outside_reason(outside)
        blocker = Blocker(BlockerKind.DEPENDENCY, reason)
        change_status(tx, number, StatusChange(to=TaskStatus.BLOCKED, actor=_GENBA, reason=reason, blocker=blocker))
    elif not outside and by_tracker:
        change_status(
            tx, number, StatusChange(to=TaskStatus.OPEN, actor=_GENBA, reason="nothing outside stands in its way")
        )


def _last_words(tx: Transaction, task: int) -> tuple[set[int], set[int]]:
    """Dependencies that people took away here, and those that the tracker added: the last change counts."""
    by_people: set[int] = set()
    by_tracker: set[int] = set()
    for actor, kind, data in tx.all(_LAST_WORDS, task=task):
        on = int(msgspec.json.decode(data).get("on", 0))
        by_people.discard(on)
        by_tracker.discard(on)
        result = actor == ActorKind.TRACKER
        if result and kind == history.DEPENDENCY_ADDED:
            by_tracker.add(on)
        elif not result and kind == history.DEPENDENCY_REMOVED:
            by_people.add(on)
    return by_people, by_tracker


def _refusal(work: Callable[[], object]) -> list[str]:
    """Why a change was refused. A refusal writes nothing."""
    try:
        work()
    except GenbaError as error:
        return [error.message]
    return []


def _clean(issue: TrackedIssue) -> TrackedIssue:
    """What the databases can keep; nothing of it is refused."""
    labels = tuple(dict.fromkeys(label for one in issue.labels if (label := seen(one).strip())))
    return msgspec.structs.replace(issue, title=seen(issue.title), body=seen(issue.body), labels=labels)


def _summed(parts: Iterable[Applied]) -> Applied:
    """All of it, added up at once: ten thousand small sums would be slow."""
    all_parts = list(parts)
    if not all_parts:
        return Applied()
    return Applied(
        **{name: tuple(one for part in all_parts for one in getattr(part, name)) for name in Applied.__struct_fields__}
    )


def rows_that_fit(rows: Iterable[TrackedRow], wanted: Wanted) -> list[TrackedRow]:
    """Open issues without a task that a choice may take; where they lie on a board is known only of detailed ones."""
    by_label = Wanted(label=wanted.label)
    return [row for row in rows if not row.has_task and not row.issue.closed and by_label.takes(row.issue)]
