"""GitHub as a forge, without an outbox in between."""

import hashlib

from genba.connections.github.client import GitHubClient
from genba.connections.github.issues import newest_pull
from genba.connections.github.remote_changes import GitHubChanges
from genba.domain.sessions.workspaces import PullRequest
from genba.domain.tracker.outbox import OpenPullRequest


class GitHubForge:
    """Opens pull requests, and finds those that are open."""

    def __init__(self, client: GitHubClient, changes: GitHubChanges | None = None) -> None:
        self.client = client
        self.changes = changes or GitHubChanges(client)

    async def find(self, branch: str) -> str:
        found = await newest_pull(self.client, branch, "open")
        return found.html_url if found is not None else ""

    async def open(self, request: PullRequest) -> str:
        change = OpenPullRequest(
            branch=request.branch,
            target=request.target,
            title=request.title,
            body=request.body,
            issue=request.issue,
            draft=request.draft,
            reviewers=request.reviewers,
        )
        key = f"forge-{hashlib.sha256(request.branch.encode()).hexdigest()[:16]}"
        return (await self.changes.apply(change, key)).address
