"""Notices of a project, wired together: which channels this process has, and why it lacks the others."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from genba.domain.errors import GenbaError

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext
    from genba.coordination.scheduler.notifications import Notifier
    from genba.definitions.project.notify_section import NotifySettings, WebhookSettings
    from genba.domain.fleet.notifications import NotificationEntry
    from genba.domain.ports import Channel


class ChannelCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One channel that the settings name, as this process can use it."""

    name: str
    detail: str = ""
    """Where it leads to. Of an address, the host alone."""
    problem: str = ""
    """Why this process cannot use it; empty where it can."""
    hint: str = ""


def channel_checks(context: ProjectContext, environment: Mapping[str, str] = os.environ) -> tuple[ChannelCheck, ...]:
    """The channels that the settings name. Nothing is sent, and only the names of secrets are reported."""
    settings = context.project.fleet.notify
    found = []
    if settings.webhook is not None:
        found.append(_webhook_check(context, settings.webhook, environment))
    if settings.desktop:
        problem = context.ports.channels.desktop_problem(environment)
        hint = "apt-get install libnotify-bin" if problem.endswith("not installed") else ""
        found.append(ChannelCheck(name="desktop", detail="shown here", problem=problem, hint=hint))
    return tuple(found)


def notifier_of(context: ProjectContext, tell: Callable[[str], None] = lambda _message: None) -> Notifier | None:
    """Who sends the notices of a project from this process; None where it has no channel for them.

    An agent has none: only processes that people started notify people.
    """
    if os.environ.get("GENBA_RUN"):
        return None
    usable = {check.name for check in channel_checks(context) if not check.problem}
    if not usable:
        return None
    from genba.blackboard.fleet.notifications import NotificationBoard  # noqa: PLC0415  (only with notices)
    from genba.coordination.scheduler.notifications import Notifier  # noqa: PLC0415
    from genba.domain.redaction import Redactor  # noqa: PLC0415

    settings = context.project.fleet.notify
    return Notifier(
        NotificationBoard(context.board().store.impatient()),
        _channels(context, settings, usable),
        settings,
        redact=Redactor({**os.environ, **_secrets(settings)}).text,
        tell=tell,
    )


@contextlib.asynccontextmanager
async def notices_sent(
    context: ProjectContext, tell: Callable[[str], None] = lambda _message: None
) -> AsyncIterator[None]:
    """Send notices beside whatever is done meanwhile, and those that are due in the end."""
    for check in channel_checks(context):
        if check.problem:
            tell(f"notices by {check.name}: {check.problem}{f'; {check.hint}' if check.hint else ''}")
    notifier = notifier_of(context, tell)
    if notifier is None:
        yield
        return
    stop = asyncio.Event()
    running = asyncio.ensure_future(notifier.run(stop))
    try:
        yield
    finally:
        stop.set()
        with contextlib.suppress(GenbaError):
            await running


def newest_notices(context: ProjectContext, most: int = 50) -> tuple[NotificationEntry, ...]:
    """The newest notices first; a mere look makes no blackboard."""
    if not context.has_board():
        return ()
    from genba.blackboard.fleet.notifications import NotificationBoard  # noqa: PLC0415  (a project without tasks has no database)

    return NotificationBoard(context.board(make=False).store).newest(most)


def retry_notices(context: ProjectContext) -> int:
    """Try again what was given up; how many they are."""
    from genba.blackboard.fleet.notifications import NotificationBoard  # noqa: PLC0415  (see above)

    return NotificationBoard(context.board().store).retry()


def _channels(context: ProjectContext, settings: NotifySettings, usable: set[str]) -> dict[str, Channel]:
    channels: dict[str, Channel] = {}
    if settings.webhook is not None and "webhook" in usable:
        url, secret = _address(settings.webhook, os.environ), _secret(settings.webhook, os.environ)
        channels["webhook"] = context.ports.channels.webhook(url, secret, settings.webhook.timeout_seconds)
    if "desktop" in usable:
        channels["desktop"] = context.ports.channels.desktop()
    return channels


def _webhook_check(context: ProjectContext, webhook: WebhookSettings, environment: Mapping[str, str]) -> ChannelCheck:
    url = _address(webhook, environment)
    if not url:
        message = f"no address: {webhook.url_env} is not set"
        return ChannelCheck(name="webhook", problem=message, hint=f"export {webhook.url_env}=https://…")
    problem = context.ports.channels.webhook_problem(url, webhook.plain_http)
    where = "notify.webhook.url" if webhook.url is not None else webhook.url_env
    if problem:
        return ChannelCheck(name="webhook", problem=f"{where}: {problem}", hint="use an address with https://")
    if webhook.secret_env and not _secret(webhook, environment):
        message = f"no secret to sign with: {webhook.secret_env} is not set"
        return ChannelCheck(name="webhook", problem=message, hint=f"export {webhook.secret_env}=…")
    signed = f"signed with {webhook.secret_env}" if webhook.secret_env else "not signed"
    return ChannelCheck(name="webhook", detail=f"{context.ports.channels.host_of(url)}, {signed}")


def _address(webhook: WebhookSettings, environment: Mapping[str, str]) -> str:
    return (webhook.url if webhook.url is not None else environment.get(webhook.url_env, "")).strip()


def _secret(webhook: WebhookSettings, environment: Mapping[str, str]) -> str:
    return environment.get(webhook.secret_env, "") if webhook.secret_env else ""


def _secrets(settings: NotifySettings) -> dict[str, str]:
    """What no notice may say, by names that are known to be those of secrets."""
    if settings.webhook is None:
        return {}
    return {
        "WEBHOOK_URL_SECRET": _address(settings.webhook, os.environ),
        "WEBHOOK_SIGNING_SECRET": _secret(settings.webhook, os.environ),
    }
