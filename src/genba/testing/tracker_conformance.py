"""What every implementation of the port RemoteIssues must do."""

from typing import Protocol

from genba.domain.errors import NotFoundError
from genba.domain.ports import RemoteIssues
from genba.domain.tracker.remote import TrackedIssue


class TrackerPeople(Protocol):
    """What people do on a tracker. Each deed is a second after the one before."""

    def open(self, title: str, labels: tuple[str, ...] = ()) -> int: ...

    def rename(self, number: int, title: str) -> None: ...

    def close(self, number: int) -> None: ...

    def delete(self, number: int) -> None: ...

    def block(self, number: int, by: int) -> None: ...

    def put_below(self, number: int, parent: int) -> None: ...


async def all_issues(remote: RemoteIssues, since: str = "", label: str = "") -> list[TrackedIssue]:
    """Every page of the list, one after the other."""
    page = await remote.page(since=since, label=label)
    found = list(page.issues)
    while page.following:
        page = await remote.page(following=page.following)
        found += page.issues
    return found


class RemoteIssuesSuite:
    """Fixtures: `remote`, and `people` who change what it shows."""

    async def test_the_list_has_open_and_closed_ones_the_oldest_change_first(
        self, remote: RemoteIssues, people: TrackerPeople
    ) -> None:
        first, second, third = people.open("one"), people.open("two"), people.open("three")
        people.close(second)
        people.rename(first, "one, renamed")
        found = await all_issues(remote)
        assert [issue.number for issue in found] == [third, second, first]
        assert [issue.state for issue in found] == ["open", "closed", "open"]
        assert found[2].title == "one, renamed"
        assert not any(issue.detailed for issue in found)
        assert len({issue.reference for issue in found}) == 3

    async def test_what_changed_before_a_time_is_left_out(self, remote: RemoteIssues, people: TrackerPeople) -> None:
        old, new = people.open("old"), people.open("new")
        (_, newest) = await all_issues(remote)
        assert [issue.number for issue in await all_issues(remote, since=newest.updated_at)] == [new]
        people.rename(old, "newer")
        assert {issue.number for issue in await all_issues(remote, since=newest.updated_at)} == {old, new}

    async def test_only_those_with_a_label_where_one_is_named(
        self, remote: RemoteIssues, people: TrackerPeople
    ) -> None:
        people.open("plain")
        labelled = people.open("labelled", ("docs",))
        (found,) = await all_issues(remote, label="docs")
        assert (found.number, found.labels) == (labelled, ("docs",))

    async def test_nothing_new_is_reported_by_the_tag_of_the_last_answer(
        self, remote: RemoteIssues, people: TrackerPeople
    ) -> None:
        number = people.open("one")
        page = await remote.page()
        if page.etag:
            assert (await remote.page(etag=page.etag)).unchanged
        people.rename(number, "two")
        again = await remote.page(etag=page.etag)
        assert not again.unchanged
        assert [issue.title for issue in again.issues] == ["two"]

    async def test_details_are_read_by_reference_and_what_is_gone_is_named(
        self, remote: RemoteIssues, people: TrackerPeople
    ) -> None:
        kept, lost = people.open("kept"), people.open("lost")
        references = {issue.number: issue.reference for issue in await all_issues(remote)}
        people.delete(lost)
        found = await remote.details([references[kept], references[lost]])
        assert [(issue.number, issue.detailed) for issue in found.issues] == [(kept, True)]
        assert found.gone == (references[lost],)

    async def test_what_stands_in_the_way_and_what_it_is_a_part_of_are_details(
        self, remote: RemoteIssues, people: TrackerPeople
    ) -> None:
        whole, part, blocker = people.open("whole"), people.open("part"), people.open("blocker")
        people.block(part, blocker)
        people.put_below(part, whole)
        (found,) = (await remote.issue(part)).issues
        assert (found.blocked_by, found.parent) == ((blocker,), whole)

    async def test_an_issue_that_is_not_there_is_reported_so(self, remote: RemoteIssues, people: TrackerPeople) -> None:
        people.open("one")
        try:
            await remote.issue(4711)
        except NotFoundError:
            pass
        else:
            raise AssertionError("it was found")
        assert await remote.pull_requests([4711]) == ()
        assert await remote.pull_request_of("no/such-branch") is None

    async def test_what_it_costs_is_counted(self, remote: RemoteIssues, people: TrackerPeople) -> None:
        people.open("one")
        before = remote.spent
        await remote.page()
        assert remote.spent[0] == before[0] + 1
