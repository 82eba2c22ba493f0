"""People, organizations, teams and repositories behind the GraphQL door."""

from dataclasses import dataclass
from typing import Any

from tests.standins.github import project_rules
from tests.standins.github.bare import CommitFacts
from tests.standins.github.graphql_asking import Ask, Fields, connection, ordered
from tests.standins.github.hub import Refused, not_found
from tests.standins.github.state import Issue, Project, PullRequest, Repository, User

_PERMISSIONS = (None, "READ", "TRIAGE", "WRITE", "ADMIN")
ISSUE_ORDER = {"CREATED_AT": "created_at", "UPDATED_AT": "updated_at", "NUMBER": "number"}


@dataclass(slots=True, frozen=True)
class Ref:
    """A branch or a tag."""

    repository: Repository
    name: str
    """`refs/heads/main`."""
    typename = "Ref"

    @property
    def sha(self) -> str:
        return self.repository.refs.get(self.name, "")


@dataclass(slots=True, frozen=True)
class Commit:
    repository: Repository
    sha: str
    typename = "Commit"

    @property
    def facts(self) -> CommitFacts:
        return self.repository.git.facts(self.sha)


def user_url(ask: Ask, user: User) -> str:
    return f"{ask.hub.web}/{user.login}"


def repository_url(ask: Ask, repository: Repository) -> str:
    return f"{ask.hub.web}/{repository.full_name}"


def person(ask: Ask, login: str, kind: str) -> User:
    found = ask.hub.users.get(login.casefold())
    if found is None or found.kind != kind:
        raise not_found(
            f"Could not resolve to {'an' if kind[0] in 'AEIOU' else 'a'} {kind} with the login of '{login}'."
        )
    return found


def board(ask: Ask, owner: User) -> Project:
    number = ask.args["number"]
    nowhere = not_found(f"Could not resolve to a ProjectV2 with the number {number}.")
    found = owner.projects.get(number)
    if found is None:
        raise nowhere
    _may_see(ask, found, nowhere)
    return found


def _may_see(ask: Ask, project: Project, nowhere: Refused) -> None:
    try:
        project_rules.need(ask.session.viewer, project)
    except Refused as refused:
        raise nowhere if refused.kind == "NOT_FOUND" else refused from refused


def boards(ask: Ask, owner: User) -> Any:
    seen = []
    for project in owner.projects.values():
        try:
            project_rules.need(ask.session.viewer, project)
        except Refused as refused:
            if refused.kind == "INSUFFICIENT_SCOPES":
                raise
            continue
        seen.append(project)
    return connection(ask, sorted(seen, key=lambda one: -one.number))


def repositories(ask: Ask, owner: User) -> Any:
    mine = [one for one in ask.hub.repositories.values() if one.owner is owner]
    return connection(ask, [one for one in mine if not one.private or ask.session.can(one, 1)])


OWNER: Fields = {
    "id": lambda _, user: user.node,
    "databaseId": lambda _, user: user.id,
    "login": lambda _, user: user.login,
    "name": lambda _, user: user.name or None,
    "email": lambda _, user: user.email,
    "url": user_url,
    "resourcePath": lambda _, user: f"/{user.login}",
    "avatarUrl": lambda ask, user: f"{ask.hub.web}/avatars/{user.id}",
    "createdAt": lambda _, user: user.created_at,
    "updatedAt": lambda _, user: user.created_at,
    "projectV2": board,
    "projectsV2": boards,
    "repository": lambda ask, user: ask.session.repository(f"{user.login}/{ask.args['name']}"),
    "repositories": repositories,
    "isViewer": lambda ask, user: user is ask.user,
}

USER: Fields = {
    **OWNER,
    "organizations": lambda ask, user: connection(
        ask, [one for one in ask.hub.users.values() if user.login.casefold() in one.members]
    ),
    "viewerCanCreateProjects": lambda ask, user: user is ask.user,
    "organization": lambda ask, _: person(ask, ask.args["login"], "Organization"),
}

ORGANIZATION: Fields = {
    **OWNER,
    "viewerCanCreateProjects": lambda ask, user: ask.user.login.casefold() in user.members,
    "teams": lambda ask, user: connection(ask, list(user.teams.values())),
    "issueTypes": lambda ask, _: connection(ask, list(ask.hub.types.values())),
    "membersWithRole": lambda ask, user: connection(ask, [ask.hub.users[one] for one in user.members]),
}

TEAM: Fields = {
    "id": lambda _, team: team.node,
    "databaseId": lambda _, team: team.id,
    "slug": lambda _, team: team.slug,
    "name": lambda _, team: team.slug,
    "combinedSlug": lambda _, team: f"{team.organization.login}/{team.slug}",
    "organization": lambda _, team: team.organization,
    "members": lambda ask, team: connection(ask, team.members),
}

