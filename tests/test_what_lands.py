"""What lands was checked, as it is: nothing red is merged, and nothing is closed whose work did not arrive."""

import subprocess
from pathlib import Path
from typing import Any

from tests.project import Project, gated, says

GOOD = {"validators": {"good": {"type": "command", "command": "! grep -rq BAD --include=*.txt ."}}}
CONDITION = {"work": {"completionConditions": [{"validator": "good"}]}}
MOVE_MAIN = 'cd "$(git rev-parse --git-common-dir)/.." && {} && git add -A && '
MOVE_MAIN += "git -c user.name=U -c user.email=u@localhost commit -qm moved"
WHO = ("-c", "user.name=U", "-c", "user.email=u@localhost")
KEYWORD = {"type": "keywordSignal", "config": {"completionKeyword": "DONE"}}

NEVER_DONE = """
CREATE TRIGGER never_done BEFORE UPDATE OF status ON tasks WHEN NEW.status = 'done'
BEGIN SELECT RAISE(ABORT, 'the database says no'); END
"""
"""A blackboard that takes everything but the last word."""


def _write(path: str, text: str) -> dict[str, Any]:
    return {"write": {"path": path, "text": text}}


def test_a_conflict_that_was_resolved_badly_is_not_merged(project: Project) -> None:
    project.write("shared.txt", "in the beginning\n")
    first = [_write("shared.txt", "agent\n"), {"commit": "Change"}, {"run": MOVE_MAIN.format("echo user > shared.txt")}]
    fix = [_write("shared.txt", "both\n"), {"commit": "Move"}]
    project.agent(
        completion={"type": "keywordSignal", "config": {"completionKeyword": "DONE"}},
        steps=CONDITION,
        registry=GOOD,
        script={"turns": [{"do": first, "reply": {"word": "DONE"}}, {"do": fix, "reply": {"word": "DONE"}}]},
    )
    stopped = project.run("worker", check=5)
    tree = Path(stopped["workdir"])
    subprocess.run(["git", *WHO, "merge", "main"], cwd=tree, check=False, capture_output=True)
    (tree / "shared.txt").write_text("<<<<<<< BAD >>>>>>>\n")
    subprocess.run(["git", *WHO, "commit", "-qam", "Resolved, badly"], cwd=tree, check=True)

    result = project.run("--resume", stopped["run"])

    assert result["outcome"] == "completed"
    assert project.read("shared.txt") == "both\n"
    assert "`good` does not hold" in project.prompts(stopped["run"])[-1]


def test_work_that_is_green_alone_and_red_with_the_base_goes_back_to_its_author(project: Project) -> None:
    project.write("check.sh", "! { test -e mine.txt && test -e theirs.txt; } || test -e both.txt\n")
    moved = MOVE_MAIN.format("touch theirs.txt")
    turns = [
        {"do": [_write("mine.txt", "m\n"), {"commit": "Mine"}, {"run": moved}], "reply": {"word": "DONE"}},
        {
            "expect": "`good` does not hold",
            "do": [_write("both.txt", "b\n"), {"commit": "Both"}],
            "reply": {"word": "DONE"},
        },
    ]
    project.agent(
        completion={"type": "keywordSignal", "config": {"completionKeyword": "DONE"}},
        steps=CONDITION,
        registry={"validators": {"good": {"type": "command", "command": "sh check.sh"}}},
        script={"turns": turns},
    )

    result = project.run("worker")

    assert result["outcome"] == "completed"
    assert result["iterations"] == 2
    assert (project.root / "both.txt").exists()
    assert project.branches() == ["main"]


