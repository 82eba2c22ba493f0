"""RemoteChanges: typed side effects on the outside world. Each is written down first, carried out once, in order.

A change has a key, the same for the same effect however often it is asked for. The key is a marker in what the change
writes, where it writes a text, so that one that was made already is found.
"""

from enum import StrEnum

import msgspec


class _RemoteChange(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    pass


class PostComment(_RemoteChange, frozen=True, tag="comment"):
    issue: int
    body: str


class KeepComment(_RemoteChange, frozen=True, tag="status_comment"):
    """One comment that is created once and edited after that."""

    issue: int
    name: str
    """Which of the comments that Genba keeps on this issue."""
    body: str


class Relabel(_RemoteChange, frozen=True, tag="labels"):
    issue: int
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


class CloseIssue(_RemoteChange, frozen=True, tag="close"):
    issue: int
    reason: str = "completed"
    """completed | not_planned"""


class ReopenIssue(_RemoteChange, frozen=True, tag="reopen"):
    issue: int


class OpenPullRequest(_RemoteChange, frozen=True, tag="pull_request"):
    """Open a pull request, or bring the open one of the same branch up to date."""

    branch: str
    target: str
    title: str
    body: str
    issue: int | None = None
    draft: bool = False
    reviewers: tuple[str, ...] = ()
    """Logins, and `team/NAME` for teams."""


class MergePullRequest(_RemoteChange, frozen=True, tag="merge"):
    number: int
    commit: str
    """The commit that is merged: another head refuses."""
    issue: int | None = None
    method: str = "merge"
    """merge | squash | rebase"""
    title: str = ""
    body: str = ""


class SetCardStatus(_RemoteChange, frozen=True, tag="card"):
    """Move the card of an issue on a board; the card is made where there is none."""

    issue: int
    owner: str
    project: int
    field: str
    status: str


RemoteChange = (
    PostComment | KeepComment | Relabel | CloseIssue | ReopenIssue | OpenPullRequest | MergePullRequest | SetCardStatus
)


class OutboxStatus(StrEnum):
    PENDING = "pending"
    SENDING = "sending"
    """A sender began to send it. If that sender died, the next one looks for it first."""
    DONE = "done"
    FAILED = "failed"
    """The other side refuses it. Later entries of its lane wait until a person retries or drops it."""
    DROPPED = "dropped"

    @property
    def ended(self) -> bool:
        return self in (OutboxStatus.DONE, OutboxStatus.DROPPED)


class DeliveryReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """What a change left on the outside."""

    address: str = ""
    number: int | None = None
    commit: str = ""
    existed: bool = False
    """It was there already: nothing was sent."""
    note: str = ""
    """A warning, such as a reviewer who could not be asked."""


class OutboxEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A change on its way."""

    id: int = 0
    key: str
    change: RemoteChange
    lane: str = ""
    """RemoteChanges of one lane are carried out one after the other: `issue:12`, `pull_request:31`."""
    status: OutboxStatus = OutboxStatus.PENDING
    attempts: int = 0
    not_before: str = ""
    error: str = ""
    receipt: DeliveryReceipt | None = None
    run: str = ""
    created_at: str = ""
    sent_at: str = ""
    ended_at: str = ""


def lane_of(change: RemoteChange) -> str:
    """RemoteChanges on the same issue keep their order; so do those of a pull request without an issue."""
    if isinstance(change, OpenPullRequest | MergePullRequest) and change.issue is None:
        return f"branch:{change.branch}" if isinstance(change, OpenPullRequest) else f"pull_request:{change.number}"
    return f"issue:{change.issue}"


def marker(key: str) -> str:
    """What stands at the end of a text that Genba writes: invisible to readers, found by Genba."""
    return f"<!-- genba:{key} -->"


def mutations_of(change: RemoteChange) -> int:
    """How many requests that change something the change sends, as a rule at most."""
    match change:
        case Relabel():
            return max(1, bool(change.add) + len(change.remove))
        case OpenPullRequest():
            return 2 if change.reviewers else 1
        case SetCardStatus():
            return 2
    return 1


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How fast changes may follow one another, over all processes."""

    per_hour: int = 500
    pause_seconds: float = 1.0
    settle_seconds: float = 5.0
    """How long to wait before looking for a change whose sender died."""


class SendResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one attempt to send came to."""

    sent: tuple[OutboxEntry, ...] = ()
    failed: tuple[OutboxEntry, ...] = ()
    """Those that the other side refused just now."""
    left: int = 0
    """How many are still to be sent."""
    until: str = ""
    """When the next one may go out; empty where nothing is left or nothing waits for a time."""
    why: str = ""
    refused: str = ""
    """The other side does not take the credentials."""
