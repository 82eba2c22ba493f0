"""What everybody who carries out changes must do: the real thing and its double alike."""

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


class RemoteChangesSuite:
    """Fixtures: `changes` sees issue 1, open, with the labels docs and old, no issue 99, and no pull request.

    The branch `genba/1` is there, with work that main does not have; `head` is its commit.
    """

    async def test_what_no_one_did_is_not_found(self, changes: RemoteChanges) -> None:
        assert await changes.find(PostComment(issue=1, body="Hello."), "a-comment") is None
        assert await changes.find(Relabel(issue=1, add=("new",)), "labels") is None
        assert await changes.find(CloseIssue(issue=1), "close") is None
        assert await changes.find(self._request(), "a-pull-request") is None

    async def test_a_comment_is_found_by_its_key_and_by_no_other(self, changes: RemoteChanges) -> None:
        change = PostComment(issue=1, body="Hello.")
        done = await changes.apply(change, "a-comment")
        found = await changes.find(change, "a-comment")
        assert found is not None
        assert found.address == done.address != ""
        assert await changes.find(change, "another-comment") is None

    async def test_a_comment_that_is_kept_is_one_comment_with_its_newest_words(self, changes: RemoteChanges) -> None:
        first = KeepComment(issue=1, name="status", body="It began.")
        second = KeepComment(issue=1, name="status", body="It ended.")
        begun = await changes.apply(first, "kept")
        assert await changes.find(first, "kept") is not None
        assert await changes.find(second, "kept") is None
        ended = await changes.apply(second, "kept")
        assert ended.address == begun.address
        assert await changes.find(second, "kept") is not None
        assert await changes.find(first, "kept") is None

    async def test_labels_are_sets(self, changes: RemoteChanges) -> None:
        change = Relabel(issue=1, add=("new",), remove=("old", "unused"))
        for _ in range(2):
            await changes.apply(change, "labels")
            assert await changes.find(change, "labels") is not None
        assert await changes.find(Relabel(issue=1, add=("docs",)), "other") is not None
        assert await changes.find(Relabel(issue=1, add=("old",)), "other") is None

    async def test_an_issue_is_closed_and_reopened(self, changes: RemoteChanges) -> None:
        await changes.apply(CloseIssue(issue=1), "close")
        assert await changes.find(CloseIssue(issue=1), "close") is not None
        assert await changes.find(ReopenIssue(issue=1), "reopen") is None
        await changes.apply(ReopenIssue(issue=1), "reopen")
        assert await changes.find(ReopenIssue(issue=1), "reopen") is not None
        assert await changes.find(CloseIssue(issue=1), "close") is None

    async def test_a_pull_request_is_opened_once_and_brought_up_to_date(self, changes: RemoteChanges) -> None:
        opened = await changes.apply(self._request(), "first")
        assert opened.number
        found = await changes.find(self._request(), "first")
        assert found is not None
        assert (found.number, found.address) == (opened.number, opened.address)
        other = self._request("Another title")
        assert await changes.find(other, "second") is None
        again = await changes.apply(other, "second")
        assert (again.number, again.address) == (opened.number, opened.address)
        assert await changes.find(other, "second") is not None

    async def test_only_the_commit_that_was_meant_is_merged(self, changes: RemoteChanges, head: str) -> None:
        number = (await changes.apply(self._request(), "first")).number or 0
        await _is_refused(changes.apply(MergePullRequest(number=number, commit="0" * 40), "wrong"))
        right = MergePullRequest(number=number, commit=head)
        assert await changes.find(right, "right") is None
        assert (await changes.apply(right, "right")).commit
        assert await changes.find(right, "right") is not None

    async def test_what_is_not_there_is_refused(self, changes: RemoteChanges) -> None:
        await _is_refused(changes.apply(PostComment(issue=99, body="Hello."), "nowhere"))

    def _request(self, title: str = "A change") -> OpenPullRequest:
        return OpenPullRequest(branch="genba/1", target="main", title=title, body="Why.", issue=1)


async def _is_refused(act: Awaitable[object]) -> None:
    try:
        await act
    except UnrecoverableError:
        return
    raise AssertionError("nothing was refused")
