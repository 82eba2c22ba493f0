"""The events of one run as spans and metrics.

A part of a session is `invoke_agent`; below it are its iterations, below those the answers, the tools and the checks;
then the verification with its goals. Times are those of the events, so that a trace tells what the journal tells.
"""

import json
from datetime import datetime
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.util.types import AttributeValue

from genba.connections.telemetry import words
from genba.connections.telemetry.ids import first_span_of, trace_of
from genba.connections.telemetry.sending import Telemetry
from genba.domain import events
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.replies import Usage

_FAILED = (Outcome.FAILED, Outcome.ABORTED, Outcome.BUDGET_EXHAUSTED)
_LONGEST = 16 * 1024

Attributes = dict[str, AttributeValue]


class RunTelemetry:
    """Records the events of one session in this process. Its own failures stop nothing."""

    def __init__(self, telemetry: Telemetry, run: str, content: bool = False) -> None:
        self.telemetry = telemetry
        self.run = run
        self.content = content
        self.broken = ""
        """The kind of what went wrong, where something did: it listens no more."""
        self._about: Attributes = {}
        self._part: Span | None = None
        self._began = 0
        self._iteration: Span | None = None
        self._chat: Span | None = None
        self._asked = 0
        self._tool: Span | None = None
        self._goals: list[events.GoalChecked] = []
        self._planned: dict[str, int] = {}
        self._usage = Usage()
        self._last = 0

    def __call__(self, event: events.Event) -> None:
        if self.broken:
            return
        try:
            self._last = _nanoseconds(event.time)
            self._record(event, self._last)
        except Exception as error:  # noqa: BLE001  (telemetry never hurts a run)
            self.broken = type(error).__name__

    @property
    def is_open(self) -> bool:
        """Whether a part is under way."""
        return self._part is not None

    def end(self) -> None:
        """End what is left open: the run was cut off."""
        if self._part is not None and not self.broken:
            self._part.set_status(Status(StatusCode.ERROR, "cut off"))
            self._close(self._last)

    def _record(self, event: events.Event, at: int) -> None:
        match event:
            case events.RunStarted():
                self._begin(event, event.agent, event.issue, at, first=True)
            case events.RunResumed():
                self._begin(event.started, event.agent, event.issue, at, first=False)
            case events.IterationStarted():
                self._step_began(event, at)
            case events.ToolUsed():
                self._tool_used(event, at)
            case events.ReplyReceived() | events.AskRetried() | events.ReplyRefused():
                self._answered(event, at)
            case events.IterationFinished():
                self._step_ended(event, at)
            case events.CheckFinished(result=result):
                self._checked(f"check {result.name}", result, self._iteration or self._part, at)
            case events.GoalChecked():
                self._goals.append(event)
            case events.VerificationFinished():
                self._verified(event, at)
            case events.EffectPlanned() | events.EffectDone() | events.MergeFinished():
                self._delivered(event, at)
            case events.RunEnded():
                self._ended(event, at)

    def _begin(self, started: events.RunStarted | None, agent: str, issue: int | None, at: int, first: bool) -> None:
        self._close(at)
        adapter, model = (started.adapter, started.model) if started is not None else ("", "")
        if started is not None or not self._about:
            self._about = {words.AGENT: agent, words.CONVERSATION: self.run}
            self._about[words.PROVIDER] = words.provider_of(adapter, model)
            if model:
                self._about[words.MODEL] = model
        about = {**self._about, words.OPERATION: words.INVOKE_AGENT, "genba.run": self.run, "genba.resumed": not first}
        if issue is not None:
            about["genba.task"] = issue
        if started is not None:
            about |= {
                "genba.adapter": adapter,
                "genba.definition": started.definition,
                "genba.sandbox": started.sandbox,
            }
            if self.content:
                about["genba.title"] = started.title
        name = f"{words.INVOKE_AGENT} {agent}"
        if first:
            with self.telemetry.ids.given(trace_of(self.run), first_span_of(self.run)):
                self._part = self.telemetry.tracer.start_span(name, Context(), attributes=about, start_time=at)
        else:
            self._part = self._span(name, first_part_of(self.telemetry, self.run, name), at, about)
        self._began, self._usage = at, Usage()

    def _step_began(self, event: events.IterationStarted, at: int) -> None:
        self._close_iteration(at)
        about: Attributes = {"genba.step": event.step or "", "genba.iteration": event.iteration or 0}
        self._iteration = self._span(f"step {event.step}", self._part, at, about)
        self._ask(event.model, event.prompt, at)

    def _ask(self, model: str, prompt: str, at: int) -> None:
        about = {**self._about, words.OPERATION: words.CHAT}
        if model:
            about[words.MODEL] = model
        if self.content and prompt:
            about[words.INPUT_MESSAGES] = _message("user", prompt)
        name = f"{words.CHAT} {model}".rstrip()
        self._chat = self._span(name, self._iteration or self._part, at, about, SpanKind.CLIENT)
        self._asked = at

    def _tool_used(self, event: events.ToolUsed, at: int) -> None:
        self._close_tool(at)
        about: Attributes = {words.OPERATION: words.EXECUTE_TOOL, words.TOOL: event.tool}
        if self.content and event.target:
            about[words.TOOL_ARGUMENTS] = event.target[:_LONGEST]
        parent = self._chat or self._iteration or self._part
        self._tool = self._span(f"{words.EXECUTE_TOOL} {event.tool}", parent, at, about)

    def _answered(self, event: events.ReplyReceived | events.AskRetried | events.ReplyRefused, at: int) -> None:
        self._close_tool(at)
        match event:
            case events.AskRetried() if self._chat is not None:
                waits: Attributes = {"genba.attempt": event.attempt, "genba.wait_seconds": event.wait_seconds}
                self._chat.add_event("retry", waits, at)
            case events.ReplyRefused():
                if self._iteration is not None:
                    self._iteration.add_event("reply refused", {"genba.attempt": event.attempt}, at)
                if event.again and self._chat is None:
                    self._ask(str(self._about.get(words.MODEL, "")), "", at)
            case events.ReplyReceived() if self._chat is not None:
                self._replied(event, self._chat, at)

    def _replied(self, event: events.ReplyReceived, chat: Span, at: int) -> None:
        usage = event.usage
        chat.set_attributes({words.INPUT_TOKENS: usage.input_tokens, words.OUTPUT_TOKENS: usage.output_tokens})
        if self.content:
            chat.set_attribute(words.OUTPUT_MESSAGES, _message("assistant", event.text))
        chat.end(at)
        self._chat = None
        self._usage = self._usage.plus(usage)
        about = {name: self._about[name] for name in (words.PROVIDER, words.MODEL, words.AGENT) if name in self._about}
        about[words.OPERATION] = words.CHAT
        measured = self.telemetry
        measured.operation_duration.record((at - self._asked) / 1e9, about)
        for kind, count in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            if count:
                measured.token_usage.record(count, {**about, words.TOKEN_TYPE: kind})
        if usage.cost_usd:
            measured.cost.add(usage.cost_usd, about)

    def _step_ended(self, event: events.IterationFinished, at: int) -> None:
        if self._iteration is not None:
            self._iteration.set_attributes(
                {
                    "genba.intent": str(event.intent),
                    "genba.verdict": str(event.verdict),
                    "genba.commits": len(event.commits),
                    "genba.files": event.files,
                }
            )
        self._close_iteration(at)

    def _checked(self, name: str, result: CheckResult, parent: Span | None, at: int) -> None:
        span = self._span(name, parent, at - int(result.seconds * 1e9), {"genba.check.status": str(result.status)})
        if result.status is not CheckStatus.PASSED:
            span.set_attribute(words.ERROR_TYPE, str(result.status))
        span.end(at)

    def _verified(self, event: events.VerificationFinished, at: int) -> None:
        about: Attributes = {
            "genba.verdict": event.status,
            "genba.rejection": event.reason if event.status == "rejected" else "",
            "genba.commit": event.commit,
        }
        span = self._span("verify", self._part, at - int(event.seconds * 1e9), about)
        for goal in self._goals:
            self._checked(f"goal {goal.goal}", goal.result, span, _nanoseconds(goal.time))
            self.telemetry.goals.add(1, {"genba.goal": goal.goal, "genba.check.status": str(goal.result.status)})
        self._goals = []
        if event.status != "done":
            span.set_attribute(words.ERROR_TYPE, event.status)
        span.end(at)
        self.telemetry.verifications.add(
            1, {"genba.verdict": event.status, words.AGENT: self._about.get(words.AGENT, "")}
        )

    def _delivered(self, event: events.EffectPlanned | events.EffectDone | events.MergeFinished, at: int) -> None:
        match event:
            case events.EffectPlanned(effect=effect):
                self._planned[effect] = at
            case events.EffectDone(effect=effect):
                self._span(f"effect {effect}", self._part, self._planned.pop(effect, at)).end(at)
            case events.MergeFinished():
                about: Attributes = {"genba.merge.status": str(event.status), "genba.commit": event.commit}
                self._span("merge", self._part, self._planned.pop("merge", at), about).end(at)
                self.telemetry.merges.add(1, {"genba.merge.status": str(event.status)})

    def _ended(self, event: events.RunEnded, at: int) -> None:
        agent = self._about.get(words.AGENT, "")
        if self._part is not None:
            self._part.set_attributes(
                {
                    "genba.outcome": str(event.outcome),
                    "genba.iterations": event.iterations,
                    "genba.cost_usd": self._usage.cost_usd,
                    words.INPUT_TOKENS: self._usage.input_tokens,
                    words.OUTPUT_TOKENS: self._usage.output_tokens,
                }
            )
            if event.outcome in _FAILED:
                self._part.set_attribute(words.ERROR_TYPE, str(event.outcome))
                self._part.set_status(Status(StatusCode.ERROR, str(event.outcome)))
            about = {words.AGENT: agent, words.PROVIDER: self._about.get(words.PROVIDER, "")}
            self.telemetry.invoke_duration.record((at - self._began) / 1e9, about)
        self.telemetry.parts.add(1, {words.AGENT: agent, "genba.outcome": str(event.outcome)})
        self._close(at)

    def _close(self, at: int) -> None:
        self._close_iteration(at)
        if self._part is not None:
            self._part.end(at)
            self._part = None

    def _close_iteration(self, at: int) -> None:
        self._close_tool(at)
        for span in (self._chat, self._iteration):
            if span is not None:
                span.end(at)
        self._chat = self._iteration = None

    def _close_tool(self, at: int) -> None:
        if self._tool is not None:
            self._tool.end(at)
            self._tool = None

    def _span(
        self,
        name: str,
        parent: Span | None,
        at: int,
        about: Attributes | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Span:
        above = parent if parent is not None else first_part_of(self.telemetry, self.run, name)
        context = trace.set_span_in_context(above, Context())
        return self.telemetry.tracer.start_span(name, context, kind, attributes=about, start_time=at)


def first_part_of(telemetry: Telemetry, run: str, name: str) -> Span:
    """The span that everything of a run stands under, which another process may have made."""
    sampled = telemetry.sampler.should_sample(None, trace_of(run), name).decision is Decision.RECORD_AND_SAMPLE
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    return NonRecordingSpan(SpanContext(trace_of(run), first_span_of(run), is_remote=True, trace_flags=flags))


def _message(role: str, text: str) -> str:
    shown: list[dict[str, Any]] = [{"role": role, "parts": [{"type": "text", "content": text[:_LONGEST]}]}]
    return json.dumps(shown, ensure_ascii=False)


def _nanoseconds(time: str) -> int:
    return int(datetime.fromisoformat(time).timestamp() * 1_000_000) * 1_000
