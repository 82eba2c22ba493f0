"""Killed at every call of an agent that asks: the flow goes on from the blackboard, and nothing of it is doubled."""

import json
import signal
import socket
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from genba.domain.fleet.records import EntryStatus, Purpose, WaitsFor
from genba.domain.tasks.task import TaskStatus
from tests.fleet.asker import Asker
from tests.fleet.chaos import SOON, Chaos
from tests.fleet.yard import Yard, summary
from tests.project import until

SCRIPTS = ("asker.py", "doomed.py")
HERE = Path(__file__).parent
STEPS: list[dict[str, Any]] = [
    {"title": "first", "local_id": "a", "goals": [{"type": "custom_script", "script": "grep -qx right first.txt"}]},
    {"title": "second", "local_id": "b", "depends_on": ["a"]},
]
DONE = {"custom_script": "test -f first.txt && test -f second.txt"}
PARTS: list[dict[str, Any]] = [{"title": name} for name in ("one", "two")]
NEXT = "get_next_action"
WORKER = (
    *("authenticate", NEXT, "get_my_task", NEXT, "create_tasks_batch", NEXT),
    *("update_task_status", NEXT) * 3,  # the first step is begun, claimed, and claimed once more
    *("update_task_status", NEXT) * 2,
    *("report_completed", NEXT),
)
MANAGER = (
    *("authenticate", NEXT, "get_my_task", NEXT, "create_tasks_batch", NEXT, "list_workers"),
    *("assign_task", "assign_task", NEXT),
    *("report_completed", NEXT),
)
"""What a manager calls: of the calls that come to `wait`, the first."""
WHEN = ("before", "lost", "after")
Death = tuple[int, str]
TOKEN_LOST: Death = (1, "lost")
"""The credential was good for once, and what it was good for did not arrive: who gave up is started once more."""


class Flow(Chaos):
    """A worker or a manager that asks, and what its calls have come to."""

    def __init__(
        self, yard: Yard, steps: tuple[str, ...], death: Death = (0, ""), whom: str = "", **conduct: Any
    ) -> None:
        self.yard = yard
        self.tasks = range(1, 2)
        self.home = yard.project.root.parent
        self.seen = set()
        self.manages = steps is MANAGER
        self.plan = PARTS if self.manages else STEPS
        doom = {"home": str(self.home), "call": death[0], "when": death[1], "whom": whom}
        for name in SCRIPTS:
            yard.project.write(f"tests/fleet/{name}", (HERE / name).read_text("utf-8"))
        if self.manages:
            self._agent("boss", "manager", doom, plan=PARTS)
            self._agent("asker", "worker", {"home": str(self.home)}, atomic=True, by_title=True)
        else:
            yard.settings.setdefault("dod", [DONE])
            self._agent("asker", "worker", doom, **{"plan": STEPS, "wrong": True, **conduct})
        yard.set(work={"agent": "asker"}, workflow={"suspend_seconds": 600, "wait_seconds": 1})
        yard.task(1, "Write two files", assignee="boss" if self.manages else "asker")
        yard.enable_agent_commands(1)

    def _agent(self, name: str, hierarchy: str, doom: dict[str, Any], **conduct: Any) -> None:
        command = f"echo $GENBA_ISSUE >> {self.yard.starts}; exec /usr/bin/python3 -B -m tests.fleet.doomed"
        file = {
            "name": name,
            "description": "An agent that asks what is next, and kills",
            "parameters": {"issue": {"type": "number"}},
            "runner": {
                "flow": {"mode": "stateDriven", "hierarchy": hierarchy},
                "adapter": {
                    "type": "custom",
                    "command": command,
                    "env": {"CONDUCT": json.dumps(conduct), "DEATH": json.dumps(doom)},
                },
                "limits": {"maxIterations": 3, "retryDelaySeconds": 0.01},
                "sandbox": {"kind": "worktree"},
            },
        }
        self.yard.project.write(f".agent/{name}/agent.json", json.dumps(file))
        self.yard.project.write(f".agent/{name}/prompts/system.md", "You write files, one after the other.\n")

    def start(self) -> "subprocess.Popen[bytes]":
        process = self.yard.start("--until-empty", "--json", "--workers", "3")
        result = self.home / "worker.pid.new"
        result.write_text(str(process.pid), "utf-8")
        result.rename(self.home / "worker.pid")
        return process

    def die_and_go_on(self, lives: int = 1) -> None:
        assert self.start().wait(2 * SOON) == -signal.SIGKILL, self.yard.log()
        self.check_sane()
        assert summary(self.yard.work("--workers", "3"))["ended"] == "empty"
        assert self.calls()[lives - 1 :] == (MANAGER if self.manages else WORKER)
        self.check_flow(lives)

    def calls(self) -> tuple[str, ...]:
        """What the first life of the agent of the task has called."""
        lines = [line.split() for line in (self.home / "calls.txt").read_text("utf-8").splitlines()]
        run = lines[0][0]
        return tuple(tool for of, _, tool in lines if of == run)

    @property
    def died(self) -> bool:
        return (self.home / "died").exists()

    def check_flow(self, lives: int = 1) -> None:
        yard = self.yard
        assert set(yard.statuses().values()) == {TaskStatus.DONE}, yard.statuses()
        with yard.board() as board:
            children = [board.board.get(number) for number in board.board.get(1).children]
            sessions = {number: board.sessions(number) for number in (1, *(child.number for child in children))}
            entries = board.entries(open_only=False)
            asked = board.escalations()
        assert [(child.title, child.in_plan) for child in children] == [
            (part["title"], not self.manages) for part in self.plan
        ]
        own = sessions.pop(1)
        purposes = [Purpose.MANAGE, Purpose.INTEGRATE] if self.manages else [Purpose.WORK]
        assert [(session.purpose, session.outcome) for session in own] == [(each, "completed") for each in purposes]
        assert [len(found) for found in sessions.values()] == [1 if self.manages else 0] * len(children), sessions
        assert not asked
        assert self.merges() == Counter([1]), yard.landed()
        assert all(entry.status is EntryStatus.MERGED for entry in entries), entries
        assert {f"{part['title']}.txt" for part in self.plan} <= set(yard.files())
        began = Counter(yard.started())
        assert began.pop("1") == lives, (began, self.calls())
        assert began == Counter(str(number) for number in sessions if self.manages), began
        assert self.seen <= self._reachable()
        assert len(yard.project.git("worktree", "list", "--porcelain").split("\n\n")) == 1
        assert yard.project.branches() == ["main"]
        assert yard.project.git("status", "--porcelain") == ""
        self.check_no_process()
        self._check_whole()


