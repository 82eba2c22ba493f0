"""Repositories, commits, pull requests, reviews and checks as GitHub's REST shows them."""

from tests.standins.github import pull_rules, shapes
from tests.standins.github.bare import CommitFacts
from tests.standins.github.hub import Hub
from tests.standins.github.shapes import Shape
from tests.standins.github.state import CheckRun, CommitStatus, PullRequest, Repository, Review, ReviewComment, User

_OF_REPOSITORY = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "contributors_url": "/contributors",
    "deployments_url": "/deployments",
    "downloads_url": "/downloads",
    "events_url": "/events",
    "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "languages_url": "/languages",
    "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "tags_url": "/tags",
    "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}


def minimal_repository(hub: Hub, one: Repository) -> Shape:
    place = shapes.repository_url(hub, one)
    return {
        "id": one.id,
        "node_id": one.node,
        "name": one.name,
        "full_name": one.full_name,
        "private": one.private,
        "owner": shapes.user(hub, one.owner),
        "html_url": f"{hub.web}/{one.full_name}",
        "description": one.description,
        "fork": False,
        "url": place,
        **{name: place + suffix for name, suffix in _OF_REPOSITORY.items()},
    }


def repository(hub: Hub, one: Repository, viewer: User | None = None) -> Shape:
    rank = 1 if viewer is None else hub.rank(viewer, one)
    page = f"{hub.web}/{one.full_name}"
    still_open = sum(issue.state == "open" for issue in one.issues.values())
    return minimal_repository(hub, one) | {
        "git_url": f"git://{page.partition('://')[2]}.git",
        "ssh_url": f"git@github.com:{one.full_name}.git",
        "clone_url": f"{page}.git",
        "svn_url": page,
        "mirror_url": None,
        "homepage": None,
        "language": None,
        "license": None,
        "size": 1,
        "forks": 0,
        "forks_count": 0,
        "stargazers_count": 0,
        "watchers_count": 0,
        "watchers": 0,
        "open_issues_count": still_open,
        "open_issues": still_open,
        "default_branch": one.default_branch,
        "is_template": False,
        "topics": [],
        "has_issues": True,
        "has_projects": True,
        "has_wiki": False,
        "has_pages": False,
        "has_downloads": True,
        "has_discussions": False,
        "archived": one.archived,
        "disabled": False,
        "visibility": "private" if one.private else "public",
        "allow_forking": True,
        "web_commit_signoff_required": False,
        "pushed_at": one.pushed_at,
        "created_at": one.created_at,
        "updated_at": one.updated_at,
        "permissions": {
            "admin": rank >= 4,
            "maintain": rank >= 4,
            "push": rank >= 3,
            "triage": rank >= 2,
            "pull": rank >= 1,
        },
    }


def full_repository(hub: Hub, one: Repository, viewer: User | None = None) -> Shape:
    shape = repository(hub, one, viewer) | {
        "network_count": 0,
        "subscribers_count": 0,
        "allow_merge_commit": "merge" in one.allow,
        "allow_squash_merge": "squash" in one.allow,
        "allow_rebase_merge": "rebase" in one.allow,
        "allow_auto_merge": True,
        "allow_update_branch": False,
        "delete_branch_on_merge": one.delete_branch_on_merge,
    }
    if one.owner.kind == "Organization":
        shape["organization"] = shapes.user(hub, one.owner)
    return shape


# commits


def _person(name: str, email: str, date: str) -> Shape:
    return {"name": name, "email": email, "date": date}


def git_commit(hub: Hub, place: Repository, one: CommitFacts) -> Shape:
    """A commit as git has it."""
    root = shapes.repository_url(hub, place)
    page = f"{hub.web}/{place.full_name}/commit"
    return {
        "sha": one.sha,
        "node_id": f"C_{one.sha}",
        "url": f"{root}/git/commits/{one.sha}",
        "html_url": f"{page}/{one.sha}",
        "author": _person(one.author, one.email, one.date),
        "committer": _person(one.committer, one.committer_email, one.committed),
        "tree": {"sha": one.tree, "url": f"{root}/git/trees/{one.tree}"},
        "message": one.message,
        "parents": [
            {"sha": sha, "url": f"{root}/git/commits/{sha}", "html_url": f"{page}/{sha}"} for sha in one.parents
        ],
        "verification": {
            "verified": False,
            "reason": "unsigned",
            "signature": None,
            "payload": None,
            "verified_at": None,
        },
    }


