"""Genba never ends a process that it started for itself, and never takes a lost exit code for success."""

import ast
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import genba
from genba.connections.own_processes import LostProcessError, exit_code
from tests.project import Project

STARTERS = {"run", "Popen", "check_output", "check_call", "call", "create_subprocess_exec", "create_subprocess_shell"}
WITH_THE_WHOLE_ENVIRONMENT = {"application/dashboard/start_session.py"}
"""They hand on what this process was started with, the mark among it."""
WITH_A_MARK_OF_ANOTHER_KIND = {"connections/processes/supervisor.py"}


def test_a_slow_git_is_not_ended_as_an_orphan(project: Project, tmp_path: Path) -> None:
    """A checkout that was cut off counted as complete, and the agent committed the missing files as deleted."""
    shim = tmp_path / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text('#!/bin/sh\nPATH="${PATH#*:}"\ncase " $* " in *" rev-parse "*) sleep 1;; esac\nexec git "$@"\n')
    shim.chmod(0o755)
    script = """
        import asyncio, sys, threading
        from pathlib import Path
        from genba.connections.processes.orphans import end_orphans, take_in_orphans
        from genba.connections.git.repository.commands import Git

        take_in_orphans()
        ended = []
        ending = threading.Timer(0.3, lambda: ended.append(end_orphans()))
        ending.start()
        said = asyncio.run(Git(Path(sys.argv[1])).text("rev-parse", "HEAD"))
        ending.join()
        print(said, ended)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(project.root / ".git")],
        env={**os.environ, "PATH": f"{shim.parent}:{os.environ['PATH']}"}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.stdout, done.stderr) == (f"{project.git('rev-parse', 'HEAD').strip()} [0]\n", "")


def test_an_exit_code_that_another_one_collected_is_not_success() -> None:
    process = subprocess.Popen(["false"])
    os.waitpid(process.pid, 0)

    with pytest.raises(LostProcessError):
        exit_code(process)
    process.wait()


@pytest.mark.parametrize(
    ("words", "code"), [(["true"], 0), (["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], -9)]
)
def test_an_exit_code_is_what_the_process_ended_with(words: list[str], code: int) -> None:
    with subprocess.Popen(words) as process:
        assert exit_code(process, 30) == code
    assert process.returncode == code


def test_a_process_that_takes_too_long_is_reported() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            exit_code(process, 0.05)
        process.kill()


def test_every_process_with_an_environment_of_its_own_carries_the_mark() -> None:
    root = Path(genba.__file__).parent
    left = WITH_THE_WHOLE_ENVIRONMENT | WITH_A_MARK_OF_ANOTHER_KIND
    unmarked = [
        f"{path.relative_to(root)}:{call.lineno}"
        for path in sorted(root.rglob("*.py"))
        if str(path.relative_to(root)) not in left and "testing" not in path.parts
        for call in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in STARTERS
        for keyword in call.keywords
        if keyword.arg == "env" and not ast.unparse(keyword.value).startswith("own_environment(")
    ]

    assert unmarked == []
