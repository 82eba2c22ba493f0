"""What every implementation of a port must do. Each suite is run by the real thing and by its double alike.

A test class inherits a suite and gives it the fixture that the suite asks for by name.
"""

import asyncio
from collections.abc import Callable

from genba.domain.errors import GenbaError, NotFoundError, StateConflictError, UnrecoverableError
from genba.domain.goals.verification import CommitArtifact, RejectionReason, Subject, VerdictStatus, Verification
from genba.domain.ports import (
    AgentAdapter,
    Checks,
    Clock,
    Forge,
    Processes,
    Repository,
    TaskLedger,
    Tracker,
    WorkingTrees,
)
from genba.domain.processes import Command, Ending
from genba.domain.sessions.evidence import CheckStatus, CommandCheck
from genba.domain.sessions.outcomes import Outcome, PermissionMode
from genba.domain.sessions.replies import AgentSession, Ask, InstanceStatus
from genba.domain.sessions.session import SessionEnd, SessionStart
from genba.domain.sessions.workspaces import MergeStatus, PullRequest, Workspace, WorkspaceRequest
from genba.domain.tasks.task import Actor, ActorKind, Blocker, BlockerKind, StatusChange, TaskStatus
from genba.domain.tracker.issues import IssueChange


def an_ask(session: AgentSession, number: int = 1) -> Ask:
    return Ask(
        run=session.run,
        agent=session.agent,
        step="work",
        iteration=number,
        number=number,
        number_in_step=number,
        prompt="Say hello.",
        system_prompt="You are polite.",
        model="haiku",
        allowed_tools=None,
        permission_mode=PermissionMode.ACCEPT_EDITS,
        session_id=None,
        output_schema=None,
        issue=None,
        timeout_seconds=120,
        idle_seconds=120,
    )


def _silent(_stream: str, _line: str) -> None:
    return


class AgentAdapterSuite:
    """Fixtures: `adapter` answers two questions with a text that contains hello; `session` is where it lives."""

    async def test_it_answers_one_question_after_the_other(self, adapter: AgentAdapter, session: AgentSession) -> None:
        instance = await adapter.start(session)
        for number in (1, 2):
            reply = await adapter.execute(instance, an_ask(session, number), _silent)
            assert "hello" in reply.text
        await adapter.stop(instance)

    async def test_it_says_when_it_begins(self, adapter: AgentAdapter, session: AgentSession) -> None:
        on_output: list[str] = []
        instance = await adapter.start(session)
        await adapter.execute(instance, an_ask(session), lambda stream, _line: on_output.append(stream))
        assert on_output[0] == "started"

    async def test_between_questions_it_is_idle_and_in_the_end_stopped(
        self, adapter: AgentAdapter, session: AgentSession
    ) -> None:
        instance = await adapter.start(session)
        assert await adapter.status(instance) is InstanceStatus.IDLE
        await adapter.execute(instance, an_ask(session), _silent)
        assert await adapter.status(instance) is InstanceStatus.IDLE
        await adapter.stop(instance)
        await adapter.stop(instance)
        assert await adapter.status(instance) is InstanceStatus.STOPPED

    async def test_a_stopped_instance_answers_no_more(self, adapter: AgentAdapter, session: AgentSession) -> None:
        instance = await adapter.start(session)
        await adapter.stop(instance)
        await _raises(UnrecoverableError, lambda: adapter.execute(instance, an_ask(session), _silent))


class TrackerSuite:
    """Fixture: `tracker` holds issue 1, open, with the labels docs and old; and no issue 99."""

    async def test_it_reads_an_issue(self, tracker: Tracker) -> None:
        issue = await tracker.read(1)
        assert (issue.number, issue.closed, issue.labels) == (1, False, ("docs", "old"))

    async def test_what_is_not_there_is_not_found(self, tracker: Tracker) -> None:
        await _raises(NotFoundError, lambda: tracker.read(99))
        await _raises(NotFoundError, lambda: tracker.change(99, IssueChange(close=True)))

    async def test_it_finds_issues_by_label(self, tracker: Tracker) -> None:
        assert [issue.number for issue in await tracker.labelled("docs")] == [1]
        assert await tracker.labelled("unused") == ()

    async def test_a_change_is_safe_to_repeat(self, tracker: Tracker) -> None:
        change = IssueChange(add_labels=("done",), remove_labels=("old",), close=True, comment="It is done.")
        await tracker.change(1, change)
        once = await tracker.read(1)
        await tracker.change(1, change)
        assert await tracker.read(1) == once
        assert once.closed
        assert set(once.labels) == {"docs", "done"}


