"""The blackboard of one project: the one door to its tasks.

Every call is one transaction: it happens whole, or it raises and nothing was changed. Any thread may call.
"""

import secrets
from types import TracebackType

import msgspec

from genba.blackboard import (
    conditions,
    dependencies,
    escalations,
    families,
    gateway,
    history,
    reviews,
    rows,
    sessions,
    tasks,
    verifications,
)
from genba.blackboard.opening import open_store
from genba.blackboard.paging import WHOLE, Page
from genba.blackboard.ready import ReadyTasks
from genba.blackboard.store import Statement, Store, Transaction
from genba.blackboard.texts import now, storable
from genba.domain.sessions import Briefing, Died, SessionEnd, SessionStart
from genba.domain.tasks import (
    Actor,
    Comment,
    StatusChange,
    Task,
    TaskDraft,
    TaskEdit,
    TaskEvent,
    TaskStatus,
)
from genba.domain.verification import Verification

_PROJECT = Statement("SELECT id FROM projects WHERE name = :name")
_ADD_PROJECT = Statement("""
INSERT INTO projects (id, name, created_at) VALUES (:id, :name, :at) ON CONFLICT (name) DO NOTHING
""")


_ALL_PROJECTS = Statement("SELECT id FROM projects")
_RENAME = Statement("UPDATE projects SET name = :name WHERE id = :id")


class Blackboard:
    """What everybody can see and change of a project's tasks, by the same laws."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._ready = ReadyTasks()

    @classmethod
    def open(cls, url_or_path: str, project: str, busy_seconds: float = 30.0) -> "Blackboard":
        """The blackboard in a file or at a `postgresql://` address; what is not there yet is made."""
        storable(project, "the name of the project", empty=False)
        store = open_store(url_or_path, busy_seconds)
        try:
            store.project = _project(store, project)
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
        return self.store.write(lambda tx: tasks.add(tx, draft, actor))

    def get(self, number: int) -> Task:
        return self.store.read(lambda tx: _with_approval(tx, rows.look(tx, number).task))

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
            lambda tx: tasks.find(
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
                families.hold_line(tx, number, with_itself=False)
            edited = tasks.edit(tx, number, edit, actor, version)
            return edited if change is None else gateway.change_status(tx, number, change)

        return self.store.write(both)

    def change_status(self, number: int, change: StatusChange) -> Task:
        """The gateway: nothing else changes a status."""
        return self.store.write(lambda tx: gateway.change_status(tx, number, change))

    def approve(self, number: int, commit: str, actor: Actor) -> Task:
        """Approve a commit of a task in review. Whoever was asked for that is done with it."""

        def both(tx: Transaction) -> Task:
            if reviews.settle_by_hand(tx, number, commit, True, (), actor):
                approved = rows.look(tx, number).task
            else:
                approved = gateway.approve(tx, number, commit, actor)
            escalations.settle_review(tx, number, commit, actor)
            return approved

        return self.store.write(both)

    def depend(self, number: int, on: int, actor: Actor) -> Task:
        return self.store.write(lambda tx: dependencies.depend(tx, number, on, actor))

    def undepend(self, number: int, on: int, actor: Actor) -> Task:
        return self.store.write(lambda tx: dependencies.undepend(tx, number, on, actor))

    def relate(self, number: int, add: tuple[int, ...], remove: tuple[int, ...], actor: Actor) -> Task:
        """Change what a task depends on: all of it, or nothing."""
        return self.store.write(lambda tx: dependencies.relate(tx, number, add, remove, actor))

    def comment(self, number: int, body: str, actor: Actor) -> Comment:
        return self.store.write(lambda tx: tasks.comment(tx, number, body, actor))

    def comments(self, number: int, page: Page = WHOLE) -> list[Comment]:
        return self.store.read(lambda tx: tasks.comments(tx, number, page))

    def events(self, number: int, page: Page = WHOLE) -> list[TaskEvent]:
        return self.store.read(lambda tx: history.events(tx, number, page))

    def ready(self, limit: int | None = None) -> list[Task]:
        return self.store.read(lambda tx: self._ready.read(tx, limit))

    def begin_session(self, number: int, start: SessionStart, died: Died | None = None) -> Briefing:
        return self.store.write(lambda tx: sessions.begin_session(tx, number, start, died))

    def newest_session(self, number: int) -> SessionStart:
        """How the newest session of a task began; all of it empty when there was none."""
        return self.store.read(lambda tx: sessions.newest_session(tx, number))

    def end_session(self, end: SessionEnd) -> None:
        self.store.write(lambda tx: sessions.end_session(tx, end))

    def record_verification(self, number: int, run: str, verification: Verification) -> None:
        self.store.write(lambda tx: verifications.record_verification(tx, number, run, verification))

    def last_verification(self, number: int) -> Verification | None:
        return self.store.read(lambda tx: verifications.last_verification(tx, number))


def _with_approval(tx: Transaction, task: Task) -> Task:
    if not task.requires_review or task.status is not TaskStatus.REVIEW:
        return task
    return msgspec.structs.replace(task, approved=conditions.approved_commit(tx, task))


def _project(store: Store, name: str) -> str:
    found = store.read(lambda tx: tx.one(_PROJECT, name=name))
    return str(found[0]) if found else store.write(lambda tx: _make_project(tx, name))


def _make_project(tx: Transaction, name: str) -> str:
    """A new project. A file belongs to one repository: a project in it that has got another name is the same one."""
    there = [] if tx.on_postgres else tx.all(_ALL_PROJECTS)
    if len(there) == 1:
        tx.do(_RENAME, id=there[0][0], name=name)
        return str(there[0][0])
    tx.do(_ADD_PROJECT, id=f"prj_{secrets.token_hex(8)}", name=name, at=now())
    row = tx.one(_PROJECT, name=name)
    return str(row[0]) if row else ""
