"""Deeds carried out on GitHub. Each can be looked for, and each is sent once."""

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
    Deed,
    DeliveryReceipt,
    KeepComment,
    MergePullRequest,
    OpenPullRequest,
    PostComment,
    Relabel,
    ReopenIssue,
    SetCardStatus,
)


class GitHubChanges:
    """Carries out deeds, and finds those that were carried out already, by whomever."""

    def __init__(self, client: GitHubClient) -> None:
        self.client = client
        self.comments = OwnComments(client)
        self.proposals = Proposals(client)
        self.boards = Boards(client)

    async def made(self, deed: Deed, key: str) -> DeliveryReceipt | None:
        match deed:
            case PostComment():
                found = await self.comments.find(deed.issue, key)
                return DeliveryReceipt(address=found.url, number=deed.issue, found=True) if found else None
            case KeepComment():
                found = await self.comments.find(deed.issue, _name(deed))
                same_words = found is not None and written(found.body) == written(signed(deed.body, _name(deed)))
                return (
                    DeliveryReceipt(address=found.url, number=deed.issue, found=True) if found and same_words else None
                )
            case Relabel():
                issue = await self._issue(deed.issue)
                add, remove = _missing(deed, issue)
                return None if add or remove else _there(issue)
            case CloseIssue():
                issue = await self._issue(deed.issue)
                return _there(issue) if issue.state == "closed" else None
            case ReopenIssue():
                issue = await self._issue(deed.issue)
                return _there(issue) if issue.state == "open" else None
            case OpenPullRequest():
                return await self.proposals.made(deed, key)
            case MergePullRequest():
                return await self.proposals.merged(deed.number)
            case SetCardStatus():
                return await self.boards.made(deed)
            case _:
                assert_never(deed)

    async def do(self, deed: Deed, key: str) -> DeliveryReceipt:
        match deed:
            case PostComment():
                return await self._comment(deed.issue, signed(deed.body, key))
            case KeepComment():
                return await self._keep(deed)
            case Relabel():
                return await self._relabel(deed)
            case CloseIssue():
                return await self._state(deed.issue, {"state": "closed", "state_reason": deed.reason})
            case ReopenIssue():
                return await self._state(deed.issue, {"state": "open", "state_reason": "reopened"})
            case OpenPullRequest():
                return await self.proposals.open(deed, key)
            case MergePullRequest():
                return await self.proposals.merge(deed)
            case SetCardStatus():
                return await self.boards.move(deed)
            case _:
                assert_never(deed)

    async def _issue(self, number: int) -> responses.Issue:
        return (await self.client.get(self.client.repository("issues", number))).read(responses.Issue)

    async def _comment(self, issue: int, body: str) -> DeliveryReceipt:
        answer = await self.client.change("POST", self.client.repository("issues", issue, "comments"), {"body": body})
        return DeliveryReceipt(address=answer.read(responses.Comment).html_url, number=issue)

    async def _keep(self, deed: KeepComment) -> DeliveryReceipt:
        """Write the comment of this name anew; make it where it is not there, or is not ours to write."""
        body = signed(deed.body, _name(deed))
        found = await self.comments.find(deed.issue, _name(deed))
        if found is None:
            return await self._comment(deed.issue, body)
        if written(found.body) == written(body):
            return DeliveryReceipt(address=found.url, number=deed.issue, found=True)
        path = self.client.repository("issues", "comments", found.id)
        try:
            answer = await self.client.change("PATCH", path, {"body": body})
        except (NotFoundError, AccessRefusedError):
            return await self._comment(deed.issue, body)
        return DeliveryReceipt(address=answer.read(responses.Comment).html_url, number=deed.issue)

    async def _relabel(self, deed: Relabel) -> DeliveryReceipt:
        """Add and take away, label by label: what people do to other labels meanwhile stays as they did it."""
        issue = await self._issue(deed.issue)
        add, remove = _missing(deed, issue)
        path = self.client.repository("issues", deed.issue, "labels")
        if add:
            await self.client.change("POST", path, {"labels": add})
        for label in remove:
            try:
                await self.client.change("DELETE", self.client.repository("issues", deed.issue, "labels", label), None)
            except NotFoundError:
                continue  # somebody else took it away
        return DeliveryReceipt(address=issue.html_url, number=issue.number, found=not (add or remove))

    async def _state(self, number: int, change: dict[str, str]) -> DeliveryReceipt:
        issue = await self._issue(number)
        if issue.state == change["state"]:
            return _there(issue)
        await self.client.change("PATCH", self.client.repository("issues", number), change)
        return DeliveryReceipt(address=issue.html_url, number=number)


def _name(deed: KeepComment) -> str:
    return f"{deed.name}@{deed.issue}"


def _there(issue: responses.Issue) -> DeliveryReceipt:
    return DeliveryReceipt(address=issue.html_url, number=issue.number, found=True)


def _missing(deed: Relabel, issue: responses.Issue) -> tuple[list[str], list[str]]:
    """The labels that are still to be added, and those that are still to be taken away."""
    has = [label if isinstance(label, str) else label.name for label in issue.labels]
    add = [label for label in deed.add if not any(same(label, one) for one in has)]
    remove = [one for one in has if any(same(one, label) for label in deed.remove)]
    return add, remove
