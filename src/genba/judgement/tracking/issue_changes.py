"""What an issue of a tracker means for its task.

Law: what counts is what changed on the tracker since its copy was made. So what people set here stays until a person
changes the same thing there, and what Genba has changed here and not yet sent is not taken back.
"""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from genba.definitions.project.tracker_section import GitHubSettings
from genba.domain.tasks.task import Priority, Task, TaskDraft, TaskEdit, TaskStatus
from genba.domain.tracker.remote import TrackedIssue

_MAX_NAMES = 5
GITHUB = "github"
"""The tracker of a task whose issue lives on GitHub."""

OUTSIDE = "outside of the field: "
"""How the reason of a block begins that the tracker alone can clear."""

_DROPPED = ("not_planned", "duplicate")
_ORDER = tuple(Priority)
_LONGEST_TITLE = 1_000


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which issues become tasks: those with the label, and on the board, where these are named."""

    label: str = ""
    owner: str = ""
    project: int | None = None

    @classmethod
    def by(cls, settings: GitHubSettings) -> "Wanted":
        board = settings.board
        if board is None:
            return cls(label=settings.label)
        return cls(label=settings.label, owner=board.owner or owner_of(settings), project=board.number)

    @property
    def all(self) -> bool:
        return not self.label and self.project is None

    def takes(self, issue: TrackedIssue) -> bool:
        return not self.lacks(issue)

    def lacks(self, issue: TrackedIssue) -> str:
        """Why an issue is not in the field; an empty string when it is."""
        if self.label and self.label.lower() not in (label.lower() for label in issue.labels):
            return f'it does not have the label "{self.label}"'
        if self.project is None:
            return ""
        mine = any(card.project == self.project and card.owner.lower() == self.owner.lower() for card in issue.cards)
        return "" if mine else f"it is not on the board {self.owner}/{self.project}"


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What this project knows: names that an issue may use."""

    agents: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()


class Adopt(msgspec.Struct, frozen=True, kw_only=True):
    """An issue becomes a task."""

    draft: TaskDraft


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    edit: TaskEdit


class StatusUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """What the status follows from changed on the tracker."""

    to: TaskStatus
    reason: str


Change = Adopt | Edit | StatusUpdate


class TrackerScan(msgspec.Struct, frozen=True, kw_only=True):
    """An issue as it is now, and as it was when it was last acted on."""

    issue: TrackedIssue
    before: TrackedIssue | None = None
    """None: it was never acted on."""
    was_in_field: bool = False
    gone: bool = False
    labels: tuple[str, ...] | None = None
    """Its labels once what Genba has changed here has arrived there; None: as they are."""


def meaning(
    sight: TrackerScan,
    task: Task | None,
    wanted: Wanted,
    settings: GitHubSettings,
    known: Known,
    asked: bool = False,
) -> tuple[Change, ...]:
    """What is to be changed, in order. `asked`: a person named this issue, or this choice of issues."""
    if task is None:
        return _adopted(sight, wanted, settings, known, asked)
    changes: list[Change] = []
    if not sight.gone:
        edit = _edit(sight, task, settings, known)
        changes += [Edit(edit=edit)] if edit != TaskEdit() else []
    move = _move(sight, task, wanted)
    return (*changes, move) if move is not None else tuple(changes)


def owner_of(settings: GitHubSettings) -> str:
    return settings.repository.partition("/")[0]


def _adopted(
    sight: TrackerScan, wanted: Wanted, settings: GitHubSettings, known: Known, asked: bool
) -> tuple[Change, ...]:
    """An issue that is closed when it is first seen becomes no task: it stays in the copy."""
    issue = sight.issue
    if sight.gone or issue.closed or not (asked or wanted.takes(issue)):
        return ()
    # What anybody on the internet can write is not worked on before a person of the project has chosen it.
    chosen = asked or issue.trusted or not wanted.all or settings.comments_from == "everyone"
    return (
        Adopt(
            draft=TaskDraft(
                number=issue.number,
                title=title_of(issue),
                body=issue.body,
                type=type_of(issue, settings, known) or "task",
                priority=priority_of(issue, settings) or Priority.MEDIUM,
                labels=issue.labels,
                due=issue.due,
                assignee=_agent(issue, known),
                status=TaskStatus.OPEN if chosen else TaskStatus.BACKLOG,
                tracker=GITHUB,
                tracker_reference=issue.reference,
            )
        ),
    )


def _edit(sight: TrackerScan, task: Task, settings: GitHubSettings, known: Known) -> TaskEdit:
    """What differs from the copy; without one, what differs from the task."""
    issue, before = sight.issue, sight.before
    old_title, old_body = (title_of(before), before.body) if before else (task.title, task.body)
    old_labels = before.labels if before else task.labels
    labels = issue.labels if sight.labels is None else sight.labels
    priority, kind = priority_of(issue, settings), type_of(issue, settings, known)
    old_priority = priority_of(before, settings) if before else None
    old_kind = type_of(before, settings, known) if before else None
    return TaskEdit(
        title=_changed(title_of(issue), old_title, task.title),
        body=_changed(issue.body, old_body, task.body),
        type=_changed(kind, old_kind, task.type) if kind else None,
        priority=None if priority is None or priority in (old_priority, task.priority) else priority,
        add_labels=tuple(name for name in labels if name not in old_labels and name not in task.labels),
        remove_labels=tuple(name for name in old_labels if name not in labels and name in task.labels),
        assignee=_assignee(sight, task, known),
        due=_changed(issue.due, before.due if before else task.due, task.due),
    )


