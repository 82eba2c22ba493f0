"""What every test can have."""

import atexit
import gc
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import git_recorder, tiers
from tests.project import Project

settings.register_profile(
    "house", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")
os.environ.setdefault("GENBA_SANDBOX", "worktree")  # tests of sandboxes set their kind


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
"""A shell that starts the tests in the background makes them ignore ctrl-c, and with them all that they start."""

_RECORDER = git_recorder.record()
"""Before any test starts a process: they inherit it."""
if _RECORDER is not None:
    atexit.register(shutil.rmtree, _RECORDER.folder, ignore_errors=True)

MOST_PROCESSES = 8
"""So many are enough to fill the time in which tests wait, on a machine with few processors."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """`-n auto` is three for each processor: most tests wait for other processes half of their time, and for disks."""
    if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS"):
        return None
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(processors, min(3 * processors, MOST_PROCESSES))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "extended: not in the quick tier, which `make test` runs (tests/tiers.py)")


def pytest_report_header() -> list[str]:
    return tiers.header()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tiers.mark(config, items)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_git_over_trees_of_agents() -> Iterator[None]:
    """Fail any test in which the host starts git over a tree that an agent can write."""
    yield
    if _RECORDER is not None and (found := git_recorder.violations(_RECORDER.take())):
        pytest.fail("\n".join(found[:20]), pytrace=False)


@pytest.fixture(scope="session")
def beginning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("beginning") / "repository"
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    made = Project(root)
    made.git("config", "user.name", "Test User")
    made.git("config", "user.email", "user@localhost")
    made.write("README.md", "# A project\n")
    made.commit("Begin")
    return root


@pytest.fixture
def project(beginning: Path, tmp_path: Path) -> Iterator[Project]:
    """A repository with one commit on main."""
    root = tmp_path / "repository"
    shutil.copytree(beginning, root, symlinks=True)
    made = Project(root, {"HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"})
    made.git("update-index", "-q", "--refresh")  # git sees that these are other files, with what it knows
    yield made
    for home in (tmp_path, tmp_path / "somebody"):
        _delete_images(home / ".local" / "share" / "containers")


def _delete_images(storage: Path) -> None:
    if os.geteuid() and storage.is_dir():
        words = ["podman", "unshare", "rm", "-rf", str(storage)]
        subprocess.run(words, cwd="/", capture_output=True, check=False, timeout=60)
