"""Reads the issues, pull requests and cards of a repository on GitHub."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode

import msgspec

from genba.connections.github import documents, responses
from genba.connections.github.client import GitHubClient, GraphQLReply, to_kind
from genba.connections.github.errors import TooHeavy, plain
from genba.connections.github.translation import (
    card_of_node,
    issue_of_node,
    issue_of_row,
    pull_of_node,
    same,
    there,
)
from genba.domain.errors import AccessRefusedError, NotFoundError, RemoteUnavailable
from genba.domain.tracker.remote import CardPage, Details, IssuePage, PullRequestState, TrackedPullRequest

T = TypeVar("T")

_PER_PAGE = 100
_SMALL_TIE = 8
"""So many rows may be read twice at the border of two pages."""
_MOST_PAGES = 300
"""So many pages of issues that changed in the same second: no repository changes so many in one."""
_ISSUES_AT_ONCE = 50
_ISSUES_WITH_CARDS_AT_ONCE = 25
_PULL_REQUESTS_AT_ONCE = 30
_BEARABLE = frozenset({"NOT_FOUND", "FORBIDDEN"})


class GitHubIssues:
    """Lists by REST, which has pages, times and ETags; details by GraphQL."""

    def __init__(self, client: GitHubClient, *, cards: bool | None = None) -> None:
        board = client.settings.board
        self.client = client
        self.cards_wanted = board is not None if cards is None else cards
        self.field = board.field if board is not None else "Status"

    @property
    def spent(self) -> tuple[int, int]:
        return self.client.requests, self.client.points

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings: the repository goes by another name now."""
        return tuple(self.client.notes)

    async def page(self, *, since: str = "", following: str = "", etag: str = "", label: str = "") -> IssuePage:
        place = dict(parse_qsl(following))
        begun, number = place.get("since", since), int(place.get("page", "1"))
        if number > _MOST_PAGES:
            raise RemoteUnavailable("the list of issues on GitHub has no end")
        label = place.get("label", label)
        parameters: dict[str, str | int] = {
            "state": "all",
            "sort": "updated",
            "direction": "asc",
            "per_page": _PER_PAGE,
        }
        parameters |= {"since": begun} if begun else {}
        parameters |= {"labels": label} if label else {}
        parameters |= {"page": number} if number > 1 else {}
        try:
            answer = await self.client.get(self.client.repository("issues"), parameters, "" if following else etag)
        except NotFoundError:
            raise no_repository(self.client.settings.repository) from None
        if answer.unchanged:
            return IssuePage(etag=etag, unchanged=True)
        rows = answer.read(list[responses.Issue])
        issues = tuple(issue_of_row(row) for row in rows if row.pull_request is None)
        return IssuePage(
            issues=issues,
            pull_requests=tuple(row.number for row in rows if row.pull_request is not None),
            newest=max((row.updated_at for row in rows), default=""),
            following=_following(rows, begun, number, label) if answer.following and rows else "",
            etag=answer.etag if not following else "",
        )

    async def details(self, references: Sequence[str]) -> Details:
        size = _ISSUES_WITH_CARDS_AT_ONCE if self.cards_wanted else _ISSUES_AT_ONCE
        wanted = list(dict.fromkeys(references))
        chunks = [wanted[start : start + size] for start in range(0, len(wanted), size)]
        return _together([await self._in_halves(chunk, self._details) for chunk in chunks])

    async def issue(self, number: int) -> Details:
        result = await self.client.query(
            documents.issue(self.cards_wanted), self._variables(number=number), bearable=_BEARABLE
        )
        found: dict[str, Any] | None = result.part(dict[str, Any], "repository", "issueOrPullRequest")
        if found is None:
            _raise_unless_absent(result)
            raise NotFoundError(
                f"there is no issue #{number} in {self.client.settings.repository}, or the token does not see it",
                hint="genba sync",
            )
        if found.get("__typename") != "Issue":
            raise NotFoundError(f"#{number} is a pull request, not an issue", hint="genba task list")
        return await self._whole([to_kind(found, responses.IssueNode)])

    async def pull_requests(self, numbers: Sequence[int]) -> tuple[TrackedPullRequest, ...]:
        wanted = list(dict.fromkeys(numbers))
        size = _PULL_REQUESTS_AT_ONCE
        chunks = [wanted[start : start + size] for start in range(0, len(wanted), size)]
        parts = [await self._in_halves(chunk, self._pull_requests) for chunk in chunks]
        return tuple(pull for part in parts for pull in part)

    async def pull_request_of(self, branch: str) -> TrackedPullRequest | None:
        found = await newest_pull(self.client, branch, "all")
        if found is None:
            return None
        return next(iter(await self.pull_requests([found.number])), None)

    async def cards(self, owner: str, project: int, field: str, following: str = "", since: str = "") -> CardPage:
        result = await self.client.query(
            documents.CARDS,
            {
                "owner": owner,
                "project": project,
                "field": field,
                "after": following or None,
                "query": _changed_since(since),
                "home": self.client.owner,
                "name": self.client.name,
            },
            bearable=frozenset({"NOT_FOUND"}),
        )
        board = result.part(responses.Board, "repositoryOwner", "projectV2")
        if board is None:
            raise no_board(owner, project)
        repository = result.part(responses.Home, "repository")
        if repository is None:
            raise no_repository(self.client.settings.repository)
        home = repository.name_with_owner
        cards = tuple(
            (card.content.number, card_of_node(card, owner, project))
            for card in there(board.items.nodes)
            if card.content is not None
            and card.content.number is not None
            and not card.is_archived
            and same(card.content.repository.name_with_owner, home)
        )
        info = board.items.page_info
        return CardPage(cards=cards, following=(info.end_cursor or "") if info.has_next_page else "")

    # ------------------------------------------------------------------------------------------------------ by GraphQL

    def _variables(self, **more: object) -> dict[str, object]:
        named: dict[str, object] = {"owner": self.client.owner, "name": self.client.name, **more}
        return {**named, "field": self.field} if self.cards_wanted else named

    async def _in_halves(self, wanted: list[T], ask: "Callable[[list[T]], Awaitable[Any]]") -> Any:
        """What is too much for the server at once is asked for in two parts."""
        try:
            return await ask(wanted)
        except TooHeavy:
            if len(wanted) == 1:
                raise
        middle = len(wanted) // 2
        first = await self._in_halves(wanted[:middle], ask)
        second = await self._in_halves(wanted[middle:], ask)
        return _together([first, second]) if isinstance(first, Details) else (*first, *second)

    async def _details(self, references: list[str]) -> Details:
        result = await self.client.query(
            documents.details(self.cards_wanted),
            self._variables(ids=references),
            bearable=_BEARABLE,
            divisible=len(references) > 1,
        )
        repository = result.part(responses.Home, "repository") or responses.Home()
        if not repository.name_with_owner:
            _raise_unless_absent(result)
            raise no_repository(self.client.settings.repository)
        found: dict[str, responses.IssueNode] = {}
        gone: list[str] = []
        nodes = result.part(list[dict[str, Any] | None], "nodes") or []
        if len(nodes) != len(references):
            raise RemoteUnavailable("GitHub answered for other issues than those that it was asked for")
        for place, (reference, node) in enumerate(zip(references, nodes, strict=True)):
            if node is None:
                _raise_unless_absent(result, place)
            issue = to_kind(node, responses.IssueNode) if node and node.get("__typename") == "Issue" else None
            if issue is not None and same(issue.repository.name_with_owner, repository.name_with_owner):
                found[reference] = issue
            else:
                gone.append(reference)
        whole = await self._whole(list(found.values()))
        # An issue keeps the name by which it was asked for: GitHub has had two ways to write them.
        issues = zip(found, whole.issues, strict=True)
        named = tuple(msgspec.structs.replace(issue, reference=reference) for reference, issue in issues)
        return msgspec.structs.replace(whole, issues=named, gone=tuple(gone))

    async def _whole(self, nodes: list[responses.IssueNode]) -> Details:
        """The issues with what only few of them have, and the pull requests that belong to them."""
        linked = [n.id for n in nodes if n.issue_dependencies_summary.total_blocked_by or n.sub_issues_summary.total]
        links = {one.id: one for one in await self._nodes(documents.LINKS, linked, responses.Links)}
        talkative = [node.id for node in nodes if node.comments.page_info.has_next_page]
        talks = {one.id: one for one in await self._nodes(documents.TALK, talkative, responses.Talk)}
        again = [node.id for node in nodes if (node.state_reason or "").upper() == "REOPENED"]
        reopened = {one.id: one for one in await self._nodes(documents.REOPENED, again, responses.Reopened)}
        issues = tuple(
            issue_of_node(node, links.get(node.id), talks.get(node.id), reopened.get(node.id)) for node in nodes
        )
        seen: dict[int, TrackedPullRequest] = {}
        for node in nodes:
            for pull in there((node.closed_by_pull_requests_references or responses.Pulls()).nodes):
                if same(pull.repository.name_with_owner, node.repository.name_with_owner):
                    seen[pull.number] = pull_of_node(pull, {})
        still_open = [number for number, pull in seen.items() if pull.state is PullRequestState.OPEN]
        for fresh in await self.pull_requests(still_open):
            seen[fresh.number] = fresh
        return Details(issues=issues, pull_requests=tuple(seen[number] for number in sorted(seen)))

    async def _pull_requests(self, numbers: list[int]) -> tuple[TrackedPullRequest, ...]:
        variables = {"owner": self.client.owner, "name": self.client.name}
        result = await self.client.query(
            documents.pull_requests(numbers), variables, bearable=_BEARABLE, divisible=len(numbers) > 1
        )
        repository = result.part(dict[str, Any], "repository")
        if repository is None:
            _raise_unless_absent(result)
            raise no_repository(self.client.settings.repository)
        nodes = []
        for number in numbers:
            found = repository.get(f"p{number}")
            if found is None:
                _raise_unless_absent(result, f"p{number}")
            else:
                nodes.append(to_kind(found, responses.PullNode))
        wanting = [
            review.id
            for node in nodes
            for review in there((node.latest_opinionated_reviews or responses.Reviews()).nodes)
            if review.state.upper() == "CHANGES_REQUESTED" and node.state.upper() == "OPEN"
        ]
        lines = {one.id: one for one in await self._nodes(documents.REVIEW_LINES, wanting, responses.ReviewLines)}
        return tuple(pull_of_node(node, lines) for node in nodes)

    async def _nodes(self, document: str, ids: list[str], kind: type[T]) -> list[T]:
        found: list[T] = []
        for start in range(0, len(ids), _ISSUES_AT_ONCE):
            chunk = ids[start : start + _ISSUES_AT_ONCE]
            result = await self.client.query(document, {"ids": chunk}, bearable=_BEARABLE)
            found += [to_kind(node, kind) for node in result.part(list[dict[str, Any] | None], "nodes") or [] if node]
        return found