class ForgeSuite:
    """Fixture: `forge` knows no pull request yet."""

    async def test_it_finds_what_it_opened(self, forge: Forge) -> None:
        assert await forge.find("genba/1") == ""
        request = PullRequest(branch="genba/1", target="main", title="A change", body="Why\n")
        address = await forge.open(request)
        assert address
        assert await forge.find("genba/1") == address
        assert await forge.find("genba/2") == ""


class ClockSuite:
    """Fixture: `clock`."""

    async def test_time_passes_while_it_sleeps(self, clock: Clock) -> None:
        before = clock.elapsed()
        await clock.sleep(0.01)
        assert clock.elapsed() > before


class ProcessesSuite:
    """Fixtures: `processes`; `command` makes a command that prints hello and ends with the code it is given."""

    async def test_it_hears_and_returns_what_is_printed(
        self, processes: Processes, command: Callable[[int], Command]
    ) -> None:
        on_output: list[tuple[str, str]] = []
        done = await processes.run(command(0), lambda stream, line: on_output.append((stream, line)))
        assert (done.ending, done.code, done.stdout) == (Ending.EXITED, 0, "hello\n")
        assert on_output[0][0] == "started"
        assert ("stdout", "hello") in on_output

    async def test_it_tells_the_exit_code(self, processes: Processes, command: Callable[[int], Command]) -> None:
        assert (await processes.run(command(3), _silent)).code == 3

    async def test_after_a_command_nothing_is_left(
        self, processes: Processes, command: Callable[[int], Command]
    ) -> None:
        await processes.run(command(0), _silent)
        assert await processes.sweep(command(0).mark) == 0


class WorkingTreesSuite:
    """Fixtures: `trees`; `request_` asks for a working tree of its own."""

    async def test_a_new_tree_has_no_work_in_it(self, trees: WorkingTrees, request_: WorkspaceRequest) -> None:
        workspace = await trees.open(request_)
        seen = await trees.observe(workspace)
        assert seen.dirty == ()
        assert workspace.isolated
        assert (await trees.observe(workspace)).tree == seen.tree

    async def test_what_is_closed_can_be_opened_again(self, trees: WorkingTrees, request_: WorkspaceRequest) -> None:
        workspace = await trees.open(request_)
        assert (await trees.close(workspace)).removed
        again = await trees.open(request_)
        assert again.branch == workspace.branch

    async def test_one_branch_has_one_instance(self, trees: WorkingTrees, request_: WorkspaceRequest) -> None:
        await trees.open(request_)
        await _raises((GenbaError, AssertionError), lambda: trees.open(request_))


class RepositorySuite:
    """Fixtures: `repository`; `ready` is a workspace with one commit over its base."""

    async def test_it_merges_what_is_ready(self, repository: Repository, ready: Workspace) -> None:
        proposal = await repository.propose(ready, "Merge it\n")
        assert proposal.refused is None
        landed = await repository.land(ready, proposal)
        assert landed is not None
        assert (landed.status, landed.commit) == (MergeStatus.MERGED, proposal.commit)

    async def test_a_proposal_can_be_tried_out_before_it_lands(self, repository: Repository, ready: Workspace) -> None:
        proposal = await repository.propose(ready, "Merge it\n")
        assert await repository.try_out(ready, proposal.commit) == ""
        landed = await repository.land(ready, proposal)
        assert landed is not None
        assert landed.status is MergeStatus.MERGED


