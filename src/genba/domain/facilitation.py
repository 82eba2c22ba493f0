"""The nouns of the facilitator: what happened in the field, what state each issue is in, and what to do next."""

from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from genba.domain.tasks.task import Phase, Priority, TaskStatus
from genba.domain.tracker.remote import TrackedPullRequest


class FactKind(StrEnum):
    ISSUE_CREATED = "issue_created"
    ISSUE_CLOSED = "issue_closed"
    ISSUE_REOPENED = "issue_reopened"
    COMMENTED = "commented"
    AGENT_STARTED = "agent_started"
    AGENT_ENDED = "agent_ended"
    STATUS_CHANGED = "status_changed"
    VERIFIED = "verified"
    COMMIT = "commit_pushed"
    MERGED = "merged"
    REVERTED = "reverted"
    PULL_REQUEST_OPENED = "pull_request_opened"
    PULL_REQUEST_MERGED = "pull_request_merged"
    PULL_REQUEST_CLOSED = "pull_request_closed"
    REVIEWED = "reviewed"


class Source(StrEnum):
    """Where a fact was seen."""

    LOG = "log"
    GIT = "git"
    TRACKER = "tracker"
    BLACKBOARD = "blackboard"


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened to one issue. `key` is the same for the same thing, however often it is seen."""

    key: str
    time: str
    """UTC, ISO 8601."""
    type: FactKind
    issue: int
    source: Source
    agent: str = ""
    run: str = ""
    sha: str = ""
    branch: str = ""
    pull_request: int | None = None
    who: str = ""
    detail: str = ""


class How(StrEnum):
    """How a commit says which issue it is about, the surest first."""

    TRAILER = "trailer"
    BRANCH = "branch"
    KEYWORD = "keyword"
    """Closes #12, fixes #12 …"""
    PULL_REQUEST = "pull_request"
    """The commit of a pull request, such as a squash whose subject ends in (#31)."""
    MENTION = "mention"
    """#12 somewhere in its text: a hint, and no work on it by itself."""


