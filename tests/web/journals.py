"""Journals as runs would have written them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from genba.domain import events as report
from genba.domain.sessions.evidence import CheckResult, CheckStatus, Commit
from genba.domain.sessions.replies import Usage
from genba.domain.sessions.workspaces import Workspace
from tests.web.serving import Dashboard

RUN = "worker-20260101-000000-abcdef"
AT = "2026-01-01T00:00:00.000Z"
_PLACE = Workspace(run=RUN, path="/x", git_dir="/x", branch="genba/tea", base_branch="main", base="", isolated=True)


def begun(issue: int | None = None) -> report.RunStarted:
    return report.RunStarted(
        time=AT, run=RUN, agent="worker", issue=issue, adapter="scripted", model="sonnet", definition="",
        workspace=_PLACE, title="Make tea", limits={"maxIterations": 20, "costUsd": 5.0}, process=1,
        sandbox="worktree",
    )  # fmt: skip


def turn(number: int, prompt: str = "Make tea.", reply: str = "Done.") -> list[report.Event]:
    """One iteration, as a journal tells it."""
    usage = Usage(1000, 200, 0.5)
    where: dict[str, Any] = {"time": AT, "run": RUN, "agent": "worker", "step": "work", "iteration": number}
    return [
        report.IterationStarted(**where, model="sonnet", prompt_from="prompts/work.md", prompt=prompt),
        report.ToolUsed(**where, tool="Edit", target="tea.py"),
        report.AgentOutput(**where, stream="stdout", text=f"output of {number}"),
        report.EgressUsed(**where, port="network", verdict="denied", target="evil.example:443"),
        report.ReplyReceived(**where, text=reply, usage=usage),
        report.IterationFinished(
            **where, intent="next", verdict="complete", reason="it holds", usage=usage, seconds=2.0,
            commits=tuple(Commit(str(each), "x") for each in range(number)), files=2, state={},
        ),
        report.GoalChecked(
            time=AT, goal="tests_pass", level="dod", result=CheckResult("tests_pass", CheckStatus.FAILED, "cold")
        ),
        report.VerificationFinished(time=AT, status="rejected", commit="3f9c2ab0", reason="goals_not_met"),
    ]  # fmt: skip


def journal(served: Dashboard, found: Iterable[report.Event], run: str = RUN) -> Path:
    """The journal of a run, as it would have written it."""
    folder = served.site.queries.context.layout.run_folder(run)
    folder.mkdir(parents=True, exist_ok=True)
    path = served.project.root.parent / f"{run}.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in found))
    (folder / "journal").write_text(str(path), "utf-8")
    return path
