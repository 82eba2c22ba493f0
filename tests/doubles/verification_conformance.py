"""What every history, every store of checkouts and every store of results keeps to."""

from genba.domain.errors import NotFoundError
from genba.domain.ports import Checkouts, History, ResultStore
from genba.domain.sessions.evidence import CheckResult, CheckStatus


class HistorySuite:
    """Fixture: `history` has a branch `main`, and a branch `work` with two commits over it; the newest is empty.

    main:  a.txt = "one", old.txt = "old"; work: a.txt = "two", new.txt = "new", and no old.txt.
    """

    async def _ends(self, history: History) -> tuple[str, str]:
        main, work = await history.commit_of("main"), await history.commit_of("work")
        assert main is not None
        assert work is not None
        return main, work

    async def test_a_name_that_is_nothing_has_no_commit(self, history: History) -> None:
        assert await history.commit_of("nothing-such") is None
        assert await history.commit_of("--all") is None

    async def test_branches_begin_where_they_have_a_commit_in_common(self, history: History) -> None:
        main, work = await self._ends(history)
        assert await history.fork_point(main, work) == main

    async def test_it_tells_what_a_branch_changes_as_a_whole(self, history: History) -> None:
        facts = await history.facts(*await self._ends(history))
        assert [(change.status, change.path) for change in facts.changes] == [
            ("M", "a.txt"),
            ("A", "new.txt"),
            ("D", "old.txt"),
        ]
        assert facts.touched == ("a.txt", "new.txt", "old.txt")

    async def test_it_tells_empty_commits_from_work(self, history: History) -> None:
        facts = await history.facts(*await self._ends(history))
        assert [commit.empty for commit in facts.commits] == [True, False]

    async def test_it_reads_both_sides_of_a_change(self, history: History) -> None:
        main, work = await self._ends(history)
        change = (await history.facts(main, work)).changes[0]
        texts = await history.read((change.old_blob, change.new_blob, f"{work}:new.txt", f"{work}:old.txt"))
        assert texts == {change.old_blob: "one", change.new_blob: "two", f"{work}:new.txt": "new"}

    async def test_it_lists_the_files_of_a_commit(self, history: History) -> None:
        main, work = await self._ends(history)
        assert await history.files(main) == ("a.txt", "old.txt")
        assert await history.files(work) == ("a.txt", "new.txt")


class CheckoutsSuite:
    """Fixtures: `checkouts`, and `commit` with a file a.txt; `blob` is the name of some other content."""

    async def test_each_checkout_has_a_folder_of_its_own(self, checkouts: Checkouts, commit: str) -> None:
        first, second = await checkouts.open(commit), await checkouts.open(commit)
        assert first != second
        for folder in (first, second, first):
            await checkouts.close(folder)

    async def test_a_checkout_is_renewed_as_often_as_it_is_needed(self, checkouts: Checkouts, commit: str) -> None:
        folder = await checkouts.open(commit)
        await checkouts.renew(folder, setup=True)
        await checkouts.keep(folder)
        await checkouts.renew(folder)
        await checkouts.renew(folder)
        await checkouts.close(folder)

    async def test_other_files_can_be_laid_over_it(self, checkouts: Checkouts, commit: str, blob: str) -> None:
        folder = await checkouts.open(commit, (("deep/down/b.txt", blob), ("a.txt", blob)))
        await checkouts.close(folder)


class ResultStoreSuite:
    """Fixture: `results` is empty."""

    key = "0123456789abcdef" * 4

    def test_what_is_reusable_is_found_again(self, results: ResultStore) -> None:
        result = CheckResult("tests_pass", CheckStatus.FAILED, "2 failed", "the whole output", 1.5)
        name = results.keep(self.key, result, reusable=True)
        assert results.find(self.key) == result
        assert results.log(name) == "the whole output"

    def test_what_is_not_reusable_has_only_its_log(self, results: ResultStore) -> None:
        result = CheckResult("tests_pass", CheckStatus.ERROR, "no such command", "sh: not found")
        name = results.keep(self.key, result, reusable=False)
        assert results.find(self.key) is None
        assert results.log(name) == "sh: not found"

    def test_a_log_that_is_not_there_is_not_found(self, results: ResultStore) -> None:
        for name in ("0" * 12, "../../etc/passwd"):
            try:
                results.log(name)
            except NotFoundError:
                continue
            raise AssertionError(f"there is a log {name}")