class ChecksSuite:
    """Fixtures: `checks` runs the commands `exit 0` and `exit 1`; `workspace` is where."""

    async def test_it_tells_passed_from_failed(self, checks: Checks, workspace: Workspace) -> None:
        for name, line, wanted in (
            ("good", "exit 0", CheckStatus.PASSED),
            ("bad", "exit 1", CheckStatus.FAILED),
            ("broken", "no-such-command-here", CheckStatus.ERROR),
        ):
            result = await checks.run(name, CommandCheck(command=line), workspace, "mark")
            assert (result.name, result.status) == (name, wanted)


class LedgerConformance:
    """Fixture: `ledger` holds task 1, open; and no task 99."""

    async def test_it_shows_a_task(self, ledger: TaskLedger) -> None:
        task = await ledger.look(1)
        assert (task.number, task.status) == (1, TaskStatus.OPEN)

    async def test_a_task_that_is_not_there_is_not_found(self, ledger: TaskLedger) -> None:
        await _raises(NotFoundError, lambda: ledger.look(99))
        await _raises(NotFoundError, lambda: ledger.begin(99, a_session("run-1")))
        await _raises(NotFoundError, lambda: ledger.record(99, "run-1", a_verification("c1")))
        await _raises(NotFoundError, lambda: ledger.move(99, a_move(TaskStatus.REVIEW, commit="c1")))
        await _raises(NotFoundError, lambda: ledger.end(an_end("run-9")))

    async def test_a_run_claims_its_task_once_however_often_it_says_so(self, ledger: TaskLedger) -> None:
        first = await ledger.begin(1, a_session("run-1"))
        again = await ledger.begin(1, a_session("run-1"))
        assert (first.task.status, first.attempt, first.last) == (TaskStatus.IN_PROGRESS, 1, None)
        assert again == first
        assert (await ledger.look(1)).version == first.task.version

    async def test_another_run_goes_on_where_one_died(self, ledger: TaskLedger) -> None:
        await ledger.begin(1, a_session("run-1"))
        second = await ledger.begin(1, a_session("run-2"))
        assert (second.task.status, second.attempt) == (TaskStatus.IN_PROGRESS, 2)

    async def test_a_task_that_a_person_works_on_is_not_taken_away(self, ledger: TaskLedger) -> None:
        first = await ledger.begin(1, a_session("run-1"))
        asked: list[str] = []

        def alive(older: SessionStart) -> bool:
            asked.append(older.run)
            return False

        await _raises(StateConflictError, lambda: ledger.begin(1, a_session("run-2"), alive))
        assert asked == ["run-1"]
        assert await ledger.look(1) == first.task
        again = await ledger.begin(1, a_session("run-1"), alive)
        assert again.attempt == 1
        taken = await ledger.begin(1, a_session("run-2"), lambda _older: True)
        assert taken.attempt == 2

    async def test_only_a_verified_commit_goes_to_review_and_only_finalized_work_is_done(
        self, ledger: TaskLedger
    ) -> None:
        await ledger.begin(1, a_session("run-1"))
        await _raises(GenbaError, lambda: ledger.move(1, a_move(TaskStatus.REVIEW)))
        await _raises(GenbaError, lambda: ledger.move(1, a_move(TaskStatus.REVIEW, commit="c1")))
        await ledger.record(1, "run-1", a_verification("c1", VerdictStatus.REJECTED))
        await _raises(StateConflictError, lambda: ledger.move(1, a_move(TaskStatus.REVIEW, commit="c1")))
        await ledger.record(1, "run-1", a_verification("c2"))
        assert (await ledger.move(1, a_move(TaskStatus.REVIEW, commit="c2"))).status is TaskStatus.REVIEW
        await _raises(GenbaError, lambda: ledger.move(1, a_move(TaskStatus.DONE, commit="c2")))
        done = await ledger.move(1, a_move(TaskStatus.DONE, commit="c2", finalized="merged c3"))
        assert done.status is TaskStatus.DONE
        await _raises(StateConflictError, lambda: ledger.begin(1, a_session("run-2")))

    async def test_a_commit_in_review_is_asked_about_once(self, ledger: TaskLedger) -> None:
        await ledger.begin(1, a_session("run-1"))
        await ledger.record(1, "run-1", a_verification("c1"))
        await _raises(StateConflictError, lambda: ledger.ask_review(1, "c1", "run-1", 3))
        await ledger.move(1, a_move(TaskStatus.REVIEW, commit="c1"))
        first = await ledger.ask_review(1, "c1", "run-1", 3)
        assert (first.of, first.commit, first.reviewer_type, first.status) == (1, "c1", "human", "open")
        assert await ledger.ask_review(1, "c1", "run-1", 3) == first
        await _raises(StateConflictError, lambda: ledger.ask_review(1, "c2", "run-1", 3))

    async def test_a_rejection_is_what_the_next_attempt_goes_on_with(self, ledger: TaskLedger) -> None:
        await ledger.begin(1, a_session("run-1"))
        rejected = a_verification("c1", VerdictStatus.REJECTED)
        await ledger.record(1, "run-1", rejected)
        await ledger.end(an_end("run-1"))
        await ledger.move(1, a_move(TaskStatus.OPEN))
        briefing = await ledger.begin(1, a_session("run-2"))
        assert (briefing.attempt, briefing.last) == (2, rejected)

    async def test_what_the_table_forbids_is_refused_and_nothing_changes(self, ledger: TaskLedger) -> None:
        before = await ledger.look(1)
        worker = Actor(ActorKind.WORKER, "another")
        await _raises(StateConflictError, lambda: ledger.move(1, a_move(TaskStatus.DONE, worker, commit="c1")))
        await _raises(StateConflictError, lambda: ledger.move(1, a_move(TaskStatus.OPEN)))
        await _raises(GenbaError, lambda: ledger.move(1, a_move(TaskStatus.BLOCKED)))
        await _raises(GenbaError, lambda: ledger.move(1, a_move(TaskStatus.IN_PROGRESS, Actor(worker.kind, " "))))
        await _raises(StateConflictError, lambda: ledger.move(1, a_move(TaskStatus.IN_PROGRESS, version=7)))
        assert await ledger.look(1) == before

    async def test_a_blocked_task_says_why_until_it_is_opened(self, ledger: TaskLedger) -> None:
        blocker = Blocker(BlockerKind.NEEDS_INPUT, "which colour?")
        assert (await ledger.move(1, a_move(TaskStatus.BLOCKED, blocker=blocker))).blocker == blocker
        await _raises(StateConflictError, lambda: ledger.begin(1, a_session("run-1")))
        opened = await ledger.move(1, a_move(TaskStatus.OPEN))
        assert (opened.blocker, opened.version) == (None, 3)

    async def test_a_session_ends_once(self, ledger: TaskLedger) -> None:
        await ledger.begin(1, a_session("run-1"))
        await ledger.end(an_end("run-1"))
        await ledger.end(an_end("run-1"))


