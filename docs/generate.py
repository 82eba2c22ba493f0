"""Write the generated reference pages: `make docs`. A test fails when one of them is stale.

With `--check`, list the stale pages and write nothing.
"""

import sys
import types
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
import yaml

from genba.blackboard.tasks import history
from genba.definitions.schemas import FILES
from genba.domain.fleet.progress import FleetEventKind
from genba.entrypoints.web.api import OPERATIONS
from genba.entrypoints.web.openapi import _REFUSALS as REFUSALS
from genba.entrypoints.web.operations import Nothing, Operation
from genba.wiring import adapter_files

REFERENCE = Path(__file__).parent / "reference"
MADE = "<!-- Made by `make docs`. Change docs/generate.py, not this page. -->"

GROUPS = {
    "field": "Project",
    "tasks": "Tasks",
    "fleet": "Sessions and the merge queue",
    "agents": "Agents",
}
PLAIN = {str: "text", int: "number", float: "number", bool: "yes or no"}

TEXTS = {
    "F": "the facilitator",
    "D": "definitions of agents",
    "C": "the core",
    "W": "the workflow over MCP",
    "E": "execution",
}
STATUSES = {
    "works": "work as written",
    "better": "do more than was asked",
    "differs": "differ on purpose",
    "partial": "are partial",
    "missing": "are missing",
}
NOT_YET = ("partial", "missing")
ABOUT_REQUIREMENTS = """\
Genba is based on five requirement texts. Each row names one requirement, its implementation (a module below `genba`, or
a command), the test that shows it, and the reason for a difference.

`make test-all` runs each of these tests. `tests/test_requirements.py` fails for a row without an existing test, for an
unknown module or command, and for a difference without a reason. The rows are in `docs/reference/requirements.yaml`."""

HISTORY_KINDS = {
    "created": "A task was added.",
    "edited": "Its title, text, labels or another field changed.",
    "status_changed": "Its status changed: `from`, `to`, `reason`.",
    "dependency_added": "It depends on another task.",
    "dependency_removed": "It no longer depends on that task.",
    "commented": "A comment was added.",
    "agent_commands_enabled": "A person permitted goals of agents to run programs.",
    "agent_commands_disabled": "A person withdrew that permission.",
    "approved": "A person approved a commit.",
    "verified": "A commit was verified: `status`, `commit`, `reason`.",
    "taken_over": "Another session continues it.",
    "part_began": "A segment of a session started: `part`, `cause`.",
    "part_ended": "A segment ended: `waits_for`, or `outcome`.",
    "merge_queued": "Verified work entered the merge queue of `target`.",
    "merge_settled": "It left the merge queue: `status`, `reason`.",
    "escalated": "A person must decide: `kind`, `question`.",
    "decided": "A person decided: `status`, `answer`.",
    "review_asked": "A review was requested.",
    "reviewed": "A reviewer gave a verdict.",
    "planned": "A planner proposed subtasks.",
    "parts_created": "The subtasks of a plan were created.",
    "plan_rejected": "A plan was rejected.",
    "held": "It was paused.",
    "released": "It was resumed.",
    "handed_over": "An attempt left a note for the next one.",
    "project_paused": "The project was paused.",
    "project_resumed": "The project was resumed.",
    "stopping": "The project was stopped.",
    "going_on": "The stop ended.",
    "provider_paused": "Genba does not call a provider until a time.",
    "executor_came": "A `genba work` started.",
    "executor_left": "A `genba work` ended.",
    "agent_registered": "An external agent was registered.",
    "passkey_changed": "Its passkey was changed or revoked.",
    "credential_issued": "An agent got its one-time credential.",
    "agent_connected": "An agent signed in.",
    "bound": "A connection was bound to a session.",
    "instance_stopped": "An agent must stop: `reason`.",
    "connection_closed": "A connection ended.",
    "phase_reached": "A state-driven agent reached the next phase of its workflow.",
    "noted": "An agent saved a note.",
    "messaged": "An agent sent a message.",
}
"""The meaning of each kind of event in the history. A kind that is missing here fails."""

