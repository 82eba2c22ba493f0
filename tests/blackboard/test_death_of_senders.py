import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from genba.coordination.engine.lease_owners import lives, one_here
from tests.blackboard.dying_senders import EFFECTS, Report

ROOT = Path(__file__).parents[2]


def run(address: str, folder: Path, how: str) -> list[Report]:
    program = [sys.executable, "-m", "tests.blackboard.dying_senders", address, str(folder), how]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return msgspec.json.decode(done.stdout, type=list[Report])


def lanes(keys: list[str]) -> tuple[list[str], list[str]]:
    """The keys of each of the two issues."""
    return [key for key in keys if not key.startswith("close")], [key for key in keys if key.startswith("close")]


def test_a_sender_that_is_killed_at_any_point_loses_and_doubles_nothing(address: str, tmp_path: Path) -> None:
    found = run(address, tmp_path, "first")
    assert len(found) > 20
    for message in found:
        assert message.statuses == ["done"] * len(EFFECTS)
        assert lanes(message.keys) == lanes([f"{key}-0" for key, _ in EFFECTS]), message
    assert [message.deaths for message in found] == [1] * (len(found) - 1) + [0]


def test_death_after_death_everything_is_sent_once_and_in_order(address: str, tmp_path: Path) -> None:
    (result,) = run(address, tmp_path, "often")
    assert result.deaths > 5
    sent = [f"{key}-{time}" for time in range(3) for key, _ in EFFECTS]
    once = ["close-0"]  # an issue that is closed is not closed again, and labels that are there are not added again
    expected = [key for key in sent if key.startswith("c") and not key.startswith("close")]
    assert [key for key in result.keys if key in expected] == expected
    assert [key for key in result.keys if key.startswith("close")] == once
    assert len(result.keys) == len(set(result.keys))
    assert set(result.statuses) == {"done"}


def test_several_who_send_at_once_send_each_deed_once(address: str, tmp_path: Path) -> None:
    (result,) = run(address, tmp_path, "race")
    assert len(result.keys) == len(set(result.keys))
    comments = [f"{key}-{time}" for time in range(4) for key, _ in EFFECTS if key in ("c1", "c2")]
    assert [key for key in result.keys if key in comments] == comments
    assert set(result.statuses) == {"done"}


def test_only_who_cannot_be_mistaken_is_called_dead() -> None:
    here = one_here()
    if here.startswith("somewhere/"):
        pytest.skip("not run: this machine does not say which boot it is in")
    assert lives(here) is True
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    place = here.partition("/")[0]
    assert lives(f"{place}/{child.pid}/x") is False
    for other in (f"elsewhere/{os.getpid()}/x", f"{place}/nobody/x", "", place):
        assert lives(other) is None
