"""Turns of the merge queue on real git: what lands, what goes back, and what waits."""

import time

import msgspec
import pytest

from genba.domain.errors import GitError
from genba.domain.fleet.merge_queue import MergeHistory, Work
from genba.domain.fleet.records import EntryStatus
from tests.coordination.queue_floor import QueueFloor, Remembered, number
from tests.project import Project


@pytest.fixture
async def floor(project: Project) -> QueueFloor:
    project.write("sum.txt", "0\n")
    project.write("shared.txt", "one\ntwo\nthree\n")
    project.commit("Begin the sum")
    return await QueueFloor.make(project)


async def test_a_verified_branch_lands_as_a_merge_with_its_trailers_and_the_clean_checkout_follows(
    floor: QueueFloor,
) -> None:
    entry = floor.entry(7, {"seven.txt": "7\n"}, title="Add seven")

    report = await floor.run()

    row, tip = floor.row(7), floor.project.git("rev-parse", "main")
    assert (report.merged, row.status, row.landed, report.more) == ((7,), EntryStatus.MERGED, tip, False)
    assert floor.project.git("log", "-1", "--format=%B", "main") == (
        "Merge Add seven (#7)\n\nIssue: 7\nAgent: worker\nSession: worker-7"
    )
    assert floor.project.git("rev-parse", "main^2") == entry.commit
    assert (floor.project.read("seven.txt"), floor.project.git("status", "--porcelain")) == ("7\n", "")
    assert floor.verified == [(7, tip)]


async def test_of_two_conflicting_branches_the_second_goes_back_with_the_paths_and_the_commit_it_conflicts_with(
    floor: QueueFloor,
) -> None:
    floor.entry(1, {"shared.txt": "ONE\ntwo\nthree\n"})
    floor.entry(2, {"shared.txt": "eins\ntwo\nthree\n", "other.txt": "x\n"})

    report = await floor.run()

    assert (report.merged, report.conflict) == ((1,), (2,))
    row = floor.row(2)
    assert (row.paths, row.over) == (("shared.txt",), floor.project.git("rev-parse", "main"))
    assert [task for task, _ in floor.verified] == [1]
    assert [news.kind for news in floor.news] == ["proving", "merged", "conflict"]


async def test_what_is_green_alone_and_red_after_the_merge_of_another_goes_back_with_the_failing_goals(
    floor: QueueFloor,
) -> None:
    floor.entry(1, {**number(1), "sum.txt": "1\n"})
    floor.entry(2, {"sum.txt": "0\n", **number(2, 0), "doc.txt": "x\n"})
    floor.entry(3, number(3, 5))  # alone it is red too; its own verification would have shown it
    before = floor.project.git("rev-parse", "main")

    report = await floor.run()

    assert (report.merged, report.failed) == ((1, 2), (3,))
    row = floor.row(3)
    assert "sum.txt says 1" in row.detail
    assert row.over == floor.project.git("rev-parse", "main")
    assert floor.project.git("rev-parse", "main~2") == before
    assert floor.all_green()


async def test_a_commit_by_hand_in_the_middle_is_noticed_and_what_lands_is_verified_on_top_of_it(
    floor: QueueFloor,
) -> None:
    floor.entry(1, {"one.txt": "1\n"})

    def by_hand() -> None:
        floor.project.write("hand.txt", "by hand\n")
        floor.project.commit("By hand")

    floor.meanwhile = [by_hand]
    report = await floor.run()

    assert (report.merged, report.moved) == ((1,), 1)
    assert floor.log("--first-parent", "-2") == ["Merge Task 1 (#1)", "By hand"]
    assert len(floor.verified) == 2
    assert floor.verified[-1] == (1, floor.project.git("rev-parse", "main"))
    hand = floor.project.git("rev-parse", "--short=7", "main^1")
    assert [news.detail for news in floor.told("moved")] == [f"it was moved to {hand}"]


