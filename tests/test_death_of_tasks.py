"""Kill anything that works on a task or verifies it: nothing is lost, done twice, or left running."""

import os
import signal
import subprocess
from pathlib import Path

from tests.project import GENBA, Project, ordinary_environment, until


def start(project: Project, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [str(GENBA), *words],
        cwd=project.root,
        env={**ordinary_environment(), **project.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def below(folder: Path) -> list[int]:
    """The processes that work in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append(int(process.name))
        except OSError:
            continue
    return [process for process in found if process != os.getpid()]


def checkouts(project: Project) -> list[Path]:
    return list((project.root / ".git" / "genba" / "checkouts").glob("*"))


def branch_held_to(project: Project, goals: str) -> None:
    project.write(".genba/config.yaml", f"dod:\n{goals}\n")
    project.commit("Say what done means")
    project.git("checkout", "-q", "-b", "work")
    project.write("work.txt", "work\n")
    project.commit("work")
    project.git("checkout", "-q", "main")


def test_a_killed_verification_leaves_nothing_that_the_next_one_does_not_end(project: Project, tmp_path: Path) -> None:
    serve = f"touch {tmp_path}/serving; exec sleep 1000"
    goal = f"  - {{type: endpoint_responds, url: /x, ready_seconds: 900, serve: '{serve}'}}"
    branch_held_to(project, goal)
    killed = start(project, "verify", "work")
    until((tmp_path / "serving").exists)
    killed.kill()
    killed.wait()
    assert below(project.root)
    branch_again = "  - {type: custom_script, script: 'true'}"
    project.write(".genba/config.yaml", f"dod:\n{branch_again}\n")
    project.commit("Say it in another way")

    project.genba("verify", "work", check=0)

    assert below(project.root) == []
    assert checkouts(project) == []


def test_ctrl_c_ends_a_verification_with_all_that_it_started(project: Project, tmp_path: Path) -> None:
    branch_held_to(project, f"  - {{type: custom_script, script: 'touch {tmp_path}/seen; sleep 1000'}}")
    stopped = start(project, "verify", "work")
    until((tmp_path / "seen").exists)
    stopped.send_signal(signal.SIGINT)

    assert stopped.wait(20) == 1
    assert below(project.root) == []
    assert checkouts(project) == []
