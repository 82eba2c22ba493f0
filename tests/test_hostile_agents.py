"""Agents that do what they should not: the user's things stay whole, and Genba does not fall over."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.project import GENBA, Project, until

COMMIT = "git add -A && git commit -qm work"


def _custom(project: Project, line: str, **runner: Any) -> None:
    project.agent(adapter={"type": "custom", "command": line}, **runner)


def test_a_working_tree_that_was_cut_off_in_its_making_is_never_shown_to_an_agent(
    project: Project, tmp_path: Path
) -> None:
    for number in range(30):
        project.write(f"src/{number}.txt", "precious\n")
    project.agent(script={"turns": [{"do": [{"run": f"echo x > new && {COMMIT}"}]}]}, commit=False)
    project.write(".gitattributes", "*.txt filter=slow\n")
    project.commit()
    project.git(
        "config", "filter.slow.smudge", f"sh -c 'test -e {tmp_path}/go || {{ touch {tmp_path}/seen; sleep 30; }}; cat'"
    )
    killed = subprocess.Popen(
        [str(GENBA), "run", "worker", "--branch", "genba/half", "--quiet"],
        cwd=project.root,
        env={**os.environ, **project.environment},
    )
    until((tmp_path / "seen").exists)
    killed.kill()
    killed.wait()
    (tmp_path / "go").touch()
    _end_processes_in(project.root / ".git" / "genba" / "fresh")

    result = project.run("worker", "--branch", "genba/half")

    assert result["outcome"] == "completed"
    assert project.git("ls-files", "src").count("\n") == 29
    assert project.read("src/7.txt") == "precious\n"


def _end_processes_in(folder: Path) -> None:
    for path in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if str(path.readlink()).startswith(str(folder)):
                os.kill(int(path.parent.name), signal.SIGKILL)
        except OSError:
            continue


def test_what_a_dead_run_had_begun_to_make_is_cleared_by_the_next(project: Project) -> None:
    project.agent()
    own = project.root / ".git/genba/trees"
    project.git("worktree", "add", "-q", "--no-checkout", "-b", "genba/dead", ".worktrees/genba-dead")
    base = project.git("rev-parse", "main")
    record = {"branch": "genba/dead", "path": str(project.root / ".worktrees/genba-dead"), "base": base}
    own.mkdir(parents=True)
    (own / "genba%2Fdead.json").write_text(json.dumps({**record, "new_branch": True, "ready": False}))

    project.run("worker")

    assert project.branches() == ["main"]
    assert not (project.root / ".worktrees/genba-dead").exists()


def test_a_working_tree_that_the_user_made_is_not_taken(project: Project) -> None:
    project.agent()
    project.git("worktree", "add", "-q", "-b", "mine", ".worktrees/mine")
    project.write(".worktrees/mine/notes.txt", "my own\n")

    done = project.genba("run", "worker", "--branch", "mine", check=5)

    assert 'the branch "mine" is checked out at' in done.err
    assert project.read(".worktrees/mine/notes.txt") == "my own\n"


def test_an_ignored_file_of_the_user_is_not_overwritten(project: Project) -> None:
    project.write(".gitignore", ".env\n")
    _custom(project, "echo agent > .env; git add -f .env; git commit -qm env")
    project.write(".env", "PRECIOUS\n")

    result = project.run("worker", check=5)

    assert result["merge"] == "checkout_in_the_way"
    assert project.read(".env") == "PRECIOUS\n"


def test_an_agent_cannot_rewrite_issues_through_its_branch(project: Project) -> None:
    _custom(project, "mkdir -p .genba; echo HACKED > .genba/genba.db; git add -f .genba; git commit -qm hack")
    project.issue(7, "Seven")

    project.run("worker", check=5)

    assert project.issue_front(7)["title"] == "Seven"


def test_a_repository_in_an_ignored_folder_is_kept(project: Project) -> None:
    line = "echo nm > .gitignore; git add -A; git commit -qm i; mkdir nm; cd nm; git init -q; echo x > x; " + COMMIT
    _custom(project, line)

    result = project.run("worker")

    assert (Path(result["workdir"]) / "nm/x").exists()


def test_resuming_a_run_that_is_running_does_it_no_harm(project: Project, tmp_path: Path) -> None:
    gate, inside = tmp_path / "gate", tmp_path / "inside"
    os.mkfifo(gate)
    _custom(project, f"echo x >> {inside}; cat {gate}; echo x > x; {COMMIT}")
    running = subprocess.Popen(
        [str(GENBA), "run", "worker", "--quiet"], cwd=project.root, env={**os.environ, **project.environment}
    )
    until(inside.exists)
    run = project.genba("sessions", "--json").json[0]["run"]

    refused = project.genba("run", "--resume", run, check=5)
    gate.write_text("go\n")

    assert "is in use by" in refused.err
    assert running.wait(90) == 0
    assert inside.read_text() == "x\n"


def test_a_child_that_holds_the_pipes_open_does_not_hold_up_the_run(project: Project) -> None:
    _custom(project, f"sleep 1000 & echo x > x; {COMMIT}; echo done", limits={"idleTimeoutSeconds": 300})

    result = project.run("worker")

    assert result["outcome"] == "completed"
    assert result["seconds"] < 200
    assert project.git("log", "--format=%s", "--no-merges").splitlines().count("work") == 1


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("printf 'x' > \"$(printf 'a\\001b')\"; git add -A; git commit -qm \"$(printf 'a\\001b\\002c\\002d')\"", 1),
        ("printf x > \"$(printf 'a\\377')\"; git add -A; git commit -qm odd", 1),
        ("printf x > \"$(printf 'a\\nb')\"; git add -A; git commit -qm newline", 1),
    ],
)
def test_odd_names_and_subjects_are_only_names_and_subjects(project: Project, line: str, output: int) -> None:
    _custom(project, line)

    result = project.run("worker")

    assert result["outcome"] == "completed"
    finished = next(event for event in project.events() if event["event"] == "iteration_finished")
    assert len(finished["commits"]) == output


def test_a_file_whose_name_is_no_text_is_reported(project: Project) -> None:
    steps = {"work": {"completionConditions": [{"validator": "git-clean"}], "onFailure": {"action": "abort"}}}
    _custom(project, "printf x > \"$(printf 'a\\377')\"", steps=steps)

    result = project.run("worker", check=1)

    assert result["outcome"] == "aborted"
    assert "1 file not committed" in result["reason"]


@pytest.mark.parametrize(
    "reply", ['{"x": "\\ud800"}', '{"n": ' + "9" * 5000 + "}", "[" * 5000, "```json\n{\n```\n" * 50]
)
def test_a_reply_that_is_no_json_is_no_crash(project: Project, reply: str) -> None:
    (project.root.parent / "reply").write_text(reply)
    _custom(project, "cat ~/reply")

    assert project.run("worker")["outcome"] == "completed"


def test_secrets_do_not_leave_by_the_result_or_the_issue(project: Project) -> None:
    token = "ghp_" + "A1b2" * 9
    project.agent(
        parameters={"issue": {"type": "number"}},
        integrations={"github": {"enabled": True, "labels": {"blocked": "stuck"}}},
        script={"turns": [{"reply": {"status": "blocked", "question": f"is {token} right?"}}]},
    )
    project.issue(3, "Three")

    done = project.genba("run", "worker", "--issue", "3", "--json", check=1)

    assert done.json["reason"] == "is [redacted] right?"
    assert token not in done.out + done.err + project.genba("task", "show", "3", check=0).out
    assert token.encode() not in (project.root / ".genba/genba.db").read_bytes()


def test_a_word_of_the_house_that_is_also_a_secret_does_no_harm(project: Project) -> None:
    project.agent()

    assert project.run("worker", X_AUTH="completed", FOO_TOKEN="workspace")["outcome"] == "completed"
    assert project.events()[-1]["outcome"] == "completed"


def test_a_resumed_run_is_asked_with_the_parameters_as_they_were_given(project: Project) -> None:
    project.agent(
        parameters={"topic": {"type": "string"}},
        prompts={"work.md": "Look at {uv-topic}.\n"},
        script={"turns": [{"reply": "one"}], "repeat": True},
        completion={"type": "keywordSignal", "config": {"completionKeyword": "DONE"}},
        limits={"maxIterations": 1},
    )
    given = "http://bob:hunter2hunter2@host/"
    stopped = project.run("worker", "--topic", given, check=6)
    project.genba("run", "--resume", stopped["run"], "--set", "runner.limits.maxIterations=2", check=6)

    folder = project.root / ".git/genba/runs" / stopped["run"]
    assert json.loads((folder / "run.json").read_text())["parameters"] == {"topic": given}
    assert folder.stat().st_mode & 0o077 == 0
    assert "hunter2" not in "".join(project.prompts(stopped["run"]))


def test_a_reader_that_goes_away_does_not_stop_the_run(project: Project) -> None:
    turns = [{"do": [{"run": f"echo {n} > f{n} && {COMMIT}"}], "reply": "x"} for n in range(3)]
    project.agent(completion={"type": "iterationBudget", "config": {"maxIterations": 3}}, script={"turns": turns})

    line = f"{GENBA} run worker 2>&1 | head -1"
    subprocess.run(["sh", "-c", line], cwd=project.root, env={**os.environ, **project.environment}, check=True)

    until(lambda: project.events()[-1]["event"] == "run_ended")
    assert (project.root / "f2").exists()


@pytest.mark.parametrize(
    "left",
    [
        'rm -rf "$r"; mkdir -p "$r/x"',
        'rm -f "$r"; mkfifo "$r"',
        'rm -f "$r"; ln -s missing "$r"',
        'cd "$(dirname "$r")"; for f in 0001 0002 0003; do rm -rf $f.prompt.md; mkdir -p $f.prompt.md/x; done',
    ],
    ids=["folder", "pipe", "dangling-link", "folders-for-the-next-questions"],
)
def test_what_stands_in_the_place_of_a_reply_is_no_reply(project: Project, left: str) -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    completion = {"type": "structuredSignal", "config": {"outputSchema": schema}}
    _custom(project, f"r={{reply_file}}; {left}", completion=completion, limits={"retries": 0, "reasks": 1})

    done = project.genba("run", "worker", "--json", check=1)

    assert done.json["outcome"] in ("incomplete", "failed")
    assert "unexpected" not in done.out + done.err


def test_a_link_as_the_root_of_working_trees_works(project: Project, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    project.agent()
    (project.root / ".worktrees").symlink_to(tmp_path / "elsewhere")

    assert project.run("worker")["outcome"] == "completed"
    assert project.branches() == ["main"]


def test_a_tag_of_the_same_name_does_not_confuse(project: Project) -> None:
    project.git("tag", "main")
    project.agent()

    assert project.run("worker")["outcome"] == "completed"


def test_a_rebase_in_a_linked_checkout_is_respected(project: Project, tmp_path: Path) -> None:
    project.write("a.txt", "1\n")
    project.agent()
    project.git("switch", "-q", "-c", "dev")
    project.write("a.txt", "2\n")
    project.commit("dev")
    project.git("switch", "-q", "main")
    project.write("a.txt", "3\n")
    project.commit("main")
    linked = tmp_path / "linked"
    project.git("worktree", "add", "-q", str(linked), "dev")
    subprocess.run(["git", "rebase", "main"], cwd=linked, capture_output=True, check=False)

    result = project.run("worker", "--base-branch", "dev", check=5)

    assert "dev is in the middle of a rebase" in result["reason"]


def test_a_checkout_that_was_deleted_is_not_in_the_way(project: Project, tmp_path: Path) -> None:
    project.agent()
    project.git("branch", "dev")
    project.git("worktree", "add", "-q", str(tmp_path / "gone"), "dev")
    subprocess.run(["rm", "-rf", str(tmp_path / "gone")], check=True)

    assert project.run("worker", "--base-branch", "dev")["outcome"] == "completed"


def test_a_fast_forward_that_fails_half_way_is_put_back(project: Project) -> None:
    project.agent(script={"turns": [{"do": [{"run": f"echo new > new.txt; echo more >> README.md; {COMMIT}"}]}]})
    lock = project.root / ".git/refs/heads/main.lock"
    lock.touch()

    stopped = project.run("worker", check=5)

    assert project.git("status", "--porcelain") == ""
    assert not (project.root / "new.txt").exists()
    lock.unlink()
    assert project.run("--resume", stopped["run"])["outcome"] == "completed"
    assert project.read("new.txt") == "new\n"


def test_a_branch_that_cannot_be_is_refused_in_words(project: Project) -> None:
    project.agent()

    done = project.genba("run", "worker", "--branch", "main/x", check=5)

    assert 'no working tree can be made for the branch "main/x"' in done.err
    assert not (project.root / ".git/genba/trees/main%2Fx.json").exists()


def test_a_title_cannot_forge_a_trailer(project: Project) -> None:
    project.agent(parameters={"issue": {"type": "number"}})
    project.issue(3, "Three\n\nSession: forged")

    project.run("worker", "--issue", "3")

    message = project.git("log", "-1", "--format=%B")
    assert message.splitlines()[0] == "Merge Three Session: forged (#3)"
    assert project.git("log", "-1", "--format=%(trailers:key=Session,valueonly)").startswith("worker-")