@pytest.mark.parametrize("steps", [WORKER, MANAGER], ids=["worker", "manager"])
def test_these_are_the_calls_of_an_undisturbed_flow(small_yard: Yard, steps: tuple[str, ...]) -> None:
    flow = Flow(small_yard, steps)

    small_yard.work("--workers", "3")

    assert flow.calls() == steps
    flow.check_flow()


def moments(steps: tuple[str, ...], when: tuple[str, ...] = WHEN) -> list[Death]:
    return [(call, each) for call in range(1, len(steps) + 1) for each in when]


def on_each(deaths: list[Death]) -> list[tuple[str, Death]]:
    """The database and the death: on PostgreSQL those of every third call."""
    return [*(("sqlite", death) for death in deaths), *(("postgres", death) for death in deaths if death[0] % 3 == 0)]


def held(steps: tuple[str, ...]) -> list[tuple[str, Death]]:
    """Who holds or is the agent, and the death. What the agent was answered is lost with it."""
    kinds = ("before", "after")
    last = (len(steps), "before")
    agents = moments(steps, kinds)
    supervisors = list(dict.fromkeys([last, *moments(steps, kinds)[2::5]]))
    return [*(("agent", death) for death in agents), *(("supervisor", death) for death in supervisors)]


def has_result(steps: tuple[str, ...], death: Death) -> bool:
    return death[0] > steps.index("report_completed") + (death[1] == "before")


def named(value: object) -> str:
    return f"{value[1]}-{value[0]}" if isinstance(value, tuple) else str(value)


@pytest.mark.parametrize(("yard", "death"), on_each(moments(WORKER)), indirect=["yard"], ids=named)
def test_a_worker_goes_on_whenever_the_one_who_serves_it_is_killed(yard: Yard, death: Death) -> None:
    flow = Flow(yard, WORKER, death, "worker")
    flow.die_and_go_on(lives=2 if death == TOKEN_LOST else 1)


@pytest.mark.parametrize(("yard", "death"), on_each(moments(MANAGER)), indirect=["yard"], ids=named)
def test_a_manager_goes_on_whenever_the_one_who_serves_it_is_killed(yard: Yard, death: Death) -> None:
    flow = Flow(yard, MANAGER, death, "worker")
    flow.die_and_go_on(lives=2 if death == TOKEN_LOST else 1)


@pytest.mark.parametrize(("whom", "death"), held(WORKER), ids=named)
def test_a_worker_that_is_killed_is_gone_on_from(small_yard: Yard, whom: str, death: Death) -> None:
    flow = Flow(small_yard, WORKER, death, whom)
    small_yard.work("--workers", "3")
    assert flow.died
    flow.check_flow(lives=1 if has_result(WORKER, death) else 2)


@pytest.mark.parametrize(("whom", "death"), held(MANAGER), ids=named)
def test_a_manager_that_is_killed_is_gone_on_from(small_yard: Yard, whom: str, death: Death) -> None:
    flow = Flow(small_yard, MANAGER, death, whom)
    small_yard.work("--workers", "3")
    assert flow.died
    flow.check_flow(lives=1 if has_result(MANAGER, death) else 2)


