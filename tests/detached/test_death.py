import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from genba.connections.detached.adapter import end_all
from genba.domain.errors import AgentUnavailable, DiskFullError
from genba.domain.events import Notice
from tests.bubblewrap import needs_bubblewrap
from tests.detached.conftest import MakePost
from tests.detached.posts import Post, is_alive, living, when
from tests.project import Project, ordinary_environment, until
from tests.sandbox.hostile_runs import settle

ROOT = Path(__file__).parents[2]
HOLD = "echo early; until test -e go; do sleep 0.02; done; echo late"
"""An agent that works until the file `go` is in its working tree."""

linux = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="not run: there is no /proc here")


def go(post: Post) -> None:
    post.place("go")


def all_messages(post: Post) -> bool:
    newest = post.question().newest()
    return newest is not None and int(newest.offset.read_text() or "0") == newest.output.stat().st_size


def a_word() -> str:
    return f"8{os.getpid()}.{os.urandom(3).hex()}".translate(str.maketrans("abcdef", "123456"))


@contextmanager
def worker(post: Post, project: Project, grace_seconds: float = 60.0) -> Iterator["subprocess.Popen[str]"]:
    """Another process that asks the first question of the run."""
    memory = project.root.parent / "memory.json"
    memory.write_bytes(post.memory(project.root))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.detached.worker", str(memory), str(grace_seconds)],
        cwd=ROOT,
        env=ordinary_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def hears(process: "subprocess.Popen[str]", *wanted: str) -> list[str]:
    """The lines up to the last one that is waited for."""
    assert process.stdout is not None
    lines: list[str] = []
    left = list(wanted)
    while left:
        line = process.stdout.readline().rstrip("\n")
        assert line, f"the worker ended before it heard {left}: {lines}"
        lines.append(line)
        if left[0] in line:
            left.pop(0)
    return lines


def agent(project: Project, command: str, sandboxed: bool = False) -> None:
    if sandboxed:
        needs_bubblewrap()
        settle(project, kind="bubblewrap")
    project.agent(adapter={"type": "custom", "command": command})


@linux
@pytest.mark.parametrize("sandboxed", [False, True], ids=["plain", "bubblewrap"])
@pytest.mark.parametrize("with_fork_server", [False, True], ids=["worker", "worker and nursery"])
async def test_a_killed_worker_leaves_its_agent_to_the_next_one(
    project: Project, posts: MakePost, sandboxed: bool, with_fork_server: bool
) -> None:
    agent(project, HOLD, sandboxed)
    post = await posts()
    with worker(post, project) as first:
        output = hears(first, "fork_server", "started", "early")
        until(lambda: all_messages(post))
        if with_fork_server:
            os.kill(int(output[0].split()[1]), signal.SIGKILL)
        first.kill()
        first.wait()
    supervisor = post.supervisor()
    assert is_alive(supervisor)
    asked = asyncio.create_task(post.put())
    await when(lambda: post.question().is_watched())
    go(post)
    reply = await asked
    assert reply.text.split() == ["early", "late"]
    assert post.lines == [("stdout", "late")]
    assert post.question().starts() == 1
    until(lambda: not is_alive(supervisor))


@linux
async def test_a_fork_server_that_is_killed_is_replaced_and_no_agent_is_affected(
    project: Project, posts: MakePost
) -> None:
    agent(project, HOLD)
    post = await posts()
    asked = asyncio.create_task(post.put())
    await when(lambda: ("stdout", "early") in post.lines)
    old = post.fork_server.process
    assert old is not None
    os.kill(old, signal.SIGKILL)
    go(post)
    assert (await asked).text.split() == ["early", "late"]
    assert post.question().starts() == 1
    assert (await post.put(2)).text.split() == ["early", "late"]
    assert post.fork_server.process != old


@linux
@pytest.mark.parametrize("sandboxed", [False, True], ids=["plain", "bubblewrap"])
async def test_a_killed_supervisor_leaves_nothing_and_the_question_is_put_again(
    project: Project, posts: MakePost, sandboxed: bool
) -> None:
    word = a_word()
    hide = f"(setsid env -i sleep {word} >/dev/null 2>&1 &) ; sleep {word} & echo early"
    agent(project, f"test -e go || {{ {hide}; wait; }}; echo late", sandboxed)
    post = await posts()
    asked = asyncio.create_task(post.put())
    await when(lambda: ("stdout", "early") in post.lines and len(living(word)) >= 2)
    before = living(word)
    go(post)
    os.kill(post.supervisor(), signal.SIGKILL)
    assert (await asked).text == "late\n"
    assert post.question().starts() == 2
    assert [process for process in before if is_alive(process)] == []
    assert living(word) == []


