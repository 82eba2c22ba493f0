"""What can be changed through the GraphQL door: the same rules as behind the REST door."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tests.standins.github import issue_rules, project_rules, pull_rules
from tests.standins.github.graphql_asking import Ask
from tests.standins.github.hub import Refused, not_found
from tests.standins.github.state import (
    Comment,
    Issue,
    Label,
    Milestone,
    Project,
    ProjectField,
    ProjectItem,
    PullRequest,
    Repository,
    Review,
    Team,
    User,
)

Given = Mapping[str, Any]
Payload = dict[str, Any]
Thing = TypeVar("Thing")

_VERDICTS = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}


def _get(ask: Ask, node: str, kind: type[Thing]) -> Thing:
    found = ask.session.node(node)
    if not isinstance(found, kind):
        raise not_found(f"Could not resolve to {kind.__name__} node with the global id of '{node}'.")
    return found


def _issue(ask: Ask, node: str, rank: str = "triage") -> Issue:
    """An issue or a pull request that the viewer may change; one's own needs no rank."""
    found = _get(ask, node, Issue)
    kind = "pull_requests" if found.is_pull_request else "issues"
    ask.hub.need(ask.session.viewer, found.repository, "read" if found.author is ask.user else rank, kind)
    return found


def _pull(ask: Ask, node: str, rank: str = "write") -> PullRequest:
    found = _get(ask, node, PullRequest)
    ask.hub.need(ask.session.viewer, found.repository, rank, "pull_requests")
    return found


def _logins(ask: Ask, nodes: list[str] | None) -> list[str]:
    return [_get(ask, node, User).login for node in nodes or ()]


def _names(ask: Ask, nodes: list[str] | None) -> list[str]:
    return [_get(ask, node, Label).name for node in nodes or ()]


# issues


def create_issue(ask: Ask, given: Given) -> Payload:
    repository = _get(ask, given["repositoryId"], Repository)
    ask.hub.need(ask.session.viewer, repository, "read")
    milestone = _get(ask, given["milestoneId"], Milestone) if given.get("milestoneId") else None
    kind = ask.session.node(given["issueTypeId"]) if given.get("issueTypeId") else None
    issue = issue_rules.create(
        ask.hub,
        ask.user,
        repository,
        given["title"],
        given.get("body") or "",
        labels=_names(ask, given.get("labelIds")),
        assignees=_logins(ask, given.get("assigneeIds")),
        milestone=milestone.number if milestone else None,
        type_name=kind.name if kind else None,
    )
    if given.get("parentIssueId"):
        issue_rules.add_sub_issue(ask.hub, ask.user, _get(ask, given["parentIssueId"], Issue), issue)
    return {"issue": issue}


def update_issue(ask: Ask, given: Given) -> Payload:
    issue = _issue(ask, given["id"])
    issue_rules.edit(ask.hub, ask.user, issue, title=given.get("title"), body=given.get("body"))
    if given.get("labelIds") is not None:
        issue_rules.set_labels(ask.hub, ask.user, issue, _names(ask, given["labelIds"]))
    if given.get("state") == "CLOSED":
        issue_rules.close(ask.hub, ask.user, issue)
    elif given.get("state") == "OPEN":
        issue_rules.reopen(ask.hub, ask.user, issue)
    return {"issue": issue, "actor": ask.user}


def close_issue(ask: Ask, given: Given) -> Payload:
    issue = _issue(ask, given["issueId"])
    reason = str(given.get("stateReason") or "COMPLETED").lower()
    if given.get("duplicateIssueId"):
        issue.duplicate_of = _get(ask, given["duplicateIssueId"], Issue)
    issue_rules.close(ask.hub, ask.user, issue, reason)
    return {"issue": issue}


def reopen_issue(ask: Ask, given: Given) -> Payload:
    issue = _issue(ask, given["issueId"])
    issue_rules.reopen(ask.hub, ask.user, issue)
    return {"issue": issue}


def delete_issue(ask: Ask, given: Given) -> Payload:
    issue = _get(ask, given["issueId"], Issue)
    ask.hub.need(ask.session.viewer, issue.repository, "admin")
    issue_rules.delete(ask.hub, issue)
    return {"repository": issue.repository}


def transfer_issue(ask: Ask, given: Given) -> Payload:
    issue = _issue(ask, given["issueId"], "write")
    return {"issue": issue_rules.transfer(ask.hub, ask.user, issue, _get(ask, given["repositoryId"], Repository))}


