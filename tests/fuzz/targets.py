"""What is fed, with what, and the law that must hold. Each target is played by `make test` and by `make fuzz`."""

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from genba.connections.agents.acp.turn import Turn
from genba.connections.agents.cli_tools.claude_events import ClaudeReading
from genba.connections.agents.cli_tools.codex_events import CodexReading
from genba.connections.agents.cli_tools.opencode_events import OpenCodeReading
from genba.connections.agents.cli_tools.prices import Price
from genba.connections.agents.command_line import Reading, Totals
from genba.connections.agents.custom import CustomAdapter, CustomSettings
from genba.connections.agents.model_errors import wait_in_text
from genba.connections.agents.read_only_commands import only_reads
from genba.connections.agents.scripted import read_script
from genba.connections.detached.results import Failure, Result
from genba.connections.journal.jsonl import JsonlJournal, read_journal
from genba.connections.journal.overview import JournalOverview
from genba.connections.journal.paging import last_lines, line_at, lines_after
from genba.definitions.agent.agent_json import Actions
from genba.definitions.agent.json_schema import problem_in_schema, problems_in_value
from genba.definitions.agent.loading import load_definition
from genba.definitions.project.config_recovery import usable_project
from genba.definitions.project.goal_text import goals_from_yaml, read_goal_line, read_goals
from genba.definitions.project.project import load_project, rules_from
from genba.definitions.steps.steps_registry import Step
from genba.domain.errors import LONGEST_WAIT, ConfigurationError, GenbaError, RecoverableError
from genba.domain.events import AgentOutput, Notice, ReplyReceived, ToolUsed
from genba.domain.ports import Processes
from genba.domain.problems import Problem
from genba.domain.processes import Command, Ending, Exit, OutputListener
from genba.domain.redaction import Redactor
from genba.domain.sessions.replies import AgentSession, Reply
from genba.domain.sessions.sandbox import McpServer
from genba.judgement.loop.action_blocks import find_actions
from genba.judgement.loop.claims import explanation, read_claim, read_closure
from genba.judgement.loop.structured_output import last_block, strings_in, whole_reply
from genba.judgement.loop.transitions import gate_move
from genba.testing.conformance import an_ask
from tests.fuzz import corpus
from tests.fuzz.budget import within
from tests.fuzz.mutation import as_json, json_files, spoilt, spoilt_text, yaml_files

MOST_SECONDS = 20.0
"""Of processor time, for one input."""


_NAME = re.compile(rb'"name": "([a-z][a-z-]{0,30})"')


@dataclass(frozen=True)
class Target:
    """One way in."""

    name: str
    strategy: st.SearchStrategy[Any]
    feed: Callable[[Any], object]
    share: int = 40
    """Examples of `make test`."""

    def __call__(self, given: Any) -> None:
        with within(MOST_SECONDS):
            self.feed(given)


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="genba-fuzz-") as made:
        yield Path(made)


def tell(problems: tuple[Problem, ...]) -> None:
    assert problems
    assert len(problems) <= 1000
    for problem in problems:
        assert str(problem)
    msgspec.json.encode(problems)


def report(error: GenbaError) -> None:
    assert error.message


@contextmanager
def refused_well() -> Iterator[None]:
    try:
        yield
    except ConfigurationError as error:
        tell(error.problems)
    except GenbaError as error:
        report(error)


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@st.composite
def agent_folders(draw: st.DrawFn) -> dict[str, bytes]:
    """An agent of which one or two files are spoilt, or which has layers that are."""
    whole = draw(st.sampled_from(corpus.agents()))
    files = {name: as_json(message) if name.endswith(".json") else message.encode() for name, message in whole.items()}
    for _ in range(draw(st.integers(1, 2))):
        name = draw(
            st.sampled_from((*sorted(files), "agent.json", "steps_registry.json", "config.json", "config.local.json"))
        )
        message = whole.get(name, whole["agent.json"])
        if name.endswith(".json"):
            files[name] = draw(json_files(message, words=corpus.words()))
        else:
            files[name] = draw(
                spoilt_text(message.encode(), (b"{uv-topic}", b"{uv-", b"{uv-" + b"a" * 5000 + b"}", b"\0"))
            )
    return files


