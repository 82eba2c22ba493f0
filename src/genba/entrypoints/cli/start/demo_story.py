"""The result of a demo, counted from git and the blackboard, never from an agent's reply."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from genba.application.verification import verify_target
from genba.domain.events import GoalChecked, ReplyReceived, VerificationFinished
from genba.domain.fleet.progress import command_for
from genba.domain.fleet.records import EntryStatus, EscalationKind, FleetSession, MergeEntry
from genba.domain.goals.goal import TestsPass
from genba.domain.sessions.evidence import CheckStatus
from genba.domain.tasks.task import Task, TaskStatus
from genba.wiring import ProjectContext
from genba.wiring.project.demo_repository import git_lines

if TYPE_CHECKING:
    from genba.blackboard.fleet.fleet_board import FleetBoard

_QUESTION = "waits"


class Attempted(msgspec.Struct, frozen=True, kw_only=True):
    """One session, and what became of it."""

    run: str
    agent: str
    status: str
    """done | rejected | waits | open"""
    iterations: int
    claim: str = ""
    """The last words of its agent."""
    failed_goals: tuple[str, ...] = ()
    failed_on: str = ""
    """The commit that the goals failed on, where it was rejected."""


class TaskStory(msgspec.Struct, frozen=True, kw_only=True):
    """One issue, from its beginning to where it stands."""

    task: int
    title: str
    status: str
    attempts: tuple[Attempted, ...] = ()
    goals_passed: int = 0
    goals: int = 0
    merged: str = ""
    conflicts_with: tuple[int, ...] = ()
    conflict_paths: tuple[str, ...] = ()
    rounds: int = 0
    """How often it went through the merge queue."""
    question: str = ""
    """What only a person can decide."""
    command: str = ""
    """What that person types."""


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """The whole of it."""

    folder: str
    tasks: tuple[TaskStory, ...]
    sessions: int
    false_done: int
    """Tasks that are called done, and whose commit is not on the branch or not green."""
    commits_lost: int
    """Commits of agents that no ref leads to any more."""
    commits: int
    """On the branch, one after the other."""
    green: int
    """Those of them on which the tests pass, each run again in a checkout of its own."""

    @property
    def holds(self) -> bool:
        """Whether it went as it should: all that could be done is done, and nothing of it is false."""
        settled = all(each.status in (TaskStatus.DONE, _QUESTION) for each in self.tasks)
        return settled and not self.false_done and not self.commits_lost and self.green == self.commits > 0


async def gather(context: ProjectContext, branch: str) -> Story:
    """Look at everything again."""
    from genba.blackboard.fleet.fleet_board import FleetBoard  # noqa: PLC0415  (the blackboard is opened by now)

    board = FleetBoard(context.board())
    home = context.layout.main
    line = git_lines(home, "rev-list", "--first-parent", "--reverse", branch)
    green = [commit for commit in line if await _is_green(context, commit)]
    entries = board.entries(open_only=False)
    tasks = sorted(board.board.find(), key=lambda task: task.number)
    lines = tuple(_story_of(context, board, task, entries) for task in tasks)
    sessions = [session for task in tasks for session in board.sessions(task.number)]
    landed = {each.task: each.landed for each in entries if each.status is EntryStatus.MERGED}
    done = [task.number for task in tasks if task.status is TaskStatus.DONE]
    return Story(
        folder=str(home),
        tasks=lines,
        sessions=len(sessions),
        false_done=sum(landed.get(number, "") not in green for number in done),
        commits_lost=len(_lost(home, sessions, entries)),
        commits=len(line),
        green=len(green),
    )


async def _is_green(context: ProjectContext, commit: str) -> bool:
    """Whether the tests pass on a commit: they run again in the same sandbox, in a clean checkout of it."""
    found = await verify_target.resolve(context, commit, None, (), needs_commit=True)
    tests = tuple(frozen for frozen in found.policy.goals if isinstance(frozen.goal, TestsPass))
    only = msgspec.structs.replace(found, policy=msgspec.structs.replace(found.policy, goals=tests))
    seen = await verify_target.verify(context, only, fresh=True, on_goal=lambda _result: None)
    return bool(seen.results) and all(each.result.status is CheckStatus.PASSED for each in seen.results)


def _lost(home: Path, sessions: Sequence[FleetSession], entries: Sequence[MergeEntry]) -> set[str]:
    """Commits that are in git without a ref to them, and those that the blackboard knows and git does not."""
    loose = git_lines(home, "fsck", "--unreachable", "--no-reflogs", "--no-progress")
    found = {line.split()[-1] for line in loose if line.startswith("unreachable commit")}
    named = {session.verified for session in sessions} | {entry.commit for entry in entries}
    return found | (named - {""} - set(git_lines(home, "rev-list", "--all")))


def _story_of(context: ProjectContext, board: "FleetBoard", task: Task, entries: Sequence[MergeEntry]) -> TaskStory:
    own = [entry for entry in entries if entry.task == task.number]
    landed = next((entry for entry in own if entry.status is EntryStatus.MERGED), None)
    conflict = next((entry for entry in own if entry.status is EntryStatus.CONFLICT), None)
    last = board.board.last_verification(task.number)
    results = last.results if last is not None else ()
    asked = next((each for each in board.escalations() if each.task == task.number), None)
    is_question = asked is not None and asked.kind is EscalationKind.QUESTION
    status = _QUESTION if is_question else str(task.status)
    return TaskStory(
        task=task.number,
        title=task.title,
        status=status,
        attempts=tuple(_attempted(context, session, status) for session in board.sessions(task.number)),
        goals_passed=sum(each.result.status is CheckStatus.PASSED for each in results),
        goals=len(results),
        merged=landed.landed if landed is not None else "",
        conflicts_with=_rivals(context.layout.main, conflict, entries) if conflict is not None else (),
        conflict_paths=conflict.paths if conflict is not None else (),
        rounds=max((entry.round for entry in own), default=0),
        question=asked.question if asked is not None else "",
        command=command_for(asked.kind, task.number) if asked is not None else "",
    )


def _attempted(context: ProjectContext, session: FleetSession, status: str) -> Attempted:
    output, commit = "", ""
    failed: list[str] = []
    goals: list[str] = []
    for event in context.ports.journals.read(context.find_journal(session.run)):
        match event:
            case ReplyReceived(text=text):
                output = text
            case GoalChecked(goal=goal, result=result) if result.status is not CheckStatus.PASSED:
                goals.append(goal)
            case VerificationFinished(status="done"):
                goals, failed, commit = [], [], ""
            case VerificationFinished(commit=looked_at):
                goals, failed, commit = [], goals, looked_at
    vain = session.status == "ended" and session.outcome != "completed"
    return Attempted(
        run=session.run,
        agent=session.agent,
        status="rejected" if vain else status,
        iterations=session.iterations,
        claim=output,
        failed_goals=tuple(dict.fromkeys(failed)),
        failed_on=commit,
    )


def _rivals(home: Path, conflict: MergeEntry, entries: Sequence[MergeEntry]) -> tuple[int, ...]:
    """The tasks whose landed work has changed the paths in conflict since the branch began."""
    fork = git_lines(home, "merge-base", conflict.commit, conflict.over)
    if not fork:
        return ()
    words = ("rev-list", "--first-parent", f"{fork[0]}..{conflict.over}", "--", *conflict.paths)
    changed = set(git_lines(home, *words))
    return tuple(sorted({entry.task for entry in entries if entry.landed and entry.landed in changed}))