def commit(hub: Hub, place: Repository, one: CommitFacts) -> Shape:
    """A commit with the people behind it."""
    root = shapes.repository_url(hub, place)
    page = f"{hub.web}/{place.full_name}/commit"
    inner = git_commit(hub, place, one)
    authors = {user.email: user for user in hub.users.values() if user.email}
    return {
        "sha": one.sha,
        "node_id": inner["node_id"],
        "commit": {
            "author": inner["author"],
            "committer": inner["committer"],
            "message": one.message,
            "tree": inner["tree"],
            "url": inner["url"],
            "comment_count": 0,
            "verification": inner["verification"],
        },
        "url": f"{root}/commits/{one.sha}",
        "html_url": f"{page}/{one.sha}",
        "comments_url": f"{root}/commits/{one.sha}/comments",
        "author": shapes.maybe_user(hub, authors.get(one.email)),
        "committer": shapes.maybe_user(hub, authors.get(one.committer_email)),
        "parents": [{"sha": sha, "url": f"{root}/commits/{sha}", "html_url": f"{page}/{sha}"} for sha in one.parents],
    }


def changed_file(hub: Hub, place: Repository, sha: str, one: tuple[str, int, int]) -> Shape:
    path, added, removed = one
    page = f"{hub.web}/{place.full_name}"
    return {
        "sha": None,
        "filename": path,
        "status": "modified",
        "additions": added,
        "deletions": removed,
        "changes": added + removed,
        "blob_url": f"{page}/blob/{sha}/{path}",
        "raw_url": f"{page}/raw/{sha}/{path}",
        "contents_url": f"{shapes.repository_url(hub, place)}/contents/{path}?ref={sha}",
    }


def ref(hub: Hub, place: Repository, name: str, sha: str) -> Shape:
    root = shapes.repository_url(hub, place)
    return {
        "ref": name,
        "node_id": f"REF_{place.id}_{name}",
        "url": f"{root}/git/{name}",
        "object": {"sha": sha, "type": "commit", "url": f"{root}/git/commits/{sha}"},
    }


# pull requests


def simple_pull(hub: Hub, one: PullRequest) -> Shape:
    """A pull request as lists show it."""
    place = f"{shapes.repository_url(hub, one.repository)}/pulls/{one.number}"
    page, as_issue = shapes.issue_page(hub, one), shapes.issue_url(hub, one)
    statuses = f"{shapes.repository_url(hub, one.repository)}/statuses/{one.head_sha}"
    remarks = f"{shapes.repository_url(hub, one.repository)}/pulls/comments{{/number}}"
    links = {
        "self": place,
        "html": page,
        "issue": as_issue,
        "comments": f"{as_issue}/comments",
        "review_comments": f"{place}/comments",
        "review_comment": remarks,
        "commits": f"{place}/commits",
        "statuses": statuses,
    }
    base_shape = shapes.issue(hub, one)
    kept: tuple[str, ...] = (
        "title",
        "user",
        "body",
        "labels",
        "milestone",
        "created_at",
        "updated_at",
        "closed_at",
        "assignee",
    )
    kept += ("assignees", "author_association", "state", "locked", "active_lock_reason", "number", "node_id")
    return {name: base_shape[name] for name in kept} | {
        "url": place,
        "id": one.pull_id,
        "html_url": page,
        "diff_url": page + ".diff",
        "patch_url": page + ".patch",
        "issue_url": as_issue,
        "commits_url": f"{place}/commits",
        "review_comments_url": f"{place}/comments",
        "review_comment_url": remarks,
        "comments_url": f"{as_issue}/comments",
        "statuses_url": statuses,
        "merged_at": one.merged_at,
        "merge_commit_sha": one.merge_sha,
        "requested_reviewers": [shapes.user(hub, each) for each in one.requested_reviewers],
        "requested_teams": [shapes.team(hub, each) for each in one.requested_teams],
        "head": _end(hub, one.head_repository, one.head, one.head_sha),
        "base": _end(hub, one.repository, one.base, one.base_sha),
        "_links": {name: {"href": link} for name, link in links.items()},
        "auto_merge": _auto_merge(hub, one),
        "draft": one.draft,
    }


def _auto_merge(hub: Hub, one: PullRequest) -> Shape | None:
    if not one.auto_merge:
        return None
    return {
        "enabled_by": shapes.user(hub, one.author),
        "merge_method": one.auto_merge,
        "commit_title": one.title,
        "commit_message": "",
    }


def _end(hub: Hub, place: Repository | None, branch: str, sha: str) -> Shape:
    if place is None:
        return {"label": None, "ref": branch, "sha": sha, "user": None, "repo": None}
    return {
        "label": f"{place.owner.login}:{branch}",
        "ref": branch,
        "sha": sha,
        "user": shapes.user(hub, place.owner),
        "repo": repository(hub, place),
    }


