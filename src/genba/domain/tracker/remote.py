"""What a tracker and a forge show of issues and pull requests."""

from enum import StrEnum

import msgspec

from genba.domain.tracker.issues import IssueChange


class RemoteComment(msgspec.Struct, frozen=True, kw_only=True):
    """A comment on an issue, or on a pull request."""

    id: str
    author: str
    body: str
    created_at: str
    updated_at: str = ""
    trusted: bool = False
    """Whether its author belongs to the repository: an owner, a member, a collaborator."""


class BoardItem(msgspec.Struct, frozen=True, kw_only=True):
    """The card of an issue on a board of the tracker (a GitHub project)."""

    owner: str
    project: int
    item: str
    """How the tracker names the card."""
    status: str = ""
    updated_at: str = ""


class TrackedIssue(msgspec.Struct, frozen=True, kw_only=True):
    """An issue as its tracker shows it. What stands under `detailed` is known only when that is true."""

    number: int
    reference: str
    """How the tracker names it for good (GitHub: its node id)."""
    title: str
    body: str = ""
    state: str = "open"
    """open | closed"""
    state_reason: str = ""
    """completed | not_planned | duplicate | reopened, or empty."""
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    author: str = ""
    trusted: bool = False
    """Whether its author belongs to the repository."""
    type: str = ""
    milestone: str = ""
    due: str = ""
    """The day on which its milestone is due; empty where it has none."""
    url: str = ""
    created_at: str = ""
    updated_at: str = ""
    closed_at: str = ""
    detailed: bool = False
    reopened_at: str = ""
    """When it was last reopened, where that is known."""
    comments: tuple[RemoteComment, ...] = ()
    blocked_by: tuple[int, ...] = ()
    blocked_elsewhere: tuple[str, ...] = ()
    """Open issues of other repositories that stand in its way, by their addresses."""
    parent: int | None = None
    sub_issues: tuple[int, ...] = ()
    pull_requests: tuple[int, ...] = ()
    """Those that say that they close it, and those that people linked to it."""
    cards: tuple[BoardItem, ...] = ()

    @property
    def closed(self) -> bool:
        return self.state == "closed"


class ReviewVerdict(StrEnum):
    APPROVED = "approved"
    CHANGES = "changes_requested"
    COMMENTED = "commented"
    DISMISSED = "dismissed"
    PENDING = "pending"


class ReviewDecision(StrEnum):
    """GitHub's overall decision on a pull request; empty where no review is required."""

    APPROVED = "approved"
    CHANGES_REQUESTED = "changes_requested"
    REVIEW_REQUIRED = "review_required"


class Mergeable(StrEnum):
    MERGEABLE = "mergeable"
    CONFLICTING = "conflicting"
    UNKNOWN = "unknown"


class PullRequestOutcome(StrEnum):
    """What a sync does about the pull request of a task."""

    MERGED = "merged"
    REWORK = "rework"
    CONFLICT = "conflict"
    CLOSED = "closed"
    MERGE = "merge"
    WAIT = "wait"


