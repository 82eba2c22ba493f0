import shutil
import subprocess
from pathlib import Path

import click
import pytest

from genba.definitions.schemas import FILES
from genba.entrypoints.cli.admin.completion_values import ARGUMENTS, SCHEMAS
from genba.entrypoints.cli.commands import COMMANDS, SUMMARIES, cli
from genba.wiring import adapter_files
from tests.project import GENBA, Project, ordinary_environment


def asked(project: Project, line: str, shell: str = "bash", **environment: str) -> subprocess.CompletedProcess[str]:
    """What a shell hears after this line; one that ends with a space waits for the next word."""
    words = line.split()
    at = len(words) if line.endswith(" ") else len(words) - 1
    received = {"COMP_WORDS": line, "COMP_CWORD": str(at), "_GENBA_COMPLETE": f"{shell}_complete"}
    return subprocess.run(
        [GENBA],
        cwd=environment.pop("cwd", project.root),
        env={**ordinary_environment(), **project.environment, **received, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def report(project: Project, line: str) -> list[str]:
    done = asked(project, line)
    assert (done.returncode, done.stderr) == (0, "")
    return [each.partition(",")[2] for each in done.stdout.splitlines()]


def test_commands_and_options_are_completed(project: Project) -> None:
    assert set(report(project, "genba ")) == set(COMMANDS)
    assert report(project, "genba dec") == ["decisions"]
    assert report(project, "genba task sh") == ["show"]
    assert "--until-empty" in report(project, "genba work --u")


def test_the_tasks_of_the_project_are_completed_those_that_go_on_first(project: Project) -> None:
    project.issue(1, "Black tea")
    project.issue(12, "Green tea")
    project.genba("task", "cancel", "12", "--reason", "no", check=0)
    for line in ("genba answer ", "genba task show ", "genba verify ", "genba run iterator --issue "):
        assert report(project, line) == ["1", "12"], line
    assert report(project, "genba task show 12") == ["12"]


def test_agents_runs_and_schemas_are_completed(project: Project) -> None:
    project.agent(script={"turns": [{"reply": "done"}], "repeat": True})
    run = project.run("worker", check=None)["run"]
    assert report(project, "genba run ") == ["worker", "facilitator", "iterator", "planner", "reviewer"]
    assert report(project, "genba agent show w") == ["worker"]
    assert report(project, "genba logs ") == report(project, "genba run --resume ") == [run]
    assert "config" in report(project, "genba schema c")


def test_the_words_about_a_value_stand_in_one_line(project: Project) -> None:
    project.issue(1, "Tea\n; rm -rf / \x1b[31m")
    lines = asked(project, "genba answer ", "zsh").stdout.splitlines()
    assert lines[:2] == ["plain", "1"]
    assert len(lines) == 3
    assert "\x1b" not in lines[2]


def test_nothing_is_created_or_reported_where_there_is_nothing(project: Project, tmp_path: Path) -> None:
    before = sorted(project.root.rglob("*"))
    outside = {"cwd": str(tmp_path), "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    for line in ("genba answer ", "genba logs ", "genba nosuch ", "genba run nosuch --is"):
        assert report(project, line) == []
        done = asked(project, line, **outside)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(project.root.rglob("*")) == before


def test_a_database_that_cannot_be_read_is_nothing_to_complete(project: Project) -> None:
    project.write(".genba/genba.db", "this is no database")
    assert report(project, "genba answer ") == []


def test_a_working_tree_completes_what_its_repository_has(project: Project, tmp_path: Path) -> None:
    project.issue(3, "Tea")
    project.git("worktree", "add", "-q", str(tmp_path / "beside"), "-b", "beside")
    assert asked(project, "genba answer ", cwd=str(tmp_path / "beside")).stdout == "plain,3\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(project: Project, shell: str) -> None:
    script = project.genba("completion", shell, check=0).out
    assert "_genba_completion" in script
    assert f"_GENBA_COMPLETE={shell}_complete" in script
    assert "nosuch" in project.genba("completion", "nosuch", check=2).err


def test_the_names_that_are_known_by_heart_are_those_that_are_there() -> None:
    assert sorted(SCHEMAS) == sorted({**FILES, **adapter_files()})
    assert set(SUMMARIES) == set(COMMANDS)
    for words in ARGUMENTS:
        command: click.Command | None = cli
        for word in words:
            assert isinstance(command, click.Group)
            command = command.get_command(click.Context(command), word)
        assert command is not None, words


def test_a_name_with_shell_characters_is_not_shown(project: Project) -> None:
    project.agent("worker")
    for name in ("$(touch x)", "a;b", "a b", "`x`", "a\nb", "-x", "a'b", "a&b", "a,b", "~x", "*"):
        shutil.copytree(project.root / ".agent" / "worker", project.root / ".agent" / name)
    assert report(project, "genba run ") == ["worker", "facilitator", "iterator", "planner", "reviewer"]
