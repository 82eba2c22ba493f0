"""`genba --help` by groups, `genba help COMMAND`, and `genba -C DIR`."""

from pathlib import Path

from genba.entrypoints.cli.commands import COMMANDS, GROUPS
from tests.project import Project


def test_each_command_is_in_one_group_with_a_short_summary() -> None:
    named = [name for group in GROUPS.values() for name in group]
    assert sorted(named) == sorted(COMMANDS)
    summaries = [summary for group in GROUPS.values() for summary in group.values()]
    assert [each for each in summaries if len(each) > 60 or not each.endswith(".")] == []


def test_help_shows_the_help_of_a_command(project: Project) -> None:
    assert project.genba("help", "task", "add", check=0).out == project.genba("task", "add", "--help", check=0).out
    refused = project.genba("help", "tsk")
    assert refused.code == 2
    assert 'there is no command "tsk"' in refused.err


def test_a_command_runs_in_another_folder(project: Project, tmp_path: Path) -> None:
    project.genba("task", "add", "One", check=0)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    listed = project.genba("-C", str(project.root), "task", "list", "--json", cwd=elsewhere, check=0)
    assert [task["title"] for task in listed.json] == ["One"]
    refused = project.genba("-C", str(tmp_path / "none"), "status")
    assert refused.code == 4
    assert "No such file or directory" in refused.err
