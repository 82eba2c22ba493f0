"""What the facilitator reads of a project, and what it keeps of what it saw.

Law: nothing here changes a status; a comment is recorded in the transaction of its outbox entry.
Of git only the names of commits are kept: what they say is read again where it is wanted.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from genba.blackboard.database.sanitize import as_json, now, seen
from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tasks import task_records
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.tasks.task_rows import task_with_rows
from genba.blackboard.tracker import outbox
from genba.blackboard.triage.task_facts import (
    ENDED,
    BoardRecords,
    Ended,
    Kept,
    SessionSeen,
    TaskSeen,
    read_branches,
    read_kept,
    read_positions,
    read_records,
)
from genba.domain.decoding import reader
from genba.domain.errors import NotFoundError
from genba.domain.facilitation import FacilitateAction, IssueAssessment
from genba.domain.tasks.task import Actor, ActorKind, TaskEdit
from genba.domain.tracker.outbox import KeepComment, Relabel

__all__ = ["ENDED", "FACILITATOR", "BoardRecords", "Ended", "FieldBoard", "Keeps", "Kept", "SessionSeen", "TaskSeen"]

FACILITATOR = "facilitator"
"""The name under which it comments and labels."""
_ACTOR = Actor(ActorKind.ORCHESTRATOR, FACILITATOR)
_OWN_NAME = "genba:facilitator"
"""How the one comment of the facilitator on a task is known."""

_COMMITS = Statement(
    """
SELECT number, commits FROM field_commits
WHERE project_id = :project AND number IN (SELECT value FROM json_each(:numbers))
""",
    """
SELECT number, commits FROM field_commits WHERE project_id = :project
  AND number IN (SELECT CAST(n.value AS bigint) FROM json_array_elements_text(CAST(:numbers AS json)) AS n(value))
""",
)
_NAMED = "(SELECT value FROM json_each(:names))"
_NAMED_POSTGRES = "(SELECT n.value FROM json_array_elements_text(CAST(:names AS json)) AS n(value))"
_TASKS_OF = """
SELECT s.run, t.number FROM sessions s JOIN tasks t ON t.id = s.task_id
WHERE t.project_id = :project AND s.run IN {only}
UNION SELECT s.branch, t.number FROM sessions s JOIN tasks t ON t.id = s.task_id
WHERE t.project_id = :project AND s.branch IN {only}
"""
_TASKS_OF_NAMES = Statement(_TASKS_OF.format(only=_NAMED), _TASKS_OF.format(only=_NAMED_POSTGRES))
_FORGET_COMMITS = Statement("DELETE FROM field_commits WHERE project_id = :project")
_KEEP_COMMITS = Statement("""
INSERT INTO field_commits (project_id, number, commits) VALUES (:project, :number, :commits)
ON CONFLICT (project_id, number) DO UPDATE SET commits = excluded.commits
""")
_KEEP_ISSUE = Statement("""
INSERT INTO field_issues (project_id, number, state, last_at, stamp, assessment)
VALUES (:project, :number, :state, :last_at, :stamp, :assessment)
ON CONFLICT (project_id, number) DO UPDATE SET state = excluded.state, last_at = excluded.last_at,
  stamp = excluded.stamp, assessment = excluded.assessment
""")
_FORGET_ISSUE = Statement("DELETE FROM field_issues WHERE project_id = :project AND number = :number")
_SAY = Statement("""
INSERT INTO field_issues (project_id, number, posted, posted_state) VALUES (:project, :number, :posted, :state)
ON CONFLICT (project_id, number) DO UPDATE SET posted = excluded.posted, posted_state = excluded.posted_state,
  stamp = ''
