"""Notifications on the desktop of the user who started the process: notify-send on Linux, osascript on macOS.

Law: what a notice says is an argument and nothing else. No shell sees it, no script holds it, no markup in it counts.
"""

import secrets
import shutil
from collections.abc import Mapping

from genba.domain.errors import AgentUnavailable, UnrecoverableError
from genba.domain.fleet.notifications import Notification
from genba.domain.ports import Processes
from genba.domain.processes import Command, Ending

_TIMEOUT = 10.0
_LONGEST = 400
_SHOWN_BY = {"linux": "notify-send", "darwin": "osascript"}
_DESKS = ("DBUS_SESSION_BUS_ADDRESS", "WAYLAND_DISPLAY", "DISPLAY")
_PASSED_ON = ("PATH", "HOME", "LANG", "XDG_RUNTIME_DIR", "XAUTHORITY", *_DESKS)
_SCRIPT = (
    "on run words",
    "display notification (item 2 of words) with title (item 1 of words)",
    "end run",
)
"""The words come to the script as arguments, so nothing in them is a part of it."""


def desktop_problem(environment: Mapping[str, str], platform: str) -> str:
    """Why nothing can be shown here; empty where it can."""
    program = _SHOWN_BY.get(platform)
    if program is None:
        return f"{platform} has no way to show it that is known here"
    if shutil.which(program, path=environment.get("PATH")) is None:
        return f"{program} is not installed"
    if platform == "linux" and not any(environment.get(name) for name in _DESKS):
        return "there is no desktop here"
    return ""


def words(notice: Notification, platform: str) -> tuple[str, ...]:
    """The command that shows a notice."""
    title = _plain(f"Genba: {notice.headline}")
    lines = (notice.title, notice.question, notice.command)
    body = _plain("\n".join(line for line in lines if line))
    if platform == "darwin":
        script = tuple(word for line in _SCRIPT for word in ("-e", line))
        return ("osascript", *script, title, body)
    markup = body.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return ("notify-send", "--app-name=Genba", "--urgency=normal", "--", title, markup)


class DesktopChannel:
    """Shows each notice where its process was started."""

    def __init__(self, processes: Processes, environment: Mapping[str, str], platform: str, workdir: str) -> None:
        self.processes = processes
        self.environment = {name: environment[name] for name in _PASSED_ON if name in environment}
        self.platform = platform
        self.workdir = workdir

    async def send(self, notice: Notification) -> None:
        command = Command(
            argv=words(notice, self.platform),
            workdir=self.workdir,
            environment=self.environment,
            timeout_seconds=_TIMEOUT,
            idle_seconds=_TIMEOUT,
            mark=f"notice-{secrets.token_hex(8)}",  # unique, so that ending it ends no other process
        )
        done = await self.processes.run(command, _ignore)
        program = _SHOWN_BY[self.platform]
        if done.never_ran:
            raise UnrecoverableError(f"{program} cannot be started")
        if done.ending is not Ending.EXITED or done.code != 0:
            raise AgentUnavailable(f"{program} did not show it: {_why(done.stderr) or f'exit code {done.code}'}")


def _plain(text: str) -> str:
    """A text without control characters, cut to the length of a notification."""
    kept = "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)
    return kept if len(kept) <= _LONGEST else f"{kept[:_LONGEST]}…"


def _why(stderr: str) -> str:
    lines = stderr.strip().splitlines()
    return lines[-1][:120] if lines else ""


def _ignore(_stream: str, _line: str) -> None:
    return