LABEL: Fields = {
    "id": lambda _, label: label.node,
    "name": lambda _, label: label.name,
    "color": lambda _, label: label.color,
    "description": lambda _, label: label.description,
    "isDefault": lambda _, label: label.color != "ededed",
}

MILESTONE: Fields = {
    "id": lambda _, one: one.node,
    "number": lambda _, one: one.number,
    "title": lambda _, one: one.title,
    "description": lambda _, __: None,
    "dueOn": lambda _, one: one.due_on or None,
    "state": lambda _, one: one.state.upper(),
    "closed": lambda _, one: one.state == "closed",
    "creator": lambda _, one: one.creator,
    "createdAt": lambda _, one: one.created_at,
}

ISSUE_TYPE: Fields = {
    "id": lambda _, one: one.node,
    "name": lambda _, one: one.name,
    "description": lambda _, __: None,
    "color": lambda _, __: "GRAY",
    "isEnabled": lambda _, __: True,
}


# repositories


def _find(ask: Ask, repository: Repository, what: str) -> Issue:
    number = ask.args["number"]
    found = repository.issues.get(number)
    right = found is not None and (not what or found.is_pull_request == (what == "PullRequest"))
    if found is None or not right:
        named = {"": "an issue or pull request", "Issue": "an Issue", "PullRequest": "a PullRequest"}[what]
        raise not_found(f"Could not resolve to {named} with the number of {number}.")
    return found


def issues(ask: Ask, repository: Repository) -> Any:
    """The issues of a repository, as `states`, `labels` and `filterBy` leave them."""
    wanted = dict(ask.args.get("filterBy") or {})
    states = wanted.get("states") or ask.args.get("states")
    labels = wanted.get("labels") or ask.args.get("labels")
    found = [one for one in repository.issues.values() if not one.is_pull_request and _fits(one, states, labels)]
    since = wanted.get("since")
    if since:
        found = [one for one in found if one.updated_at >= since]
    author = wanted.get("createdBy")
    if author:
        found = [one for one in found if one.author.login.casefold() == author.casefold()]
    assignee = wanted.get("assignee")
    if assignee and assignee != "*":
        found = [one for one in found if assignee.casefold() in {who.login.casefold() for who in one.assignees}]
    return connection(ask, ordered(found, ask.args.get("orderBy"), ISSUE_ORDER))


def pull_requests(ask: Ask, repository: Repository) -> Any:
    states, labels = ask.args.get("states"), ask.args.get("labels")
    found = [one for one in repository.pulls if _fits(one, states, labels)]
    if ask.args.get("headRefName"):
        found = [one for one in found if one.head == ask.args["headRefName"]]
    if ask.args.get("baseRefName"):
        found = [one for one in found if one.base == ask.args["baseRefName"]]
    return connection(ask, ordered(found, ask.args.get("orderBy"), ISSUE_ORDER))


def _fits(issue: Issue, states: list[str] | None, labels: list[str] | None) -> bool:
    state = "MERGED" if isinstance(issue, PullRequest) and issue.merged else issue.state.upper()
    names = {label.name.casefold() for label in issue.labels}
    return (not states or state in states) and (not labels or any(one.casefold() in names for one in labels))


def _labels(ask: Ask, repository: Repository) -> Any:
    query = str(ask.args.get("query") or "").casefold()
    return connection(ask, [one for name, one in repository.labels.items() if query in name])


def _ref(ask: Ask, repository: Repository) -> Ref | None:
    name = str(ask.args["qualifiedName"])
    for whole in (name, f"refs/heads/{name}", f"refs/{name}"):
        if whole in repository.refs:
            return Ref(repository, whole)
    return None


def _refs(ask: Ask, repository: Repository) -> Any:
    prefix, query = ask.args["refPrefix"], str(ask.args.get("query") or "")
    names = sorted(name for name in repository.refs if name.startswith(prefix) and query in name)
    return connection(ask, [Ref(repository, name) for name in names])


def _object(ask: Ask, repository: Repository) -> Commit | None:
    wanted = ask.args.get("oid") or ask.args.get("expression") or ""
    sha = repository.git.resolve(str(wanted))
    return Commit(repository, sha) if sha else None


def _people(ask: Ask, repository: Repository) -> Any:
    """Those to whom something here can be assigned."""
    everybody = [one for one in ask.hub.users.values() if one.kind == "User"]
    members = [one for one in everybody if ask.hub.association(one, repository) != "NONE"]
    names = str(ask.args.get("loginNames") or "").casefold().split(",")
    query = str(ask.args.get("query") or "").casefold()
    found = [one for one in members if query in one.login.casefold()]
    if ask.args.get("loginNames"):
        found = [one for one in found if one.login.casefold() in names]
    return connection(ask, found)