""")
_KEEP_POSITION = Statement("""
INSERT INTO field_positions (project_id, name, value, updated_at) VALUES (:project, :name, :value, :at)
ON CONFLICT (project_id, name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
""")
_FORGET_ENDED = Statement("UPDATE field_positions SET value = '' WHERE project_id = :project AND name = 'ended'")
_OWN_COMMENT = Statement("""
INSERT INTO comments (task_id, author_kind, author, body, created_at, remote_id, updated_at, trusted)
VALUES (:task, 'orchestrator', 'facilitator', :body, :at, :remote, :at, :yes)
ON CONFLICT (task_id, remote_id) DO UPDATE SET body = excluded.body, updated_at = excluded.updated_at
""")

_names = reader(list[str])


class Keeps(msgspec.Struct, frozen=True, kw_only=True):
    """What one look leaves for the next."""

    assessments: Mapping[int, tuple[str, IssueAssessment]]
    """By issue, what it was judged by, and how it was judged: where either is new."""
    commits: Mapping[int, list[str]]
    """By issue and by pull request: all that is known of it on the base, where something is new."""
    positions: Mapping[str, str]
    full: bool = False
    """What was known of commits before counts no more."""
    gone: tuple[int, ...] = ()


class FieldBoard:
    """The blackboard, as the facilitator sees it. Every call is one transaction; any thread may call."""

    def __init__(self, board: Blackboard) -> None:
        self.store = board.store

    def positions(self) -> dict[str, str]:
        return self.store.read(read_positions)

    def set_position(self, name: str, value: str) -> None:
        self.store.write(lambda tx: tx.do(_KEEP_POSITION, project=tx.project, name=name, value=value, at=now()))

    def before(self) -> tuple[dict[str, str], frozenset[str]]:
        """How far was read, and the branches that sessions work on or have worked on."""
        return self.store.read(lambda tx: (read_positions(tx), read_branches(tx)))

    def read(self, named: Iterable[int] | None = None, branches: Iterable[str] = ()) -> BoardRecords:
        """All issues; or, with some that are named or worked on, these and all that do not rest."""
        return self.store.read(lambda tx: read_records(tx, named, branches))

    def kept(self, numbers: Iterable[int]) -> dict[int, Kept]:
        """What is known of some issues from the last look."""
        return self.store.read(lambda tx: read_kept(tx, numbers))

    def commits(self, numbers: Iterable[int]) -> dict[int, list[str]]:
        """The commits on the base that are known of some issues and pull requests, by their names."""
        asked = as_json(sorted(numbers))
        rows = self.store.read(lambda tx: tx.all(_COMMITS, project=tx.project, numbers=asked))
        return {number: _names.decode(written) for number, written in rows}

    def tasks_of(self, names: Iterable[str]) -> dict[str, frozenset[int]]:
        """By session, and by branch of sessions: the numbers of their tasks. What has no record is left out."""
        asked = as_json(sorted(names))
        found: dict[str, set[int]] = {}
        for name, number in self.store.read(lambda tx: tx.all(_TASKS_OF_NAMES, project=tx.project, names=asked)):
            found.setdefault(name, set()).add(number)
        return {name: frozenset(numbers) for name, numbers in found.items()}

    def keep(self, found: Keeps) -> None:
        """What this look saw, for the next one: what is new of git, what was judged, and how far it was read."""

        def work(tx: Transaction) -> None:
            project = tx.project
            if found.full:
                tx.do(_FORGET_COMMITS, project=project)
            tx.do_each(
                _KEEP_COMMITS,
                [
                    {"project": project, "number": each, "commits": as_json(all_)}
                    for each, all_ in found.commits.items()
                ],
            )
            tx.do_each(_KEEP_ISSUE, [_row(project, *each) for each in found.assessments.values()])
            tx.do_each(_FORGET_ISSUE, [{"project": project, "number": number} for number in found.gone])
            at = now()
            tx.do_each(
                _KEEP_POSITION,
                [
                    {"project": project, "name": name, "value": message, "at": at}
                    for name, message in found.positions.items()
                ],
            )

        self.store.write(work)

    def say(self, issue: int, actions: Iterable[FacilitateAction], state: str, digest: str) -> None:
        """Apply the actions of one issue: here, and by the outbox where its tracker is elsewhere."""
        wanted = list(actions)
        self.store.write(lambda tx: _say(tx, issue, wanted, state, digest))


def _row(project: str, stamp: str, assessment: IssueAssessment) -> dict[str, Any]:
    return {
        "project": project,
        "number": assessment.issue,
        "state": str(assessment.state),
        "last_at": assessment.last_at,
        "stamp": stamp,
        "assessment": as_json(assessment),
    }


def _say(tx: Transaction, issue: int, actions: list[FacilitateAction], state: str, digest: str) -> None:
    try:
        task = task_with_rows(tx, issue).task
    except NotFoundError:
        task = None
    elsewhere = task is None or task.tracker != "local"
    for action in actions:
        match action.action:
            case "comment" | "update" if elsewhere:
                body = seen(action.body)
                outbox.record(
                    tx, f"facilitator:{issue}", KeepComment(issue=issue, name=FACILITATOR, body=body), run=FACILITATOR
                )
            case "comment" | "update" if task is not None:
                tx.do(_OWN_COMMENT, task=task.id, body=seen(action.body), remote=_OWN_NAME, at=now(), yes=True)
            case "label" if task is not None:
                _relabel(tx, issue, action, elsewhere)
            case _:
                continue  # what a person must see is only shown, and recorded
    tx.do(_SAY, project=tx.project, number=issue, posted=digest, state=state)
    tx.do(_FORGET_ENDED, project=tx.project)


def _relabel(tx: Transaction, issue: int, action: FacilitateAction, elsewhere: bool) -> None:
    """The labels here change at once, so that the next look finds them; the tracker's by one change."""
    before = task_with_rows(tx, issue).task
    add = (action.label,) if action.label and action.label not in before.labels else ()
    remove = tuple(label for label in action.remove if label in before.labels)
    if not add and not remove:
        return
    after = task_records.edit(tx, issue, TaskEdit(add_labels=add, remove_labels=remove), _ACTOR, None)
    if elsewhere:
        change = Relabel(issue=issue, add=add, remove=remove)
        outbox.record(tx, f"labels:{issue}:{after.version}", change, run=FACILITATOR)
