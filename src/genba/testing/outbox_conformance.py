"""What everybody who carries out deeds must do: the real thing and its double alike."""

from collections.abc import Awaitable

from genba.domain.errors import UnrecoverableError
from genba.domain.ports import RemoteChanges
from genba.domain.tracker.outbox import (
    CloseIssue,
    KeepComment,
    MergePullRequest,
    OpenPullRequest,
    PostComment,
    Relabel,
    ReopenIssue,
)


class DeedsSuite:
    """Fixtures: `deeds` sees issue 1, open, with the labels docs and old, no issue 99, and no pull request.

    The branch `genba/1` is there, with work that main does not have; `head` is its commit.
    """

    async def test_what_nobody_did_is_not_found(self, deeds: RemoteChanges) -> None:
        assert await deeds.made(PostComment(issue=1, body="Hello."), "a-comment") is None
        assert await deeds.made(Relabel(issue=1, add=("new",)), "labels") is None
        assert await deeds.made(CloseIssue(issue=1), "close") is None
        assert await deeds.made(self._request(), "a-pull-request") is None

    async def test_a_comment_is_found_by_its_key_and_by_no_other(self, deeds: RemoteChanges) -> None:
        deed = PostComment(issue=1, body="Hello.")
        done = await deeds.do(deed, "a-comment")
        found = await deeds.made(deed, "a-comment")
        assert found is not None
        assert found.address == done.address != ""
        assert await deeds.made(deed, "another-comment") is None

    async def test_a_comment_that_is_kept_is_one_comment_with_its_newest_words(self, deeds: RemoteChanges) -> None:
        first = KeepComment(issue=1, name="status", body="It began.")
        second = KeepComment(issue=1, name="status", body="It ended.")
        begun = await deeds.do(first, "kept")
        assert await deeds.made(first, "kept") is not None
        assert await deeds.made(second, "kept") is None
        ended = await deeds.do(second, "kept")
        assert ended.address == begun.address
        assert await deeds.made(second, "kept") is not None
        assert await deeds.made(first, "kept") is None

    async def test_labels_are_sets(self, deeds: RemoteChanges) -> None:
        deed = Relabel(issue=1, add=("new",), remove=("old", "nobody has this"))
        for _ in range(2):
            await deeds.do(deed, "labels")
            assert await deeds.made(deed, "labels") is not None
        assert await deeds.made(Relabel(issue=1, add=("docs",)), "other") is not None
        assert await deeds.made(Relabel(issue=1, add=("old",)), "other") is None

    async def test_an_issue_is_closed_and_reopened(self, deeds: RemoteChanges) -> None:
        await deeds.do(CloseIssue(issue=1), "close")
        assert await deeds.made(CloseIssue(issue=1), "close") is not None
        assert await deeds.made(ReopenIssue(issue=1), "reopen") is None
        await deeds.do(ReopenIssue(issue=1), "reopen")
        assert await deeds.made(ReopenIssue(issue=1), "reopen") is not None
        assert await deeds.made(CloseIssue(issue=1), "close") is None

    async def test_a_pull_request_is_opened_once_and_brought_up_to_date(self, deeds: RemoteChanges) -> None:
        opened = await deeds.do(self._request(), "first")
        assert opened.number
        found = await deeds.made(self._request(), "first")
        assert found is not None
        assert (found.number, found.address) == (opened.number, opened.address)
        other = self._request("Another title")
        assert await deeds.made(other, "second") is None
        again = await deeds.do(other, "second")
        assert (again.number, again.address) == (opened.number, opened.address)
        assert await deeds.made(other, "second") is not None

    async def test_only_the_commit_that_was_meant_is_merged(self, deeds: RemoteChanges, head: str) -> None:
        number = (await deeds.do(self._request(), "first")).number or 0
        await _is_refused(deeds.do(MergePullRequest(number=number, commit="0" * 40), "wrong"))
        right = MergePullRequest(number=number, commit=head)
        assert await deeds.made(right, "right") is None
        assert (await deeds.do(right, "right")).commit
        assert await deeds.made(right, "right") is not None

    async def test_what_is_not_there_is_refused(self, deeds: RemoteChanges) -> None:
        await _is_refused(deeds.do(PostComment(issue=99, body="Hello."), "nowhere"))

    def _request(self, title: str = "A change") -> OpenPullRequest:
        return OpenPullRequest(branch="genba/1", target="main", title=title, body="Why.", issue=1)


async def _is_refused(act: Awaitable[object]) -> None:
    try:
        await act
    except UnrecoverableError:
        return
    raise AssertionError("nothing was refused")
