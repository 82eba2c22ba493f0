"""Comments that Genba wrote, found by what it put into them."""

import msgspec

from genba.connections.github import documents, responses
from genba.connections.github.client import GitHubClient
from genba.connections.github.translation import LONGEST_TEXT, there, trusted
from genba.domain.errors import NotFoundError
from genba.domain.tracker.outbox import marker

_MOST_PAGES = 50


class Found(msgspec.Struct, frozen=True):
    """A comment of ours."""

    id: int
    body: str
    url: str


def signed(body: str, *keys: str) -> str:
    """A text with its markers at the end, as long as GitHub takes it. The markers are never what is cut off."""
    marks = " ".join(marker(key) for key in keys if marker(key) not in body)
    if not marks and len(body) <= LONGEST_TEXT:
        return body
    kept = [marker(key) for key in keys]
    room = LONGEST_TEXT - sum(len(mark) + 1 for mark in kept) - 40
    if len(body) > room:
        for mark in kept:
            body = body.replace(mark, "")
        body, marks = f"{body[:room]}\n\n… (shortened)", " ".join(kept)
    return f"{body.rstrip()}\n\n{marks}\n"


def written(body: str) -> str:
    """A text as it compares: GitHub may change line ends."""
    return body.replace("\r\n", "\n").rstrip()


class OwnComments:
    """Finds comments by their markers, newest first.

    A marker can be copied: a comment counts only if this token or a member of the repository wrote it.
    """

    def __init__(self, client: GitHubClient) -> None:
        self.client = client

    async def find(self, issue: int, key: str) -> Found | None:
        wanted = marker(key)
        before: str | None = None
        for _ in range(_MOST_PAGES):
            variables = {"owner": self.client.owner, "name": self.client.name, "number": issue, "before": before}
            result = await self.client.query(documents.COMMENTS_BACKWARDS, variables, bearable=frozenset({"NOT_FOUND"}))
            page = result.part(responses.LastComments, "repository", "issueOrPullRequest", "comments")
            if page is None:
                raise NotFoundError(f"there is no issue #{issue} in {self.client.settings.repository}")
            for comment in reversed(there(page.nodes)):
                ours = comment.viewer_did_author or trusted(comment.author_association)
                if wanted in comment.body and ours and comment.database_id is not None:
                    return Found(comment.database_id, comment.body, comment.url)
            before = page.page_info.start_cursor
            if not page.page_info.has_previous_page or before is None:
                return None
        return None
