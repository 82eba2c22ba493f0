"""REST: issues, comments, labels, dependencies, sub-issues, the timeline."""

from typing import Any

from tests.standins.github import code_shapes, issue_rules, shapes
from tests.standins.github.asking import Answer, Ask, route
from tests.standins.github.hub import invalid
from tests.standins.github.state import Issue, PullRequest

_ISSUES = "/repos/{owner}/{repo}/issues"
_ONE = _ISSUES + "/{number}"


@route("GET", _ISSUES)
def _list(ask: Ask) -> Answer:
    """Issues and pull requests, as on GitHub."""
    state = ask.query.get("state", "open")
    if state not in ("open", "closed", "all"):
        raise invalid("Issue", "state")
    wanted = [name for name in ask.query.get("labels", "").split(",") if name]
    since = ask.query.get("since", "")
    rows = [
        issue
        for issue in ask.repository.issues.values()
        if (state in ("all", issue.state))
        and issue.updated_at >= since
        and _labelled(issue, wanted)
        and _of(ask, issue)
    ]
    order = {"created": "created_at", "updated": "updated_at", "comments": "comments"}.get(
        ask.query.get("sort", "created")
    )
    if order is None:
        raise invalid("Issue", "sort")

    def key(issue: Issue) -> tuple[Any, int]:
        value = getattr(issue, order)
        return (len(value) if order == "comments" else value, issue.number)

    rows.sort(key=key, reverse=ask.query.get("direction", "desc") != "asc")
    return ask.paged(rows, lambda issue: shapes.issue(ask.hub, issue))


def _labelled(issue: Issue, wanted: list[str]) -> bool:
    names = {label.name.casefold() for label in issue.labels}
    return all(name.casefold() in names for name in wanted)


def _of(ask: Ask, issue: Issue) -> bool:
    creator, assignee = ask.query.get("creator"), ask.query.get("assignee")
    if creator and issue.author.login.casefold() != creator.casefold():
        return False
    if assignee and assignee != "*":
        logins = [user.login.casefold() for user in issue.assignees]
        return not logins if assignee == "none" else assignee.casefold() in logins
    return not assignee or bool(issue.assignees)


@route("POST", _ISSUES)
def _create(ask: Ask) -> Answer:
    ask.need("read")
    may = ask.hub.rank(ask.actor, ask.repository) >= 2
    issue = issue_rules.create(
        ask.hub,
        ask.actor,
        ask.repository,
        ask.text("title", "Issue"),
        ask.body.get("body") or "",
        labels=ask.texts("labels") if may else (),
        assignees=ask.texts("assignees") if may else (),
        milestone=ask.body.get("milestone") if may else None,
        type_name=ask.body.get("type") if may else None,
    )
    return Answer(201, shapes.issue(ask.hub, issue), {"location": shapes.issue_url(ask.hub, issue)})


@route("GET", _ONE)
def _get(ask: Ask) -> Answer:
    return Answer(data=shapes.issue(ask.hub, ask.issue))


@route("PATCH", _ONE)
def _patch(ask: Ask) -> Answer:
    issue = ask.issue
    ask.need("read" if issue.author is ask.actor else "triage")
    body = ask.body
    state, reason = body.get("state"), body.get("state_reason")
    if state not in (None, "open", "closed"):
        raise invalid("Issue", "state")
    if reason not in (None, *issue_rules.REASONS):
        raise invalid("Issue", "state_reason")
    issue_rules.edit(ask.hub, ask.actor, issue, title=body.get("title"), body=body.get("body"))
    if "labels" in body:
        issue_rules.set_labels(ask.hub, ask.actor, issue, ask.texts("labels"))
    if "assignees" in body:
        kept = ask.texts("assignees")
        others = [user.login for user in issue.assignees if user.login not in kept]
        issue_rules.unassign(ask.hub, ask.actor, issue, others)
        issue_rules.assign(ask.hub, ask.actor, issue, kept)
    if "milestone" in body:
        issue.milestone = ask.repository.milestones.get(body["milestone"] or 0)
    if "type" in body:
        issue.type = ask.hub.types.get((body["type"] or "").casefold())
    if state == "closed":
        issue_rules.close(ask.hub, ask.actor, issue, reason or "completed")
    elif state == "open":
        issue_rules.reopen(ask.hub, ask.actor, issue)
    return Answer(data=shapes.issue(ask.hub, issue))


