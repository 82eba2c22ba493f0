"""Several clients play any sequence of tools over HTTP, and the laws hold after each call."""

import asyncio
import contextlib
import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from genba.blackboard.tasks.history import CHANGES
from genba.coordination.workflow.answers import Caller
from genba.definitions.project.work_sections import FleetSettings, WorkflowSettings
from genba.domain.fleet.records import Purpose, SegmentEnd
from genba.domain.tasks.task import StatusChange, TaskStatus
from genba.domain.workflow.actions import ErrorCode, Tool
from genba.testing.conformance import a_verification
from tests.blackboard.test_laws import BY
from tests.fuzz.outside import anything, texts, tried
from tests.mcp.door import Door, open_house
from tests.project import furnish
from tests.workflow.context import ORCHESTRATOR, House

CLIENTS = ("worker", "manager", "reviewer", "external_agent", "gone", "nobody", "forger")
STRANGERS = ("gone", "nobody", "forger")
numbers = st.integers(1, 9) | st.sampled_from((0, -1, 2**53, 2**70))
words = texts | st.sampled_from(("writer", "chief", "Cut it", "Glue it", "atomic", "k"))
drafts = st.fixed_dictionaries(
    {"title": words},
    optional={
        "local_id": st.sampled_from(("a", "b", "")),
        "depends_on": st.lists(st.sampled_from(("a", "b", "2", "99", 3)), max_size=2),
        "goals": st.sampled_from(([], ["file_exists:a"], [{"type": "?"}], [{"type": "tests_pass", "command": "x"}])),
        "assignee": st.sampled_from(("", "writer", "nobody")),
        "scope": st.sampled_from(([], ["src/**"], ["../x"])),
    },
)
ARGUMENTS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    Tool.AUTHENTICATE: st.fixed_dictionaries({}, optional={"agent_id": words, "passkey": words, "project_id": words}),
    Tool.CREATE_TASK: drafts,
    Tool.CREATE_TASKS_BATCH: st.fixed_dictionaries({"tasks": st.lists(drafts, max_size=3)}, optional={"key": words}),
    Tool.UPDATE_TASK_STATUS: st.fixed_dictionaries(
        {"task_id": numbers, "status": st.sampled_from((*TaskStatus, "todo", ""))}, optional={"reason": words}
    ),
    Tool.ASSIGN_TASK: st.fixed_dictionaries({"task_id": numbers, "agent": words}, optional={"note": words}),
    Tool.REPORT_COMPLETED: st.fixed_dictionaries({}, optional={"summary": words}),
    Tool.REPORT_BLOCKED: st.fixed_dictionaries({"reason": words}, optional={"task_id": numbers}),
    Tool.SAVE_CONTEXT: st.fixed_dictionaries({}, optional={"progress": words, "next_steps": words}),
    Tool.SEND_MESSAGE: st.fixed_dictionaries({"content": words}, optional={"to": words, "task_id": numbers}),
    Tool.GET_MESSAGES: st.fixed_dictionaries({}, optional={"mark_read": st.booleans()}),
    Tool.LIST_TASKS: st.fixed_dictionaries({}, optional={"status": st.sampled_from((*TaskStatus, "x"))}),
    Tool.GET_TASK: st.fixed_dictionaries({"task_id": numbers}),
    Tool.HELP: st.fixed_dictionaries({}, optional={"tool": words}),
}
FREE = (Tool.HELP,)
"""What strangers are answered too, where it tells nothing of the project."""


