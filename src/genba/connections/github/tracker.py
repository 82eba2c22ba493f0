"""GitHub as a tracker, without a copy in between."""

import hashlib

from genba.connections.github import responses
from genba.connections.github.client import GitHubClient
from genba.connections.github.remote_changes import GitHubChanges
from genba.connections.github.translation import issue_of_row
from genba.domain.errors import NotFoundError
from genba.domain.tracker.issues import Issue, IssueChange
from genba.domain.tracker.outbox import CloseIssue, PostComment, Relabel, RemoteChange


class GitHubTracker:
    """Reads issues, and carries out changes ; each is looked up first, so a repeat has no effect."""

    def __init__(self, client: GitHubClient, changes: GitHubChanges | None = None) -> None:
        self.client = client
        self.changes = changes or GitHubChanges(client)

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
        changes: list[RemoteChange] = []
        if change.add_labels or change.remove_labels:
            changes.append(Relabel(issue=number, add=change.add_labels, remove=change.remove_labels))
        if change.comment:
            changes.append(PostComment(issue=number, body=change.comment))
        if change.close:
            changes.append(CloseIssue(issue=number))
        key = f"tracker-{hashlib.sha256(f'{number}:{change.comment}'.encode()).hexdigest()[:16]}"
        for each in changes:
            if await self.changes.find(each, key) is None:
                await self.changes.apply(each, key)


def _issue(row: responses.Issue) -> Issue:
    tracked = issue_of_row(row)
    return Issue(
        number=tracked.number, title=tracked.title, body=tracked.body, state=tracked.state, labels=tracked.labels
    )