async def test_a_commit_by_hand_that_makes_it_red_sends_it_back(floor: QueueFloor) -> None:
    floor.entry(1, {**number(1), "sum.txt": "1\n"})

    def by_hand() -> None:
        floor.project.write("n/9", "9\n")
        floor.project.commit("By hand")

    floor.meanwhile = [by_hand]
    report = await floor.run()

    assert (report.failed, report.moved, floor.log("-1")) == ((1,), 1, ["By hand"])


async def test_a_target_that_is_pushed_back_in_the_middle_is_noticed_too(floor: QueueFloor) -> None:
    floor.project.write("wrong.txt", "x\n")
    floor.project.commit("To be taken back")
    floor.entry(1, {"one.txt": "1\n"}, base="main~1")

    floor.meanwhile = [lambda: floor.project.git("reset", "-q", "--hard", "main~1")]
    report = await floor.run()

    assert (report.merged, report.moved) == ((1,), 1)
    assert floor.log("--first-parent", "-2") == ["Merge Task 1 (#1)", "Begin the sum"]


async def test_a_target_that_never_stands_still_is_left_for_the_next_turn(floor: QueueFloor) -> None:
    floor.entry(1, {"one.txt": "1\n"})
    floor.meanwhile = [lambda: floor.project.commit("Again by hand") for _ in range(5)]

    report = await floor.run()
    assert (report.merged, report.moved, floor.status(1)) == ((), 5, EntryStatus.QUEUED)

    assert (await floor.run()).merged == (1,)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_a_target_that_was_deleted_holds_everything_up_and_says_so(floor: QueueFloor, when: str) -> None:
    floor.project.git("switch", "-q", "--detach")
    floor.entry(1, {"one.txt": "1\n"})
    floor.entry(2, {"two.txt": "1\n"})
    tip = floor.project.git("rev-parse", "main")

    def delete() -> None:
        floor.project.git("branch", "-q", "-D", "main")

    if when == "before":
        delete()
    else:
        floor.meanwhile = [delete]
    report = await floor.run()

    assert report.stuck == (1, 2)
    assert floor.row(1).detail.startswith('the branch "main" is gone\nhint: ')

    floor.project.git("branch", "main", tip)
    assert (await floor.run()).merged == (1, 2)


async def test_a_checkout_with_changes_is_in_the_way_until_it_is_clean(floor: QueueFloor) -> None:
    floor.entry(1, {"one.txt": "1\n"})
    floor.entry(2, {"two.txt": "2\n"})
    floor.project.write("shared.txt", "half a thought\n")
    before = floor.project.git("rev-parse", "main")

    report = await floor.run()

    assert (report.stuck, report.merged, report.more) == ((1, 2), (), False)
    assert "has uncommitted changes (shared.txt)\nhint: commit or stash" in floor.row(2).detail
    assert floor.project.git("rev-parse", "main") == before
    assert floor.project.read("shared.txt") == "half a thought\n"

    floor.project.git("checkout", "-q", "shared.txt")
    assert (await floor.run()).merged == (1, 2)
    assert floor.row(1).detail == ""


@pytest.mark.parametrize("batch", [1, 8])
async def test_a_file_in_the_way_of_one_merge_delays_no_other(floor: QueueFloor, batch: int) -> None:
    for task in range(1, 7):
        floor.entry(task, {f"{task}.txt": f"{task}\n"})
    floor.project.write("4.txt", "mine\n")

    report = await floor.run(batch=batch)

    assert (report.stuck, sorted(report.merged)) == ((4,), [1, 2, 3, 5, 6])
    assert "has files that the merge would overwrite (4.txt)\nhint: move those files away" in floor.row(4).detail
    assert floor.project.read("4.txt") == "mine\n"

    (floor.project.root / "4.txt").unlink()
    assert (await floor.run(batch=batch)).merged == (4,)
    assert floor.project.git("status", "--porcelain") == ""


