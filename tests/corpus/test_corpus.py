"""Every agent of the corpus, through the real door: no lie is done, and no honest work is rejected."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from genba.domain.evidence import CheckStatus
from genba.domain.tasks import TaskStatus
from genba.domain.verification import Verification
from tests.corpus.agents import Agent, Liar, Worker
from tests.corpus.listing import LIARS, WORKERS
from tests.corpus.projects import FILES, files_of, settings_of
from tests.project import Project, ordinary_environment

TASK = 1


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of each kind of project, with its rules and the agent committed on main."""
    folder = tmp_path_factory.mktemp("templates")
    for name in FILES:
        root = folder / name
        subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
        project = Project(root)
        project.git("config", "user.name", "Test User")
        project.git("config", "user.email", "user@localhost")
        for path, text in files_of(name).items():
            project.write(path, text)
        project.write(".genba/config.yaml", yaml.safe_dump(settings_of(name)))
        project.agent(
            adapter={"type": "custom", "command": "sh ~/agent.sh"},
            parameters={"issue": {"type": "number"}},
            integrations={"github": {"enabled": True}},
        )
    return folder


def _hired(agent: Agent, templates: Path, folder: Path) -> Project:
    """A project of its own for one agent, with its task on the blackboard."""
    root = folder / "repository"
    shutil.copytree(templates / agent.project, root, symlinks=True)
    path = f"{Path(sys.executable).parent}:{ordinary_environment()['PATH']}"
    project = Project(root, {"HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "PATH": path})
    if agent.settings:
        project.write(".genba/config.yaml", yaml.safe_dump(settings_of(agent.project) | agent.settings))
        project.commit("Other rules")
    (folder / "agent.sh").write_text(agent.script, encoding="utf-8")
    project.issue(TASK, "An empty text is untitled", type=agent.type, goals=agent.wanted, may_change=agent.may_change)
    return project


def _verification(project: Project) -> Verification:
    with project.board() as board:
        found = board.last_verification(TASK)
    assert found is not None
    return found


def _evidence(found: Verification) -> str:
    """What was written down against the work, as one text."""
    lines = [found.verdict, *found.missing, *found.findings]
    for result in found.results:
        if result.rejects:
            lines += [result.goal.type, result.result.detail, result.result.output]
    return "\n".join(lines)


def _said(project: Project) -> str:
    """What the agent itself said, when something went wrong in the corpus."""
    return "\n".join(str(event) for event in project.events() if event["event"] in ("reply_received", "agent_failed"))


@pytest.mark.parametrize("liar", LIARS, ids=lambda liar: liar.name)
def test_a_lie_is_not_done(liar: Liar, templates: Path, tmp_path: Path) -> None:
    project = _hired(liar, templates, tmp_path)
    main = project.git("rev-parse", "main")

    done = project.genba("run", "worker", "--issue", str(TASK), "--json")

    assert done.out, done.err
    result = done.json
    found = _verification(project)
    evidence = _evidence(found)
    assert result["outcome"] != "completed"
    assert done.code != 0
    task = project.task(TASK)
    assert task.status not in (TaskStatus.DONE, TaskStatus.REVIEW)
    assert (task.goals, task.may_change) == (liar.wanted, liar.may_change)
    assert (found.verdict, result["verdict"]) == (liar.verdict, liar.verdict), f"{done.err}\n{evidence}"
    assert [words for words in liar.shows if words not in evidence] == [], evidence
    assert result["merged"] == ""
    assert liar.moves_main or project.git("rev-parse", "main") == main
    assert result["branch"] in project.branches()
    assert not (tmp_path / "hook-was-run").exists()
    tests = [each.result.status for each in found.results if each.goal.type == "tests_pass"]
    assert not tests or (tests[0] is CheckStatus.PASSED) == liar.green, evidence


@pytest.mark.parametrize("worker", WORKERS, ids=lambda worker: worker.name)
def test_honest_work_is_done(worker: Worker, templates: Path, tmp_path: Path) -> None:
    project = _hired(worker, templates, tmp_path)
    main = project.git("rev-parse", "main")

    done = project.genba("run", "worker", "--issue", str(TASK), "--json")

    assert done.out, done.err
    assert done.json["outcome"] == "completed", f"{done.err}\n{_evidence(_verification(project))}"
    assert done.json["verdict"] == "done"
    assert project.task(TASK).status is TaskStatus.DONE
    assert project.git("rev-parse", "main") == done.json["merged"] != main
    assert project.git("status", "--porcelain") == ""
    found = _verification(project)
    assert project.git("rev-parse", f"{done.json['merged']}^{{tree}}") == found.tree
    assert all(result.result.passed for result in found.results)
