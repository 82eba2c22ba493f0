"""Whether bubblewrap works on this machine."""

import functools
import os
import shutil
import subprocess

import pytest


@functools.cache
def bubblewrap_problem() -> str:
    """Why bubblewrap cannot be tried on this machine; empty when it can."""
    if shutil.which("bwrap") is None:
        return "bwrap is not installed"
    words = ["bwrap", "--unshare-all", "--unshare-user", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip() or "bwrap does not work here"


def needs_bubblewrap() -> None:
    problem = bubblewrap_problem()
    if problem and os.environ.get("GENBA_REQUIRE_SANDBOXES") == "1":
        pytest.fail(f"walls are required here, and cannot be raised: {problem}")
    if problem:
        pytest.skip(f"not run: {problem}")
