"""Issues and their comments behind the GraphQL door, and what pull requests have in common with them."""

import html
from typing import Any

from tests.standins.github.graphql_asking import Ask, Fields, connection
from tests.standins.github.graphql_people import Commit
from tests.standins.github.state import Comment, Issue, PullRequest, TimelineEvent, User

_EVENTS = {
    "assigned": "AssignedEvent",
    "closed": "ClosedEvent",
    "cross-referenced": "CrossReferencedEvent",
    "labeled": "LabeledEvent",
    "merged": "MergedEvent",
    "ready_for_review": "ReadyForReviewEvent",
    "renamed": "RenamedTitleEvent",
    "reopened": "ReopenedEvent",
    "review_requested": "ReviewRequestedEvent",
    "unassigned": "UnassignedEvent",
    "unlabeled": "UnlabeledEvent",
}


def url_of(ask: Ask, issue: Issue) -> str:
    kind = "pull" if issue.is_pull_request else "issues"
    return f"{ask.hub.web}/{issue.repository.full_name}/{kind}/{issue.number}"


def page(text: str) -> str:
    """A text as HTML; GitHub would render it."""
    return f"<p>{html.escape(text)}</p>" if text else ""


def may_close(ask: Ask, issue: Issue) -> bool:
    return issue.author is ask.user or ask.session.can(issue.repository, 2)


def _comments(ask: Ask, issue: Issue) -> Any:
    lines = list(issue.comments)
    order = ask.args.get("orderBy")
    if order:
        lines.sort(key=lambda one: one.updated_at, reverse=order["direction"] == "DESC")
    return connection(ask, lines)


def _cards(ask: Ask, issue: Issue) -> Any:
    cards = ask.session.cards_of(issue)
    return connection(ask, [one for one in cards if ask.args.get("includeArchived", True) or not one.archived])


def _events(ask: Ask, issue: Issue) -> Any:
    """What happened, and the comments in between, oldest first."""
    wanted = ask.args.get("itemTypes")
    found: list[tuple[str, Any]] = []
    for event in issue.events:
        kind = _EVENTS.get(event.event)
        if kind is not None and (not wanted or _constant(kind) in wanted):
            found.append((event.created_at, event_of(event, kind, issue)))
    if not wanted or "ISSUE_COMMENT" in wanted:
        found += [(output.created_at, output) for output in issue.comments]
    since = ask.args.get("since")
    found.sort(key=lambda one: one[0])
    return connection(ask, [one for moment, one in found if not since or moment >= since])


def _constant(name: str) -> str:
    """`ClosedEvent` as `CLOSED_EVENT`."""
    return "".join(f"_{letter}" if letter.isupper() else letter for letter in name).lstrip("_").upper()


def event_of(event: TimelineEvent, kind: str, issue: Issue) -> dict[str, Any]:
    made: dict[str, Any] = {
        "__typename": kind,
        "id": event.node,
        "actor": event.actor,
        "createdAt": event.created_at,
    }
    match event.event:
        case "closed":
            reason, sha = event.data.get("state_reason"), event.data.get("commit_id")
            closer = Commit(issue.repository, sha) if sha else None
            made |= {"closable": issue, "closer": closer, "stateReason": reason.upper() if reason else None}
        case "reopened":
            made |= {"closable": issue, "stateReason": None}
        case "labeled" | "unlabeled":
            made |= {"label": event.data["label"], "labelable": issue}
        case "assigned" | "unassigned":
            made |= {"assignee": event.data["assignee"], "assignable": issue}
        case "renamed":
            rename = event.data["rename"]
            made |= {"previousTitle": rename["from"], "currentTitle": rename["to"], "subject": issue}
        case "cross-referenced":
            source = event.data["source"]
            made |= {
                "source": source,
                "target": issue,
                "isCrossRepository": source.repository is not issue.repository,
                "referencedAt": event.created_at,
                "willCloseTarget": False,
            }
        case "merged":
            sha = event.data.get("commit_id", "")
            made |= {"commit": Commit(issue.repository, sha) if sha else None, "pullRequest": issue}
    return made


def assignees(ask: Ask, issue: Issue) -> Any:
    return connection(ask, issue.assignees)


ISSUE_OR_PULL: Fields = {
    "id": lambda _, one: one.node,
    "fullDatabaseId": lambda _, one: str(one.id),
    "number": lambda _, one: one.number,
    "title": lambda _, one: one.title,
    "titleHTML": lambda _, one: html.escape(one.title),
    "body": lambda _, one: one.body,
    "bodyText": lambda _, one: one.body,
    "bodyHTML": lambda _, one: page(one.body),
    "url": url_of,
    "resourcePath": lambda ask, one: url_of(ask, one).removeprefix(ask.hub.web),
    "repository": lambda _, one: one.repository,
    "author": lambda _, one: one.author,
    "authorAssociation": lambda ask, one: ask.hub.association(one.author, one.repository),
    "createdAt": lambda _, one: one.created_at,
    "updatedAt": lambda _, one: one.updated_at,
    "publishedAt": lambda _, one: one.created_at,
    "closedAt": lambda _, one: one.closed_at,
    "closed": lambda _, one: one.state == "closed",
    "locked": lambda _, __: False,
    "activeLockReason": lambda _, __: None,
    "labels": lambda ask, one: connection(ask, one.labels),
    "assignees": assignees,
    "assignedActors": assignees,
    "milestone": lambda _, one: one.milestone,
    "comments": _comments,
    "participants": lambda ask, one: connection(ask, _participants(one)),
    "reactionGroups": lambda _, __: [],
    "reactions": lambda ask, _: connection(ask, []),
    "projectItems": _cards,
    "projectCards": lambda ask, _: connection(ask, []),
    "timelineItems": _events,
    "viewerCanUpdate": may_close,
    "viewerCanClose": may_close,
    "viewerCanReopen": may_close,
    "viewerCanLabel": lambda ask, one: ask.session.can(one.repository, 2),
    "viewerDidAuthor": lambda ask, one: one.author is ask.user,
    "viewerSubscription": lambda _, __: "UNSUBSCRIBED",
    "includesCreatedEdit": lambda _, __: False,
    "lastEditedAt": lambda _, __: None,
    "editor": lambda _, __: None,
}


