"""Which agent tries a task next, and when. After enough failures a person decides."""

from collections.abc import Collection, Sequence

import msgspec

from genba.definitions.project.work_sections import AttemptSettings
from genba.domain.errors import ConfigurationError, GenbaError, NotFoundError, UsageError
from genba.domain.fleet.records import FleetSession
from genba.domain.timestamps import later
from genba.judgement.language.sentences import in_language

HOPELESS = "configuration: "
"""How the reason of a session begins that would end the same way however often it is tried."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    agent: str
    since: str = ""
    not_before: str = ""
    """The wait after the last failure. Empty: at once."""
    why: str = ""


class NoAttemptLeft(msgspec.Struct, frozen=True):
    reason: str


def error_text(error: GenbaError) -> str:
    """An error as the reason of a session: one that trying again cannot help says so."""
    hopeless = isinstance(error, ConfigurationError | NotFoundError | UsageError)
    return f"{HOPELESS}{error.message}" if hopeless else error.message


def next_attempt(
    first: str, failures: Sequence[FleetSession], known: Collection[str], settings: AttemptSettings
) -> Attempt | NoAttemptLeft:
    """The agent of the next attempt. `failures` are those of this purpose, oldest first; `known` who can be started."""
    if not failures:
        return Attempt(agent=first)
    last = failures[-1]
    if last.reason.startswith(HOPELESS):
        return NoAttemptLeft(f"{last.agent} cannot be run: {last.reason.removeprefix(HOPELESS)}")
    count = len(failures)
    if count >= settings.max:
        return NoAttemptLeft(f"{count} of {settings.max} attempts failed{_in_all(failures)}")
    not_before = later(last.ended_at, backoff(count, settings))
    for agent in dict.fromkeys((first, *settings.alternates)):
        tried = sum(failure.agent == agent for failure in failures)
        if agent in known and tried < settings.per_agent:
            why = f"attempt {count + 1}: {last.agent} ended {last.outcome or 'without a result'}"
            return Attempt(agent=agent, since=last.ended_at, not_before=not_before, why=why)
    failed = f"{count} attempt{'' if count == 1 else 's'} failed{_in_all(failures)}"
    return NoAttemptLeft(f"{failed}, and no other agent is left to try")


def _in_all(failures: Sequence[FleetSession]) -> str:
    """How many sessions the task has had, where these are not all: a person may have let it be tried again."""
    ever = max(failure.attempt for failure in failures)
    return f" ({ever} sessions so far)" if ever > len(failures) else ""


def backoff(failures: int, settings: AttemptSettings) -> float:
    """Seconds to wait after so many failures: doubled each time, up to the longest."""
    doubled = settings.backoff_seconds * 2.0 ** min(failures - 1, 60)
    return min(doubled, settings.backoff_max_seconds)


def tried(failures: Sequence[FleetSession], language: str = "en") -> list[dict[str, object]]:
    """What was tried, for the person who decides."""
    return [
        {
            "run": failure.run,
            "agent": failure.agent,
            "attempt": failure.attempt,
            "purpose": str(failure.purpose),
            "outcome": failure.outcome,
            "reason": in_language(language, failure.reason),
            "branch": failure.branch,
            "iterations": failure.iterations,
            "cost_usd": failure.cost_usd,
            "ended_at": failure.ended_at,
        }
        for failure in failures
    ]