@linux
@pytest.mark.parametrize("sandboxed", [False, True], ids=["plain", "bubblewrap"])
async def test_a_supervisor_that_dies_after_its_worker_leaves_nothing_either(
    project: Project, posts: MakePost, sandboxed: bool
) -> None:
    word = a_word()
    agent(project, f"(setsid env -i sleep {word} >/dev/null 2>&1 &) ; sleep {word} & echo early; wait", sandboxed)
    post = await posts()
    with worker(post, project) as first:
        output = hears(first, "fork_server", "started", "early")
        until(lambda: len(living(word)) >= 2)
    fork_server = int(output[0].split()[1])
    assert is_alive(fork_server)
    os.kill(post.supervisor(), signal.SIGKILL)
    until(lambda: living(word) == [])
    until(lambda: not is_alive(fork_server))


@linux
@pytest.mark.parametrize("sandboxed", [False, True], ids=["plain", "bubblewrap"])
async def test_when_everybody_dies_at_once_the_next_worker_sweeps_and_asks_again(
    project: Project, posts: MakePost, sandboxed: bool
) -> None:
    word = a_word()
    agent(project, f"test -e go || {{ sleep {word} & echo early; wait; }}; echo late", sandboxed)
    post = await posts()
    with worker(post, project) as first:
        output = hears(first, "fork_server", "started", "early")
        until(lambda: living(word))
        for process in (first.pid, int(output[0].split()[1]), post.supervisor()):
            os.kill(process, signal.SIGKILL)
    go(post)
    assert (await post.put()).text == "late\n"
    assert post.question().starts() == 2
    until(lambda: living(word) == [])


@linux
async def test_a_daemon_of_a_supervisor_that_died_after_its_fork_server_is_ended_by_the_worker(
    project: Project, posts: MakePost
) -> None:
    word = a_word()
    hide = f"(setsid env -i sleep {word} >/dev/null 2>&1 &) ; sleep {word} & echo early"
    agent(project, f"test -e go || {{ {hide}; wait; }}; echo late")
    post = await posts()
    with worker(post, project) as first:
        output = hears(first, "fork_server", "started", "early")
        until(lambda: len(living(word)) >= 2)
        fork_server = int(output[0].split()[1])
        os.kill(fork_server, signal.SIGKILL)
        until(lambda: not is_alive(fork_server))
        go(post)
        os.kill(post.supervisor(), signal.SIGKILL)
        hears(first, "reply ['late']")
    assert post.question().starts() == 2
    assert living(word) == []


@linux
async def test_an_agent_that_no_one_watches_is_suspended_after_the_grace_time(
    project: Project, posts: MakePost
) -> None:
    word = a_word()
    agent(project, f"test -e go || {{ sleep {word} & echo early; wait; }}; echo late")
    post = await posts()
    with worker(post, project, grace_seconds=0.5) as first:
        hears(first, "started", "early")
        until(lambda: living(word))
    until(lambda: living(word) == [])
    until(lambda: not post.question().is_held())
    newest = post.question().newest()
    assert newest is not None
    result = newest.result()
    assert result is not None
    assert result.suspended == "no worker watched it for 0.5 s"
    go(post)
    assert (await post.put()).text == "late\n"
    assert post.question().starts() == 2


@linux
async def test_an_agent_that_is_watched_outlives_any_grace_time(project: Project, posts: MakePost) -> None:
    agent(project, HOLD)
    post = await posts()
    asked = asyncio.create_task(post.put(adapter=post.adapter(grace_seconds=0.1)))
    await when(lambda: ("stdout", "early") in post.lines)
    since = asyncio.get_running_loop().time()
    await when(lambda: asyncio.get_running_loop().time() - since > 1.0)
    go(post)
    assert (await asked).text.split() == ["early", "late"]
    assert post.question().starts() == 1