def test_checks_that_hold_only_with_uncommitted_changes_do_not_count(project: Project) -> None:
    turns = [
        {"do": [_write("a.txt", "BAD\n"), {"commit": "Bad"}, _write("a.txt", "fine\n")], "reply": {"word": "DONE"}},
        {"do": [_write("a.txt", "fine\n"), {"commit": "Fine"}], "reply": {"word": "DONE"}},
    ]
    project.agent(
        completion={"type": "keywordSignal", "config": {"completionKeyword": "DONE"}},
        steps=CONDITION,
        registry=GOOD,
        script={"turns": turns},
    )

    result = project.run("worker")

    assert (result["outcome"], result["iterations"]) == ("completed", 2)
    assert project.read("a.txt") == "fine\n"
    assert project.git("show", f"refs/genba/rescue/{result['run']}:a.txt") == "fine"


def test_what_stays_red_is_never_merged(project: Project) -> None:
    turn = {"do": [_write("a.txt", "BAD\n"), {"commit": "Bad"}, _write("a.txt", "fine\n")], "reply": {"word": "DONE"}}
    project.agent(
        completion={"type": "keywordSignal", "config": {"completionKeyword": "DONE"}},
        steps=CONDITION,
        registry=GOOD,
        script={"turns": [turn], "repeat": True},
    )
    before = project.git("rev-parse", "main")

    result = project.run("worker", check=1)

    assert result["outcome"] in ("incomplete", "failed")
    assert project.git("rev-parse", "main") == before


def test_an_issue_stays_open_while_its_work_is_not_merged(project: Project) -> None:
    project.agent(
        parameters={"issue": {"type": "number"}},
        integrations={"github": {"enabled": True, "labels": {"inProgress": "busy"}}},
    )
    project.issue(3, "Three")

    result = project.run("worker", "--issue", "3", "--no-merge")

    assert result["outcome"] == "completed"
    assert project.issue_front(3) == {"title": "Three", "state": "open", "labels": ["busy"]}
    notices = [event["message"] for event in project.events() if event["event"] == "notice"]
    assert any("issue #3 stays open" in notice for notice in notices)


def test_a_closed_issue_is_not_worked_on(project: Project) -> None:
    project.agent(parameters={"issue": {"type": "number"}}, integrations={"github": {"enabled": True}})
    project.issue(3, "Three", state="closed")

    done = project.genba("run", "worker", "--issue", "3", check=5)

    assert "issue #3 is closed" in done.err
    assert project.branches() == ["main"]


def test_a_closure_that_failed_is_carried_out_by_resuming(project: Project) -> None:
    project.agent(parameters={"issue": {"type": "number"}}, integrations={"github": {"enabled": True}})
    project.issue(3, "Three")
    project.sql(NEVER_DONE)
    stopped = project.run("worker", "--issue", "3", check=1)
    assert "could not be closed" in stopped["reason"]
    project.sql("DROP TRIGGER never_done")

    result = project.run("--resume", stopped["run"])

    assert result["outcome"] == "completed"
    assert result["merged"] == stopped["merged"]
    assert project.issue_front(3)["state"] == "closed"


def test_finishing_an_old_run_leaves_the_tree_of_a_new_one_alone(project: Project) -> None:
    work = "echo $GENBA_RUN > x; git add -A; git commit -qm x"
    project.agent(
        parameters={"issue": {"type": "number"}},
        integrations={"github": {"enabled": True}},
        adapter={"type": "custom", "command": work},
        completion=KEYWORD,
        limits={"maxIterations": 1},
    )
    project.agent("once", adapter={"type": "custom", "command": work},
                  parameters={"issue": {"type": "number"}}, integrations={"github": {"enabled": True}})  # fmt: skip
    project.issue(3, "Three")
    project.sql(NEVER_DONE)
    old = project.run("once", "--issue", "3", check=1)
    project.sql("DROP TRIGGER never_done; UPDATE tasks SET status = 'open'")
    new = project.run("worker", "--issue", "3", check=6)

    assert project.run("--resume", old["run"])["outcome"] == "completed"

    assert (Path(new["workdir"]) / "x").read_text().strip() == new["run"]
    assert new["branch"] in project.branches()


