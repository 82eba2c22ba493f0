"""`genba outbox`: what is to be changed on GitHub, what holds it, and how to send, repeat or drop it."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from genba.application.verification.decisions import people_only
from genba.blackboard.tracker.outbox import Outbox
from genba.coordination.engine.lease_owners import lives
from genba.coordination.tracker.outbox_sender import pace_of
from genba.domain.errors import AccessRefusedError, NotFoundError, RemoteUnavailable, StateConflictError, UsageError
from genba.domain.tracker.outbox import OutboxEntry, OutboxStatus, Pace, SendResult
from genba.domain.tracker.outbox_text import without_it
from genba.entrypoints.cli.decide.decision_commands import columns
from genba.entrypoints.cli.failures import show_hint
from genba.entrypoints.cli.inspect.task_commands import NumberType
from genba.entrypoints.cli.project_lookup import project_for_reading, project_here, run_async
from genba.entrypoints.cli.rendering.json_output import print_json
from genba.entrypoints.cli.rendering.outbox_view import (
    clock,
    dry_lines,
    held,
    outbox_lines,
    outbox_page,
    sent_line,
    waiting_words,
)
from genba.wiring import ProjectContext

if TYPE_CHECKING:
    from genba.application.tracker.github import GitHubOffice

_ENTRY = NumberType("an entry")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_ALL = click.option("--all", "ended_too", is_flag=True, help="What was sent or dropped too.")
_LONGEST_WAIT = 60.0
"""The longest pause that the command waits for; beyond it, it prints when to continue."""


@click.group("outbox", invoke_without_command=True)
@_ALL
@_JSON
@click.pass_context
def outbox(ctx: click.Context, ended_too: bool, as_json: bool) -> None:
    """List the changes that wait for GitHub."""
    if ctx.invoked_subcommand is None:
        _list(ended_too, as_json)


@outbox.command("list")
@_ALL
@_JSON
def list_entries(ended_too: bool, as_json: bool) -> None:
    """List the changes: waiting, failed, and when they continue."""
    _list(ended_too, as_json)


@outbox.command("show")
@click.argument("number", type=_ENTRY, metavar="ENTRY")
@_JSON
def show(number: int, as_json: bool) -> None:
    """Show one change: its text, its attempts and the answers."""
    box = _outbox(project_for_reading())
    entry = box.show(number)
    if as_json:
        print_json(entry)
        return
    for line in outbox_page(entry, held(box.list()).get(number), datetime.now(UTC)):
        click.echo(line)
    if entry.status is OutboxStatus.FAILED:
        show_hint(f"genba outbox retry {number}\ngenba outbox drop {number}")


@outbox.command("send")
@click.option("--dry-run", is_flag=True, help="Show what would be sent.")
@_JSON
def send(dry_run: bool, as_json: bool) -> int:
    """Send the waiting changes, in their order."""
    if dry_run:
        return _dry_run(as_json)
    context = project_here()
    people_only(context, "send what is in the outbox")
    office = context.office()
    if office is None:
        raise StateConflictError(
            "the issues of this project do not live on GitHub: there is nowhere to send anything",
            unchanged="nothing was sent.",
            hint="genba init --github OWNER/REPOSITORY",
        )
    result = run_async(_send(office, lines=not as_json))
    if as_json:
        print_json(result)
    return _end(result, as_json)


@outbox.command("retry")
@click.argument("number", type=_ENTRY, required=False, metavar="[ENTRY]")
@click.option("--all", "everything", is_flag=True, help="Everything that failed, or waits to be tried again.")
@_JSON
def retry(number: int | None, everything: bool, as_json: bool) -> None:
    """Retry failed changes, unless GitHub has them already."""
    if (number is None) == (not everything):
        raise UsageError("name one entry, or --all", unchanged="nothing was changed.", hint="genba outbox list")
    context = project_for_reading()
    people_only(context, "retry what is in the outbox")
    box = _outbox(context)
    again = box.retry_all() if number is None else (box.retry(number),)
    if as_json:
        print_json(again)
        return
    named = ", ".join(str(entry.id) for entry in again)
    click.echo(f"to be tried again: {named}" if again else "nothing failed, and nothing waits to be tried again")
    if again:
        show_hint("genba outbox send")


@outbox.command("drop")
@click.argument("number", type=_ENTRY, metavar="ENTRY")
@_JSON
def drop(number: int, as_json: bool) -> None:
    """Drop a change: it is never sent, and later ones continue."""
    context = project_for_reading()
    actor = people_only(context, "drop what is in the outbox")
    box = _outbox(context)
    entry = box.drop(number, actor, lives)
    if as_json:
        print_json(entry)
        return
    click.echo(f"entry {number} is dropped: {without_it(entry.change)}")
    if entry.attempts:
        click.echo("it was tried before: if it was made then, it stays as it is there", err=True)
    show_hint("genba outbox list")


def _list(ended_too: bool, as_json: bool) -> None:
    context = project_for_reading()
    if not context.has_board():
        if as_json:
            print_json(_facts((), None))
            return
        click.echo("the outbox is empty", err=True)
        return
    box = _outbox(context)
    entries = box.list(all=ended_too)
    turn = box.outlook(_pace(context))
    if as_json:
        print_json(_facts(entries, turn))
        return
    if not entries:
        click.echo("the outbox is empty", err=True)
        return
    for line in outbox_lines(entries, datetime.now(UTC), columns()):
        click.echo(line)
    _say_what_is_next(context, entries, waiting_words(turn))


def _facts(entries: tuple[OutboxEntry, ...], turn: Any) -> dict[str, Any]:
    until, why = ("", "") if turn is None else (turn.until, turn.why)
    return {"entries": entries, "until": until, "why": why, "held": held(entries)}


def _say_what_is_next(context: ProjectContext, entries: tuple[OutboxEntry, ...], waiting: str) -> None:
    failed = next((entry for entry in entries if entry.status is OutboxStatus.FAILED), None)
    if failed is not None:
        show_hint(f"genba outbox show {failed.id}\ngenba outbox retry {failed.id}\ngenba outbox drop {failed.id}")
        return
    if waiting:
        click.echo(waiting, err=True)
        return
    settings = context.project.file.tracker.github
    if settings is not None and any(not entry.status.ended for entry in entries):
        show_hint("genba outbox send" if not settings.send else "genba outbox send   or wait for genba work")


def _dry_run(as_json: bool) -> int:
    context = project_for_reading()
    waiting: tuple[OutboxEntry, ...] = ()
    if context.has_board():
        entries = _outbox(context).list()
        behind = held(entries)
        waiting = tuple(
            entry for entry in entries if entry.status is not OutboxStatus.FAILED and entry.id not in behind
        )
    if as_json:
        print_json(waiting)
        return 0
    if not waiting:
        click.echo("nothing would be sent", err=True)
    for line in dry_lines(waiting):
        click.echo(line)
    return 0


async def _send(office: "GitHubOffice", lines: bool) -> SendResult:
    def show(entry: OutboxEntry) -> None:
        click.echo(sent_line(entry))

    sender = office.sender()
    sender.outbox.unpause()
    try:
        return await sender.send(longest_wait=_LONGEST_WAIT, on_end=show if lines else None)
    finally:
        await office.close()


def _end(result: SendResult, as_json: bool) -> int:
    """0 when nothing is left. What stays says why."""
    if result.refused:
        raise AccessRefusedError(
            result.refused, unchanged=f"{result.left} changes stay in the outbox.", hint="genba doctor"
        )
    if result.until:
        raise RemoteUnavailable(
            f"{result.left} changes stay in the outbox until {clock(result.until)}: {result.why}",
            hint="genba outbox send   then, or leave it to genba work",
        )
    if result.failed or result.left:
        if not as_json:
            show_hint("genba outbox list")
        return 1
    if not as_json and not result.sent:
        click.echo("the outbox is empty", err=True)
    return 0


def _pace(context: ProjectContext) -> Pace:
    settings = context.project.file.tracker.github
    return pace_of(settings) if settings is not None else Pace()


def _outbox(context: ProjectContext) -> Outbox:
    if not context.has_board():
        raise NotFoundError("this project has no blackboard yet, and nothing in its outbox", hint="genba sync")
    return Outbox(context.board(make=False).store)
