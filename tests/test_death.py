"""Kill anything: runs go on where they were, nothing is done twice, nothing is left running."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.project import GENBA, Project, gated, says, until

THREE_STEPS = {
    "plan": {"structuredGate": gated("next", handoffFields=["plan"]), "transitions": {"next": "implement"}},
    "implement": {"structuredGate": gated("next"), "transitions": {"next": "close"}},
    "close": {"stepKind": "closure", "structuredGate": gated("closing")},
}
FIRST_PROMPT = {"implement.md": "Do {uv-plan_plan}.\n"}


def _start(project: Project, *words: str) -> subprocess.Popen[bytes]:
    with _output(project).open("wb") as output:
        return subprocess.Popen(
            [str(GENBA), "run", *words, "--quiet"],
            cwd=project.root,
            env={**os.environ, **project.environment},
            stdout=subprocess.DEVNULL,
            stderr=output,
        )


def _output(project: Project) -> Path:
    """What the started run writes on stderr."""
    return project.root.parent / "stderr"


def _marked(run: str) -> list[int]:
    """The processes that still belong to a run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"GENBA_PROCESS_MARK={run}".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def _newest_run(project: Project) -> str:
    listed = project.genba("logs", "--json", check=0).out.splitlines()
    return str(json.loads(listed[0])["run"])


def _killed(project: Project, when: Path, *words: str) -> str:
    """Start a run, kill it with -9 as soon as a file appears, and tell its id."""
    started = _start(project, *words)
    until(when.exists)
    started.kill()
    started.wait()
    return _newest_run(project)


def _three_step_agent(project: Project, here: Path, in_step: str) -> None:
    """An agent that waits for ever the first time it reaches a step, and writes down every start."""
    count = f"echo $GENBA_STEP >> {here}/starts"
    wait = f"test -e {here}/seen || {{ touch {here}/seen; sleep 1000; }}"
    replies = {"plan": says("next", plan="the right thing"), "implement": says("next"), "close": says("closing")}
    work = "echo work > work.txt && git add -A && git commit -qm work"
    turns = {
        step: [{
            "do": [{"run": f"GENBA_STEP={step}; {count}"}]
            + ([{"run": wait}] if step == in_step else [])
            + ([{"run": f"test -e work.txt || ({work})"}] if step == "implement" else []),
            "reply": reply,
        }]
        for step, reply in replies.items()
    }  # fmt: skip
    project.agent(
        completion={"type": "stepMachine"},
        registry={"entryStep": "plan"},
        steps=THREE_STEPS,
        prompts=FIRST_PROMPT,
        script={"steps": turns, "repeat": True},
    )


@pytest.mark.parametrize("in_step", ["plan", "implement", "close"])
def test_after_kill_9_a_run_goes_on_from_its_last_finished_iteration(
    project: Project, tmp_path: Path, in_step: str
) -> None:
    _three_step_agent(project, tmp_path, in_step)
    run = _killed(project, tmp_path / "seen", "worker")

    result = project.run("--resume", run)

    assert result["outcome"] == "completed"
    assert _marked(run) == []
    starts = (tmp_path / "starts").read_text().split()
    expected = ["plan", "implement", "close"]
    expected.insert(expected.index(in_step), in_step)
    assert starts == expected
    assert project.steps_walked(run) == ["plan", "implement", "close"]
    assert project.read("work.txt") == "work\n"
    assert len(project.git("log", "--oneline", "--merges").splitlines()) == 1
    assert any("Do the right thing." in prompt for prompt in project.prompts(run))


def test_a_run_that_died_before_its_merge_is_merged_once(project: Project, tmp_path: Path) -> None:
    project.agent()
    project.write("README.md", "in the way\n")
    stopped = project.run("worker", check=5)
    project.git("checkout", "-q", "README.md")

    project.run("--resume", stopped["run"])
    again = project.genba("run", "--resume", stopped["run"], check=5)

    assert "is completed; there is nothing to resume" in again.err
    assert len(project.git("log", "--oneline", "--merges").splitlines()) == 1


def test_a_new_run_on_the_branch_of_a_dead_one_ends_what_that_left_running(project: Project, tmp_path: Path) -> None:
    _three_step_agent(project, tmp_path, "plan")
    dead = _killed(project, tmp_path / "seen", "worker", "--branch", "genba/same")
    assert _marked(dead)

    result = project.run("worker", "--branch", "genba/same")

    assert result["outcome"] == "completed"
    assert _marked(dead) == []


def test_ctrl_c_suspend_a_run(project: Project, tmp_path: Path) -> None:
    _three_step_agent(project, tmp_path, "implement")
    suspended = _start(project, "worker")
    until((tmp_path / "seen").exists)
    suspended.send_signal(signal.SIGINT)
    assert suspended.wait(90) == 1
    run = _newest_run(project)

    assert _marked(run) == []
    assert "hint: genba run --resume" in _output(project).read_text()
    ended = project.events(run)[-1]
    assert (ended["outcome"], ended["iterations"]) == ("incomplete", 1)
    assert project.run("--resume", run)["outcome"] == "completed"


