"""A journal added up: its iterations, what they used and what came of them, read once and then only what is new.

Law: however long a journal is, what is kept of it stays small. What an agent printed is passed over unread.
"""

from collections import Counter, OrderedDict, deque
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from genba.domain.decoding import reader
from genba.domain.views.session import EgressLine, IterationLine, SessionFacts, ToolCount

_MOST_ITERATIONS = 500
_MAX_EGRESS = 200
_MOST_TOOLS = 40
_MOST_REPLIES = 20
_MOST_GOALS = 20
_MOST_KEPT = 32
_BLOCK = 1024 * 1024
_BEGIN = b'{"event":"'
_PRINTED = b'{"event":"agent_output"'
"""Most lines of a long journal are these: nothing else is asked of them."""


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0


class _Place(msgspec.Struct):
    branch: str = ""
    base_branch: str = ""
    isolated: bool = True


class _Result(msgspec.Struct):
    status: str = ""


class _Line(msgspec.Struct):
    """What is read of any line; the long texts are not."""

    event: str = ""
    time: str = ""
    agent: str = ""
    issue: int | None = None
    step: str | None = None
    iteration: int | None = None
    model: str = ""
    title: str = ""
    adapter: str = ""
    sandbox: str = ""
    network: str = ""
    process: int = 0
    workspace: _Place | None = None
    limits: dict[str, Any] = {}
    started: "_Line | None" = None
    prompt_from: str = ""
    tool: str = ""
    port: str = ""
    verdict: str = ""
    target: str = ""
    detail: Any = ""
    intent: str = ""
    reason: str = ""
    usage: _Usage | None = None
    seconds: float = 0.0
    commits: Any = ()
    files: int = 0
    status: str = ""
    goal: str = ""
    required: bool = True
    result: Any = None
    outcome: str = ""
    merged: str = ""
    again: bool = True


class _Turn:
    """An iteration while it is read."""

    def __init__(self, line: _Line, at: int) -> None:
        self.facts = IterationLine(
            number=line.iteration or 0,
            step=line.step or "",
            model=line.model,
            began_at=line.time,
            prompt_at=at,
            prompt_from=line.prompt_from,
        )
        self.replies: list[int] = []
        self.tools: Counter[str] = Counter()
        self.goals: list[str] = []
        self.retries = 0
        self.commits = 0
        self.more: dict[str, Any] = {}

    def line(self) -> IterationLine:
        return msgspec.structs.replace(
            self.facts,
            replies=tuple(self.replies),
            tools=_counts(self.tools),
            failed_goals=tuple(self.goals),
            retries=self.retries,
            **self.more,
        )


