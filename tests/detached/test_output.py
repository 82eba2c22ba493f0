"""What an agent says comes through, however much and whatever it is; secrets and strangers do not."""

import asyncio
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from genba.connections.detached.job_dir import Attempt
from genba.connections.detached.output_log import OutputReader, Recorder
from genba.domain.errors import DiskFullError, StateConflictError
from genba.domain.events import EgressUsed, Event
from genba.domain.processes import OutputListener
from tests.bubblewrap import needs_bubblewrap
from tests.detached.conftest import MakePost
from tests.detached.posts import is_alive, when
from tests.project import Project, until
from tests.sandbox.hostile_runs import settle


class Plain:
    def text(self, _stream: str, text: str) -> str:
        return text


def unheard(_stream: str, _line: str) -> None:
    return


async def report(attempt: Attempt, received: OutputListener = unheard) -> list[Event]:
    events: list[Event] = []
    with OutputReader(attempt, received, events.append) as hearing:
        await hearing.tell()
    return events


async def test_twenty_agents_at_once_come_back_with_their_own_answers(project: Project, posts: MakePost) -> None:
    project.agent(adapter={"type": "custom", "command": "echo $GENBA_RUN; sleep 0.5; echo bye"})
    made = [await posts() for _ in range(20)]
    fork_server = made[0].fork_server
    for post in made:
        post.fork_server = fork_server
    replies = await asyncio.gather(*(post.put() for post in made))
    assert [reply.text.split() for reply in replies] == [[post.run, "bye"] for post in made]
    assert [post.said() for post in made] == [[post.run, "bye"] for post in made]
    assert {post.question().starts() for post in made} == {1}


async def test_fifty_megabytes_and_binary_garbage_do_no_harm(project: Project, posts: MakePost) -> None:
    noise = "head -c 52428800 /dev/zero | tr '\\0' x; echo; head -c 300000 /dev/urandom >&2; echo >&2"
    project.agent(adapter={"type": "custom", "command": f"{noise}; echo the end"})
    post = await posts()
    reply = await post.put()
    assert reply.text.startswith("xxx")
    newest = post.question().newest()
    assert newest is not None
    received = sum(len(line) for stream, line in post.lines if stream != "started")
    assert received < 6_000_000
    assert newest.output.stat().st_size < 16_000_000
    assert reply.text.endswith("\nthe end\n")
    assert "bytes of output left out" in reply.text
    assert all(line for _, line in post.lines[:2])


async def test_many_short_lines_are_all_received_in_order(project: Project, posts: MakePost) -> None:
    project.agent(adapter={"type": "custom", "command": "seq 1 100000"})
    post = await posts()
    await post.put()
    assert post.said() == [str(number) for number in range(1, 100001)]


async def test_a_secret_of_the_environment_is_not_written_down(
    project: Project, posts: MakePost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "very-secret-value-4711")
    line = "echo key: $SOME_API_KEY; tr '\\0' ' ' < /proc/$PPID/cmdline; test -n \"$SOME_API_KEY\""
    project.agent(adapter={"type": "custom", "command": line, "passEnv": ["SOME_API_KEY"]})
    post = await posts()
    reply = await post.put()
    assert "very-secret-value-4711" in reply.text.splitlines()[0]
    assert "very-secret-value-4711" not in reply.text.splitlines()[1]
    assert post.said()[0] == "key: [redacted]"
    newest = post.question().newest()
    assert newest is not None
    assert b"very-secret" not in newest.output.read_bytes()
    assert b"very-secret" not in (post.question().path / "request.json").read_bytes()


AS_OTHER_USER = """
import os, sys
os.setgroups([])
os.setgid(int(sys.argv[1]))
os.setuid(int(sys.argv[2]))
for path in sys.argv[3:]:
    try:
        os.open(path, os.O_RDWR)
    except PermissionError:
        print("refused")
"""


def refused_to_other_user(*paths: str) -> int:
    """How many of these another user is kept from."""
    absent = pwd.getpwnam("nobody")
    words = [sys.executable, "-c", AS_OTHER_USER, str(absent.pw_gid), str(absent.pw_uid), *paths]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd="/")
    return len(done.stdout.splitlines())


