"""What is on the GitHub of the tests: plain nouns, changed only by the rules (`*_rules.py`).

Times are texts as GitHub writes them, `2026-11-16T13:00:00Z`: they sort as they are.
Everything with a `node` is found by it in `Hub.nodes`.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.standins.github.bare import BareRepository


@dataclass(slots=True, eq=False)
class User:
    """A person, an organization (`kind` Organization) or an app (`kind` Bot)."""

    id: int
    node: str
    login: str
    kind: str = "User"
    name: str = ""
    email: str = ""
    created_at: str = ""
    members: dict[str, str] = field(default_factory=dict)
    """Of an organization: login to role (admin | member)."""
    projects: "dict[int, Project]" = field(default_factory=dict)
    teams: "dict[str, Team]" = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Team:
    id: int
    node: str
    slug: str
    organization: User
    members: list[User] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Token:
    """A credential. `scopes` are those of a classic token; an installation's token has `permissions` and its app."""

    value: str
    user: User
    scopes: frozenset[str] = frozenset({"repo", "read:org", "project"})
    expires_at: str = ""
    revoked: bool = False
    limit: int = 5000
    used: int = 0
    graphql_used: int = 0
    reset: int = 0
    app: "App | None" = None
    installation: "Installation | None" = None


@dataclass(slots=True, eq=False)
class App:
    id: int
    slug: str
    bot: User
    public_key: str
    client_id: str = ""


@dataclass(slots=True, eq=False)
class Installation:
    id: int
    app: App
    account: User
    permissions: dict[str, str]
    created_at: str = ""


@dataclass(slots=True, eq=False)
class Label:
    id: int
    node: str
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass(slots=True, eq=False)
class IssueType:
    id: int
    node: str
    name: str


@dataclass(slots=True, eq=False)
class Milestone:
    id: int
    node: str
    number: int
    title: str
    creator: User
    created_at: str
    state: str = "open"
    due_on: str = ""


@dataclass(slots=True, eq=False)
class Comment:
    id: int
    node: str
    author: User
    body: str
    created_at: str
    updated_at: str
    issue: "Issue"


@dataclass(slots=True, eq=False)
class TimelineEvent:
    """What happened to an issue, besides comments and reviews. `data` has what is particular to the event."""

    id: int
    node: str
    event: str
    """labeled | unlabeled | closed | reopened | cross-referenced | merged | renamed | review_requested | ..."""
    actor: User
    created_at: str
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Issue:
    """An issue; a pull request is one too (PullRequest), and both share the numbers of the repository."""

    id: int
    node: str
    number: int
    repository: "Repository"
    title: str
    body: str
    author: User
    created_at: str
    updated_at: str
    state: str = "open"
    """open | closed"""
    state_reason: str | None = None
    """completed | not_planned | duplicate | reopened"""
    closed_at: str | None = None
    closed_by: User | None = None
    labels: list[Label] = field(default_factory=list)
    assignees: list[User] = field(default_factory=list)
    milestone: Milestone | None = None
    type: IssueType | None = None
    comments: list[Comment] = field(default_factory=list)
    events: list[TimelineEvent] = field(default_factory=list)
    blocked_by: "list[Issue]" = field(default_factory=list)
    blocking: "list[Issue]" = field(default_factory=list)
    parent: "Issue | None" = None
    sub_issues: "list[Issue]" = field(default_factory=list)
    linked: "list[PullRequest]" = field(default_factory=list)
    """Pull requests that people linked to it by hand."""
    duplicate_of: "Issue | None" = None

    @property
    def is_pull_request(self) -> bool:
        return isinstance(self, PullRequest)


@dataclass(slots=True, eq=False)
class ReviewComment:
    """A remark at a line. Those with the same `thread` belong together."""

    id: int
    node: str
    author: User
    body: str
    path: str
    line: int | None
    commit: str
    created_at: str
    updated_at: str
    side: str = "RIGHT"
    start_line: int | None = None
    in_reply_to: int | None = None
    review: "Review | None" = None
    resolved: bool = False

    @property
    def thread(self) -> int:
        return self.in_reply_to or self.id


