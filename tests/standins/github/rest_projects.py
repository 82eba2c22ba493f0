"""REST: boards (Projects v2) of users and organizations."""

from typing import Any

from tests.standins.github import code_shapes, project_rules, shapes
from tests.standins.github.asking import Answer, Ask, route
from tests.standins.github.hub import Hub, Refused, not_found
from tests.standins.github.state import FieldOption, Project, ProjectField, ProjectItem, PullRequest

_PLACES = ("/orgs/{owner}/projectsV2", "/users/{owner}/projectsV2")


def _project(ask: Ask, *, write: bool = False) -> Project:
    project = project_rules.find(ask.hub, ask.holes["owner"], ask.hole("number"))
    kind = "orgs" if project.owner.kind == "Organization" else "users"
    if not ask.path.startswith(f"/{kind}/"):
        raise not_found()
    project_rules.need(ask.viewer, project, write=write)
    return project


def _url(hub: Hub, project: Project) -> str:
    kind = "orgs" if project.owner.kind == "Organization" else "users"
    return f"{hub.url}/{kind}/{project.owner.login}/projectsV2/{project.number}"


def _shape(hub: Hub, one: Project) -> dict[str, Any]:
    return {
        "id": one.id,
        "node_id": one.node,
        "owner": shapes.user(hub, one.owner),
        "creator": shapes.user(hub, one.creator),
        "title": one.title,
        "description": None,
        "public": one.public,
        "closed_at": None,
        "created_at": one.created_at,
        "updated_at": one.updated_at,
        "number": one.number,
        "short_description": None,
        "deleted_at": None,
        "deleted_by": None,
        "state": "closed" if one.closed else "open",
        "is_template": False,
    }


def _text(value: str) -> dict[str, str]:
    return {"raw": value, "html": value}


def _option(option: FieldOption) -> dict[str, Any]:
    return {
        "id": option.id,
        "name": _text(option.name),
        "description": _text(option.description),
        "color": option.color,
    }


def _field(hub: Hub, project: Project, one: ProjectField) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "id": one.id,
        "node_id": one.node,
        "project_url": _url(hub, project),
        "name": one.name,
        "data_type": one.kind,
        "created_at": one.created_at,
        "updated_at": one.created_at,
    }
    if one.kind == "single_select":
        shape["options"] = [_option(option) for option in one.options]
    return shape


def _content(hub: Hub, item: ProjectItem) -> dict[str, Any]:
    content = item.content
    if isinstance(content, PullRequest):
        return code_shapes.simple_pull(hub, content)
    if content is not None:
        return shapes.issue(hub, content)
    return {
        "id": item.id,
        "node_id": f"DI_{item.id}",
        "title": item.title,
        "body": item.body,
        "user": shapes.user(hub, item.creator),
        "created_at": item.created_at,
        "updated_at": item.updated_at,
    }


def _item(hub: Hub, one: ProjectItem, fields: list[ProjectField]) -> dict[str, Any]:
    kind = "DraftIssue" if one.content is None else "PullRequest" if one.content.is_pull_request else "Issue"
    return {
        "id": one.id,
        "node_id": one.node,
        "project_url": _url(hub, one.project),
        "item_url": f"{_url(hub, one.project)}/items/{one.id}",
        "content_type": kind,
        "content": _content(hub, one),
        "creator": shapes.user(hub, one.creator),
        "created_at": one.created_at,
        "updated_at": one.updated_at,
        "archived_at": None,
        "fields": [
            {"id": field.id, "name": field.name, "data_type": field.kind, "value": _value(hub, one, field)}
            for field in fields
        ],
    }


def _value(hub: Hub, item: ProjectItem, field: ProjectField) -> Any:
    match field.kind:
        case "title":
            return _text(item.content.title if item.content else item.title)
        case "assignees":
            return [shapes.user(hub, user) for user in item.content.assignees] if item.content else None
        case "labels":
            labels = item.content.labels if item.content else []
            return [shapes.label(hub, item.content.repository, one) for one in labels] if item.content else None
        case "repository":
            return code_shapes.minimal_repository(hub, item.content.repository) if item.content else None
        case _:
            value = item.values.get(field.id)
            return _option(value) if isinstance(value, FieldOption) else value