async def newest_pull(client: GitHubClient, branch: str, state: str) -> responses.Pull | None:
    """The newest pull request of a branch of the repository itself, by what it was made from."""
    parameters: dict[str, str | int] = {
        "head": f"{client.owner}:{branch}",
        "state": state,
        "sort": "created",
        "direction": "desc",
        "per_page": 100,
    }
    answer = await client.get(client.repository("pulls"), parameters)
    own = [pull for pull in answer.read(list[responses.Pull]) if pull.head.ref == branch and _own(pull)]
    return max(own, key=lambda pull: pull.number, default=None)


def no_board(owner: str, project: int) -> NotFoundError:
    return NotFoundError(
        f"{owner} has no project {project}, or the token does not see it",
        hint="gh auth refresh --scopes project; then: gh project list --owner " + owner,
    )


def no_repository(repository: str) -> NotFoundError:
    return NotFoundError(
        f"GitHub has no repository {repository}, or does not show it to this token",
        hint="check tracker.github.repository, and what the token may see",
    )


def _own(pull: responses.Pull) -> bool:
    head, base = pull.head.repo, pull.base.repo
    return head is not None and base is not None and same(head.full_name, base.full_name)


def _following(rows: Sequence[responses.Issue], since: str, number: int, label: str) -> str:
    """Where to go on after a page.

    Going on by time and not by page leaves nothing out when an issue changes meanwhile, for that moves it to the end
    and all others forward. Where too many rows carry the same time, the number of the page leads on.
    """
    newest = max(row.updated_at for row in rows)
    ties = sum(row.updated_at == newest for row in rows)
    if newest > since and ties <= _SMALL_TIE:
        return urlencode({"since": newest, "label": label})
    return urlencode({"since": since, "page": number + 1, "label": label})


