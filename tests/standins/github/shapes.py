"""People, labels, issues and comments as GitHub's REST shows them."""

from typing import Any
from urllib.parse import quote

from tests.standins.github.hub import Hub
from tests.standins.github.state import (
    Comment,
    Issue,
    IssueType,
    Label,
    Milestone,
    PullRequest,
    Repository,
    Review,
    Team,
    TimelineEvent,
    User,
)

Shape = dict[str, Any]

_OF_USER = {
    "followers_url": "/followers",
    "following_url": "/following{/other_user}",
    "gists_url": "/gists{/gist_id}",
    "starred_url": "/starred{/owner}{/repo}",
    "subscriptions_url": "/subscriptions",
    "organizations_url": "/orgs",
    "repos_url": "/repos",
    "events_url": "/events{/privacy}",
    "received_events_url": "/received_events",
}


def user(hub: Hub, one: User) -> Shape:
    place = f"{hub.url}/users/{quote(one.login)}"
    return {
        "login": one.login,
        "id": one.id,
        "node_id": one.node,
        "avatar_url": f"{hub.web}/avatars/{one.id}",
        "gravatar_id": "",
        "url": place,
        "html_url": f"{hub.web}/{quote(one.login)}",
        **{name: place + suffix for name, suffix in _OF_USER.items()},
        "type": one.kind,
        "user_view_type": "public",
        "site_admin": False,
    }


def maybe_user(hub: Hub, one: User | None) -> Shape | None:
    return None if one is None else user(hub, one)


def public_user(hub: Hub, one: User) -> Shape:
    return user(hub, one) | {
        "name": one.name or None,
        "company": None,
        "blog": "",
        "location": None,
        "email": one.email or None,
        "hireable": None,
        "bio": None,
        "public_repos": 0,
        "public_gists": 0,
        "followers": 0,
        "following": 0,
        "created_at": one.created_at,
        "updated_at": one.created_at,
    }


def private_user(hub: Hub, one: User) -> Shape:
    return public_user(hub, one) | {
        "private_gists": 0,
        "total_private_repos": 0,
        "owned_private_repos": 0,
        "disk_usage": 0,
        "collaborators": 0,
        "two_factor_authentication": True,
    }


def team(hub: Hub, one: Team) -> Shape:
    place = f"{hub.url}/organizations/{one.organization.id}/team/{one.id}"
    return {
        "id": one.id,
        "node_id": one.node,
        "url": place,
        "html_url": f"{hub.web}/orgs/{one.organization.login}/teams/{one.slug}",
        "name": one.slug,
        "slug": one.slug,
        "description": None,
        "privacy": "closed",
        "permission": "push",
        "members_url": place + "/members{/member}",
        "repositories_url": place + "/repos",
        "type": "organization",
        "organization_id": one.organization.id,
        "parent": None,
    }


def repository_url(hub: Hub, repository: Repository) -> str:
    return f"{hub.url}/repos/{repository.full_name}"


def label(hub: Hub, repository: Repository, one: Label) -> Shape:
    return {
        "id": one.id,
        "node_id": one.node,
        "url": f"{repository_url(hub, repository)}/labels/{quote(one.name)}",
        "name": one.name,
        "description": one.description,
        "color": one.color,
        "default": False,
        "archived_at": None,
        "archived_by": None,
    }


def milestone(hub: Hub, repository: Repository, one: Milestone) -> Shape:
    place = f"{repository_url(hub, repository)}/milestones/{one.number}"
    mine = [issue for issue in repository.issues.values() if issue.milestone is one]
    return {
        "url": place,
        "html_url": f"{hub.web}/{repository.full_name}/milestone/{one.number}",
        "labels_url": f"{place}/labels",
        "id": one.id,
        "node_id": one.node,
        "number": one.number,
        "state": one.state,
        "title": one.title,
        "description": None,
        "creator": user(hub, one.creator),
        "open_issues": sum(issue.state == "open" for issue in mine),
        "closed_issues": sum(issue.state == "closed" for issue in mine),
        "created_at": one.created_at,
        "updated_at": one.created_at,
        "closed_at": None,
        "due_on": one.due_on or None,
    }


def issue_type(one: IssueType) -> Shape:
    return {"id": one.id, "node_id": one.node, "name": one.name, "description": None, "is_enabled": True}


def _reactions(place: str) -> Shape:
    names = ("total_count", "+1", "-1", "laugh", "confused", "heart", "hooray", "eyes", "rocket")
    return {"url": f"{place}/reactions"} | dict.fromkeys(names, 0)


def issue_url(hub: Hub, one: Issue) -> str:
    return f"{repository_url(hub, one.repository)}/issues/{one.number}"


def issue_page(hub: Hub, one: Issue) -> str:
    kind = "pull" if one.is_pull_request else "issues"
    return f"{hub.web}/{one.repository.full_name}/{kind}/{one.number}"