# comments


@route("GET", _ONE + "/comments")
def _comments(ask: Ask) -> Answer:
    since = ask.query.get("since", "")
    rows = [reply for reply in ask.issue.comments if reply.updated_at >= since]
    return ask.paged(rows, lambda reply: shapes.comment(ask.hub, reply))


@route("POST", _ONE + "/comments")
def _comment(ask: Ask) -> Answer:
    issue = ask.issue
    ask.need("read", "pull_requests" if issue.is_pull_request else "issues")
    output = issue_rules.comment(ask.hub, ask.actor, issue, ask.text("body", "IssueComment"))
    shape = shapes.comment(ask.hub, output)
    return Answer(201, shape, {"location": shape["url"]})


@route("GET", _ISSUES + "/comments/{comment_id}")
def _get_comment(ask: Ask) -> Answer:
    return Answer(data=shapes.comment(ask.hub, issue_rules.find_comment(ask.repository, ask.hole("comment_id"))))


@route("PATCH", _ISSUES + "/comments/{comment_id}")
def _edit_comment(ask: Ask) -> Answer:
    output = issue_rules.find_comment(ask.repository, ask.hole("comment_id"))
    ask.need("read" if output.author is ask.actor else "write")
    issue_rules.edit_comment(ask.hub, output, ask.text("body", "IssueComment"))
    return Answer(data=shapes.comment(ask.hub, output))


@route("DELETE", _ISSUES + "/comments/{comment_id}")
def _delete_comment(ask: Ask) -> Answer:
    output = issue_rules.find_comment(ask.repository, ask.hole("comment_id"))
    ask.need("read" if output.author is ask.actor else "write")
    issue_rules.delete_comment(ask.hub, output)
    return Answer(204)


@route("GET", _ISSUES + "/comments")
def _all_comments(ask: Ask) -> Answer:
    since = ask.query.get("since", "")
    rows = [reply for issue in ask.repository.issues.values() for reply in issue.comments if reply.updated_at >= since]
    rows.sort(key=lambda reply: reply.id)
    return ask.paged(rows, lambda reply: shapes.comment(ask.hub, reply))


# labels


def _labels(ask: Ask) -> list[Any]:
    return [shapes.label(ask.hub, ask.repository, label) for label in ask.issue.labels]


@route("GET", _ONE + "/labels")
def _labels_of(ask: Ask) -> Answer:
    return ask.paged(ask.issue.labels, lambda label: shapes.label(ask.hub, ask.repository, label))


@route("POST", _ONE + "/labels")
def _add_labels(ask: Ask) -> Answer:
    issue = ask.issue
    ask.need("triage")
    issue_rules.add_labels(ask.hub, ask.actor, issue, ask.texts("labels"))
    return Answer(data=_labels(ask))


@route("PUT", _ONE + "/labels")
def _set_labels(ask: Ask) -> Answer:
    issue = ask.issue
    ask.need("triage")
    issue_rules.set_labels(ask.hub, ask.actor, issue, ask.texts("labels"))
    return Answer(data=_labels(ask))


@route("DELETE", _ONE + "/labels")
def _clear_labels(ask: Ask) -> Answer:
    issue = ask.issue
    ask.need("triage")
    issue_rules.set_labels(ask.hub, ask.actor, issue, [])
    return Answer(204)


@route("DELETE", _ONE + "/labels/{name*}")
def _remove_label(ask: Ask) -> Answer:
    issue = ask.issue
    ask.need("triage")
    issue_rules.remove_label(ask.hub, ask.actor, issue, ask.holes["name"])
    return Answer(data=_labels(ask))


@route("POST", _ONE + "/assignees")
def _assign(ask: Ask) -> Answer:
    issue = ask.issue
    ask.need("triage")
    issue_rules.assign(ask.hub, ask.actor, issue, ask.texts("assignees"))
    return Answer(201, shapes.issue(ask.hub, issue))


