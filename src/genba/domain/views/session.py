"""One session on the dashboard: prompts, replies, tools and results."""

import msgspec

from genba.domain.fleet.records import Escalation, FleetSession


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a journal, in words."""

    at: int
    """Where it begins in the journal, in bytes."""
    time: str
    event: str
    """The kind of the event."""
    text: str
    step: str = ""
    iteration: int | None = None


class JournalLines(msgspec.Struct, frozen=True, kw_only=True):
    """Whole lines of a journal, each with its offset in bytes."""

    start: int
    end: int
    lines: tuple[tuple[int, bytes], ...] = ()
    more: bool = False
    """True where lines follow its end."""


class LogPage(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of a journal."""

    start: int = 0
    """Where it begins, in bytes; 0: there is nothing earlier."""
    end: int = 0
    """Where it ends: what is written later begins here."""
    lines: tuple[LogLine, ...] = ()
    more: bool = False
    """Whether there is more behind its end already."""


class ToolCount(msgspec.Struct, frozen=True, kw_only=True):
    tool: str
    uses: int


class EgressLine(msgspec.Struct, frozen=True, kw_only=True):
    """A request of an instance to leave its sandbox."""

    port: str
    verdict: str
    target: str
    detail: str = ""
    time: str = ""


class IterationLine(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of the loop."""

    number: int
    step: str
    model: str = ""
    began_at: str = ""
    prompt_at: int = 0
    """Where its prompt stands in the journal."""
    prompt_from: str = ""
    replies: tuple[int, ...] = ()
    """Where what was answered stands in the journal."""
    tools: tuple[ToolCount, ...] = ()
    retries: int = 0
    """How often the question was put again."""
    finished: bool = False
    intent: str = ""
    verdict: str = ""
    """complete | continue | retry | stop, as the loop decided."""
    reason: str = ""
    tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    commits: int = 0
    files: int = 0
    verified: str = ""
    """done | rejected | error: the verdict on the work that it left, where there was one."""
    failed_goals: tuple[str, ...] = ()


class SessionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the journal of a run tells, added up."""

    agent: str = ""
    issue: int | None = None
    title: str = ""
    adapter: str = ""
    model: str = ""
    sandbox: str = ""
    network: str = ""
    branch: str = ""
    base_branch: str = ""
    isolated: bool = True
    began_at: str = ""
    last_at: str = ""
    process: int = 0
    parts: int = 1
    """How often it began or went on."""
    max_iterations: int | None = None
    wall_seconds: float | None = None
    token_limit: int | None = None
    cost_limit_usd: float | None = None
    outcome: str = ""
    """Empty while it goes on, or where it was cut off."""
    reason: str = ""
    merged: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    """Of all iterations together."""
    iterations_total: int = 0
    iterations: tuple[IterationLine, ...] = ()
    """The last ones, oldest of them first."""
    egress: tuple[EgressLine, ...] = ()
    tools: tuple[ToolCount, ...] = ()
    size: int = 0
    """Of the journal, in bytes."""


class SessionView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one run."""

    run: str
    status: str
    """running | waiting | suspended | cut_off, or the outcome of one that has ended"""
    alive: bool = False
    why: str = ""
    facts: SessionFacts = SessionFacts()
    session: FleetSession | None = None
    """None: it works on no task."""
    title: str = ""
    asked: tuple[Escalation, ...] = ()
    """What its task waits for a person with."""
    can_stop: bool = False
    has_journal: bool = True


class TranscriptEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt or a reply, whole."""

    kind: str
    """prompt | reply"""
    text: str
    source: str = ""
    """Where the prompt comes from."""
    structured: str = ""
    """The structured part of a reply, as JSON."""
    tokens: int = 0
    cost_usd: float = 0.0
    time: str = ""