def test_replies_that_never_fit_are_not_asked_for_without_end(project: Project) -> None:
    steps = {
        "plan": {"structuredGate": gated("next", "repeat", fallbackIntent="repeat"), "transitions": {"next": "end"}},
        "end": {"stepKind": "closure"},
    }
    project.agent(
        completion={"type": "stepMachine"},
        registry={"entryStep": "plan"},
        steps=steps,
        script={"turns": [{"reply": "prose"}], "repeat": True},
        limits={"reasks": 1},
    )

    result = project.run("worker", check=1)

    assert result["outcome"] == "incomplete"
    assert "no progress: no reply fits" in result["reason"]
    assert result["iterations"] == 2


def test_work_of_an_agent_that_answers_in_prose_is_judged_by_what_git_shows(project: Project) -> None:
    project.write(".genba/config.yaml", f"agents: {{default: {{adapter: {{type: custom, command: '{_commit()}'}}}}}}\n")
    project.commit()
    project.issue(3, "Three")

    result = project.run("iterator", "--issue", "3")

    assert result["outcome"] == "completed"
    assert project.issue_front(3)["state"] == "closed"
    assert project.git("ls-tree", "--name-only", "main", "x").strip() == "x"


def _commit() -> str:
    return "test -e x || { echo x > x; git add -A; git commit -qm x; }; echo prose"


def test_a_budget_that_is_used_up_says_how_to_go_on(project: Project) -> None:
    project.agent(
        completion={"type": "keywordSignal", "config": {"completionKeyword": "DONE"}},
        script={"turns": [{"reply": "one"}, {"reply": "two"}, {"reply": {"word": "DONE"}}]},
        limits={"maxIterations": 2},
    )
    stopped = project.run("worker", check=6)

    assert stopped["hint"] == f"genba run --resume {stopped['run']} --set runner.limits.maxIterations=4"
    words = stopped["hint"].split()[2:]
    assert project.run(*words)["outcome"] == "completed"


def test_a_remote_with_a_relative_path_is_pushed_to(project: Project, tmp_path: Path) -> None:
    project.git("init", "-q", "--bare", "-b", "main", str(tmp_path / "remote.git"))
    project.git("remote", "add", "origin", "../remote.git")
    project.agent()

    result = project.run("worker", "--push")

    assert project.git("ls-remote", "origin", "main").split()[0] == result["merged"]


def test_a_push_that_is_refused_keeps_the_merge_and_says_why(project: Project) -> None:
    project.git("remote", "add", "origin", "../nowhere.git")
    project.agent()

    result = project.run("worker", "--push", check=1)

    assert "main could not be pushed to origin" in result["reason"]
    assert "\n" not in result["reason"]
    assert project.git("log", "-1", "--format=%s").startswith("Merge")


def test_attempts_are_counted_again_when_the_flow_comes_back(project: Project) -> None:
    steps = {
        "work": {
            "structuredGate": gated("next"),
            "transitions": {"next": "look"},
            "completionConditions": [{"validator": "good"}],
            "onFailure": {"maxAttempts": 2},
        },
        "look": {
            "stepKind": "verification",
            "structuredGate": gated("jump", "next"),
            "transitions": {"jump": "work", "next": None},
        },
    }

    def turn(text: str) -> dict[str, Any]:
        return {"do": [_write("a.txt", text), {"commit": text.strip()}], "reply": says("next")}

    project.agent(
        completion={"type": "stepMachine"},
        registry={"entryStep": "work", **GOOD},
        steps=steps,
        script={
            "steps": {
                "work": [turn("BAD 1\n"), turn("fine 1\n"), turn("BAD 2\n"), turn("fine 2\n")],
                "look": [{"reply": says("jump")}, {"reply": says("next")}],
            }
        },
    )

    result = project.run("worker")

    assert result["outcome"] == "completed"
    assert project.steps_walked() == ["work", "work", "look", "work", "work", "look"]


