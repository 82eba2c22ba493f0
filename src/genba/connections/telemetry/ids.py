"""Ids that follow from the id of a run: its parts, on whichever hosts, are one trace."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.sdk.trace.id_generator import RandomIdGenerator


def trace_of(run: str) -> int:
    """The trace of a run; never 0, which means none."""
    return int.from_bytes(_digest("trace", run)[:16], "big") or 1


def first_span_of(run: str) -> int:
    """The span of the first part of a run, under which the later ones stand."""
    return int.from_bytes(_digest("span", run)[:8], "big") or 1


def _digest(what: str, run: str) -> bytes:
    return hashlib.sha256(f"genba:{what}:{run}".encode()).digest()


class RunIds(RandomIdGenerator):
    """Random ids, but for a span whose ids are given."""

    def __init__(self) -> None:
        self._given = threading.local()

    @contextmanager
    def given(self, trace: int, span: int) -> Iterator[None]:
        self._given.ids = (trace, span)
        try:
            yield
        finally:
            self._given.ids = None

    def generate_trace_id(self) -> int:
        ids: tuple[int, int] | None = getattr(self._given, "ids", None)
        return ids[0] if ids is not None else super().generate_trace_id()

    def generate_span_id(self) -> int:
        ids: tuple[int, int] | None = getattr(self._given, "ids", None)
        return ids[1] if ids is not None else super().generate_span_id()
