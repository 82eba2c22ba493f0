import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fuzz.outside import anything, everything, spoilt, tried
from tests.fuzz.spoken import PATIENCE, Spoken, board_file, call, spoken
from tests.project import Project

GOOD = call("create_tasks_batch", {"tasks": [{"title": "Cut it", "goals": ["file_exists:a"]}], "key": "k"}, 7)


def messages() -> st.SearchStrategy[Any]:
    words = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "x"])
    return spoilt(GOOD) | st.dictionaries(words, anything, max_size=5) | st.lists(anything, max_size=3)


LINES = st.binary(max_size=200).map(lambda raw: raw.replace(b"\n", b"")) | messages().map(
    lambda message: json.dumps(message).encode()
)


@pytest.fixture(scope="module")
def there(beginning: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spoken]:
    """One process that hears all of it, one thing after the other, and is there in the end."""
    home = tmp_path_factory.mktemp("home")
    root = home / "repository"
    shutil.copytree(beginning, root, symlinks=True)
    project = Project(root, {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"})
    project.issue(1, "Build a kite")
    project.genba("task", "list", check=0)  # the file belongs to this repository from its first use on
    before = everything(board_file(project))
    with spoken(project) as made:
        yield made
    assert everything(board_file(project)) == before, "nobody had come in"


@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        pytest.param(b"{", None, -32700, id="half a message"),
        pytest.param(b"\xff\xfe\x00", None, -32700, id="no text"),
        pytest.param(b"[" * 10_000, None, -32700, id="ten thousand levels"),
        pytest.param(b'{"a":' * 10_000 + b"1" + b"}" * 10_000, None, -32700, id="ten thousand levels that end"),
        pytest.param(b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":"ping"}', None, -32700, id="a huge id"),
        pytest.param(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', None, -32600, id="a batch"),
        pytest.param(b'{"jsonrpc":"2.0","id":15,"method":"initialize","params":[]}', 15, -32600, id="a list"),
        pytest.param(b'{"jsonrpc":"1.0","id":15,"method":"ping"}', 15, -32600, id="another protocol"),
        pytest.param(b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None, -32600, id="an id that is none"),
        pytest.param(b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, -32600, id="no id where one is due"),
        pytest.param(b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', None, -32600, id="half a character as id"),
    ],
)
def test_a_line_that_is_no_request_is_answered_with_an_error(
    there: Spoken, line: bytes, number: Any, code: int
) -> None:
    (answer,) = there.answered(line)

    assert (answer["id"], answer["error"]["code"]) == (number, code)
    assert answer["error"]["message"]


def test_half_a_character_in_a_request_is_answered_with_an_error(there: Spoken) -> None:
    (answer,) = there.answered(json.dumps(call("create_task", {"title": "\ud800"}, 9)).encode())

    assert answer["id"] == 9
    assert "half a character" in answer["error"]["message"]


@pytest.mark.parametrize("order", [("jsonrpc", "id", "method", "params"), ("method", "params", "jsonrpc", "id")])
def test_a_request_that_is_too_long_is_answered_with_an_error_in_every_form(
    there: Spoken, order: tuple[str, ...]
) -> None:
    whole = call("create_task", {"title": "x" * 3_000_000, "id": 4}, 11)

    (answer,) = there.answered(json.dumps({name: whole[name] for name in order}).encode())

    assert answer["id"] == 11
    assert "2,097,152" in answer["error"]["message"]


def test_a_line_without_an_end_does_not_fill_the_memory(there: Spoken) -> None:
    assert there.process.stdin is not None
    for _ in range(300):
        there.process.stdin.write(b"x" * 1_000_000)
    (answer,) = there.answered(b"")

    assert answer["error"]["code"] == -32600
    status = Path(f"/proc/{there.process.pid}/status")
    if status.exists():
        peak = next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        assert peak < 300_000, "kB; what was said is 300 MB"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"   ",
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody"}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1]}}',
        b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"authenticate","id":4}}',
        b'{"jsonrpc":"2.0","id":99,"result":{}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}',
        b'{"jsonrpc":"2.0","id":[],"error":"no"}',
    ],
)
def test_a_request_without_a_waiting_client_is_not_answered(there: Spoken, line: bytes) -> None:
    assert there.answered(line) == []


@given(line=LINES)
@example(line=json.dumps(call("authenticate", {"passkey": "gbk_\0", "agent_id": "\0"})).encode())
@example(line=json.dumps(call("get_task", {"task_id": 10**400})).encode())
@tried(60)
def test_every_message_is_answered(there: Spoken, line: bytes) -> None:
    for answer in there.answered(line):
        result = answer.get("result", {})
        assert "error" in answer or result.get("isError") or "tools" in result or _is_talk(result), answer


def _is_talk(output: dict[str, Any]) -> bool:
    """About the protocol, and not about the project."""
    return set(output) <= {"capabilities", "instructions", "protocolVersion", "serverInfo", "resultType"}


# ── being left alone ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_ends_when_its_reader_is_gone(project: Project) -> None:
    project.issue(1, "Build a kite")
    with spoken(project) as there:
        there.until_still()
        _stop_reading(there)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and there.process.poll() is None:
            with contextlib.suppress(BrokenPipeError):
                there.say(json.dumps(call("help", {})).encode())
            with contextlib.suppress(subprocess.TimeoutExpired):
                there.process.wait(0.2)
        assert there.process.poll() == 0


def _stop_reading(there: Spoken) -> None:
    assert there.process.stdout is not None
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, there.process.stdout.fileno())
    os.close(null)


def test_it_ends_on_a_signal_though_its_client_neither_speaks_nor_reads(project: Project) -> None:
    project.issue(1, "Build a kite")
    with spoken(project) as there:
        there.until_still()
        there.process.send_signal(signal.SIGTERM)
        assert there.process.wait(PATIENCE) == 0


def test_a_request_that_is_cut_off_does_nothing(project: Project) -> None:
    project.issue(1, "Build a kite")
    project.genba("task", "list", check=0)  # the file belongs to this repository from its first use on
    before = everything(board_file(project))
    whole = json.dumps(call("authenticate", {}, 3)).encode()
    with spoken(project) as there:
        there.until_still()
        assert there.process.stdin is not None
        there.process.stdin.write(whole[: len(whole) // 2])
        there.process.stdin.close()
        assert there.process.wait(PATIENCE) == 0
        assert there.heard()["error"]["code"] == -32700
    assert everything(board_file(project)) == before