def _participants(issue: Issue) -> list[User]:
    return list({user.id: user for user in [issue.author, *(output.author for output in issue.comments)]}.values())


def _reason(ask: Ask, issue: Issue) -> str | None:
    reason = issue.state_reason
    if reason == "duplicate" and not ask.args.get("enableDuplicate"):
        reason = "not_planned"
    return reason.upper() if reason else None


def _summary(_: Ask, issue: Issue) -> dict[str, Any]:
    by = [one for one in issue.blocked_by if one.state == "open"]
    blocking = [one for one in issue.blocking if one.state == "open"]
    return {
        "__typename": "IssueDependenciesSummary",
        "blockedBy": len(by),
        "blocking": len(blocking),
        "totalBlockedBy": len(issue.blocked_by),
        "totalBlocking": len(issue.blocking),
    }


def _progress(_: Ask, issue: Issue) -> dict[str, Any]:
    total, completed = len(issue.sub_issues), sum(one.state == "closed" for one in issue.sub_issues)
    percent = 100 * completed // total if total else 0
    return {"__typename": "SubIssuesSummary", "total": total, "completed": completed, "percentCompleted": percent}


def _closers(ask: Ask, issue: Issue) -> Any:
    found = issue.linked if ask.args.get("userLinkedOnly") else ask.session.closers(issue)
    if not ask.args.get("includeClosedPrs"):
        found = [pull for pull in found if pull.state == "open" or pull.merged]
    return connection(ask, found)


ISSUE: Fields = {
    **ISSUE_OR_PULL,
    "databaseId": lambda _, one: one.id,
    "state": lambda _, one: one.state.upper(),
    "stateReason": _reason,
    "duplicateOf": lambda _, one: one.duplicate_of,
    "issueType": lambda _, one: one.type,
    "isPinned": lambda _, __: False,
    "blockedBy": lambda ask, one: connection(ask, list(reversed(one.blocked_by))),
    "blocking": lambda ask, one: connection(ask, list(reversed(one.blocking))),
    "issueDependenciesSummary": _summary,
    "parent": lambda _, one: one.parent,
    "subIssues": lambda ask, one: connection(ask, one.sub_issues),
    "subIssuesSummary": _progress,
    "closedByPullRequestsReferences": _closers,
    "linkedBranches": lambda ask, _: connection(ask, []),
    "issueFieldValues": lambda ask, _: connection(ask, []),
    "trackedIssues": lambda ask, _: connection(ask, []),
    "trackedInIssues": lambda ask, _: connection(ask, []),
}


def _comment_url(ask: Ask, reply: Comment) -> str:
    return f"{url_of(ask, reply.issue)}#issuecomment-{reply.id}"


COMMENT: Fields = {
    "id": lambda _, reply: reply.node,
    "databaseId": lambda _, reply: reply.id,
    "fullDatabaseId": lambda _, reply: str(reply.id),
    "author": lambda _, reply: reply.author,
    "authorAssociation": lambda ask, reply: ask.hub.association(reply.author, reply.issue.repository),
    "body": lambda _, reply: reply.body,
    "bodyText": lambda _, reply: reply.body,
    "bodyHTML": lambda _, reply: page(reply.body),
    "createdAt": lambda _, reply: reply.created_at,
    "updatedAt": lambda _, reply: reply.updated_at,
    "publishedAt": lambda _, reply: reply.created_at,
    "lastEditedAt": lambda _, reply: reply.updated_at if reply.updated_at != reply.created_at else None,
    "includesCreatedEdit": lambda _, reply: reply.updated_at != reply.created_at,
    "isMinimized": lambda _, __: False,
    "minimizedReason": lambda _, __: None,
    "url": _comment_url,
    "issue": lambda _, reply: reply.issue,
    "pullRequest": lambda _, reply: reply.issue if isinstance(reply.issue, PullRequest) else None,
    "repository": lambda _, reply: reply.issue.repository,
    "reactionGroups": lambda _, __: [],
    "viewerDidAuthor": lambda ask, reply: reply.author is ask.user,
    "viewerCanUpdate": lambda ask, reply: reply.author is ask.user or ask.session.can(reply.issue.repository, 3),
    "viewerCanDelete": lambda ask, reply: reply.author is ask.user or ask.session.can(reply.issue.repository, 3),
}

TYPES: dict[str, Fields] = {"Issue": ISSUE, "IssueComment": COMMENT}