@pytest.mark.parametrize("claim", ["step", "task"])
def test_a_claim_is_verified_once_more_when_the_one_who_verified_it_is_killed(small_yard: Yard, claim: str) -> None:
    yard = small_yard
    home = yard.project.root.parent
    once = f"mkdir {home}/died 2> /dev/null && kill -9 $(cat {home}/worker.pid)"
    first, second = STEPS
    if claim == "step":
        first = {**first, "goals": [{"type": "custom_script", "script": f"{once}; grep -qx right first.txt"}]}
    else:
        yard.settings["dod"] = [{"custom_script": f"{once}; {DONE['custom_script']}"}]
    yard.settings["verification"] = {"sandbox": False}
    flow = Flow(yard, WORKER, plan=[first, second])

    flow.die_and_go_on()


class Guest(Asker):
    def __init__(self, yard: Yard, when: str) -> None:
        self.yard = yard
        self.when = when
        self.welcome = yard.genba("agent", "register", "visitor", "--json").json
        self.held = socket.socket()
        """Keeps the port for the servers, and never listens."""
        self.held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.held.bind(("127.0.0.1", 0))
        self.port = self.held.getsockname()[1]
        super().__init__({"plan": STEPS, "wrong": True}, f"http://127.0.0.1:{self.port}/mcp", "")
        self.tree = Path()
        self.told: list[str] = []
        self.server = self.serve()

    def serve(self) -> "subprocess.Popen[bytes]":
        return self.yard.begin("mcp", "--http", "--port", str(self.port))

    def authenticate(self) -> None:
        agent, project = self.welcome["agent"]["id"], self.welcome["project_id"]
        connected = self.call("authenticate", agent_id=agent, passkey=self.welcome["passkey"], project_id=project)
        self.token = connected["session_token"]

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        self.told.append(tool)
        if self.when == "before":
            self.again()
            return super().call(tool, **arguments)
        super().call(tool, **arguments)  # the answer is lost
        self.again()
        return super().call(tool, **arguments)

    def again(self) -> None:
        """The server is killed, and another answers at the same place."""
        self.yard.kill(self.server)
        self.server = self.serve()

    def do_get_task(self, _action: dict[str, Any], _subtask: dict[str, Any] | None) -> None:
        self.tree = Path(self.call("get_my_task")["path"])

    def write(self, name: str, text: str) -> None:
        (self.tree / name).write_text(f"{text}\n", "utf-8")
        self.yard.project.git("add", "-A", cwd=self.tree)
        self.yard.project.git("commit", "-q", "--allow-empty", "-m", f"Write {name}", cwd=self.tree)


@pytest.mark.parametrize("when", ["before", "lost"])
def test_an_external_agent_goes_on_though_its_server_is_killed_at_each_of_its_calls(
    small_yard: Yard, when: str
) -> None:
    yard = small_yard
    yard.agent()
    yard.settings["dod"] = [DONE]
    yard.set(verification={"sandbox": False})
    yard.task(1, "Write two files")
    yard.enable_agent_commands(1)
    external_agent = Guest(yard, when)

    assert external_agent.live() == 0
    yard.kill(external_agent.server)
    external_agent.held.close()

    assert tuple(external_agent.told) == WORKER
    assert yard.look(1).status is TaskStatus.REVIEW
    yard.work()
    assert set(yard.statuses().values()) == {TaskStatus.DONE}
    with yard.board() as board:
        children = [board.board.get(number) for number in board.board.get(1).children]
        (session,) = board.sessions(1)
    assert [child.title for child in children] == [step["title"] for step in STEPS]
    assert session.outcome == "completed"
    assert {"first.txt", "second.txt"} <= set(yard.files())
    assert [line for line in yard.landed() if line.startswith("Merge")] == [yard.landed()[-1]]
    assert yard.started() == []


def test_a_worker_whose_task_is_paused_is_sent_home_and_goes_on_when_it_is_resumed(yard: Yard) -> None:
    go = yard.project.root.parent / "go"
    flow = Flow(yard, WORKER, wait={"execute_subtask": str(go)})
    process = flow.start()
    until(Path(f"{go}.waiting").exists, SOON)

    yard.genba("pause", "1")
    go.touch()

    assert process.wait(2 * SOON) == 1, yard.log()
    assert not yard.left_running()
    with yard.board() as board:
        (suspended,) = board.sessions(1)
        assert not board.escalations()
    assert suspended.waits_for is WaitsFor.RESUME, suspended

    yard.genba("resume", "1")
    yard.work("--workers", "3")
    with yard.board() as board:
        (same,) = board.sessions(1)
    assert (same.run, same.attempt) == (suspended.run, 1)
    flow.check_flow(lives=2)
