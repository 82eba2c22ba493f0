"""Pull requests, commits, reviews and checks behind the GraphQL door."""

from typing import Any

from tests.standins.github import pull_rules
from tests.standins.github.graphql_asking import Ask, Fields, connection
from tests.standins.github.graphql_issues import ISSUE_OR_PULL, page, url_of
from tests.standins.github.graphql_people import Commit, Ref, repository_url
from tests.standins.github.hub import Hub
from tests.standins.github.state import (
    CheckRun,
    CommitStatus,
    PullRequest,
    Repository,
    Review,
    ReviewComment,
    Team,
    User,
)

_METHODS = {"merge": "MERGE", "squash": "SQUASH", "rebase": "REBASE"}


def _known(ask: Ask, pull: PullRequest) -> bool | None:
    seen = ask.session.mergeable
    if pull.id not in seen:
        seen[pull.id] = pull_rules.known_mergeable(ask.hub, pull)
    return seen[pull.id]


def _merge_state(ask: Ask, pull: PullRequest) -> str:
    return "UNKNOWN" if _known(ask, pull) is None else pull_rules.merge_state(ask.hub, pull).upper()


def _mergeable(ask: Ask, pull: PullRequest) -> str:
    known = _known(ask, pull)
    if known is None:
        return "UNKNOWN"
    return "MERGEABLE" if known else "CONFLICTING"


def _commits(ask: Ask, pull: PullRequest) -> Any:
    found = pull.repository.git.commits(_fork_point(pull), pull.head_sha)
    made = [
        {
            "__typename": "PullRequestCommit",
            "id": f"PRC_{pull.node}_{one.sha}",
            "commit": Commit(pull.head_repository or pull.repository, one.sha),
            "pullRequest": pull,
        }
        for one in found
    ]
    return connection(ask, made)


def _fork_point(pull: PullRequest) -> str:
    """Where the branch left its base: after the merge, the base before it."""
    if pull.merged and pull.merge_sha:
        parents = pull.repository.git.facts(pull.merge_sha).parents
        return pull.repository.git.merge_base(parents[0], pull.head_sha) if parents else pull.base_sha
    return pull.base_sha


def _files(ask: Ask, pull: PullRequest) -> Any:
    changed = pull.repository.git.changed(_fork_point(pull), pull.head_sha)
    made = [
        {
            "__typename": "PullRequestChangedFile",
            "path": path,
            "additions": added,
            "deletions": removed,
            "changeType": "MODIFIED",
        }
        for path, added, removed in changed
    ]
    return connection(ask, made)


def _lines(pull: PullRequest, which: int) -> int:
    changed = pull.repository.git.changed(_fork_point(pull), pull.head_sha)
    added, removed = sum(one[1] for one in changed), sum(one[2] for one in changed)
    return (len(changed), added, removed)[which]


def _requests(ask: Ask, pull: PullRequest) -> Any:
    asked: list[User | Team] = [*pull.requested_reviewers, *pull.requested_teams]
    made = [
        {
            "__typename": "ReviewRequest",
            "id": f"RR_{pull.node}_{one.node}",
            "asCodeOwner": False,
            "requestedReviewer": one,
            "pullRequest": pull,
        }
        for one in asked
    ]
    return connection(ask, made)


def _reviews(ask: Ask, pull: PullRequest) -> Any:
    states, author = ask.args.get("states"), ask.args.get("author")
    found = [
        one
        for one in pull.reviews
        if (not states or one.state in states)
        and (not author or one.author.login.casefold() == author.casefold())
        and (one.state != "PENDING" or one.author is ask.user)
    ]
    return connection(ask, found)


def _latest_reviews(ask: Ask, pull: PullRequest) -> Any:
    """The last review of each who is not asked again."""
    newest: dict[int, Review] = {}
    for made in pull.reviews:
        if made.state != "PENDING" and made.author not in pull.requested_reviewers:
            newest[made.author.id] = made
    return connection(ask, list(newest.values()))


def _threads(ask: Ask, pull: PullRequest) -> Any:
    threads: dict[int, list[ReviewComment]] = {}
    for output in pull.review_comments:
        threads.setdefault(output.thread, []).append(output)
    made = [
        {
            "__typename": "PullRequestReviewThread",
            "id": f"PRRT_{output[0].node}",
            "isResolved": output[0].resolved,
            "isOutdated": output[0].commit != pull.head_sha,
            "isCollapsed": output[0].resolved,
            "path": output[0].path,
            "line": output[0].line,
            "startLine": output[0].start_line,
            "originalLine": output[0].line,
            "diffSide": output[0].side,
            "pullRequest": pull,
            "repository": pull.repository,
            "said": output,
        }
        for output in threads.values()
    ]
    return connection(ask, made)


