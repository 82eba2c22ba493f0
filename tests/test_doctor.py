"""`genba doctor`: what is here, what works, and how to get what is missing."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.project import GENBA, Finished, Project


class Machine:
    """A machine with exactly the programs that it is given."""

    def __init__(self, folder: Path, where: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.home = folder / "users-home"
        self.home.mkdir()
        self.where = where
        self.environment = {"PATH": str(self.bin), "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}

    def program(self, name: str, lines: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(0o755)

    def with_git(self) -> None:
        found = shutil.which("git")
        assert found
        (self.bin / "git").symlink_to(found)

    def doctor(self, *words: str, **environment: str) -> Finished:
        done = subprocess.run(
            [GENBA, "doctor", *words],
            cwd=self.where,
            env={**self.environment, **environment},
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    def findings(self, **environment: str) -> dict[str, dict[str, Any]]:
        return {found["name"]: found for found in self.doctor("--json", **environment).json["findings"]}


@pytest.fixture
def machine(project: Project, tmp_path: Path) -> Machine:
    made = Machine(tmp_path, project.root)
    made.with_git()
    return made


def test_an_agent_is_found_with_its_version_and_the_name_of_its_key(machine: Machine) -> None:
    machine.program("claude", 'echo "2.1.325 (Claude Code)"')

    done = machine.doctor(ANTHROPIC_API_KEY="sk-ant-very-secret")
    found = machine.findings(ANTHROPIC_API_KEY="sk-ant-very-secret")["claude"]

    assert done.code == 0
    assert "✓ claude" in done.out
    assert (found["version"], found["detail"]) == ("2.1.325", "key in ANTHROPIC_API_KEY")
    assert "very-secret" not in done.out + done.err


def test_an_agent_that_is_missing_is_reported_with_the_command_that_installs_it(machine: Machine) -> None:
    done = machine.doctor()

    assert done.code == 0
    for name, package in {
        "claude": "@anthropic-ai/claude-code",
        "codex": "@openai/codex",
        "opencode": "opencode-ai",
        "gemini": "@google/gemini-cli",
    }.items():
        assert f"– {name}" in done.out
        assert f"npm install -g {package}" in done.out
    assert "hint: install an agent" in done.err


def test_a_program_is_asked_in_a_home_of_its_own_and_without_keys(machine: Machine, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    machine.program("codex", f"/usr/bin/env > {seen}; echo 1.2.3")

    machine.doctor(OPENAI_API_KEY="sk-very-secret")

    text = seen.read_text()
    assert "very-secret" not in text
    assert f"HOME={machine.home}\n" not in text
    assert list(machine.home.iterdir()) == []


@pytest.mark.parametrize("lines", ["echo it is broken >&2; exit 3", "echo no number here", "kill -9 $$"])
def test_a_program_that_tells_no_version_does_not_count_as_installed(machine: Machine, lines: str) -> None:
    machine.program("claude", lines)

    found = machine.findings()["claude"]

    assert found["health"] == "missing"
    assert "does not work" in found["detail"]


def test_a_login_is_named_where_there_is_no_key(machine: Machine) -> None:
    machine.program("codex", "echo codex-cli 0.166.0")
    (machine.home / ".codex").mkdir()
    (machine.home / ".codex" / "auth.json").write_text('{"token": "very-secret"}')

    found = machine.findings()["codex"]

    assert found["detail"] == "a login in ~/.codex/auth.json, for homeFiles"


def test_without_git_nothing_runs(machine: Machine) -> None:
    (machine.bin / "git").unlink()

    done = machine.doctor()

    assert done.code == 1
    assert "✗ git" in done.out
    assert "hint: apt-get install git" in done.err


def test_a_git_that_cannot_merge_without_a_checkout_is_too_old(machine: Machine) -> None:
    (machine.bin / "git").unlink()
    machine.program("git", "echo git version 2.37.9")

    done = machine.doctor()

    assert done.code == 1
    assert "2.37.9 is too old: 2.38 is needed" in done.out


def test_a_project_that_cannot_be_read_stands_in_the_way(machine: Machine, project: Project) -> None:
    project.write(".genba/config.yaml", "sandbox: {kind: paper}\n")

    done = machine.doctor()

    assert done.code == 1
    assert "✗ config" in done.out
    assert "sandbox.kind" in done.out


def test_outside_of_a_repository_the_machine_is_looked_at_all_the_same(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    machine = Machine(tmp_path, elsewhere)
    machine.with_git()

    done = machine.doctor(GIT_CEILING_DIRECTORIES=str(tmp_path))

    assert done.code == 0
    assert "✓ git" in done.out
    assert "– repository" in done.out
    assert "genba demo" in done.err


def test_the_database_is_inspected_and_its_password_never_shown(machine: Machine, project: Project) -> None:
    project.issue(1, "A task")

    fine = machine.findings()["database"]
    broken = machine.doctor(GENBA_DATABASE_URL="postgresql://genba:very-secret@127.0.0.1:1/none")

    assert (fine["health"], Path(fine["detail"]).name) == ("fine", "genba.db")
    assert broken.code == 1
    assert "✗ database" in broken.out
    assert "very-secret" not in broken.out + broken.err


def test_looking_makes_no_database(machine: Machine, project: Project) -> None:
    assert machine.findings()["database"]["health"] == "missing"
    assert not (project.root / ".genba").exists()


def test_a_configured_sandbox_that_does_not_work_is_a_problem(machine: Machine, project: Project) -> None:
    by_variable = machine.doctor(GENBA_SANDBOX="docker")
    project.write(".genba/config.yaml", "sandbox: {kind: podman}\n")
    by_file = machine.doctor()

    assert (by_variable.code, by_file.code) == (1, 1)
    assert "docker is chosen: docker is not installed" in by_variable.out
    assert "podman is chosen: podman is not installed" in by_file.out


def test_an_unknown_kind_of_sandbox_is_a_problem(machine: Machine) -> None:
    done = machine.doctor(GENBA_SANDBOX="paper")

    assert done.code == 1
    assert '"paper" is no kind of sandbox' in done.out


def test_without_bubblewrap_a_run_has_no_sandbox_and_reports_it(machine: Machine) -> None:
    done = machine.doctor()
    result = machine.doctor("--json").json

    assert "without a sandbox (bwrap is not installed)" in done.out
    assert "apt-get install bubblewrap" in done.out
    assert (result["can_run"], result["sandbox"]) == (True, "worktree")


def test_the_check_of_the_sandbox_agrees_with_a_run(machine: Machine) -> None:
    found = shutil.which("bwrap")
    if found is None:
        pytest.skip("not run: bwrap is not installed")
    machine.environment["PATH"] = f"{machine.bin}:{os.environ['PATH']}"

    result = machine.doctor("--json").json
    sandbox = next(each for each in result["findings"] if each["name"] == "bubblewrap")

    assert result["sandbox"] == ("bubblewrap" if sandbox["health"] == "fine" else "worktree")


def test_a_sandbox_works_only_if_a_session_would_work_in_it(machine: Machine) -> None:
    """An engine that answers, and whose containers do not start."""
    machine.program("podman", 'case "$*" in *info*) echo "{}";; *) echo "no containers today" >&2; exit 125;; esac')
    found = machine.findings()["podman"]
    assert found["health"] == "missing"
    assert "no containers today" in found["detail"]


def test_the_first_step_of_a_session_that_fails_is_named_with_its_remedy(machine: Machine) -> None:
    real = shutil.which("bwrap")
    if real is None:
        pytest.skip("not run: bwrap is not installed")
    machine.program("bwrap", f'exec {real} "$@"')
    (machine.bin / "git").unlink()
    for name in ("sh", "cat", "git"):
        found = shutil.which(name, path="/usr/bin:/bin")
        assert found
        (machine.bin / name).symlink_to(found)
    assert machine.findings()["bubblewrap"]["detail"] == "works"
    (machine.bin / "git").unlink()
    machine.program("git", 'case "$1" in init) echo "no git here" >&2; exit 1;; esac; exec /usr/bin/git "$@"')
    broken = machine.findings()["bubblewrap"]
    assert (broken["health"], broken["detail"]) == ("missing", "git could not commit: no git here")
    assert "install git" in broken["install"]
