"""`genba notify`: the channels for notifications, and what was sent."""

import secrets

import click

from genba.application.project.notifications import (
    ChannelCheck,
    channel_checks,
    newest_notices,
    notifier_of,
    retry_notices,
)
from genba.application.verification.decisions import people_only
from genba.domain.errors import StateConflictError
from genba.domain.fleet.notifications import Notification, NotificationEntry
from genba.entrypoints.cli.failures import show_hint
from genba.entrypoints.cli.project_lookup import project_here, run_async
from genba.entrypoints.cli.rendering.json_output import print_json
from genba.entrypoints.cli.rendering.printable import in_one_line
from genba.entrypoints.cli.rendering.tables import table
from genba.wiring import ProjectContext

_SHOWN = 20


@click.command("notify")
@click.option("--test", "try_out", is_flag=True, help="Send a test notice on each channel, and say what happened.")
@click.option("--retry", is_flag=True, help="Try again what was given up, now.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def notify(try_out: bool, retry: bool, as_json: bool) -> int:
    """Show the channels for notifications, and what was sent."""
    context = project_here()
    if try_out or retry:
        people_only(context, "send notices")
    checks = channel_checks(context)
    if try_out:
        return _tried_out(context, checks, as_json)
    if retry:
        _retried(context)
    entries = newest_notices(context, _SHOWN)
    if as_json:
        print_json({"channels": checks, "notices": entries})
        return 0
    _show(checks, entries)
    return 0


def _tried_out(context: ProjectContext, checks: tuple[ChannelCheck, ...], as_json: bool) -> int:
    if not checks:
        raise StateConflictError(
            "no notification was sent: the settings name no channel",
            unchanged="nothing was sent.",
            hint="in .genba/config.yaml:  notify: {desktop: true}",
        )
    values = {check.name: check.problem for check in checks if check.problem}
    notifier = notifier_of(context)
    if notifier is not None:
        name = context.project.name or context.layout.main.name
        question = "This is a test: nothing waits for you."
        notice = Notification(key=f"test-{secrets.token_hex(6)}", kind=None, project=name, question=question)
        values |= run_async(notifier.try_out(notice))
    if as_json:
        print_json({"channels": {name: {"sent": not problem, "problem": problem} for name, problem in values.items()}})
    else:
        for line in table([(f"{'✗' if why else '✓'} {name}", why or "sent") for name, why in values.items()]):
            click.echo(in_one_line(line))
    return 1 if any(values.values()) else 0


def _retried(context: ProjectContext) -> None:
    retry_notices(context)
    notifier = notifier_of(context)
    if notifier is not None:
        run_async(notifier.send_due())


def _show(checks: tuple[ChannelCheck, ...], entries: tuple[NotificationEntry, ...]) -> None:
    if not checks:
        click.echo("no channel: notifications are off")
        show_hint("in .genba/config.yaml:  notify: {desktop: true}")
    rows = [(f"{'✗' if check.problem else '✓'} {check.name}", check.problem or check.detail) for check in checks]
    for line in table(rows):
        click.echo(in_one_line(line))
    lines = [
        (
            f"#{entry.notice.task}",
            f"{entry.notice.kind}{f' (reminder {entry.notice.reminder})' if entry.notice.reminder else ''}",
            entry.channel,
            str(entry.status),
            (entry.sent_at or entry.not_before or entry.created_at)[:19],
            entry.error,
        )
        for entry in entries
    ]
    if lines:
        click.echo("")
    for line in table(lines):
        click.echo(in_one_line(line))
    failed = any(entry.status == "failed" for entry in entries)
    cure = next((check.hint for check in checks if check.hint), "genba notify --retry" if failed else "")
    if checks and (cure or not entries):
        show_hint(cure or "genba notify --test")
