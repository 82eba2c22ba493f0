"""What a push does: heads move, pull requests close or are merged, commits on the default branch close issues."""

from tests.standins.github import issue_rules, pull_rules
from tests.standins.github.bare import GitFailed
from tests.standins.github.hub import Hub
from tests.standins.github.state import PullRequest, Repository, User

_BRANCHES = "refs/heads/"


def look(hub: Hub, repository: Repository, actor: User | None = None) -> None:
    """Take in what was pushed to the repository since the last look."""
    now = repository.git.refs()
    before, repository.refs = repository.refs, now
    if now == before:
        return
    moved = {ref for ref in before.keys() | now.keys() if before.get(ref) != now.get(ref) and ref.startswith(_BRANCHES)}
    if not moved:
        return
    repository.pushed_at = repository.updated_at = hub.now()
    who = actor or repository.owner
    for place in hub.repositories.values():
        for pull in place.pulls:
            if pull.state == "open":
                _follow(hub, repository, pull, moved, who)
    main = _BRANCHES + repository.default_branch
    if main in moved and main in before and main in now:
        _close_by_commits(hub, repository, before[main], now[main], who)


def _follow(hub: Hub, repository: Repository, pull: PullRequest, moved: set[str], who: User) -> None:
    now = repository.refs
    base, head = _BRANCHES + pull.base, _BRANCHES + pull.head
    if pull.repository is repository and base in moved and base in now:
        pull.base_sha = now[base]
        if pull.head_sha and repository.git.is_ancestor(pull.head_sha, now[base]):
            pull_rules.landed(hub, who, pull, now[base])
            return
    if pull.head_repository is not repository or head not in moved:
        return
    if head not in now:
        issue_rules.happened(hub, pull, who, "head_ref_deleted")
        issue_rules.close(hub, who, pull)
        return
    forced = not repository.git.is_ancestor(pull.head_sha, now[head])
    pull.head_sha = now[head]
    pull_rules.show_head(pull)
    issue_rules.happened(hub, pull, who, "head_ref_force_pushed" if forced else "committed", sha=now[head])
    if pull_rules.protection(pull).dismiss_stale:
        for made in pull.reviews:
            if made.state == "APPROVED":
                pull_rules.dismiss(hub, who, made, "stale")


def _close_by_commits(hub: Hub, repository: Repository, old: str, new: str, who: User) -> None:
    try:
        commits = repository.git.commits(old, new)
    except GitFailed:
        return
    for commit in commits:
        for issue in issue_rules.closed_by_text(hub, repository, commit.message):
            if issue.repository is repository and issue.state == "open":
                issue_rules.close(hub, who, issue, "completed", commit=commit.sha)
