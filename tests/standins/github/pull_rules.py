"""What happens to pull requests: opened, reviewed, checked, merged for real in the bare repository."""

from collections.abc import Iterable, Sequence
from typing import Any

from tests.standins.github import issue_rules
from tests.standins.github.bare import CommitFacts
from tests.standins.github.hub import Hub, Refused, invalid, not_found
from tests.standins.github.state import (
    CheckRun,
    CommitStatus,
    Issue,
    Protection,
    PullRequest,
    Repository,
    Review,
    ReviewComment,
    Team,
    User,
)

_GOOD = ("success", "neutral", "skipped")
_OPINIONS = ("APPROVED", "CHANGES_REQUESTED", "DISMISSED")


def create(
    hub: Hub,
    actor: User,
    repository: Repository,
    *,
    title: str,
    head: str,
    base: str,
    body: str = "",
    draft: bool = False,
) -> PullRequest:
    """Open a pull request for `branch`, or for `owner:branch` of a fork that is on this server."""
    source, branch = _head(hub, repository, head)
    head_sha = source.git.refs().get(f"refs/heads/{branch}", "")
    base_sha = repository.git.refs().get(f"refs/heads/{base}", "")
    if not head_sha:
        raise invalid("PullRequest", "head")
    if not base_sha:
        raise invalid("PullRequest", "base")
    for other in repository.pulls:
        if other.state == "open" and (other.head_repository, other.head, other.base) == (source, branch, base):
            place = f"{source.owner.login}:{branch}"
            values = {
                "resource": "PullRequest",
                "code": "custom",
                "message": f"A pull request already exists for {place}.",
            }
            raise Refused(422, "Validation Failed", errors=(values,))
    if source is repository and repository.git.is_ancestor(head_sha, base_sha):
        values = {"resource": "PullRequest", "code": "custom", "message": f"No commits between {base} and {head}"}
        raise Refused(422, "Validation Failed", errors=(values,))
    if not title.strip():
        raise invalid("PullRequest", "title", "missing_field")
    number, now = hub.next_id(), hub.now()
    pull = PullRequest(
        id=number,
        node="",
        number=repository.next_number,
        repository=repository,
        title=title,
        body=body,
        author=actor,
        created_at=now,
        updated_at=now,
        pull_id=hub.next_id(),
        head_repository=source,
        head=branch,
        head_sha=head_sha,
        base=base,
        base_sha=base_sha,
        draft=draft,
    )
    pull.node = hub.enter("PR", number, pull)
    repository.issues[pull.number] = pull
    repository.next_number += 1
    show_head(pull)
    issue_rules.refer(hub, pull, actor, body)
    return pull


def _head(hub: Hub, repository: Repository, head: str) -> tuple[Repository, str]:
    owner, colon, branch = head.partition(":")
    if not colon or owner.casefold() == repository.owner.login.casefold():
        return repository, branch if colon else head
    for other in hub.repositories.values():
        if other.owner.login.casefold() == owner.casefold() and other.name == repository.name:
            return other, branch
    raise invalid("PullRequest", "head")


def edit(
    hub: Hub, actor: User, pull: PullRequest, *, title: str | None = None, body: str | None = None, base: str = ""
) -> None:
    issue_rules.edit(hub, actor, pull, title=title, body=body)
    if base and base != pull.base:
        sha = pull.repository.git.refs().get(f"refs/heads/{base}")
        if sha is None:
            raise invalid("PullRequest", "base")
        pull.base, pull.base_sha = base, sha
        issue_rules.happened(hub, pull, actor, "base_ref_changed")


def ready(hub: Hub, actor: User, pull: PullRequest, *, draft: bool = False) -> None:
    if pull.draft != draft:
        pull.draft = draft
        issue_rules.happened(hub, pull, actor, "convert_to_draft" if draft else "ready_for_review")


