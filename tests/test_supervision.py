"""Nothing outlives a session, and nothing that an agent prints stops it."""

import asyncio
import gc
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from genba.connections.processes.ports import reserved_ports
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.connections.processes.tree import MARK
from genba.connections.processes.tree import living as marked
from genba.domain.processes import Command, Ending
from tests.project import COMMIT, GENBA, Project, ordinary_environment, until

linux = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="not run: there is no /proc here")


def living(word: str) -> list[int]:
    """Every process with this word on its command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                dead = (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
            except OSError:
                continue
            if word.encode() in words and not dead and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


@linux
@pytest.mark.parametrize(
    "hide",
    [
        "setsid env -i sleep {word} >/dev/null 2>&1 &",
        "(setsid sh -c '(exec env -i setsid sleep {word}) >/dev/null 2>&1 &' &); ",
        "nohup env -i PATH=$PATH sh -c 'trap \"\" TERM HUP; sleep {word}' >/dev/null 2>&1 &",
    ],
)
def test_a_daemon_that_hides_its_name_and_its_parents_does_not_outlive_its_session(project: Project, hide: str) -> None:
    word = f"9{os.getpid()}.{abs(hash((hide, project.root))) % 10**6}"
    project.agent(adapter={"type": "custom", "command": f"{hide.format(word=word)} {COMMIT}"})
    assert project.run("worker")["outcome"] == "completed"
    assert living(word) == []


@linux
def test_what_genba_itself_started_is_not_taken_for_an_orphan(project: Project) -> None:
    project.agent(adapter={"type": "custom", "command": COMMIT}, completion={
        "type": "iterationBudget", "config": {"maxIterations": 5}
    })  # fmt: skip
    result = project.run("worker")
    assert (result["outcome"], result["iterations"]) == ("completed", 5)
    assert len(project.git("log", "--format=%H", "--no-merges", "--", "work.txt").splitlines()) == 5


@pytest.mark.skipif(shutil.which("head") is None, reason="not run: no head")
def test_a_line_of_fifty_megabytes_and_binary_garbage_do_not_stop_a_run(project: Project) -> None:
    noise = "head -c 52428800 /dev/zero | tr '\\0' x; echo; head -c 300000 /dev/urandom; echo; echo the end"
    project.agent(adapter={"type": "custom", "command": f"{noise}; {COMMIT}"})
    assert project.run("worker")["outcome"] == "completed"
    kinds = [event["event"] for event in project.events()]
    assert kinds[-1] == "run_ended"


def test_output_is_in_the_journal_while_the_agent_still_works(project: Project) -> None:
    line = f"echo early; until test -e {project.root}/go; do sleep 0.05; done; {COMMIT}"
    project.agent(adapter={"type": "custom", "command": line})
    process = subprocess.Popen(
        [str(GENBA), "run", "worker", "--quiet"],
        cwd=project.root,
        env={**ordinary_environment(), **project.environment},
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: any("early" in path.read_text() for path in project.root.glob("tmp/logs/agents/*/*.jsonl")))
    finally:
        (project.root / "go").touch()
        assert process.wait(60) == 0


@linux
def test_a_child_that_was_there_before_genba_is_left_alone(project: Project) -> None:
    word = f"6{os.getpid()}.{id(project) % 10**6}"
    project.agent(adapter={"type": "custom", "command": COMMIT})
    line = f"env -i sleep {word} & exec {GENBA} run worker --quiet"
    subprocess.run(
        ["bash", "-c", line], cwd=project.root, env={**ordinary_environment(), **project.environment}, check=True
    )
    found = living(word)
    assert len(found) == 1
    os.kill(found[0], 9)


def test_ranges_of_ports_never_overlap(tmp_path: Path) -> None:
    with reserved_ports(10) as few, reserved_ports(45) as many, reserved_ports(20) as some:
        assert len({*few, *many, *some}) == 75


@linux
async def test_a_stop_during_the_start_of_a_command_leaves_nothing_running(tmp_path: Path) -> None:
    word, processes = "8671", ProcessSupervisor()
    command = Command(
        argv=("sh", "-c", f"sleep {word} & sleep {word}; true"),
        workdir=str(tmp_path),
        environment=os.environ,
        timeout_seconds=60,
        idle_seconds=60,
        mark="told-to-stop",
    )
    for turns in range(12):  # of the event loop: the process exists and is not adopted yet
        running = asyncio.create_task(processes.run(command, lambda _stream, _line: None))
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert living(word) == [], turns


async def test_the_end_of_a_command_is_seen_at_once_though_its_child_holds_the_pipes_open(tmp_path: Path) -> None:
    command = Command(
        argv=("sh", "-c", "sleep 600 & echo said"),
        workdir=str(tmp_path),
        environment={"PATH": os.environ["PATH"]},
        stdin="",
        timeout_seconds=300,
        idle_seconds=300,
        mark=f"holds-{os.getpid()}-{tmp_path.name}",
    )

    done = await ProcessSupervisor().run(command, lambda _stream, _line: None)

    assert (done.code, done.stdout) == (0, "said\n")
    assert done.seconds < 60
    assert marked(command.mark) == set()


async def test_a_command_that_does_not_read_its_input_ends_quietly(tmp_path: Path) -> None:
    lines: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: lines.append(str(context["message"])))
    command = Command(
        argv=("sleep", "600"),
        workdir=str(tmp_path),
        environment={"PATH": os.environ["PATH"]},
        stdin="tea " * 1_000_000,
        timeout_seconds=0.1,
        idle_seconds=300,
        mark=f"deaf-{os.getpid()}-{tmp_path.name}",
    )

    done = await ProcessSupervisor().run(command, lambda _stream, _line: None)
    gc.collect()

    assert (done.ending, lines) == (Ending.TIMED_OUT, [])


@linux
def test_the_marks_of_processes_elsewhere_are_not_looked_at(tmp_path: Path) -> None:
    mark = f"elsewhere-{os.getpid()}-{tmp_path.name}"
    environment, word = {**os.environ, MARK: mark}, f"600.{os.getpid()}"
    with subprocess.Popen(["sh", "-c", f"sleep {word} & wait"], env=environment) as shell:
        until(lambda: living(word))
        inner = marked(mark) - {shell.pid}

        assert marked(mark, within=os.getpid()) == {shell.pid, *inner}
        assert marked(mark, within=shell.pid) == {shell.pid, *inner}
        assert marked(mark, within=inner.pop()) == marked(mark) - {shell.pid}
        with subprocess.Popen(["sleep", "600"]) as other:
            assert marked(mark, within=other.pid) == set()
            other.kill()
        for pid in marked(mark):
            os.kill(pid, 9)