def test_an_escalation_ends_blocked_with_its_reason(project: Project) -> None:
    steps = {
        "look": {
            "stepKind": "verification",
            "structuredGate": gated("escalate", "next"),
            "transitions": {"escalate": None, "next": None},
        }
    }
    reply = says("escalate", reason="Two readings are possible.")
    project.agent(completion={"type": "stepMachine"}, steps=steps, script={"turns": [{"reply": reply}]})

    result = project.run("worker", check=1)

    assert (result["outcome"], result["reason"]) == ("blocked", "Two readings are possible.")


def test_the_way_on_of_a_gate_reaches_the_closing_step(project: Project) -> None:
    steps = {
        "plan": {"structuredGate": gated("handoff"), "transitions": {"handoff": "end"}},
        "end": {"stepKind": "closure", "structuredGate": gated("closing")},
    }
    project.agent(
        completion={"type": "stepMachine"},
        registry={"entryStep": "plan"},
        steps=steps,
        script={"steps": {"plan": [{"reply": says("handoff")}], "end": [{"reply": says("closing")}]}},
    )

    assert project.run("worker")["outcome"] == "completed"


def test_a_commit_beside_the_branch_does_not_make_the_branch_green(project: Project) -> None:
    first = "echo BAD > s.txt; git add -A; git commit -qm bad; "
    first += "git checkout -q --detach; echo fine > s.txt; git commit -qam fine"
    fix = "git checkout -q -f -; git checkout -q -f $(git for-each-ref --format='%(refname:short)' refs/heads/genba); "
    fix += "echo fine > s.txt; git commit -qam fine"
    project.agent(
        completion=KEYWORD,
        steps=CONDITION,
        registry=GOOD,
        script={
            "turns": [{"do": [{"run": first}], "reply": {"w": "DONE"}}, {"do": [{"run": fix}], "reply": {"w": "DONE"}}]
        },
    )

    project.genba("run", "worker", "--json")

    assert "BAD" not in project.git("grep", "-h", "", "main", "--", "*.txt")


def test_work_that_was_never_committed_is_not_done(project: Project) -> None:
    steps = {"work": {"completionConditions": [{"validator": "there"}], "onFailure": {"maxAttempts": 2}}}
    project.agent(
        completion=KEYWORD,
        steps=steps,
        registry={"validators": {"there": {"type": "file-exists", "path": "s.txt"}}},
        script={"turns": [{"do": [_write("s.txt", "x")], "reply": {"w": "DONE"}}], "repeat": True},
        parameters={"issue": {"type": "number"}},
        integrations={"github": {"enabled": True}},
    )
    project.issue(5, "Five")

    result = project.run("worker", "--issue", "5", check=1)

    assert result["outcome"] == "incomplete"
    assert project.issue_front(5)["state"] == "open"


def test_a_check_that_fixes_the_tree_itself_does_not_count(project: Project) -> None:
    steps = {
        "work": {
            "completionConditions": [{"validator": "move"}, {"validator": "good"}],
            "onFailure": {"maxAttempts": 2},
        }
    }
    validators = {"move": {"type": "command", "command": "echo fine > a.txt"}, **GOOD["validators"]}
    turn = {
        "do": [_write("a.txt", "BAD\n"), {"run": "git add -A; git commit -qm bad --allow-empty"}],
        "reply": {"w": "DONE"},
    }
    project.agent(
        completion=KEYWORD, steps=steps, registry={"validators": validators}, script={"turns": [turn], "repeat": True}
    )
    before = project.git("rev-parse", "main")

    result = project.run("worker", check=1)

    assert result["outcome"] == "incomplete"
    assert project.git("rev-parse", "main") == before


