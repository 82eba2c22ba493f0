import asyncio
import subprocess
from pathlib import Path

import pytest

from genba.domain.fleet.merge_queue import MergeHistory
from genba.domain.fleet.records import EntryStatus
from tests.coordination.queue_floor import QueueFloor, clone
from tests.project import Project


@pytest.fixture
def remote(project: Project, tmp_path: Path) -> Path:
    path = tmp_path / "shared.git"
    project.write("sum.txt", "0\n")
    project.commit("Begin the sum")
    subprocess.run(["git", "clone", "-q", "--bare", str(project.root), str(path)], check=True)
    return path


async def _host(project: Project, remote: Path, name: str) -> QueueFloor:
    return await QueueFloor.make(clone(project, remote, remote.parent / name / "repository"), remote="origin")


def _main(remote: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "--git-dir", str(remote), *words], check=True, capture_output=True, text=True
    )  # fmt: skip
    return done.stdout.strip()


async def test_work_lands_on_the_remote_and_the_branch_and_the_checkout_here_follow(
    project: Project, remote: Path
) -> None:
    host = await _host(project, remote, "a")
    host.entry(1, {"one.txt": "1\n"})

    report = await host.run()

    assert report.merged == (1,)
    assert _main(remote, "rev-parse", "main") == host.project.git("rev-parse", "main") == host.row(1).landed
    assert (host.project.read("one.txt"), host.project.git("status", "--porcelain")) == ("1\n", "")


@pytest.mark.parametrize("history", list(MergeHistory))
async def test_two_hosts_that_race_land_everything_once(project: Project, remote: Path, history: MergeHistory) -> None:
    hosts = [await _host(project, remote, name) for name in "ab"]
    for number, host in enumerate(hosts):
        for task in range(1, 6):
            host.entry(10 * number + task, {f"{number}-{task}.txt": "x\n"})

    async def until_empty(host: QueueFloor) -> None:
        while host.board.entries():
            await host.run(history=history)

    await asyncio.wait_for(asyncio.gather(*map(until_empty, hosts)), 300)

    merged = {row.task: row.landed for host in hosts for row in host.board.rows.values()}
    landed = _main(remote, "rev-list", "--first-parent", "main").splitlines()
    assert sorted(merged) == [1, 2, 3, 4, 5, 11, 12, 13, 14, 15]
    assert set(landed[:10]) == set(merged.values())
    assert len(landed) == 12
    names = _main(remote, "ls-tree", "--name-only", "main").split()
    assert names == sorted(["README.md", "sum.txt", *(f"{n}-{t}.txt" for n in (0, 1) for t in range(1, 6))])


async def test_a_push_of_another_person_in_the_middle_is_noticed(project: Project, remote: Path) -> None:
    host, other = await _host(project, remote, "a"), await _host(project, remote, "b")
    host.entry(1, {"one.txt": "1\n"})

    def pushed() -> None:
        other.project.write("hand.txt", "x\n")
        other.project.commit("By hand")
        other.project.git("push", "-q", "origin", "main")

    host.meanwhile = [pushed]
    report = await host.run()

    assert (report.merged, report.moved, len(host.told("moved"))) == ((1,), 1, 1)
    log = _main(remote, "log", "--first-parent", "--format=%s", "-2", "main").splitlines()
    assert log == ["Merge Task 1 (#1)", "By hand"]


async def test_a_remote_that_was_forced_back_in_the_middle_is_noticed(project: Project, remote: Path) -> None:
    host = await _host(project, remote, "a")
    host.entry(1, {"one.txt": "1\n"}, base="main~1")
    host.meanwhile = [lambda: _main(remote, "update-ref", "refs/heads/main", "main~1")]

    report = await host.run()

    assert (report.merged, report.moved) == ((1,), 1)
    log = _main(remote, "log", "--first-parent", "--format=%s", "main").splitlines()
    assert log == ["Merge Task 1 (#1)", "Begin"]
    assert host.project.git("log", "-1", "--format=%s", "main") == "Begin the sum", "its own commit is not dropped"


async def test_a_checkout_with_changes_does_not_hold_up_the_remote(project: Project, remote: Path) -> None:
    host = await _host(project, remote, "a")
    host.entry(1, {"one.txt": "1\n"})
    host.project.write("sum.txt", "half a thought\n")
    before = host.project.git("rev-parse", "main")

    assert (await host.run()).merged == (1,)

    assert "has uncommitted changes (sum.txt)" in host.row(1).detail
    assert host.project.git("rev-parse", "main") == before
    assert host.project.read("sum.txt") == "half a thought\n"


