"""A repository for each agent of the corpus, with its task, its rules and the agent on its base branch."""

import shutil
import subprocess
from pathlib import Path

import yaml

from tests.corpus.agents import Agent
from tests.corpus.projects import FILES, files_of, settings_of
from tests.project import Project
from tests.python_tools import path_with_python

TASK = 1


def templates(folder: Path) -> Path:
    """A repository of each kind of project, with its rules and the agent committed on main."""
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


def hired(agent: Agent, made: Path, folder: Path) -> Project:
    """A project of its own for one agent, with its task on the blackboard. The folder is the home of the agent."""
    root = folder / "repository"
    shutil.copytree(made / agent.project, root, symlinks=True)
    project = Project(root, {"HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "PATH": path_with_python()})
    if agent.settings:
        project.write(".genba/config.yaml", yaml.safe_dump(settings_of(agent.project) | agent.settings))
        project.commit("Other rules")
    (folder / "agent.sh").write_text(agent.script, encoding="utf-8")
    project.issue(TASK, "An empty text is untitled", type=agent.type, goals=agent.wanted, may_change=agent.may_change)
    return project
