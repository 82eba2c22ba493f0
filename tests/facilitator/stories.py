"""A repository, a tracker and a blackboard in which something happened to an issue, and what is seen of it."""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from genba.blackboard.triage.triage_board import BoardRecords, Ended, SessionSeen, TaskSeen
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.scanning.issue_scan import GitScan
from genba.coordination.facilitator.issue_facts import Reverts, ScanInputs, facts_of, recorded_facts, together
from genba.domain.facilitation import IssueFacts
from genba.domain.timestamps import format_time
from genba.domain.tracker.remote import (
    PullRequestState,
    RemoteCheck,
    RemoteReview,
    ReviewVerdict,
    TrackedIssue,
    TrackedPullRequest,
)

BEGIN = datetime(2026, 1, 5, 8, tzinfo=UTC)
HEADS = "refs/heads/"


class History:
    def __init__(self, root: Path, template: Path) -> None:
        self.root = root
        shutil.copytree(template, root)
        self.hours = 0
        self.tips: dict[str, str] = {}
        self._files: dict[str, dict[str, str]] = {}
        self._marks: dict[str, str] = {}
        self._git = subprocess.Popen(
            ["git", "fast-import", "--quiet", "--force", "--cat-blob-fd=1"],
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.commit("Begin", files={"README.md": "A shop\n"})

    @property
    def time(self) -> str:
        return format_time(BEGIN + timedelta(hours=self.hours))

    def commit(
        self,
        message: str,
        *,
        on: str = "main",
        files: Mapping[str, str] | None = None,
        merge: str = "",
        ref: str = HEADS,
    ) -> str:
        """A commit on a branch, which begins at main; with a merge, all that the other branch has comes along."""
        self.hours += 1
        before = self.tips.get(on) or self.tips.get("main", "")
        there = dict(self._files.get(before, {}))
        if merge:
            there |= self._files[self.tips.get(merge, merge)]
        there |= files if files is not None else {f"file-{self.hours}.txt": f"{self.hours}\n"}
        return self._write(message, on, there, [before, self.tips.get(merge, merge) if merge else ""], ref)

    def squash(self, branch: str, message: str, **options: Any) -> str:
        """All that a branch has, as one commit of main."""
        brought = self._files[self.tips[branch]]
        before = self._files[self.tips["main"]]
        new = {path: text for path, text in brought.items() if before.get(path) != text}
        return self.commit(message, files={**new, **options.pop("files", {})}, **options)

    def revert(self, sha: str, *, to: str = "", message: str = "", on: str = "main") -> str:
        """A commit that takes another one back; the tree is that of `to`, else of what was before it."""
        self.hours += 1
        before = self.tips[on]
        text = message or f'Revert "it"\n\nThis reverts commit {sha}.\n'
        back = self._files[to] if to else dict(self._files[before])
        if not to:
            back.pop(next(reversed(back)), None)
        return self._write(text, on, dict(back), [before, ""], HEADS)

    def branch(self, name: str, at: str = "main") -> None:
        self.tips[name] = self.tips.get(at, at)
        self._say(f"reset {HEADS}{name}\nfrom {self._marks[self.tips[name]]}\n\n")

    def delete(self, branch: str) -> None:
        del self.tips[branch]
        self._say(f"reset {HEADS}{branch}\nfrom {'0' * 40}\n\n")

    def _write(self, message: str, on: str, files: Mapping[str, str], parents: list[str], ref: str) -> str:
        seconds = int((BEGIN + timedelta(hours=self.hours)).timestamp())
        lines = [f"commit {ref}{on}", f"mark :{self.hours}", f"committer Dev <dev@localhost> {seconds} +0000"]
        lines += [f"data {len(message.encode())}", message]
        first, second = parents
        lines += [f"from {self._marks[first]}"] if first else []
        lines += [f"merge {self._marks[second]}"] if second else []
        lines.append("deleteall")
        for path, text in files.items():
            lines += [f"M 100644 inline {path}", f"data {len(text.encode())}", text]
        self._say("\n".join(lines) + f"\n\nget-mark :{self.hours}\n")
        assert self._git.stdout is not None
        sha = self._git.stdout.readline().decode().strip()
        assert len(sha) == len("0" * 40), sha
        self.tips[on] = sha
        self._files[sha] = dict(files)
        self._marks[sha] = f":{self.hours}"
        return sha

    def _say(self, text: str) -> None:
        assert self._git.stdin is not None
        self._git.stdin.write(text.encode())
        self._git.stdin.flush()

    def end(self) -> None:
        assert self._git.stdin is not None
        assert self._git.stdout is not None
        self._git.stdin.close()
        self._git.stdout.close()
        assert self._git.wait() == 0


def _task(number: int, status: str, title: str) -> TaskSeen:
    return TaskSeen(
        id=number,
        number=number,
        title=title,
        body="",
        status=status,
        priority="medium",
        labels=(),
        parent=None,
        assignee="",
        requires_review=False,
        reviewer_type="human",
        blocker_kind="",
        blocker_reason="",
        tracker="",
        created_at=format_time(BEGIN),
        updated_at=format_time(BEGIN),
    )


@dataclass
class Story:
    """What happened. Issues stand on a tracker, tasks on the blackboard; one number may be both."""

    git: History
    issues: dict[int, TrackedIssue] = field(default_factory=dict)
    tasks: dict[int, TaskSeen] = field(default_factory=dict)
    dependencies: dict[int, list[int]] = field(default_factory=dict)
    sessions: dict[int, list[SessionSeen]] = field(default_factory=dict)
    requests: list[tuple[int | None, TrackedPullRequest]] = field(default_factory=list)
    verdicts: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    approved: dict[int, str] = field(default_factory=dict)
    reopened: dict[int, str] = field(default_factory=dict)
    questions: dict[int, tuple[str, str]] = field(default_factory=dict)
    alive: set[str] = field(default_factory=set)
    horizon: str = ""

    def issue(self, number: int = 12, **told: Any) -> None:
        given: dict[str, Any] = {"title": "Add login", "created_at": format_time(BEGIN), "detailed": True, **told}
        self.issues[number] = TrackedIssue(number=number, reference=f"I_{number}", **given)

    def task(self, number: int = 12, status: str = "open", *, after: tuple[int, ...] = (), **told: Any) -> None:
        made = _task(number, status, "Add login")
        for name, value in told.items():
            setattr(made, name, value)
        self.tasks[number] = made
        self.dependencies[number] = list(after)

    def session(self, run: str = "iterator-12-1", number: int = 12, *, alive: bool = False, **told: Any) -> None:
        given: dict[str, Any] = {
            "agent": "iterator",
            "status": "running",
            "waits_for": "",
            "outcome": "",
            "reason": "",
            "branch": "genba/12-add-login",
            "verified": "",
            "started_at": self.git.time,
            "heartbeat_at": self.git.time,
            "executor": "",
            "host": "",
            "purpose": "work",
            "connected": False,
            **told,
        }
        self.sessions.setdefault(number, []).append(SessionSeen(run=run, **given))
        if alive:
            self.alive.add(run)

    def request(self, number: int = 31, *, closes: tuple[int, ...] = (12,), **told: Any) -> None:
        given: dict[str, Any] = {"branch": "12-login", "target": "main", "mergeable": "mergeable", **told}
        given.setdefault("commit", self.git.tips.get(str(given["branch"]), ""))
        if given.get("state") is PullRequestState.MERGED:
            given.setdefault("merged_at", self.git.time)
        self.requests.append(
            (
                None,
                TrackedPullRequest(number=number, reference=f"PR_{number}", url="", closes=closes, **given),
            )
        )

    async def facts(self) -> dict[int, IssueFacts]:
        """All of it, as the facilitator grasps it: git is asked, the rest is at hand."""
        self.git.end()
        layout = await RepositoryLayout.find(self.git.root)
        scanned = await GitScan(layout).scan("main")
        ground = BoardRecords(
            tasks=self.tasks,
            dependencies=self.dependencies,
            sessions=self.sessions,
            verdicts=self.verdicts,
            approved=self.approved,
            reopened=self.reopened,
            happened={},
            newest_event=0,
            questions=self.questions,
            issues={
                number: (number if number in self.tasks else None, True, issue) for number, issue in self.issues.items()
            },
            requests=self.requests,
            ends={},
            kept={},
            ended=Ended(),
            positions={},
            tracker_read_at="",
        )
        sight = ScanInputs(
            scanned=scanned,
            reverts=Reverts.read("", scanned),
            alive=lambda session: session.run in self.alive,
            horizon=self.horizon,
        )
        return facts_of(ground, recorded_facts(ground), together(scanned), sight)


def review(verdict: ReviewVerdict, author: str = "kim", commit: str = "") -> RemoteReview:
    return RemoteReview(id=f"R_{author}", author=author, verdict=verdict, commit=commit)


def check(name: str, state: str) -> RemoteCheck:
    return RemoteCheck(name=name, state=state)
