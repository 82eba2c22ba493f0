"""What sends traces and metrics, by the variables of OpenTelemetry."""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from genba import __version__
from genba.connections.telemetry.ids import RunIds
from genba.domain.errors import ConfigurationError
from genba.domain.problems import Problem

_SCOPE = "genba"
_LAST_SECONDS = 10.0
"""How long a process that ends waits for the collector."""
_TALKATIVE = ("opentelemetry", "urllib3")
_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"
_TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68)
_LONG = (0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 14400)

Reading = Callable[[], list[tuple[int | float, dict[str, str]]]]
"""What a gauge shows now: values with their attributes."""


class Telemetry:
    """Tracer and instruments of one process. Nothing of it is global."""

    def __init__(self, processor: SpanProcessor | None, reader: MetricReader | None) -> None:
        self.ids = RunIds()
        resource = _resource()
        self._traces = TracerProvider(resource=resource, id_generator=self.ids, shutdown_on_exit=False)
        if processor is not None:
            self._traces.add_span_processor(processor)
        self._metrics = MeterProvider([reader] if reader is not None else [], resource, shutdown_on_exit=False)
        self.sampler = self._traces.sampler
        self.tracer = self._traces.get_tracer(_SCOPE, __version__)
        self.meter = self._metrics.get_meter(_SCOPE, __version__)
        self.complaints = _Complaints()
        for name in _TALKATIVE:  # they would write into the output of the command
            logger = logging.getLogger(name)
            logger.addHandler(self.complaints)
            logger.propagate = False
        self._instruments()

    def _instruments(self) -> None:
        meter = self.meter

        def seconds(name: str, description: str, bounds: tuple[float, ...] = _LONG) -> Any:
            return meter.create_histogram(name, "s", description, explicit_bucket_boundaries_advisory=bounds)

        self.token_usage = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
        self.operation_duration = seconds("gen_ai.client.operation.duration", "How long an answer took.", _SECONDS)
        self.invoke_duration = seconds("gen_ai.invoke_agent.duration", "How long one part of a session took.")
        self.parts = meter.create_counter("genba.session.parts", "{part}", "Parts of sessions, by how they ended.")
        self.cost = meter.create_counter("genba.cost", "USD", "What answers cost, as their agents tell it.")
        self.verifications = meter.create_counter("genba.verifications", "{verdict}", "Verdicts on commits.")
        self.goals = meter.create_counter("genba.goals.checked", "{goal}", "Goals that were checked, by result.")
        self.merges = meter.create_counter("genba.merges", "{merge}", "Merges, by what came of them.")
        self.queue_wait = seconds("genba.merge_queue.wait", "From the queue to what came of it.")
        self.fleet_events = meter.create_counter("genba.fleet.events", "{event}", "What happened in a fleet.")

    def gauge(self, name: str, unit: str, description: str, reading: Reading) -> None:
        def observed(_options: CallbackOptions) -> list[Observation]:
            return [Observation(value, attributes) for value, attributes in reading()]

        self.meter.create_observable_gauge(name, [observed], unit, description)

    def close(self) -> str:
        """Send what is left, for a little while; what went wrong since it was opened, in a sentence."""
        endings = [threading.Thread(target=each.shutdown, daemon=True) for each in (self._traces, self._metrics)]
        deadline = time.monotonic() + _LAST_SECONDS
        for ending in endings:
            ending.start()
        for ending in endings:
            ending.join(max(0.0, deadline - time.monotonic()))
        if any(ending.is_alive() for ending in endings):
            self.complaints.first = self.complaints.first or "it took too long"
        for name in _TALKATIVE:
            logging.getLogger(name).removeHandler(self.complaints)
        return self.complaints.first


class _Complaints(logging.Handler):
    """Keeps the first thing that went wrong. Its words may name an address with a key in it: only its kind is kept."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.first = ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("opentelemetry"):
            self.first = self.first or f"{collector(os.environ)} did not take it"


def collector(environment: Mapping[str, str]) -> str:
    """The host that everything is sent to."""
    url = environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or environment.get(_ENDPOINT, "http://localhost:4318")
    try:
        return urlsplit(url).hostname or "nowhere"
    except ValueError:
        return "nowhere"


def open_telemetry(environment: Mapping[str, str]) -> Telemetry:
    """Telemetry as the variables of OpenTelemetry want it. Nothing is sent yet."""
    protocol = environment.get(_PROTOCOL, "http/protobuf")
    if protocol != "http/protobuf":
        raise _wrong(_PROTOCOL, f'"{protocol[:40]}" is not spoken here: only http/protobuf is', f"unset {_PROTOCOL}")
    traces = _chosen(environment, "OTEL_TRACES_EXPORTER")
    metrics = _chosen(environment, "OTEL_METRICS_EXPORTER")
    return Telemetry(_processor(traces), _reader(metrics))


def _processor(kind: str) -> SpanProcessor | None:
    if kind == "none":
        return None
    if kind == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter  # noqa: PLC0415  (only who asks for it)

        return BatchSpanProcessor(ConsoleSpanExporter(out=sys.stderr))
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

    return BatchSpanProcessor(OTLPSpanExporter())


def _reader(kind: str) -> MetricReader | None:
    if kind == "none":
        return None
    if kind == "console":
        from opentelemetry.sdk.metrics.export import ConsoleMetricExporter  # noqa: PLC0415  (only who asks for it)

        return PeriodicExportingMetricReader(ConsoleMetricExporter(out=sys.stderr))
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415

    return PeriodicExportingMetricReader(OTLPMetricExporter())


def _chosen(environment: Mapping[str, str], variable: str) -> str:
    kind = environment.get(variable) or "otlp"
    if kind not in ("otlp", "console", "none"):
        raise _wrong(variable, f'"{kind[:40]}" is not known here: otlp, console or none', f"{variable}=otlp")
    return kind


def _resource() -> Resource:
    named = Resource.create()
    own = {SERVICE_VERSION: __version__}
    if str(named.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        own[SERVICE_NAME] = "genba"
    return named.merge(Resource(own))


def _wrong(variable: str, description: str, hint: str) -> ConfigurationError:
    return ConfigurationError((Problem("environment", variable, description, hint),), hint=hint)