def _auto_merge(_: Ask, pull: PullRequest) -> Any:
    if not pull.auto_merge:
        return None
    return {
        "__typename": "AutoMergeRequest",
        "mergeMethod": _METHODS[pull.auto_merge],
        "enabledAt": pull.updated_at,
        "enabledBy": pull.author,
        "authorEmail": None,
        "commitBody": None,
        "commitHeadline": None,
        "pullRequest": pull,
    }


PULL_REQUEST: Fields = {
    **ISSUE_OR_PULL,
    "databaseId": lambda _, one: one.pull_id,
    "permalink": url_of,
    "state": lambda _, one: "MERGED" if one.merged else one.state.upper(),
    "isDraft": lambda _, one: one.draft,
    "merged": lambda _, one: one.merged,
    "mergedAt": lambda _, one: one.merged_at,
    "mergedBy": lambda _, one: one.merged_by,
    "mergeCommit": lambda _, one: Commit(one.repository, one.merge_sha) if one.merge_sha else None,
    "potentialMergeCommit": lambda _, __: None,
    "mergeable": _mergeable,
    "mergeStateStatus": _merge_state,
    "canBeRebased": lambda _, one: not one.conflicting,
    "isInMergeQueue": lambda _, __: False,
    "isMergeQueueEnabled": lambda _, __: False,
    "autoMergeRequest": _auto_merge,
    "maintainerCanModify": lambda _, one: one.maintainer_can_modify,
    "headRefName": lambda _, one: one.head,
    "headRefOid": lambda _, one: one.head_sha,
    "headRef": lambda _, one: _branch(one.head_repository, one.head),
    "headRepository": lambda _, one: one.head_repository,
    "headRepositoryOwner": lambda _, one: one.head_repository.owner if one.head_repository else None,
    "baseRefName": lambda _, one: one.base,
    "baseRefOid": lambda _, one: one.base_sha,
    "baseRef": lambda _, one: _branch(one.repository, one.base),
    "baseRepository": lambda _, one: one.repository,
    "isCrossRepository": lambda _, one: one.head_repository is not one.repository,
    "commits": _commits,
    "files": _files,
    "additions": lambda _, one: _lines(one, 1),
    "deletions": lambda _, one: _lines(one, 2),
    "changedFiles": lambda _, one: _lines(one, 0),
    "closingIssuesReferences": lambda ask, one: connection(ask, pull_rules.closes(ask.hub, one)),
    "reviewDecision": lambda ask, one: pull_rules.decision(ask.hub, one),
    "reviewRequests": _requests,
    "reviews": _reviews,
    "latestReviews": _latest_reviews,
    "latestOpinionatedReviews": lambda ask, one: connection(
        ask, pull_rules.opinions(ask.hub, one, writers_only=bool(ask.args.get("writersOnly")))
    ),
    "reviewThreads": _threads,
    "statusCheckRollup": lambda ask, one: rollup(ask.hub, one.repository, one.head_sha),
    "totalCommentsCount": lambda _, one: len(one.comments) + len(one.review_comments),
    "viewerCanDeleteHeadRef": lambda ask, one: ask.session.can(one.repository, 3),
    "viewerCanUpdateBranch": lambda ask, one: ask.session.can(one.repository, 3),
    "viewerCanEnableAutoMerge": lambda ask, one: ask.session.can(one.repository, 3),
    "viewerCanDisableAutoMerge": lambda ask, one: ask.session.can(one.repository, 3),
    "viewerCanMergeAsAdmin": lambda ask, one: ask.session.can(one.repository, 4),
    "viewerMergeHeadlineText": lambda _, one: f"Merge pull request #{one.number} from {one.head}",
    "viewerMergeBodyText": lambda _, one: one.title,
}


def _branch(repository: Repository | None, name: str) -> Ref | None:
    ref = f"refs/heads/{name}"
    return Ref(repository, ref) if repository is not None and ref in repository.refs else None


# commits and their checks


def rollup(hub: Hub, repository: Repository, sha: str) -> Any:
    """What all checks of a commit come to; nothing where there are none."""
    states = set(pull_rules.verdicts(repository, sha).values())
    if not states:
        return None
    state = "FAILURE" if "failure" in states else "PENDING" if "pending" in states else "SUCCESS"
    return {
        "__typename": "StatusCheckRollup",
        "id": f"SCR_{repository.node}_{sha}",
        "state": state,
        "commit": Commit(repository, sha),
        "checks": [*pull_rules.latest_checks(repository, sha), *pull_rules.latest_statuses(repository, sha)],
        "hub": hub,
    }


