"""`genba verify`, and what a run does with a verdict: through the real command line, on real repositories."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from genba.domain.tasks.task import TaskStatus
from tests.bubblewrap import needs_bubblewrap
from tests.project import COMMIT, GENBA, Project, ordinary_environment, until

ISSUE = {"issue": {"type": "number"}}
CLOSES = {"github": {"enabled": True}}
CODE = "def twice(x):\n    return x + x\n"
TEST = "import unittest\nfrom code_ import twice\n\n\nclass T(unittest.TestCase):\n    def test_two(self):\n        self.assertEqual(twice(2), 4)\n"  # noqa: E501
DOD = "dod:\n  - tests_pass: python3 -m unittest -q\n"


def started(project: Project, config: str = DOD) -> None:
    """A small project with code, a test and a Definition of Done."""
    project.write("code_.py", CODE)
    project.write("test_code.py", TEST)
    project.write(".genba/config.yaml", config)
    project.commit("Begin")


def branch(project: Project, name: str = "work", **files: str) -> str:
    """A branch with one commit over main, made without touching the checkout for long."""
    project.git("switch", "-q", "-c", name)
    for path, text in files.items():
        project.write(path.replace("__", "/"), text)
    commit = project.commit("Work")
    project.git("switch", "-q", "main")
    return commit


def verified(project: Project, *words: str, check: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = project.genba("verify", *words, "--json", check=check).json
    verification: dict[str, Any] = found["verification"]
    return verification


def results(verification: dict[str, Any]) -> dict[str, str]:
    return {each["goal"]["goal"]["type"]: each["result"]["status"] for each in verification["results"]}


def worker(project: Project, command: str, **runner: Any) -> None:
    project.agent(parameters=ISSUE, integrations=CLOSES, adapter={"type": "custom", "command": command}, **runner)


def test_the_verdict_stands_first_and_each_goal_with_its_evidence(project: Project) -> None:
    started(project)
    commit = branch(project, more_="x", **{"code_.py": CODE.replace("x + x", "x + 1")})
    done = project.genba("verify", "work", check=1)

    first, *rest = done.out.splitlines()
    assert first == f"work rejected: goals_not_met      commit {commit[:7]} on work, 1 commit over main"
    assert any("tests_pass" in line and "✗" in line and ".genba/config.yaml at main" in line for line in rest)
    assert "AssertionError: 3 != 4" in done.out
    log = next(line.split()[-1] for line in rest if "log: genba logs goal" in line)
    assert "AssertionError: 3 != 4" in project.genba("logs", "goal", log, check=0).out


@pytest.mark.parametrize("name", ["work", "sha", "task"])
def test_a_task_a_branch_and_a_commit_are_verified_alike(project: Project, name: str) -> None:
    started(project)
    project.issue(1, "One")
    worker(project, "git merge -q --ff-only work", execution={"finalize": {"autoMerge": False}})
    commit = branch(project, more_="x")
    if name == "task":
        project.run("worker", "--issue", "1")
    target = {"work": "work", "sha": commit[:10], "task": "1"}[name]

    found = verified(project, target)

    assert (found["status"], found["commits"]) == ("done", 1)
    assert found["subject"]["commit"] == commit
    assert results(found)["tests_pass"] == "passed"


def test_explain_says_where_each_goal_comes_from_and_runs_nothing(project: Project) -> None:
    started(project, DOD + "task_types: {bug: {goals: [{type: test_added, pattern: '**/*.test.*'}]}}\n")
    project.issue(1, "One", type="bug")
    project.genba("task", "edit", "1", "--goal", "custom_script:touch /tmp/never-made-by-explain", check=0)

    result = project.genba("verify", "1", "--explain", check=0).out

    lines = [line.split() for line in result.splitlines()]
    assert ["dod", "tests_pass:", "python3", "-m", "unittest", "-q", ".genba/config.yaml", "at", "main"] in lines
    assert any(line[:2] == ["type", "test_added:"] and line[-5:-3] == ["bug", "rule,"] for line in lines)
    assert any(line[:2] == ["ac", "custom_script:"] and line[-2:] == ["task", "#1"] for line in lines)
    assert not Path("/tmp/never-made-by-explain").exists()


def test_goals_come_from_the_base_and_never_from_the_branch(project: Project) -> None:
    started(project)
    branch(project, **{".genba/config.yaml": "dod: []\n", "code_.py": "def twice(x): return 5\n"})
    assert results(verified(project, "work", "--may-change", ".genba/**", check=1))["tests_pass"] == "failed"
    assert results(verified(project, "work", check=1))["protected_paths"] == "failed"


def test_only_the_commit_is_there_when_goals_are_checked(project: Project) -> None:
    started(project, "dod:\n  - custom_script: test ! -e left.txt && test ! -e .env\n")
    project.write(".gitignore", ".env\n")
    project.commit()
    worker(project, "echo x > x.txt; git add x.txt; git commit -qm x; echo left > left.txt; echo secret > .env")
    project.issue(1, "One")

    result = project.run("worker", "--issue", "1")

    assert (result["outcome"], result["verdict"]) == ("completed", "done")


def test_a_goal_that_is_not_required_is_reported_and_does_not_reject(project: Project) -> None:
    started(project, "dod:\n  - {type: custom_script, script: 'false', required: false}\n")
    branch(project, more_="x")
    found = verified(project, "work")
    assert (found["status"], results(found)["custom_script"]) == ("done", "failed")
    assert "(reported only)" in project.genba("verify", "work", check=0).out


def test_a_tree_that_was_checked_is_not_checked_again(project: Project) -> None:
    counter = project.root.parent / "count"
    started(project, f"dod:\n  - custom_script: echo x >> {counter}\n")
    branch(project, more_="x")

    verified(project, "work")
    again = verified(project, "work")
    assert counter.read_text() == "x\n"
    assert all(each["cached"] for each in again["results"] if each["goal"]["goal"]["type"] == "custom_script")

    verified(project, "work", "--fresh")
    assert counter.read_text() == "x\nx\n"
    project.genba("verify", "work", check=0, LANG="xx")
    assert counter.read_text() == "x\nx\nx\n", "another environment is another result"


def test_a_broken_goal_is_an_error_and_neither_a_pass_nor_a_fail(project: Project) -> None:
    started(project, "dod:\n  - lint_passes: no-such-linter .\n")
    branch(project, more_="x")
    done = project.genba("verify", "work", check=1)
    assert done.out.startswith("work error ")
    assert "no-such-linter" in done.out
    assert "hint: genba verify work --explain" in done.err
    assert verified(project, "work", check=1)["results"][0]["cached"] is False


def test_a_goal_without_a_command_says_what_is_missing(project: Project) -> None:
    project.write(".genba/config.yaml", "dod: [lint_passes]\n")
    project.commit()
    branch(project, more_="x")
    assert "no lint command was found" in project.genba("verify", "work", check=1).out


def test_a_goal_has_so_much_time(project: Project) -> None:
    started(project, "dod:\n  - {type: custom_script, script: sleep 60, timeout_seconds: 0.3}\n")
    branch(project, more_="x")
    found = verified(project, "work", check=1)
    assert "took longer than 0.3 s" in found["results"][0]["result"]["detail"]


def test_a_port_that_is_taken_is_an_error(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        url = f"http://127.0.0.1:{port}/"
        goal = f"{{type: endpoint_responds, url: '{url}', serve: '{sys.executable} -m http.server {port}'}}"
        started(project, f"dod:\n  - {goal}\n")
        branch(project, more_="x")
        assert f"port {port} is taken" in project.genba("verify", "work", check=1).out


def test_a_service_is_started_asked_and_ended(project: Project) -> None:
    serve = f"{sys.executable} -m http.server {{port}} --bind 127.0.0.1"
    config = f"verification: {{serve: '{serve}'}}\ndod:\n"
    config += "  - endpoint_responds: GET /answer.json → 200\n  - response_contains: GET /answer.json $.token == 7\n"
    config += "  - {type: endpoint_responds, url: /nothing, status: 404}\n"
    started(project, config)
    branch(project, **{"answer.json": '{"token": 7}'})
    assert verified(project, "work")["status"] == "done"
    branch(project, "wrong", **{"answer.json": '{"token": 8}'})
    assert results(verified(project, "wrong", check=1))["response_contains"] == "failed"


def test_setups_goals_and_services_are_an_agent_to_genba(project: Project) -> None:
    kept = project.root.parent / "who.txt"
    who = f"echo >> {kept} $GENBA_RUN $GENBA_AGENT"
    serve = f"{who} serve; exec {sys.executable} -m http.server {{port}} --bind 127.0.0.1"
    config = {
        "sandbox": {"kind": "worktree"},
        "verification": {"setup": f"{who} setup", "serve": serve, "environment": {"GENBA_RUN": ""}},
        "dod": [{"custom_script": f"{who} goal"}, {"endpoint_responds": "GET / → 200"}],
    }
    started(project, yaml.safe_dump(config, allow_unicode=True))
    branch(project, more_="x")
    assert verified(project, "work")["status"] == "done"
    lines = [line.split() for line in kept.read_text("utf-8").splitlines()]
    assert {words[-1] for words in lines} == {"setup", "goal", "serve"}
    assert all(words[0].startswith("verify-") and words[1] == "goals" for words in lines)


def test_a_tag_does_not_stand_for_the_branch_of_its_name(project: Project) -> None:
    started(project)
    branch(project, **{".genba/config.yaml": "dod: []\n", "code_.py": "def twice(x): return 5\n"})
    project.git("tag", "main", "work")
    assert results(verified(project, "work", "--may-change", ".genba/**", check=1))["tests_pass"] == "failed"


def test_what_cannot_be_verified_is_refused(project: Project) -> None:
    started(project)
    assert '"nothing-such" is no task, no branch and no commit' in project.genba("verify", "nothing-such", check=4).err
    assert "is no task, no branch and no commit" in project.genba("verify", "²", check=4).err
    assert "say what to verify" in project.genba("verify", check=4).err
    project.issue(1, "One")
    done = project.genba("verify", "1", check=5)
    assert "task #1 has no branch yet" in done.err
    assert "hint: genba run iterator --issue 1" in done.err
    assert "there is no task #7" in project.genba("verify", "#7", check=4).err


def test_rejected_work_goes_back_with_the_evidence_and_is_fixed(project: Project) -> None:
    started(project)
    project.issue(1, "Make it thrice", type="feature")
    lie = {"do": [{"write": {"path": "code_.py", "text": "def twice(x):\n    return 0\n"}}, {"commit": "Done"}],
           "reply": {"status": "completed", "summary": "All tests pass."}}  # fmt: skip
    fix = {"expect": ["`verification` does not hold: rejected: goals_not_met (tests_pass)", "AssertionError: 0 != 4"],
            "do": [{"write": {"path": "code_.py", "text": CODE + "\n\nTHRICE = 3\n"}}, {"commit": "Move"}],
            "reply": {"status": "completed"}}  # fmt: skip
    project.agent(
        parameters=ISSUE, integrations=CLOSES, completion={"type": "externalState"}, script={"turns": [lie, fix]}
    )

    result = project.run("worker", "--issue", "1")

    assert (result["outcome"], result["iterations"], result["verdict"]) == ("completed", 2, "done")
    assert project.task(1).status is TaskStatus.DONE
    verdicts = [event["status"] for event in project.events() if event["event"] == "verification_finished"]
    assert verdicts == ["rejected", "done"]


def test_a_later_run_begins_with_the_evidence_of_the_last_one(project: Project) -> None:
    started(project)
    project.issue(1, "One")
    worker(project, "echo 'def twice(x): return 0' > code_.py; git commit -qam lie")
    first = project.run("worker", "--issue", "1", check=1)
    assert first["verdict"] == "rejected: goals_not_met"
    assert project.task(1).status is TaskStatus.OPEN

    project.genba("run", "worker", "--issue", "1")

    assert "AssertionError: 0 != 4" in project.prompts()[0]


def test_the_same_lie_twice_stops_the_run(project: Project) -> None:
    started(project)
    project.issue(1, "One")
    lie = "test -e lie || { echo 'def twice(x): return 0' > code_.py; touch lie; git add -A; git commit -qm lie; }"
    worker(project, lie, completion={"type": "externalState"})
    result = project.run("worker", "--issue", "1", check=1)
    assert "no progress: verification" in result["reason"]
    assert project.task(1).status is TaskStatus.OPEN


def test_without_a_task_the_definition_of_done_counts_for_what_lands(project: Project) -> None:
    started(project)
    project.agent(
        adapter={"type": "custom", "command": "echo 'def twice(x): return 0' > code_.py; git commit -qam lie"}
    )
    before = project.git("rev-parse", "main")
    result = project.run("worker", check=1)
    assert result["verdict"] == "rejected: goals_not_met"
    assert project.git("rev-parse", "main") == before
    project.agent("fine", adapter={"type": "custom", "command": "echo x > x; git add x; git commit -qm x"})
    assert project.run("fine")["verdict"] == "done"


def test_what_may_be_changed_can_be_set_for_one_run(project: Project) -> None:
    started(project)
    project.agent(adapter={"type": "custom", "command": "echo x > ruff.toml; git add -A; git commit -qm x"})
    assert "ruff.toml" in project.run("worker", check=1)["reason"] + str(project.events())
    assert project.run("worker", "--may-change", "ruff.toml")["outcome"] == "completed"


def test_nothing_of_a_branch_runs_once_it_changes_what_judges_it(project: Project, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    project.environment["GENBA_SANDBOX"] = "worktree"
    goals: list[dict[str, Any]] = [{"type": "custom_script", "script": f"echo goal >> {ran}"}, {"type": "no_secrets"}]
    goals.append({"type": "test_added", "must_fail_on_base": True, "command": f"echo tests >> {ran}"})
    started(project, yaml.safe_dump({"dod": goals, "verification": {"setup": f"echo setup >> {ran}"}}))
    branch(project, **{"ruff.toml": "x\n", "tests__test_new.py": "def test_new():\n    assert f() == 1\n"})

    found = verified(project, "work", check=1)
    values = {each["goal"]["goal"]["type"]: each["result"]["detail"] for each in found["results"]}

    assert (found["status"], found["reason"]) == ("rejected", "goals_not_met")
    assert results(found)["custom_script"] == results(found)["test_added"] == "error"
    assert values["custom_script"] == "not run: the branch changes what judges it (protected_paths)"
    assert results(found)["no_secrets"] == "passed", "it reads the commit, and runs nothing of it"
    assert not ran.exists()
    verified(project, "work", "--may-change", "ruff.toml", check=1)
    assert ran.read_text().split()[:2] == ["setup", "goal"]


def test_a_guard_that_only_reports_keeps_no_goal_from_running(project: Project) -> None:
    started(project, "dod: [{protected_paths: {required: false}}, {tests_pass: python3 -m unittest -q}]")
    branch(project, **{"ruff.toml": "x\n"})
    assert results(verified(project, "work"))["tests_pass"] == "passed"


def test_an_agent_leaves_no_compiled_python_behind(project: Project) -> None:
    """Without a .gitignore it would be committed with the work, and be rejected."""
    started(project)
    project.agent(
        adapter={"type": "custom", "command": "python3 -m unittest -q; echo x > x; git add -A; git commit -qm x"}
    )
    assert project.run("worker")["verdict"] == "done"


def test_what_would_land_is_verified_when_the_base_moved(project: Project) -> None:
    """Each side is green; together they are red."""
    started(project)
    project.issue(1, "One")
    there = 'cd "$(git rev-parse --git-common-dir)/.."'
    elsewhere = f"{there} && printf '\\n\\nLIMIT = 3\\n' >> code_.py && git commit -qam elsewhere"
    own = (
        "printf 'import unittest\\nimport code_\\n\\n\\nclass N(unittest.TestCase):\\n    def test_none(self):\\n"
        '        self.assertFalse(hasattr(code_, "LIMIT"))\\n\' > test_none.py; git add -A; git commit -qm own'
    )
    worker(project, f"{own}; ({elsewhere})")

    result = project.run("worker", "--issue", "1", check=1)

    assert result["verdict"] == "rejected: goals_not_met"
    assert "test_none.py" not in project.git("ls-tree", "--name-only", "main")


def test_work_that_was_merged_by_hand_is_done_when_a_person_says_so(project: Project) -> None:
    started(project)
    project.issue(1, "One")
    worker(project, "echo x > x.txt; git add x.txt; git commit -qm x")
    left = project.run("worker", "--issue", "1", "--no-merge")
    assert project.task(1).status is TaskStatus.REVIEW
    early = project.genba("task", "done", "1", check=5)
    assert "is not on main" in early.err
    assert "hint: git merge " in early.err
    project.git("merge", "-q", "--no-ff", "-m", "By hand", left["branch"])

    assert project.genba("verify", "1", check=0).out.startswith("#1 done")
    by_agent = project.genba("task", "done", "1", check=5, GENBA_RUN=left["run"], GENBA_AGENT="worker")
    assert "an agent may not call a task done" in by_agent.err
    assert project.task(1).status is TaskStatus.REVIEW
    project.genba("task", "done", "1", check=0)
    assert project.task(1).status is TaskStatus.DONE
    assert "task #1: it is done already" in project.genba("task", "done", "1", check=5).err


def test_approved_work_that_finds_no_way_to_land_keeps_its_approval(project: Project) -> None:
    started(project)
    project.genba("task", "add", "One", "--review", check=0)
    worker(project, "echo '# more' >> code_.py; git commit -qam x")
    waits = project.run("worker", "--issue", "1", check=1)
    project.genba("task", "approve", "1", check=0)
    project.write("code_.py", CODE + "# mine\n")

    stuck = project.run("--resume", waits["run"], check=5)

    assert stuck["merge"] == "checkout_in_the_way"
    assert project.task(1).status is TaskStatus.REVIEW
    project.git("checkout", "-q", "code_.py")
    assert project.run("--resume", waits["run"])["outcome"] == "completed"
    assert project.task(1).status is TaskStatus.DONE


def test_what_may_be_changed_is_remembered_when_a_run_goes_on(project: Project) -> None:
    started(project)
    script = "test -e ../../go || exit 1; echo x > ruff.toml; git add -A; git commit -qm x"
    project.agent(adapter={"type": "custom", "command": script}, limits={"retries": 0})
    stopped = project.run("worker", "--may-change", "ruff.toml", check=1)
    (project.root / "go").touch()
    assert project.run("--resume", stopped["run"])["outcome"] == "completed"


def test_work_that_must_be_reviewed_waits_for_it_and_lands_after(project: Project) -> None:
    started(project, DOD + "task_types: {feature: {requires_review: true, reviewer_type: human}}\n")
    project.genba("task", "add", "One", "--type", "feature", check=0)
    worker(project, "echo 'X = 1' >> code_.py; git commit -qam x")
    before = project.git("rev-parse", "main")

    waits = project.run("worker", "--issue", "1", check=1)

    assert waits["outcome"] == "blocked"
    assert "waits for a review" in waits["reason"]
    assert project.task(1).status is TaskStatus.REVIEW
    assert project.git("rev-parse", "main") == before
    assert "is not what is to be approved" in project.genba("task", "approve", "1", "0000000", check=5).err
    approved = project.genba("task", "approve", "1", check=0)
    assert f"genba run --resume {waits['run']}" in approved.err
    landed = project.run("--resume", waits["run"])
    assert landed["outcome"] == "completed"
    assert project.task(1).status is TaskStatus.DONE
    assert "X = 1" in project.read("code_.py")


def test_what_was_approved_lands_after_the_base_moved_and_was_verified_again(project: Project) -> None:
    started(project)
    project.genba("task", "add", "One", "--review", check=0)
    worker(project, "echo x > x.txt; git add x.txt; git commit -qm x")
    waits = project.run("worker", "--issue", "1", check=1)
    project.write("other.txt", "moved\n")
    project.commit("Elsewhere")
    project.genba("task", "approve", "1", check=0)

    landed = project.run("--resume", waits["run"])

    assert landed["outcome"] == "completed"
    assert project.task(1).status is TaskStatus.DONE
    verdicts = [event for event in project.events(waits["run"]) if event["event"] == "verification_finished"]
    assert verdicts[-1]["commit"] == landed["merged"]


def test_two_runs_do_not_work_on_one_task_whatever_their_branches(project: Project) -> None:
    started(project)
    project.issue(1, "One")
    worker(
        project,
        "touch ../../started; until test -e ../../go; do sleep 0.05; done; echo x > x; git add x; git commit -qm x",
    )
    first = subprocess.Popen(
        [GENBA, "run", "worker", "--issue", "1"], cwd=project.root,
        env={**ordinary_environment(), **project.environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until((project.root / "started").exists)

    second = project.genba("run", "worker", "--issue", "1", "--branch", "elsewhere", check=5)

    assert "works on it" in second.err
    assert "elsewhere" not in project.branches()
    (project.root / "go").touch()
    assert first.wait(timeout=60) == 0
    assert project.task(1).status is TaskStatus.DONE


def test_a_task_waits_for_its_parts(project: Project) -> None:
    started(project)
    project.issue(1, "Whole")
    project.issue(2, "Part", parent=1)
    worker(project, "echo $GENBA_RUN > x.txt; git add x.txt; git commit -qm x")
    assert "task #1 waits for #2" in project.genba("run", "worker", "--issue", "1", check=5).err
    project.run("worker", "--issue", "2")
    project.run("worker", "--issue", "1")
    assert project.task(1).status is TaskStatus.DONE


def test_a_task_whose_dependency_is_open_is_not_started(project: Project) -> None:
    started(project)
    project.issue(1, "One")
    project.issue(2, "Two", dependencies=(1,))
    worker(project, "echo x > x; git add x; git commit -qm x")
    done = project.genba("run", "worker", "--issue", "2", check=5)
    assert "task #2 waits for #1" in done.err
    assert project.branches() == ["main"]
    project.run("worker", "--issue", "1")
    project.run("worker", "--issue", "2", check=1)


@pytest.mark.parametrize("status", ["backlog", "blocked", "cancelled"])
def test_a_task_that_is_not_open_is_not_worked_on(project: Project, status: str) -> None:
    started(project)
    worker(project, "echo x > x; git add x; git commit -qm x")
    words = ["--backlog"] if status == "backlog" else []
    project.genba("task", "add", "One", *words, check=0)
    if status == "blocked":
        project.genba("task", "block", "1", "--reason", "which?", check=0)
    if status == "cancelled":
        project.genba("task", "cancel", "1", check=0)
    done = project.genba("run", "worker", "--issue", "1", check=5)
    assert "hint: genba task" in done.err or "hint: open it again" in done.err
    assert project.branches() == ["main"]


def test_the_example_configuration_is_read_as_it_stands(project: Project) -> None:
    project.write(".agentmine/config.yaml", EXAMPLE)
    project.commit()
    for name in ("bug", "feature"):
        project.genba("task", "add", name, "--type", name, check=0)

    result = project.genba("verify", "1", "--explain", "--json", check=0).json["policy"]
    goals = [(each["level"], each["goal"]["type"], each["origin"]) for each in result["goals"]]

    assert goals[:3] == [
        ("dod", "lint_passes", ".agentmine/config.yaml at main"),
        ("dod", "build_succeeds", ".agentmine/config.yaml at main"),
        ("dod", "no_secrets", ".agentmine/config.yaml at main"),
    ]
    assert ("type_rule", "test_added", "bug rule, .agentmine/config.yaml at main") in goals
    assert (project.task(1).requires_review, project.task(1).reviewer_type) == (True, "human")
    assert (project.task(2).requires_review, project.task(2).reviewer_type) == (True, "ai")
    shown = project.genba("agent", "show", "iterator", "--explain", check=0).out
    assert "claude-sonnet" in shown
    assert "1800" in shown


EXAMPLE = """\
project:
  name: my-project

