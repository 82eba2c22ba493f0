"""RemoteChanges on GitHub: found when they were made, sent once when they were not."""

from collections.abc import AsyncIterator

import pytest

from genba.connections.github.client import GitHubClient
from genba.connections.github.comments import signed
from genba.connections.github.remote_changes import GitHubChanges
from genba.domain.errors import (
    AccessRefusedError,
    NotFoundError,
    RateLimited,
    RemoteUnavailable,
    UnrecoverableError,
)
from genba.domain.tracker.outbox import (
    CloseIssue,
    KeepComment,
    MergePullRequest,
    OpenPullRequest,
    PostComment,
    Relabel,
    RemoteChange,
    ReopenIssue,
    SetCardStatus,
    marker,
    mutations_of,
)
from tests.github.offices import SHOP, TOKEN, connected, settle
from tests.standins.github.faults import Fault
from tests.standins.github.server import GitHub

COMMENTS = f"/repos/{SHOP}/issues/1/comments"
REQUEST = OpenPullRequest(branch="genba/1", target="main", title="A change", body="Why.", issue=1)


def furnish(hub: GitHub) -> GitHub:
    """Issue 1 with two labels, and a branch with work."""
    settle(hub)
    hub.add_issue(SHOP, title="One", labels=["docs", "old"])
    hub.commit(SHOP, "genba/1", {"a.txt": "x"}, "Add a.txt")
    return hub


@pytest.fixture
def shop(hub: GitHub) -> GitHub:
    return furnish(hub)


@pytest.fixture
async def client(shop: GitHub) -> AsyncIterator[GitHubClient]:
    async with connected(shop) as made:
        yield made


@pytest.fixture
def changes(client: GitHubClient) -> GitHubChanges:
    return GitHubChanges(client)


def sent(hub: GitHub) -> list[str]:
    """What changed something, or was to."""
    return [one.line for one in hub.requests if one.mutation]


# ------------------------------------------------------------------------------------------------------------ comments


@pytest.mark.parametrize("fault", [Fault(status=502, effect=True), Fault(cut=True, effect=True), Fault(cut=True)])
async def test_a_comment_whose_answer_was_lost_is_found_and_not_made_twice(shop: GitHub, fault: Fault) -> None:
    fault.method, fault.path = "POST", COMMENTS
    shop.faults.add(fault)
    change = PostComment(issue=1, body="It is done.")
    async with connected(shop) as client:
        changes = GitHubChanges(client)
        with pytest.raises(RemoteUnavailable):
            await changes.apply(change, "key-1")
        found = await changes.find(change, "key-1")
        assert (found is not None) is fault.effect
        if found is None:
            await changes.apply(change, "key-1")
        else:
            assert found.existed
    assert len(shop.issue(SHOP, 1).comments) == 1
    assert marker("key-1") in shop.issue(SHOP, 1).comments[0].body


async def test_a_marker_that_a_stranger_copied_proves_nothing(shop: GitHub) -> None:
    shop.comment(SHOP, 1, f"Ha. {marker('key-1')} {marker('status@1')}", by="stranger")
    async with connected(shop) as client:
        changes = GitHubChanges(client)
        assert await changes.find(PostComment(issue=1, body="x"), "key-1") is None
        await changes.apply(KeepComment(issue=1, name="status", body="Mine."), "key-2")
    theirs, mine = shop.issue(SHOP, 1).comments
    assert theirs.body.startswith("Ha.")
    assert (mine.author.login, mine.body.splitlines()[0]) == ("octocat", "Mine.")


async def test_a_comment_of_a_colleague_counts(shop: GitHub) -> None:
    shop.comment(SHOP, 1, f"Done. {marker('key-1')}", by="rita")
    async with connected(shop) as client:
        assert await GitHubChanges(client).find(PostComment(issue=1, body="Done."), "key-1") is not None


async def test_an_old_comment_among_many_is_found(shop: GitHub) -> None:
    shop.comment(SHOP, 1, f"Done. {marker('key-1')}")
    for count in range(230):
        shop.comment(SHOP, 1, f"Noise {count}")
    async with connected(shop) as client:
        assert await GitHubChanges(client).find(PostComment(issue=1, body="Done."), "key-1") is not None
        assert await GitHubChanges(client).find(PostComment(issue=1, body="Done."), "key-2") is None