SCREEN_KINDS = {
    "verified": "Work passed its required goals.",
    "queued": "Verified work entered the merge queue.",
    "merged": "Work landed.",
    "conflict": "Work does not merge. It returns to its author, with the paths.",
    "merge_failed": "A goal fails on the merged tree. The work returns to its author, with the evidence.",
    "stuck": "The merge queue cannot continue with this work.",
    "done": "A task is done.",
    "resumed": "Work continues after a pause.",
    "suspending": "Running sessions are being suspended.",
    "suspended": "Running sessions were suspended; everything is kept.",
    "notice": "A note for the user.",
}
"""The meaning of kinds without a docstring in the code."""

ABOUT_THE_API = """\
`genba serve` offers a JSON API under `/api`: the data that commands print with `--json`, and the decisions of people.
`/api/openapi.json` describes it as OpenAPI 3.1, `/api/docs` shows it in the browser. See also
[Use the HTTP API](../how-to/api.md).

## Requests

- Send `Authorization: Bearer TOKEN`. The operator's token may change data, the viewer's may only read. The tokens are
  in `.git/genba/serve.json`, or in `GENBA_SERVE_TOKEN` and `GENBA_SERVE_VIEWER_TOKEN`.
- A body is JSON, at most 2 MiB. Unknown fields and parameters are refused.
- Answers are JSON. Times are UTC.
- A change uses the same code as the command, and is complete when the answer arrives.

## Refusals

The body is `error`, with `kind`, `message`, `problems`, `unchanged`, `hint` (the next command) and `exit_code`."""
ABOUT_SCHEMAS = """\
`genba schema NAME` prints the JSON Schema of a file, a section or a line. Editors use it to complete and check files:

```sh
genba schema config > config.schema.json
```"""
ABOUT_HISTORY = """\
The append-only table `events`, shown by `genba task show`. Each event has a `kind`, an actor, a time and `data`."""


def http_api() -> str:
    rows = [
        "# The HTTP API",
        MADE,
        ABOUT_THE_API,
        table(("status", "why"), ((code, why) for code, why in REFUSALS.items())),
    ]
    for group, title in GROUPS.items():
        rows.append(f"## {title}")
        for each in (each for each in OPERATIONS if each.group == group):
            rows += operation(each)
    lost = {each.group for each in OPERATIONS} - set(GROUPS)
    if lost:
        raise SystemExit(f"error: docs/generate.py has no title for {lost}")
    return page(rows)


def operation(each: Operation) -> Iterator[str]:
    yield f"### {each.method} {each.path}"
    yield each.summary + (f" The same as `{each.command}`." if each.command else "")
    taken = [*fields(each.query, "query")] if each.query is not Nothing else []
    taken += [*fields(each.body, "body")] if each.body is not None else []
    if taken:
        yield table(("name", "where", "what", "meaning"), taken)
    yield f"Answers {word(each.answer)}."


def fields(kind: type[msgspec.Struct], where: str) -> Iterator[tuple[str, str, str, str]]:
    for field in msgspec.structs.fields(kind):
        needed = ", required" if field.required else ""
        yield f"`{field.encode_name}`", where, f"{word(field.type)}{needed}", meant(field.type)


def word(kind: Any) -> str:
    """The name of a type for readers."""
    if get_origin(kind) is Annotated:
        return word(get_args(kind)[0])
    if kind in PLAIN:
        return PLAIN[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        named = [each for each in inner if each is not type(None)]
        return word(named[0]) if len(named) == 1 else "one of several types"
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in inner)
    if origin in (list, tuple):
        return f"a list of {word(inner[0])}" if inner else "a list"
    if origin is dict or kind is dict or origin is Mapping:
        return "an object"
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return ", ".join(f"`{each}`" for each in kind)
    return f"`{kind.__name__}`" if isinstance(kind, type) else "JSON"


def meant(kind: Any) -> str:
    """The description of a type, also of an inner one; empty if it has none."""
    for each in (kind, *get_args(kind)):
        for meta in getattr(each, "__metadata__", ()):
            if getattr(meta, "description", None):
                return str(meta.description)
    return ""


def schemas() -> str:
    known = {**FILES, **adapter_files()}
    return page(
        [
            "# Schemas",
            MADE,
            ABOUT_SCHEMAS,
            table(("name", "what it describes"), ((f"`{name}`", known[name][1]) for name in sorted(known))),
        ]
    )