def test_a_terminated_run_ends_its_agent(project: Project, tmp_path: Path) -> None:
    _three_step_agent(project, tmp_path, "plan")
    ended = _start(project, "worker")
    until((tmp_path / "seen").exists)
    ended.send_signal(signal.SIGTERM)
    ended.wait(90)

    assert _marked(_newest_run(project)) == []


def test_a_torn_last_line_of_the_journal_does_no_harm(project: Project, tmp_path: Path) -> None:
    _three_step_agent(project, tmp_path, "implement")
    run = _killed(project, tmp_path / "seen", "worker")
    journal = next((project.root / "tmp/logs/agents/worker").glob("*.jsonl"))
    with journal.open("a") as file:
        file.write('{"event": "iteration_fini')

    assert project.run("--resume", run)["outcome"] == "completed"


def test_a_working_tree_that_was_deleted_is_made_again_from_its_branch(project: Project, tmp_path: Path) -> None:
    _three_step_agent(project, tmp_path, "close")
    run = _killed(project, tmp_path / "seen", "worker")
    project.genba("logs", run, check=0)
    for pid in _marked(run):
        os.kill(pid, signal.SIGKILL)
    for path in (project.root / ".worktrees").iterdir():
        subprocess.run(["rm", "-rf", str(path)], check=True)

    assert project.run("--resume", run)["outcome"] == "completed"
    assert project.read("work.txt") == "work\n"


def test_a_run_that_died_while_it_pushed_is_merged_and_pushed_once(project: Project, tmp_path: Path) -> None:
    remote, seen = tmp_path / "remote.git", tmp_path / "seen"
    project.git("init", "-q", "--bare", "-b", "main", str(remote))
    project.git("remote", "add", "origin", str(remote))
    hook = remote / "hooks/pre-receive"
    over = tmp_path / "over"
    wait = f"touch {seen}; while ! test -e {over}; do sleep 0.05; done; exit 1"
    hook.write_text(f"#!/bin/sh\ntest -e {seen} || {{ {wait}; }}\n")
    hook.chmod(0o755)
    project.agent(integrations={"github": {"enabled": True}}, parameters={"issue": {"type": "number"}})
    project.issue(1, "One")
    run = _killed(project, seen, "worker", "--issue", "1", "--push")
    assert project.issue_front(1)["state"] == "open"

    result = project.run("--resume", run)
    over.touch()

    assert result["outcome"] == "completed"
    assert len(project.git("log", "--oneline", "--merges").splitlines()) == 1
    assert result["merged"] == project.git("rev-parse", "main") == project.git("ls-remote", "origin", "main").split()[0]
    assert project.issue_front(1)["state"] == "closed"
    assert project.branches() == ["main"]


def test_a_daemon_that_an_agent_left_behind_is_ended(project: Project) -> None:
    line = "(setsid sh -c 'trap \"\" TERM; sleep 1000' >/dev/null 2>&1 &) ; echo done"
    project.agent(adapter={"type": "custom", "command": line})

    result = project.run("worker")

    assert _marked(result["run"]) == []


def test_an_agent_that_hangs_is_ended_and_tried_again(project: Project, tmp_path: Path) -> None:
    line = f"test -e {tmp_path}/tried || {{ touch {tmp_path}/tried; sleep 1000; }}; echo done"
    project.agent(
        adapter={"type": "custom", "command": line},
        limits={"askTimeoutSeconds": 3, "retryDelaySeconds": 0.01},
    )

    result = project.run("worker")

    assert result["outcome"] == "completed"
    retried = next(event for event in project.events() if event["event"] == "ask_retried")
    assert "no answer within its time" in retried["reason"]


def test_an_agent_that_goes_silent_is_ended(project: Project) -> None:
    project.agent(
        adapter={"type": "custom", "command": "echo busy; sleep 1000"},
        limits={"idleTimeoutSeconds": 0.4, "retries": 0},
    )
    began = time.monotonic()

    result = project.run("worker", check=1)

    assert result["outcome"] == "failed"
    assert "went silent" in result["reason"]
    assert time.monotonic() - began < 60


def test_an_agent_that_talks_without_end_does_not_stop_the_journal(project: Project) -> None:
    line = "head -c 5000000 /dev/zero | tr '\\0' x; head -c 3000 /dev/urandom; echo; echo the end"
    project.agent(adapter={"type": "custom", "command": line})

    result = project.run("worker")

    assert result["outcome"] == "completed"
    texts = project.printed()
    assert texts[-1] == "the end"
    assert sum(map(len, texts)) < 70_000


def test_output_without_measure_is_written_down_only_so_far(project: Project) -> None:
    line = "yes 0123456789012345678901234567890123456789 | head -c 20000000; echo the end"
    project.agent(adapter={"type": "custom", "command": line})

    assert project.run("worker")["outcome"] == "completed"

    journal = next((project.root / "tmp/logs/agents/worker").glob("*.jsonl"))
    assert '"output_left_out"' in journal.read_text()
    assert journal.stat().st_size < 16_000_000


