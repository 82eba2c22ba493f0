"""How long, and how often: the share of `make test`, and the time of one input."""

import math
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

HANGS_SECONDS = 120.0
_CHECKS = [
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
    HealthCheck.large_base_example,
]


def share(examples: int) -> settings:
    """As `make test` plays: few examples, the same ones each time."""
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=_CHECKS,
        phases=(Phase.generate, Phase.shrink),
    )


def play(target: Any, number: int, examples: int) -> None:
    """One round from a seed. It raises what was found, with the smallest input that shows it."""
    seed(number)(_test_of(target, settings(share(examples), derandomize=False, print_blob=True)))()


def play_share(target: Any) -> None:
    """What `make test` plays of a target."""
    _test_of(target, share(target.share))()


def _test_of(target: Any, how: settings) -> Any:
    def fed(fed_with: Any) -> None:
        target(fed_with)

    fed_by: Any = given(target.strategy)
    return how(fed_by(fed))


class Hangs(AssertionError):
    """One input took longer than any may."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Insist on an end: by processor time, which a busy machine does not change, and by the clock for who waits."""
    began = time.process_time()
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise Hangs(f"no answer within {HANGS_SECONDS:g} seconds")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, HANGS_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    spent = time.process_time() - began
    if spent > seconds:
        raise Hangs(f"it took {spent:.1f} s of the processor, and {seconds:g} are allowed")


def memory() -> int:
    """The most megabytes that this process has held."""
    return math.ceil(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
