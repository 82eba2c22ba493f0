"""runner.logging: where the journal is, and what it is."""

import json

from tests.project import Project


def test_the_journal_is_written_below_its_directory(project: Project) -> None:
    project.agent(logging={"directory": "logs/of-{name}"})
    result = project.run("worker")
    lines = project.read(f"logs/of-worker/{result['run']}.jsonl").splitlines()
    assert [json.loads(line)["event"] for line in (lines[0], lines[-1])] == ["run_started", "run_ended"]
    assert project.git("status", "--porcelain") == ""


def test_the_journal_is_below_tmp_by_default(project: Project) -> None:
    project.agent()
    result = project.run("worker")
    assert (project.root / f"tmp/logs/agents/worker/{result['run']}.jsonl").is_file()


def test_the_format_is_jsonl_one_event_per_line(project: Project) -> None:
    project.agent(logging={"format": "jsonl"})
    result = project.run("worker")
    lines = project.read(f"tmp/logs/agents/worker/{result['run']}.jsonl").splitlines()
    assert {json.loads(line)["run"] for line in lines} == {result["run"]}


def test_another_format_is_refused(project: Project) -> None:
    project.agent(logging={"format": "text"})
    assert "runner.logging.format" in project.genba("run", "worker", check=3).err


def test_the_journal_ends_with_the_duration(project: Project) -> None:
    project.agent(script={"turns": [{"do": [{"sleep": 0.2}, {"commit": "Nothing"}]}]})
    assert project.events(project.run("worker", check=None)["run"])[-1]["seconds"] >= 0.2
