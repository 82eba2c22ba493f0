"""Options that an agent does not declare: foreign ones are ignored, and nothing starts where caution was asked for."""

from typing import Any

import pytest

from tests.project import Project

CLOSE = {
    ("--isue", "1"): "--issue",
    ("--isseu", "1"): "--issue",
    ("--issues=1",): "--issue",
    ("--ISSUE", "1"): "--issue",
    ("-issue", "1"): "--issue",
    ("--issue-number", "1"): "--issue",
    ("--task", "1"): "--issue",
    ("1",): "--issue 1",
    ("--nomerge",): "--no-merge",
    ("--no_merge",): "--no-merge",
    ("--base", "main"): "--base-branch",
    ("--tpoic", "tea"): "--topic",
    ("--top", "tea"): "--topic",
    ("--sandox", "docker"): "--sandbox",
    ("--", "--isue", "1"): "--issue",
    ("--colour", "green", "--isue=1"): "--issue",
}
CAUTIOUS = (
    "--dry-run", "--dry_run", "--dryrun", "--DRY-RUN", "-dry-run", "--dry-run=true", "--check", "--check-only",
    "--no-write", "--no-commit", "--simulate", "--preview", "--plan", "--plan-only", "--confirm", "--ask",
    "--ask-first", "--read-only", "--readonly", "--interactive", "-n", "-i", "--max-cost=5", "--timeout=3",
    "--without-merge", "--skip-push", "--what-if", "--verify", "--pretend", "dry-run",
)  # fmt: skip
OF_GENBA = (
    "--list",
    "--status",
    "--until-empty",
    "--workers=4",
    "--offline",
    "--apply",
    "--into=x",
    "--from=main",
    "--at=x",
)
"""What other commands of genba are called, or take, and words for where work lands."""
FOREIGN = (
    "--colour=green", "--verbose", "-v", "--output=x.txt", "--output", "--nosuch", "--log-level=debug", "-x", "--foo",
)  # fmt: skip


@pytest.fixture
def worker(project: Project) -> Project:
    project.agent(parameters={"topic": {"type": "string"}})
    project.issue(1, "One")
    return project


def _nothing_started(project: Project, before: str) -> None:
    assert project.git("rev-parse", "main") == before
    assert project.git("branch", "--format=%(refname:short)") == "main"
    assert project.genba("sessions", "--all", "--json").json == []


@pytest.mark.parametrize(("words", "meant"), CLOSE.items(), ids=str)
def test_an_option_that_is_close_to_a_known_one_is_refused(worker: Project, words: Any, meant: str) -> None:
    before = worker.git("rev-parse", "main")
    done = worker.genba("run", "worker", *words, check=2)
    assert f'did you mean "{meant}"?' in done.err
    _nothing_started(worker, before)


@pytest.mark.parametrize("option", CAUTIOUS)
def test_an_option_that_asks_for_caution_is_refused(worker: Project, option: str) -> None:
    before = worker.git("rev-parse", "main")
    assert "caution" in worker.genba("run", "worker", "--topic", "tea", option, check=2).err
    _nothing_started(worker, before)


@pytest.mark.parametrize("option", FOREIGN)
def test_a_foreign_option_is_ignored_with_a_warning(worker: Project, option: str) -> None:
    done = worker.genba("run", "worker", option, "--quiet", check=0)
    assert f"{option.partition('=')[0]} is not declared by worker and is ignored" in done.err


@pytest.mark.parametrize("option", OF_GENBA)
def test_an_option_or_a_command_of_genba_is_refused(worker: Project, option: str) -> None:
    before = worker.git("rev-parse", "main")
    assert "is a word of genba" in worker.genba("run", "worker", "--topic", "tea", option, check=2).err
    _nothing_started(worker, before)


def test_the_value_of_a_foreign_option_is_no_option(worker: Project) -> None:
    worker.genba("run", "worker", "--colour", "1", "--offset", "-5", "--quiet", check=0)


@pytest.mark.parametrize("words", [("--topic", "--dry-run"), ("--topic", "-n"), ("--branch", "--no-merge")])
def test_an_option_is_not_the_value_of_another(worker: Project, words: tuple[str, str]) -> None:
    before = worker.git("rev-parse", "main")
    assert f"{words[0]} needs a value" in worker.genba("run", "worker", *words, check=2).err
    _nothing_started(worker, before)


def test_a_text_that_begins_with_a_dash_can_be_given(worker: Project) -> None:
    worker.run("worker", "--topic=--dry-run")
    worker.run("worker", "--topic", "- tea, then coffee")


def test_what_the_agent_declares_is_no_unknown_option(project: Project) -> None:
    project.agent(parameters={"dryRun": {"type": "boolean"}, "check": {"type": "string"}})
    project.run("worker", "--dry-run", "--check", "all")


@pytest.mark.parametrize("words", [("run", "worker", "--strict-options"), ("run", "--strict-options", "worker")])
def test_strict_options_refuse_every_unknown_option(worker: Project, words: tuple[str, ...]) -> None:
    before = worker.git("rev-parse", "main")
    assert "--colour" in worker.genba(*words, "--colour", "green", check=2).err
    assert "leftover" in worker.genba(*words, "leftover", check=2).err
    _nothing_started(worker, before)
    worker.genba(*words, "--topic", "tea", check=0)


def test_the_project_can_refuse_every_unknown_option(worker: Project) -> None:
    worker.write(".genba/config.yaml", "run: {strict_options: true}\n")
    worker.commit("Be strict")
    before = worker.git("rev-parse", "main")
    assert "--colour" in worker.genba("run", "worker", "--colour", "green", check=2).err
    _nothing_started(worker, before)