@linux
@pytest.mark.parametrize("sandboxed", [False, True], ids=["plain", "bubblewrap"])
async def test_a_cancelled_question_suspend_its_agent_with_everything(
    project: Project, posts: MakePost, sandboxed: bool
) -> None:
    word = a_word()
    agent(project, f"(setsid env -i sleep {word} >/dev/null 2>&1 &) ; sleep {word} & echo early; wait", sandboxed)
    post = await posts()
    asked = asyncio.create_task(post.put())
    await when(lambda: ("stdout", "early") in post.lines and len(living(word)) >= 2)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert living(word) == []
    assert not post.question().is_held()
    newest = post.question().newest()
    assert newest is not None
    result = newest.result()
    assert result is not None
    assert result.suspended == "it was stopped"


@linux
async def test_a_question_that_is_cancelled_while_its_supervisor_starts_leaves_none(
    project: Project, posts: MakePost
) -> None:
    word = a_word()
    agent(project, f"sleep {word}")
    post = await posts()
    asked = asyncio.create_task(post.put())
    await when(post.question().path.exists)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert not post.question().is_held()
    assert living(word) == []


@linux
async def test_a_supervisor_that_does_not_listen_is_killed_in_the_end(project: Project, posts: MakePost) -> None:
    word = a_word()
    agent(project, f"sleep {word} & echo early; wait")
    post = await posts()
    adapter = post.adapter()
    adapter.suspending_seconds = 0.2
    asked = asyncio.create_task(post.put(adapter=adapter))
    await when(lambda: ("stdout", "early") in post.lines and living(word))
    os.kill(post.supervisor(), signal.SIGSTOP)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert not post.question().is_held()
    until(lambda: living(word) == [])


@linux
async def test_who_only_looks_away_leaves_the_agent_at_work(project: Project, posts: MakePost) -> None:
    agent(project, HOLD)
    post = await posts()
    adapter = post.adapter()
    adapter.suspend_on_cancel = False
    asked = asyncio.create_task(post.put(adapter=adapter))
    await when(lambda: ("stdout", "early") in post.lines)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert post.question().is_held()
    assert await adapter.processes.sweep(post.run) == 0
    again = asyncio.create_task(post.put())
    go(post)
    assert (await again).text.split() == ["early", "late"]
    assert post.question().starts() == 1


@linux
async def test_a_supervisor_that_dies_every_time_is_reported_as_an_agent_that_is_not_there(
    project: Project, posts: MakePost
) -> None:
    agent(project, "kill -9 $PPID; sleep 60")
    post = await posts()
    with pytest.raises(AgentUnavailable, match="died 3 times"):
        await post.put()
    assert post.question().starts() == 3


@linux
async def test_a_question_that_could_not_be_asked_has_failed_for_every_later_caller(
    project: Project, posts: MakePost
) -> None:
    agent(project, "echo hello")
    post = await posts()
    post.fork_server.argv, working = ("false",), post.fork_server.argv
    with pytest.raises(AgentUnavailable, match="does not answer"):
        await post.put()
    post.fork_server.argv = working
    assert (await post.put(2)).text.split() == ["hello"]
    with pytest.raises(AgentUnavailable, match="does not answer"):
        await post.put()
    assert (await post.put(2)).text.split() == ["hello"]
    assert (post.question().starts(), post.question(2).starts()) == (0, 1)


@linux
async def test_a_secret_for_one_who_is_never_born_is_left_nowhere(project: Project, posts: MakePost) -> None:
    agent(project, "echo hello")
    post = await posts()
    adapter = post.adapter()

    async def secret() -> str:
        return "for one alone"

    adapter.credential = secret
    post.fork_server.argv = ("false",)
    with pytest.raises(AgentUnavailable, match="does not answer"):
        await post.put(adapter=adapter)
    assert post.question().take_secret() == ""
    post.question().hand("of a worker that died before it could take it away")
    with pytest.raises(AgentUnavailable, match="does not answer"):
        await post.put()
    assert post.question().take_secret() == ""
    post.question(2).make()
    post.question(2).hand("of a worker that never came back")
    await end_all(post.folder, post.run, post.context.processes)
    assert post.question(2).take_secret() == ""