async def test_a_remote_that_refuses_leaves_the_entry_stuck_with_its_words(project: Project, remote: Path) -> None:
    host = await _host(project, remote, "a")
    host.entry(1, {"one.txt": "1\n"})
    hook = remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)

    report = await host.run()
    assert report.stuck == (1,)
    assert "origin did not take main: " in host.row(1).detail
    assert "pre-receive hook declined" in host.row(1).detail

    hook.unlink()
    assert (await host.run()).merged == (1,)


async def test_a_remote_that_cannot_be_reached_is_waited_for(project: Project, remote: Path) -> None:
    host = await _host(project, remote, "a")
    host.entry(1, {"one.txt": "1\n"})
    url = host.project.git("remote", "get-url", "origin")
    host.project.git("remote", "set-url", "origin", f"{url}-away")

    report = await host.run()
    assert report.stuck == (1,)
    assert "main could not be fetched from origin" in host.row(1).detail

    host.project.git("remote", "set-url", "origin", url)
    assert (await host.run()).merged == (1,)


async def test_a_target_that_the_remote_does_not_have_any_more_is_gone(project: Project, remote: Path) -> None:
    host = await _host(project, remote, "a")
    host.entry(1, {"one.txt": "1\n"})
    _main(remote, "branch", "-m", "main", "trunk")

    assert (await host.run()).stuck == (1,)
    assert 'the branch "main" is gone' in host.row(1).detail
    assert _main(remote, "for-each-ref", "--format=%(refname)", "refs/heads") == "refs/heads/trunk"


async def test_a_branch_of_our_own_that_is_not_on_the_remote_yet_is_put_there(project: Project, remote: Path) -> None:
    host = await _host(project, remote, "a")
    host.project.git("branch", "genba/9-parent", "main")
    host.entry(1, {"one.txt": "1\n"}, target="genba/9-parent")

    assert (await host.run(target="genba/9-parent")).merged == (1,)

    assert _main(remote, "rev-parse", "genba/9-parent") == host.project.git("rev-parse", "genba/9-parent")


async def test_work_that_another_host_has_shared_is_fetched_and_lands(project: Project, remote: Path) -> None:
    author, host = await _host(project, remote, "a"), await _host(project, remote, "b")
    commit = author.branch(1, {"one.txt": "1\n"})
    author.project.git("push", "-q", "origin", f"{commit}:refs/genba/sessions/worker-1")
    host.queue(1, commit)
    host.project.git("branch", "genba/1-work", "main")  # left behind from an earlier attempt

    assert (await host.run()).merged == (1,)

    assert _main(remote, "log", "-1", "--format=%P", "main").split()[1] == commit


async def test_work_that_another_host_could_not_share_waits_until_it_did(project: Project, remote: Path) -> None:
    author, host = await _host(project, remote, "a"), await _host(project, remote, "b")
    commit = author.branch(1, {"one.txt": "1\n"})
    host.queue(1, commit)
    host.entry(2, {"two.txt": "2\n"})

    report = await host.run()
    assert (report.merged, report.stuck, report.withdrawn) == ((2,), (1,), ())
    assert f"{commit[:7]} of genba/1-work is not here, and origin does not have it" in host.row(1).detail

    author.project.git("push", "-q", "origin", f"{commit}:refs/genba/sessions/worker-1")
    assert (await host.run()).merged == (1,)


async def test_work_that_its_author_has_changed_since_is_stale_on_every_host(project: Project, remote: Path) -> None:
    author, host = await _host(project, remote, "a"), await _host(project, remote, "b")
    commit = author.branch(1, {"one.txt": "1\n"})
    other = author.branch(2, {"two.txt": "2\n"})
    author.project.git("push", "-q", "origin", f"{other}:refs/genba/sessions/worker-1", f"{commit}:refs/genba/old")
    host.project.git("fetch", "-q", "origin", "refs/genba/old")
    host.queue(1, commit)

    assert (await host.run()).withdrawn == (1,)
    assert host.status(1) is EntryStatus.WITHDRAWN


async def test_a_linear_history_shares_the_commits_of_the_branch_too(project: Project, remote: Path) -> None:
    host = await _host(project, remote, "a")
    entry = host.entry(1, {"one.txt": "1\n"})

    assert (await host.run(history=MergeHistory.LINEAR)).merged == (1,)

    assert _main(remote, "rev-parse", f"refs/genba/landed/1-{entry.commit[:12]}") == entry.commit
