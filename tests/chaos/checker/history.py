"""The history of each task, played again from its first line: it must arrive at the rows as they stand.

What leads from one status to another is written down here again, from the reference, and not taken from the product.
"""

from collections import Counter
from collections.abc import Iterator

from tests.chaos.checker.findings import Finding, Law
from tests.chaos.checker.rows import Board, Row
from tests.chaos.plan import Plan

_ANYBODY = "human manager orchestrator worker reviewer"
WAYS: dict[tuple[str, str], str] = {
    ("backlog", "open"): "human manager",
    ("open", "in_progress"): "orchestrator worker",
    ("in_progress", "review"): "orchestrator",
    ("in_progress", "open"): "orchestrator",
    ("in_progress", "done"): "worker tracker",
    ("in_progress", "blocked"): _ANYBODY,
    ("open", "blocked"): "human manager orchestrator",
    ("review", "done"): "orchestrator tracker",
    ("review", "open"): "orchestrator",
    ("backlog", "done"): "tracker",
    ("open", "done"): "tracker",
    ("blocked", "done"): "tracker",
    ("review", "in_progress"): "orchestrator reviewer",
    ("blocked", "open"): "human manager orchestrator",
    **dict.fromkeys(
        ((start, "cancelled") for start in ("backlog", "open", "in_progress", "review", "blocked")),
        "human manager tracker",
    ),
    ("done", "open"): "human tracker",
    ("cancelled", "open"): "human tracker",
}
"""Who may lead a task from one status to another."""
_CHANGES = ("created", "edited", "status_changed", "dependency_added", "dependency_removed")
"""Each of these raises the version of the task by one; the others only add something to it."""


def fits(board: Board) -> Iterator[Finding]:
    """Every task, and the numbers of the lines."""
    yield from (Finding(Law.HISTORY, what) for what in _numbers(board))
    for number, row in board.tasks.items():
        for what in (*_replayed(number, row, board.events_of[number]), *_beside(board, number)):
            yield Finding(Law.HISTORY, what)


def _numbers(board: Board) -> Iterator[str]:
    """In a file nothing was ever taken away, so that no number is missing. A server may skip some."""
    ids = [row["id"] for row in board.events]
    if not board.on_server and ids != list(range(1, len(ids) + 1)):
        missing = sorted(set(range(1, max(ids, default=0) + 1)) - set(ids))
        yield f"events are missing: {missing[:5]}"
    for event in board.events:
        if event["task_id"] is not None and event["task_id"] not in board.numbers:
            yield f"event {event['id']} is about a task that is not there"


def _replayed(number: int, row: Row, events: list[Row]) -> Iterator[str]:
    status, version, blocker = "", 0, None
    for at, event in enumerate(events):
        kind, data, place = event["kind"], event["data"], f"#{number}, event {event['id']}"
        if (kind == "created") is not (at == 0):
            yield f"{place}: {kind} is {'not ' if at == 0 else ''}the first line"
        version += kind in _CHANGES
        if event["version"] > version or (kind in _CHANGES and event["version"] != version):
            yield f"{place}: {kind} is of version {event['version']}, after {version} changes"
        if kind == "created":
            status = data.get("status", "")
        elif kind == "status_changed":
            yield from (f"{place}: {why}" for why in _refused(status, event))
            status, blocker = data.get("to", ""), (data.get("blocker") or {}).get("kind")
    if status != row["status"]:
        yield f"#{number} is {row['status']}, and its history ends with {status or 'nothing'}"
    if version != row["version"]:
        yield f"#{number} is of version {row['version']}, after {version} changes"
    if (blocker if status == "blocked" else None) != row["blocker_kind"]:
        yield f"#{number} has the blocker {row['blocker_kind']}, and its history says {blocker}"


def _refused(status: str, event: Row) -> Iterator[str]:
    data = event["data"]
    start, to = data.get("from", ""), data.get("to", "")
    if start != status:
        yield f"it goes from {start}, and was {status}"
    allowed = WAYS.get((start, to))
    if allowed is None:
        yield f"there is no way from {start} to {to}"
    elif event["actor_kind"] not in allowed.split() and "because" not in data:
        yield f"a {event['actor_kind']} may not lead it from {start} to {to}"
    if to == "review" and not data.get("commit"):
        yield "it goes to review without a commit"


def _beside(board: Board, number: int) -> Iterator[str]:
    """What events tell of and what other tables hold is the same."""
    events = board.events_of[number]
    verdicts = Counter((row["commit"], row["status"]) for row in board.by_task("verifications")[number])
    result = Counter((each["data"]["commit"], each["data"]["status"]) for each in events if each["kind"] == "verified")
    if verdicts != result:
        yield f"#{number} has {verdicts.total()} verdicts, and its history tells of {result.total()} or of others"
    asked = Counter(row["kind"] for row in board.by_task("escalations")[number])
    if asked != (escalated := Counter(each["data"]["kind"] for each in events if each["kind"] == "escalated")):
        yield f"#{number} has the escalations {dict(asked)}, and its history tells of {dict(escalated)}"
    notes = sum(row["type"] == "handover" for row in board.by_task("messages")[number])
    if notes != (handed := sum(each["kind"] == "handed_over" for each in events)):
        yield f"#{number} has {notes} notes for the next attempt, and its history tells of {handed}"


def dependencies_first(board: Board, plan: Plan) -> Iterator[Finding]:
    """What a task waits for was done before it began. The order of the lines decides, never their time."""
    edges = {(board.numbers.get(row["task_id"]), board.numbers.get(row["depends_on_id"]))
             for row in board.tables.get("task_dependencies", [])}  # fmt: skip
    for part in plan.parts:
        began = [each["id"] for each in board.events_of[part.number] if _goes_to(each, "in_progress")]
        for other in part.after:
            if (part.number, other) not in edges:
                yield Finding(Law.DEPENDENCIES, f"it is forgotten that #{part.number} waits for #{other}")
            done = [each["id"] for each in board.events_of[other] if _goes_to(each, "done")]
            if began and (not done or done[0] > began[0]):
                yield Finding(Law.DEPENDENCIES, f"#{part.number} began before #{other} was done")


def _goes_to(event: Row, status: str) -> bool:
    return bool(event["kind"] == "status_changed" and event["data"].get("to") == status)
