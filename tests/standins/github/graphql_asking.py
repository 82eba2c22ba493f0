"""What every answer of the GraphQL door is made with: who asks, for what, and how lists are cut into pages."""

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.standins.github import issue_rules
from tests.standins.github.hub import Hub, Refused, not_found
from tests.standins.github.state import (
    CheckRun,
    Comment,
    CommitStatus,
    Issue,
    IssueType,
    Label,
    Milestone,
    Project,
    ProjectField,
    ProjectItem,
    PullRequest,
    Repository,
    Review,
    ReviewComment,
    Team,
    Token,
    User,
)

_KINDS: dict[type, str] = {
    PullRequest: "PullRequest",
    Issue: "Issue",
    Repository: "Repository",
    Label: "Label",
    Milestone: "Milestone",
    IssueType: "IssueType",
    Comment: "IssueComment",
    Review: "PullRequestReview",
    ReviewComment: "PullRequestReviewComment",
    CheckRun: "CheckRun",
    CommitStatus: "StatusContext",
    Project: "ProjectV2",
    ProjectItem: "ProjectV2Item",
    Team: "Team",
}


@dataclass(slots=True)
class Session:
    """One request: who asks, and what was found out for it already."""

    hub: Hub
    viewer: Token
    cost: int = 1
    nodes: int = 0
    closing: "dict[int, list[PullRequest]] | None" = None
    cards: "dict[int, list[ProjectItem]] | None" = None
    mergeable: dict[int, bool | None] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)

    def repository(self, full_name: str) -> Repository:
        """A repository that the viewer may know of."""
        try:
            return self.hub.visible(self.viewer, full_name)
        except Refused as refused:
            raise not_found(f"Could not resolve to a Repository with the name '{full_name}'.") from refused

    def node(self, node: str) -> Any:
        """A thing by its id, if the viewer may know of it."""
        nowhere = not_found(f"Could not resolve to a node with the global id of '{node}'")
        found = self.hub.nodes.get(node)
        if found is None:
            raise nowhere
        place = place_of(found)
        if place is not None and place.id not in self.seen:
            try:
                self.hub.visible(self.viewer, place.full_name)
            except Refused as refused:
                raise nowhere from refused
            self.seen.add(place.id)
        return found

    def closers(self, issue: Issue) -> list[PullRequest]:
        """The pull requests that close an issue; all of them are read once for each request."""
        if self.closing is None:
            self.closing = {}
            for repository in self.hub.repositories.values():
                for pull in repository.pulls:
                    for named in issue_rules.closed_by_text(self.hub, repository, pull.body):
                        self.closing.setdefault(named.id, []).append(pull)
        found = [*self.closing.get(issue.id, ()), *issue.linked]
        return list({pull.id: pull for pull in found}.values())

    def cards_of(self, issue: Issue) -> "list[ProjectItem]":
        """The cards of an issue on the boards of all; they too are read once."""
        if self.cards is None:
            self.cards = {}
            for user in self.hub.users.values():
                for project in user.projects.values():
                    for item in project.items:
                        if item.content is not None:
                            self.cards.setdefault(item.content.id, []).append(item)
        return self.cards.get(issue.id, [])

    def can(self, repository: Repository, rank: int) -> bool:
        return self.hub.rank(self.viewer.user, repository) >= rank


@dataclass(slots=True)
class Ask:
    """One field of a request: in which session, and with which arguments."""

    session: Session
    args: Mapping[str, Any]

    @property
    def hub(self) -> Hub:
        return self.session.hub

    @property
    def user(self) -> User:
        return self.session.viewer.user


Resolver = Callable[[Ask, Any], Any]
Fields = dict[str, Resolver]


def place_of(thing: Any) -> Repository | None:
    """The repository that a thing is in."""
    match thing:
        case Repository():
            return thing
        case Issue():
            return thing.repository
        case Comment():
            return thing.issue.repository
        case Review():
            return thing.pull_request.repository
        case _:
            return None


def kind_of(thing: Any) -> str:
    """What the schema calls a thing."""
    if isinstance(thing, dict):
        return str(thing["__typename"])
    if isinstance(thing, User):
        return thing.kind
    if isinstance(thing, ProjectField):
        return "ProjectV2SingleSelectField" if thing.kind == "single_select" else "ProjectV2Field"
    return str(_KINDS.get(type(thing)) or getattr(thing, "typename", ""))


def connection(ask: Ask, things: Sequence[Any], *, edge: Callable[[Any], dict[str, Any]] | None = None) -> Any:
    """One page of things, as `first`, `last`, `after` and `before` cut it."""
    start, end = 0, len(things)
    if ask.args.get("after"):
        start = _position(ask.args["after"]) + 1
    if ask.args.get("before"):
        end = min(end, _position(ask.args["before"]))
    first, last = ask.args.get("first"), ask.args.get("last")
    if first is not None:
        end = min(end, start + int(first))
    elif last is not None:
        start = max(start, end - int(last))
    page = things[start:end]
    places = range(start, start + len(page))
    return {
        "totalCount": len(things),
        "nodes": page,
        "edges": [
            {"cursor": _cursor(place), "node": thing, **(edge(thing) if edge else {})}
            for place, thing in zip(places, page, strict=True)
        ],
        "pageInfo": {
            "hasNextPage": end < len(things),
            "hasPreviousPage": start > 0,
            "startCursor": _cursor(start) if page else None,
            "endCursor": _cursor(start + len(page) - 1) if page else None,
        },
    }


def _cursor(place: int) -> str:
    return base64.b64encode(f"cursor:v2:{place}".encode()).decode()


def _position(cursor: str) -> int:
    try:
        return int(base64.b64decode(cursor).decode().rpartition(":")[2])
    except ValueError as error:
        output = f"`{cursor}` does not appear to be a valid cursor."
        raise Refused(200, output, kind="INVALID_CURSOR_ARGUMENTS") from error


def ordered(things: Iterable[Any], order: Mapping[str, Any] | None, keys: Mapping[str, str]) -> list[Any]:
    """Things by an `orderBy`: `keys` has the attribute for each of the fields that one can order by."""
    found = list(things)
    if order:
        name = keys.get(str(order["field"]))
        if name is None:
            raise Refused(200, f"the GitHub of the tests cannot order by {order['field']}", kind="NOT_IMPLEMENTED")
        found.sort(key=lambda one: (getattr(one, name), one.id), reverse=order["direction"] == "DESC")
    return found
