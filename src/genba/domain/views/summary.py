"""The board on the dashboard: the same values for pages, the API and commands.

Law: a picture is a frozen value that was read in one look. It says why each thing is where it is.
"""

import msgspec

from genba.domain.tasks.task import Priority, TaskStatus


class ActionResult(msgspec.Struct, frozen=True, kw_only=True):
    """What has happened, in a sentence, and what to type next; no hint where the rest goes on by itself."""

    sentence: str
    hint: str = ""
    leads_to: str = ""
    """The page where it can be seen, where it is another one."""


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """A task in a few words."""

    number: int
    title: str
    status: TaskStatus
    priority: Priority
    type: str
    why: str
    """Why it is where it is, in one sentence."""
    labels: tuple[str, ...] = ()
    assignee: str = ""
    needs_you: bool = False
    run: str = ""
    """Its session that lives now, or the newest one."""
    alive: bool = False
    """True while a session runs."""
    parent: int | None = None
    updated_at: str = ""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of one status."""

    status: TaskStatus
    total: int
    cards: tuple[Card, ...] = ()
    """The first of them; the others are there for who asks."""


class BoardView(msgspec.Struct, frozen=True, kw_only=True):
    columns: tuple[Column, ...] = ()
    total: int = 0
    working: int = 0
    """Sessions that run now."""
    paused: bool = False
    stopping: bool = False
