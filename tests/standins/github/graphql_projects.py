"""Boards (Projects v2) and the search for issues behind the GraphQL door."""

import shlex
from typing import Any

from tests.standins.github import project_rules
from tests.standins.github.graphql_asking import Ask, Fields, connection
from tests.standins.github.hub import Refused
from tests.standins.github.state import FieldOption, Issue, Project, ProjectField, ProjectItem, PullRequest

_KINDS = {"Issue": "ISSUE", "PullRequest": "PULL_REQUEST"}
_SORTS = {"created": "created_at", "updated": "updated_at"}


def url_of(ask: Ask, project: Project) -> str:
    kind = "orgs" if project.owner.kind == "Organization" else "users"
    return f"{ask.hub.web}/{kind}/{project.owner.login}/projects/{project.number}"


def _items(ask: Ask, project: Project) -> Any:
    return connection(ask, project_rules.matching(project, str(ask.args.get("query") or "")))


def _may_change(ask: Ask, project: Project) -> bool:
    try:
        project_rules.need(ask.session.viewer, project, write=True)
    except Refused:
        return False
    return True


PROJECT: Fields = {
    "id": lambda _, one: one.node,
    "databaseId": lambda _, one: one.id,
    "fullDatabaseId": lambda _, one: str(one.id),
    "number": lambda _, one: one.number,
    "title": lambda _, one: one.title,
    "shortDescription": lambda _, __: None,
    "readme": lambda _, __: None,
    "public": lambda _, one: one.public,
    "closed": lambda _, one: one.closed,
    "closedAt": lambda _, __: None,
    "template": lambda _, __: False,
    "owner": lambda _, one: one.owner,
    "creator": lambda _, one: one.creator,
    "createdAt": lambda _, one: one.created_at,
    "updatedAt": lambda _, one: one.updated_at,
    "url": url_of,
    "resourcePath": lambda ask, one: url_of(ask, one).removeprefix(ask.hub.web),
    "items": _items,
    "fields": lambda ask, one: connection(ask, [Placed(field, one) for field in one.fields]),
    "field": lambda ask, one: _named(one, str(ask.args["name"])),
    "viewerCanUpdate": _may_change,
    "viewerCanClose": _may_change,
}


class Placed:
    """A field of a board, which knows its board."""

    def __init__(self, field: ProjectField, project: Project) -> None:
        self.field = field
        self.project = project
        self.typename = "ProjectV2SingleSelectField" if field.kind == "single_select" else "ProjectV2Field"


def may_see(ask: Ask, project: Project) -> None:
    project_rules.need(ask.session.viewer, project)


def _named(project: Project, name: str) -> Placed | None:
    field = project.field_named(name)
    return Placed(field, project) if field else None


FIELD: Fields = {
    "id": lambda _, one: one.field.node,
    "databaseId": lambda _, one: one.field.id,
    "name": lambda _, one: one.field.name,
    "dataType": lambda _, one: one.field.kind.upper(),
    "project": lambda _, one: one.project,
    "createdAt": lambda _, one: one.field.created_at,
    "updatedAt": lambda _, one: one.field.created_at,
}

SINGLE_SELECT: Fields = {
    **FIELD,
    "options": lambda ask, one: [
        option for option in one.field.options if not ask.args.get("names") or option.name in ask.args["names"]
    ],
}

OPTION: Fields = {
    "id": lambda _, option: option.id,
    "name": lambda _, option: option.name,
    "nameHTML": lambda _, option: option.name,
    "color": lambda _, option: option.color,
    "description": lambda _, option: option.description,
    "descriptionHTML": lambda _, option: option.description,
}


# cards


def _content(_: Ask, item: ProjectItem) -> Any:
    if item.content is not None:
        return item.content
    return {
        "__typename": "DraftIssue",
        "id": f"DI_{item.node}",
        "title": item.title,
        "body": item.body,
        "bodyText": item.body,
        "createdAt": item.created_at,
        "updatedAt": item.updated_at,
        "creator": item.creator,
        "people": [],
    }


def value_of(item: ProjectItem, field: ProjectField) -> Any:
    """What a card has in a field; nothing where it has nothing."""
    made: dict[str, Any] = {
        "id": f"PVTFV_{item.node}_{field.id}",
        "databaseId": item.id,
        "field": Placed(field, item.project),
        "item": item,
        "creator": item.creator,
        "createdAt": item.created_at,
        "updatedAt": item.updated_at,
    }
    content = item.content
    value = item.values.get(field.id)
    match field.kind:
        case "title":
            title = content.title if content else item.title
            return {**made, "__typename": "ProjectV2ItemFieldTextValue", "text": title}
        case "assignees":
            people = content.assignees if content else []
            return {**made, "__typename": "ProjectV2ItemFieldUserValue", "users": people} if people else None
        case "labels":
            labels = content.labels if content else []
            return {**made, "__typename": "ProjectV2ItemFieldLabelValue", "labels": labels} if labels else None
        case "repository":
            place = content.repository if content else None
            return {**made, "__typename": "ProjectV2ItemFieldRepositoryValue", "repository": place} if place else None
        case "single_select" if isinstance(value, FieldOption):
            return {
                **made,
                "__typename": "ProjectV2ItemFieldSingleSelectValue",
                "name": value.name,
                "nameHTML": value.name,
                "optionId": value.id,
                "color": value.color,
                "description": value.description,
            }
        case "text" | "number" | "date" if value is not None:
            kind = {"text": "Text", "number": "Number", "date": "Date"}[field.kind]
            return {**made, "__typename": f"ProjectV2ItemField{kind}Value", field.kind: value}
        case _:
            return None


