"""No sequence of calls reaches a state that the laws forbid.

A small model knows the laws by itself, without SQL and without the gateway: it says of every call whether it may
succeed and what it changes. After each call the blackboard must look like the model, and its events must tell the same
story.
"""

import itertools
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from genba.blackboard.tasks.board import Blackboard
from genba.domain.errors import GenbaError
from genba.domain.goals.verification import VerdictStatus
from genba.domain.tasks.task import Actor, ActorKind, Blocker, BlockerKind, StatusChange, TaskDraft, TaskStatus
from genba.testing.conformance import a_verification
from tests.blackboard.conftest import Postgres
from tests.project import furnish

ENDED = ("done", "cancelled")
BY = {
    ("backlog", "open"): "human manager",
    ("open", "in_progress"): "orchestrator worker",
    ("in_progress", "review"): "orchestrator",
    ("in_progress", "open"): "orchestrator",
    ("in_progress", "blocked"): "orchestrator human worker manager reviewer",
    ("open", "blocked"): "orchestrator human manager",
    ("review", "done"): "orchestrator",
    ("review", "in_progress"): "reviewer orchestrator",
    ("blocked", "open"): "orchestrator human manager",
    ("done", "open"): "human",
    ("cancelled", "open"): "human",
} | {(start, "cancelled"): "human manager" for start in ("backlog", "open", "in_progress", "review", "blocked")}


class Known(msgspec.Struct):
    """What the model knows of a task."""

    status: str
    parent: int | None
    review: bool
    version: int = 1
    waits_for: set[int] = msgspec.field(default_factory=set)
    blocker: int | None = None
    verdicts: dict[str, str] = msgspec.field(default_factory=dict)
    approved: str = ""


class Model:
    def __init__(self) -> None:
        self.tasks: dict[int, Known] = {}

    def above(self, number: int) -> list[int]:
        found = []
        parent = self.tasks[number].parent
        while parent is not None:
            found.append(parent)
            parent = self.tasks[parent].parent
        return found

    def below(self, number: int) -> list[int]:
        return [other for other in self.tasks if number in self.above(other)]

    def children(self, number: int) -> list[Known]:
        return [task for task in self.tasks.values() if task.parent == number]

    def is_blocked_from_above(self, number: int) -> bool:
        return any(self.tasks[above].status == "blocked" for above in self.above(number))

    def reaches(self, start: int, goal: int, seen: set[int]) -> bool:
        """Whether a task waits for another: it depends on it, or has it as a part, by any way round."""
        if start == goal:
            return True
        seen.add(start)
        parts = [number for number, task in self.tasks.items() if task.parent == start]
        onward = [*self.tasks[start].waits_for, *parts]
        return any(self.reaches(step, goal, seen) for step in onward if step not in seen)

    def may_depend(self, number: int, on: int) -> bool:
        family = on in self.above(number) or number in self.above(on)
        return not (number == on or on in self.tasks[number].waits_for or family or self.reaches(on, number, set()))

    def may_add(self, parent: int | None, waits_for: set[int]) -> bool:
        if parent is None:
            return True
        if self.tasks[parent].status in ENDED:
            return False
        return not any(self.reaches(on, parent, set()) for on in waits_for)

    def may_be_blocked_by(self, number: int, blocker: int) -> bool:
        if blocker == number or blocker in self.above(number):
            return False
        link: int | None = blocker
        met: set[int] = set()
        while link is not None and link not in met:
            if link == number or number in self.above(link):
                return False
            met.add(link)
            link = self.tasks[link].blocker
        return True

    def may_change(self, number: int, to: str, by: str, commit: str, finalized: str, blocker: int | None) -> bool:
        task = self.tasks[number]
        if by not in BY.get((task.status, to), "").split():
            return False
        children = self.children(number)
        whole = not children or (
            all(child.status in ENDED for child in children) and any(child.status == "done" for child in children)
        )
        verified = task.verdicts.get(commit) == "done"
        match task.status, to:
            case start, "in_progress":
                ready = all(self.tasks[on].status == "done" for on in task.waits_for)
                return ready and not (start == "review" and self.is_blocked_from_above(number))
            case _, "review":
                return verified and whole
            case _, "done":
                return verified and whole and bool(finalized) and (not task.review or task.approved == commit)
            case _, "blocked":
                return blocker is None or self.may_be_blocked_by(number, blocker)
            case "blocked", "open":
                in_the_way = task.blocker is not None and self.tasks[task.blocker].status == "blocked"
                return not self.is_blocked_from_above(number) and not in_the_way
            case (("backlog" | "done" | "cancelled"), "open"):
                parent_ended = task.parent is not None and self.tasks[task.parent].status in ENDED
                return not parent_ended and not self.is_blocked_from_above(number)
        return True

    def change(self, number: int, to: str, blocker: int | None) -> None:
        task = self.tasks[number]
        start = task.status
        self._move(number, to, blocker if to == "blocked" else None)
        for other in self.below(number):
            below = self.tasks[other]
            if to == "blocked" and below.status in ("open", "in_progress"):
                self._move(other, to, number)
            elif (to == "cancelled" and below.status not in ENDED) or (
                start == "blocked" and to == "open" and below.status == "blocked" and below.blocker == number
            ):
                self._move(other, to, None)

    def _move(self, number: int, to: str, blocker: int | None) -> None:
        task = self.tasks[number]
        if task.status == "review":
            task.approved = ""
        task.status, task.blocker = to, blocker
        task.version += 1