async def test_the_single_comment_is_created_again_where_a_person_deleted_it(
    shop: GitHub, changes: GitHubChanges
) -> None:
    await changes.apply(KeepComment(issue=1, name="status", body="It began."), "k1")
    shop.issue(SHOP, 1).comments.clear()
    await changes.apply(KeepComment(issue=1, name="status", body="It ended."), "k2")
    assert [comment.body.splitlines()[0] for comment in shop.issue(SHOP, 1).comments] == ["It ended."]


async def test_two_names_are_two_comments(shop: GitHub, changes: GitHubChanges) -> None:
    for name in ("status", "plan", "status", "plan"):
        await changes.apply(KeepComment(issue=1, name=name, body=f"The {name}."), f"key-{name}")
    assert len(shop.issue(SHOP, 1).comments) == 2
    assert len(sent(shop)) == 2


def test_a_long_text_is_shortened_and_keeps_its_marker() -> None:
    text = signed("x" * 200_000, "key")
    assert len(text) <= 65_536
    assert text.rstrip().endswith(marker("key"))
    assert "shortened" in text
    inside = signed(f"y {marker('key')} " + "x" * 100_000, "key")
    assert (inside.count(marker("key")), len(inside) <= 65_536) == (1, True)
    assert signed(f"short {marker('key')}", "key") == f"short {marker('key')}"


# -------------------------------------------------------------------------------------------------------------- labels


async def test_only_what_is_missing_is_sent(shop: GitHub, changes: GitHubChanges) -> None:
    change = Relabel(issue=1, add=("DOCS", "new", "newer"), remove=("OLD", "nobody has this"))
    await changes.apply(change, "labels")
    assert shop.labels(SHOP, 1) == ["docs", "new", "newer"]
    assert len(sent(shop)) == 2 <= mutations_of(change)
    assert (await changes.apply(change, "labels")).existed
    assert len(sent(shop)) == 2


async def test_what_people_label_meanwhile_stays(shop: GitHub, changes: GitHubChanges) -> None:
    path = f"/repos/{SHOP}/issues/1"
    shop.faults.add(Fault(method="GET", path=path, effect=True, then=lambda: shop.label(SHOP, 1, "theirs", by="rita")))
    await changes.apply(Relabel(issue=1, add=("new",), remove=("old",)), "labels")
    assert shop.labels(SHOP, 1) == ["docs", "new", "theirs"]


async def test_a_label_that_a_person_removed_is_no_problem(shop: GitHub, changes: GitHubChanges) -> None:
    def take() -> None:
        shop.unlabel(SHOP, 1, "old")

    shop.faults.add(Fault(method="POST", path=f"/repos/{SHOP}/issues/1/labels", effect=True, then=take))
    await changes.apply(Relabel(issue=1, add=("new",), remove=("old",)), "labels")
    assert shop.labels(SHOP, 1) == ["docs", "new"]


@pytest.mark.parametrize("name", ["a/b", "spaced out", "émoji 🚀", "100%", "a?b#c", 'quo"te'])
async def test_labels_may_have_any_name(shop: GitHub, changes: GitHubChanges, name: str) -> None:
    await changes.apply(Relabel(issue=1, add=(name,)), "add")
    assert name in shop.labels(SHOP, 1)
    await changes.apply(Relabel(issue=1, remove=(name,)), "remove")
    assert name not in shop.labels(SHOP, 1)


# --------------------------------------------------------------------------------------------------------------- states


async def test_an_issue_is_closed_with_its_reason_and_only_while_it_is_open(
    shop: GitHub, changes: GitHubChanges
) -> None:
    await changes.apply(CloseIssue(issue=1, reason="not_planned"), "close")
    assert (shop.issue(SHOP, 1).state, shop.issue(SHOP, 1).state_reason) == ("closed", "not_planned")
    assert (await changes.apply(CloseIssue(issue=1), "again")).existed
    await changes.apply(ReopenIssue(issue=1), "reopen")
    assert shop.issue(SHOP, 1).state == "open"
    assert len(sent(shop)) == 2


# ------------------------------------------------------------------------------------------------------ pull requests


