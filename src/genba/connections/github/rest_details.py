"""The details of issues and pull requests by REST alone, for servers without GraphQL. Slower, and poorer in cards."""

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from genba.connections.github import responses
from genba.connections.github.client import GitHubClient
from genba.connections.github.translation import (
    check_of_run,
    check_of_status,
    comment_of_row,
    issue_of_row,
    opinions,
    pull_of_row,
    same,
)
from genba.domain.errors import NotFoundError
from genba.domain.tracker.remote import Details, PullRequestState, RemoteCheck, TrackedIssue, TrackedPullRequest

T = TypeVar("T")

_MOST_PAGES = 5
_MOST_DIGITS = 15
_CLOSING = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+#(\d{1,9})\b", re.IGNORECASE)


class RestDetails:
    """One issue after the other, each by as many requests as it takes."""

    def __init__(self, client: GitHubClient) -> None:
        self.client = client

    async def details(self, numbers: Mapping[str, int]) -> Details:
        """The issues by their references; those that are not there, or elsewhere, are gone."""
        pulls = await self._recent_pulls() if numbers else []
        issues: list[TrackedIssue] = []
        gone: list[str] = []
        for reference, number in numbers.items():
            row = await self._row(number) if number else None
            if row is None:
                gone.append(reference)
            else:
                issues.append(await self._issue(row, pulls))
        return Details(issues=tuple(issues), pull_requests=await self._of(issues, pulls), gone=tuple(gone))

    async def issue(self, number: int) -> Details:
        row = await self._row(number)
        if row is None:
            raise NotFoundError(f"there is no issue #{number} in {self.client.settings.repository}", hint="genba sync")
        if row.pull_request is not None:
            raise NotFoundError(f"#{number} is a pull request, not an issue", hint="genba task list")
        pulls = await self._recent_pulls()
        issue = await self._issue(row, pulls)
        return Details(issues=(issue,), pull_requests=await self._of([issue], pulls))

    async def pull_requests(self, numbers: Sequence[int]) -> tuple[TrackedPullRequest, ...]:
        found = [await self._pull(number) for number in numbers]
        return tuple(pull for pull in found if pull is not None)

    async def _row(self, number: int) -> responses.Issue | None:
        try:
            answer = await self.client.get(self.client.repository("issues", number))
        except NotFoundError:
            return None
        row = answer.read(responses.Issue)
        if answer.moved and not await self._is_ours(row):
            return None
        return row

    async def _is_ours(self, row: responses.Issue) -> bool:
        """GitHub sends us on for a renamed repository, and also for an issue that moved to another one."""
        home = (await self.client.get(self.client.repository())).read(responses.Repository)
        return same(row.repository_url.rstrip("/"), home.url.rstrip("/"))

    async def _issue(self, row: responses.Issue, pulls: Sequence[responses.Pull]) -> TrackedIssue:
        comments = await self._list("issues", row.number, "comments", kind=responses.Comment) if row.comments else []
        summary = row.issue_dependencies_summary
        blocking = []
        if summary is not None and summary.total_blocked_by:
            blocking = await self._list("issues", row.number, "dependencies", "blocked_by", kind=responses.Issue)
        parts = []
        if row.sub_issues_summary is not None and row.sub_issues_summary.total:
            parts = await self._list("issues", row.number, "sub_issues", kind=responses.Issue)
        home = row.repository_url
        return msgspec.structs.replace(
            issue_of_row(row),
            detailed=True,
            comments=tuple(comment_of_row(comment) for comment in comments),
            blocked_by=tuple(one.number for one in blocking if same(one.repository_url, home)),
            blocked_elsewhere=tuple(
                one.html_url for one in blocking if not same(one.repository_url, home) and one.state == "open"
            ),
            parent=_parent(row),
            sub_issues=tuple(one.number for one in parts if same(one.repository_url, home)),
            pull_requests=tuple(sorted(pull.number for pull in pulls if row.number in closed_by(pull.body))),
        )

    async def _of(
        self, issues: Sequence[TrackedIssue], pulls: Sequence[responses.Pull]
    ) -> tuple[TrackedPullRequest, ...]:
        rows = {pull.number: pull for pull in pulls}
        found: list[TrackedPullRequest] = []
        for number in sorted({number for issue in issues for number in issue.pull_requests}):
            row = rows[number]
            whole = await self._pull(number) if row.state == "open" else self._light(row)
            found += [whole] if whole is not None else []
        return tuple(found)

    def _light(self, row: responses.Pull) -> TrackedPullRequest:
        return pull_of_row(row, self.client.settings.repository, closes=closed_by(row.body))

    async def _pull(self, number: int) -> TrackedPullRequest | None:
        try:
            row = (await self.client.get(self.client.repository("pulls", number))).read(responses.Pull)
        except NotFoundError:
            return None
        light = self._light(row)
        if light.state is not PullRequestState.OPEN:
            return light
        reviews = await self._list("pulls", number, "reviews", kind=responses.Review)
        lines = []
        if any(review.state.upper() == "CHANGES_REQUESTED" for review in reviews):
            lines = await self._list("pulls", number, "comments", kind=responses.ReviewComment)
        repository = self.client.settings.repository
        checks = await self._checks(row.head.sha)
        return pull_of_row(row, repository, reviews=opinions(reviews, lines), checks=checks, closes=closed_by(row.body))

    async def _checks(self, commit: str) -> tuple[RemoteCheck, ...]:
        """Runs and statuses, as far as the server has the one and the other."""
        found: list[RemoteCheck] = []
        try:
            async for page in self.client.pages(
                self.client.repository("commits", commit, "check-runs"), most=_MOST_PAGES
            ):
                found += [check_of_run(run) for run in page.read(responses.CheckRuns).check_runs]
        except NotFoundError:
            found = []
        try:
            answer = await self.client.get(self.client.repository("commits", commit, "status"), {"per_page": 100})
        except NotFoundError:
            return tuple(found)
        return (*found, *(check_of_status(status) for status in answer.read(responses.CombinedStatus).statuses))

    async def _recent_pulls(self) -> list[responses.Pull]:
        """Those that changed last: whoever says that it closes an issue is among them."""
        parameters = {"state": "all", "sort": "updated", "direction": "desc"}
        found: list[responses.Pull] = []
        async for page in self.client.pages(self.client.repository("pulls"), parameters, most=_MOST_PAGES):
            found += page.read(list[responses.Pull])
        return found

    async def _list(self, *words: str | int, kind: type[T]) -> list[T]:
        """All of a list; nothing where the server does not have such a list."""
        found: list[T] = []
        try:
            async for page in self.client.pages(self.client.repository(*words), most=_MOST_PAGES):
                found += page.read(list[kind])  # type: ignore[valid-type]
        except NotFoundError:
            return found
        return found


def closed_by(body: str | None) -> tuple[int, ...]:
    """The issues that a text says it closes, by GitHub's keywords."""
    found = (int(number) for number in _CLOSING.findall(body or "") if len(number) <= _MOST_DIGITS)
    return tuple(dict.fromkeys(found))


def _parent(row: responses.Issue) -> int | None:
    home, _, number = (row.parent_issue_url or "").rpartition("/issues/")
    is_number = number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS
    return int(number) if is_number and same(home, row.repository_url) else None
