"""What happens on boards (Projects v2): cards, fields, and the values of cards."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.standins.github.hub import Hub, Refused, not_found
from tests.standins.github.state import FieldOption, Issue, Project, ProjectField, ProjectItem, Repository, Token, User

STATUSES = ("Todo", "In Progress", "Done")
_BUILT_IN = {"Title": "title", "Assignees": "assignees", "Labels": "labels", "Repository": "repository"}


def create(
    hub: Hub, actor: User, owner: User, title: str, *, statuses: tuple[str, ...] = STATUSES, public: bool = False
) -> Project:
    """A board with the built-in fields and a single select `Status`."""
    number, now = hub.next_id(), hub.now()
    project = Project(
        id=number,
        node="",
        owner=owner,
        number=len(owner.projects) + 1,
        title=title,
        creator=actor,
        created_at=now,
        updated_at=now,
        public=public,
    )
    project.node = hub.enter("PVT", number, project)
    owner.projects[project.number] = project
    for name, kind in _BUILT_IN.items():
        add_field(hub, project, name, kind)
    add_field(hub, project, "Status", "single_select", statuses)
    return project


def add_field(hub: Hub, project: Project, name: str, kind: str, options: tuple[str, ...] = ()) -> ProjectField:
    number = hub.next_id()
    made = [FieldOption(id=f"{hub.next_id():08x}", name=option) for option in options]
    field = ProjectField(id=number, node="", name=name, kind=kind, options=made, created_at=hub.now())
    field.node = hub.enter("PVTSSF" if kind == "single_select" else "PVTF", number, field)
    project.fields.append(field)
    return field


def find(hub: Hub, owner: str, number: int) -> Project:
    project = hub.user(owner).projects.get(number)
    if project is None:
        raise not_found()
    return project


def need(viewer: Token | None, project: Project, *, write: bool = False) -> None:
    """Refuse who may not see a board, or not change it."""
    if viewer is not None and viewer.installation is not None:
        given = viewer.installation.permissions.get("organization_projects", "")
        if given not in (("write", "admin") if write else ("read", "write", "admin")):
            raise Refused(403, "Resource not accessible by integration", kind="FORBIDDEN")
        return
    scopes = frozenset() if viewer is None else viewer.scopes
    if "project" not in scopes and (write or "read:project" not in scopes):
        output = "Your token has not been granted the required scopes to execute this query."
        raise Refused(403, output, kind="INSUFFICIENT_SCOPES")
    assert viewer is not None
    mine = project.owner is viewer.user or viewer.user.login.casefold() in project.owner.members
    if not mine and (write or not project.public):
        raise not_found() if not project.public else Refused(403, "Forbidden", kind="FORBIDDEN")


def add_item(hub: Hub, actor: User, project: Project, content: Issue) -> ProjectItem:
    """Put an issue on the board; one that is there already is found."""
    for item in project.items:
        if item.content is content:
            item.archived = False
            return item
    return _item(hub, actor, project, content, "", "")


def add_draft(hub: Hub, actor: User, project: Project, title: str, body: str = "") -> ProjectItem:
    return _item(hub, actor, project, None, title, body)


def _item(hub: Hub, actor: User, project: Project, content: Issue | None, title: str, body: str) -> ProjectItem:
    number, now = hub.next_id(), hub.now()
    item = ProjectItem(
        id=number,
        node="",
        project=project,
        content=content,
        creator=actor,
        created_at=now,
        updated_at=now,
        title=title,
        body=body,
    )
    item.node = hub.enter("PVTI", number, item)
    project.items.append(item)
    return item


def set_value(hub: Hub, item: ProjectItem, field: ProjectField, value: Any) -> None:
    """Set a field of a card: an option by its id, else a text, number or date; None clears it.

    It changes the card's `updated_at`, not that of the issue.
    """
    if field not in item.project.fields:
        raise not_found()
    if value is None:
        item.values.pop(field.id, None)
    elif field.kind == "single_select":
        option = next((one for one in field.options if one.id == value), None)
        if option is None:
            raise Refused(422, "The single select option Id does not belong to the field")
        item.values[field.id] = option
    elif field.kind in ("text", "number", "date"):
        item.values[field.id] = value
    else:
        raise Refused(422, f"The field {field.name} cannot be set here")
    item.updated_at = item.project.updated_at = hub.now()


def remove_item(hub: Hub, item: ProjectItem) -> None:
    item.project.items.remove(item)
    hub.nodes.pop(item.node, None)


def items_of(hub: Hub, issue: Issue) -> list[ProjectItem]:
    """The cards of an issue, on all boards."""
    found = []
    for user in hub.users.values():
        for project in user.projects.values():
            found += [item for item in project.items if item.content is issue]
    return found


def matching(project: Project, query: str = "") -> list[ProjectItem]:
    """The cards that a filter leaves.

    It knows `status:`, `label:`, `is:`, `repo:`, `updated:>=`, `last-updated:7days`, `-` before each, and words.
    """
    found = [item for item in project.items if not item.archived]
    for term in _terms(query):
        negated = term.startswith("-")
        wanted = term.removeprefix("-")
        found = [item for item in found if _fits(item, wanted) is not negated]
    return found


def _terms(query: str) -> list[str]:
    terms, current, quoted = [], "", False
    for letter in query:
        if letter == '"':
            quoted = not quoted
        elif letter == " " and not quoted:
            terms.append(current)
            current = ""
            continue
        else:
            current += letter
    return [term for term in [*terms, current] if term]


def _fits(item: ProjectItem, term: str) -> bool:
    name, colon, value = term.partition(":")
    content = item.content
    if not colon:
        return term.casefold() in (content.title if content else item.title).casefold()
    values = {one.casefold() for one in value.split(",")}
    match name.casefold():
        case "is":
            kinds = {"draft"} if content is None else {"pr" if content.is_pull_request else "issue", content.state}
            return bool(kinds & values)
        case "label":
            return content is not None and bool({one.name.casefold() for one in content.labels} & values)
        case "repo":
            return content is not None and content.repository.full_name.casefold() in values
        case "updated":
            return _compares(max(item.updated_at, content.updated_at if content else ""), value)
        case "last-updated":  # with a number of days without a change
            days = int(value.removesuffix("s").removesuffix("day"))
            then = (datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")
            return max(item.updated_at, content.updated_at if content else "") < then
        case field:
            found = next((one for one in item.project.fields if one.name.replace(" ", "-").casefold() == field), None)
            chosen = item.values.get(found.id) if found else None
            text = chosen.name if isinstance(chosen, FieldOption) else str(chosen)
            return chosen is not None and text.casefold() in values


def _compares(moment: str, value: str) -> bool:
    for sign in (">=", "<=", ">", "<"):
        if value.startswith(sign):
            wanted = value.removeprefix(sign)
            day = moment[: len(wanted)]
            return {">=": day >= wanted, "<=": day <= wanted, ">": day > wanted, "<": day < wanted}[sign]
    return moment.startswith(value)


def of_repository(project: Project, repository: Repository) -> list[ProjectItem]:
    return [item for item in project.items if item.content is not None and item.content.repository is repository]