@pytest.mark.parametrize("history", list(MergeHistory))
async def test_an_unrecorded_merge_is_recognised_by_its_own_commit(floor: QueueFloor, history: MergeHistory) -> None:
    for task in range(1, 4):
        floor.entry(task, {f"{task}.txt": f"{task}\n"})
    await floor.run(history=history)
    landed = floor.row(1).landed
    floor.board.rows[1] = msgspec.structs.replace(floor.board.rows[1], status=EntryStatus.QUEUED, landed="")

    assert (await floor.run(history=history)).merged == (1,)

    assert floor.row(1).landed == landed
    assert landed != floor.project.git("rev-parse", "main")


async def test_work_merged_elsewhere_meanwhile_is_not_sent_back(floor: QueueFloor) -> None:
    entry = floor.entry(1, {**number(1), "one.txt": "1\n"})  # red: the sum is wrong
    floor.meanwhile = [lambda: floor.project.git("merge", "-q", "--no-ff", "-m", "Merge it", entry.branch)]

    report = await floor.run()

    assert (report.merged, report.failed) == ((1,), ())
    assert floor.row(1).landed == floor.project.git("rev-parse", "main")


async def test_a_rebase_of_the_target_is_waited_for(floor: QueueFloor) -> None:
    project = floor.project
    project.git("switch", "-qc", "side")
    project.write("shared.txt", "one\nzwei\nthree\n")
    project.commit("On the side")
    project.git("switch", "-q", "main")
    project.write("shared.txt", "one\ndeux\nthree\n")
    project.commit("On main")
    floor.entry(1, {"one.txt": "1\n"})
    with pytest.raises(Exception, match="rebase"):
        project.git("rebase", "-q", "side")

    assert (await floor.run()).stuck == (1,)
    assert "main is in the middle of a rebase" in floor.row(1).detail

    project.git("rebase", "--abort")
    assert (await floor.run()).merged == (1,)


async def test_a_branch_that_moved_after_it_was_verified_leaves_the_queue(floor: QueueFloor) -> None:
    old = floor.entry(1, {"one.txt": "1\n"})
    floor.project.git("branch", "-q", "-f", old.branch, "main")
    floor.entry(2, {"two.txt": "2\n"})
    floor.project.git("branch", "-q", "-D", "genba/2-work")

    report = await floor.run()

    tip = floor.project.git("rev-parse", "--short=7", "main")
    assert report.withdrawn == (1, 2)
    assert [floor.row(task).detail for task in (1, 2)] == [
        f"genba/1-work has moved to {tip}",
        "genba/2-work is gone",
    ]
    assert floor.verified == []


async def test_a_task_that_is_given_up_while_it_is_verified_lands_nothing(floor: QueueFloor) -> None:
    floor.entry(1, {"one.txt": "1\n"})
    floor.entry(2, {"two.txt": "2\n"})
    floor.meanwhile = [lambda: floor.board.withdraw(1)]

    report = await floor.run()

    assert (report.merged, floor.status(1)) == ((2,), EntryStatus.WITHDRAWN)
    assert "one.txt" not in floor.project.git("ls-tree", "--name-only", "main")


async def test_work_merged_by_hand_is_merged(floor: QueueFloor) -> None:
    floor.entry(1, {"one.txt": "1\n"})
    floor.project.git("merge", "-q", "--no-ff", "-m", "By hand", "genba/1-work")

    report = await floor.run()

    assert (report.merged, floor.row(1).landed) == ((1,), floor.project.git("rev-parse", "main"))
    assert floor.log("-1") == ["By hand"]


async def test_machinery_that_breaks_is_never_red_and_does_not_hold_up_the_others(floor: QueueFloor) -> None:
    floor.entry(1, {"one.txt": "1\n"})
    floor.entry(2, {"two.txt": "2\n"})
    floor.machinery_breaks = {1}

    report = await floor.run()
    assert (report.stuck, report.merged) == ((1,), (2,))
    assert floor.row(1).detail == "verification: the machine broke"

    floor.machinery_breaks = set()
    assert (await floor.run()).merged == (1,)