def a_session(run: str, agent: str = "writer") -> SessionStart:
    return SessionStart(run=run, agent=agent, branch="genba/1", base="c0", workdir="/work")


def an_end(run: str, outcome: Outcome = Outcome.INCOMPLETE) -> SessionEnd:
    return SessionEnd(run=run, outcome=outcome, reason="no more turns")


def a_verification(commit: str, status: VerdictStatus = VerdictStatus.DONE) -> Verification:
    """A verdict on a commit, with nothing but the commit to show."""
    return Verification(
        status=status,
        reason=RejectionReason.MISSING_ARTIFACTS if status is VerdictStatus.REJECTED else None,
        subject=Subject(commit=commit, base="c0", branch="genba/1"),
        tree="t1",
        commits=1,
        artifacts=(CommitArtifact(sha=commit, branch="genba/1"),),
    )


def a_move(
    to: TaskStatus,
    actor: Actor = Actor(ActorKind.ORCHESTRATOR, "genba"),  # noqa: B008  (frozen)
    *,
    commit: str = "",
    finalized: str = "",
    blocker: Blocker | None = None,
    version: int | None = None,
) -> StatusChange:
    return StatusChange(to=to, actor=actor, commit=commit, finalized=finalized, blocker=blocker, version=version)


async def _raises(kind: type[BaseException] | tuple[type[BaseException], ...], call: Callable[[], object]) -> None:
    try:
        found = call()
        if asyncio.iscoroutine(found):
            await found
    except kind:
        return
    raise AssertionError(f"{kind} was not raised")