# Definition of Done (Level 1)
dod:
  - type: lint_passes
    command: npm run lint
  - type: build_succeeds
    command: npm run build
  - type: no_secrets
    command: gitleaks detect

agents:
  default:
    adapter: claude-code
    model: claude-sonnet
    timeout: 1800000
    tools: [Read, Write, Edit, Bash, Grep, Glob]

  codex:
    adapter: codex
    timeout: 1800000

task_types:
  bug:
    goals:
      - type: test_added
        pattern: "**/*.test.*"
        required: true
    requires_review: true
    reviewer_type: human

  feature:
    goals:
      - type: files_changed
        pattern: "src/**/*"
    requires_review: true
    reviewer_type: ai
"""


def test_secrets_of_the_environment_are_in_no_log_of_a_goal(project: Project) -> None:
    started(project, "dod:\n  - custom_script: 'echo token-$((1))23456789abcdef; false'\n")
    branch(project, more_="x")
    done = project.genba("verify", "work", check=1, MY_API_TOKEN="token-123456789abcdef")
    log = next(line.split()[-1] for line in done.out.splitlines() if "log: genba logs goal" in line)
    kept = project.root / ".git" / "genba" / "goals" / f"{log}.log"
    assert "123456789abcdef" not in done.out + kept.read_text()


def test_secrets_of_the_environment_are_not_on_the_blackboard_and_in_no_prompt(project: Project) -> None:
    started(project, "dod:\n  - custom_script: 'echo token-$((1))23456789abcdef; false'\n")
    project.issue(1, "One")
    worker(project, "echo $GENBA_RUN > x; git add x; git commit -qm x")
    for _ in range(2):
        project.genba("run", "worker", "--issue", "1", check=1, MY_API_TOKEN="token-123456789abcdef")
    assert "[redacted]" in project.prompts()[0]
    assert "123456789abcdef" not in project.prompts()[0]
    for file in (project.root / ".genba").glob("genba.db*"):
        assert b"123456789abcdef" not in file.read_bytes()


def test_nothing_is_left_behind_by_a_verification(project: Project) -> None:
    pid = project.root.parent / "pid"
    started(project, f"dod:\n  - custom_script: (sleep 600 & echo $! > {pid}); true\n")
    branch(project, more_="x")
    verified(project, "work")
    assert list((project.root / ".git" / "genba" / "checkouts").iterdir()) == []
    assert project.git("status", "--porcelain") == ""
    left = int(pid.read_text())
    assert not psutil.pid_exists(left) or psutil.Process(left).status() == psutil.STATUS_ZOMBIE


def test_a_result_counts_only_with_the_tools_that_it_came_from(project: Project, tmp_path: Path) -> None:
    """An upgrade of a program, of what interprets it, or of a package beside it makes the goal run again."""
    packages = tmp_path / "prefix/lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    programs = tmp_path / "prefix/bin"
    programs.mkdir()

    def install(name: str, text: str) -> None:
        (programs / f"{name}.new").write_text(text)
        (programs / f"{name}.new").chmod(0o755)
        (programs / f"{name}.new").rename(programs / name)

    install("shell", "#!/bin/sh\nexec sh $@\n")
    install("checker", "#!/usr/bin/env shell\necho one\n")
    started(project, "dod:\n  - {type: custom_script, script: checker}\n")
    branch(project, more_="x")
    project.environment["PATH"] = f"{programs}:{os.environ['PATH']}"

    def cached() -> bool:
        found: bool = verified(project, "work")["results"][0]["cached"]
        return found

    assert [cached(), cached()] == [False, True]
    (programs / "checker").write_text("#!/usr/bin/env shell\necho two, in place\n")
    assert [cached(), cached()] == [False, True]
    install("shell", "#!/bin/sh\nexec  sh $@\n")
    assert [cached(), cached()] == [False, True]
    (packages / "checker-2.0.dist-info").mkdir()
    assert [cached(), cached()] == [False, True]


@pytest.mark.parametrize("kind", ["worktree", "bubblewrap"])
def test_work_in_a_repository_of_sha256_is_verified_and_lands(tmp_path: Path, project: Project, kind: str) -> None:
    if kind == "bubblewrap":
        needs_bubblewrap()
    root = tmp_path / "sha256"
    root.mkdir()
    newer = Project(root, {**project.environment, "GENBA_SANDBOX": kind})
    newer.git("init", "-q", "-b", "main", "--object-format=sha256")
    newer.git("config", "user.name", "T")
    newer.git("config", "user.email", "t@localhost")
    newer.write(".genba/config.yaml", "dod: [{custom_script: git log -1 && test -f work.txt}]\n")
    newer.agent(adapter={"type": "custom", "command": COMMIT})

    assert newer.run("worker")["outcome"] == "completed"
    assert len(newer.git("rev-parse", "main")) == 64
    assert "work.txt" in newer.git("ls-tree", "--name-only", "main")