def pull(hub: Hub, one: PullRequest) -> Shape:
    """A pull request as it shows itself: the look asks for its mergeability."""
    state = pull_rules.merge_state(hub, one)
    mergeable = {"unknown": None, "dirty": False}.get(state, True)
    pull_rules.fetch(one)
    git = one.repository.git
    changed = git.changed(one.base_sha, one.head_sha) if not one.merged else []
    return simple_pull(hub, one) | {
        "merged": one.merged,
        "mergeable": mergeable,
        "rebaseable": mergeable,
        "mergeable_state": state,
        "merged_by": shapes.maybe_user(hub, one.merged_by),
        "comments": len(one.comments),
        "review_comments": len(one.review_comments),
        "maintainer_can_modify": one.maintainer_can_modify,
        "commits": len(git.commits(one.base_sha, one.head_sha)) if not one.merged else 1,
        "additions": sum(added for _, added, _ in changed),
        "deletions": sum(removed for _, _, removed in changed),
        "changed_files": len(changed),
    }


def pull_url(hub: Hub, one: PullRequest) -> str:
    return f"{shapes.repository_url(hub, one.repository)}/pulls/{one.number}"


def review(hub: Hub, one: Review) -> Shape:
    page = f"{shapes.issue_page(hub, one.pull_request)}#pullrequestreview-{one.id}"
    shape = {
        "id": one.id,
        "node_id": one.node,
        "user": shapes.user(hub, one.author),
        "body": one.body,
        "state": one.state,
        "html_url": page,
        "pull_request_url": pull_url(hub, one.pull_request),
        "_links": {"html": {"href": page}, "pull_request": {"href": pull_url(hub, one.pull_request)}},
        "commit_id": one.commit,
        "author_association": hub.association(one.author, one.pull_request.repository),
    }
    if one.submitted_at is not None:
        shape["submitted_at"] = one.submitted_at
    return shape


def review_comment(hub: Hub, of: PullRequest, one: ReviewComment) -> Shape:
    place = f"{shapes.repository_url(hub, of.repository)}/pulls/comments/{one.id}"
    page = f"{shapes.issue_page(hub, of)}#discussion_r{one.id}"
    shape = {
        "url": place,
        "pull_request_review_id": one.review.id if one.review else None,
        "id": one.id,
        "node_id": one.node,
        "diff_hunk": f"@@ -1 +{one.line or 1} @@",
        "path": one.path,
        "position": one.line or 1,
        "original_position": one.line or 1,
        "commit_id": one.commit,
        "original_commit_id": one.commit,
        "user": shapes.user(hub, one.author),
        "body": one.body,
        "created_at": one.created_at,
        "updated_at": one.updated_at,
        "html_url": page,
        "pull_request_url": pull_url(hub, of),
        "author_association": hub.association(one.author, of.repository),
        "_links": {"self": {"href": place}, "html": {"href": page}, "pull_request": {"href": pull_url(hub, of)}},
        "start_line": one.start_line,
        "original_start_line": one.start_line,
        "start_side": one.side if one.start_line else None,
        "line": one.line or 1,
        "original_line": one.line or 1,
        "side": one.side,
        "subject_type": "line" if one.line else "file",
    }
    if one.in_reply_to is not None:
        shape["in_reply_to_id"] = one.in_reply_to
    return shape


# checks


def check_run(hub: Hub, place: Repository, one: CheckRun) -> Shape:
    url = f"{shapes.repository_url(hub, place)}/check-runs/{one.id}"
    return {
        "id": one.id,
        "node_id": one.node,
        "name": one.name,
        "head_sha": one.sha,
        "external_id": one.external_id,
        "url": url,
        "html_url": f"{hub.web}/{place.full_name}/runs/{one.id}",
        "details_url": one.details_url or f"{hub.web}/{place.full_name}/runs/{one.id}",
        "status": one.status,
        "conclusion": one.conclusion,
        "started_at": one.started_at,
        "completed_at": one.completed_at,
        "output": {
            "title": one.title or None,
            "summary": one.summary or None,
            "text": None,
            "annotations_count": 0,
            "annotations_url": f"{url}/annotations",
        },
        "check_suite": {"id": one.id},
        "app": None,
        "pull_requests": [],
    }


def status(hub: Hub, place: Repository, one: CommitStatus) -> Shape:
    return {
        "url": f"{shapes.repository_url(hub, place)}/statuses/{one.sha}",
        "avatar_url": f"{hub.web}/avatars/{one.creator.id}",
        "id": one.id,
        "node_id": one.node,
        "state": one.state,
        "description": one.description or None,
        "target_url": one.target_url or None,
        "context": one.context,
        "created_at": one.created_at,
        "updated_at": one.created_at,
    }