class RemoteReview(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    author: str
    verdict: ReviewVerdict
    body: str = ""
    commit: str = ""
    """The commit that it was made on."""
    submitted_at: str = ""
    trusted: bool = False
    may_write: bool = False
    """Whether its author may change the repository: only they approve what Genba merges."""
    findings: tuple[str, ...] = ()
    """What it says at single lines, as `path:line: text`."""


class RemoteCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A check run or a commit status on the head of a pull request."""

    name: str
    state: str
    """pending | passed | failed | skipped"""
    detail: str = ""
    url: str = ""


class PullRequestState(StrEnum):
    OPEN = "open"
    CLOSED = "closed"
    MERGED = "merged"


class TrackedPullRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A pull request as its forge shows it."""

    number: int
    reference: str
    url: str
    title: str = ""
    branch: str = ""
    """The branch that it brings, in the same repository; empty for one of a fork."""
    commit: str = ""
    """The commit of that branch that the forge has."""
    target: str = ""
    author: str = ""
    state: PullRequestState = PullRequestState.OPEN
    draft: bool = False
    merged_commit: str = ""
    merged_by: str = ""
    merged_at: str = ""
    mergeable: str = ""
    """A value of `Mergeable`, or empty."""
    merge_state: str = ""
    """behind | blocked | clean | dirty | draft | has_hooks | unknown | unstable"""
    decision: str = ""
    """A value of `ReviewDecision`, or empty where no review is required."""
    reviews: tuple[RemoteReview, ...] = ()
    """The newest opinion of each reviewer, oldest first."""
    checks: tuple[RemoteCheck, ...] = ()
    closes: tuple[int, ...] = ()
    """The issues that its merge closes."""
    created_at: str = ""
    updated_at: str = ""

    @property
    def green(self) -> bool:
        """Whether no check failed and none is still running."""
        return all(check.state in ("passed", "skipped") for check in self.checks)

    @property
    def failed_checks(self) -> tuple[RemoteCheck, ...]:
        return tuple(check for check in self.checks if check.state == "failed")


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What a session holds a pull request to, and what is done once it is merged. Kept on the blackboard.

    It is written down before the pull request is opened, by `blackboard.tracker.pull_request_terms`, one for each task.
    """

    task: int
    run: str
    agent: str = ""
    branch: str
    target: str
    remote: str = ""
    """The remote here that it was pushed to."""
    commit: str = ""
    """The verified commit: no other head is merged by Genba. Empty where nothing was verified."""
    closure: IssueChange = IssueChange()
    """What is done to the issue after the merge."""
    merge: str = "people"
    """people | approved | green"""
    method: str = "merge"
    """merge | squash | rebase"""
    title: str = ""
    """The first line of the merge commit."""
    body: str = ""
    """The rest of it, with the trailers."""
    after: int = 0
    """The newest pull request of the branch that was over before: what became of it says nothing of this work."""

    def about(self, found: TrackedPullRequest) -> bool:
        """Whether a pull request of the branch brings this work, and not what was proposed before it."""
        return found.number > self.after or found.state is PullRequestState.OPEN


class IssuePage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of the list of issues, oldest change first. What is in it is not detailed."""

    issues: tuple[TrackedIssue, ...] = ()
    pull_requests: tuple[int, ...] = ()
    """Numbers in the list that are pull requests and no issues."""
    newest: str = ""
    """The newest `updated_at` of the page, pull requests included."""
    following: str = ""
    """What to ask for to get the next page; empty on the last one."""
    etag: str = ""
    unchanged: bool = False
    """The tracker says that nothing has changed since the etag."""


class CardPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of the cards of a board."""

    cards: tuple[tuple[int, BoardItem], ...] = ()
    """The number of the issue, and its card."""
    following: str = ""


class Details(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of some issues, and of the pull requests that belong to them."""

    issues: tuple[TrackedIssue, ...] = ()
    pull_requests: tuple[TrackedPullRequest, ...] = ()
    gone: tuple[str, ...] = ()
    """References that lead nowhere any more: the issue was deleted, or moved to another repository."""


class PullRequestNews(msgspec.Struct, frozen=True, kw_only=True):
    """What the pull request of a task means for it."""

    number: int
    task: int
    url: str = ""
    standing: str = ""
    """How it stands there, in a few words."""
    verdict: PullRequestOutcome = PullRequestOutcome.WAIT
    untried: bool = False
    """Whether GitHub has not tried yet whether it can be merged."""
    result: str = ""
    """What was done about it, or why nothing is to be done now."""


class SyncResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one look at the tracker came to."""

    full: bool = False
    issues: int = 0
    """Issues that were read, changed or not."""
    added: tuple[int, ...] = ()
    changed: tuple[int, ...] = ()
    closed: tuple[int, ...] = ()
    reopened: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()
    pull_requests: tuple[int, ...] = ()
    """Pull requests that were read."""
    news: tuple[PullRequestNews, ...] = ()
    """What the pull requests of tasks mean."""
    requests: int = 0
    """REST requests that were sent, those answered by `not modified` included."""
    points: int = 0
    """GraphQL points that were spent."""
    notes: tuple[str, ...] = ()
    """Warnings, such as a dependency cycle or an unknown label."""


class TrackerAccess(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the tracker lets the project in."""

    repository: str
    source: str = ""
    """Where the credentials come from; never what they are."""
    seen: str = ""
    problem: str = ""
    hint: str = ""