def modes(paths: list[str]) -> set[int]:
    return {Path(path).stat().st_mode & 0o777 for path in paths}


@pytest.mark.skipif(os.geteuid() != 0, reason="not run: only root can become another user")
async def test_another_user_can_read_nothing_of_a_question_and_has_no_door_to_ask_at(
    project: Project, posts: MakePost
) -> None:
    project.agent(adapter={"type": "custom", "command": "until test -e go; do sleep 0.02; done; echo hello"})
    post = await posts()
    asked = asyncio.create_task(post.put())
    await when(post.supervisor)
    inside = [str(post.question().path / name) for name in ("request.json", "lock", "watch", "starts")]
    assert refused_to_other_user(*inside, f"/proc/{post.fork_server.process}/fd/0") == 5
    assert modes(inside) == {0o600}
    post.place("go")
    await asked


async def test_what_gates_tell_reaches_the_journal_of_the_worker(project: Project, posts: MakePost) -> None:
    needs_bubblewrap()
    settle(project, kind="bubblewrap", network="allowlist", allow=["allowed.invalid:443"])
    ask = "import urllib.request as r; r.urlopen('http://forbidden.invalid/', timeout=10)"
    project.agent(adapter={"type": "custom", "command": f'{sys.executable} -c "{ask}" 2>/dev/null; echo hello'})
    post = await posts()
    assert (await post.put()).text == "hello\n"
    gates = [event for event in post.events if isinstance(event, EgressUsed)]
    assert [(event.verdict, event.target) for event in gates] == [("denied", "forbidden.invalid:80")]


async def test_a_torn_line_is_passed_over_and_reported_when_it_is_whole(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    attempt = Attempt(tmp_path / "1")
    recorder = Recorder(attempt, Plain())
    recorder.on_output("stdout", "one")
    lines: list[str] = []
    with attempt.output.open("ab") as file:
        file.write(b'["stdout","tw')
        file.flush()
        await report(attempt, lambda _stream, line: lines.append(line))
        assert lines == ["one"]
        file.write(b'o"]\nno json\n')
    recorder.on_output("notice", "half \ud800 of it")
    recorder.emit(EgressUsed(port="proxy", verdict="refused", target="somewhere:80"))
    events = await report(attempt, lambda _stream, line: lines.append(line))
    assert lines == ["one", "two", "half \\ud800 of it"]
    assert events == [EgressUsed(port="proxy", verdict="refused", target="somewhere:80")]
    recorder.close()
    assert await report(attempt) == []


async def test_an_agent_whose_words_can_no_longer_be_written_down_is_ended(project: Project, posts: MakePost) -> None:
    project.agent(adapter={"type": "custom", "command": "echo early; until test -e go; do sleep 0.02; done"})
    post = await posts()

    def deaf(stream: str, _line: str) -> None:
        if stream == "stdout":
            raise DiskFullError("the disk is full: the journal cannot grow")

    adapter = post.adapter()
    async with adapter.open_environment(post.workspace) as session:
        with pytest.raises(DiskFullError, match="the journal cannot grow"):
            await adapter.execute(await adapter.start(session), post.ask(), deaf)
    assert not post.question().is_held()


async def test_a_run_whose_memory_is_gone_is_reported_as_such(project: Project, posts: MakePost) -> None:
    project.agent()
    post = await posts()
    (post.folder / "run.json").unlink()
    with pytest.raises(StateConflictError, match="can no longer be read"):
        await post.put()


async def test_a_supervisor_keeps_its_own_log(project: Project, posts: MakePost) -> None:
    project.agent(adapter={"type": "custom", "command": "echo hello"})
    post = await posts()
    await post.put()
    newest = post.question().newest()
    assert newest is not None
    assert newest.log.read_text() == ""
    assert (post.context.layout.own / "fork_server.log").read_text() == ""
    fork_server = post.fork_server.process
    assert fork_server is not None
    post.fork_server.close()
    until(lambda: not is_alive(fork_server))
