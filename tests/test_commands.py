"""The commands beside run: agent, logs, schema."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import pytest

from genba import __version__
from tests.project import GENBA, Project, until


def test_the_built_in_agents_pass_their_check(project: Project) -> None:
    done = project.genba("agent", "check", check=0)

    note = "  (no adapter is chosen for it yet)"
    others = [f"✓ {name}{note}" for name in ("iterator", "planner", "reviewer")]
    assert done.out.splitlines() == ["✓ facilitator", *others]


def test_agents_are_found_by_name_and_by_capability(project: Project) -> None:
    project.agent("writer", actions={"enabled": True, "types": ["article"]})

    everyone = project.genba("agent", "list", "--json", check=0).json["agents"]
    writers = project.genba("agent", "list", "--capability", "article", "--json", check=0).json["agents"]

    assert [agent["name"] for agent in everyone] == ["facilitator", "iterator", "planner", "reviewer", "writer"]
    assert [(agent["name"], agent["capabilities"]) for agent in writers] == [("writer", ["article"])]


def test_an_agent_that_cannot_be_read_is_named_beside_the_others(project: Project) -> None:
    project.agent()
    project.write(".agent/broken/agent.json", "{")

    done = project.genba("agent", "list", check=0)

    assert "worker" in done.out
    assert "broken cannot be read" in done.err
    assert "hint: genba agent check broken" in done.err


def test_a_projects_agent_hides_a_built_in_one_of_its_name(project: Project) -> None:
    project.agent("iterator")

    done = project.genba("agent", "show", "iterator", check=0)

    assert "iterationBudget" in done.out


@pytest.mark.parametrize("template", ["steps", "simple"])
def test_a_new_agent_passes_its_check_and_can_be_run(project: Project, template: str) -> None:
    project.genba("agent", "new", "my-agent", "--template", template, check=0)
    project.genba("agent", "check", "my-agent", check=0)
    again = project.genba("agent", "new", "my-agent", check=5)
    assert "is already there" in again.err

    reply = '{"plan": "p", "status": "completed", "next_action": {"action": "%s"}}'
    script = "case $GENBA_STEP in close) a=closing;; *) a=next;; esac; "
    script += "echo x >> x.txt; git add -A; git commit -qm x; " + f"printf '{reply}' $a"
    project.write(
        ".genba/config.yaml", json.dumps({"agents": {"default": {"adapter": {"type": "custom", "command": script}}}})
    )
    project.commit()

    assert project.run("my-agent", "--topic", "tea")["outcome"] == "completed"


@pytest.mark.parametrize("name", ["../evil", "Big", "a b", ""])
def test_a_new_agent_needs_a_plain_name(project: Project, name: str) -> None:
    done = project.genba("agent", "new", name, check=2)

    assert "is not a name for an agent" in done.err
    assert not (project.root.parent / "evil").exists()


@pytest.mark.parametrize(
    "name", ["agent", "completion", "config", "custom", "event", "reply", "script", "steps_registry"]
)
def test_every_schema_is_a_schema(project: Project, name: str) -> None:
    schema = project.genba("schema", name, check=0).json

    jsonschema_rs.validator_for(schema)
    assert schema["$schema"].endswith("2020-12/schema")


def test_the_schemas_accept_the_built_in_agents(project: Project) -> None:
    validator = jsonschema_rs.validator_for(project.genba("schema", "agent", check=0).json)
    steps = jsonschema_rs.validator_for(project.genba("schema", "steps_registry", check=0).json)
    folder = Path(sys.modules["genba"].__file__ or "").parent / "definitions/builtin"

    for path in folder.iterdir():
        validator.validate(json.loads((path / "agent.json").read_text()))
        steps.validate(json.loads((path / "steps_registry.json").read_text()))


def test_sessions_lists_all_and_logs_shows_one(project: Project) -> None:
    assert "no sessions yet" in project.genba("logs", check=0).err
    assert "no sessions" in project.genba("sessions", check=0).err
    project.agent()
    result = project.run("worker")

    listed = project.genba("sessions", "--all", check=0).out
    shown = project.genba("logs", result["run"], "--prompts", "--output", check=0).out

    assert result["run"] in listed
    assert "completed" in listed
    assert "Done means: 1 iterations are done" in shown
    assert f"merged   {result['merged'][:7]} into main" in shown
    assert "did you mean" in project.genba("logs", result["run"][:-1], check=4).err


def test_in_a_terminal_the_run_is_drawn_live(project: Project) -> None:
    project.agent(script={"turns": [{"do": [{"print": "thinking"}, {"sleep": 0.5}], "reply": "done"}]})
    words = ["script", "-qec", f"{GENBA} run worker", "/dev/null"]
    environment = {**os.environ, **project.environment, "TERM": "xterm", "COLUMNS": "100"}

    done = subprocess.run(
        words, cwd=project.root, env=environment, capture_output=True, text=True, check=True, timeout=60
    )

    assert "ctrl-c suspends it" in done.stdout
    assert "thinking" in done.stdout
    assert "completed · 1 iteration" in done.stdout


def test_the_version_is_reported(project: Project) -> None:
    assert project.genba("--version", check=0).out == f"genba {__version__}\n"
    module = subprocess.run([sys.executable, "-m", "genba", "--version"], capture_output=True, text=True, check=True)
    assert module.stdout == f"genba {__version__}\n"


def test_a_run_works_from_a_subfolder_and_without_a_home(project: Project) -> None:
    project.agent()
    inside = project.root / "deep/er"
    inside.mkdir(parents=True)

    done = project.genba("run", "worker", "--json", cwd=inside, check=0, HOME="/nonexistent", LANG="C")

    assert done.json["outcome"] == "completed"


def test_logs_without_a_name_shows_the_newest_session_and_follows_it_to_its_end(project: Project) -> None:
    project.agent()
    first, second = project.run("worker"), project.run("worker")
    for words in (("logs", "--json"), ("logs", "--follow", "--json")):
        events = [json.loads(line) for line in project.genba(*words, check=0).out.splitlines()]
        assert {each["run"] for each in events} == {second["run"]}, words
        assert events[-1]["event"] == "run_ended"
    named = project.genba("logs", first["run"], "-f", "--json", check=0).out.splitlines()
    assert {json.loads(line)["run"] for line in named} == {first["run"]}


def test_logs_follows_a_session_while_it_runs(project: Project, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    project.agent(
        adapter={"type": "custom", "command": f"until test -e {gate}; do sleep 0.05; done; echo done"},
        sandbox={"kind": "worktree"},
    )
    words = [str(GENBA), "run", "worker", "--quiet"]
    running = subprocess.Popen(words, cwd=project.root, env={**os.environ, **project.environment})
    until(lambda: project.genba("sessions", "--json").json != [])
    follow = [str(GENBA), "logs", "-f", "--json"]
    following = subprocess.Popen(
        follow, cwd=project.root, env={**os.environ, **project.environment}, stdout=subprocess.PIPE
    )
    assert following.stdout is not None
    first = json.loads(following.stdout.readline())
    assert running.poll() is None, "what is there is printed while the session runs"
    gate.touch()
    rest, _ = following.communicate(timeout=60)
    assert running.wait(60) == 0
    assert first["event"] == "run_started"
    assert json.loads(rest.splitlines()[-1])["event"] == "run_ended"


@pytest.mark.parametrize("typed", ["1", "#1"])
def test_an_issue_alone_names_the_agent_that_works_on_it(project: Project, typed: str) -> None:
    project.agent()
    project.agent(name="clerk")
    project.write(".genba/config.yaml", "work: {agent: clerk}\n")
    project.issue(1, "Add a page")
    project.issue(2, "Add a page", assignee="worker")
    assert project.run(typed)["agent"] == "clerk"
    assert project.run("2")["agent"] == "worker"
    refused = project.genba("run", "9", check=4)
    assert "there is no task #9" in refused.err


def test_an_issue_that_no_agent_takes_is_refused_before_anything_starts(project: Project) -> None:
    project.agent()
    project.write(".genba/config.yaml", "work: {agent: nosuch}\n")
    project.issue(2, "Add a page")
    refused = project.genba("run", "2", check=4).err
    assert 'no agent takes task #2: work.agent names "nosuch"' in refused
    assert "nothing was started." in refused
    assert project.genba("sessions", "--all", "--json").json == []