class JournalOverview:
    """What one journal tells, up to where it was read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._inode = 0
        self._forget()

    def _forget(self) -> None:
        self._read = 0
        self._facts = SessionFacts()
        self._turns: deque[_Turn] = deque(maxlen=_MOST_ITERATIONS)
        self._egress: deque[EgressLine] = deque(maxlen=_MAX_EGRESS)
        self._tools: Counter[str] = Counter()
        self._total = 0
        self._spent = [0, 0, 0.0, 0.0]
        self._begun = 0

    def look(self) -> SessionFacts:
        """Read what is new, and tell all of it."""
        with self._lock, self.path.open("rb") as file:
            stat = self.path.stat()
            if stat.st_ino != self._inode or stat.st_size < self._read:
                self._forget()
                self._inode = stat.st_ino
            file.seek(self._read)
            at = self._read
            for line in file:
                if not line.endswith(b"\n"):
                    break
                if not line.startswith(_PRINTED):
                    self._note(line, at)
                at += len(line)
            self._read = at
            return self._run_facts(stat.st_size)

    def _run_facts(self, size: int) -> SessionFacts:
        return msgspec.structs.replace(
            self._facts,
            iterations=tuple(turn.line() for turn in self._turns),
            iterations_total=self._total,
            egress=tuple(self._egress),
            tools=_counts(self._tools),
            input_tokens=self._spent[0],
            output_tokens=self._spent[1],
            cost_usd=self._spent[2],
            seconds=self._spent[3],
            parts=max(1, self._begun),
            size=size,
        )

    def _note(self, line: bytes, at: int) -> None:
        if not line.startswith(_BEGIN):
            return
        kind = line[len(_BEGIN) : line.find(b'"', len(_BEGIN))].decode("ascii", "replace")
        reader = _READERS.get(kind)
        if reader is None:
            return
        try:
            output = _line.decode(line)
        except (ValueError, RecursionError):
            return
        reader(self, output, at)
        self._facts = msgspec.structs.replace(self._facts, last_at=output.time or self._facts.last_at)

    # ── one reader for each kind of line ─────────────────────────────────────────────────────────────────────────────

    def _started(self, line: _Line, _: int) -> None:
        self._begun += 1
        began = line.started or line
        place, limits = began.workspace or _Place(), began.limits
        self._facts = SessionFacts(
            agent=line.agent or self._facts.agent,
            issue=line.issue,
            title=began.title or self._facts.title,
            adapter=began.adapter or self._facts.adapter,
            model=began.model or self._facts.model,
            sandbox=began.sandbox or self._facts.sandbox,
            network=began.network or self._facts.network,
            branch=place.branch or self._facts.branch,
            base_branch=place.base_branch or self._facts.base_branch,
            isolated=place.isolated if began.workspace else self._facts.isolated,
            began_at=self._facts.began_at or line.time,
            process=line.process or began.process,
            max_iterations=_number(limits.get("maxIterations"), self._facts.max_iterations),
            wall_seconds=_number(limits.get("wallTimeSeconds"), self._facts.wall_seconds),
            token_limit=_number(limits.get("tokens"), self._facts.token_limit),
            cost_limit_usd=_number(limits.get("costUsd"), self._facts.cost_limit_usd),
        )

    def _iteration(self, line: _Line, at: int) -> None:
        self._total += 1
        self._turns.append(_Turn(line, at))

    def _finished(self, line: _Line, _: int) -> None:
        usage = line.usage or _Usage()
        self._spend(usage, line.seconds)
        if not self._turns:
            return
        turn = self._turns[-1]
        before = next((other.commits for other in reversed(list(self._turns)[:-1]) if other.commits), 0)
        turn.commits = len(line.commits) if isinstance(line.commits, list) else 0
        turn.more |= {
            "finished": True,
            "intent": line.intent,
            "verdict": line.verdict,
            "reason": line.reason,
            "tokens": usage.input_tokens + usage.output_tokens,
            "cost_usd": usage.cost_usd,
            "seconds": line.seconds,
            "commits": max(0, turn.commits - before),
            "files": line.files,
        }

    def _spend(self, usage: _Usage, seconds: float) -> None:
        for place, more in enumerate((usage.input_tokens, usage.output_tokens, usage.cost_usd, seconds)):
            self._spent[place] += more

    def _reply(self, _: _Line, at: int) -> None:
        if self._turns and len(self._turns[-1].replies) < _MOST_REPLIES:
            self._turns[-1].replies.append(at)

    def _again(self, _: _Line, __: int) -> None:
        if self._turns:
            self._turns[-1].retries += 1

    def _tool(self, line: _Line, _: int) -> None:
        for counts in (self._tools, *((self._turns[-1].tools,) if self._turns else ())):
            name = line.tool[:80] if line.tool in counts or len(counts) < _MOST_TOOLS else "others"
            counts[name] += 1

    def _egress_used(self, line: _Line, _: int) -> None:
        result = str(line.detail)[:300]
        self._egress.append(
            EgressLine(port=line.port, verdict=line.verdict, target=line.target[:300], detail=result, time=line.time)
        )

    def _goal(self, line: _Line, _: int) -> None:
        passed = isinstance(line.result, dict) and line.result.get("status") == "passed"
        if self._turns and line.required and not passed and len(self._turns[-1].goals) < _MOST_GOALS:
            self._turns[-1].goals.append(line.goal[:80])

    def _verified(self, line: _Line, _: int) -> None:
        if self._turns:
            self._turns[-1].more["verified"] = line.status

    def _ended(self, line: _Line, _: int) -> None:
        self._facts = msgspec.structs.replace(
            self._facts, outcome=line.outcome, reason=line.reason, merged=line.merged or self._facts.merged
        )


_line = reader(_Line)
_READERS = {
    "run_started": JournalOverview._started,
    "run_resumed": JournalOverview._started,
    "iteration_started": JournalOverview._iteration,
    "iteration_finished": JournalOverview._finished,
    "reply_received": JournalOverview._reply,
    "reply_refused": JournalOverview._again,
    "ask_retried": JournalOverview._again,
    "tool_used": JournalOverview._tool,
    "egress_used": JournalOverview._egress_used,
    "goal_checked": JournalOverview._goal,
    "verification_finished": JournalOverview._verified,
    "run_ended": JournalOverview._ended,
}


class Overviews:
    """Those that were looked at last. Any thread may ask."""

    def __init__(self, most: int = _MOST_KEPT) -> None:
        self._most = most
        self._lock = Lock()
        self._kept: OrderedDict[Path, JournalOverview] = OrderedDict()

    def of(self, path: Path) -> SessionFacts:
        with self._lock:
            found = self._kept.pop(path, None) or JournalOverview(path)
            self._kept[path] = found
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return found.look()


def _counts(counter: Counter[str]) -> tuple[ToolCount, ...]:
    return tuple(ToolCount(tool=tool, uses=uses) for tool, uses in counter.most_common())


def _number(value: Any, otherwise: Any) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else otherwise
