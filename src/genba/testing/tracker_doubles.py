"""A tracker in memory: issues that people add and change, read like those of a real one."""

from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from genba.domain.errors import GenbaError, NotFoundError
from genba.domain.tracker.remote import (
    BoardItem,
    CardPage,
    Details,
    IssuePage,
    TrackedIssue,
    TrackedPullRequest,
)

_LISTED = ("comments", "blocked_by", "blocked_elsewhere", "parent", "sub_issues", "pull_requests", "cards")


class MemoryIssues:
    """The port RemoteIssues. It counts what a real one would cost; `faults` are raised by the next calls, in turn."""

    def __init__(self, page_size: int = 100) -> None:
        self.page_size = page_size
        self.issues: dict[int, TrackedIssue] = {}
        self.requests: dict[int, TrackedPullRequest] = {}
        self.faults: deque[GenbaError | None] = deque()
        self.calls: list[str] = []
        self._at = datetime.now(UTC)
        self._changed: dict[int, str] = {}
        self._rest = self._points = 0

    # What people do

    def tick(self, seconds: float = 1.0) -> str:
        self._at += timedelta(seconds=seconds)
        return self._at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def add(self, title: str = "an issue", number: int | None = None, *, tick: float = 1.0, **values: Any) -> int:
        """A person opens an issue; a member, unless it says otherwise."""
        number = number or max([*self.issues, *self.requests], default=0) + 1
        at = self.tick(tick)
        known: dict[str, Any] = {"trusted": True, "author": "octocat", "created_at": at, "updated_at": at} | values
        self.issues[number] = TrackedIssue(
            number=number, reference=f"I_{number}", title=title, url=f"https://github.test/{number}", **known
        )
        return number

    def change(self, number: int, **values: Any) -> None:
        """A person changes an issue: it is the newest of the list then."""
        self.issues[number] = msgspec.structs.replace(self.issues[number], updated_at=self.tick(), **values)

    def close(self, number: int, reason: str = "completed") -> None:
        self.change(number, state="closed", state_reason=reason)

    def delete(self, number: int) -> None:
        del self.issues[number]

    def move_card(self, number: int, owner: str, project: int, status: str | None) -> None:
        """On a board, which does not change the issue; None takes it off."""
        others = tuple(c for c in self.issues[number].cards if (c.owner, c.project) != (owner, project))
        mine = BoardItem(owner=owner, project=project, item=f"C_{number}", status=status or "", updated_at=self.tick())
        cards = others if status is None else (*others, mine)
        self.issues[number] = msgspec.structs.replace(self.issues[number], cards=cards)

    def propose(self, branch: str, commit: str, **values: Any) -> int:
        """A person opens a pull request."""
        number = max([*self.issues, *self.requests], default=0) + 1
        known = {"url": f"https://github.test/pull/{number}", "target": "main", "mergeable": "mergeable"} | values
        self.requests[number] = TrackedPullRequest(
            number=number, reference=f"P_{number}", branch=branch, commit=commit, **known
        )
        self._changed[number] = self.tick()
        return number

    def change_request(self, number: int, **values: Any) -> None:
        self._changed[number] = self.tick()
        self.requests[number] = msgspec.structs.replace(
            self.requests[number], updated_at=self._changed[number], **values
        )

    # The port

    @property
    def spent(self) -> tuple[int, int]:
        return self._rest, self._points

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    async def page(self, *, since: str = "", following: str = "", etag: str = "", label: str = "") -> IssuePage:
        self._call(f"page {since} {following}".strip())
        self._rest += 1
        if following:
            since, _, start = following.partition(" ")
        first = int(start) if following else 0
        listed = self._list(since, label)
        shown = listed[first : first + self.page_size]
        tag = f'"{hash((since, label, tuple(listed)))}"'
        if etag and etag == tag:
            return IssuePage(unchanged=True, etag=etag)
        more = first + self.page_size < len(listed)
        return IssuePage(
            issues=tuple(_listed(self.issues[number]) for _, number in shown if number in self.issues),
            pull_requests=tuple(number for _, number in shown if number in self.requests),
            newest=shown[-1][0] if shown else "",
            following=f"{since} {first + self.page_size}" if more else "",
            etag=tag,
        )

    async def details(self, references: Sequence[str]) -> Details:
        self._call(f"details {len(references)}")
        self._points += max(1, round((1 + 4 * len(references)) / 100))
        by_reference = {issue.reference: issue for issue in self.issues.values()}
        found = [by_reference[one] for one in references if one in by_reference]
        return self._details(found, tuple(one for one in references if one not in by_reference))

    async def issue(self, number: int) -> Details:
        self._call(f"issue {number}")
        self._points += 1
        if number not in self.issues:
            raise NotFoundError(f"there is no issue #{number}", hint="genba sync")
        return self._details([self.issues[number]], ())

    async def pull_requests(self, numbers: Sequence[int]) -> tuple[TrackedPullRequest, ...]:
        self._call(f"pull_requests {' '.join(map(str, numbers))}")
        self._points += 1
        return tuple(self.requests[number] for number in numbers if number in self.requests)

    async def pull_request_of(self, branch: str) -> TrackedPullRequest | None:
        self._call(f"pull_request_of {branch}")
        self._points += 1
        mine = [request for request in self.requests.values() if request.branch == branch]
        return mine[-1] if mine else None

    async def cards(self, owner: str, project: int, field: str, following: str = "", since: str = "") -> CardPage:
        self._call(f"cards {owner}/{project} {field} {since}")
        self._points += 1
        found = [
            (issue.number, card)
            for issue in self.issues.values()
            for card in issue.cards
            if (card.owner, card.project) == (owner, project) and (not since or card.updated_at[:10] >= since[:10])
        ]
        first = int(following or 0)
        more = first + self.page_size < len(found)
        shown = tuple(found[first : first + self.page_size])
        return CardPage(cards=shown, following=str(first + self.page_size) if more else "")

    def _details(self, found: Sequence[TrackedIssue], gone: tuple[str, ...]) -> Details:
        linked = {number for issue in found for number in issue.pull_requests}
        return Details(
            issues=tuple(msgspec.structs.replace(issue, detailed=True) for issue in found),
            pull_requests=tuple(self.requests[number] for number in sorted(linked) if number in self.requests),
            gone=gone,
        )

    def _list(self, since: str, label: str) -> list[tuple[str, int]]:
        """Oldest change first: issues and pull requests, as a real list has both."""
        issues = [(one.updated_at, number) for number, one in self.issues.items() if not label or label in one.labels]
        requests = [] if label else [(at, number) for number, at in self._changed.items() if number in self.requests]
        return sorted(one for one in [*issues, *requests] if one[0] >= since)

    def _call(self, what: str) -> None:
        self.calls.append(what)
        fault = self.faults.popleft() if self.faults else None
        if fault is not None:
            raise fault


def _listed(issue: TrackedIssue) -> TrackedIssue:
    """What a list shows of an issue: nothing of its details."""
    return msgspec.structs.replace(
        issue, detailed=False, **{name: None if name == "parent" else () for name in _LISTED}
    )