class Clients(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = contextlib.AsyncExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="genba-machine-"))
        self.tokens: dict[str, str] = {"nobody": "", "forger": "gbs_0123456789abcdef_" + "0" * 64}

    @initialize()
    def come(self) -> None:
        self.runner.run(self._come())

    async def _come(self) -> None:
        furnish(self.folder / "board.db")
        wide = WorkflowSettings(
            wait_seconds=0,
            calls_per_minute=1_000_000,
            max_repeats=100_000,
            max_reworks=100_000,
            suspend_seconds=100_000,
        )
        self.context: House = await self.stack.enter_async_context(
            open_house(self.folder, FleetSettings(workflow=wide))
        )
        self.door: Door = await self.stack.enter_async_context(Door.opened(self.context))
        # Not open yet: an open one may be taken by an external agent, who comes by itself.
        self.others = self.context.task("Nobody's", status=TaskStatus.BACKLOG)
        self.untouched = self.context.board.get(self.others)
        for name, agent, purpose in (
            ("worker", "writer", Purpose.WORK),
            ("manager", "chief", Purpose.MANAGE),
            ("gone", "boss", Purpose.WORK),
        ):
            caller = await self.context.spawn(self.context.task(f"Of the {name}"), agent, purpose)
            self.tokens[name] = caller.token
        self.tokens["reviewer"] = (await self.context.spawn(self._review(), "tester", Purpose.REVIEW)).token
        await self.context.service.logout(Caller(token=self.tokens["gone"]))
        self.tokens["external_agent"] = (await self.context.come(*await self.context.external_agent())).token
        self.seen = self._last_event()

    def _review(self) -> int:
        context, number = self.context, self.context.task("To be judged")
        run = context.begin(number)
        context.board.record_verification(number, run, a_verification("c9"))
        context.board.change_status(number, StatusChange(to=TaskStatus.REVIEW, actor=ORCHESTRATOR, commit="c9"))
        context.fleet.end_part(SegmentEnd(run=run, part=1, outcome="completed", verified="c9"))
        return int(context.fleet.ask_review(number, "c9", "ai").task)

    @rule(
        name=st.sampled_from(CLIENTS),
        asked=st.sampled_from([str(tool) for tool in Tool]).flatmap(
            lambda tool: st.tuples(st.just(tool), ARGUMENTS.get(tool, st.just({})))
        ),
        in_header=st.booleans(),
    )
    def call(self, name: str, asked: tuple[str, dict[str, Any]], in_header: bool) -> None:
        self.runner.run(self._call(name, *asked, in_header=in_header))

    @rule(name=st.sampled_from(CLIENTS), tool=st.sampled_from([str(tool) for tool in Tool]), arguments=anything)
    def call_with_anything(self, name: str, tool: str, arguments: Any) -> None:
        self.runner.run(self._call(name, tool, arguments, in_header=True))

    async def _call(self, name: str, tool: str, arguments: Any, *, in_header: bool) -> None:
        before = self.context.everything()
        token = self.tokens[name]
        headers = {"authorization": f"Bearer {token}"} if in_header and token else {}
        if not in_header and isinstance(arguments, dict) and tool != Tool.AUTHENTICATE:
            arguments = {**arguments, "session_token": token}
        async with asyncio.timeout(60):
            status, answer = await self.door.call(tool, arguments, **headers)
        await self.context.service.settle()
        assert status < 500
        result = answer.get("result", {})
        refused = "error" in answer or result.get("isError", False)
        if result.get("isError"):
            assert result["structuredContent"]["error"]["code"] in [str(code) for code in ErrorCode]
        if refused:
            assert self.context.everything() == before, (tool, arguments, answer)
        if name in STRANGERS and tool not in FREE:
            assert refused, (name, tool, answer)
        self._laws()
        if tool == Tool.LOGOUT and not refused:
            await self._come_back(name)

    async def _come_back(self, name: str) -> None:
        assert name not in STRANGERS
        self.tokens[name] = self.tokens["gone"]

    def _laws(self) -> None:
        board = self.context.board
        assert board.get(self.others) == self.untouched, "nobody was given it"
        with board.store.engine.connect() as connection:
            rows = connection.exec_driver_sql("SELECT task_id FROM sessions WHERE status = 'running'").scalars()
            assert max(Counter(rows).values(), default=0) <= 1, "a task has one session at a time"
            result = connection.exec_driver_sql(
                "SELECT e.id, e.kind, e.actor_kind, e.data FROM events e WHERE e.id > ? ORDER BY e.id", (self.seen,)
            ).all()
            versions = connection.exec_driver_sql("SELECT id, version FROM tasks").all()
            kinds = connection.exec_driver_sql("SELECT task_id, kind FROM events").all()
        for number, kind, actor, data in result:
            self.seen = number
            if kind == "status_changed":
                change = json.loads(data)
                assert actor in BY[change["from"], change["to"]].split(), (actor, change)
        changes = Counter(task for task, kind in kinds if kind in CHANGES)
        assert {task: changes[task] for task, _ in versions} == dict(versions), "so many changes, so high the version"

    def _last_event(self) -> int:
        with self.context.board.store.engine.connect() as connection:
            return int(connection.exec_driver_sql("SELECT coalesce(max(id), 0) FROM events").scalar_one())

    def teardown(self) -> None:
        try:
            self.runner.run(self.stack.aclose())
        finally:
            self.runner.close()
            shutil.rmtree(self.folder)


def test_no_sequence_of_calls_by_anybody_breaks_a_law() -> None:
    how = tried(3, 0.05)
    phases = (Phase.generate,)  # to make what was found smaller takes minutes: it is reported as it was found
    run_state_machine_as_test(Clients, settings=settings(how, stateful_step_count=25, phases=phases))