@linux
async def test_two_questions_of_a_run_are_never_worked_on_at_once(project: Project, posts: MakePost) -> None:
    agent(project, f"echo in >> {project.root.parent}/seen; {HOLD}; echo out >> {project.root.parent}/seen")
    post = await posts()
    second = post.adapter()
    second.suspend_on_cancel = False
    left = asyncio.create_task(post.put(2, second))
    await when(lambda: ("stdout", "early") in post.lines)
    left.cancel()  # as if its worker had died
    with suppress(asyncio.CancelledError):
        await left
    supervisor = post.supervisor(2)
    assert is_alive(supervisor)
    first = asyncio.create_task(post.put(1))
    await when(lambda: post.question(1).is_held())
    assert not is_alive(supervisor)
    go(post)
    assert (await first).text.split() == ["early", "late"]
    assert (project.root.parent / "seen").read_text().split() == ["in", "in", "out"]


@linux
async def test_no_process_replaces_one_that_died_when_everything_was_done(project: Project, posts: MakePost) -> None:
    agent(project, "kill -9 $PPID; sleep 60")
    post = await posts()
    adapter = post.adapter()

    async def over() -> bool:
        return True

    adapter.over = over
    for _ in range(2):
        with pytest.raises(AgentUnavailable, match="everything was done"):
            await post.put(1, adapter)
    assert post.question().starts() == 1


@linux
@pytest.mark.parametrize("sandboxed", [False, True], ids=["plain", "bubblewrap"])
async def test_a_worker_that_dies_in_git_leaves_no_lock(project: Project, posts: MakePost, sandboxed: bool) -> None:
    folder = "$(git rev-parse --git-dir)"
    dying = f"touch died {folder}/index.lock $(git rev-parse --git-path refs/heads/$(git branch --show-current)).lock"
    commits = "git commit -q --allow-empty -m work && git log -1 --format=%s"
    agent(project, f"test -e died || {{ {dying}; exit 1; }}; {commits}", sandboxed)
    post = await posts()
    assert (await post.put()).failure
    assert (await post.put(2)).text.split() == ["work"]
    lines = [event.message for event in post.events if isinstance(event, Notice)]
    assert any("its lock is removed" in line and line.endswith("index.lock") for line in lines), lines


@linux
async def test_two_workers_at_once_share_one_agent(project: Project, posts: MakePost) -> None:
    agent(project, HOLD)
    post = await posts()
    with worker(post, project) as first, worker(post, project) as second:
        hears(first, "fork_server")
        hears(second, "fork_server")
        until(lambda: post.question().is_held())
        go(post)
        hears(first, "reply ['early', 'late']")
        hears(second, "reply ['early', 'late']")
    assert post.question().starts() == 1


@linux
async def test_a_fork_server_ends_with_its_worker_and_leaves_no_zombie(project: Project, posts: MakePost) -> None:
    agent(project, "echo hello")
    post = await posts()
    await post.put()
    fork_server = post.fork_server.process
    assert fork_server is not None
    children = Path(f"/proc/{fork_server}/task/{fork_server}/children")
    until(lambda: children.read_text() == "")
    post.fork_server.close()
    until(lambda: not Path(f"/proc/{fork_server}").exists())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of three megabytes, mounted for this test alone."""
    disk = tmp_path / "disk"
    disk.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("not run: a small disk needs the right to mount")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def make_room(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=30m", str(disk)], check=True)


@linux
async def test_a_full_disk_ends_the_agent_and_is_reported_as_such(
    project: Project, posts: MakePost, small_disk: Path
) -> None:
    word = a_word()
    noise = "head -c 6000000 /dev/zero | tr '\\0' x | fold -w 1000"
    agent(project, f"test -e go || {{ sleep {word} & {noise}; wait; }}; echo late")
    post = await posts()
    post.folder.joinpath("supervised").symlink_to(small_disk)
    with pytest.raises(DiskFullError, match="the disk is full"):
        await post.put()
    assert living(word) == []
    make_room(small_disk)
    go(post)
    assert (await post.put(2)).text == "late\n"


@linux
async def test_who_ends_an_agent_takes_no_secret_away_that_another_worker_has_left(
    project: Project, posts: MakePost
) -> None:
    agent(project, "echo hello")
    post = await posts()
    adapter, question = post.adapter(), post.question()

    async def secret() -> str:
        return "of the first"

    adapter.credential = secret
    post.fork_server.argv = ("false",)
    with pytest.raises(AgentUnavailable, match="does not answer"):
        await post.put(adapter=adapter)
    for left, stays in (("of the second", "of the second"), ("of the first", "")):
        adapter._handed[question.path] = "of the first"
        question.hand(left)

        await adapter._end(question)

        assert question.take_secret() == stays
