"""A look that goes on from the last one sees what a look that knows nothing would see, whatever happened in between."""

import random
import subprocess
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from genba.application.facilitator.facilitator import facilitator
from genba.blackboard.database.sanitize import now as written_now
from genba.blackboard.database.store import Statement
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.triage.triage_board import BoardRecords, FieldBoard, Keeps
from genba.coordination.facilitator.facilitator import Facilitator, Scope, TriageResult
from genba.domain.errors import GenbaError
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.session import SessionEnd, SessionStart
from genba.domain.tasks.task import Actor, ActorKind, Priority, StatusChange, TaskDraft, TaskEdit, TaskStatus
from genba.domain.timestamps import format_time
from genba.wiring.project.project_context import ProjectContext
from tests.project import Project

PERSON = Actor(ActorKind.HUMAN, "kim")
STEPS = 14
LABELS = ("blocked", "wip", "done", "enhancement")


class NeverLooked(FieldBoard):
    def before(self) -> tuple[dict[str, str], frozenset[str]]:
        return {}, super().before()[1]

    def read(self, named: Iterable[int] | None = None, branches: Iterable[str] = ()) -> BoardRecords:
        assert (named, branches) == (None, ())
        ground = super().read()
        forgotten = {number: msgspec.structs.replace(kept, stamp="") for number, kept in ground.kept.items()}
        return msgspec.structs.replace(ground, positions={}, kept=forgotten)

    def keep(self, found: Keeps) -> None:
        assert found.full