def test_a_base_that_was_rewound_during_the_check_does_not_come_back(project: Project) -> None:
    top = 'cd "$(git rev-parse --git-common-dir)/.." && '
    once = 'test -e "$HOME/rewound" || { touch "$HOME/rewound"; ' + top + "git reset -q --hard HEAD~1; }"
    work = [_write("a.txt", "a\n"), {"commit": "Mine"}, {"run": MOVE_MAIN.format("touch secret.txt")}]
    project.agent(
        completion=KEYWORD,
        steps={"work": {"completionConditions": [{"validator": "slow"}]}},
        registry={"validators": {"slow": {"type": "command", "command": f"test ! -e secret.txt || {{ {once}; }}"}}},
        script={"turns": [{"do": work, "reply": {"w": "DONE"}}]},
    )

    result = project.run("worker")

    assert result["outcome"] == "completed"
    assert not (project.root / "secret.txt").exists()
    assert "secret.txt" not in project.git("ls-tree", "-r", "--name-only", "main")


def test_an_unfinished_merge_of_the_user_and_his_files_are_left_alone(project: Project) -> None:
    project.agent(script={"turns": [{"do": [_write("notes.txt", "agent\n"), {"commit": "Notes"}], "reply": "x"}]})
    project.git("switch", "-q", "-c", "other")
    project.git("commit", "-q", "--allow-empty", "-m", "empty")
    project.git("switch", "-q", "main")
    project.git("merge", "-q", "--no-commit", "--no-ff", "other")
    project.write("notes.txt", "mine\n")

    result = project.run("worker", check=5)

    assert "in the middle of something (MERGE_HEAD)" in result["reason"]
    assert project.read("notes.txt") == "mine\n"


def test_a_folder_of_the_user_where_a_file_would_land_is_left_alone(project: Project) -> None:
    project.agent(script={"turns": [{"do": [_write("notes", "agent\n"), {"commit": "Notes"}], "reply": "x"}]})
    project.write("notes/mine.txt", "mine\n")

    result = project.run("worker", check=5)

    assert result["merge"] == "checkout_in_the_way"
    assert project.read("notes/mine.txt") == "mine\n"
    assert project.git("status", "--porcelain") == "?? notes/"


def test_the_users_merge_options_change_nothing(project: Project) -> None:
    project.git("config", "branch.main.mergeOptions", "--squash")
    project.agent()

    result = project.run("worker")

    assert project.git("rev-parse", "main") == result["merged"]
    assert project.git("status", "--porcelain") == ""


def test_a_submodule_pointer_is_only_a_file(project: Project) -> None:
    link = "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),lib && git commit -qm lib"
    project.agent(
        completion=KEYWORD,
        steps={"work": {"completionConditions": [{"validator": "commits-exist"}]}},
        script={"turns": [{"do": [{"run": link}, {"run": MOVE_MAIN.format("touch b.txt")}], "reply": {"w": "DONE"}}]},
    )

    assert project.run("worker")["outcome"] == "completed"


def test_in_the_users_checkout_nothing_uncommitted_is_pushed_as_done(project: Project, tmp_path: Path) -> None:
    project.git("init", "-q", "--bare", "-b", "main", str(tmp_path / "remote.git"))
    project.git("remote", "add", "origin", "../remote.git")
    work = [_write("a.txt", "BAD\n"), {"commit": "Bad"}, _write("a.txt", "fine\n")]
    project.agent(
        execution={"worktree": {"enabled": False}, "finalize": {"push": True}},
        script={"turns": [{"do": work, "reply": "x"}]},
    )

    result = project.run("worker", check=1)

    assert "nothing was pushed" in result["reason"]
    assert project.git("ls-remote", "origin") == ""


def test_another_agent_does_not_take_over_unfinished_work(project: Project) -> None:
    issue = {"issue": {"type": "number"}}
    project.agent("first", parameters=issue, completion=KEYWORD, limits={"maxIterations": 1})
    project.agent("second", parameters=issue)
    project.issue(4, "Four")
    stopped = project.run("first", "--issue", "4", check=6)

    done = project.genba("run", "second", "--issue", "4", check=5)

    assert "first has unfinished work on genba/4-four" in done.err
    assert f"genba run --resume {stopped['run']}" in done.err
    project.run("second", "--issue", "4", "--branch", "genba/4-four")