def closes(hub: Hub, pull: PullRequest) -> list[Issue]:
    """The issues that its merge into the default branch closes."""
    named = issue_rules.closed_by_text(hub, pull.repository, pull.body)
    by_hand = [issue for issue in pull.repository.issues.values() if pull in issue.linked]
    return list({issue.id: issue for issue in [*named, *by_hand]}.values())


def closing(issue: Issue, hub: Hub) -> list[PullRequest]:
    """The pull requests that say that they close an issue, or were linked to it."""
    found = []
    for repository in hub.repositories.values():
        for pull in repository.pulls:
            if "#" in pull.body and issue in issue_rules.closed_by_text(hub, repository, pull.body):
                found.append(pull)
    return list({pull.id: pull for pull in [*found, *issue.linked]}.values())


# reviews


def request_reviews(hub: Hub, actor: User, pull: PullRequest, logins: Iterable[str], teams: Iterable[str] = ()) -> None:
    people: list[User] = []
    for login in logins:
        user = hub.users.get(login.casefold())
        if user is pull.author:
            raise Refused(422, "Review cannot be requested from pull request author.")
        if user is None or hub.rank(user, pull.repository) < 1 or hub.association(user, pull.repository) == "NONE":
            raise Refused(
                422,
                "Reviews may only be requested from collaborators. "
                f"One or more of the users or teams you specified is not a collaborator of the "
                f"{pull.repository.full_name} repository.",
            )
        people.append(user)
    groups: list[Team] = []
    for slug in teams:
        team = pull.repository.owner.teams.get(slug)
        if team is None:
            raise Refused(422, "Could not resolve to a node with the global id of a team")
        groups.append(team)
    for user in people:
        if user not in pull.requested_reviewers:
            pull.requested_reviewers.append(user)
            issue_rules.happened(hub, pull, actor, "review_requested", requested_reviewer=user)
    for team in groups:
        if team not in pull.requested_teams:
            pull.requested_teams.append(team)
            issue_rules.happened(hub, pull, actor, "review_requested", requested_team=team)


def withdraw_reviews(hub: Hub, actor: User, pull: PullRequest, logins: Iterable[str]) -> None:
    wanted = {login.casefold() for login in logins}
    for user in [user for user in pull.requested_reviewers if user.login.casefold() in wanted]:
        pull.requested_reviewers.remove(user)
        issue_rules.happened(hub, pull, actor, "review_request_removed", requested_reviewer=user)


def review(
    hub: Hub,
    actor: User,
    pull: PullRequest,
    state: str,
    body: str = "",
    *,
    comments: Sequence[dict[str, Any]] = (),
    commit: str = "",
) -> Review:
    """Review it: `state` is APPROVED, CHANGES_REQUESTED, COMMENTED or PENDING; `comments` have path, line and body."""
    if actor is pull.author and state in ("APPROVED", "CHANGES_REQUESTED"):
        what = "approve" if state == "APPROVED" else "request changes on"
        raise Refused(422, "Unprocessable Entity", errors=(f"Can not {what} your own pull request",))
    if state in ("CHANGES_REQUESTED", "COMMENTED") and not body.strip() and not comments:
        raise Refused(422, "Unprocessable Entity", errors=("Body can't be blank",))
    number = hub.next_id()
    made = Review(
        id=number,
        node="",
        author=actor,
        state=state,
        body=body,
        commit=commit or pull.head_sha,
        submitted_at=None if state == "PENDING" else hub.now(),
        pull_request=pull,
    )
    made.node = hub.enter("PRR", number, made)
    for remark in comments:
        _remark(hub, actor, pull, made, remark)
    pull.reviews.append(made)
    if actor in pull.requested_reviewers and state != "PENDING":
        pull.requested_reviewers.remove(actor)
    issue_rules.touch(hub, pull)
    return made