def add_comment(ask: Ask, given: Given) -> Payload:
    issue = _issue(ask, given["subjectId"], "read")
    output = issue_rules.comment(ask.hub, ask.user, issue, given["body"])
    return {"commentEdge": {"cursor": "", "node": output}, "subject": issue}


def update_comment(ask: Ask, given: Given) -> Payload:
    output = _get(ask, given["id"], Comment)
    rank = "read" if output.author is ask.user else "write"
    ask.hub.need(ask.session.viewer, output.issue.repository, rank)
    issue_rules.edit_comment(ask.hub, output, given["body"])
    return {"issueComment": output}


def delete_comment(ask: Ask, given: Given) -> Payload:
    output = _get(ask, given["id"], Comment)
    rank = "read" if output.author is ask.user else "write"
    ask.hub.need(ask.session.viewer, output.issue.repository, rank)
    issue_rules.delete_comment(ask.hub, output)
    return {}


def add_labels(ask: Ask, given: Given) -> Payload:
    issue = _issue(ask, given["labelableId"])
    issue_rules.add_labels(ask.hub, ask.user, issue, _names(ask, given["labelIds"]))
    return {"labelable": issue}


def remove_labels(ask: Ask, given: Given) -> Payload:
    issue = _issue(ask, given["labelableId"])
    for name in _names(ask, given["labelIds"]):
        issue_rules.remove_label(ask.hub, ask.user, issue, name)
    return {"labelable": issue}


def assign(ask: Ask, given: Given) -> Payload:
    issue = _issue(ask, given["assignableId"])
    issue_rules.assign(ask.hub, ask.user, issue, _logins(ask, given["assigneeIds"]))
    return {"assignable": issue}


def unassign(ask: Ask, given: Given) -> Payload:
    issue = _issue(ask, given["assignableId"])
    issue_rules.unassign(ask.hub, ask.user, issue, _logins(ask, given["assigneeIds"]))
    return {"assignable": issue}


def replace_assignees(ask: Ask, given: Given) -> Payload:
    issue = _issue(ask, given["assignableId"])
    wanted = [*_logins(ask, given.get("actorIds")), *(given.get("actorLogins") or ())]
    issue_rules.unassign(ask.hub, ask.user, issue, [one.login for one in issue.assignees if one.login not in wanted])
    issue_rules.assign(ask.hub, ask.user, issue, wanted)
    return {"assignable": issue}


def block(ask: Ask, given: Given) -> Payload:
    issue, by = _issue(ask, given["issueId"]), _get(ask, given["blockingIssueId"], Issue)
    issue_rules.block(ask.hub, ask.user, issue, by)
    return {"issue": issue, "blockingIssue": by}


def unblock(ask: Ask, given: Given) -> Payload:
    issue, by = _issue(ask, given["issueId"]), _get(ask, given["blockingIssueId"], Issue)
    issue_rules.unblock(ask.hub, ask.user, issue, by)
    return {"issue": issue, "blockingIssue": by}


def add_sub_issue(ask: Ask, given: Given) -> Payload:
    parent, node = _issue(ask, given["issueId"]), given.get("subIssueId")
    if not node:
        raise Refused(422, "One of subIssueId or subIssueUrl must be provided")
    child = _get(ask, node, Issue)
    issue_rules.add_sub_issue(ask.hub, ask.user, parent, child, replace=bool(given.get("replaceParent")))
    return {"issue": parent, "subIssue": child}


def remove_sub_issue(ask: Ask, given: Given) -> Payload:
    parent, child = _issue(ask, given["issueId"]), _get(ask, given["subIssueId"], Issue)
    issue_rules.remove_sub_issue(ask.hub, ask.user, parent, child)
    return {"issue": parent, "subIssue": child}


# pull requests


def create_pull(ask: Ask, given: Given) -> Payload:
    repository = _get(ask, given["repositoryId"], Repository)
    ask.hub.need(ask.session.viewer, repository, "write", "pull_requests")
    head = given["headRefName"]
    if given.get("headRepositoryId") and ":" not in head:
        head = f"{_get(ask, given['headRepositoryId'], Repository).owner.login}:{head}"
    ask.hub.pushed(repository)
    pull = pull_rules.create(
        ask.hub,
        ask.user,
        repository,
        title=given["title"],
        head=head,
        base=given["baseRefName"],
        body=given.get("body") or "",
        draft=bool(given.get("draft")),
    )
    return {"pullRequest": pull}


