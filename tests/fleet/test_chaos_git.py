"""Killed around each command of git that changes something: before it, after it, and while it goes on alone."""

import os
import shutil
from pathlib import Path

import pytest

from tests.fleet.chaos import Chaos, on_both
from tests.fleet.yard import Yard

WRITING = ("reset --hard", "commit-tree", "read-tree -m", "update-ref -m", "update-ref --stdin")
"""What a worker has git do for one task, besides reading."""

STRIKING = """#!/bin/sh
case "$GENBA_RUN: $* " in
:*" {command} "*)
    if mkdir {mark} 2>/dev/null; then
        case {when} in
        before) kill -9 $PPID; exit 1 ;;
        after) {git} "$@"; kill -9 $PPID; exit 1 ;;
        during) kill -9 $PPID ;;
        esac
    fi ;;
esac
exec {git} "$@"
"""


@pytest.mark.parametrize("when", ["before", "after", "during"])
@pytest.mark.parametrize(("yard", "command"), on_both(WRITING), indirect=["yard"])
def test_a_worker_that_dies_around_a_git_command_is_resumed(
    yard: Yard, tmp_path: Path, command: str, when: str
) -> None:
    chaos = Chaos(yard)
    mark, shim = tmp_path / "struck", tmp_path / "shim" / "git"
    shim.parent.mkdir()
    shim.write_text(STRIKING.format(command=command, mark=mark, when=when, git=shutil.which("git")), "utf-8")
    shim.chmod(0o755)
    worker = yard.start("--until-empty", PATH=f"{shim.parent}:{os.environ['PATH']}")

    assert worker.wait(120) == -9, yard.log()

    assert mark.is_dir()
    chaos.check_sane()
    yard.work()
    chaos.check_done(starts=1)
