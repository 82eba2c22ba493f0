"""The events of runs as spans and metrics, by the conventions for generative AI."""

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from genba.connections.telemetry.fleet import FleetTelemetry
from genba.connections.telemetry.ids import first_span_of, trace_of
from genba.connections.telemetry.runs import RunTelemetry
from genba.connections.telemetry.sending import Telemetry
from genba.connections.telemetry.words import provider_of
from genba.domain import events as report
from genba.domain.fleet.progress import FleetEvent, FleetEventKind, FleetView, QueueEntryView, WorkerView
from genba.domain.fleet.records import EntryStatus
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.replies import Usage
from genba.domain.sessions.workspaces import MergeStatus, Workspace

RUN = "builder-4-1-5bbcfd"
SECRETS = ("the prompt of a person", "the reply of an agent", "secret-file.txt", "A private title", "a private reason")


class Collector:
    """Telemetry that is kept in memory."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self.telemetry = Telemetry(SimpleSpanProcessor(self.exporter), self.reader)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def span(self, name: str) -> ReadableSpan:
        return next(span for span in self.spans if span.name == name)

    def tree(self) -> dict[str, str]:
        """By span, the one that it stands under."""
        names = {span.context.span_id: span.name for span in self.spans if span.context}
        return {span.name: names.get(span.parent.span_id, "?") if span.parent else "" for span in self.spans}

    def points(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        found = [
            metric
            for resource in (data.resource_metrics if data is not None else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
        ]
        return [point for metric in found for point in metric.data.data_points]


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.telemetry.close()


def workspace() -> Workspace:
    return Workspace(run=RUN, path="/w", git_dir="/g", branch="genba/4", base_branch="main", base="c0", isolated=False)


def started() -> report.RunStarted:
    return report.RunStarted(
        adapter="claude-code", model="sonnet", definition="d1", workspace=workspace(), title=SECRETS[3], sandbox="none"
    )


def journal(*events: report.Event, begins: int = 0) -> list[report.Event]:
    """The events, one second after the other, as a journal stamps them."""
    from msgspec.structs import replace

    return [
        replace(event, time=f"2026-11-16T12:00:{begins + number:02}.000Z", run=RUN, agent="builder", issue=4)
        for number, event in enumerate(events)
    ]


def a_part() -> list[report.Event]:
    passed = CheckResult(name="tests_pass", status=CheckStatus.PASSED, seconds=0.5)
    usage = Usage(5200, 350, 0.02)
    return journal(
        started(),
        report.IterationStarted(step="work", iteration=1, model="sonnet", prompt_from="p", prompt=SECRETS[0]),
        report.ToolUsed(tool="Edit", target=SECRETS[2]),
        report.ReplyReceived(text=SECRETS[1], usage=usage),
        report.CheckFinished(result=passed),
        report.IterationFinished(
            step="work",
            iteration=1,
            intent="next",
            verdict="complete",
            reason=SECRETS[4],
            usage=usage,
            seconds=4,
            state={},
        ),
        report.GoalChecked(goal="tests_pass", level="dod", result=passed),
        report.VerificationFinished(status="done", commit="c1", seconds=2),
        report.EffectPlanned(effect="merge"),
        report.MergeFinished(status=MergeStatus.MERGED, commit="c2"),
        report.RunEnded(outcome=Outcome.COMPLETED, reason=SECRETS[4], usage=usage, iterations=1, seconds=10),
    )


def hear(collector: Collector, events: list[report.Event], content: bool = False) -> RunTelemetry:
    listener = RunTelemetry(collector.telemetry, RUN, content)
    for event in events:
        listener(event)
    assert listener.broken == ""
    return listener


def test_a_part_is_a_tree_of_what_happened_in_it(collector: Collector) -> None:
    hear(collector, a_part())
    assert collector.tree() == {
        "invoke_agent builder": "",
        "step work": "invoke_agent builder",
        "chat sonnet": "step work",
        "execute_tool Edit": "chat sonnet",
        "check tests_pass": "step work",
        "verify": "invoke_agent builder",
        "goal tests_pass": "verify",
        "merge": "invoke_agent builder",
    }


def test_spans_carry_the_attributes_of_the_conventions(collector: Collector) -> None:
    hear(collector, a_part())
    part = collector.span("invoke_agent builder")
    assert part.attributes is not None
    assert dict(part.attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.agent.name": "builder",
        "gen_ai.conversation.id": RUN,
        "gen_ai.request.model": "sonnet",
        "gen_ai.usage.input_tokens": 5200,
        "gen_ai.usage.output_tokens": 350,
        "genba.run": RUN,
        "genba.resumed": False,
        "genba.task": 4,
        "genba.adapter": "claude-code",
        "genba.definition": "d1",
        "genba.sandbox": "none",
        "genba.outcome": "completed",
        "genba.iterations": 1,
        "genba.cost_usd": 0.02,
    }
    chat, tool = collector.span("chat sonnet"), collector.span("execute_tool Edit")
    assert chat.kind is SpanKind.CLIENT
    assert chat.attributes is not None
    assert tool.attributes is not None
    assert chat.attributes["gen_ai.operation.name"] == "chat"
    assert chat.attributes["gen_ai.usage.output_tokens"] == 350
    assert dict(tool.attributes) == {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "Edit"}


def test_times_are_those_of_the_events(collector: Collector) -> None:
    hear(collector, a_part())

    def seconds(name: str) -> float:
        span = collector.span(name)
        return ((span.end_time or 0) - (span.start_time or 0)) / 1e9

    wanted = {"invoke_agent builder": 10, "step work": 4, "chat sonnet": 2, "execute_tool Edit": 1, "verify": 2}
    assert {name: seconds(name) for name in wanted} == wanted
    assert seconds("check tests_pass") == 0.5
    assert seconds("merge") == 1


def test_nothing_that_people_or_agents_say_leaves_unless_the_project_says_so(collector: Collector) -> None:
    hear(collector, a_part())
    whole = "".join(span.to_json() for span in collector.spans)
    assert [word for word in SECRETS if word in whole] == []


def test_with_content_prompts_replies_and_targets_are_sent(collector: Collector) -> None:
    hear(collector, a_part(), content=True)
    chat = collector.span("chat sonnet").attributes or {}
    assert chat["gen_ai.input.messages"] == (
        '[{"role": "user", "parts": [{"type": "text", "content": "the prompt of a person"}]}]'
    )
    assert "the reply of an agent" in str(chat["gen_ai.output.messages"])
    assert (collector.span("execute_tool Edit").attributes or {})["gen_ai.tool.call.arguments"] == "secret-file.txt"


def test_the_parts_of_a_session_are_one_trace_wherever_they_run(collector: Collector) -> None:
    hear(collector, a_part())
    other = Collector()
    resumed = report.RunResumed(started=started())
    ended = report.RunEnded(outcome=Outcome.FAILED, reason="", usage=Usage(1, 1), iterations=2, seconds=1)
    hear(other, journal(resumed, ended, begins=30))
    first, second = collector.span("invoke_agent builder"), other.span("invoke_agent builder")
    other.telemetry.close()
    assert first.context is not None
    assert second.context is not None
    assert first.context.trace_id == second.context.trace_id == trace_of(RUN)
    assert first.context.span_id == first_span_of(RUN)
    assert second.parent is not None
    assert second.parent.span_id == first.context.span_id
    assert second.context.span_id != first.context.span_id
    assert second.status.status_code is StatusCode.ERROR
    assert (second.attributes or {})["genba.resumed"] is True
    assert trace_of(RUN) != trace_of("builder-4-2-000000")


def test_what_was_cut_off_is_ended_when_the_process_ends(collector: Collector) -> None:
    listener = hear(collector, a_part()[:3])
    assert collector.spans == []
    listener.end()
    assert {span.name for span in collector.spans} == {
        "invoke_agent builder",
        "step work",
        "chat sonnet",
        "execute_tool Edit",
    }
    assert collector.span("invoke_agent builder").status.description == "cut off"


def test_metrics_count_tokens_time_money_verdicts_goals_and_merges(collector: Collector) -> None:
    hear(collector, a_part())
    tokens = {
        point.attributes["gen_ai.token.type"]: point.sum for point in collector.points("gen_ai.client.token.usage")
    }
    assert tokens == {"input": 5200, "output": 350}
    (duration,) = collector.points("gen_ai.client.operation.duration")
    assert duration.sum == 2
    assert dict(duration.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "sonnet",
        "gen_ai.agent.name": "builder",
    }
    counted = {
        name: [(point.value, dict(point.attributes)) for point in collector.points(name)]
        for name in ("genba.session.parts", "genba.verifications", "genba.goals.checked", "genba.merges")
    }
    assert counted == {
        "genba.session.parts": [(1, {"gen_ai.agent.name": "builder", "genba.outcome": "completed"})],
        "genba.verifications": [(1, {"genba.verdict": "done", "gen_ai.agent.name": "builder"})],
        "genba.goals.checked": [(1, {"genba.goal": "tests_pass", "genba.check.status": "passed"})],
        "genba.merges": [(1, {"genba.merge.status": "merged"})],
    }
    assert [point.value for point in collector.points("genba.cost")] == [0.02]


def test_retries_and_refused_replies_are_reported_where_they_happened(collector: Collector) -> None:
    first = a_part()
    again = journal(
        *first[:2],
        report.AskRetried(reason="busy", wait_seconds=3, attempt=1),
        report.ReplyReceived(text="no JSON", usage=Usage(10, 1)),
        report.ReplyRefused(reason="no JSON", attempt=1),
        report.ReplyReceived(text="{}", usage=Usage(20, 2)),
        first[-1],
    )
    hear(collector, again)
    chats = [span for span in collector.spans if span.name == "chat sonnet"]
    assert [event.name for event in chats[0].events] == ["retry"]
    assert [(span.attributes or {})["gen_ai.usage.input_tokens"] for span in chats] == [10, 20]
    assert [event.name for event in collector.span("step work").events] == ["reply refused"]


def test_what_goes_wrong_here_hurts_no_run(collector: Collector) -> None:
    listener = RunTelemetry(collector.telemetry, RUN)
    listener(report.RunEnded(outcome=Outcome.FAILED, reason="", usage=Usage(), iterations=0, seconds=0, time="no time"))
    assert listener.broken == "ValueError"
    listener(a_part()[0])
    assert collector.spans == []


@pytest.mark.parametrize(
    ("adapter", "model", "provider"),
    [
        ("claude-code", "sonnet", "anthropic"),
        ("codex", "gpt-5", "openai"),
        ("opencode", "google/gemini-2.5", "gcp.gemini"),
        ("opencode", "somebody/model", "opencode"),
        ("scripted", "", "scripted"),
        ("", "", "unknown"),
    ],
)
def test_the_provider_is_named_by_the_words_of_the_conventions(adapter: str, model: str, provider: str) -> None:
    assert provider_of(adapter, model) == provider


def test_a_fleet_tells_its_queue_its_workers_and_each_merge_in_the_trace_of_its_session(collector: Collector) -> None:
    picture = FleetView(
        slots=4,
        workers=(WorkerView(task=4),),
        queue=(QueueEntryView(task=5, target="main", status=EntryStatus.QUEUED),),
        ready=2,
        open=3,
    )
    fleet = FleetTelemetry(collector.telemetry, lambda: picture)
    for kind in (FleetEventKind.STARTED, FleetEventKind.STEP, FleetEventKind.QUEUED):
        fleet(FleetEvent(kind=kind, task=4, run=RUN if kind is FleetEventKind.STARTED else ""))
    fleet(FleetEvent(kind=FleetEventKind.MERGED, task=4, title=SECRETS[3], detail=SECRETS[4]))
    merge = collector.span("merge")
    assert merge.context is not None
    assert merge.context.trace_id == trace_of(RUN)
    assert dict(merge.attributes or {}) == {"genba.merge.status": "merged", "genba.task": 4, "genba.run": RUN}
    assert [point.count for point in collector.points("genba.merge_queue.wait")] == [1]
    depth = {
        point.attributes["genba.entry.status"]: point.value for point in collector.points("genba.merge_queue.depth")
    }
    assert depth == {"queued": 1}
    workers = {point.attributes["genba.worker.state"]: point.value for point in collector.points("genba.workers")}
    assert workers == {"busy": 1, "free": 3}
    events = {point.attributes["genba.fleet.event"]: point.value for point in collector.points("genba.fleet.events")}
    assert events == {"started": 1, "queued": 1, "merged": 1}