REPOSITORY: Fields = {
    "id": lambda _, one: one.node,
    "databaseId": lambda _, one: one.id,
    "name": lambda _, one: one.name,
    "nameWithOwner": lambda _, one: one.full_name,
    "owner": lambda _, one: one.owner,
    "url": repository_url,
    "sshUrl": lambda _, one: f"git@github.com:{one.full_name}.git",
    "resourcePath": lambda _, one: f"/{one.full_name}",
    "description": lambda _, one: one.description,
    "isPrivate": lambda _, one: one.private,
    "visibility": lambda _, one: "PRIVATE" if one.private else "PUBLIC",
    "isArchived": lambda _, one: one.archived,
    "isFork": lambda _, __: False,
    "isEmpty": lambda _, one: not one.refs,
    "isInOrganization": lambda _, one: one.owner.kind == "Organization",
    "parent": lambda _, __: None,
    "createdAt": lambda _, one: one.created_at,
    "updatedAt": lambda _, one: one.updated_at,
    "pushedAt": lambda _, one: one.pushed_at,
    "hasIssuesEnabled": lambda _, __: True,
    "hasWikiEnabled": lambda _, __: False,
    "hasProjectsEnabled": lambda _, __: True,
    "viewerPermission": lambda ask, one: _PERMISSIONS[ask.hub.rank(ask.user, one)],
    "viewerCanAdminister": lambda ask, one: ask.session.can(one, 4),
    "viewerDefaultMergeMethod": lambda _, __: "MERGE",
    "mergeCommitAllowed": lambda _, one: "merge" in one.allow,
    "squashMergeAllowed": lambda _, one: "squash" in one.allow,
    "rebaseMergeAllowed": lambda _, one: "rebase" in one.allow,
    "autoMergeAllowed": lambda _, __: True,
    "deleteBranchOnMerge": lambda _, one: one.delete_branch_on_merge,
    "defaultBranchRef": lambda _, one: Ref(one, f"refs/heads/{one.default_branch}"),
    "ref": _ref,
    "refs": _refs,
    "object": _object,
    "issue": lambda ask, one: _find(ask, one, "Issue"),
    "pullRequest": lambda ask, one: _find(ask, one, "PullRequest"),
    "issueOrPullRequest": lambda ask, one: _find(ask, one, ""),
    "issues": issues,
    "pullRequests": pull_requests,
    "label": lambda ask, one: one.labels.get(str(ask.args["name"]).casefold()),
    "labels": _labels,
    "milestone": lambda ask, one: one.milestones.get(ask.args["number"]),
    "milestones": lambda ask, one: connection(ask, list(one.milestones.values())),
    "issueType": lambda ask, _: ask.hub.types.get(str(ask.args["name"]).casefold()),
    "issueTypes": lambda ask, _: connection(ask, list(ask.hub.types.values())),
    "issueTemplates": lambda _, __: [],
    "pullRequestTemplates": lambda _, __: [],
    "assignableUsers": _people,
    "suggestedActors": _people,
    "mentionableUsers": _people,
    "projectsV2": lambda ask, one: boards(ask, one.owner),
    "projects": lambda ask, _: connection(ask, []),
    "mergeQueue": lambda _, __: None,
}

REF: Fields = {
    "id": lambda _, ref: f"REF_{ref.repository.node}_{ref.name}",
    "name": lambda _, ref: ref.name.split("/", 2)[2],
    "prefix": lambda _, ref: "/".join(ref.name.split("/")[:2]) + "/",
    "repository": lambda _, ref: ref.repository,
    "target": lambda _, ref: Commit(ref.repository, ref.sha) if ref.sha else None,
    "branchProtectionRule": lambda _, ref: _rule(ref),
    "associatedPullRequests": lambda ask, ref: connection(
        ask, [one for one in ref.repository.pulls if f"refs/heads/{one.head}" == ref.name]
    ),
}


def _rule(ref: Ref) -> Any:
    rules = ref.repository.protection.get(ref.name.removeprefix("refs/heads/"))
    if rules is None:
        return None
    return {
        "__typename": "BranchProtectionRule",
        "id": f"BPR_{ref.repository.node}_{ref.name}",
        "pattern": ref.name.removeprefix("refs/heads/"),
        "requiredApprovingReviewCount": rules.approvals,
        "requiresApprovingReviews": rules.approvals > 0,
        "requiredStatusCheckContexts": list(rules.checks),
        "requiresStatusChecks": bool(rules.checks),
        "requiresStrictStatusChecks": False,
        "dismissesStaleReviews": rules.dismiss_stale,
    }


def owner_of(ask: Ask, login: str) -> User | None:
    found = ask.hub.users.get(login.casefold())
    return found if found is not None and found.kind != "Bot" else None


TYPES: dict[str, Fields] = {
    "User": USER,
    "Organization": ORGANIZATION,
    "Bot": OWNER,
    "Team": TEAM,
    "Label": LABEL,
    "Milestone": MILESTONE,
    "IssueType": ISSUE_TYPE,
    "Repository": REPOSITORY,
    "Ref": REF,
}