async def test_a_commit_that_git_does_not_know_is_stuck_with_what_git_says(floor: QueueFloor) -> None:
    floor.project.git("switch", "-q", "--orphan", "alien")
    alien = floor.project.commit("From elsewhere")
    floor.project.git("switch", "-q", "main")
    floor.project.git("branch", "-q", "genba/1-work", alien)
    floor.queue(1, alien)
    floor.entry(2, {"two.txt": "2\n"})

    report = await floor.run()

    assert (report.stuck, report.merged) == ((1,), (2,))
    assert "unrelated histories" in floor.row(1).detail


async def test_a_batch_with_one_red_is_bisected_and_the_other_four_land(floor: QueueFloor) -> None:
    for task in (1, 2, 3, 4, 5):
        floor.entry(task, number(task, 7 if task == 4 else 0))

    report = await floor.run(batch=5)

    assert (report.merged, report.failed) == ((1, 2, 3, 5), (4,))
    assert floor.log("--first-parent", "-5") == [
        "Merge Task 5 (#5)", "Merge Task 3 (#3)", "Merge Task 2 (#2)", "Merge Task 1 (#1)", "Begin the sum",
    ]  # fmt: skip
    tips = {floor.project.git("rev-parse", f"{commit}^{{tree}}") for _, commit in floor.verified}
    assert len(tips) == 4, "all five, and again after one to three landed; one to three; four; five"
    assert floor.judge("main") is None


async def test_a_batch_is_held_to_the_goals_of_each_task_with_nothing_but_its_own_changes(floor: QueueFloor) -> None:
    for task in (1, 2, 3):
        floor.entry(task, {f"{task}.txt": "x\n"})

    report = await floor.run(batch=3)

    assert report.merged == (1, 2, 3)
    tree = floor.project.git("rev-parse", "main^{tree}")
    for task, commit in floor.verified:
        assert floor.project.git("rev-parse", f"{commit}^{{tree}}") == tree
        assert floor.project.git("diff", "--name-only", f"{commit}^1", commit) == f"{task}.txt"
    assert [task for task, _ in floor.verified] == [1, 2, 3]


async def test_a_batch_with_a_conflict_lands_without_it(floor: QueueFloor) -> None:
    floor.entry(1, {"shared.txt": "ONE\ntwo\nthree\n"})
    floor.entry(2, {"shared.txt": "eins\ntwo\nthree\n"})
    floor.entry(3, {"three.txt": "3\n"})

    report = await floor.run(batch=3)

    assert (report.merged, report.conflict) == ((1, 3), (2,))
    assert floor.row(2).over == floor.project.git("rev-parse", "main")


async def test_who_conflicts_only_with_a_red_one_of_its_batch_lands(floor: QueueFloor) -> None:
    floor.entry(1, {"shared.txt": "ONE\ntwo\nthree\n", **number(1, 3)})
    floor.entry(2, {"shared.txt": "eins\ntwo\nthree\n"})

    report = await floor.run(batch=2)

    assert (report.failed, report.merged) == ((1,), (2,))


async def test_those_that_land_together_were_verified_one_by_one_and_who_does_not_fit_is_left_out(
    floor: QueueFloor,
) -> None:
    base = floor.project.git("rev-parse", "main")
    for task in (1, 2, 3):
        floor.entry(task, {f"{task}.txt": "x\n"})
    floor.entry(4, {"3.txt": "another\n"})
    floor.entry(5, {**number(1), "sum.txt": "7\n"})
    floor.entry(6, {"6.txt": "x\n"})

    report = await floor.run()

    assert (report.merged, report.conflict, report.failed) == ((1, 2, 3, 6), (4,), (5,))
    landed = floor.project.git("rev-list", "--first-parent", "--reverse", f"{base}..main").splitlines()
    assert [commit for task, commit in floor.verified if task != 5] == landed
    assert [floor.row(task).landed for task in (1, 2, 3, 6)] == landed
    assert (floor.row(4).over, floor.row(5).over) == (landed[2], landed[2])