@pytest.mark.parametrize("line", ["exit 3", "kill -9 $$", "exec false"])
def test_an_agent_that_keeps_crashing_ends_as_failed(project: Project, line: str) -> None:
    project.agent(adapter={"type": "custom", "command": line}, limits={"retries": 1, "retryDelaySeconds": 0.01})

    result = project.run("worker", check=1)

    assert result["outcome"] == "failed"
    assert [event["event"] for event in project.events()].count("ask_retried") == 1


def _sent_back_agent(project: Project, here: Path, second: str) -> None:
    """An agent whose first try is green alone and red with the base; `second` is what it does then."""
    top = 'cd "$(git rev-parse --git-common-dir)/.." && touch theirs.txt && git add -A && '
    move = top + "git -c user.name=U -c user.email=u@localhost commit -qm moved"
    work = "echo m > mine.txt && git add -A && git commit -qm mine"
    check = "! { test -e mine.txt && test -e theirs.txt; } || test -e both.txt"
    slow = f"{{ {check}; }} || {{ touch {here}/checking; while test -e {here}/hold; do sleep 0.05; done; exit 1; }}"
    project.agent(
        completion={"type": "keywordSignal", "config": {"completionKeyword": "DONE"}},
        steps={"work": {"completionConditions": [{"validator": "both"}]}},
        registry={"validators": {"both": {"type": "command", "command": slow}}},
        script={
            "turns": [
                {"do": [{"run": work}, {"run": move}], "reply": {"w": "DONE"}},
                {"do": [{"run": second}], "reply": {"w": "DONE"}},
            ]
        },
    )


def test_a_run_that_dies_after_its_work_was_sent_back_asks_its_agent_again(project: Project, tmp_path: Path) -> None:
    fix = "echo b > both.txt && git add -A && git commit -qm both"
    wait = f"test -e {tmp_path}/seen || {{ touch {tmp_path}/seen; sleep 1000; }}; "
    _sent_back_agent(project, tmp_path, wait + fix)
    run = _killed(project, tmp_path / "seen", "worker")

    result = project.run("--resume", run)

    assert (result["outcome"], result["iterations"]) == ("completed", 2)
    assert project.read("both.txt") == "b\n"


def test_a_stop_request_is_noticed_while_the_merge_is_checked(project: Project, tmp_path: Path) -> None:
    (tmp_path / "hold").touch()
    _sent_back_agent(project, tmp_path, "echo b > both.txt && git add -A && git commit -qm both")
    stopped = _start(project, "worker")
    until((tmp_path / "checking").exists)
    stopped.send_signal(signal.SIGINT)
    assert stopped.wait(90) == 1
    (tmp_path / "hold").unlink()
    run = _newest_run(project)
    assert project.steps_walked(run) == ["work"]
    assert _marked(run) == []

    result = project.run("--resume", run)

    assert (result["outcome"], result["iterations"]) == ("completed", 2)


def test_a_run_that_died_while_its_tree_was_removed_still_closes_its_issue(project: Project, tmp_path: Path) -> None:
    project.agent(parameters={"issue": {"type": "number"}}, integrations={"github": {"enabled": True}})
    project.issue(3, "Three")
    result = project.run("worker", "--issue", "3")
    journal = next((project.root / "tmp/logs/agents/worker").glob("*.jsonl"))
    kept = [line for line in journal.read_text().splitlines() if '"workspace_closed"' not in line]
    cut = next(at for at, line in enumerate(kept) if '"merge_finished"' in line)
    journal.write_text("\n".join(kept[: cut + 1]) + "\n")
    project.sql("UPDATE tasks SET status = 'in_progress'; UPDATE sessions SET status = 'running', ended_at = NULL")

    resumed = project.run("--resume", result["run"])

    assert resumed["outcome"] == "completed"
    assert project.issue_front(3)["state"] == "closed"


@pytest.mark.parametrize("issue", [False, True], ids=["without a task", "of a task"])
def test_a_killed_session_is_shown_as_suspended(project: Project, tmp_path: Path, issue: bool) -> None:
    _three_step_agent(project, tmp_path, "implement")
    words = ["worker"]
    if issue:
        project.issue(1, "Add a page")
        words += ["--issue", "1"]
    run = _killed(project, tmp_path / "seen", *words)
    shown = {each["run"]: each["status"] for each in project.genba("sessions", "--json").json}
    assert shown == {run: "suspended"}


@pytest.mark.parametrize("words", [("stop", "1"), ("stop",)], ids=["one task", "everything"])
def test_genba_stop_suspends_a_session_of_genba_run(project: Project, tmp_path: Path, words: tuple[str, ...]) -> None:
    _three_step_agent(project, tmp_path, "implement")
    project.issue(1, "Add a page")
    started = _start(project, "worker", "--issue", "1")
    until((tmp_path / "seen").exists)

    stopped = project.genba(*words, check=0)

    assert started.wait(30) != 0
    assert "suspended" in stopped.out or "stopping" in stopped.out
    assert project.genba("sessions", "1", "--json").json[0]["status"] == "ended"
    assert project.task(1).status == "open"