def _remark(hub: Hub, actor: User, pull: PullRequest, review_: Review | None, remark: dict[str, Any]) -> ReviewComment:
    number, now = hub.next_id(), hub.now()
    path = str(remark.get("path", ""))
    if path not in {name for name, _, _ in pull.repository.git.changed(pull.base_sha, pull.head_sha)}:
        raise Refused(422, "Unprocessable Entity", errors=("Path could not be resolved",))
    output = ReviewComment(
        id=number,
        node="",
        author=actor,
        body=str(remark.get("body", "")),
        path=path,
        line=remark.get("line") or remark.get("position"),
        commit=pull.head_sha,
        created_at=now,
        updated_at=now,
        side=remark.get("side") or "RIGHT",
        start_line=remark.get("start_line"),
        review=review_,
    )
    output.node = hub.enter("PRRC", number, output)
    pull.review_comments.append(output)
    if review_ is not None:
        review_.comments.append(output)
    return output


def remark(hub: Hub, actor: User, pull: PullRequest, remark_: dict[str, Any]) -> ReviewComment:
    """A remark at a line outside of a review: it gets a review of its own, as on GitHub."""
    made = review(hub, actor, pull, "COMMENTED", "", comments=[remark_])
    return made.comments[0]


def submit(hub: Hub, made: Review, state: str, body: str = "") -> None:
    if made.state != "PENDING":
        raise Refused(422, "Can not submit a review that is not pending")
    made.state, made.submitted_at = state, hub.now()
    made.body = body or made.body
    issue_rules.touch(hub, made.pull_request)


def dismiss(hub: Hub, actor: User, made: Review, message: str) -> None:
    if made.state not in ("APPROVED", "CHANGES_REQUESTED"):
        raise Refused(422, "Can not dismiss a commented pull request review")
    made.state = "DISMISSED"
    issue_rules.happened(hub, made.pull_request, actor, "review_dismissed", message=message, review=made)


def opinions(hub: Hub, pull: PullRequest, *, writers_only: bool = False) -> list[Review]:
    """The newest opinion of each reviewer, oldest first."""
    newest: dict[str, Review] = {}
    for made in pull.reviews:
        if made.state not in _OPINIONS:
            continue
        if writers_only and hub.rank(made.author, pull.repository) < 3:
            continue
        newest.pop(made.author.login, None)
        newest[made.author.login] = made
    return list(newest.values())


def decision(hub: Hub, pull: PullRequest) -> str | None:
    lines = [made.state for made in opinions(hub, pull, writers_only=True)]
    if "CHANGES_REQUESTED" in lines:
        return "CHANGES_REQUESTED"
    needed = protection(pull).approvals
    if needed and lines.count("APPROVED") < needed:
        return "REVIEW_REQUIRED"
    return "APPROVED" if "APPROVED" in lines and (needed or pull.requested_reviewers or lines) else None


# checks


def check(
    hub: Hub,
    repository: Repository,
    sha: str,
    name: str,
    *,
    conclusion: str | None = "success",
    title: str = "",
    summary: str = "",
    details_url: str = "",
    status: str = "",
    external_id: str = "",
) -> CheckRun:
    """A check run on a commit, the newest of its name; without a conclusion it is still running."""
    number, now = hub.next_id(), hub.now()
    run = CheckRun(
        id=number,
        node="",
        name=name,
        sha=sha,
        status=status or ("in_progress" if conclusion is None else "completed"),
        conclusion=conclusion,
        started_at=now,
        completed_at=None if conclusion is None else now,
        title=title,
        summary=summary,
        details_url=details_url,
        external_id=external_id,
    )
    run.node = hub.enter("CR", number, run)
    repository.check_runs.setdefault(sha, []).insert(0, run)
    return run