class World:
    """A repository and a blackboard in which anything may happen."""

    def __init__(self, project: Project, board: Blackboard, seed: int) -> None:
        self.project, self.board = project, board
        self.dice = random.Random(seed)
        self.at = datetime.now(UTC)
        self.runs: list[str] = []
        self.files = 0
        self.issues = 0
        self.told: list[str] = []

    def now(self) -> str:
        return format_time(self.at)

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.project.root, capture_output=True, text=True, check=False)
        if done.returncode:
            subprocess.run(["git", "reset", "-q", "--hard"], cwd=self.project.root, check=True)
        return done.stdout

    def any(self) -> int:
        """An issue; now and then one that is not there yet."""
        return self.dice.randint(1, self.issues + 1)

    def happen(self) -> None:
        effects = [name for name in dir(self) if name.startswith("do_")]
        deed = self.dice.choice(effects)
        self.told.append(deed)
        try:
            getattr(self, deed)()
        except GenbaError as error:  # not everything may be done at any time
            self.told.append(error.message)

    def commit(self, message: str) -> None:
        self.files += 1
        self.project.write(f"file-{self.files}", f"{self.files}\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    # ── git ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def do_land(self) -> None:
        number = self.any()
        ways = (
            f"Work\n\nIssue: {number}\nAgent: iterator\nSession: {self.dice.choice(self.runs or ['r'])}",
            f"Work\n\nIssue: {number}",
            f"Work\n\nCloses #{number}, see #{self.any()}",
            f"Work (#{number})",
            "Work on nothing",
        )
        self.commit(self.dice.choice(ways))

    do_land_more = do_land

    def do_begin_a_branch(self) -> None:
        number = self.any()
        self.git("switch", "-q", "-C", f"{number}-work")
        self.commit(self.dice.choice(("Begin", f"Begin\n\nIssue: {self.any()}")))
        self.git("switch", "-q", "main")

    def branches(self) -> list[str]:
        return [each for each in self.git("branch", "--format=%(refname:short)").split() if each != "main"]

    def do_merge(self) -> None:
        for branch in self.branches()[:1]:
            how = self.dice.choice((("--no-ff",), ("--squash",)))
            self.git("merge", "-q", *how, branch, "-m", f"Merge branch '{branch}'")
            self.git("commit", "-q", "-m", f"All of {branch}")

    def do_delete_a_branch(self) -> None:
        for branch in self.branches()[:1]:
            self.git("branch", "-q", "-D", branch)

    def do_revert(self) -> None:
        commits = self.git("log", "--format=%H", "-8", "main").split()
        self.git("revert", "--no-edit", *(("-m", "1") if self.dice.random() < 0.2 else ()), self.dice.choice(commits))

    def do_rewrite(self) -> None:
        if len(self.git("log", "--format=%H", "-3", "main").split()) == 3:
            self.git("reset", "-q", "--hard", "HEAD~1")

    # ── the blackboard ───────────────────────────────────────────────────────────────────────────────────────────────

    def do_add(self) -> None:
        self.issues += 1
        parent = self.dice.choice((None, None, self.any()))
        draft = TaskDraft(title=f"Part {self.issues}", number=self.issues)
        try:
            self.board.add(msgspec.structs.replace(draft, parent=parent), PERSON)
        except GenbaError:
            self.board.add(draft, PERSON)

    def do_label(self) -> None:
        label = self.dice.choice(LABELS)
        change = self.dice.choice((TaskEdit(add_labels=(label,)), TaskEdit(remove_labels=(label,))))
        self.board.edit(self.any(), change, PERSON)

    def do_edit(self) -> None:
        edit = TaskEdit(title=f"Title {self.dice.random():.3f}", priority=self.dice.choice(list(Priority)))
        self.board.edit(self.any(), edit, PERSON)

    def do_end(self) -> None:
        """As the gateway would, after a verification that passed."""
        self._set("done")

    do_end_more = do_end

    def do_bring_forward(self) -> None:
        self._set(self.dice.choice(("review", "in_progress", "open")))

    def _set(self, status: str) -> None:
        change = Statement(
            "UPDATE tasks SET status = :status, blocker_kind = NULL, updated_at = :at, version = version + 1 "
            "WHERE number = :number AND project_id = :project"
        )
        self.board.store.write(
            lambda tx: tx.do(change, status=status, at=written_now(), number=self.any(), project=tx.project)
        )

    def do_change_status(self) -> None:
        to = self.dice.choice((TaskStatus.CANCELLED, TaskStatus.OPEN, TaskStatus.IN_PROGRESS, TaskStatus.OPEN))
        self.board.change_status(self.any(), StatusChange(to=to, actor=PERSON, reason="so it is"))

    def do_depend(self) -> None:
        self.board.depend(self.any(), self.any(), PERSON)

    def do_undepend(self) -> None:
        for task in self.board.find():
            for other in task.dependencies[:1]:
                self.board.undepend(task.number, other, PERSON)
                return

    def do_comment(self) -> None:
        self.board.comment(self.any(), "Something is to be said", PERSON)

    def do_begin_a_session(self) -> None:
        number = self.any()
        run = f"iterator-{number}-{len(self.runs)}"
        start = SessionStart(run=run, agent="iterator", branch=f"genba/{number}-x", base="main", workdir="")
        self.board.begin_session(number, start)
        self.runs.append(run)

    def do_end_a_session(self) -> None:
        if self.runs:
            outcome = self.dice.choice(list(Outcome))
            self.board.end_session(SessionEnd(run=self.dice.choice(self.runs), outcome=outcome, reason="so it ended"))

    def do_let_time_pass(self) -> None:
        self.at += timedelta(hours=self.dice.choice((1, 5, 30, 100, 400)))


def told(look: TriageResult) -> dict[str, Any]:
    """All that a report says, but for what changed."""
    report: dict[str, Any] = msgspec.to_builtins(look.report)
    for each in report["assessments"]:
        del each["changed"]
    return report


def differences(one: TriageResult, other: TriageResult) -> list[Any]:
    here, there = told(one), told(other)
    lists = ("assessments", "actions", "orphaned", "health")
    rest = [{name: (here[name], there[name])} for name in here if name not in lists and here[name] != there[name]]
    seen = [("seen", each) for name in lists for each in here[name] if each not in there[name]]
    not_seen = [("not seen", each) for name in lists for each in there[name] if each not in here[name]]
    return [*seen, *not_seen, *rest]


@pytest.fixture
def board(project: Project) -> Iterator[Blackboard]:
    project.write(".gitignore", "/.genba/\n")
    project.commit("Leave the blackboard out")
    with project.board() as board:
        yield board


@pytest.mark.parametrize("seed", range(10))
async def test_whatever_happened_it_is_seen(project: Project, board: Blackboard, seed: int) -> None:
    world = World(project, board, seed)
    for _ in range(5):
        world.do_add()
    context = await ProjectContext.find(Path(project.root))
    try:
        for step in range(STEPS):
            for _ in range(world.dice.choice((1, 1, 2, 4)) if step else 0):
                world.happen()
            who = await facilitator(context)
            going_on = Facilitator(who.board, who.repository, who.settings, world.now)
            look = await going_on.look()
            fresh = Facilitator(
                NeverLooked(context.board()), (await facilitator(context)).repository, who.settings, world.now
            )
            assert differences(look, await fresh.look()) == [], world.told
            if world.dice.random() < 0.3:
                world.told.append("apply")
                await going_on.apply(look)
            if world.dice.random() < 0.2:
                scope = Scope(label=world.dice.choice(LABELS))
                assert differences(await going_on.look(scope), await fresh.look(scope)) == [], world.told
    finally:
        context.close()


def test_what_rests_is_shown_and_counted_like_the_others(project: Project) -> None:
    for number, title in enumerate(("Add a page", "Fix the parser", "Write docs"), 1):
        project.issue(number, title, state="closed" if number == 2 else "open")
    project.genba("task", "depend", "3", "--on", "2", check=0)
    project.sql("DELETE FROM events")  # long ago
    for words in (("status",), ("facilitate",), ("facilitate", "--graph")):
        project.sql("DELETE FROM field_issues; DELETE FROM field_positions")
        fresh, again = (project.genba(*words).out.replace("  changed", "") for _ in range(2))
        assert (fresh, "2" in fresh) == (again, True)