def events() -> str:
    kinds = [value for name, value in vars(history).items() if name.isupper() and isinstance(value, str)]
    strange = sorted(set(kinds) ^ set(HISTORY_KINDS))
    if strange:
        raise SystemExit(f"error: docs/generate.py has no text for {', '.join(strange)}, or a text for an old kind")
    output = docstrings_of(FleetEventKind)
    silent = [str(each) for each in FleetEventKind if each.name not in output and str(each) not in SCREEN_KINDS]
    if silent:
        raise SystemExit(f"error: docs/generate.py has no text for {', '.join(silent)}")
    return page(
        [
            "# Events",
            MADE,
            "Genba records events in the database and in journals, and shows them on the screen.",
            "## History in the database",
            ABOUT_HISTORY,
            table(("kind", "meaning"), ((f"`{kind}`", HISTORY_KINDS[kind]) for kind in kinds)),
            "## Journal of a session",
            "[The journal](journal.md) lists its events with their fields.",
            "## Screen of `genba work`",
            "Without a terminal, or with `--plain`, each event is one line.",
            table(
                ("word", "meaning"),
                ((f"`{each}`", output.get(each.name) or SCREEN_KINDS[str(each)]) for each in FleetEventKind),
            ),
        ]
    )


def requirements() -> str:
    rows = yaml.safe_load((REFERENCE / "requirements.yaml").read_text(encoding="utf-8"))
    left = [row for row in rows if row.get("status") in NOT_YET]
    parts = ["# Requirements", MADE, ABOUT_REQUIREMENTS, tally(rows), "## Not yet"]
    parts.append(requirement_table(left) if left else "Every requirement is met.")
    for letter, title in TEXTS.items():
        parts += [f"## {letter}: {title}", requirement_table([row for row in rows if row["id"].startswith(letter)])]
    return page(parts)


def tally(rows: Any) -> str:
    counts = Counter(row.get("status", "works") for row in rows)
    message = ", ".join(f"{counts[status]} {words}" for status, words in STATUSES.items())
    return f"{len(rows)} requirements: {message}."


def requirement_table(rows: Any) -> str:
    head = ("id", "requirement", "where", "shown by", "status")
    return table(
        head,
        (
            (
                row["id"],
                row["requirement"],
                ", ".join(f"`{where}`" for where in row["where"]),
                ", ".join(f"`tests/{test}`" for test in row["tests"]) or "no test",
                f"{row['status']}: {row['reason']}" if "status" in row else "works",
            )
            for row in rows
        ),
    )


def docstrings_of(kind: type[StrEnum]) -> dict[str, str]:
    """The docstring below each name of an enumeration."""
    import ast  # noqa: PLC0415  (here alone)
    import inspect  # noqa: PLC0415

    body = ast.parse(inspect.getsource(kind)).body[0]
    assert isinstance(body, ast.ClassDef)  # noqa: S101  (it is one)
    found = {}
    for first, second in zip(body.body, body.body[1:], strict=False):
        if isinstance(first, ast.Assign) and isinstance(second, ast.Expr) and isinstance(second.value, ast.Constant):
            name = first.targets[0]
            assert isinstance(name, ast.Name)  # noqa: S101
            found[name.id] = " ".join(str(second.value.value).split())
    return found


def table(head: tuple[str, ...], rows: Any) -> str:
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines)


def page(parts: list[str]) -> str:
    return "\n\n".join(parts) + "\n"


PAGES = {"http-api.md": http_api, "schemas.md": schemas, "events.md": events, "requirements.md": requirements}


def stale() -> list[str]:
    """The pages that differ from the code."""
    found = []
    for name, make in PAGES.items():
        path = REFERENCE / name
        if not path.exists() or path.read_text(encoding="utf-8") != make():
            found.append(name)
    return found


def main() -> int:
    found = stale()
    if "--check" in sys.argv:
        sys.stdout.writelines(f"stale: docs/reference/{name}\n" for name in found)
        return 1 if found else 0
    for name in found:
        (REFERENCE / name).write_text(PAGES[name](), encoding="utf-8")
        sys.stdout.write(f"wrote docs/reference/{name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