def set_status(
    hub: Hub,
    actor: User,
    repository: Repository,
    sha: str,
    state: str,
    *,
    context: str = "default",
    description: str = "",
    target_url: str = "",
) -> CommitStatus:
    if state not in ("error", "failure", "pending", "success"):
        raise invalid("Status", "state")
    number = hub.next_id()
    status = CommitStatus(
        id=number,
        node="",
        context=context,
        sha=sha,
        state=state,
        description=description,
        target_url=target_url,
        creator=actor,
        created_at=hub.now(),
    )
    status.node = hub.enter("SC", number, status)
    repository.statuses.setdefault(sha, []).insert(0, status)
    return status


def latest_checks(repository: Repository, sha: str) -> list[CheckRun]:
    newest: dict[str, CheckRun] = {}
    for run in repository.check_runs.get(sha, []):
        newest.setdefault(run.name, run)
    return list(newest.values())


def latest_statuses(repository: Repository, sha: str) -> list[CommitStatus]:
    newest: dict[str, CommitStatus] = {}
    for status in repository.statuses.get(sha, []):
        newest.setdefault(status.context, status)
    return list(newest.values())


def verdicts(repository: Repository, sha: str) -> dict[str, str]:
    """By the name of a check or of a status: success | failure | pending."""
    found: dict[str, str] = {}
    for run in latest_checks(repository, sha):
        state = "success" if run.conclusion in _GOOD else "failure"
        found[run.name] = state if run.status == "completed" else "pending"
    for status in latest_statuses(repository, sha):
        found[status.context] = "failure" if status.state == "error" else status.state
    return found


# merging


def protection(pull: PullRequest) -> Protection:
    return pull.repository.protection.get(pull.base, Protection())


def known_mergeable(hub: Hub, pull: PullRequest) -> bool | None:
    if pull.merged or pull.state == "closed":
        return None
    key = (pull.head_sha, pull.base_sha)
    if pull.merged_ready == key:
        return not pull.conflicting
    _compute(pull)
    return None if hub.lazy_mergeable else not pull.conflicting


def _compute(pull: PullRequest) -> None:
    fetch(pull)
    pull.conflicting = bool(pull.repository.git.merge(pull.base_sha, pull.head_sha).conflicts)
    pull.merged_ready = (pull.head_sha, pull.base_sha)


def show_head(pull: PullRequest) -> None:
    """Have `refs/pull/N/head` in the repository where the head is now."""
    ref = f"refs/pull/{pull.number}/head"
    if pull.head_repository is pull.repository:
        pull.repository.git.set_ref(ref, pull.head_sha)
    fetch(pull)
    pull.repository.refs[ref] = pull.head_sha


def fetch(pull: PullRequest) -> None:
    """Bring the head of a fork into the repository."""
    source = pull.head_repository
    if source is not None and source is not pull.repository:
        pull.repository.git.run("fetch", "-q", str(source.git.path), f"+{pull.head_sha}:refs/pull/{pull.number}/head")


def merge_state(hub: Hub, pull: PullRequest) -> str:
    """What GitHub calls mergeable_state: clean, dirty, blocked, unstable, draft or unknown."""
    mergeable = known_mergeable(hub, pull)
    if mergeable is None:
        return "unknown"
    if not mergeable:
        return "dirty"
    if pull.draft:
        return "draft"
    if blocked(hub, pull):
        return "blocked"
    if any(state != "success" for state in verdicts(pull.repository, pull.head_sha).values()):
        return "unstable"
    return "clean"


def blocked(hub: Hub, pull: PullRequest) -> str:
    """Why the protection of the base refuses it; empty where it does not."""
    rules = protection(pull)
    if rules.approvals:
        lines = [made.state for made in opinions(hub, pull, writers_only=True)]
        if "CHANGES_REQUESTED" in lines or lines.count("APPROVED") < rules.approvals:
            return f"At least {rules.approvals} approving review is required by reviewers with write access."
    states = verdicts(pull.repository, pull.head_sha)
    for name in rules.checks:
        if states.get(name) != "success":
            how = "failing" if states.get(name) == "failure" else "expected"
            return f'Required status check "{name}" is {how}.'
    return ""


