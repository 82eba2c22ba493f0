"""Sends remote changes to GitHub, and finds those that were sent already."""

from typing import assert_never

from genba.connections.github import responses
from genba.connections.github.boards import Boards
from genba.connections.github.client import GitHubClient
from genba.connections.github.comments import OwnComments, signed, written
from genba.connections.github.pull_requests import Proposals
from genba.connections.github.translation import same
from genba.domain.errors import AccessRefusedError, NotFoundError
from genba.domain.tracker.outbox import (
    CloseIssue,
    DeliveryReceipt,
    KeepComment,
    MergePullRequest,
    OpenPullRequest,
    PostComment,
    Relabel,
    RemoteChange,
    ReopenIssue,
    SetCardStatus,
)


class GitHubChanges:
    """Each change can be found again, and each is sent once."""

    def __init__(self, client: GitHubClient) -> None:
        self.client = client
        self.comments = OwnComments(client)
        self.proposals = Proposals(client)
        self.boards = Boards(client)

    async def find(self, change: RemoteChange, key: str) -> DeliveryReceipt | None:
        match change:
            case PostComment():
                found = await self.comments.find(change.issue, key)
                return DeliveryReceipt(address=found.url, number=change.issue, existed=True) if found else None
            case KeepComment():
                found = await self.comments.find(change.issue, _name(change))
                same_words = found is not None and written(found.body) == written(signed(change.body, _name(change)))
                return (
                    DeliveryReceipt(address=found.url, number=change.issue, existed=True)
                    if found and same_words
                    else None
                )
            case Relabel():
                issue = await self._issue(change.issue)
                add, remove = _missing(change, issue)
                return None if add or remove else _there(issue)
            case CloseIssue():
                issue = await self._issue(change.issue)
                return _there(issue) if issue.state == "closed" else None
            case ReopenIssue():
                issue = await self._issue(change.issue)
                return _there(issue) if issue.state == "open" else None
            case OpenPullRequest():
                return await self.proposals.find(change, key)
            case MergePullRequest():
                return await self.proposals.merged(change.number)
            case SetCardStatus():
                return await self.boards.find(change)
            case _:
                assert_never(change)

    async def apply(self, change: RemoteChange, key: str) -> DeliveryReceipt:
        match change:
            case PostComment():
                return await self._comment(change.issue, signed(change.body, key))
            case KeepComment():
                return await self._keep(change)
            case Relabel():
                return await self._relabel(change)
            case CloseIssue():
                return await self._state(change.issue, {"state": "closed", "state_reason": change.reason})
            case ReopenIssue():
                return await self._state(change.issue, {"state": "open", "state_reason": "reopened"})
            case OpenPullRequest():
                return await self.proposals.open(change, key)
            case MergePullRequest():
                return await self.proposals.merge(change)
            case SetCardStatus():
                return await self.boards.move(change)
            case _:
                assert_never(change)

    async def _issue(self, number: int) -> responses.Issue:
        return (await self.client.get(self.client.repository("issues", number))).read(responses.Issue)

    async def _comment(self, issue: int, body: str) -> DeliveryReceipt:
        answer = await self.client.change("POST", self.client.repository("issues", issue, "comments"), {"body": body})
        return DeliveryReceipt(address=answer.read(responses.Comment).html_url, number=issue)

    async def _keep(self, change: KeepComment) -> DeliveryReceipt:
        """Edit the comment of this name; create it where there is none that this token may edit."""
        body = signed(change.body, _name(change))
        found = await self.comments.find(change.issue, _name(change))
        if found is None:
            return await self._comment(change.issue, body)
        if written(found.body) == written(body):
            return DeliveryReceipt(address=found.url, number=change.issue, existed=True)
        path = self.client.repository("issues", "comments", found.id)
        try:
            answer = await self.client.change("PATCH", path, {"body": body})
        except (NotFoundError, AccessRefusedError):
            return await self._comment(change.issue, body)
        return DeliveryReceipt(address=answer.read(responses.Comment).html_url, number=change.issue)

    async def _relabel(self, change: Relabel) -> DeliveryReceipt:
        """Add and take away, label by label: what people do to other labels meanwhile stays as they did it."""
        issue = await self._issue(change.issue)
        add, remove = _missing(change, issue)
        path = self.client.repository("issues", change.issue, "labels")
        if add:
            await self.client.change("POST", path, {"labels": add})
        for label in remove:
            try:
                await self.client.change(
                    "DELETE", self.client.repository("issues", change.issue, "labels", label), None
                )
            except NotFoundError:
                continue  # another client removed it
        return DeliveryReceipt(address=issue.html_url, number=issue.number, existed=not (add or remove))

    async def _state(self, number: int, change: dict[str, str]) -> DeliveryReceipt:
        issue = await self._issue(number)
        if issue.state == change["state"]:
            return _there(issue)
        await self.client.change("PATCH", self.client.repository("issues", number), change)
        return DeliveryReceipt(address=issue.html_url, number=number)


def _name(change: KeepComment) -> str:
    return f"{change.name}@{change.issue}"


def _there(issue: responses.Issue) -> DeliveryReceipt:
    return DeliveryReceipt(address=issue.html_url, number=issue.number, existed=True)


def _missing(change: Relabel, issue: responses.Issue) -> tuple[list[str], list[str]]:
    """The labels that are still to be added, and those that are still to be taken away."""
    has = [label if isinstance(label, str) else label.name for label in issue.labels]
    add = [label for label in change.add if not any(same(label, one) for one in has)]
    remove = [one for one in has if any(same(one, label) for label in change.remove)]
    return add, remove