def _contexts(ask: Ask, made: dict[str, Any]) -> Any:
    checks = made["checks"]
    runs = [one for one in checks if isinstance(one, CheckRun)]
    statuses = [one for one in checks if isinstance(one, CommitStatus)]
    return {
        **connection(ask, checks),
        "checkRunCount": len(runs),
        "statusContextCount": len(statuses),
        "checkRunCountsByState": _counts([_run_state(one) for one in runs]),
        "statusContextCountsByState": _counts([one.state.upper() for one in statuses]),
    }


def _run_state(run: CheckRun) -> str:
    return (run.conclusion or run.status).upper()


def _counts(states: list[str]) -> list[dict[str, Any]]:
    return [{"state": state, "count": states.count(state)} for state in dict.fromkeys(states)]


def place_of_commit(hub: Hub, thing: CheckRun | CommitStatus) -> Repository:
    for repository in hub.repositories.values():
        if thing in repository.check_runs.get(thing.sha, ()) or thing in repository.statuses.get(thing.sha, ()):
            return repository
    raise AssertionError(f"{thing} is nowhere")


def _required(ask: Ask, thing: CheckRun | CommitStatus) -> bool:
    name = thing.name if isinstance(thing, CheckRun) else thing.context
    repository = place_of_commit(ask.hub, thing)
    number = ask.args.get("pullRequestNumber")
    node = ask.args.get("pullRequestId")
    pull = ask.hub.nodes.get(node) if node else repository.issues.get(number or 0)
    return isinstance(pull, PullRequest) and name in pull_rules.protection(pull).checks


def _suite(_: Ask, run: CheckRun) -> dict[str, Any]:
    return {"__typename": "CheckSuite", "id": f"CS_{run.node}", "workflowRun": None, "app": None, "databaseId": run.id}


COMMIT: Fields = {
    "id": lambda _, one: f"C_{one.repository.node}_{one.sha}",
    "oid": lambda _, one: one.sha,
    "abbreviatedOid": lambda _, one: one.sha[:7],
    "message": lambda _, one: one.facts.message,
    "messageHeadline": lambda _, one: one.facts.message.partition("\n")[0],
    "messageBody": lambda _, one: one.facts.message.partition("\n")[2].strip("\n"),
    "committedDate": lambda _, one: one.facts.committed,
    "authoredDate": lambda _, one: one.facts.date,
    "author": lambda ask, one: _actor(ask, one.facts.author, one.facts.email, one.facts.date),
    "committer": lambda ask, one: _actor(ask, one.facts.committer, one.facts.committer_email, one.facts.committed),
    "authors": lambda ask, one: connection(ask, [_actor(ask, one.facts.author, one.facts.email, one.facts.date)]),
    "parents": lambda ask, one: connection(ask, [Commit(one.repository, sha) for sha in one.facts.parents]),
    "repository": lambda _, one: one.repository,
    "url": lambda ask, one: f"{repository_url(ask, one.repository)}/commit/{one.sha}",
    "commitUrl": lambda ask, one: f"{repository_url(ask, one.repository)}/commit/{one.sha}",
    "statusCheckRollup": lambda ask, one: rollup(ask.hub, one.repository, one.sha),
    "associatedPullRequests": lambda ask, one: connection(
        ask, [pull for pull in one.repository.pulls if one.sha in (pull.head_sha, pull.merge_sha)]
    ),
}


def _actor(ask: Ask, name: str, email: str, date: str) -> dict[str, Any]:
    user = next((one for one in ask.hub.users.values() if one.email == email and one.kind == "User"), None)
    return {"__typename": "GitActor", "name": name, "email": email, "date": date, "user": user}


CHECK_RUN: Fields = {
    "id": lambda _, one: one.node,
    "databaseId": lambda _, one: one.id,
    "name": lambda _, one: one.name,
    "status": lambda _, one: one.status.upper(),
    "conclusion": lambda _, one: one.conclusion.upper() if one.conclusion else None,
    "startedAt": lambda _, one: one.started_at,
    "completedAt": lambda _, one: one.completed_at,
    "title": lambda _, one: one.title or None,
    "summary": lambda _, one: one.summary or None,
    "text": lambda _, __: None,
    "detailsUrl": lambda _, one: one.details_url or None,
    "externalId": lambda _, one: one.external_id or None,
    "url": lambda ask, one: f"{repository_url(ask, place_of_commit(ask.hub, one))}/runs/{one.id}",
    "permalink": lambda ask, one: f"{repository_url(ask, place_of_commit(ask.hub, one))}/runs/{one.id}",
    "repository": lambda ask, one: place_of_commit(ask.hub, one),
    "checkSuite": _suite,
    "isRequired": _required,
    "annotations": lambda ask, _: connection(ask, []),
}