def merge(
    hub: Hub,
    actor: User,
    pull: PullRequest,
    *,
    method: str = "merge",
    sha: str = "",
    title: str = "",
    message: str | None = None,
) -> str:
    """Merge it and close what it closes; the commit on the base."""
    if method not in ("merge", "squash", "rebase"):
        raise invalid("PullRequest", "merge_method")
    if method not in pull.repository.allow:
        raise Refused(405, f"{method.capitalize()} merges are not allowed on this repository.")
    if pull.state == "closed":
        raise Refused(405, "Pull Request is not mergeable")
    if sha and sha != pull.head_sha:
        raise Refused(409, "Head branch was modified. Review and try the merge again.")
    if pull.draft:
        raise Refused(405, "Pull Request is still a draft")
    why = blocked(hub, pull)
    if why:
        raise Refused(405, why)
    fetch(pull)
    made = _made(pull, actor, method, title, message)
    git = pull.repository.git
    git.set_ref(f"refs/heads/{pull.base}", made, pull.base_sha)
    landed(hub, actor, pull, made)
    if pull.repository.delete_branch_on_merge and pull.head_repository is pull.repository:
        git.drop_ref(f"refs/heads/{pull.head}")
    hub.pushed(pull.repository)
    return made


def _made(pull: PullRequest, actor: User, method: str, title: str, message: str | None) -> str:
    git = pull.repository.git
    who = CommitFacts("", "", (), actor.name or actor.login, actor.email, "", "", "", "", "")
    if method == "rebase":
        return _rebased(pull)
    merged = git.merge(pull.base_sha, pull.head_sha)
    if merged.conflicts:
        raise Refused(405, "Pull Request is not mergeable")
    if method == "squash":
        head = title or f"{pull.title} (#{pull.number})"
        commits = git.commits(pull.base_sha, pull.head_sha)
        body = "\n\n".join(f"* {commit.message}" for commit in commits) if message is None else message
        return git.commit_tree(merged.tree, (pull.base_sha,), f"{head}\n\n{body}".strip() + "\n", who)
    place = f"{(pull.head_repository or pull.repository).owner.login}/{pull.head}"
    head = title or f"Merge pull request #{pull.number} from {place}"
    body = pull.title if message is None else message
    return git.commit_tree(merged.tree, (pull.base_sha, pull.head_sha), f"{head}\n\n{body}".strip() + "\n", who)


def _rebased(pull: PullRequest) -> str:
    git = pull.repository.git
    tip = pull.base_sha
    for commit in git.commits(pull.base_sha, pull.head_sha):
        if len(commit.parents) != 1:
            raise Refused(405, "This branch can't be rebased")
        output = git.run(
            "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", tip, commit.sha, codes=(0, 1)
        )
        tree, *conflicts = [part for part in output.split("\0") if part]
        if conflicts:
            raise Refused(405, "This branch can't be rebased due to conflicts")
        tip = git.commit_tree(tree, (tip,), commit.message + "\n", commit)
    return tip


def landed(hub: Hub, actor: User, pull: PullRequest, sha: str) -> None:
    """It is merged, by us or by a push: say so, and close the issues that it closes."""
    now = hub.now()
    pull.merged, pull.merged_at, pull.merged_by, pull.merge_sha = True, now, actor, sha
    pull.state, pull.closed_at, pull.closed_by = "closed", now, actor
    issue_rules.happened(hub, pull, actor, "merged", commit_id=sha)
    issue_rules.happened(hub, pull, actor, "closed")
    if pull.base != pull.repository.default_branch:
        return
    for issue in closes(hub, pull):
        if issue.state == "open":
            issue_rules.close(hub, actor, issue, "completed", commit=sha)


def find_review(pull: PullRequest, number: int) -> Review:
    for made in pull.reviews:
        if made.id == number:
            return made
    raise not_found()
