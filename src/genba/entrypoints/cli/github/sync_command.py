"""`genba sync`: look at the tracker, and bring both sides in line."""

import sys
from collections.abc import Callable, Iterator, Sequence

import click

from genba.application.tracker.github import GitHubOffice
from genba.application.tracker.tracker_pass import SyncPass, look
from genba.application.verification.decisions import people_only
from genba.domain.errors import StateConflictError, UsageError
from genba.domain.tracker.outbox import OutboxEntry
from genba.domain.tracker.remote import PullRequestOutcome
from genba.entrypoints.cli.failures import show_hint, show_warning
from genba.entrypoints.cli.project_lookup import project_here, run_async
from genba.entrypoints.cli.rendering.columns import cell, rows_of
from genba.entrypoints.cli.rendering.json_output import print_json

_MARKS = {
    PullRequestOutcome.MERGED: "●",
    PullRequestOutcome.MERGE: "●",
    PullRequestOutcome.REWORK: "✗",
    PullRequestOutcome.CONFLICT: "✗",
    PullRequestOutcome.CLOSED: "?",
    PullRequestOutcome.WAIT: "·",
}
_NAMED = 20
_NOTES = 10


@click.command("sync")
@click.option("--full", is_flag=True, help="Read all issues again, to find deleted and moved ones.")
@click.option("--issue", type=click.IntRange(1), metavar="N", help="Read this one issue.")
@click.option("--label", metavar="NAME", help="Take the open issues with this label as well.")
@click.option("--project", type=click.IntRange(1), metavar="N", help="Take the open issues on this board as well.")
@click.option("--project-owner", metavar="NAME", help="Who owns that board; by default the owner of the repository.")
@click.option("--dry-run", is_flag=True, help="Only show what would change, here and there.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def sync(
    full: bool,
    issue: int | None,
    label: str | None,
    project: int | None,
    project_owner: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Read issues and pull requests from GitHub, send changes."""
    _check(full, issue, label, project, project_owner, dry_run)
    context = project_here()
    people_only(context, "look at the tracker")
    office = context.office()
    if office is None:
        raise StateConflictError(
            "the issues of this project do not live on GitHub",
            unchanged="nothing was changed.",
            hint="genba init --github OWNER/REPOSITORY",
        )
    if issue is not None:
        _one_issue(office, issue, as_json)
        return
    board = None if project is None else (project_owner or "", project)
    result = look(office, full=full, label=label, board=board, dry_run=dry_run, progress=_progress())
    found = run_async(result)
    _clear_progress()
    if as_json:
        print_json({"dry_run": dry_run, "look": found})
        return
    for line in look_lines(found, dry_run):
        click.echo(line)
    _warn(found)
    show_hint(_next(found, dry_run))


def _check(
    full: bool, issue: int | None, label: str | None, project: int | None, owner: str | None, dry_run: bool
) -> None:
    if issue is not None and (full or label or project or dry_run):
        raise UsageError("--issue reads one issue: it goes with no other choice", hint="genba sync --help")
    if owner is not None and project is None:
        raise UsageError("--project-owner belongs to --project", hint="genba sync --project 5 --project-owner acme")
    if dry_run and (label is not None or project is not None):
        raise UsageError("--dry-run shows what the settings choose", hint="genba sync --dry-run")


def _one_issue(office: GitHubOffice, number: int, as_json: bool) -> None:
    async def read() -> None:
        try:
            await office.synchronizer().sync_issue(number)
        finally:
            await office.close()

    run_async(read())
    task = office.context.board().get(number)
    if as_json:
        print_json({"task": task})
        return
    click.echo(cell(f"#{task.number} {task.status}  {task.title}"))
    show_hint(f"genba task show {number}")


def look_lines(found: SyncPass, dry_run: bool = False) -> Iterator[str]:
    """What was read, what became of it here, what of pull requests, and what was sent."""
    result = found.result
    read = f"{_count(result.issues, 'issue')} {'looked at' if dry_run else 'read'}"
    if result.full:
        read += ", all of them"
    cost = f"{_count(result.requests, 'request')}, {_count(result.points, 'point')}"
    copied, still_open = found.copied
    yield f"{found.repository} · {read} · {cost} · {copied} in the copy, {still_open} open"
    changes = [
        ("added", result.added),
        ("changed", result.changed),
        ("closed", result.closed),
        ("reopened", result.reopened),
        ("gone", result.gone),
    ]
    for word, numbers in changes:
        if numbers:
            shown = f"would be {word}" if dry_run and word != "gone" else word
            yield f" {shown:<{17 if dry_run else 9}} {_numbers(numbers)}"
    if not any(numbers for _, numbers in changes):
        yield " nothing changed there" if not dry_run else " nothing would change here"
    if result.news:
        yield ""
        rows = [
            (f"{_MARKS[one.verdict]} pull request #{one.number}", f"of #{one.task}", one.standing, one.result)
            for one in sorted(result.news, key=lambda one: (one.task, one.number))
        ]
        yield from (f" {line}" for line in rows_of(rows, (22, 10, 44)))
    yield from _sending(found, dry_run)


def _sending(found: SyncPass, dry_run: bool) -> Iterator[str]:
    if not (found.sent or found.failed or found.waiting):
        return
    yield ""
    rows = [("● sent", str(entry.id), _change(entry), "") for entry in found.sent]
    rows += [("✗ refused", str(entry.id), _change(entry), entry.error) for entry in found.failed]
    word = "would be sent" if dry_run else "waits"
    rows += [(f"· {word}", str(entry.id), _change(entry), "") for entry in found.waiting[:_NAMED]]
    yield from (f" {line}" for line in rows_of(rows, (16, 6, 40)))
    if len(found.waiting) > _NAMED:
        yield f"   and {len(found.waiting) - _NAMED} more"


def _change(entry: OutboxEntry) -> str:
    kind = str(entry.change.__struct_config__.tag).replace("_", " ")
    issue = getattr(entry.change, "issue", None)
    return f"{kind} of #{issue}" if issue is not None else f"{kind} of {entry.lane}"


def _warn(found: SyncPass) -> None:
    for note in (*found.result.notes[:_NOTES], *found.behind):
        show_warning(note)
    if len(found.result.notes) > _NOTES:
        show_warning(f"and {len(found.result.notes) - _NOTES} more   genba sync --json")
    if found.waiting and found.why:
        until = f" until {found.until[:19]}Z" if found.until else ""
        show_warning(f"{len(found.waiting)} wait in the outbox{until}: {found.why}")


def _next(found: SyncPass, dry_run: bool) -> str:
    if dry_run:
        return "genba sync"
    if found.failed:
        return f"genba outbox show {found.failed[0].id}"
    asked = next((one for one in found.result.news if one.verdict is PullRequestOutcome.CLOSED), None)
    if asked is not None:
        return f'genba answer {asked.task} "…"'
    back = next(
        (one for one in found.result.news if one.verdict in (PullRequestOutcome.REWORK, PullRequestOutcome.CONFLICT)),
        None,
    )
    if back is not None:
        return f"genba work\ngenba task show {back.task}"
    return "genba outbox list" if found.waiting else "genba work"


def _progress() -> Callable[[str], None] | None:
    """Says how far it is, in one line that is written over; only for who looks at a screen."""
    if not sys.stderr.isatty():
        return None

    def say(text: str) -> None:
        click.echo(f"\r\x1b[K{text}", nl=False, err=True)

    return say


def _clear_progress() -> None:
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)


def _numbers(numbers: Sequence[int]) -> str:
    shown = " ".join(f"#{number}" for number in sorted(numbers)[:_NAMED])
    return f"{shown} and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else shown


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