class SeenCommit(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    sha: str
    time: str
    how: How
    subject: str = ""
    on_base: bool = False
    """Whether it can be reached from the base branch."""
    reverted_by: str = ""
    """The commit on the base that took it back; empty, also when that one was reverted itself."""
    agent: str = ""
    run: str = ""
    branch: str = ""
    """With BRANCH: the branch that names the issue. Of a commit that is not on the base: the branch that it is on."""


class SeenBranch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: str
    tip: str
    time: str
    ahead: int = 0
    """Commits that are not on the base."""
    landed: bool = False
    """Its work is on the base, merged or squashed (the same tree change)."""
    remote: bool = False
    run: str = ""
    """The session that its newest commit is by."""


class ScanPosition(msgspec.Struct, frozen=True, kw_only=True):
    """How far the history of the base was read."""

    base: str
    tip: str
    shallow: bool = False
    form: str = ""
    """The version that read it: another one reads everything again."""


class Scanned(msgspec.Struct, kw_only=True):
    """What git shows of issues, by their numbers: what is new on the base, and everything that is not on it."""

    position: ScanPosition
    full: bool = False
    """Whether the whole base was read: what was known of it before counts no more."""
    unread: bool = False
    """Whether there is history, and no base to read it by."""
    on_base: dict[int, list[SeenCommit]] = {}
    of_requests: dict[int, list[SeenCommit]] = {}
    """By pull request: commits on the base that say they are it."""
    reverts: dict[str, str] = {}
    """By commit: the one on the base that took it back. New ones only."""
    claimed_reverts: dict[str, str] = {}
    """The same, where a session says so: it counts only where the commit undoes the other one."""
    reverted_requests: dict[int, str] = {}
    off_base: dict[int, list[SeenCommit]] = {}
    branches: dict[int, list[SeenBranch]] = {}
    remotes: tuple[str, ...] = ()
    """The addresses of the remotes: numbers in texts belong to the tracker of one of them."""
    notes: tuple[str, ...] = ()


class SeenSession(msgspec.Struct, frozen=True, kw_only=True):
    run: str
    agent: str
    status: str
    """running | waiting | ended"""
    alive: bool = False
    """Whether its agent is running now."""
    waits_for: str = ""
    outcome: str = ""
    reason: str = ""
    branch: str = ""
    verified: str = ""
    started_at: str = ""
    last_at: str = ""
    dirty_tree: str = ""
    """Its worktree with uncommitted changes, where no agent runs in it."""


class IssueFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was seen of one issue. The judge reads nothing else."""

    number: int
    title: str = ""
    body: str = ""
    labels: tuple[str, ...] = ()
    own_labels: tuple[str, ...] = ()
    """Those of its labels that the facilitator put there itself: they are no news to it."""
    state: str = "open"
    """open | closed, by its tracker."""
    state_reason: str = ""
    closed_by: str = ""
    created_at: str = ""
    updated_at: str = ""
    closed_at: str = ""
    reopened_at: str = ""
    priority: Priority = Priority.MEDIUM
    due: str = ""
    """The day of its deadline; empty without one."""
    status: TaskStatus | None = None
    """Of its task on the blackboard; None where it has none."""
    blocker_kind: str = ""
    blocker_reason: str = ""
    question: str = ""
    """The open question about it, on the blackboard."""
    parent: int | None = None
    children: tuple[int, ...] = ()
    dependencies: tuple[int, ...] = ()
    blocked_elsewhere: tuple[str, ...] = ()
    commits: tuple[SeenCommit, ...] = ()
    branches: tuple[SeenBranch, ...] = ()
    pull_requests: tuple[TrackedPullRequest, ...] = ()
    sessions: tuple[SeenSession, ...] = ()
    phase_runs: tuple[str, ...] = ()
    """Runs that came to their end and left its task unfinished, as the blackboard says: a phase, and not the whole.

    What they landed does not complete it: landing the whole changes the status in the same transaction.
    """
    verified: str = ""
    """The commit that every required goal passed on last."""
    approved: str = ""
    rejected: str = ""
    """What the last verification or review wants changed."""
    card_status: str = ""
    assignees: tuple[str, ...] = ()
    requires_review: bool = False
    reviewer_type: str = "human"
    stage: str | None = None
    """The agent whose stage its task is at; empty where all stages are complete, None where its type has none."""
    type: str = ""
    """Of its task; empty where it has none."""
    assignee: str = ""
    """Who has its task, an agent or a person; on its tracker others may be named."""
    phases: tuple[Phase, ...] = ()
    """The phases of its task that are complete, oldest first."""
    asks_person: bool = False
    """Whether a decision of a person on the commit in review is open."""
    last_at: str = ""
    """When something last happened to it."""
    missing: tuple[str, ...] = ()
    """What could not be read, in words: `the tracker does not answer`, `the clone is shallow`."""


class IssueState(StrEnum):
    DONE = "done"
    REVIEW_PENDING = "review_pending"
    IN_PROGRESS = "in_progress"
    INCOMPLETE = "incomplete"
    BLOCKED = "blocked"
    UNKNOWN = "unknown"


class Freshness(StrEnum):
    ACTIVE = "active"
    RECENT = "recent"
    STALE = "stale"


class IssueBlockerKind(StrEnum):
    DEPENDENCY = "dependency"
    CYCLE = "cycle"
    ELSEWHERE = "elsewhere"
    QUESTION = "question"
    LABEL = "label"


class FieldBlocker(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in the way of an issue, and who can clear it."""

    kind: str
    """dependency | cycle | elsewhere | question | conflict | failed | resource | label"""
    detail: str
    issue: int | None = None
    owner: str = ""
    """Who can clear it: an agent, a login, `a person`."""
    chain: tuple[int, ...] = ()
    """From this issue to the one at the root of it."""
    known: bool = True
    """Whether the issue at the root is known here."""


class IssueAssessment(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The state of one issue, with why. The first five fields are the public shape; the rest says more."""

    issue: int
    state: IssueState
    evidence: tuple[str, ...]
    recommendation: str
    required_capability: str | None = None
    title: str = ""
    blockers: tuple[FieldBlocker, ...] = ()
    freshness: Freshness = Freshness.RECENT
    last_at: str = ""
    named_by: How | None = None
    """How the newest commit of it on the base names it; None where no commit did."""
    changed: bool = False
    """Whether the state or its evidence is another one than at the last look."""
    closed: bool = False

    @property
    def over(self) -> bool:
        """Whether nothing is left to do. A closed issue may contradict its facts, and needs a look then."""
        return self.closed and self.state is IssueState.DONE


class CompletionCondition(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the work on an issue must satisfy to be done."""

    text: str
    holds: bool | None
    """As it was verified last; None: not checked, or it could not be."""
    goal: bool = False
    """Whether it is a goal; else an artifact that must exist."""


class FacilitateAction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that makes the field clearer."""

    action: Literal["comment", "label", "update", "attention"]
    """update: the comment that it has already is edited. attention: a person must look."""
    issue: int
    body: str
    label: str | None = None
    remove: tuple[str, ...] = ()
    """With `label`: labels that contradict the facts."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a score."""

    name: str
    value: float
    weight: float
    why: str = ""


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    agent: str
    """`none` where no agent is called."""
    command: str
    description: str
    priority: Literal["high", "medium", "low"]
    score: Annotated[float, Meta(ge=0, le=1)]
    rationale: str
    issue: int | None = None
    parts: tuple[Part, ...] = ()
    deadline: str = ""
    """In words, such as `due 2026-12-01`; empty without one."""


class RecommendAction(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    next_agent: str
    target_issues: tuple[int, ...]
    reason: str
    available_agents: tuple[str, ...]
    suggestions: tuple[Suggestion, ...]


class HealthCondition(msgspec.Struct, frozen=True, kw_only=True):
    """One of the four conditions of a healthy field."""

    name: str
    """states_clear | next_clear | blockers_visible | startable"""
    holds: bool
    offenders: tuple[int, ...] = ()
    detail: str = ""


class OrphanedWork(msgspec.Struct, frozen=True, kw_only=True):
    """Work that does not continue by itself."""

    kind: str
    """not_merged | dead_session | merged_but_open | no_reviewer | dirty_tree | wrong_label"""
    issue: int
    detail: str
    command: str


class AvailableAgent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An agent as a recommendation knows it."""

    name: str
    display_name: str
    description: str
    capabilities: tuple[str, ...]
    parameters: dict[str, Any] = {}
    succeeded: int = 0
    failed: int = 0
    """How its sessions ended so far."""
    answers: bool = True
    """Whether an adapter is chosen for it."""
    asks: bool = False
    """Whether it asks for its next action: a fleet starts it, and no single command does."""


class AgentRegistry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The agents that were found, and when."""

    agents: tuple[AvailableAgent, ...]
    discovered_at: str
    """UTC, ISO 8601."""


class FieldReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one look at the field came to."""

    project: str
    looked_at: str
    """When."""
    agents: tuple[AvailableAgent, ...]
    broken: dict[str, str] = {}
    """By name, the first problem of an agent that cannot be read."""
    assessments: tuple[IssueAssessment, ...]
    resting: tuple[int, ...] = ()
    """Closed issues to which nothing has happened since an earlier look: where they are left out above."""
    actions: tuple[FacilitateAction, ...]
    applied: bool = False
    recommendation: RecommendAction
    health: tuple[HealthCondition, ...]
    orphaned: tuple[OrphanedWork, ...] = ()
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    """What of the field was never read, in words: the report is not about that."""
    incomplete: tuple[str, ...] = ()
    """What keeps it from being complete, in words; empty: states known, next action known, actions carried out."""
