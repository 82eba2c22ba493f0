"""The outside, as one run sees it: a bundle of ports."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from genba.domain.ports import (
    AgentAdapter,
    Checks,
    Clock,
    Forge,
    Journal,
    Processes,
    Repository,
    Tracker,
    WorkingTrees,
)
from genba.judgement.completion import CompletionHandler

ActionHandler = Callable[[dict[str, Any]], object]


class World(msgspec.Struct, frozen=True, kw_only=True):
    adapter: AgentAdapter
    adapter_commits: bool
    """Whether Genba commits what the instance left, because its adapter asks for it."""
    trees: WorkingTrees
    repository: Repository
    checks: Checks
    processes: Processes
    tracker: Tracker
    forge: Forge | None
    journal: Journal
    clock: Clock
    redact: Callable[[str], str]
    """Hides secrets in a text that leaves the run."""
    jitter: Callable[[], float]
    """A number in [0, 1) that spreads the retries of many workers."""
    completion_handlers: Mapping[str, CompletionHandler]
    action_handlers: Mapping[str, ActionHandler]
    environment: Mapping[str, str]
    files: str
    """The folder for the files of this run."""