NUMBERS = st.integers(1, 7)
COMMITS = st.sampled_from(["c1", "c2"])


class Gateway(RuleBasedStateMachine):
    """Random calls on a real blackboard, beside the model."""

    server: Postgres | None = None

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="genba-laws-")
        address = self.server.furnished() if self.server else f"{self.folder.name}/board.db"
        if not self.server:
            furnish(Path(address))
        self.board = Blackboard.open(address, "laws")
        self.model = Model()
        self.counter = itertools.count(1)

    def teardown(self) -> None:
        self.board.close()
        self.folder.cleanup()

    def _try(self, allowed: bool, act: Any) -> bool:
        refusal = ""
        try:
            act()
        except GenbaError as error:
            refusal = error.message
        assert allowed == (not refusal), refusal or "done, and should have been refused"
        return allowed

    def _known(self, number: int) -> int:
        """One of the tasks that are there."""
        return (number - 1) % len(self.model.tasks) + 1

    @initialize()
    def begin(self) -> None:
        for parent in (None, 1, 2, None):
            self.add(parent or 0, set(), False, False)

    @rule(parent=st.integers(0, 7), on=st.sets(NUMBERS, max_size=1), review=st.booleans(), later=st.booleans())
    def add(self, parent: int, on: set[int], review: bool, later: bool) -> None:
        if len(self.model.tasks) >= 7:
            return
        above = self._known(parent) if parent and self.model.tasks else None
        waits_for = {self._known(number) for number in on} if self.model.tasks else set()
        status = TaskStatus.BACKLOG if later else TaskStatus.OPEN
        draft = TaskDraft(
            title="x", parent=above, dependencies=tuple(sorted(waits_for)), requires_review=review, status=status
        )
        human = Actor(ActorKind.HUMAN, "ada")
        if not self._try(self.model.may_add(above, waits_for), lambda: self.board.add(draft, human)):
            return
        number = len(self.model.tasks) + 1
        known = Known(status=str(status), parent=above, review=review, waits_for=waits_for)
        self.model.tasks[number] = known
        if status is TaskStatus.OPEN and self.model.is_blocked_from_above(number):
            known.status = "blocked"
            known.blocker = self._root_of_block(number)

    def _root_of_block(self, number: int) -> int:
        above = self.model.above(number)
        nearest = next(one for one in above if self.model.tasks[one].status == "blocked")
        blocker = self.model.tasks[nearest].blocker
        return blocker if blocker in above and blocker is not None else nearest

    @rule(
        number=NUMBERS,
        to=st.sampled_from(list(TaskStatus)),
        by=st.sampled_from(list(ActorKind)),
        commit=COMMITS,
        finalized=st.sampled_from(["", "merged"]),
        blocker=st.one_of(st.none(), NUMBERS),
    )
    def change(
        self, number: int, to: TaskStatus, by: ActorKind, commit: str, finalized: str, blocker: int | None
    ) -> None:
        number = self._known(number)
        in_the_way = self._known(blocker) if blocker else None
        change = StatusChange(
            to=to,
            actor=Actor(by, "somebody"),
            commit=commit,
            finalized=finalized,
            blocker=Blocker(BlockerKind.DEPENDENCY, "because", in_the_way),
        )
        allowed = self.model.may_change(number, str(to), str(by), commit, finalized, in_the_way)
        if self._try(allowed, lambda: self.board.change_status(number, change)):
            self.model.change(number, str(to), in_the_way)

    @rule(number=NUMBERS, way=st.lists(st.sampled_from(["work", "judge", "end"]), min_size=1, max_size=3))
    def walk(self, number: int, way: list[str]) -> None:
        """The ordinary way, so that the far states are reached often enough."""
        for step in way:
            match step:
                case "work":
                    self.change(number, TaskStatus.IN_PROGRESS, ActorKind.ORCHESTRATOR, "c1", "", None)
                case "judge":
                    self.verify(number, "c1", VerdictStatus.DONE)
                    self.change(number, TaskStatus.REVIEW, ActorKind.ORCHESTRATOR, "c1", "", None)
                case _:
                    self.approve(number, "c1")
                    self.change(number, TaskStatus.DONE, ActorKind.ORCHESTRATOR, "c1", "merged", None)

    @rule(number=NUMBERS, others=st.lists(NUMBERS, min_size=1, max_size=4))
    def block_and_go_on(self, number: int, others: list[int]) -> None:
        self.change(number, TaskStatus.BLOCKED, ActorKind.HUMAN, "", "", None)
        for other in others:
            self.change(other, TaskStatus.OPEN, ActorKind.HUMAN, "", "", None)
            self.change(other, TaskStatus.IN_PROGRESS, ActorKind.ORCHESTRATOR, "", "", None)

    @rule(number=NUMBERS, on=NUMBERS)
    def depend(self, number: int, on: int) -> None:
        number, on = self._known(number), self._known(on)
        human = Actor(ActorKind.HUMAN, "ada")
        if self._try(self.model.may_depend(number, on), lambda: self.board.depend(number, on, human)):
            self.model.tasks[number].waits_for.add(on)
            self.model.tasks[number].version += 1

    @rule(number=NUMBERS, on=NUMBERS)
    def undepend(self, number: int, on: int) -> None:
        number, on = self._known(number), self._known(on)
        there = on in self.model.tasks[number].waits_for
        if self._try(there, lambda: self.board.undepend(number, on, Actor(ActorKind.HUMAN, "ada"))):
            self.model.tasks[number].waits_for.discard(on)
            self.model.tasks[number].version += 1

    @rule(number=NUMBERS, commit=COMMITS, verdict=st.sampled_from(list(VerdictStatus)))
    def verify(self, number: int, commit: str, verdict: VerdictStatus) -> None:
        number = self._known(number)
        self.board.record_verification(number, "", a_verification(commit, verdict))
        self.model.tasks[number].verdicts[commit] = str(verdict)

    @rule(number=NUMBERS, commit=COMMITS)
    def approve(self, number: int, commit: str) -> None:
        number = self._known(number)
        in_review = self.model.tasks[number].status == "review"
        human = Actor(ActorKind.HUMAN, "ada")
        if self._try(in_review, lambda: self.board.approve(number, commit, human)):
            self.model.tasks[number].approved = commit

    @invariant()
    def the_blackboard_looks_like_the_model(self) -> None:
        found = {task.number: task for task in self.board.find()}
        assert set(found) == set(self.model.tasks)
        for number, known in self.model.tasks.items():
            task = found[number]
            assert (str(task.status), task.version, task.parent) == (known.status, known.version, known.parent)
            assert set(task.dependencies) == known.waits_for
            assert (task.blocker.task if task.blocker else None) == known.blocker
            below = {self.model.tasks[other].status for other in self.model.below(number)}
            assert not (known.status == "blocked" and below & {"open", "in_progress"})
            assert not (known.status in ENDED and below - set(ENDED))

    @invariant()
    def the_events_tell_the_same_story(self) -> None:
        for number, known in self.model.tasks.items():
            status, version, waits_for = "", 0, set(known.waits_for)
            replayed: set[int] = set()
            for event in self.board.events(number):
                match event.kind:
                    case "created":
                        status, version = event.data["status"], version + 1
                        replayed = set(event.data.get("dependencies", []))
                    case "status_changed":
                        assert event.data["from"] == status
                        status, version = event.data["to"], version + 1
                    case "dependency_added" | "dependency_removed":
                        replayed ^= {event.data["on"]}
                        version += 1
                assert event.version == version
            assert (status, version, replayed) == (known.status, known.version, waits_for)


def test_no_sequence_of_calls_reaches_a_forbidden_state() -> None:
    run_state_machine_as_test(Gateway, settings=settings(max_examples=70, stateful_step_count=30))


def test_no_sequence_of_calls_reaches_a_forbidden_state_on_a_server(postgres: Postgres) -> None:
    class OnServer(Gateway):
        server = postgres

    run_state_machine_as_test(OnServer, settings=settings(max_examples=8, stateful_step_count=20))
