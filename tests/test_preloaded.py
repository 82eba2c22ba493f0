"""A process that was forked is as one that was started."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import preloaded
from tests.preloaded import GENBA, Forked, can_fork, ordinary_environment

BOTH = pytest.mark.parametrize("forked", ["1", "0"], ids=["forked", "started"])


@BOTH
def test_it_has_its_own_folder_environment_words_streams_and_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, forked: str
) -> None:
    monkeypatch.setenv("GENBA_TEST_FORK", forked)
    environment = {**ordinary_environment(), "FRUIT": "persimmon"}
    monkeypatch.setenv("LOST", "it is not passed on")
    words = [sys.executable, "-m", "tests.looking", "7"]

    done = preloaded.run(words, cwd=tmp_path, env=environment, timeout=60, start_new_session=True)

    assert done.returncode == 7, done.stderr
    assert done.stdout == f"{tmp_path} persimmon False True\n"
    assert done.stderr == "[]\n", "nothing is open but its streams"


@BOTH
def test_a_program_of_a_few_lines_is_what_it_would_be(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, forked: str
) -> None:
    monkeypatch.setenv("GENBA_TEST_FORK", forked)
    lines = "import sys, tests\nprint(__name__, sys.argv)\nsys.exit('no')"

    done = preloaded.run([sys.executable, "-c", lines, "7"], cwd=tmp_path, env=ordinary_environment(), timeout=60)

    assert (done.returncode, done.stdout, done.stderr) == (1, "__main__ ['-c', '7']\n", "no\n")


@BOTH
def test_the_command_line_says_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, forked: str) -> None:
    monkeypatch.setenv("GENBA_TEST_FORK", forked)

    done = preloaded.run([str(GENBA), "run", "nobody"], cwd=tmp_path, env=ordinary_environment(), timeout=60)

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")


@BOTH
def test_it_can_be_killed_and_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, forked: str) -> None:
    monkeypatch.setenv("GENBA_TEST_FORK", forked)
    words = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "0"]
    with Path(os.devnull).open("wb") as nothing:
        process = preloaded.start(
            words, cwd=tmp_path, env=ordinary_environment(), stdout=nothing.fileno(), stderr=nothing.fileno()
        )

    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    assert process.poll() is None
    assert os.getsid(process.pid) == process.pid

    process.kill()

    assert process.wait(60) == -signal.SIGKILL == process.poll()


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with Path(os.devnull).open("wb") as nothing, pytest.raises(OSError, match=r"was not forked: .*No such file"):
        Forked(
            [str(GENBA)],
            cwd=tmp_path / "gone",
            env=ordinary_environment(),
            stdout=nothing.fileno(),
            stderr=nothing.fileno(),
        )


def test_what_an_interpreter_reads_as_it_starts_takes_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GENBA_TEST_FORK", raising=False)

    assert can_fork({**ordinary_environment(), "FRUIT": "kaki"})
    assert not can_fork({**ordinary_environment(), "LC_ALL": "nowhere"})
    assert not can_fork({**ordinary_environment(), "PYTHONUTF8": "0"})
    monkeypatch.setenv("GENBA_TEST_FORK", "0")
    assert not can_fork(ordinary_environment())
