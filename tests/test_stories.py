"""The commands and outputs on the pages, executed: every page prints what it shows."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from genba.domain.tasks.task import TaskStatus
from tests.bubblewrap import bubblewrap_problem
from tests.project import Project, ordinary_environment
from tests.python_tools import linked_genba
from tests.test_docs import ROOT, blocks, labelled, text_of, typed_commands

_DURATION = r"\b\d+(?:\.\d)? s\b|\b\d+:\d\d m\b"
_MARKED = re.compile(r"^ [✓✗■●] .*$", re.MULTILINE)
_FILE_IN_PROSE = re.compile(r"`(\.(?:agent|genba)/\S+\.md)`[^`]*?\n\n```markdown\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FILE_IN_TREE = re.compile(r"^  (\S+\.md) +(\S.*)$", re.MULTILINE)


def settled_lines(shown: str) -> list[str]:
    """The result lines of `genba run`, without times and commits."""
    lines = _MARKED.findall(shown)
    lines = [re.sub(_DURATION, "0.0 s", line) for line in lines]
    lines = [re.sub(r"\bmerged [0-9a-f]{7}\b", "merged 0000000", line) for line in lines]
    return [" ".join(line.split()) for line in lines]


def shown_runs(page: Path) -> list[list[str]]:
    """What a page shows below each `genba run`."""
    shown = "".join(content for marker, content in blocks(page) if marker == "console")
    return [settled_lines(part) for part in shown.split("$ genba run ")[1:]]


def seen_run(project: Project, *words: str) -> list[str]:
    return settled_lines(project.genba("run", *words).err)


_WRITTEN = re.compile(r"`([\w./-]+)`[^`]*?\n\n```(?!console|sh\n)\w+[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_TYPED = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_NEVER_THE_SAME = (
    (r"\b[a-z]+-\d{8}-\d{6}-[0-9a-f]{6}\b", "RUN"),
    (r"\b(?=\w*\d)[0-9a-f]{7}\b|\b[a-f]{7}\b", "COMMIT"),
    (_DURATION, "TIME"),
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d\b", "DATE"),
    (r"\b(?:gitleaks|detect-secrets)\b", "SCANNER"),
    (r"· (?:bubblewrap|worktree) ·", "· SANDBOX ·"),
)


@pytest.fixture
def project(project: Project) -> Project:
    """A project of a reader, in a sandbox where this machine has one."""
    project.environment["GENBA_SANDBOX"] = "worktree" if bubblewrap_problem() else ""
    return project


def story(page: Path) -> Iterator[tuple[str, str]]:
    """What a page has its reader do, in order: files to write, and commands to type with their output."""
    text = text_of(page)
    found = [(each.start(), each[1], each[2]) for each in _WRITTEN.finditer(text)]
    for each in _TYPED.finditer(text):
        for part in each[1].split("$ ")[1:] if each[1].startswith("$ ") else []:
            command, _, printed = part.partition("\n")
            found.append((each.start() + each[1].index(part), f"$ {command}", printed))
    return ((first, second) for _, first, second in sorted(found))


def same_every_time(text: str) -> list[str]:
    """The lines of a text without values that change every time."""
    for pattern, word in _NEVER_THE_SAME:
        text = re.sub(pattern, word, text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def prints_as_shown(shown: list[str], printed: list[str]) -> bool:
    """Whether the lines are those that a page shows; `…` stands for any number of them."""
    if not shown:
        return not printed
    if shown[0] == "…":
        return any(prints_as_shown(shown[1:], printed[skipped:]) for skipped in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and prints_as_shown(shown[1:], printed[1:])


def type_in(project: Project, command: str) -> str:
    """Type a line into a shell in the project; what it prints, as it comes."""
    path = project.environment.get("PATH", os.environ["PATH"])
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=project.root,
        env={**ordinary_environment(), **project.environment, "PATH": f"{linked_genba()}:{path}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout


def follow_page(project: Project, page: Path) -> None:
    """Write every file and type every command of a page, and compare each output."""
    for entry, content in story(page):
        if not entry.startswith("$ "):
            project.write(entry, content)
        elif not entry.startswith("$ git init"):
            printed = same_every_time(type_in(project, entry[2:]))
            assert prints_as_shown(same_every_time(content), printed), "\n".join([entry, *printed])


def yaml_blocks(page: Path) -> list[str]:
    return [content for marker, content in blocks(page) if marker == "yaml"]


def follow_files(project: Project, page: Path, agent: str) -> None:
    """Write every file that a page tells its reader to write for an agent."""
    for marker, content in blocks(page):
        language, _, label = marker.partition(" ")
        if language in ("json", "python") and label:
            project.write(f".agent/{agent}/{label}", content)
        elif language == "yaml":
            project.write(f".agent/{agent}/script.yaml", content)
        elif not language:
            for path, text in _FILE_IN_TREE.findall(content):
                project.write(f".agent/{agent}/prompts/{path}", f"{text}\n")
    for path, text in _FILE_IN_PROSE.findall(text_of(page)):
        project.write(path, text)
    system = project.root / ".agent" / agent / "prompts" / "system.md"
    if not system.exists():
        project.write(f".agent/{agent}/prompts/system.md", "You are an example.\n")


def test_the_quickstart_prints_what_it_shows(project: Project) -> None:
    page = ROOT / "docs" / "quickstart.md"
    claiming, working = shown_runs(page)
    topic = ("writer", "--topic", "Write down how to make tea")
    project.genba("agent", "new", "writer", "--template", "simple", check=0)
    project.write(".agent/writer/steps_registry.json", json.dumps(labelled(page, "steps_registry.json")[0]))
    project.write(".genba/config.yaml", yaml_blocks(page)[0])
    assert seen_run(project, *topic) == claiming
    command = re.findall(r"Change the command to `(\".*?\")`", text_of(page))[0]
    config = re.sub(r"command: .*", lambda _: f"command: {command}", yaml_blocks(page)[0])
    project.write(".genba/config.yaml", config)
    assert seen_run(project, *topic) == working
    assert project.read("TEA.md") == "Pour hot water on it.\n"


def test_the_tutorial_leads_from_an_empty_repository_to_a_merged_change(project: Project) -> None:
    follow_page(project, ROOT / "docs" / "tutorial.md")
    assert project.task(1).status is TaskStatus.DONE
    assert project.read("menu.txt").endswith("oolong: 4\n")


def test_the_page_on_verification_prints_what_it_shows(project: Project) -> None:
    page = ROOT / "docs" / "how-to" / "verify-work.md"
    follow_page(project, page)
    assert project.task(1).status is TaskStatus.DONE
    assert "PRICES[name] * cups" in project.read("prices.py")


def test_the_first_agent_fixes_its_work_as_shown(project: Project) -> None:
    page = ROOT / "docs" / "how-to" / "first-agent.md"
    project.write("MENU.md", "black tea: 2\n")
    project.commit("A menu")
    for line in typed_commands(page):
        if line.startswith("genba task add"):
            project.genba(*shlex.split(line)[1:], check=0)
    project.genba("agent", "new", "fixer", check=0)
    follow_files(project, page, "fixer")
    assert [seen_run(project, "fixer", "--issue", "1")] == shown_runs(page)
    assert project.read("MENU.md") == "black tea: 2\ngreen tea: 3\n"
    assert project.issue_front(1)["state"] == "closed"


def test_the_agent_with_several_steps_runs_as_shown(project: Project) -> None:
    page = ROOT / "docs" / "how-to" / "multi-step-agents.md"
    follow_files(project, page, "author")
    assert [seen_run(project, "author", "--topic", "Tea")] == shown_runs(page)


def test_the_completion_rule_in_python_decides_as_shown(project: Project) -> None:
    page = ROOT / "docs" / "how-to" / "custom-completion.md"
    follow_files(project, page, "sweeper")
    assert [seen_run(project, "sweeper")] == shown_runs(page)


def test_the_pipeline_ends_its_task_as_shown(project: Project) -> None:
    follow_page(project, ROOT / "docs" / "how-to" / "pipelines.md")
    assert project.task(1).status is TaskStatus.DONE
    assert project.read("manual.md") == "What people ask\nChapters\n"
    assert (str(project.task(2).status), project.task(2).phases) == ("open", ())


def test_the_shell_script_with_a_reply_file_replies_as_shown(project: Project) -> None:
    page = ROOT / "docs" / "how-to" / "any-command.md"
    project.genba("agent", "new", "clerk", "--template", "simple", check=0)
    project.write(".genba/config.yaml", next(block for block in yaml_blocks(page) if "clerk" in block))
    assert [seen_run(project, "clerk", "--topic", "Order more green tea")] == shown_runs(page)
    assert project.read("NOTES.md") == "Order more green tea\n"
