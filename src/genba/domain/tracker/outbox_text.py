"""What a change does, in words for people."""

from genba.domain.tracker.outbox import (
    CloseIssue,
    KeepComment,
    MergePullRequest,
    OpenPullRequest,
    PostComment,
    Relabel,
    RemoteChange,
    ReopenIssue,
    SetCardStatus,
)


def subject_of(change: RemoteChange) -> str:
    """What it is done to."""
    if isinstance(change, MergePullRequest):
        return f"#{change.number}"
    issue = change.issue
    return f"#{issue}" if issue is not None else getattr(change, "branch", "")


def in_words(change: RemoteChange) -> str:
    """What is done, on one line."""
    match change:
        case PostComment():
            return f"comment: {_first_line(change.body)}"
        case KeepComment():
            return f"keep the comment {change.name}: {_first_line(change.body)}"
        case Relabel():
            return "labels: " + ", ".join(
                [*(f"+{label}" for label in change.add), *(f"-{one}" for one in change.remove)]
            )
        case CloseIssue():
            return f"close as {change.reason.replace('_', ' ')}"
        case ReopenIssue():
            return "reopen"
        case OpenPullRequest():
            kind = "draft pull request" if change.draft else "pull request"
            return f"{kind} of {change.branch} into {change.target}: {change.title}"
        case MergePullRequest():
            return f"merge {change.commit[:7]} ({change.method})"
        case SetCardStatus():
            return f"card on {change.owner}/{change.project}: {change.field} = {change.status}"


def without_it(change: RemoteChange) -> str:
    """What does not happen when it is given up."""
    match change:
        case PostComment() | KeepComment():
            return f"the comment does not appear on #{change.issue}"
        case Relabel():
            parts = [f"{', '.join(change.add)} is not added"] if change.add else []
            parts += [f"{', '.join(change.remove)} is not removed"] if change.remove else []
            return f"on #{change.issue} {' and '.join(parts) or 'no label changes'}"
        case CloseIssue():
            return f"#{change.issue} is not closed by Genba"
        case ReopenIssue():
            return f"#{change.issue} is not reopened by Genba"
        case OpenPullRequest():
            return f"no pull request is opened, or brought up to date, for {change.branch}; the branch stays"
        case MergePullRequest():
            return f"pull request #{change.number} is not merged by Genba"
        case SetCardStatus():
            return f"the card of #{change.issue} stays where it is"


def body_of(change: RemoteChange) -> str:
    """The text that it writes, where it writes one."""
    return getattr(change, "body", "")


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else ""