async def test_a_pull_request_has_its_text_and_its_reviewers(shop: GitHub) -> None:
    change = OpenPullRequest(
        branch="genba/1", target="main", title="A\nchange", body="Closes #1", draft=True, reviewers=("rita",), issue=1
    )
    async with connected(shop) as client:
        changes = GitHubChanges(client)
        made = await changes.apply(change, "key-1")
        pull = shop.pull_request(SHOP, made.number or 0)
        assert (pull.title, pull.draft, pull.head, pull.base) == ("A change", True, "genba/1", "main")
        assert pull.body.startswith("Closes #1")
        assert [user.login for user in pull.requested_reviewers] == ["rita"]
        assert (made.commit, made.note) == (pull.head_sha, "")
        assert made.address.endswith(f"/{SHOP}/pull/{pull.number}")
        assert len(sent(shop)) == 2 == mutations_of(change)
        assert (await changes.find(change, "key-1")) is not None


async def test_the_open_pull_request_of_the_branch_is_brought_up_to_date(shop: GitHub, changes: GitHubChanges) -> None:
    number = shop.open_pull_request(SHOP, "genba/1", title="By hand", draft=True)
    made = await changes.apply(REQUEST, "key-1")
    pull = shop.pull_request(SHOP, number)
    assert (made.number, pull.title, pull.draft) == (number, "A change", False)
    assert len(shop.repository(SHOP).pulls) == 1
    before = len(sent(shop))
    await changes.apply(REQUEST, "key-1")
    assert len(sent(shop)) == before


async def test_a_draft_that_could_not_be_made_ready_is_tried_again_and_else_reported(
    shop: GitHub, changes: GitHubChanges
) -> None:
    number = shop.open_pull_request(SHOP, "genba/1", draft=True)
    shop.faults.cut(operation="Ready")
    with pytest.raises(RemoteUnavailable):
        await changes.apply(REQUEST, "key-1")
    assert await changes.find(REQUEST, "key-1") is None
    refused = b'{"data": null, "errors": [{"type": "FORBIDDEN", "message": "Resource not accessible"}]}'
    shop.faults.add(Fault(operation="Ready", status=200, body=refused))
    assert "stays a draft" in (await changes.apply(REQUEST, "key-1")).note
    assert (await changes.apply(REQUEST, "key-1")).note == ""
    assert not shop.pull_request(SHOP, number).draft


async def test_what_people_wrote_into_the_title_since_does_not_make_it_another_pull_request(
    shop: GitHub, changes: GitHubChanges
) -> None:
    number = (await changes.apply(REQUEST, "key-1")).number or 0
    shop.edit(SHOP, number, title="A better title")
    assert await changes.find(REQUEST, "key-1") is not None


@pytest.mark.parametrize("fault", [Fault(status=502, effect=True), Fault(cut=True, effect=True)])
async def test_a_pull_request_whose_answer_was_lost_is_found(
    shop: GitHub, changes: GitHubChanges, fault: Fault
) -> None:
    fault.method, fault.path = "POST", f"/repos/{SHOP}/pulls"
    shop.faults.add(fault)
    with pytest.raises(RemoteUnavailable):
        await changes.apply(REQUEST, "key-1")
    found = await changes.find(REQUEST, "key-1")
    assert found is not None
    assert (found.existed, found.number) == (True, shop.repository(SHOP).pulls[0].number)


async def test_reviewers_who_were_not_asked_because_the_answer_was_lost_are_asked_later(
    shop: GitHub, changes: GitHubChanges
) -> None:
    change = OpenPullRequest(branch="genba/1", target="main", title="T", body="B", reviewers=("rita",))
    shop.faults.fail("POST", f"/repos/{SHOP}/pulls/*/requested_reviewers", status=500)
    with pytest.raises(RemoteUnavailable):
        await changes.apply(change, "key-1")
    assert await changes.find(change, "key-1") is None
    await changes.apply(change, "key-1")
    (pull,) = shop.repository(SHOP).pulls
    assert [user.login for user in pull.requested_reviewers] == ["rita"]
    assert await changes.find(change, "key-1") is not None


