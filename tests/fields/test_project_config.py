""".genba/config.yaml: what a project sets for all of its agents."""

import re

import pytest

from tests.fields.flows import configure, work
from tests.project import Project


def test_the_name_of_the_project_is_shown_when_a_run_begins(project: Project) -> None:
    configure(project, "project: {name: Clockworks}\n")
    project.agent()
    assert "Clockworks" in project.genba("run", "worker", check=0).err.splitlines()[0]


def test_agents_are_found_below_the_discovery_path(project: Project) -> None:
    project.agent(commit=False)
    (project.root / ".agent").rename(project.root / "crew")
    assert 'there is no agent "worker"' in project.genba("run", "worker", check=4).err
    configure(project, "agent_discovery_path: crew\n")
    project.commit()
    assert project.run("worker")["outcome"] == "completed"


def test_a_discovery_path_outside_of_the_repository_is_refused(project: Project) -> None:
    configure(project, "agent_discovery_path: ../agents\n")
    assert "leaves the repository" in project.genba("agent", "list", check=3).err


@pytest.mark.parametrize("name", ["default", "worker"])
def test_a_project_chooses_the_adapter_with_its_options(project: Project, name: str) -> None:
    adapter = 'type: custom, command: "echo by-project > who.txt", commit: true'
    configure(project, f"agents: {{{name}: {{adapter: {{{adapter}}}}}}}\n")
    project.agent(adapter=None, commit=False)
    text = project.read(".agent/worker/agent.json").replace('"adapter": null', '"actions": {}')
    project.write(".agent/worker/agent.json", text)
    project.commit()
    project.run("worker")
    assert project.read("who.txt") == "by-project\n"


def test_a_project_chooses_the_adapter_by_its_type_alone(project: Project) -> None:
    configure(project, "agents: {default: {adapter: scripted}}\n")
    project.agent(adapter={"script": "script.yaml"})
    assert project.run("worker")["outcome"] == "completed"


def test_a_run_without_an_adapter_is_refused(project: Project) -> None:
    project.agent(adapter=None)
    assert "has no adapter; set agents.default.adapter" in project.genba("run", "worker", check=3).err


def test_a_project_chooses_the_model(project: Project) -> None:
    configure(project, "agents: {default: {model: haiku}}\n")
    project.agent(script={"turns": [work(model="haiku")]})
    project.run("worker")


def test_what_is_set_for_one_agent_wins_over_what_is_set_for_all(project: Project) -> None:
    configure(project, "agents: {worker: {model: sonnet}, default: {model: haiku}}\n")
    project.agent(script={"turns": [work(model="sonnet")]})
    project.run("worker")


def test_the_timeout_for_an_answer_is_in_milliseconds(project: Project) -> None:
    configure(project, "agents: {default: {timeout: 200}}\nlimits: {retries: 0}\n")
    project.agent(script={"turns": [{"do": [{"sleep": 30}]}]})
    assert "gave no answer within its time" in project.run("worker", check=1)["reason"]


def test_a_project_lists_the_tools_that_may_be_used(project: Project) -> None:
    configure(project, "agents: {default: {tools: [Read]}}\n")
    project.agent(script={"turns": [work(tools=["Bash"])]})
    assert '"Bash"' in project.run("worker", check=1)["reason"]


def test_the_words_of_the_forge_are_filled_in(project: Project) -> None:
    remote(project)
    write_forge(project, 'echo "$@" > "$0.asked"; cat "$4" >> "$0.asked"; echo noise; echo https://forge.invalid/1')
    words = '["{forge}", "{branch}", "{target}", "{title}", "{body_file}"]'
    configure(project, f"forge: {{open: {words.replace('{forge}', str(project.root.parent / 'forge.sh'))}}}\n")
    project.agent()
    result = project.run("worker", "--create-pr", "--branch", "clock")
    asked = (project.root.parent / "forge.sh.asked").read_text("utf-8")
    assert re.match(r"clock main .*clock /\S+\n", asked)
    assert f"Session: {result['run']}" in asked
    assert result["pull_request"] == "https://forge.invalid/1"


def test_a_pull_request_that_is_found_is_not_opened_again(project: Project) -> None:
    remote(project)
    write_forge(project, '[ "$1" = find ] && echo "https://forge.invalid/of-$2" || echo opened')
    forge = project.root.parent / "forge.sh"
    configure(project, f'forge: {{open: ["{forge}", open], find: ["{forge}", find, "{{branch}}"]}}\n')
    project.agent()
    assert project.run("worker", "--create-pr", "--branch", "clock")["pull_request"] == "https://forge.invalid/of-clock"


def test_a_forge_that_finds_nothing_opens(project: Project) -> None:
    remote(project)
    write_forge(project, '[ "$1" = find ] || echo https://forge.invalid/new')
    forge = project.root.parent / "forge.sh"
    configure(project, f'forge: {{open: ["{forge}", open], find: ["{forge}", find]}}\n')
    project.agent()
    assert project.run("worker", "--create-pr")["pull_request"] == "https://forge.invalid/new"


def test_a_forge_has_so_much_time(project: Project) -> None:
    remote(project)
    configure(project, "forge: {open: [sleep, '30'], timeout_seconds: 0.2}\n")
    project.agent()
    result = project.run("worker", "--create-pr", check=1)
    assert result["outcome"] == "incomplete"
    assert "could not be opened" in result["reason"]


def test_settings_are_read_from_agentmine_where_there_are_no_others(project: Project) -> None:
    project.write(".agentmine/config.yaml", "agents: {default: {model: haiku}}\n")
    project.agent(script={"turns": [work(model="haiku")]})
    project.run("worker")


def test_settings_of_genba_hide_those_of_agentmine(project: Project) -> None:
    project.write(".agentmine/config.yaml", "agents: {default: {model: haiku}}\n")
    configure(project, "agents: {default: {model: sonnet}}\n")
    project.agent(script={"turns": [work(model="sonnet")]})
    project.run("worker")


def test_an_unknown_setting_is_refused(project: Project) -> None:
    configure(project, "agents: {default: {modle: haiku}}\n")
    done = project.genba("agent", "list", check=3)
    assert "agents.default.modle: unknown key" in done.err


def remote(project: Project) -> None:
    bare = project.root.parent / "remote.git"
    project.git("init", "-q", "--bare", str(bare))
    project.git("remote", "add", "origin", str(bare))


def write_forge(project: Project, body: str) -> None:
    """A forge that is a small script beside the repository."""
    script = project.root.parent / "forge.sh"
    script.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    script.chmod(0o755)