def test_the_same_agent_goes_on_with_what_it_left(project: Project) -> None:
    project.agent(parameters={"issue": {"type": "number"}}, completion=KEYWORD, limits={"maxIterations": 1})
    project.issue(4, "Four")
    first = project.run("worker", "--issue", "4", check=6)

    second = project.genba("run", "worker", "--issue", "4", check=6)

    assert f"goes on with what {first['run']} left on genba/4-four" in second.err
    assert "1 file, 1 commit" in second.err


def test_a_run_that_cannot_push_is_refused_before_it_works(project: Project) -> None:
    project.agent()

    done = project.genba("run", "worker", "--push", check=3)

    assert 'there is no remote "origin" to push to' in done.err
    assert project.branches() == ["main"]


def test_labels_follow_how_a_run_ends(project: Project) -> None:
    labels = {"inProgress": "busy", "blocked": "stuck"}
    project.write("shared.txt", "in the beginning\n")
    work = [_write("shared.txt", "agent\n"), {"commit": "Change"}, {"run": MOVE_MAIN.format("echo user > shared.txt")}]
    project.agent(
        parameters={"issue": {"type": "number"}},
        integrations={"github": {"enabled": True, "labels": labels}},
        script={"turns": [{"do": work, "reply": "x"}]},
    )
    project.agent(
        "idler",
        parameters={"issue": {"type": "number"}},
        integrations={"github": {"enabled": True, "labels": labels}},
        completion=KEYWORD,
        limits={"maxIterations": 1},
    )
    project.issue(1, "One")
    project.issue(2, "Two")

    project.run("worker", "--issue", "1", check=5)
    project.run("idler", "--issue", "2", check=6)

    assert project.issue_front(1)["labels"] == ["stuck"]
    assert project.issue_front(2)["labels"] == []


def test_an_iteration_budget_can_be_raised_and_stays_raised(project: Project) -> None:
    steps = {"work": {"completionConditions": [{"validator": "good"}]}}
    turns: list[dict[str, Any]] = [{"do": [_write("a.txt", f"BAD {n}\n"), {"commit": "b"}]} for n in range(2)]
    turns += [{"do": [_write("a.txt", "fine\n"), {"commit": "f"}]}, {"reply": "x"}]
    project.agent(steps=steps, registry=GOOD, script={"turns": turns})
    first = project.run("worker", check=1)
    assert first["hint"].endswith("--set runner.completion.config.maxIterations=2")
    second = project.run(*first["hint"].split()[2:], check=1)

    third = project.run(*second["hint"].split()[2:])

    assert third["outcome"] == "completed"


def test_the_answer_of_the_agent_is_in_the_result_and_in_the_journal(project: Project) -> None:
    project.agent(script={"turns": [{"reply": {"verdict": "approve"}}]})

    result = project.run("worker")

    assert result["output"] == {"verdict": "approve"}
    assert 'reply  │ {"verdict":"approve"}' in project.genba("logs", result["run"], "--output", check=0).out


def test_work_whose_base_moved_meanwhile_lands_at_once_when_it_holds(project: Project) -> None:
    turns = [{"do": [_write("mine.md", "m\n"), {"commit": "Mine"}, {"run": MOVE_MAIN.format("touch theirs.md")}]}]
    conditions = {"work": {"completionConditions": [{"validator": "git-clean"}, {"validator": "commits-exist"}]}}
    project.agent(steps=conditions, script={"turns": turns})
    result = project.run("worker")
    assert (result["outcome"], result["iterations"]) == ("completed", 1)
    assert project.git("ls-tree", "--name-only", "main", "mine.md", "theirs.md") == "mine.md\ntheirs.md"
    assert project.git("for-each-ref", "refs/genba/rescue") == ""
