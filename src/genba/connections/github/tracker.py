"""GitHub as a tracker, without a copy in between."""

import hashlib

from genba.connections.github import responses
from genba.connections.github.client import GitHubClient
from genba.connections.github.remote_changes import GitHubChanges
from genba.connections.github.translation import issue_of_row
from genba.domain.errors import NotFoundError
from genba.domain.tracker.issues import Issue, IssueChange
from genba.domain.tracker.outbox import CloseIssue, Deed, PostComment, Relabel


class GitHubTracker:
    """Reads issues, and carries out changes by deeds that are looked for first: a repeat changes nothing."""

    def __init__(self, client: GitHubClient, deeds: GitHubChanges | None = None) -> None:
        self.client = client
        self.deeds = deeds or GitHubChanges(client)

    async def read(self, number: int) -> Issue:
        row = (await self.client.get(self.client.repository("issues", number))).read(responses.Issue)
        if row.pull_request is not None or row.number != number:
            raise NotFoundError(f"there is no issue #{number} in {self.client.settings.repository}", hint="genba sync")
        return _issue(row)

    async def labelled(self, label: str) -> tuple[Issue, ...]:
        found: list[Issue] = []
        parameters = {"labels": label, "state": "all", "sort": "created", "direction": "asc"}
        async for page in self.client.pages(self.client.repository("issues"), parameters):
            found += [_issue(row) for row in page.read(list[responses.Issue]) if row.pull_request is None]
        return tuple(found)

    async def change(self, number: int, change: IssueChange) -> None:
        if change.empty:
            return
        deeds: list[Deed] = []
        if change.add_labels or change.remove_labels:
            deeds.append(Relabel(issue=number, add=change.add_labels, remove=change.remove_labels))
        if change.comment:
            deeds.append(PostComment(issue=number, body=change.comment))
        if change.close:
            deeds.append(CloseIssue(issue=number))
        key = f"tracker-{hashlib.sha256(f'{number}:{change.comment}'.encode()).hexdigest()[:16]}"
        for deed in deeds:
            if await self.deeds.made(deed, key) is None:
                await self.deeds.do(deed, key)


def _issue(row: responses.Issue) -> Issue:
    tracked = issue_of_row(row)
    return Issue(
        number=tracked.number, title=tracked.title, body=tracked.body, state=tracked.state, labels=tracked.labels
    )
