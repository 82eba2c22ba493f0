"""Telemetry as whole processes send it: to a collector that takes it, to one that does not, and not at all."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from genba.connections.telemetry.ids import trace_of
from tests.fleet.yard import Yard
from tests.notices.receiver import Receiver, receiving
from tests.project import GENBA, Project
from tests.test_imports import loaded

LEFT_OUT = (
    "opentelemetry.sdk",
    "opentelemetry.exporter",
    "genba.connections.telemetry",
    "genba.connections.telemetry.process",
)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def measured(project: Project, receiver: Receiver) -> Project:
    """A project whose telemetry goes to the receiver."""
    project.agent()
    project.write(".genba/config.yaml", "telemetry: {enabled: true}\n")
    project.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = receiver.address
    return project


def spans(receiver: Receiver) -> list[Any]:
    found = []
    for post in receiver.posts:
        if post.path == "/v1/traces":
            request = ExportTraceServiceRequest.FromString(post.body)
            found += [span for each in request.resource_spans for scope in each.scope_spans for span in scope.spans]
    return found


def metrics(receiver: Receiver) -> set[str]:
    found = set()
    for post in receiver.posts:
        if post.path == "/v1/metrics":
            request = ExportMetricsServiceRequest.FromString(post.body)
            named = (
                metric.name
                for each in request.resource_metrics
                for scope in each.scope_metrics
                for metric in scope.metrics
            )
            found |= set(named)
    return found


def services(receiver: Receiver) -> set[str]:
    found = set()
    for post in receiver.posts:
        if post.path == "/v1/traces":
            for each in ExportTraceServiceRequest.FromString(post.body).resource_spans:
                values = {one.key: one.value.string_value for one in each.resource.attributes}
                found.add(values["service.name"])
    return found


def test_a_run_sends_its_trace_and_its_metrics_before_it_ends(measured: Project, receiver: Receiver) -> None:
    result = measured.run("worker", OTEL_EXPORTER_OTLP_HEADERS="x-key=a-key-of-ours")
    found = spans(receiver)
    names = {span.name for span in found}
    assert {"invoke_agent worker", "merge"} <= names
    assert any(name.startswith("chat") for name in names)
    assert {span.trace_id.hex() for span in found} == {f"{trace_of(result['run']):032x}"}
    assert {"gen_ai.client.operation.duration", "genba.session.parts"} <= metrics(receiver)
    assert services(receiver) == {"genba"}
    assert {post.headers.get("x-key") for post in receiver.posts} == {"a-key-of-ours"}


def test_the_service_is_named_by_its_variable(measured: Project, receiver: Receiver) -> None:
    measured.run("worker", OTEL_SERVICE_NAME="our-genba")
    assert services(receiver) == {"our-genba"}


def test_a_collector_that_is_not_there_costs_a_run_nothing_but_a_word(measured: Project) -> None:
    done = measured.genba(
        "run", "worker", "--plain", check=0, cwd=None, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1"
    )
    warnings = [line for line in done.err.splitlines() if "telemetry" in line]
    assert warnings == ["warning: telemetry was not sent, or not all of it: 127.0.0.1 did not take it"]
    assert "Traceback" not in done.err


def test_a_collector_that_hangs_delays_no_process_for_long(measured: Project, receiver: Receiver) -> None:
    receiver.silent.set()
    done = measured.genba("run", "worker", check=0)
    assert "telemetry was not sent, or not all of it" in done.err


def test_parts_of_a_session_in_a_fleet_are_one_trace(project: Project, receiver: Receiver) -> None:
    with Yard(project) as yard:
        yard.agent()
        yard.set(telemetry={"enabled": True})
        yard.task(1, "Add a page")
        yard.work(OTEL_EXPORTER_OTLP_ENDPOINT=receiver.address)
    found = spans(receiver)
    parts = [span for span in found if span.name == "invoke_agent worker"]
    assert len(parts) == 2
    assert len({span.trace_id for span in found}) == 1
    first, second = sorted(parts, key=lambda span: int(span.start_time_unix_nano))
    assert first.parent_span_id == b""
    assert second.parent_span_id == first.span_id
    (merge,) = (span for span in found if span.name == "merge")
    assert merge.parent_span_id == first.span_id
    assert {"genba.merge_queue.wait", "genba.merge_queue.depth", "genba.workers", "genba.merges"} <= metrics(receiver)


def test_nothing_of_it_is_loaded_where_it_is_off(project: Project, receiver: Receiver) -> None:
    project.agent()
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = receiver.address
    try:
        found = loaded(project.root, "run", "worker")
    finally:
        del os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]
    assert [name for name in found if name.startswith(LEFT_OUT)] == []
    assert receiver.posts == []


@pytest.mark.parametrize(
    ("variable", "value", "wrong"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "only http/protobuf is"),
        ("OTEL_TRACES_EXPORTER", "zipkin", "otlp, console or none"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_starts(
    measured: Project, variable: str, value: str, wrong: str
) -> None:
    measured.environment[variable] = value
    done = measured.genba("run", "worker", check=3)
    assert variable in done.err
    assert wrong in done.err
    assert measured.branches() == ["main"]


def without_the_packages(folder: Path) -> str:
    """A path on which the packages of the extra cannot be imported."""
    package = folder / "opentelemetry" / "sdk"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('not installed')\n")
    return str(folder)


def test_where_the_packages_are_missing_the_command_that_brings_them_is_reported(
    measured: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = without_the_packages(tmp_path_factory.mktemp("missing"))
    environment = {**os.environ, **measured.environment, "PYTHONPATH": path}
    words = [str(GENBA), "run", "worker"]
    done = subprocess.run(words, cwd=measured.root, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 3
    assert "telemetry.enabled: the packages for it are not installed" in done.stderr
    assert "pip install 'genba[telemetry]'" in done.stderr


def test_the_doctor_says_where_telemetry_goes(measured: Project) -> None:
    found = measured.genba("doctor", "--json").json["findings"]
    (finding,) = (each for each in found if each["name"] == "telemetry")
    assert (finding["health"], finding["detail"]) == ("fine", "to 127.0.0.1")


def test_settings_of_telemetry_are_read(project: Project) -> None:
    project.agent()
    project.write(".genba/config.yaml", yaml.safe_dump({"telemetry": {"enable": True}}))
    done = project.genba("run", "worker", check=3)
    assert "telemetry.enable" in done.err
