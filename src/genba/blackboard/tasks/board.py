"""The blackboard of one project: the one door to its tasks.

Every call is one transaction: it happens whole, or it raises and nothing was changed. Any thread may call.
"""

from collections.abc import Callable, Sequence
from types import TracebackType

import msgspec

from genba.blackboard.database.connect import open_store
from genba.blackboard.database.paging import WHOLE, Page
from genba.blackboard.database.repository_binding import FindOwner, project_of
from genba.blackboard.database.sanitize import storable
from genba.blackboard.database.store import Store, Transaction
from genba.blackboard.fleet import escalations, sessions
from genba.blackboard.reviews import requests, reviews
from genba.blackboard.reviews import sessions as review_sessions
from genba.blackboard.tasks import (
    agent_goals,
    dependencies,
    history,
    imports,
    status_gateway,
    task_records,
    task_rows,
    task_tree,
    transition_rules,
    verifications,
)
from genba.blackboard.tasks.ready import ReadyTasks
from genba.domain.fleet.records import Review
from genba.domain.goals.verification import Verification
from genba.domain.sessions.session import Briefing, Died, SessionEnd, SessionStart
from genba.domain.tasks.task import (
    Actor,
    Comment,
    StatusChange,
    Task,
    TaskDraft,
    TaskEdit,
    TaskEvent,
    TaskStatus,
)
from genba.domain.tasks.task_import import ImportableTask, ImportedTask


