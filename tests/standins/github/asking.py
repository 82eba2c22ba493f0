"""A request to the REST door, an answer, and the table of routes."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from tests.standins.github.hub import Hub, Refused, invalid
from tests.standins.github.state import Issue, PullRequest, Repository, Token, User

_HOLE = re.compile(r"\{(\w+)(\*?)\}")


@dataclass(slots=True)
class Answer:
    status: int = 200
    data: Any = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(eq=False)
class Ask:
    """What a client asks for, and who it is."""

    hub: Hub
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    content: bytes
    viewer: Token | None
    holes: dict[str, str] = field(default_factory=dict)

    @cached_property
    def body(self) -> dict[str, Any]:
        if not self.content:
            return {}
        try:
            read = json.loads(self.content)
        except ValueError:
            raise Refused(400, "Problems parsing JSON") from None
        if not isinstance(read, dict):
            raise Refused(400, "Body should be a JSON object")
        return read

    @property
    def actor(self) -> User:
        return self.token.user

    @property
    def token(self) -> Token:
        if self.viewer is None:
            raise Refused(401, "Requires authentication")
        return self.viewer

    def hole(self, name: str) -> int:
        return int(self.holes[name])

    @cached_property
    def repository(self) -> Repository:
        """The repository of the path, if the viewer may see it; 301 by an old name."""
        full_name = f"{self.holes['owner']}/{self.holes['repo']}"
        found = self.hub.visible(self.viewer, full_name)
        if found.full_name.casefold() != full_name.casefold():
            rest = self.path.partition(f"/repos/{full_name}")[2]
            query = f"?{urlencode(self.query)}" if self.query else ""
            place = f"{self.hub.url}/repositories/{found.id}{rest}{query}"
            raise Refused(301, "Moved Permanently", headers={"location": place})
        return found

    @cached_property
    def issue(self) -> Issue:
        return self.hub.issue(self.repository, self.hole("number"))

    @cached_property
    def pull(self) -> PullRequest:
        return self.hub.pull(self.repository, self.hole("number"))

    def need(self, rank: str, permission: str = "issues") -> None:
        self.hub.need(self.token, self.repository, rank, permission)

    def text(self, name: str, resource: str) -> str:
        """A text that the body must have."""
        value = self.body.get(name)
        if not isinstance(value, str):
            raise invalid(resource, name, "missing_field" if value is None else "invalid")
        return value

    def texts(self, name: str) -> list[str]:
        """A list of texts in the body; labels may come as objects with a name."""
        return [str(one["name"]) if isinstance(one, dict) else str(one) for one in self.body.get(name) or ()]

    def paged(self, rows: Sequence[Any], shape: Callable[[Any], Any], wrap: str = "") -> Answer:
        """One page of the rows, with the links to the others."""
        size = max(1, min(100, _number(self.query.get("per_page"), 30)))
        page = max(1, _number(self.query.get("page"), 1))
        last = max(1, -(-len(rows) // size))
        shown = [shape(row) for row in rows[(page - 1) * size : page * size]]
        places: dict[str, int] = {}
        if page < last:
            places |= {"next": page + 1, "last": last}
        if page > 1:
            places = {"prev": page - 1} | places | {"first": 1}
        links = []
        for name, number in places.items():
            query = urlencode(self.query | {"page": str(number)})
            links.append(f'<{self.hub.url}{self.path}?{query}>; rel="{name}"')
        data: Any = {"total_count": len(rows), wrap: shown} if wrap else shown
        return Answer(data=data, headers={"link": ", ".join(links)} if links else {})


def _number(text: str | None, otherwise: int) -> int:
    try:
        return int(text or otherwise)
    except ValueError:
        return otherwise


Handler = Callable[[Ask], Answer]


class Routes:
    """Methods and paths, and what answers them. `{name}` stands for one part of a path, `{name*}` for the rest."""

    def __init__(self) -> None:
        self._table: list[tuple[str, re.Pattern[str], Handler]] = []

    def add(self, method: str, path: str) -> Callable[[Handler], Handler]:
        pattern = _HOLE.sub(lambda hole: f"(?P<{hole[1]}>{'.+' if hole[2] else '[^/]+'})", path)
        pattern = pattern.replace("<number>[^/]+", r"<number>\d+").replace("_id>[^/]+", r"_id>\d+")

        def keep(handler: Handler) -> Handler:
            self._table.append((method, re.compile(pattern), handler))
            return handler

        return keep

    def answer(self, ask: Ask) -> Answer:
        for method, pattern, handler in self._table:
            if method != ask.method:
                continue
            found = pattern.fullmatch(ask.path)
            if found is not None:
                ask.holes = found.groupdict()
                return handler(ask)
        raise Refused(404, "Not Found", kind="NOT_FOUND")


ROUTES = Routes()
route = ROUTES.add
