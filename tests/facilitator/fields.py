"""Facts of issues by hand, for what is judged without git."""

from typing import Any

from genba.domain.facilitation import (
    AvailableAgent,
    How,
    IssueAssessment,
    IssueFacts,
    SeenCommit,
    SeenSession,
)
from genba.domain.tracker.remote import TrackedPullRequest
from genba.judgement.triage.assessment import assess_all

NOW = "2026-01-08T08:00:00.000000Z"


def at(day: int, hour: int = 8) -> str:
    return f"2026-01-{day:02d}T{hour:02d}:00:00.000000Z"


def issue(number: int = 12, **result: Any) -> IssueFacts:
    return IssueFacts(number=number, **{"title": "Add login", "last_at": at(7, 10), **result})


def field(*issues: IssueFacts) -> dict[int, IssueFacts]:
    return {each.number: each for each in issues}


def judged(*issues: IssueFacts) -> dict[int, IssueAssessment]:
    return assess_all(field(*issues), NOW)


def landed(number: int = 1, **result: Any) -> SeenCommit:
    return SeenCommit(**{"sha": f"{number:040x}", "time": at(6), "how": How.TRAILER, "on_base": True, **result})


def session(run: str = "iterator-12-1", **result: Any) -> SeenSession:
    return SeenSession(run=run, **{"agent": "iterator", "status": "running", "branch": "genba/12-add-login", **result})


def request(number: int = 31, **result: Any) -> TrackedPullRequest:
    return TrackedPullRequest(number=number, reference=f"PR_{number}", url="", **{"target": "main", **result})


def agent(name: str = "iterator", *capabilities: str, **result: Any) -> AvailableAgent:
    given: dict[str, Any] = {
        "display_name": name.title(),
        "description": "Works on one issue",
        "parameters": {"issue": {"type": "number", "required": True}},
        **result,
    }
    return AvailableAgent(name=name, capabilities=capabilities or ("issue-action",), **given)


REVIEWER = agent("reviewer", "review-action", description="Reads the work on an issue")
