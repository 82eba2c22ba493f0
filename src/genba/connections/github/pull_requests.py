"""Pull requests: opened once for a branch, kept up to date, merged at one commit and no other."""

import msgspec

from genba.connections.github import documents, responses
from genba.connections.github.client import GitHubClient
from genba.connections.github.comments import signed, written
from genba.connections.github.errors import Refused
from genba.connections.github.issues import newest_pull
from genba.connections.github.translation import same
from genba.domain.errors import AccessRefusedError, NotFoundError, RemoteUnavailable, UnrecoverableError
from genba.domain.tracker.outbox import DeliveryReceipt, MergePullRequest, OpenPullRequest, marker

_CONFLICT, _NOT_ALLOWED, _UNPROCESSABLE = 409, 405, 422
_LONGEST_TITLE = 256
_PASSING = ("base branch was modified", "merge already in progress")
_TEAM = "team/"


class Proposals:
    def __init__(self, client: GitHubClient) -> None:
        self.client = client

    async def find(self, change: OpenPullRequest, key: str) -> DeliveryReceipt | None:
        """The pull request of this change: it carries its marker, and all that comes after the marker was done too."""
        found = await newest_pull(self.client, change.branch, "all")
        if found is None or marker(key) not in (found.body or ""):
            return None
        if found.state == "open" and ((found.draft and not change.draft) or await self._to_ask(found, change)):
            return None
        return _receipt(found, existed=True)

    async def open(self, change: OpenPullRequest, key: str) -> DeliveryReceipt:
        there = await newest_pull(self.client, change.branch, "open")
        pull = await self._update(there, change, key) if there else await self._create(change, key)
        notes = [*await self._make_ready(pull, change), *await self._ask_reviewers(pull, change)]
        return msgspec.structs.replace(_receipt(pull, existed=False), note="; ".join(notes))

    async def merged(self, number: int) -> DeliveryReceipt | None:
        pull = await self._pull(number)
        if not (pull.merged or pull.merged_at):
            return None
        return DeliveryReceipt(address=pull.html_url, number=number, commit=pull.merge_commit_sha or "", existed=True)

    async def merge(self, change: MergePullRequest) -> DeliveryReceipt:
        body: dict[str, str] = {"sha": change.commit, "merge_method": change.method}
        body |= {"commit_title": change.title} if change.title else {}
        body |= {"commit_message": change.body} if change.body else {}
        path = self.client.repository("pulls", change.number, "merge")
        try:
            answer = await self.client.change("PUT", path, body)
        except Refused as error:
            if already := await self.merged(change.number):
                return already
            raise _no_merge(change, error) from None
        pull = await self._pull(change.number)
        return DeliveryReceipt(address=pull.html_url, number=change.number, commit=answer.read(responses.Merged).sha)

    async def _pull(self, number: int) -> responses.Pull:
        return (await self.client.get(self.client.repository("pulls", number))).read(responses.Pull)

    async def _create(self, change: OpenPullRequest, key: str) -> responses.Pull:
        body = {
            "title": _title(change),
            "body": signed(change.body, key),
            "head": change.branch,
            "base": change.target,
            "draft": change.draft,
        }
        try:
            answer = await self.client.change("POST", self.client.repository("pulls"), body)
        except Refused as error:
            there = await newest_pull(self.client, change.branch, "open") if error.status == _UNPROCESSABLE else None
            if there is None:
                raise
            return await self._update(there, change, key)
        return answer.read(responses.Pull)

    async def _update(self, pull: responses.Pull, change: OpenPullRequest, key: str) -> responses.Pull:
        if _differs(pull, change, key):
            body = {"title": _title(change), "body": signed(change.body, key), "base": change.target}
            answer = await self.client.change("PATCH", self.client.repository("pulls", pull.number), body)
            pull = answer.read(responses.Pull)
        return pull

    async def _make_ready(self, pull: responses.Pull, change: OpenPullRequest) -> list[str]:
        """Mark a draft as ready for review. Not every token may."""
        if not pull.draft or change.draft:
            return []
        try:
            await self.client.mutate(documents.READY, {"id": pull.node_id})
        except AccessRefusedError as error:
            return [f"it stays a draft until a person marks it as ready for review: {error.message}"]
        return []

    async def _ask_reviewers(self, pull: responses.Pull, change: OpenPullRequest) -> list[str]:
        """Ask them all at once. A reviewer who cannot be asked becomes a note and stops nothing."""
        wanted = await self._to_ask(pull, change)
        notes = [f"{name} made the pull request, and cannot review it" for name in _authors(pull, change)]
        if wanted:
            teams = [name.removeprefix(_TEAM) for name in wanted if name.startswith(_TEAM)]
            body = {"reviewers": [name for name in wanted if not name.startswith(_TEAM)], "team_reviewers": teams}
            path = self.client.repository("pulls", pull.number, "requested_reviewers")
            try:
                await self.client.change("POST", path, body)
            except (Refused, NotFoundError) as error:
                words = error.words if isinstance(error, Refused) else error.message
                notes.append(f"no review could be asked of {', '.join(wanted)}: {words}")
        return notes

    async def _to_ask(self, pull: responses.Pull, change: OpenPullRequest) -> list[str]:
        """The reviewers who were not asked yet and did not review this commit."""
        asked = [user.login for user in pull.requested_reviewers or ()]
        asked += [f"{_TEAM}{team.slug}" for team in pull.requested_teams or ()]
        asked += _authors(pull, change)
        left = [name for name in dict.fromkeys(change.reviewers) if not any(same(name, one) for one in asked)]
        if not left:
            return []
        answer = await self.client.get(self.client.repository("pulls", pull.number, "reviews"), {"per_page": 100})
        lines = [
            review.user.login
            for review in answer.read(list[responses.Review])
            if review.user is not None and review.commit_id == pull.head.sha
        ]
        return [name for name in left if not any(same(name, one) for one in lines)]


def _title(change: OpenPullRequest) -> str:
    title = " ".join(change.title.split())
    return title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1]}…"


def _differs(pull: responses.Pull, change: OpenPullRequest, key: str) -> bool:
    wanted = (_title(change), written(signed(change.body, key)), change.target)
    return (pull.title, written(pull.body or ""), pull.base.ref) != wanted


def _authors(pull: responses.Pull, change: OpenPullRequest) -> list[str]:
    author = pull.user.login if pull.user is not None else ""
    return [name for name in change.reviewers if same(name, author)]


def _receipt(pull: responses.Pull, *, existed: bool) -> DeliveryReceipt:
    return DeliveryReceipt(address=pull.html_url, number=pull.number, commit=pull.head.sha, existed=existed)


def _no_merge(change: MergePullRequest, error: Refused) -> Exception:
    lower = error.words.lower()
    if error.status in (_NOT_ALLOWED, _CONFLICT) and any(words in lower for words in _PASSING):
        return RemoteUnavailable(f"pull request #{change.number} could not be merged just now: {error.words}")
    if error.status == _CONFLICT or "head branch was modified" in lower:
        return UnrecoverableError(
            f"pull request #{change.number} is no longer at {change.commit[:12]}, which was verified: {error.words}",
            unchanged="nothing was merged.",
            hint="genba sync",
        )
    return UnrecoverableError(
        f"GitHub does not merge pull request #{change.number}: {error.words or error.status}",
        unchanged="nothing was merged.",
        hint="genba sync",
    )