def _value_named(ask: Ask, item: ProjectItem) -> Any:
    field = item.project.field_named(str(ask.args["name"]))
    return value_of(item, field) if field else None


def _values(ask: Ask, item: ProjectItem) -> Any:
    found = [value_of(item, field) for field in item.project.fields]
    return connection(ask, [one for one in found if one is not None])


ITEM: Fields = {
    "id": lambda _, item: item.node,
    "databaseId": lambda _, item: item.id,
    "fullDatabaseId": lambda _, item: str(item.id),
    "type": lambda _, item: "DRAFT_ISSUE" if item.content is None else _KINDS[type(item.content).__name__],
    "content": _content,
    "project": lambda _, item: item.project,
    "creator": lambda _, item: item.creator,
    "createdAt": lambda _, item: item.created_at,
    "updatedAt": lambda _, item: item.updated_at,
    "isArchived": lambda _, item: item.archived,
    "fieldValueByName": _value_named,
    "fieldValues": _values,
}


# search


def search(ask: Ask, _: Any) -> Any:
    """Issues and pull requests by the words of GitHub's search; other kinds of things are not there."""
    if ask.args["type"] not in ("ISSUE", "ISSUE_ADVANCED"):
        raise Refused(200, f"the GitHub of the tests cannot search for {ask.args['type']}", kind="NOT_IMPLEMENTED")
    found = [
        issue
        for repository in ask.hub.repositories.values()
        if not repository.private or ask.session.can(repository, 1)
        for issue in repository.issues.values()
    ]
    order = "created-desc"
    for term in _terms(str(ask.args["query"])):
        name, colon, value = term.partition(":")
        if colon and name == "sort":
            order = value
            continue
        negated = term.startswith("-")
        found = [one for one in found if _fits(one, term.removeprefix("-")) is not negated]
    key, _, direction = order.partition("-")
    found.sort(key=lambda one: (getattr(one, _SORTS.get(key, "created_at")), one.id), reverse=direction != "asc")
    made = connection(ask, found)
    return {**made, "issueCount": made["totalCount"]}


def _terms(query: str) -> list[str]:
    """The words of a search; brackets and the words that join them are left out."""
    return [word for word in shlex.split(query.replace("(", " ").replace(")", " ")) if word != "AND"]


def _fits(issue: Issue, term: str) -> bool:
    name, colon, value = term.partition(":")
    wanted = {one.casefold() for one in value.split(",")}
    if not colon:
        return term.casefold() in f"{issue.title} {issue.body}".casefold()
    match name:
        case "repo":
            return issue.repository.full_name.casefold() in wanted
        case "is" | "state" | "type":
            return bool(_states(issue) & wanted)
        case "label":
            return bool({label.name.casefold() for label in issue.labels} & wanted)
        case "author":
            return issue.author.login.casefold() in wanted
        case "assignee":
            return bool({user.login.casefold() for user in issue.assignees} & wanted)
        case "head":
            return isinstance(issue, PullRequest) and issue.head.casefold() in wanted
        case "base":
            return isinstance(issue, PullRequest) and issue.base.casefold() in wanted
        case "review-requested":
            asked = issue.requested_reviewers if isinstance(issue, PullRequest) else []
            return bool({user.login.casefold() for user in asked} & wanted)
        case "in" | "archived":
            return True
        case _:
            raise Refused(200, f"the GitHub of the tests cannot search by {name}", kind="NOT_IMPLEMENTED")


def _states(issue: Issue) -> set[str]:
    states = {issue.state}
    if isinstance(issue, PullRequest):
        states |= {"pr", "pull-request"} | ({"draft"} if issue.draft else set())
        return states | ({"merged"} if issue.merged else {"unmerged"})
    return states | {"issue"}


TYPES: dict[str, Fields] = {
    "ProjectV2": PROJECT,
    "ProjectV2Field": FIELD,
    "ProjectV2SingleSelectField": SINGLE_SELECT,
    "ProjectV2SingleSelectFieldOption": OPTION,
    "ProjectV2Item": ITEM,
    "DraftIssue": {"assignees": lambda ask, made: connection(ask, made["people"])},
    "ProjectV2ItemFieldUserValue": {"users": lambda ask, made: connection(ask, made["users"])},
    "ProjectV2ItemFieldLabelValue": {"labels": lambda ask, made: connection(ask, made["labels"])},
}