def feed_agent(files: dict[str, bytes]) -> None:
    found = _NAME.search(files.get("agent.json", b""))
    name = found[1].decode() if found else "steps"
    with folder() as root:
        for place, content in files.items():
            path = root / name / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        before = digest(root)
        with refused_well():
            definition = load_definition(root / name, f".agent/{name}", [], [], root)
            msgspec.json.encode(definition)
            assert definition.digest
        assert digest(root) == before


def digest(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def feed_settings(content: bytes) -> None:
    with folder() as root:
        for name in (".genba/config.yaml", ".agentmine/config.yaml"):
            (root / name).parent.mkdir()
        for name in (".agentmine/config.yaml", ".genba/config.yaml"):
            (root / name).write_bytes(content)
            with refused_well():
                if name.startswith(".agentmine"):
                    load_project(root)
                    continue
                project, error = usable_project(root)
                assert project.file is not None
                if error is not None:
                    tell(error.problems)
    with refused_well():
        rules_from(content.decode("utf-8", "surrogateescape"), "shown")


def feed_script(content: bytes) -> None:
    with folder() as root:
        (root / "script.yaml").write_bytes(content)
        with refused_well():
            read_script(root, "script.yaml")


def feed_goals(content: bytes) -> None:
    text = content.decode("utf-8", "replace")
    with refused_well():
        read_goal_line(text)
    with refused_well():
        read_goals(goals_from_yaml(text, "shown"), "shown")


def feed_schema(given: tuple[Any, Any]) -> None:
    try:
        schema, value = (msgspec.json.decode(as_json(each)) for each in given)
    except (ValueError, RecursionError):
        return
    if isinstance(schema, dict) and not problem_in_schema(schema):
        problems_in_value(schema, value)


# ── what agents say ──────────────────────────────────────────────────────────────────────────────────────────────────

SERVERS = (McpServer(name="files", url="http://127.0.0.1:1/"), McpServer(name="other", command=("x",), required=False))
SCHEMA = {"type": "object", "properties": {"status": {"type": "string"}, "a": {"type": ["array", "null"]}}}
STEP = msgspec.convert(
    {
        "structuredGate": {"allowedIntents": ["next", "repeat", "jump"], "handoffFields": ["a.b"]},
        "transitions": {"next": None, "jump": {"targets": ["a"]}},
    },
    Step,
)


@st.composite
def streams(draw: st.DrawFn, tool: str) -> tuple[list[bytes], bytes, int]:
    """Lines of a tool, spoilt; its stderr; its exit code."""
    events = list(draw(st.sampled_from(corpus.transcripts(tool))))
    lines = []
    for event in events:
        kind = draw(st.sampled_from(("as it is", "as it is", "spoilt", "letters", "bytes", "left out", "twice")))
        if kind == "spoilt":
            lines.append(as_json(draw(spoilt(event))))
        elif kind == "letters":
            lines.append(draw(spoilt_text(as_json(event))))
        elif kind == "bytes":
            lines.append(draw(st.binary(max_size=100)))
        elif kind != "left out":
            lines += [as_json(event)] * (2 if kind == "twice" else 1)
    output = st.sampled_from(
        (
            b"",
            b"\xff\xfe",
            b"required MCP servers failed to initialize: files",
            b"thread/resume failed",
            b"patch rejected: x",
            b"No conversation found",
            b"unexpected status 429 try again in 99999999999999999999 days",
            b"\n" * 1000,
            b"PreToolUse hook: Bash is not allowed",
            b"Error loading config: x",
            b"\x1b[31mSession not found\x1b[0m",
        )
    )
    return lines, draw(output | st.binary(max_size=60)), draw(st.integers(-64, 255))


def feed_stream(
    make: Callable[[OutputListener, Path, bool], Reading],
) -> Callable[[tuple[list[bytes], bytes, int]], None]:
    def feed(given: tuple[list[bytes], bytes, int]) -> None:
        lines, stderr, code = given
        for resumed in (False, True):
            with folder() as root:
                journal = _journal(root)
                reading = make(_received(journal), root, resumed)
                try:
                    for line in lines:
                        reading.line(line)
                    reply = reading.reply(_exit(code, stderr))
                except GenbaError as error:
                    failed(error)
                else:
                    replied(reply, journal, root)
                journal.close()

    return feed


def _journal(root: Path) -> JsonlJournal:
    return JsonlJournal(root / "run.jsonl", "run", "worker", 1, Redactor({"MY_TOKEN": "not for you"}), ())


def _received(journal: JsonlJournal) -> OutputListener:
    def received(stream: str, line: str) -> None:
        if stream == "tool":
            journal.emit(ToolUsed(tool=line, target=line))
        elif stream == "notice":
            journal.emit(Notice(message=line))
        else:
            journal.emit(AgentOutput(stream=stream, text=line))

    return received


def _exit(code: int, stderr: bytes) -> Exit:
    return Exit(ending=Ending.EXITED, code=code, stdout="", stderr=stderr.decode("utf-8", "replace"), seconds=1.0)


def failed(error: GenbaError) -> None:
    assert error.message
    if isinstance(error, RecoverableError) and error.retry_after is not None:
        assert error.retry_after <= LONGEST_WAIT
    kept = msgspec.json.decode(Result(failure=Failure.of(error)).encoded(), type=Result)
    assert kept.failure is not None


def replied(reply: Reply, journal: JsonlJournal, root: Path) -> None:
    """A reply goes all the way: kept by the supervisor, read for its claims, written to the journal and read back."""
    kept = msgspec.json.decode(Result(reply=reply).encoded(), type=Result).reply
    assert kept is not None
    assert min(reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cost_usd) >= 0
    if reply.session_id:
        assert "\0" not in reply.session_id
        assert not reply.session_id.startswith("-")
        assert len(reply.session_id) <= 1000
    structured = reply.structured if reply.structured is not None else last_block(reply.text)
    journal.emit(ReplyReceived(text=reply.text, structured=structured, session_id=reply.session_id, usage=reply.usage))
    assert sum(1 for _ in read_journal(root / "run.jsonl"))
    judged(structured)


def judged(structured: dict[str, Any] | None) -> None:
    read_claim(structured)
    read_closure(structured)
    gate_move("work", STEP, structured)
    if structured is not None:
        explanation(structured)
        list(strings_in(structured))
        problems_in_value(SCHEMA, structured)
        msgspec.json.encode(structured)


def _claude(received: OutputListener, root: Path, resumed: bool) -> Reading:
    return ClaudeReading(
        received, totals=Totals(str(root)), resumed=resumed, tree=str(root), servers=SERVERS if resumed else ()
    )


def _codex(received: OutputListener, root: Path, resumed: bool) -> Reading:
    known = "0197e5d5-8ee4-7a13-bd5a-6a9f3a2d52c1" if resumed else None
    price = Price(input=1.0, output=2.0, cached_input=0.1)
    return CodexReading(received, totals=Totals(str(root)), resumed=known, schema=SCHEMA, reads="Read", price=price)


def _opencode(received: OutputListener, _root: Path, resumed: bool) -> Reading:
    return OpenCodeReading(received, resumed="ses_1" if resumed else None, servers=SERVERS)


class WritesReply:
    def __init__(self, place: Path, given: tuple[bytes, bytes, int]) -> None:
        self.place = place
        self.given = given

    async def run(self, command: Command, _received: OutputListener) -> Exit:
        content, stdout, code = self.given
        (self.place / "0001.reply.json").write_bytes(content)
        output = stdout.decode("utf-8", "replace")
        assert command.argv
        return Exit(ending=Ending.EXITED, code=code, stdout=output, stderr="", seconds=0.1)

    async def sweep(self, _mark: str) -> int:
        return 0


def _session(root: Path, processes: Processes) -> AgentSession:
    place = str(root)
    return AgentSession(run="r", agent="worker", workdir=place, folder=place, environment={}, processes=processes)


REPLY_FILE = {
    "text": "done",
    "structured": {"status": "completed", "next_action": {"action": "next"}},
    "session_id": "abc",
    "usage": {"input_tokens": 1, "output_tokens": 2, "cost_usd": 0.5},
    "tools_used": ["Bash"],
    "retry_after": 5.0,
}
WITHOUT_WAIT = {key: value for key, value in REPLY_FILE.items() if key != "retry_after"}


def feed_custom(given: tuple[bytes, bytes, int]) -> None:
    import asyncio

    with folder() as root:
        journal = _journal(root)
        adapter = CustomAdapter(CustomSettings(type="custom", command="x {reply_file}"), root)
        session = _session(root, WritesReply(root, given))

        async def ask() -> Reply:
            return await adapter.execute(await adapter.start(session), an_ask(session), _received(journal))

        try:
            reply = asyncio.run(ask())
        except GenbaError as error:
            failed(error)
        else:
            replied(reply, journal, root)
        journal.close()


ACP = (
    {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hello"}}},
    {"update": {"sessionUpdate": "usage_update", "cost": {"amount": 0.5, "currency": "USD"}}},
    {
        "update": {
            "sessionUpdate": "tool_call",
            "toolCallId": "1",
            "kind": "execute",
            "title": "ls",
            "status": "completed",
            "rawInput": {"command": "ls"},
            "locations": [{"path": "/x", "line": 1}],
            "content": [{"type": "diff", "path": "a"}],
        }
    },
    {
        "toolCall": {"toolCallId": "1", "kind": "edit", "rawInput": {"path": "a"}},
        "options": [{"optionId": "y", "kind": "allow_once"}, {"optionId": "n", "kind": "reject_once"}],
    },
    {"stopReason": "end_turn", "usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}},
)


def feed_acp(given: list[Any]) -> None:
    with folder() as root:
        journal = _journal(root)
        session = _session(root, WritesReply(root, (b"", b"", 0)))
        turn = Turn(an_ask(session), str(root), False, SERVERS, _received(journal))
        turn.begun = True
        for message in given:
            try:
                params = msgspec.json.decode(as_json(message))
            except (ValueError, RecursionError):
                continue
            turn.update(params)
            msgspec.json.encode(turn.permission(params))
            if isinstance(params, dict):
                turn.finish(params)
        reply = Reply(text=turn.text, usage=turn.tokens, tools_used=turn.tools_used, tools_denied=turn.tools_denied)
        replied(reply, journal, root)
        journal.close()


ACTIONS = Actions(enabled=True, types=("note",))
BLOCKS = (
    "```json\n",
    "```",
    "\n```\n",
    '{"type": "note"}',
    '{"status": "done"}',
    "````",
    "``` json x\n",
    "~~~\n",
    "\r\n",
)


def feed_prose(text: str) -> None:
    whole_reply(text)
    judged(last_block(text))
    judged(last_block(text, ("note",)))
    find_actions(text, ACTIONS)


def feed_words(text: str) -> None:
    from datetime import UTC, datetime

    wait_in_text(text, datetime.now(UTC))
    only_reads(text)
    Redactor({"MY_TOKEN": "not for you"}).text(text)


WAITS = st.lists(
    st.sampled_from(
        (
            "try again in ",
            "retry after ",
            "try again at ",
            "Jan 1st, 0001 ",
            "Feb 31st, 2024 ",
            "12:00 AM",
            "99:99 PM",
            "9" * 400,
            "1.5",
            " days",
            "ms",
            "h",
            " and ",
            ", ",
            "٣",
            "sk-",
            "a",
            "://",
            "@",
            ":",
            "eyJ",
            "-----BEGIN PRIVATE KEY-----",
            " ",
            "ls",
            "'",
            '"',
            "|",
            "&&",
            "cat ",
            "--",
            "git log",
            "=",
            "\n",
        )
    )
    | st.text(max_size=5),
    max_size=60,
).map("".join)


# ── journals ─────────────────────────────────────────────────────────────────────────────────────────────────────────

EVENTS = (
    {
        "event": "run_started",
        "time": "2026-01-05T10:00:00.000Z",
        "run": "r",
        "agent": "a",
        "limits": {"maxIterations": 3},
        "workspace": {"branch": "b", "path": "p"},
    },
    {"event": "iteration_started", "iteration": 1, "step": "work", "model": "m", "prompt": "p"},
    {"event": "agent_output", "stream": "stdout", "text": "x"},
    {"event": "tool_used", "tool": "Bash", "target": "ls"},
    {"event": "egress_used", "port": "proxy", "verdict": "denied", "target": "x", "detail": {"a": 1}},
    {"event": "goal_checked", "goal": "tests_pass", "result": {"status": "failed"}, "required": True},
    {"event": "reply_received", "text": "x", "structured": {"a": 1}, "usage": {"input_tokens": 1}},
    {
        "event": "iteration_finished",
        "iteration": 1,
        "usage": {"input_tokens": 1, "cost_usd": 0.1},
        "commits": ["a"],
        "files": 1,
    },
    {"event": "verification_finished", "status": "passed"},
    {"event": "run_ended", "outcome": "completed", "reason": "r"},
)


@st.composite
def journals(draw: st.DrawFn) -> bytes:
    lines = []
    for event in draw(st.lists(st.sampled_from(EVENTS), max_size=12)):
        content = (
            as_json(draw(spoilt(event)) if draw(st.booleans()) else event).replace(b'": ', b'":').replace(b', "', b',"')
        )
        lines.append(draw(spoilt_text(content)))
    return b"\n".join(lines) + draw(st.sampled_from((b"", b"\n", b'\n{"event":"run_en')))


def feed_journal(content: bytes) -> None:
    with folder() as root:
        path = root / "r.jsonl"
        path.write_bytes(content)
        list(read_journal(path))
        msgspec.json.encode(JournalOverview(path).look())
        for at in (0, 1, len(content) // 2, len(content), len(content) + 9):
            last_lines(path, at)
            lines_after(path, at)
            line_at(path, at)
        last_lines(path)
        journal = _journal(root)
        journal.path = path
        journal.emit(Notice(message="whole"))
        journal.close()
        assert [event for event in read_journal(path) if isinstance(event, Notice)][-1].message == "whole"


TARGETS: tuple[Target, ...] = (
    Target("agent", agent_folders(), feed_agent, share=40),
    Target("settings", yaml_files(corpus.CONFIG, {}, words=corpus.words()), feed_settings, share=25),
    Target("script", yaml_files(corpus.SCRIPT), feed_script),
    Target("goals", yaml_files(*corpus.CONFIG["dod"], corpus.CONFIG["dod"]), feed_goals),
    Target("schema", st.tuples(spoilt(SCHEMA), spoilt({"status": "x", "a": [None]})), feed_schema),
    Target("claude-code", streams("claude"), feed_stream(_claude), share=50),
    Target("codex", streams("codex"), feed_stream(_codex), share=50),
    Target("opencode", streams("opencode"), feed_stream(_opencode), share=50),
    Target(
        "custom",
        st.tuples(json_files(REPLY_FILE, WITHOUT_WAIT), st.binary(max_size=50), st.sampled_from((0, 0, 0, 1, -9))),
        feed_custom,
    ),
    Target("acp", st.lists(st.sampled_from(ACP).flatmap(spoilt), max_size=6), feed_acp),
    Target("prose", st.lists(st.sampled_from(BLOCKS) | st.text(max_size=10), max_size=30).map("".join), feed_prose),
    Target("words", WAITS, feed_words),
    Target("journal", journals(), feed_journal),
)