@dataclass(slots=True, eq=False)
class Review:
    id: int
    node: str
    author: User
    state: str
    """APPROVED | CHANGES_REQUESTED | COMMENTED | DISMISSED | PENDING"""
    body: str
    commit: str
    submitted_at: str | None
    pull_request: "PullRequest"
    comments: list[ReviewComment] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class PullRequest(Issue):
    """`head_sha` and `base_sha` follow the branches while it is open (see push_rules)."""

    pull_id: int = 0
    """Its id as a pull request; `id` is its id as an issue."""
    head_repository: "Repository | None" = None
    head: str = ""
    head_sha: str = ""
    base: str = ""
    base_sha: str = ""
    draft: bool = False
    merged: bool = False
    merged_at: str | None = None
    merged_by: User | None = None
    merge_sha: str | None = None
    merged_ready: tuple[str, str] = ("", "")
    """Head and base for which `conflicting` is known."""
    conflicting: bool = False
    reviews: list[Review] = field(default_factory=list)
    review_comments: list[ReviewComment] = field(default_factory=list)
    requested_reviewers: list[User] = field(default_factory=list)
    requested_teams: list[Team] = field(default_factory=list)
    maintainer_can_modify: bool = False
    auto_merge: str = ""


@dataclass(slots=True, eq=False)
class CheckRun:
    id: int
    node: str
    name: str
    sha: str
    status: str
    """queued | in_progress | completed"""
    conclusion: str | None
    """success | failure | neutral | cancelled | skipped | timed_out | action_required"""
    started_at: str
    completed_at: str | None = None
    title: str = ""
    summary: str = ""
    details_url: str = ""
    external_id: str = ""


@dataclass(slots=True, eq=False)
class CommitStatus:
    id: int
    node: str
    context: str
    sha: str
    state: str
    """error | failure | pending | success"""
    description: str
    target_url: str
    creator: User
    created_at: str


@dataclass(slots=True)
class Protection:
    """What a branch asks for before something is merged into it."""

    approvals: int = 0
    checks: tuple[str, ...] = ()
    dismiss_stale: bool = False


@dataclass(slots=True, eq=False)
class Repository:
    id: int
    node: str
    owner: User
    name: str
    git: "BareRepository"
    created_at: str
    updated_at: str
    pushed_at: str
    private: bool = False
    default_branch: str = "main"
    description: str | None = None
    archived: bool = False
    delete_branch_on_merge: bool = False
    allow: set[str] = field(default_factory=lambda: {"merge", "squash", "rebase"})
    collaborators: dict[str, str] = field(default_factory=dict)
    """Login (lower case) to admin | write | triage | read."""
    labels: dict[str, Label] = field(default_factory=dict)
    """By name in lower case."""
    milestones: dict[int, Milestone] = field(default_factory=dict)
    issues: dict[int, Issue] = field(default_factory=dict)
    """Issues and pull requests by number."""
    gone: dict[int, Issue | None] = field(default_factory=dict)
    """Numbers that are no more: None for a deleted one, else the issue that it became in another repository."""
    next_number: int = 1
    check_runs: dict[str, list[CheckRun]] = field(default_factory=dict)
    statuses: dict[str, list[CommitStatus]] = field(default_factory=dict)
    """By commit, newest first."""
    protection: dict[str, Protection] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    """The refs as they were seen last: `refs/heads/main` to its commit."""

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    @property
    def pulls(self) -> "list[PullRequest]":
        return [issue for issue in self.issues.values() if isinstance(issue, PullRequest)]


@dataclass(slots=True, eq=False)
class FieldOption:
    id: str
    name: str
    color: str = "GRAY"
    description: str = ""


@dataclass(slots=True, eq=False)
class ProjectField:
    id: int
    node: str
    name: str
    kind: str
    """title | assignees | labels | repository | text | number | date | single_select"""
    options: list[FieldOption] = field(default_factory=list)
    created_at: str = ""

    def option(self, name: str) -> FieldOption | None:
        return next((option for option in self.options if option.name == name), None)


@dataclass(slots=True, eq=False)
class ProjectItem:
    """A card. `content` is None for a draft, which has only a title and a body."""

    id: int
    node: str
    project: "Project"
    content: Issue | None
    creator: User
    created_at: str
    updated_at: str
    title: str = ""
    body: str = ""
    archived: bool = False
    values: dict[int, Any] = field(default_factory=dict)
    """By the id of the field: the FieldOption of a single select, else the text, number or date."""


@dataclass(slots=True, eq=False)
class Project:
    id: int
    node: str
    owner: User
    number: int
    title: str
    creator: User
    created_at: str
    updated_at: str
    public: bool = False
    closed: bool = False
    fields: list[ProjectField] = field(default_factory=list)
    items: list[ProjectItem] = field(default_factory=list)

    def field_named(self, name: str) -> ProjectField | None:
        return next((one for one in self.fields if one.name.casefold() == name.casefold()), None)
