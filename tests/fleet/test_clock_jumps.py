import http.client
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from genba.domain.fleet.records import WaitsFor
from genba.domain.tasks.task import TaskStatus
from tests.faketime import NOT_RUN, Clock, library
from tests.fleet.test_providers import limited_elsewhere
from tests.fleet.test_questions import asks_once
from tests.fleet.test_state_driven import asker
from tests.fleet.yard import Yard
from tests.project import until

pytestmark = pytest.mark.skipif(library() is None, reason=NOT_RUN)

HOURS = 6 * 3600
PATIENT = {"limits": {"wallTimeSeconds": 3600, "askTimeoutSeconds": 1800, "idleTimeoutSeconds": 600}}
VERSION = "2025-06-18"


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path)


def done(yard: Yard, *numbers: int) -> bool:
    statuses = yard.statuses()
    return all(statuses.get(number) is TaskStatus.DONE for number in numbers)


def look_again(yard: Yard, number: int) -> None:
    """Everybody has looked at the board since: a task that came later was done."""
    yard.task(number, assignee="honest")
    until(lambda: done(yard, number))


def test_a_clock_that_is_set_changes_nothing_for_who_works_and_who_waits(yard: Yard, clock: Clock) -> None:
    ground = yard.project.root.parent
    yard.set(work={"workers": 3, "agent": "honest"})
    yard.agent("honest")
    yard.agent("slow", f"until test -f {ground}/go; do sleep 0.05; done; echo 1 > task-1.txt", **PATIENT)
    asks_once(yard, "asks")
    asker(yard, atomic=True, wait={"execute_subtask": str(ground / "asker")})
    yard.project.commit("Declare the asker")
    yard.task(1, assignee="slow")
    yard.task(2, assignee="asks")
    yard.task(3, assignee="asker")
    yard.start(**clock.environment())
    until(lambda: {"1", "2", "3"} <= set(yard.started()) and (ground / "asker.waiting").exists())
    with yard.board() as board:
        until(board.escalations)

    for number, seconds in ((4, HOURS), (5, -2 * HOURS)):
        clock.jump(seconds)
        look_again(yard, number)

    with yard.board() as board:
        sessions = {number: board.sessions(number) for number in (1, 2, 3)}
    assert [(one.status, one.part) for one in (*sessions[1], *sessions[3])] == [("running", 1)] * 2
    assert [one.waits_for for one in sessions[2]] == [WaitsFor.ANSWER]
    (ground / "go").touch()
    (ground / "asker").touch()
    yard.genba("answer", "2", "Take 8080.")
    until(lambda: done(yard, 1, 2, 3))
    assert sorted(yard.started()) == ["1", "2", "2", "3", "4", "5"], (
        "nobody was started a second time but for the answer"
    )
    assert "Traceback" not in yard.log()


def test_an_attempt_that_waits_for_its_turn_is_not_kept_waiting_by_a_clock_that_was_set_back(
    small_yard: Yard, clock: Clock
) -> None:
    yard = small_yard
    ground = yard.project.root.parent
    yard.agent("worker", f"test -f {ground}/died || {{ touch {ground}/died; kill -9 $PPID; }}; echo 1 > 1.txt",
               limits={"retries": 0})  # fmt: skip
    yard.set(attempts={"backoff_seconds": 3})
    yard.task(1)
    yard.start(**clock.environment())

    def failed() -> bool:
        with yard.board() as board:
            return any(one.status == "ended" for one in board.sessions(1))

    until(failed)
    clock.jump(-HOURS)

    until(lambda: done(yard, 1))


def test_a_pause_of_a_provider_is_not_made_longer_by_a_clock_that_was_set_back(small_yard: Yard, clock: Clock) -> None:
    yard = small_yard
    yard.set(work={"patience_seconds": 0.5})
    limited_elsewhere(yard, 4)
    yard.task(1, assignee="elsewhere")
    yard.start(**clock.environment())

    def suspended() -> bool:
        with yard.board() as board:
            return any(one.status == "waiting" for one in board.sessions(1))

    until(suspended)
    clock.jump(-HOURS)

    until(lambda: done(yard, 1))


def test_a_target_that_was_in_the_way_is_tried_again_by_a_clock_that_was_set_back(
    small_yard: Yard, clock: Clock
) -> None:
    yard = small_yard
    yard.set(merge={"retry_seconds": 2})
    yard.agent()
    in_the_way = yard.project.root / "task-1.txt"
    in_the_way.write_text("mine\n", "utf-8")
    yard.task(1)
    yard.start(**clock.environment())

    def stuck() -> bool:
        with yard.board() as board:
            return any(entry.status == "stuck" for entry in board.entries())

    until(stuck)
    clock.jump(-HOURS)
    in_the_way.unlink()

    until(lambda: done(yard, 1))


class Guest:
    def __init__(self, yard: Yard, address: str) -> None:
        self.place = urlsplit(address)
        words = yard.genba("agent", "register", "visitor").out.split()
        agent, passkey = (next(word for word in words if word.startswith(kind)) for kind in ("agt_", "gbk_"))
        self.token = self.call("authenticate", agent_id=agent, passkey=passkey)["session_token"]

    def call(self, tool: str, **arguments: str) -> dict[str, Any]:
        if tool != "authenticate":
            arguments["session_token"] = self.token
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": VERSION,
        }
        line = http.client.HTTPConnection(self.place.hostname or "", self.place.port, timeout=60)
        line.request("POST", "/mcp", json.dumps(body), headers)
        answer = json.loads(line.getresponse().read())
        line.close()
        found: dict[str, Any] = answer["result"]["structuredContent"]
        return found


def test_an_external_agent_who_is_at_work_is_not_sent_away_by_a_clock_that_is_set(
    small_yard: Yard, clock: Clock
) -> None:
    yard = small_yard
    yard.set(verification={"sandbox": False})
    yard.agent("honest")
    yard.task(1, assignee="visitor")
    yard.start(**clock.environment())
    yard.begin("mcp", "--http", "--port", "0", **clock.environment())
    until(lambda: "http://" in yard.log(1))
    external_agent = Guest(yard, next(word for word in yard.log(1).split() if word.startswith("http://")))
    assert external_agent.call("get_next_action")["action"] == "get_task"
    tree = Path(external_agent.call("get_my_task")["path"])

    clock.jump(HOURS)
    look_again(yard, 2)
    clock.speed(20)
    swept = clock.monotonic() + 60
    until(lambda: clock.monotonic() > swept)
    clock.speed(1)

    assert "error" not in external_agent.call("get_next_action")
    (tree / "made.txt").write_text("made\n", "utf-8")
    yard.project.git("add", "-A", cwd=tree)
    yard.project.git("commit", "-qm", "Make it", cwd=tree)
    external_agent.call("report_completed")
    until(lambda: done(yard, 1))
    with yard.board() as board:
        assert len(board.sessions(1)) == 1
