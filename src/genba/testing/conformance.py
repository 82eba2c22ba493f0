"""What every implementation of a port must do. Each suite is run by the real thing and by its double alike.

A test class inherits a suite and gives it the fixture that the suite asks for by name.
"""

import asyncio
from collections.abc import Callable

from genba.domain.errors import GenbaError, NotFoundError, UnrecoverableError
from genba.domain.evidence import CheckStatus, CommandCheck
from genba.domain.issues import IssueChange
from genba.domain.outcomes import PermissionMode
from genba.domain.ports import AgentAdapter, Checks, Clock, Forge, Processes, Repository, Tracker, WorkingTrees
from genba.domain.processes import Command, Ending
from genba.domain.replies import AgentSession, Ask, InstanceStatus
from genba.domain.workspaces import MergeStatus, PullRequest, Workspace, WorkspaceRequest


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
        timeout_seconds=20,
        idle_seconds=20,
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
        heard: list[str] = []
        instance = await adapter.start(session)
        await adapter.execute(instance, an_ask(session), lambda stream, _line: heard.append(stream))
        assert heard[0] == "started"

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
        assert await tracker.labelled("nobody") == ()

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
        heard: list[tuple[str, str]] = []
        done = await processes.run(command(0), lambda stream, line: heard.append((stream, line)))
        assert (done.ending, done.code, done.stdout) == (Ending.EXITED, 0, "hello\n")
        assert heard[0][0] == "started"
        assert ("stdout", "hello") in heard

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


async def _raises(kind: type[BaseException] | tuple[type[BaseException], ...], call: Callable[[], object]) -> None:
    try:
        found = call()
        if asyncio.iscoroutine(found):
            await found
    except kind:
        return
    raise AssertionError(f"{kind} was not raised")
