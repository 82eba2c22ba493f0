"""Orphans are ended, and nothing that Genba has started itself is taken for one."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.preloaded import ROOT, ordinary_environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="not run: there is no /proc here")

_BEGIN = """
import os, subprocess, sys
from genba.connections.processes.orphans import end_orphans, take_in_orphans
from genba.connections.processes.tree import environment_of
take_in_orphans()

def hiding(*words):
    there = subprocess.Popen([sys.executable, "-m", "tests.hiding", *words], stdout=subprocess.PIPE)
    assert there.stdout.readline() == b"hidden\\n"
    assert environment_of(there.pid) is None
    return there
"""


def outcome(script: str, *inside: str) -> str:
    """What a process of its own prints that takes in orphans."""
    words = [*inside, sys.executable, "-c", _BEGIN + script]
    environment = ordinary_environment()
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_who_takes_long_to_become_another_program_is_no_orphan() -> None:
    assert outcome("there = hiding('0.4', '/bin/true'); print(end_orphans(), there.wait())") == "0 0"


def test_who_hides_what_it_is_for_good_is_ended() -> None:
    assert outcome("there = hiding(); print(end_orphans(), environment_of(os.getpid()) is None)") == "1 False"


def test_an_orphan_with_an_empty_environment_is_ended_and_our_own_is_not(tmp_path: Path) -> None:
    script = f"""
own = subprocess.Popen(["sleep", "600"])
there = "until [ -s {tmp_path}/orphan ]; do sleep 0.02; done"
subprocess.run(["sh", "-c", "env -i sh -c 'echo $$ > {tmp_path}/orphan; exec sleep 600' & " + there])
ended, orphan = end_orphans(), int(open("{tmp_path}/orphan").read())
try:
    os.waitpid(orphan, 0)
except ChildProcessError:
    pass  # it was buried already
print(ended, own.poll(), os.path.exists(f"/proc/{{orphan}}"))
own.kill()
"""
    assert outcome(script) == "1 None False"


def test_where_processes_cannot_be_inspected_none_counts_as_an_orphan() -> None:
    bare = ("bwrap", "--bind", "/", "/", "--dev", "/dev", "--tmpfs", "/proc", "--")
    if shutil.which("bwrap") is None or subprocess.run([*bare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("NOT RUN: bubblewrap cannot take /proc away here")

    script = 'own = subprocess.Popen(["sleep", "600"]); print(end_orphans(), own.poll()); own.kill()'

    assert outcome(script, *bare) == "0 None"