def update_pull(ask: Ask, given: Given) -> Payload:
    pull = _pull(ask, given["pullRequestId"])
    base = given.get("baseRefName") or ""
    pull_rules.edit(ask.hub, ask.user, pull, title=given.get("title"), body=given.get("body"), base=base)
    if given.get("labelIds") is not None:
        issue_rules.set_labels(ask.hub, ask.user, pull, _names(ask, given["labelIds"]))
    return {"pullRequest": pull, "actor": ask.user}


def close_pull(ask: Ask, given: Given) -> Payload:
    pull = _pull(ask, given["pullRequestId"])
    issue_rules.close(ask.hub, ask.user, pull)
    return {"pullRequest": pull}


def reopen_pull(ask: Ask, given: Given) -> Payload:
    pull = _pull(ask, given["pullRequestId"])
    issue_rules.reopen(ask.hub, ask.user, pull)
    return {"pullRequest": pull}


def mark_ready(ask: Ask, given: Given) -> Payload:
    pull = _pull(ask, given["pullRequestId"])
    pull_rules.ready(ask.hub, ask.user, pull)
    return {"pullRequest": pull}


def mark_draft(ask: Ask, given: Given) -> Payload:
    pull = _pull(ask, given["pullRequestId"])
    pull_rules.ready(ask.hub, ask.user, pull, draft=True)
    return {"pullRequest": pull}


def merge_pull(ask: Ask, given: Given) -> Payload:
    pull = _pull(ask, given["pullRequestId"])
    ask.hub.pushed(pull.repository)
    pull_rules.merge(
        ask.hub,
        ask.user,
        pull,
        method=str(given.get("mergeMethod") or "MERGE").lower(),
        sha=given.get("expectedHeadOid") or "",
        title=given.get("commitHeadline") or "",
        message=given.get("commitBody"),
    )
    return {"pullRequest": pull, "actor": ask.user}


def enable_auto_merge(ask: Ask, given: Given) -> Payload:
    pull = _pull(ask, given["pullRequestId"])
    if pull_rules.merge_state(ask.hub, pull) == "clean":
        raise Refused(422, "Pull request Pull request is in clean status")
    pull.auto_merge = str(given.get("mergeMethod") or "MERGE").lower()
    return {"pullRequest": pull, "actor": ask.user}


def disable_auto_merge(ask: Ask, given: Given) -> Payload:
    pull = _pull(ask, given["pullRequestId"])
    pull.auto_merge = ""
    return {"pullRequest": pull, "actor": ask.user}


def request_reviews(ask: Ask, given: Given) -> Payload:
    pull = _pull(ask, given["pullRequestId"])
    logins = [*_logins(ask, given.get("userIds")), *(given.get("userLogins") or ())]
    teams = [_get(ask, node, Team).slug for node in given.get("teamIds") or ()]
    teams += [slug.rpartition("/")[2] for slug in given.get("teamSlugs") or ()]
    if not given.get("union"):
        gone = [one.login for one in pull.requested_reviewers if one.login not in logins]
        pull_rules.withdraw_reviews(ask.hub, ask.user, pull, gone)
    pull_rules.request_reviews(ask.hub, ask.user, pull, logins, teams)
    return {"pullRequest": pull, "actor": ask.user}


def add_review(ask: Ask, given: Given) -> Payload:
    pull = _pull(ask, given["pullRequestId"], "read")
    remarks = [*(given.get("comments") or ()), *(given.get("threads") or ())]
    comments = [
        {"path": one["path"], "line": one.get("line") or one.get("position"), "body": one["body"]} for one in remarks
    ]
    state = _VERDICTS.get(str(given.get("event")), "PENDING")
    commit = given.get("commitOID") or ""
    made = pull_rules.review(ask.hub, ask.user, pull, state, given.get("body") or "", comments=comments, commit=commit)
    return {"pullRequestReview": made, "reviewEdge": {"cursor": "", "node": made}}


def submit_review(ask: Ask, given: Given) -> Payload:
    made = _get(ask, given["pullRequestReviewId"], Review)
    if made.author is not ask.user:
        raise Refused(403, "Could not submit a review of somebody else", kind="FORBIDDEN")
    pull_rules.submit(ask.hub, made, _VERDICTS[given["event"]], given.get("body") or "")
    return {"pullRequestReview": made}


