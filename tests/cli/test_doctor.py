import os
from pathlib import Path

import pytest

from genba.application.project.command_problems import remedy
from genba.connections.goals.command_problem import command_problem
from tests.project import Project
from tests.test_doctor import Machine


@pytest.fixture
def machine(project: Project, tmp_path: Path) -> Machine:
    made = Machine(tmp_path, project.root)
    made.with_git()
    return made


def test_goals_that_cannot_be_checked_here_are_reported_with_a_remedy(machine: Machine, project: Project) -> None:
    project.write(".genba/config.yaml", "dod: [{tests_pass: go test ./...}, lint_passes, no_secrets]\n")

    found = machine.findings()

    assert found["tests_pass"]["detail"] == "go test ./...: go is not installed"
    assert found["tests_pass"]["install"] == "apt-get install golang"
    assert found["lint_passes"]["detail"] == "no command was found for it"
    assert "- lint_passes: COMMAND" in found["lint_passes"]["install"]
    assert "no_secrets" not in found


def test_a_user_without_a_git_identity_is_reported(machine: Machine, project: Project) -> None:
    assert "identity" not in machine.findings()
    project.git("config", "--unset-all", "user.email")
    found = machine.findings()["identity"]
    assert found["health"] == "missing"
    assert found["install"].startswith("git config --global user.email")


def test_a_disk_that_is_too_full_stands_in_the_way(machine: Machine, project: Project) -> None:
    assert machine.findings()["disk"]["detail"].endswith(" free")
    project.write(".genba/config.yaml", "work: {min_free_disk_mb: 999999999}\n")

    done = machine.doctor()

    assert done.code == 1
    assert "✗ disk" in done.out
    assert "hint: genba gc" in done.err


def test_everything_that_is_missing_has_a_remedy(machine: Machine, project: Project) -> None:
    project.write(".genba/config.yaml", "dod: [{tests_pass: nosuchprogram --all}]\n")
    for name, found in machine.findings().items():
        if found["health"] != "fine" and name != "overlay":
            assert found["install"], name


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("", ""),
        ("cd x && make", ""),
        ("X=1 make", ""),
        ("./nosuch", "./nosuch is no program"),
        ("nosuchprogram --all", "nosuchprogram is not installed"),
        ("python3 -m unittest", ""),
        ("python3 -m nosuchmodule.x", "python3 has no module nosuchmodule.x"),
        ("it's not a line", ""),
    ],
)
def test_a_look_tells_whether_a_command_can_be_run(tmp_path: Path, command: str, problem: str) -> None:
    assert command_problem(command, tmp_path, os.environ["PATH"]) == problem


def test_a_remedy_is_only_reported_where_it_is_known() -> None:
    assert remedy("python3 has no module pytest") == "pip install pytest"
    assert remedy("python3 has no module own_things") == ""
    assert remedy("cargo is not installed") == "apt-get install cargo"
    assert remedy("nosuch is not installed") == ""


def test_a_command_as_an_agent_needs_no_installed_one(machine: Machine, project: Project) -> None:
    project.git("config", "user.email", "you@example.org")
    assert "hint: install an agent" in machine.doctor().err
    project.write(".genba/config.yaml", "agents: {iterator: {adapter: {type: custom, command: cat}}}\n")
    assert "hint: genba agent check   then  genba run iterator --issue NUMBER" in machine.doctor().err


def test_a_proxy_of_the_environment_is_named_and_reported_as_unused(project: Project) -> None:
    def row(**environment: str) -> dict[str, str]:
        project.environment |= environment
        found = project.genba("doctor", "--json").json["findings"]
        return next((dict(each) for each in found if each["name"] == "parent proxy"), {})

    assert row() == {}
    unused = row(HTTPS_PROXY="http://127.0.0.1:9")
    assert "sandboxes do not use it" in unused["detail"]
    assert "GENBA_PARENT_PROXY=environment" in unused["install"]
    assert "looks names up by itself" in row(GENBA_PARENT_PROXY="environment")["detail"]
