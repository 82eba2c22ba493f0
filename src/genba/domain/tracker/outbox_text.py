"""What a deed does, in words for people."""

from genba.domain.tracker.outbox import (
    CloseIssue,
    Deed,
    KeepComment,
    MergePullRequest,
    OpenPullRequest,
    PostComment,
    Relabel,
    ReopenIssue,
    SetCardStatus,
)


def subject_of(deed: Deed) -> str:
    """What it is done to."""
    if isinstance(deed, MergePullRequest):
        return f"#{deed.number}"
    issue = deed.issue
    return f"#{issue}" if issue is not None else getattr(deed, "branch", "")


def in_words(deed: Deed) -> str:
    """What is done, on one line."""
    match deed:
        case PostComment():
            return f"comment: {_first_line(deed.body)}"
        case KeepComment():
            return f"keep the comment {deed.name}: {_first_line(deed.body)}"
        case Relabel():
            return "labels: " + ", ".join([*(f"+{label}" for label in deed.add), *(f"-{one}" for one in deed.remove)])
        case CloseIssue():
            return f"close as {deed.reason.replace('_', ' ')}"
        case ReopenIssue():
            return "reopen"
        case OpenPullRequest():
            kind = "draft pull request" if deed.draft else "pull request"
            return f"{kind} of {deed.branch} into {deed.target}: {deed.title}"
        case MergePullRequest():
            return f"merge {deed.commit[:7]} ({deed.method})"
        case SetCardStatus():
            return f"card on {deed.owner}/{deed.project}: {deed.field} = {deed.status}"


def without_it(deed: Deed) -> str:
    """What does not happen when it is given up."""
    match deed:
        case PostComment() | KeepComment():
            return f"nobody reads this on #{deed.issue}"
        case Relabel():
            parts = [f"{', '.join(deed.add)} is not added"] if deed.add else []
            parts += [f"{', '.join(deed.remove)} is not removed"] if deed.remove else []
            return f"on #{deed.issue} {' and '.join(parts) or 'no label changes'}"
        case CloseIssue():
            return f"#{deed.issue} is not closed by Genba"
        case ReopenIssue():
            return f"#{deed.issue} is not reopened by Genba"
        case OpenPullRequest():
            return f"no pull request is opened, or brought up to date, for {deed.branch}; the branch stays"
        case MergePullRequest():
            return f"pull request #{deed.number} is not merged by Genba"
        case SetCardStatus():
            return f"the card of #{deed.issue} stays where it is"


def body_of(deed: Deed) -> str:
    """The text that it writes, where it writes one."""
    return getattr(deed, "body", "")


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else ""