def issue(hub: Hub, one: Issue) -> Shape:
    """An issue, or a pull request as the list of issues shows it."""
    place, page = issue_url(hub, one), issue_page(hub, one)
    shape: Shape = {
        "url": place,
        "repository_url": repository_url(hub, one.repository),
        "labels_url": place + "/labels{/name}",
        "comments_url": place + "/comments",
        "events_url": place + "/events",
        "html_url": page,
        "id": one.id,
        "node_id": one.node,
        "number": one.number,
        "title": one.title,
        "user": user(hub, one.author),
        "labels": [label(hub, one.repository, each) for each in one.labels],
        "state": one.state,
        "locked": False,
        "assignee": user(hub, one.assignees[0]) if one.assignees else None,
        "assignees": [user(hub, each) for each in one.assignees],
        "milestone": milestone(hub, one.repository, one.milestone) if one.milestone else None,
        "comments": len(one.comments),
        "created_at": one.created_at,
        "updated_at": one.updated_at,
        "closed_at": one.closed_at,
        "author_association": hub.association(one.author, one.repository),
        "type": issue_type(one.type) if one.type else None,
        "active_lock_reason": None,
        "body": one.body or None,
        "closed_by": maybe_user(hub, one.closed_by),
        "reactions": _reactions(place),
        "timeline_url": place + "/timeline",
        "performed_via_github_app": None,
        "state_reason": one.state_reason,
    }
    if isinstance(one, PullRequest):
        shape["draft"] = one.draft
        shape["pull_request"] = {
            "url": f"{repository_url(hub, one.repository)}/pulls/{one.number}",
            "html_url": page,
            "diff_url": page + ".diff",
            "patch_url": page + ".patch",
            "merged_at": one.merged_at,
        }
        return shape
    return shape | _kin(hub, one)


def _kin(hub: Hub, one: Issue) -> Shape:
    """What an issue says of its parts, of what stands in its way, and of its parent."""
    done, total = sum(child.state == "closed" for child in one.sub_issues), len(one.sub_issues)
    shape: Shape = {
        "sub_issues_summary": {
            "total": total,
            "completed": done,
            "percent_completed": done * 100 // total if total else 0,
        },
        "issue_dependencies_summary": {
            "blocked_by": sum(other.state == "open" for other in one.blocked_by),
            "total_blocked_by": len(one.blocked_by),
            "blocking": sum(other.state == "open" for other in one.blocking),
            "total_blocking": len(one.blocking),
        },
    }
    if one.parent is not None:
        shape["parent_issue_url"] = issue_url(hub, one.parent)
    return shape


def comment(hub: Hub, one: Comment) -> Shape:
    place = f"{repository_url(hub, one.issue.repository)}/issues/comments/{one.id}"
    return {
        "url": place,
        "html_url": f"{issue_page(hub, one.issue)}#issuecomment-{one.id}",
        "issue_url": issue_url(hub, one.issue),
        "id": one.id,
        "node_id": one.node,
        "user": user(hub, one.author),
        "created_at": one.created_at,
        "updated_at": one.updated_at,
        "body": one.body,
        "author_association": hub.association(one.author, one.issue.repository),
        "reactions": _reactions(place),
        "performed_via_github_app": None,
    }


def event(hub: Hub, of: Issue, one: TimelineEvent) -> Shape:
    """An event of the timeline."""
    if one.event == "cross-referenced":
        return {
            "actor": user(hub, one.actor),
            "created_at": one.created_at,
            "updated_at": one.created_at,
            "source": {"type": "issue", "issue": issue(hub, one.data["source"])},
            "event": one.event,
        }
    place = repository_url(hub, of.repository)
    commit = one.data.get("commit_id")
    shape: Shape = {
        "id": one.id,
        "node_id": one.node,
        "url": f"{place}/issues/events/{one.id}",
        "actor": user(hub, one.actor),
        "event": one.event,
        "commit_id": commit,
        "commit_url": f"{place}/commits/{commit}" if commit else None,
        "created_at": one.created_at,
        "performed_via_github_app": None,
    }
    match one.event:
        case "labeled" | "unlabeled":
            shape["label"] = {"name": one.data["label"].name, "color": one.data["label"].color}
        case "renamed":
            shape["rename"] = one.data["rename"]
        case "closed":
            shape["state_reason"] = one.data.get("state_reason")
        case "assigned" | "unassigned":
            shape["assignee"] = user(hub, one.data["assignee"])
        case "review_requested" | "review_request_removed":
            shape["review_requester"] = user(hub, one.actor)
            if "requested_reviewer" in one.data:
                shape["requested_reviewer"] = user(hub, one.data["requested_reviewer"])
            else:
                shape["requested_team"] = team(hub, one.data["requested_team"])
        case "review_dismissed":
            made: Review = one.data["review"]
            shape["dismissed_review"] = {
                "state": "dismissed",
                "review_id": made.id,
                "dismissal_message": one.data["message"],
            }
        case _:
            pass
    return shape