async def test_each_lands_before_the_next_one_is_looked_at_where_goals_take_their_time(floor: QueueFloor) -> None:
    before = floor.project.git("rev-parse", "main")
    for task in range(1, 5):
        floor.entry(task, {f"{task}.txt": "x\n"})
    seen: list[str] = []

    def takes_its_time() -> None:
        seen.append(floor.project.git("rev-parse", "main"))
        ends = time.monotonic() + 0.12
        while time.monotonic() < ends:
            floor.project.git("rev-parse", "main")

    floor.meanwhile = [takes_its_time] * 4

    report = await floor.run()

    landed = floor.project.git("rev-list", "--first-parent", "--reverse", f"{before}..main").splitlines()
    assert report.merged == (1, 2, 3, 4)
    assert seen == [before, *landed[:-1]]


async def test_what_was_found_on_top_of_one_that_could_not_land_is_looked_at_again(floor: QueueFloor) -> None:
    for task in (1, 2):
        floor.entry(task, {f"{task}.txt": "x\n"})
    floor.entry(3, {"2.txt": "another\n"})

    def withdrawn() -> None:
        floor.board.withdraw(2)

    floor.meanwhile = [lambda: None, withdrawn]

    report = await floor.run()

    assert (report.merged, report.conflict) == ((1, 3), ())


async def test_fifty_branches_land_in_the_order_in_which_they_came(floor: QueueFloor) -> None:
    base = floor.project.git("rev-parse", "main")
    for task in range(1, 51):
        floor.entry(task, {f"{task}.txt": "x\n"}, base=base)

    reports = [await floor.run(most_taken=2)]
    while reports[-1].more:
        reports.append(await floor.run())

    assert [task for report in reports for task in report.merged] == list(range(1, 51))
    assert len(reports) > 1
    assert floor.project.git("rev-list", "--count", "--first-parent", f"{base}..main") == "50"
    assert floor.project.git("status", "--porcelain") == ""


async def test_a_turn_after_a_death_ends_with_what_the_dead_one_had_in_hand(floor: QueueFloor) -> None:
    for task in range(1, 5):
        floor.entry(task, {f"{task}.txt": "x\n"})
    floor.board.take([1])

    reports = [await floor.run(), await floor.run()]

    assert [(report.merged, report.more) for report in reports] == [((1,), True), ((2, 3, 4), False)]


async def test_each_entry_is_tried_once_in_a_turn(floor: QueueFloor) -> None:
    floor.entry(1, {"one.txt": "1\n"})
    floor.machinery_breaks = {1}

    await floor.run()

    assert len(floor.verified) == 1


async def test_a_turn_with_nothing_to_do_does_nothing(floor: QueueFloor) -> None:
    steps = Remembered()

    report = await floor.run(steps=steps)

    assert (report.merged, report.more, steps.names, floor.news) == ((), False, ["take 1"], [])


async def test_a_linear_history_has_one_commit_per_task_by_its_author_and_keeps_the_commits_of_the_branch(
    floor: QueueFloor,
) -> None:
    first = floor.branch(1, {"one.txt": "1\n"}, subject="Write one")
    tree = floor.project.root.parent / "again"
    floor.project.git("worktree", "add", "-q", str(tree), "genba/1-work")
    (tree / "one.txt").write_text("one\n")
    floor.project.git("commit", "-qam", "Say it in words", "--author=Ann <ann@agents.invalid>", cwd=tree)
    commit = floor.project.git("rev-parse", "HEAD", cwd=tree)
    floor.project.git("worktree", "remove", str(tree))
    floor.queue(1, commit, title="Add one\n\nGenba-Commit: nonsense")
    floor.entry(2, {"two.txt": "2\n"})

    report = await floor.run(history=MergeHistory.LINEAR)

    assert report.merged == (1, 2)
    assert floor.project.git("rev-list", "--merges", "main") == ""
    assert floor.project.git("log", "-1", "--format=%an <%ae>%n%B", "main~1") == (
        "Ann <ann@agents.invalid>\n"
        "Add one Genba-Commit: nonsense (#1)\n\n* Write one\n* Say it in words\n\n"
        f"Issue: 1\nAgent: worker\nSession: worker-1\nGenba-Commit: {commit}"
    )
    floor.project.git("branch", "-q", "-D", "genba/1-work")
    kept = floor.project.git("for-each-ref", "--format=%(refname)", "--contains", first)
    assert kept == f"refs/genba/landed/1-{commit[:12]}"
    work = Work(task=1, commit=commit, subject="")
    assert await floor.target.landed("main", work, MergeHistory.LINEAR) == floor.row(1).landed
    assert floor.all_green()


