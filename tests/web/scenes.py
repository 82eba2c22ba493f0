"""What the pages of tasks, runs and approvals are shown with: agents that wait, work that fails, questions."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from genba.domain.fleet.records import Escalation, EscalationKind, SegmentEnd, SegmentOrder, WaitsFor
from genba.domain.goals.goal import CustomScript
from genba.domain.tasks.task import Blocker, BlockerKind
from tests.project import Project, until
from tests.web.serving import Dashboard

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{7*7}}"
KEEPS: dict[str, Any] = {
    "parameters": {"issue": {"type": "number"}},
    "integrations": {"github": {"enabled": True}},
}
"""What an agent says that works on issues."""
FAILS = CustomScript(script="echo the tea is cold; exit 3")
_CSRF = re.compile(r'data-csrf="([0-9a-f]+)"')


def posted(client: httpx.Client, path: str, **given: str) -> httpx.Response:
    """A form of a page, sent by a browser without a script."""
    found = _CSRF.search(client.get("/board").text)
    assert found
    return client.post(path, data={"csrf": found.group(1), **given})


def waiting_agent(project: Project, name: str = "worker", **more: Any) -> Path:
    """An agent that says something, waits for a file, says more, and commits. Returns the file."""
    gate = project.root.parent / f"go-{name}"
    line = f"echo warming the pot; while [ ! -e {gate} ]; do sleep 0.05; done; echo pouring"
    work = f"{line}; echo tea > tea.txt; git add -A; git commit -qm 'Make tea'"
    turns = {"turns": [{"do": [{"run": work}], "reply": "The tea is ready."}], "repeat": True}
    project.agent(name, script=turns, **{**KEEPS, **more})
    return gate


def failing_run(project: Project, number: int = 1) -> str:
    """A run whose work does not reach the goal of its task; returns its name."""
    project.agent("worker", **KEEPS)
    project.issue(number, "Make tea", goals=(FAILS,))
    project.run("worker", "--issue", str(number), check=None)
    with project.board() as board:
        return board.newest_session(number).run


def asked(served: Dashboard, number: int = 1, question: str = "Which pot?") -> str:
    """A session of a fleet that waits for an answer, and its task with it; returns the run."""
    run = f"worker-{number}-1-abcdef"
    order = SegmentOrder(run=run, task=number, agent="worker", attempt=1)
    served.board.start(order, executor="laptop", base_branch="main")
    served.board.end_part(SegmentEnd(run=run, part=1, waits_for=WaitsFor.ANSWER, reason=question, cost_usd=0.25))
    escalation = Escalation(
        task=number, kind=EscalationKind.QUESTION, question=question, run=run, evidence={"options": ["blue", "red"]}
    )
    served.board.escalate(escalation, Blocker(BlockerKind.NEEDS_INPUT, question))
    return run


@contextlib.contextmanager
def opened(gate: Path) -> Iterator[None]:
    try:
        yield
    finally:
        gate.touch()


def settled(served: Dashboard, number: int) -> None:
    until(lambda: all(each.status == "ended" for each in served.board.sessions(number)), 60)
