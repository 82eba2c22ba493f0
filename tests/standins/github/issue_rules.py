"""What happens to issues: the rules behind both doors, REST and GraphQL. Every change is at the time of `Hub.now`."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from tests.standins.github.hub import Hub, Refused, invalid, not_found
from tests.standins.github.state import (
    Comment,
    Issue,
    Label,
    Milestone,
    PullRequest,
    Repository,
    TimelineEvent,
    User,
)

_MENTION = re.compile(r"(?<![\w&/])(?:([\w.-]+/[\w.-]+))?#(\d+)\b")
_CLOSING = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(?:([\w.-]+/[\w.-]+))?#(\d+)\b", re.IGNORECASE)
REASONS = ("completed", "not_planned", "duplicate", "reopened")


def happened(hub: Hub, issue: Issue, actor: User, event: str, **data: Any) -> TimelineEvent:
    """Write down what happened to an issue, which changes its `updated_at`."""
    number = hub.next_id()
    entry = TimelineEvent(id=number, node="", event=event, actor=actor, created_at=hub.now(), data=data)
    entry.node = hub.enter("EV", number, entry)
    issue.events.append(entry)
    touch(hub, issue)
    return entry


def touch(hub: Hub, issue: Issue) -> None:
    issue.updated_at = max(hub.now(), issue.updated_at)


def create(
    hub: Hub,
    actor: User,
    repository: Repository,
    title: str,
    body: str = "",
    *,
    labels: Iterable[str] = (),
    assignees: Iterable[str] = (),
    milestone: int | None = None,
    type_name: str | None = None,
    at: str = "",
) -> Issue:
    """Open an issue. Labels that the repository has not are made."""
    if not title.strip():
        raise invalid("Issue", "title", "missing_field")
    number = hub.next_id()
    now = at or hub.now()
    issue = Issue(
        id=number,
        node="",
        number=repository.next_number,
        repository=repository,
        title=title,
        body=body,
        author=actor,
        created_at=now,
        updated_at=now,
    )
    issue.node = hub.enter("I", number, issue)
    issue.labels = [hub.label(repository, name) for name in dict.fromkeys(labels)]
    issue.assignees = [hub.add_user(login) for login in assignees]
    if milestone is not None:
        issue.milestone = repository.milestones.get(milestone)
    if type_name:
        issue.type = hub.types.get(type_name.casefold())
    repository.issues[issue.number] = issue
    repository.next_number += 1
    refer(hub, issue, actor, body)
    return issue


def edit(hub: Hub, actor: User, issue: Issue, *, title: str | None = None, body: str | None = None) -> None:
    if title is not None and title != issue.title:
        if not title.strip():
            raise invalid("Issue", "title", "missing_field")
        before, issue.title = issue.title, title
        happened(hub, issue, actor, "renamed", rename={"from": before, "to": title})
    if body is not None and body != issue.body:
        issue.body = body
        touch(hub, issue)
        refer(hub, issue, actor, body)


def close(hub: Hub, actor: User, issue: Issue, reason: str = "completed", *, commit: str | None = None) -> None:
    """Close it; a closed one only changes its reason."""
    if reason not in REASONS:
        raise invalid("Issue", "state_reason")
    if issue.is_pull_request:
        if issue.state == "open":
            issue.state, issue.closed_at, issue.closed_by = "closed", hub.now(), actor
            happened(hub, issue, actor, "closed")
        return
    if issue.state == "closed" and issue.state_reason == reason:
        return
    issue.state, issue.state_reason = "closed", reason
    issue.closed_at, issue.closed_by = hub.now(), actor
    happened(hub, issue, actor, "closed", state_reason=reason, commit_id=commit)


def reopen(hub: Hub, actor: User, issue: Issue) -> None:
    if issue.state == "open":
        return
    if isinstance(issue, PullRequest):
        if issue.merged:
            raise invalid("PullRequest", "state", message="A merged pull request cannot be reopened")
        if f"refs/heads/{issue.head}" not in (issue.head_repository or issue.repository).refs:
            raise invalid("PullRequest", "state", message=f"The {issue.head} branch has been deleted.")
    issue.state, issue.closed_at, issue.closed_by = "open", None, None
    issue.state_reason = None if issue.is_pull_request else "reopened"
    happened(hub, issue, actor, "reopened")


# labels and people


def add_labels(hub: Hub, actor: User, issue: Issue, names: Iterable[str]) -> None:
    for name in names:
        label = hub.label(issue.repository, name)
        if label not in issue.labels:
            issue.labels.append(label)
            happened(hub, issue, actor, "labeled", label=label)


def remove_label(hub: Hub, actor: User, issue: Issue, name: str) -> None:
    label = issue.repository.labels.get(name.casefold())
    if label is None or label not in issue.labels:
        raise not_found("Label does not exist")
    issue.labels.remove(label)
    happened(hub, issue, actor, "unlabeled", label=label)


def set_labels(hub: Hub, actor: User, issue: Issue, names: Sequence[str]) -> None:
    wanted = {name.casefold() for name in names}
    for label in list(issue.labels):
        if label.name.casefold() not in wanted:
            remove_label(hub, actor, issue, label.name)
    add_labels(hub, actor, issue, names)


def delete_label(hub: Hub, repository: Repository, label: Label) -> None:
    del repository.labels[label.name.casefold()]
    hub.nodes.pop(label.node, None)
    for issue in repository.issues.values():
        if label in issue.labels:
            issue.labels.remove(label)


def assign(hub: Hub, actor: User, issue: Issue, logins: Iterable[str]) -> None:
    for login in logins:
        user = hub.users.get(login.casefold())
        if user is not None and user not in issue.assignees:
            issue.assignees.append(user)
            happened(hub, issue, actor, "assigned", assignee=user)


def unassign(hub: Hub, actor: User, issue: Issue, logins: Iterable[str]) -> None:
    for login in logins:
        user = hub.users.get(login.casefold())
        if user is not None and user in issue.assignees:
            issue.assignees.remove(user)
            happened(hub, issue, actor, "unassigned", assignee=user)


def add_milestone(hub: Hub, actor: User, repository: Repository, title: str, due_on: str = "") -> Milestone:
    number = hub.next_id()
    count = len(repository.milestones) + 1
    now = hub.now()
    milestone = Milestone(id=number, node="", number=count, title=title, creator=actor, created_at=now, due_on=due_on)
    milestone.node = hub.enter("MI", number, milestone)
    repository.milestones[count] = milestone
    return milestone


# comments


def comment(hub: Hub, actor: User, issue: Issue, body: str) -> Comment:
    if not body.strip():
        raise invalid("IssueComment", "body", "missing_field", "Body can't be blank")
    number, now = hub.next_id(), hub.now()
    output = Comment(id=number, node="", author=actor, body=body, created_at=now, updated_at=now, issue=issue)
    output.node = hub.enter("IC", number, output)
    issue.comments.append(output)
    touch(hub, issue)
    refer(hub, issue, actor, body)
    return output


def edit_comment(hub: Hub, reply: Comment, body: str) -> None:
    reply.body, reply.updated_at = body, hub.now()
    touch(hub, reply.issue)


def delete_comment(hub: Hub, reply: Comment) -> None:
    reply.issue.comments.remove(reply)
    hub.nodes.pop(reply.node, None)
    touch(hub, reply.issue)


def find_comment(repository: Repository, number: int) -> Comment:
    for issue in repository.issues.values():
        for output in issue.comments:
            if output.id == number:
                return output
    raise not_found()


# what belongs together


def block(hub: Hub, actor: User, issue: Issue, by: Issue) -> None:
    """`by` stands in the way of `issue`."""
    if by is issue:
        raise Refused(422, "An issue cannot be blocked by itself")
    if by in issue.blocked_by:
        raise Refused(422, "Issue has already been taken")
    if issue in by.blocked_by:
        raise Refused(422, "Issues cannot block each other")
    issue.blocked_by.append(by)
    by.blocking.append(issue)
    happened(hub, issue, actor, "blocked_by_added")
    happened(hub, by, actor, "blocking_added")


def unblock(hub: Hub, actor: User, issue: Issue, by: Issue) -> None:
    if by not in issue.blocked_by:
        raise not_found()
    issue.blocked_by.remove(by)
    by.blocking.remove(issue)
    happened(hub, issue, actor, "blocked_by_removed")
    happened(hub, by, actor, "blocking_removed")


def add_sub_issue(hub: Hub, actor: User, parent: Issue, child: Issue, *, replace: bool = False) -> None:
    if child is parent or parent in lineage(child):
        raise Refused(422, "A sub-issue cannot be its own ancestor")
    if child.parent is not None:
        if not replace:
            raise Refused(422, "Sub issue may only have one parent")
        remove_sub_issue(hub, actor, child.parent, child)
    if len(parent.sub_issues) >= 100:
        raise Refused(422, "Parent cannot have more than 100 sub-issues")
    parent.sub_issues.append(child)
    child.parent = parent
    happened(hub, parent, actor, "sub_issue_added")
    happened(hub, child, actor, "parent_issue_added")


def remove_sub_issue(hub: Hub, actor: User, parent: Issue, child: Issue) -> None:
    if child.parent is not parent:
        raise not_found()
    parent.sub_issues.remove(child)
    child.parent = None
    happened(hub, parent, actor, "sub_issue_removed")
    happened(hub, child, actor, "parent_issue_removed")


def lineage(issue: Issue) -> list[Issue]:
    """Everything below an issue."""
    found = []
    for child in issue.sub_issues:
        found += [child, *lineage(child)]
    return found


def refer(hub: Hub, source: Issue, actor: User, text: str) -> None:
    """Leave a cross-reference at what a text mentions, once per source."""
    if "#" not in text:
        return
    for issue in mentioned(hub, source.repository, text):
        known = any(event.event == "cross-referenced" and event.data["source"] is source for event in issue.events)
        if issue is not source and not known:
            happened(hub, issue, actor, "cross-referenced", source=source)


def mentioned(hub: Hub, repository: Repository, text: str) -> list[Issue]:
    return _found(hub, repository, _MENTION.findall(text))


def closed_by_text(hub: Hub, repository: Repository, text: str) -> list[Issue]:
    """The issues that a text with a closing keyword names."""
    return [issue for issue in _found(hub, repository, _CLOSING.findall(text)) if not issue.is_pull_request]


def _found(hub: Hub, repository: Repository, names: list[tuple[str, str]]) -> list[Issue]:
    found: dict[int, Issue] = {}
    for full_name, number in names:
        place = hub.repositories.get(full_name.casefold()) if full_name else repository
        issue = place.issues.get(int(number)) if place is not None else None
        if issue is not None:
            found[issue.id] = issue
    return list(found.values())


# leaving


def delete(hub: Hub, issue: Issue) -> None:
    """Delete it for good: its number answers 410, its node is nowhere."""
    _leave(hub, issue)
    issue.repository.gone[issue.number] = None
    hub.nodes.pop(issue.node, None)
    for user in hub.users.values():
        for project in user.projects.values():
            for item in [item for item in project.items if item.content is issue]:
                project.items.remove(item)
                hub.nodes.pop(item.node, None)


def transfer(hub: Hub, actor: User, issue: Issue, to: Repository) -> Issue:
    """Move it to another repository: a new issue there, with a new node; the old number answers 301."""
    moved = create(hub, issue.author, to, issue.title, issue.body, labels=[label.name for label in issue.labels])
    moved.comments, moved.state, moved.state_reason = issue.comments, issue.state, issue.state_reason
    moved.created_at = issue.created_at
    for output in moved.comments:
        output.issue = moved
    _leave(hub, issue)
    issue.repository.gone[issue.number] = moved
    hub.nodes.pop(issue.node, None)
    happened(hub, moved, actor, "transferred")
    return moved


def _leave(hub: Hub, issue: Issue) -> None:
    del issue.repository.issues[issue.number]
    for other in list(issue.blocked_by):
        other.blocking.remove(issue)
    for other in list(issue.blocking):
        other.blocked_by.remove(issue)
        touch(hub, other)
    if issue.parent is not None:
        issue.parent.sub_issues.remove(issue)
        touch(hub, issue.parent)
    for child in issue.sub_issues:
        child.parent = None