async def test_work_that_changes_nothing_any_more_leaves_no_empty_commit_in_a_linear_history(floor: QueueFloor) -> None:
    floor.entry(1, {"one.txt": "1\n"})
    floor.entry(2, {"one.txt": "1\n"})

    report = await floor.run(history=MergeHistory.LINEAR)

    assert (report.merged, floor.row(2).landed) == ((1, 2), floor.row(1).landed)
    assert floor.log("-2") == ["Task 1 (#1)", "Begin the sum"]


@pytest.mark.parametrize("left", [EntryStatus.STUCK, EntryStatus.MERGING])
async def test_an_unrecorded_merge_is_found_on_the_target(floor: QueueFloor, left: EntryStatus) -> None:
    """A push whose answer was lost. By now others have changed the same lines, so it would be in conflict."""
    entry = floor.entry(1, {"shared.txt": "ONE\ntwo\nthree\n"})
    await floor.run(history=MergeHistory.LINEAR)
    landed = floor.row(1).landed
    floor.project.write("shared.txt", "eins\ntwo\nthree\n")
    floor.project.commit("By hand")
    floor.board.rows[entry.id] = msgspec.structs.replace(entry, status=left)

    assert (await floor.run(history=MergeHistory.LINEAR)).merged == (1,)

    assert (floor.row(1).landed, floor.log("-1")) == (landed, ["By hand"])


async def test_a_word_of_an_agent_about_another_work_does_not_make_it_landed(floor: QueueFloor) -> None:
    victim = floor.branch(2, {"two.txt": "2\n"})
    liar = floor.branch(1, {"one.txt": "1\n"}, subject=f"Genba-Commit: {victim}")
    floor.queue(1, liar)
    await floor.run(history=MergeHistory.LINEAR)

    work = Work(task=2, commit=victim, subject="")
    assert await floor.target.landed("main", work, MergeHistory.LINEAR) == ""


async def test_an_entry_of_another_target_is_left_alone(floor: QueueFloor) -> None:
    floor.project.git("branch", "genba/9-parent", "main")
    floor.entry(1, {"one.txt": "1\n"}, target="genba/9-parent")
    floor.entry(2, {"two.txt": "2\n"})

    assert (await floor.run(target="genba/9-parent")).merged == (1,)

    assert floor.status(2) is EntryStatus.QUEUED
    assert floor.log("-1", ref="genba/9-parent") == ["Merge Task 1 (#1)"]
    assert floor.log("-1") == ["Begin the sum"]


async def test_a_target_that_a_person_works_on_is_waited_for(floor: QueueFloor) -> None:
    from genba.connections.git.repository.locks import held

    floor.project.git("branch", "genba/9-parent", "main")
    floor.entry(1, {"one.txt": "1\n"}, target="genba/9-parent")

    async with held(floor.target.layout.branch_lock("genba/9-parent"), "worker-9"):
        report = await floor.run(target="genba/9-parent")

    assert report.stuck == (1,)
    assert "genba/9-parent is being worked on by worker-9" in floor.row(1).detail
    assert (await floor.run(target="genba/9-parent")).merged == (1,)


async def test_a_judge_that_raises_leaves_the_entry_stuck_with_the_way_on(floor: QueueFloor) -> None:
    floor.entry(1, {"one.txt": "1\n"})

    def broken() -> None:
        raise GitError("no space for a checkout", hint="genba gc")

    floor.meanwhile = [broken]

    assert (await floor.run()).stuck == (1,)
    assert floor.row(1).detail == "no space for a checkout\nhint: genba gc"