def _changed_since(since: str) -> str | None:
    """A board can be asked for what changed in the last days, and in no other way."""
    if not since:
        return None
    begun = datetime.fromisoformat(since[:10]).replace(tzinfo=UTC)
    days = max((datetime.now(UTC) - begun).days, 0) + 1
    return f"-last-updated:{days}days"


def _raise_unless_absent(reply: GraphQLReply, place: int | str | None = None) -> None:
    """Raise unless GitHub says that it is not there: a hidden or lost part is not gone."""
    lines = [one for one in reply.errors or () if place is None or (one.path or [])[1:2] == [place]]
    for trouble in lines:
        if trouble.type != "NOT_FOUND":
            raise AccessRefusedError(
                f"GitHub hides something from this token ({plain(trouble.message)})",
                unchanged="nothing was changed.",
                hint="give the token access to the repository; where single sign-on is asked for, authorize it",
            )
    if not lines:
        raise RemoteUnavailable("GitHub left out something of its answer, and does not say why")


def _together(parts: Sequence[Details]) -> Details:
    pulls = {pull.number: pull for part in parts for pull in part.pull_requests}
    return Details(
        issues=tuple(issue for part in parts for issue in part.issues),
        pull_requests=tuple(pulls[number] for number in sorted(pulls)),
        gone=tuple(reference for part in parts for reference in part.gone),
    )