def _changed(now: str, before: str | None, here: str) -> str | None:
    return None if now in (before, here) else now


def _assignee(sight: TrackerScan, task: Task, known: Known) -> str | None:
    """The agent that people named on the tracker, unless a person set another one here."""
    agent = _agent(sight.issue, known)
    if agent:
        return agent if not task.assignee else None
    taken_away = sight.before is not None and task.assignee and task.assignee == _agent(sight.before, known)
    return "" if taken_away else None


def _agent(issue: TrackedIssue, known: Known) -> str:
    return next((login for login in issue.assignees if login in known.agents), "")


def _move(sight: TrackerScan, task: Task, wanted: Wanted) -> StatusUpdate | None:
    issue, before, ended = sight.issue, sight.before, task.status.ended
    if sight.gone:
        return (
            None if ended else StatusUpdate(to=TaskStatus.CANCELLED, reason="its issue was deleted, or moved elsewhere")
        )
    was_closed = before is not None and before.closed
    if issue.closed:
        if ended or was_closed:
            return None
        if issue.state_reason in _DROPPED:
            word = issue.state_reason.replace("_", " ")
            return StatusUpdate(to=TaskStatus.CANCELLED, reason=f"closed on GitHub as {word}")
        return StatusUpdate(to=TaskStatus.DONE, reason="closed on GitHub")
    if was_closed and ended:
        return StatusUpdate(to=TaskStatus.OPEN, reason="reopened on GitHub")
    lacks = wanted.lacks(issue)
    if lacks and sight.was_in_field and not ended:
        return StatusUpdate(to=TaskStatus.CANCELLED, reason=f"left the field: {lacks}")
    if not lacks and not sight.was_in_field and before is not None and task.status is TaskStatus.CANCELLED:
        return StatusUpdate(to=TaskStatus.OPEN, reason="back in the field")
    return None


def title_of(issue: TrackedIssue) -> str:
    return issue.title.strip()[:_LONGEST_TITLE] or f"issue {issue.number}"


def priority_of(issue: TrackedIssue, settings: GitHubSettings) -> Priority | None:
    """The highest that a label stands for; None where no label says anything."""
    by_label = {label.lower(): Priority(priority) for label, priority in settings.priorities.items()}
    named = [by_label[label.lower()] for label in issue.labels if label.lower() in by_label]
    return min(named, key=_ORDER.index, default=None)


def type_of(issue: TrackedIssue, settings: GitHubSettings, known: Known) -> str:
    """What the settings say for its type or a label; else its own type, if the project knows it."""
    by_name = {name.lower(): kind for name, kind in settings.types.items()}
    for name in (issue.type, *issue.labels):
        if name.lower() in by_name:
            return by_name[name.lower()]
    return next((kind for kind in sorted(known.types) if kind.lower() == issue.type.lower()), "")


# ── relations ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Relations(msgspec.Struct, frozen=True, kw_only=True):
    """What a task should wait for, by what the copy shows."""

    dependencies: frozenset[int] = frozenset()
    dropped: frozenset[int] = frozenset()
    """What it must not wait for any more: issues that were closed as not planned, and those that are gone."""
    parent: int | None = None
    outside: tuple[str, ...] = ()
    """What stands in its way where Genba has no task for it."""


class IssueStatus(msgspec.Struct, frozen=True):
    """Where an issue of the copy stands: itself, and its task, if it has one."""

    closed: bool
    task: TaskStatus | None = None


def relations(issue: TrackedIssue, copy: Mapping[int, IssueStatus]) -> Relations:
    """What an issue waits for. A closed one blocks nothing."""
    waits: set[int] = set()
    dropped: set[int] = set()
    outside: list[str] = []
    for number in issue.blocked_by:
        found = copy.get(number)
        if number == issue.number:
            continue
        if found is not None and found.task is not None:
            closed_undone = found.closed and found.task is not TaskStatus.DONE
            (dropped if closed_undone else waits).add(number)
        elif found is None or not found.closed:
            outside.append(f"#{number}")
    outside += issue.blocked_elsewhere
    above = copy.get(issue.parent) if issue.parent is not None else None
    parent = issue.parent if above is not None and above.task is not None and not above.task.ended else None
    return Relations(
        dependencies=frozenset(waits), dropped=frozenset(dropped), parent=parent, outside=tuple(dict.fromkeys(outside))
    )


def outside_reason(outside: Collection[str]) -> str:
    return f"{OUTSIDE}it waits for {_listed(outside)}"


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    shown = ", ".join(every[:_MAX_NAMES])
    return f"{shown} and {len(every) - _MAX_NAMES} more" if len(every) > _MAX_NAMES else shown