class Blackboard:
    """What everybody can see and change of a project's tasks, by the same laws."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._ready = ReadyTasks()

    @classmethod
    def open(
        cls,
        url_or_path: str,
        project: str,
        busy_seconds: float = 30.0,
        owner: FindOwner | None = None,
        adopt: bool = False,
    ) -> "Blackboard":
        """The blackboard in a file or at a `postgresql://` address; what is not there yet is made.

        `owner`: the repository that opens it. A file of another one is refused, unless it is to `adopt` it.
        """
        storable(project, "the name of the project", empty=False)
        store = open_store(url_or_path, busy_seconds)
        try:
            store.project = project_of(store, project, owner, adopt)
        except BaseException:
            store.close()
            raise
        return cls(store)

    def __enter__(self) -> "Blackboard":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.store.close()

    def add(self, draft: TaskDraft, actor: Actor) -> Task:
        return self.store.write(lambda tx: task_records.add(tx, draft, actor))

    def import_tasks(
        self, wanted: Sequence[ImportableTask], actor: Actor, keep: bool = True
    ) -> tuple[ImportedTask, ...]:
        """Create the tasks of another tool that are not here yet, all or none. Without `keep` it is undone."""

        def work(tx: Transaction) -> tuple[ImportedTask, ...]:
            result = imports.import_tasks(tx, wanted, actor)
            if not keep:
                raise imports.DryRun(result)
            return result

        try:
            return self.store.write(work)
        except imports.DryRun as undone:
            return undone.result

    def get(self, number: int) -> Task:
        return self.store.read(lambda tx: _with_approval(tx, task_rows.task_with_rows(tx, number).task))

    def find(
        self,
        *,
        status: tuple[TaskStatus, ...] = (),
        type: str = "",  # noqa: A002  (the word of the house)
        label: str = "",
        assignee: str = "",
        parent: int | None = None,
        text: str = "",
        limit: int | None = None,
    ) -> list[Task]:
        return self.store.read(
            lambda tx: task_records.find(
                tx, status=status, type=type, label=label, assignee=assignee, parent=parent, text=text, limit=limit
            )
        )

    def edit(
        self,
        number: int,
        edit: TaskEdit,
        actor: Actor,
        version: int | None = None,
        change: StatusChange | None = None,
    ) -> Task:
        """Change what a task says, and together with it its status, or nothing at all."""

        def both(tx: Transaction) -> Task:
            if change is not None:  # parents are held before their children
                task_tree.hold_line(tx, number, with_itself=False)
            edited = task_records.edit(tx, number, edit, actor, version)
            return edited if change is None else status_gateway.change_status(tx, number, change)

        return self.store.write(both)

    def change_status(self, number: int, change: StatusChange) -> Task:
        """The gateway: nothing else changes a status."""
        return self.store.write(lambda tx: status_gateway.change_status(tx, number, change))

    def approve(self, number: int, commit: str, actor: Actor) -> Task:
        """Approve a commit of a task in review. Ends the open review and the escalation about it."""

        def both(tx: Transaction) -> Task:
            if reviews.settle_by_hand(tx, number, commit, True, (), actor):
                approved = task_rows.task_with_rows(tx, number).task
            else:
                approved = status_gateway.approve(tx, number, commit, actor)
            escalations.settle_review(tx, number, commit, actor)
            return approved

        return self.store.write(both)

    def reject(self, number: int, commit: str, reason: str, actor: Actor) -> None:
        """Request changes of a commit of a task in review that has no open decision."""
        self.store.write(lambda tx: requests.reject_commit(tx, number, commit, reason, actor))

    def ask_review(self, number: int, commit: str, run: str, rounds: int, words: Callable[[str], str] = str) -> Review:
        """Create the review task of a verified commit; where a person reviews, also the decision. Safe to repeat."""
        return self.store.write(lambda tx: requests.request_review(tx, number, commit, run, rounds, words))

    def begin_review(self, number: int, start: SessionStart, died: Died) -> None:
        """Claim a review task for a session of `genba run`. Raises StateConflictError while another performs it."""
        self.store.write(lambda tx: review_sessions.begin_review(tx, number, start, died))

    def end_review(self, number: int, end: SessionEnd) -> None:
        """Record how that session ended; without a verdict its task is open again. Safe to repeat."""
        self.store.write(lambda tx: review_sessions.end_review(tx, number, end))

    def record_advice(self, number: int, start: SessionStart, end: SessionEnd) -> None:
        """Record a session that advised on a task where a person decides."""
        self.store.write(lambda tx: review_sessions.record_advice(tx, number, start, end))

    def authors(self, number: int) -> frozenset[str]:
        """The agents that have worked on a task."""
        return self.store.read(lambda tx: reviews.authors(tx, number))

    def commit_in_review(self, number: int) -> str:
        """The commit that waits for its review or to land; empty when the task is not in review."""
        return self.store.read(lambda tx: requests.commit_in_review(tx, number))

    def depend(self, number: int, on: int, actor: Actor) -> Task:
        return self.store.write(lambda tx: dependencies.depend(tx, number, on, actor))

    def undepend(self, number: int, on: int, actor: Actor) -> Task:
        return self.store.write(lambda tx: dependencies.undepend(tx, number, on, actor))

    def relate(self, number: int, add: tuple[int, ...], remove: tuple[int, ...], actor: Actor) -> Task:
        """Change what a task depends on: all of it, or nothing."""
        return self.store.write(lambda tx: dependencies.change_dependencies(tx, number, add, remove, actor))

    def comment(self, number: int, body: str, actor: Actor) -> Comment:
        return self.store.write(lambda tx: task_records.comment(tx, number, body, actor))

    def comments(self, number: int, page: Page = WHOLE) -> list[Comment]:
        return self.store.read(lambda tx: task_records.comments(tx, number, page))

    def events(self, number: int, page: Page = WHOLE) -> list[TaskEvent]:
        return self.store.read(lambda tx: history.events(tx, number, page))

    def ready(self, limit: int | None = None) -> list[Task]:
        return self.store.read(lambda tx: self._ready.read(tx, limit))

    def begin_session(self, number: int, start: SessionStart, died: Died | None = None) -> Briefing:
        return self.store.write(lambda tx: sessions.begin_session(tx, number, start, died))

    def newest_session(self, number: int) -> SessionStart:
        """How the newest session of a task began; all of it empty when there was none."""
        return self.store.read(lambda tx: sessions.newest_session(tx, number))

    def start_of(self, run: str) -> SessionStart:
        """How a session began; all of it empty when there is none."""
        return self.store.read(lambda tx: sessions.start_of(tx, run))

    def tasks_of_branch(self, branch: str) -> tuple[int, ...]:
        """The open tasks whose sessions worked on this branch."""
        return self.store.read(lambda tx: sessions.tasks_of_branch(tx, branch))

    def places_of(self, number: int) -> tuple[tuple[str, str], ...]:
        """The sessions that worked on a task, each with its branch."""
        return self.store.read(lambda tx: sessions.places_of(tx, number))

    def enable_agent_commands(self, number: int, enabled: bool, actor: Actor) -> Task:
        """A person lets goals that agents write for a task, and below it, run programs; or ends that."""
        return self.store.write(lambda tx: agent_goals.enable(tx, number, enabled, actor))

    def agent_commands(self, number: int) -> bool:
        """True when a person enabled that for a task."""
        return self.store.read(lambda tx: agent_goals.are_enabled(tx, number))

    def end_session(self, end: SessionEnd) -> None:
        self.store.write(lambda tx: sessions.end_session(tx, end))

    def record_verification(self, number: int, run: str, verification: Verification) -> None:
        self.store.write(lambda tx: verifications.record_verification(tx, number, run, verification))

    def last_verification(self, number: int) -> Verification | None:
        return self.store.read(lambda tx: verifications.last_verification(tx, number))


def _with_approval(tx: Transaction, task: Task) -> Task:
    if not task.requires_review or task.status is not TaskStatus.REVIEW:
        return task
    return msgspec.structs.replace(task, approved=transition_rules.approved_commit(tx, task))
