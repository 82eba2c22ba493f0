"""Writes the pages of the reference that are made from the code: `make docs`. A test fails when one of them is stale.

With `--check` nothing is written, and the stale pages are named.
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
    "field": "The field as a whole",
    "tasks": "Tasks",
    "fleet": "Sessions, runs, the merge queue, and the fleet",
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
Genba was founded on five texts. This page has one row for each of their requirements, in our own words: where it is
implemented (a module below `genba`, or a command), the test that shows it, and the reason where Genba does something
else on purpose.

`make test-all` runs each of these tests. `tests/test_requirements.py` fails for a row without a test that exists and is
run, for a module or command that does not exist, and for a difference without a reason. The rows are in
`docs/reference/requirements.yaml`."""

HAPPENED = {
    "created": "a task was written down",
    "edited": "its title, text, labels or another field was changed",
    "status_changed": "its status was changed: `from`, `to`, `reason`",
    "dependency_added": "it waits for another task",
    "dependency_removed": "it waits no longer for that task",
    "commented": "somebody said something about it",
    "agent_commands_enabled": "a person lets goals that agents write for it run programs",
    "agent_commands_disabled": "a person ended that",
    "approved": "a person approved a commit of it",
    "verified": "a commit was verified: `status`, `commit`, `reason`",
    "taken_over": "another run goes on with it",
    "part_began": "a part of a session began: `part`, `cause`",
    "part_ended": "a part ended: `waits_for`, or `outcome`",
    "merge_queued": "verified work waits to land on `target`",
    "merge_settled": "the merge queue is through with it: `status`, `reason`",
    "escalated": "a person is asked: `kind`, `question`",
    "decided": "a person has decided: `status`, `answer`",
    "review_asked": "a review was asked for",
    "reviewed": "a reviewer has spoken",
    "planned": "a planner has proposed parts",
    "parts_created": "the parts of a plan became tasks",
    "plan_rejected": "a plan was rejected",
    "held": "it was paused",
    "released": "it goes on after a pause",
    "handed_over": "one attempt left a note for the next one",
    "project_paused": "nothing new is begun",
    "project_resumed": "new work is begun again",
    "stopping": "everybody is told to suspend what runs and to end",
    "going_on": "the stop is over",
    "provider_paused": "a provider is asked nothing until a time",
    "executor_came": "a `genba work` began",
    "executor_left": "a `genba work` ended",
    "agent_registered": "an agent may come by itself",
    "passkey_changed": "its passkey was changed or taken away",
    "credential_issued": "an instance got its one-time credential",
    "connected": "an agent has authenticated",
    "bound": "a connection was tied to a session",
    "instance_stopped": "an agent was told to leave: `reason`",
    "connection_closed": "an agent has left",
    "phase_reached": "an agent that asks came to the next phase of its workflow",
    "noted": "an agent wrote something down for whoever goes on",
    "messaged": "one agent wrote to another",
}
"""What each kind of line in the history of the blackboard says. A kind without words fails."""

SHOWN = {
    "verified": "The work holds what it is held to.",
    "queued": "Verified work waits for its turn to land.",
    "merged": "It has landed.",
    "conflict": "It does not merge: back to its author, with the paths.",
    "merge_failed": "A goal fails on the merged tree. Its agent continues with the evidence.",
    "stuck": "The merge queue cannot go on with it.",
    "done": "A task is done.",
    "resumed": "The fleet goes on after a pause.",
    "suspending": "What runs is told to suspend itself.",
    "suspended": "What ran is suspended, with everything kept.",
    "notice": "Something worth a note.",
}
"""The words for kinds that need none in the code."""

ABOUT_THE_API = """\
`genba serve` answers programs under `/api`: what the commands print with `--json`, and what people decide. The
description for machines, as OpenAPI 3.1, is at `/api/openapi.json`; for people it is at `/api/docs`.
[How to use it](../how-to/api.md).

## Every request

- It carries `Authorization: Bearer TOKEN`. The operator's token may change something, the viewer's may only look. The
  tokens are in `.git/genba/serve.json`, or what `GENBA_SERVE_TOKEN` and `GENBA_SERVE_VIEWER_TOKEN` say.
- A body is JSON, at most 2 MiB. A field or a parameter that is not described is refused.
- An answer is JSON. Times are UTC.
- What is changed is changed by the same code as by the command, and the answer comes when it has happened.

## Refusals

The body is `error`, with `kind`, `message`, `problems`, `unchanged`, `hint` (the next command) and `exit_code`."""
ABOUT_SCHEMAS = """\
`genba schema NAME` prints the JSON Schema of a file, a section or a line, made from the types that read it. Point your
editor at one, and it completes and checks while you write:

```sh
genba schema config > config.schema.json
```"""
ABOUT_HISTORY = """\
The table `events`, shown by `genba task show`. It is only ever added to. Each line has its `kind`, who did it, when,
and `data`."""


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
    """A type in words."""
    if get_origin(kind) is Annotated:
        return word(get_args(kind)[0])
    if kind in PLAIN:
        return PLAIN[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        named = [each for each in inner if each is not type(None)]
        return word(named[0]) if len(named) == 1 else "one of several shapes"
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
    """What the description of a type says, wherever it stands in it."""
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
    strange = sorted(set(kinds) ^ set(HAPPENED))
    if strange:
        raise SystemExit(f"error: docs/generate.py has no words for {', '.join(strange)}, or words for what is gone")
    output = said_of(FleetEventKind)
    silent = [str(each) for each in FleetEventKind if each.name not in output and str(each) not in SHOWN]
    if silent:
        raise SystemExit(f"error: docs/generate.py has no words for {', '.join(silent)}")
    return page(
        [
            "# Events",
            MADE,
            "What happens is written down in two places, and shown in a third.",
            "## In the history of the blackboard",
            ABOUT_HISTORY,
            table(("kind", "what happened"), ((f"`{kind}`", HAPPENED[kind]) for kind in kinds)),
            "## In the journal of a run",
            "One file for each run, one line for each event: [the journal](journal.md) lists them with their fields.",
            "## On the screen of `genba work`",
            "Without a terminal, or with `--plain`, each is one line.",
            table(
                ("word", "meaning"),
                ((f"`{each}`", output.get(each.name) or SHOWN[str(each)]) for each in FleetEventKind),
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


def said_of(kind: type[StrEnum]) -> dict[str, str]:
    """What stands below each name of an enumeration in its source."""
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
    """The pages that are not what the code says."""
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