def dismiss_review(ask: Ask, given: Given) -> Payload:
    made = _get(ask, given["pullRequestReviewId"], Review)
    ask.hub.need(ask.session.viewer, made.pull_request.repository, "write", "pull_requests")
    pull_rules.dismiss(ask.hub, ask.user, made, given["message"])
    return {"pullRequestReview": made}


# boards


def _board(ask: Ask, node: str) -> Project:
    project = _get(ask, node, Project)
    project_rules.need(ask.session.viewer, project, write=True)
    return project


def _card(ask: Ask, given: Given) -> ProjectItem:
    project, item = _board(ask, given["projectId"]), _get(ask, given["itemId"], ProjectItem)
    if item.project is not project:
        raise not_found(f"Could not resolve to a node with the global id of '{given['itemId']}'")
    return item


def _field(ask: Ask, item: ProjectItem, node: str) -> ProjectField:
    field = _get(ask, node, ProjectField)
    if field not in item.project.fields:
        raise not_found(f"Could not resolve to a node with the global id of '{node}'")
    return field


def add_item(ask: Ask, given: Given) -> Payload:
    project, content = _board(ask, given["projectId"]), _get(ask, given["contentId"], Issue)
    return {"item": project_rules.add_item(ask.hub, ask.user, project, content)}


def add_draft(ask: Ask, given: Given) -> Payload:
    project = _board(ask, given["projectId"])
    body = given.get("body") or ""
    return {"projectItem": project_rules.add_draft(ask.hub, ask.user, project, given["title"], body)}


def delete_item(ask: Ask, given: Given) -> Payload:
    item = _card(ask, given)
    project_rules.remove_item(ask.hub, item)
    return {"deletedItemId": item.node}


def archive_item(ask: Ask, given: Given) -> Payload:
    item = _card(ask, given)
    item.archived = True
    return {"item": item}


def unarchive_item(ask: Ask, given: Given) -> Payload:
    item = _card(ask, given)
    item.archived = False
    return {"item": item}


def set_value(ask: Ask, given: Given) -> Payload:
    item = _card(ask, given)
    values = [value for value in given["value"].values() if value is not None]
    if len(values) != 1:
        raise Refused(422, "One and only one value of the field must be given")
    project_rules.set_value(ask.hub, item, _field(ask, item, given["fieldId"]), values[0])
    return {"projectV2Item": item}


def clear_value(ask: Ask, given: Given) -> Payload:
    item = _card(ask, given)
    project_rules.set_value(ask.hub, item, _field(ask, item, given["fieldId"]), None)
    return {"projectV2Item": item}


MUTATIONS: dict[str, Callable[[Ask, Given], Payload]] = {
    "addAssigneesToAssignable": assign,
    "addBlockedBy": block,
    "addComment": add_comment,
    "addLabelsToLabelable": add_labels,
    "addProjectV2DraftIssue": add_draft,
    "addProjectV2ItemById": add_item,
    "addPullRequestReview": add_review,
    "addSubIssue": add_sub_issue,
    "archiveProjectV2Item": archive_item,
    "clearProjectV2ItemFieldValue": clear_value,
    "closeIssue": close_issue,
    "closePullRequest": close_pull,
    "convertPullRequestToDraft": mark_draft,
    "createIssue": create_issue,
    "createPullRequest": create_pull,
    "deleteIssue": delete_issue,
    "deleteIssueComment": delete_comment,
    "deleteProjectV2Item": delete_item,
    "disablePullRequestAutoMerge": disable_auto_merge,
    "dismissPullRequestReview": dismiss_review,
    "enablePullRequestAutoMerge": enable_auto_merge,
    "markPullRequestReadyForReview": mark_ready,
    "mergePullRequest": merge_pull,
    "removeAssigneesFromAssignable": unassign,
    "removeBlockedBy": unblock,
    "removeLabelsFromLabelable": remove_labels,
    "removeSubIssue": remove_sub_issue,
    "reopenIssue": reopen_issue,
    "reopenPullRequest": reopen_pull,
    "replaceActorsForAssignable": replace_assignees,
    "requestReviews": request_reviews,
    "requestReviewsByLogin": request_reviews,
    "submitPullRequestReview": submit_review,
    "transferIssue": transfer_issue,
    "unarchiveProjectV2Item": unarchive_item,
    "updateIssue": update_issue,
    "updateIssueComment": update_comment,
    "updateProjectV2ItemFieldValue": set_value,
    "updatePullRequest": update_pull,
}