async def test_an_unreachable_agent_is_reported_and_stops_nothing(shop: GitHub, changes: GitHubChanges) -> None:
    change = OpenPullRequest(
        branch="genba/1", target="main", title="T", body="B", reviewers=("Octocat", "rita", "stranger", "team/nobody")
    )
    made = await changes.apply(change, "key-1")
    assert made.number
    assert "Octocat made the pull request" in made.note
    assert "stranger" in made.note


async def test_a_reviewer_is_asked_again_only_for_new_work(shop: GitHub, changes: GitHubChanges) -> None:
    change = OpenPullRequest(branch="genba/1", target="main", title="T", body="B", reviewers=("rita",))
    number = (await changes.apply(change, "key-1")).number or 0
    shop.review(SHOP, number, "CHANGES_REQUESTED", "No.", by="rita")
    pull = shop.pull_request(SHOP, number)
    await changes.apply(change, "key-1")
    assert pull.requested_reviewers == []
    shop.commit(SHOP, "genba/1", {"a.txt": "y"}, "Move it")
    await changes.apply(change, "key-2")
    assert [user.login for user in pull.requested_reviewers] == ["rita"]


async def test_a_pull_request_without_work_is_refused_in_the_words_of_github(changes: GitHubChanges) -> None:
    for branch in ("main", "not-there"):
        with pytest.raises(UnrecoverableError) as raised:
            await changes.apply(OpenPullRequest(branch=branch, target="main", title="T", body="B"), "key")
        assert "422" in raised.value.message


async def test_one_that_was_merged_meanwhile_was_made(shop: GitHub, changes: GitHubChanges) -> None:
    number = (await changes.apply(REQUEST, "key-1")).number or 0
    shop.merge(SHOP, number)
    found = await changes.find(REQUEST, "key-1")
    assert found is not None
    assert found.number == number


# --------------------------------------------------------------------------------------------------------------- merges


@pytest.fixture
async def proposed(shop: GitHub, changes: GitHubChanges) -> MergePullRequest:
    made = await changes.apply(REQUEST, "key-1")
    return MergePullRequest(number=made.number or 0, commit=made.commit, title="Land it", body="Issue: 1")


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
async def test_a_pull_request_is_merged_by_each_method(
    shop: GitHub, changes: GitHubChanges, proposed: MergePullRequest, method: str
) -> None:
    change = MergePullRequest(number=proposed.number, commit=proposed.commit, method=method, title="Land", body="Why")
    made = await changes.apply(change, "merge")
    pull = shop.pull_request(SHOP, proposed.number)
    assert (pull.merged, made.commit, made.existed) == (True, pull.merge_sha, False)
    again = await changes.find(change, "merge")
    assert again is not None
    assert (again.commit, again.existed) == (made.commit, True)


async def test_a_head_that_a_person_moved_is_not_merged(
    shop: GitHub, changes: GitHubChanges, proposed: MergePullRequest
) -> None:
    shop.commit(SHOP, "genba/1", {"b.txt": "x"}, "Sneak in", start="genba/1")
    with pytest.raises(UnrecoverableError, match="no longer at"):
        await changes.apply(proposed, "merge")
    assert not shop.pull_request(SHOP, proposed.number).merged


async def test_a_conflict_is_reported(shop: GitHub, changes: GitHubChanges, proposed: MergePullRequest) -> None:
    shop.commit(SHOP, "main", {"a.txt": "something else"}, "Other")
    with pytest.raises(UnrecoverableError, match="does not merge pull request"):
        await changes.apply(proposed, "merge")


@pytest.mark.parametrize("fault", [Fault(status=502, effect=True), Fault(cut=True, effect=True)])
async def test_a_merge_whose_answer_was_lost_is_found(
    shop: GitHub, changes: GitHubChanges, proposed: MergePullRequest, fault: Fault
) -> None:
    fault.method, fault.path = "PUT", f"/repos/{SHOP}/pulls/*/merge"
    shop.faults.add(fault)
    with pytest.raises(RemoteUnavailable):
        await changes.apply(proposed, "merge")
    found = await changes.find(proposed, "merge")
    assert found is not None
    assert found.commit == shop.pull_request(SHOP, proposed.number).merge_sha


async def test_work_merged_elsewhere_is_found_and_not_sent(
    shop: GitHub, changes: GitHubChanges, proposed: MergePullRequest
) -> None:
    commit = shop.merge(SHOP, proposed.number, by="rita")
    made = await changes.apply(proposed, "merge")
    assert (made.commit, made.existed) == (commit, True)