@route("DELETE", _ONE + "/assignees")
def _unassign(ask: Ask) -> Answer:
    issue = ask.issue
    ask.need("triage")
    issue_rules.unassign(ask.hub, ask.actor, issue, ask.texts("assignees"))
    return Answer(data=shapes.issue(ask.hub, issue))


# what belongs together


@route("GET", _ONE + "/dependencies/blocked_by")
def _blocked_by(ask: Ask) -> Answer:
    return ask.paged(ask.issue.blocked_by, lambda issue: shapes.issue(ask.hub, issue))


@route("GET", _ONE + "/dependencies/blocking")
def _blocking(ask: Ask) -> Answer:
    return ask.paged(ask.issue.blocking, lambda issue: shapes.issue(ask.hub, issue))


@route("POST", _ONE + "/dependencies/blocked_by")
def _block(ask: Ask) -> Answer:
    issue = ask.issue
    ask.need("triage")
    other = ask.hub.issue_by_id(int(ask.body.get("issue_id") or 0))
    issue_rules.block(ask.hub, ask.actor, issue, other)
    return Answer(201, shapes.issue(ask.hub, other))


@route("DELETE", _ONE + "/dependencies/blocked_by/{issue_id}")
def _unblock(ask: Ask) -> Answer:
    issue = ask.issue
    ask.need("triage")
    other = ask.hub.issue_by_id(ask.hole("issue_id"))
    issue_rules.unblock(ask.hub, ask.actor, issue, other)
    return Answer(data=shapes.issue(ask.hub, other))


@route("GET", _ONE + "/sub_issues")
def _sub_issues(ask: Ask) -> Answer:
    return ask.paged(ask.issue.sub_issues, lambda issue: shapes.issue(ask.hub, issue))


@route("POST", _ONE + "/sub_issues")
def _add_sub_issue(ask: Ask) -> Answer:
    issue = ask.issue
    ask.need("triage")
    child = ask.hub.issue_by_id(int(ask.body.get("sub_issue_id") or 0))
    issue_rules.add_sub_issue(ask.hub, ask.actor, issue, child, replace=bool(ask.body.get("replace_parent")))
    return Answer(201, shapes.issue(ask.hub, issue))


@route("DELETE", _ONE + "/sub_issue")
def _remove_sub_issue(ask: Ask) -> Answer:
    issue = ask.issue
    ask.need("triage")
    child = ask.hub.issue_by_id(int(ask.body.get("sub_issue_id") or 0))
    issue_rules.remove_sub_issue(ask.hub, ask.actor, issue, child)
    return Answer(data=shapes.issue(ask.hub, issue))


@route("GET", _ONE + "/parent")
def _parent(ask: Ask) -> Answer:
    parent = ask.issue.parent
    if parent is None:
        return Answer(
            404, {"message": "Not Found", "documentation_url": "https://docs.github.com/rest", "status": "404"}
        )
    return Answer(data=shapes.issue(ask.hub, parent))


# what happened


def _report(ask: Ask, issue: Issue) -> list[tuple[str, int, dict[str, Any]]]:
    rows = [(event.created_at, event.id, shapes.event(ask.hub, issue, event)) for event in issue.events]
    for output in issue.comments:
        shape = shapes.comment(ask.hub, output) | {"event": "commented", "actor": shapes.user(ask.hub, output.author)}
        rows.append((output.created_at, output.id, shape))
    if isinstance(issue, PullRequest):
        for made in issue.reviews:
            if made.submitted_at is not None:
                shape = code_shapes.review(ask.hub, made) | {"event": "reviewed", "state": made.state.lower()}
                rows.append((made.submitted_at, made.id, shape))
    return sorted(rows, key=lambda row: (row[0], row[1]))


@route("GET", _ONE + "/timeline")
def _timeline(ask: Ask) -> Answer:
    rows = [row for row in _report(ask, ask.issue) if row[2]["event"] != "committed"]
    return ask.paged(rows, lambda row: row[2])


@route("GET", _ONE + "/events")
def _events(ask: Ask) -> Answer:
    rows = [event for event in ask.issue.events if event.event not in ("cross-referenced", "committed")]
    return ask.paged(rows, lambda event: shapes.event(ask.hub, ask.issue, event))