def _wanted(ask: Ask, project: Project) -> list[ProjectField]:
    """The fields that were asked for; without a wish only the title, as on GitHub."""
    text = ask.query.get("fields", "")
    if not text:
        return [field for field in project.fields if field.kind == "title"]
    ids = {int(part) for part in text.split(",") if part.strip().isdigit()}
    return [field for field in project.fields if field.id in ids]


def _find(ask: Ask, project: Project) -> ProjectItem:
    for item in project.items:
        if item.id == ask.hole("item_id"):
            return item
    raise not_found()


def _list(ask: Ask) -> Answer:
    owner = ask.hub.user(ask.holes["owner"])
    visible = []
    for project in owner.projects.values():
        try:
            project_rules.need(ask.viewer, project)
        except Refused as refused:
            if refused.status != 404:
                raise
        else:
            visible.append(project)
    return ask.paged(visible, lambda project: _shape(ask.hub, project))


def _get(ask: Ask) -> Answer:
    return Answer(data=_shape(ask.hub, _project(ask)))


def _fields(ask: Ask) -> Answer:
    project = _project(ask)
    return ask.paged(project.fields, lambda field: _field(ask.hub, project, field))


def _items(ask: Ask) -> Answer:
    """Cards by cursor: `after` is the id of the last one of the page before."""
    project = _project(ask)
    rows = project_rules.matching(project, ask.query.get("q", ""))
    size = max(1, min(100, int(ask.query.get("per_page", "30"))))
    after = int(ask.query.get("after") or 0)
    rest = [item for item in rows if item.id > after]
    fields = _wanted(ask, project)
    answer = Answer(data=[_item(ask.hub, item, fields) for item in rest[:size]])
    if len(rest) > size:
        kept = "&".join(f"{name}={value}" for name, value in ask.query.items() if name != "after")
        answer.headers["link"] = f'<{ask.hub.url}{ask.path}?{kept}&after={rest[size - 1].id}>; rel="next"'
    return answer


def _add(ask: Ask) -> Answer:
    project = _project(ask, write=True)
    kind = ask.body.get("type")
    if kind not in ("Issue", "PullRequest"):
        raise Refused(422, "Invalid request.\n\nThe type must be Issue or PullRequest.")
    if "id" in ask.body:
        content = _by_id(ask, int(ask.body["id"]))
    else:
        full_name = f"{ask.body.get('owner')}/{ask.body.get('repo')}"
        content = ask.hub.issue(ask.hub.visible(ask.viewer, full_name), int(ask.body.get("number") or 0))
    item = project_rules.add_item(ask.hub, ask.actor, project, content)
    shape = _item(ask.hub, item, [])
    del shape["fields"]
    return Answer(201, shape)


def _by_id(ask: Ask, number: int) -> Any:
    for repository in ask.hub.repositories.values():
        for pull in repository.pulls:
            if pull.pull_id == number:
                return pull
    return ask.hub.issue_by_id(number)


def _get_item(ask: Ask) -> Answer:
    project = _project(ask)
    return Answer(data=_item(ask.hub, _find(ask, project), _wanted(ask, project)))


def _edit_item(ask: Ask) -> Answer:
    project = _project(ask, write=True)
    item = _find(ask, project)
    for change in ask.body.get("fields") or ():
        field = next((field for field in project.fields if field.id == change.get("id")), None)
        if field is None:
            raise not_found()
        project_rules.set_value(ask.hub, item, field, change.get("value"))
    return Answer(data=_item(ask.hub, item, project.fields))


def _remove(ask: Ask) -> Answer:
    project = _project(ask, write=True)
    project_rules.remove_item(ask.hub, _find(ask, project))
    return Answer(204)


for _place in _PLACES:
    route("GET", _place)(_list)
    route("GET", _place + "/{number}")(_get)
    route("GET", _place + "/{number}/fields")(_fields)
    route("GET", _place + "/{number}/items")(_items)
    route("POST", _place + "/{number}/items")(_add)
    route("GET", _place + "/{number}/items/{item_id}")(_get_item)
    route("PATCH", _place + "/{number}/items/{item_id}")(_edit_item)
    route("DELETE", _place + "/{number}/items/{item_id}")(_remove)