async def test_a_base_that_moves_at_the_same_moment_is_tried_again_later(
    shop: GitHub, changes: GitHubChanges, proposed: MergePullRequest
) -> None:
    output = "Base branch was modified. Review and try the merge again."
    shop.faults.fail("PUT", f"/repos/{SHOP}/pulls/*/merge", status=405, message=output)
    with pytest.raises(RemoteUnavailable, match="Base branch was modified"):
        await changes.apply(proposed, "merge")


# --------------------------------------------------------------------------------------------------------------- cards


@pytest.fixture
def board(shop: GitHub) -> int:
    return shop.add_project("acme")


def to(status: str, board: int) -> SetCardStatus:
    return SetCardStatus(issue=1, owner="acme", project=board, field="Status", status=status)


async def test_a_card_is_made_and_moved(shop: GitHub, changes: GitHubChanges, board: int) -> None:
    assert await changes.find(to("Todo", board), "card") is None
    await changes.apply(to("Todo", board), "card")
    assert shop.card_status("acme", board, SHOP, 1) == "Todo"
    assert await changes.find(to("todo", board), "card") is not None
    await changes.apply(to("in progress", board), "card-2")
    assert shop.card_status("acme", board, SHOP, 1) == "In Progress"
    assert [one.operation for one in shop.requests if one.mutation] == ["AddCard", "MoveCard", "MoveCard"]


async def test_a_card_whose_answer_was_lost_is_not_made_twice(shop: GitHub, changes: GitHubChanges, board: int) -> None:
    shop.faults.cut(operation="AddCard", effect=True)
    with pytest.raises(RemoteUnavailable):
        await changes.apply(to("Todo", board), "card")
    assert await changes.find(to("Todo", board), "card") is None
    await changes.apply(to("Todo", board), "card")
    assert len(shop.project("acme", board).items) == 1


async def test_an_unknown_status_names_those_that_there_are(changes: GitHubChanges, board: int) -> None:
    with pytest.raises(UnrecoverableError, match="it has: Todo, In Progress, Done"):
        await changes.apply(to("Doing", board), "card")
    other = SetCardStatus(issue=1, owner="acme", project=board, field="Phase", status="Todo")
    with pytest.raises(UnrecoverableError, match="has no field Phase"):
        await changes.apply(other, "card")
    with pytest.raises(NotFoundError, match="project 99"):
        await changes.apply(to("Todo", 99), "card")


# ----------------------------------------------------------------------------------------------------------- refusals

EVERY: list[RemoteChange] = [
    PostComment(issue=1, body="x"),
    KeepComment(issue=1, name="status", body="x"),
    Relabel(issue=1, add=("new",), remove=("old",)),
    CloseIssue(issue=1),
    REQUEST,
    SetCardStatus(issue=1, owner="acme", project=1, field="Status", status="Todo"),
]


@pytest.mark.parametrize("change", EVERY, ids=lambda change: type(change).__name__)
async def test_a_refused_or_delayed_caller_has_changed_nothing(shop: GitHub, change: RemoteChange) -> None:
    shop.add_project("acme")
    async with connected(shop) as client:
        changes = GitHubChanges(client)
        shop.spend(TOKEN, rest=5000, graphql=5000)
        for act in (changes.find(change, "key"), changes.apply(change, "key")):
            with pytest.raises(RateLimited):
                await act
        shop.expire(TOKEN)
        for act in (changes.find(change, "key"), changes.apply(change, "key")):
            with pytest.raises(AccessRefusedError):
                await act
    issue = shop.issue(SHOP, 1)
    assert (issue.comments, issue.state, shop.labels(SHOP, 1)) == ([], "open", ["docs", "old"])
    assert shop.repository(SHOP).pulls == []


@pytest.mark.parametrize("change", EVERY[:4], ids=lambda change: type(change).__name__)
async def test_an_issue_that_is_not_there_is_not_found(
    shop: GitHub, changes: GitHubChanges, change: RemoteChange
) -> None:
    shop.delete(SHOP, 1)
    with pytest.raises(NotFoundError):
        await changes.find(change, "key")
    with pytest.raises(NotFoundError):
        await changes.apply(change, "key")