STATUS: Fields = {
    "id": lambda _, one: one.node,
    "context": lambda _, one: one.context,
    "state": lambda _, one: one.state.upper(),
    "description": lambda _, one: one.description or None,
    "targetUrl": lambda _, one: one.target_url or None,
    "creator": lambda _, one: one.creator,
    "createdAt": lambda _, one: one.created_at,
    "isRequired": _required,
}


# reviews

REVIEW: Fields = {
    "id": lambda _, one: one.node,
    "databaseId": lambda _, one: one.id,
    "fullDatabaseId": lambda _, one: str(one.id),
    "author": lambda _, one: one.author,
    "authorAssociation": lambda ask, one: ask.hub.association(one.author, one.pull_request.repository),
    "authorCanPushToRepository": lambda ask, one: ask.hub.rank(one.author, one.pull_request.repository) >= 3,
    "state": lambda _, one: one.state,
    "body": lambda _, one: one.body,
    "bodyText": lambda _, one: one.body,
    "bodyHTML": lambda _, one: page(one.body),
    "submittedAt": lambda _, one: one.submitted_at,
    "createdAt": lambda _, one: one.submitted_at or one.pull_request.updated_at,
    "updatedAt": lambda _, one: one.submitted_at or one.pull_request.updated_at,
    "publishedAt": lambda _, one: one.submitted_at,
    "commit": lambda _, one: Commit(one.pull_request.repository, one.commit) if one.commit else None,
    "comments": lambda ask, one: connection(ask, one.comments),
    "pullRequest": lambda _, one: one.pull_request,
    "repository": lambda _, one: one.pull_request.repository,
    "includesCreatedEdit": lambda _, __: False,
    "isMinimized": lambda _, __: False,
    "reactionGroups": lambda _, __: [],
    "url": lambda ask, one: f"{url_of(ask, one.pull_request)}#pullrequestreview-{one.id}",
    "viewerDidAuthor": lambda ask, one: one.author is ask.user,
}


def _pull_of(reply: ReviewComment) -> PullRequest:
    assert reply.review is not None
    return reply.review.pull_request


REVIEW_COMMENT: Fields = {
    "id": lambda _, reply: reply.node,
    "databaseId": lambda _, reply: reply.id,
    "fullDatabaseId": lambda _, reply: str(reply.id),
    "author": lambda _, reply: reply.author,
    "authorAssociation": lambda ask, reply: ask.hub.association(reply.author, _pull_of(reply).repository),
    "body": lambda _, reply: reply.body,
    "bodyText": lambda _, reply: reply.body,
    "bodyHTML": lambda _, reply: page(reply.body),
    "path": lambda _, reply: reply.path,
    "line": lambda _, reply: reply.line if reply.commit == _pull_of(reply).head_sha else None,
    "originalLine": lambda _, reply: reply.line,
    "startLine": lambda _, reply: reply.start_line,
    "originalStartLine": lambda _, reply: reply.start_line,
    "position": lambda _, reply: reply.line,
    "originalPosition": lambda _, reply: reply.line or 1,
    "outdated": lambda _, reply: reply.commit != _pull_of(reply).head_sha,
    "diffHunk": lambda _, __: "",
    "commit": lambda _, reply: Commit(_pull_of(reply).repository, reply.commit),
    "originalCommit": lambda _, reply: Commit(_pull_of(reply).repository, reply.commit),
    "createdAt": lambda _, reply: reply.created_at,
    "updatedAt": lambda _, reply: reply.updated_at,
    "pullRequest": lambda _, reply: _pull_of(reply),
    "pullRequestReview": lambda _, reply: reply.review,
    "repository": lambda _, reply: _pull_of(reply).repository,
    "state": lambda _, reply: "PENDING" if reply.review and reply.review.state == "PENDING" else "SUBMITTED",
    "includesCreatedEdit": lambda _, reply: reply.updated_at != reply.created_at,
    "url": lambda ask, reply: f"{url_of(ask, _pull_of(reply))}#discussion_r{reply.id}",
}

TYPES: dict[str, Fields] = {
    "PullRequest": PULL_REQUEST,
    "Commit": COMMIT,
    "StatusCheckRollup": {"contexts": _contexts},
    "CheckRun": CHECK_RUN,
    "StatusContext": STATUS,
    "PullRequestReview": REVIEW,
    "PullRequestReviewComment": REVIEW_COMMENT,
    "PullRequestReviewThread": {"comments": lambda ask, made: connection(ask, made["said"])},
}
