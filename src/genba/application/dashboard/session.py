"""What the dashboard looks at of one run: its journal added up, stretches of its log, one prompt or reply."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from genba.application.sessions.liveness import is_alive
from genba.blackboard.tasks.task_rows import task_with_rows
from genba.domain.decoding import reader
from genba.domain.errors import NotFoundError
from genba.domain.events import Event, IterationStarted, ReplyReceived
from genba.domain.views.session import JournalLines, LogPage, SessionFacts, SessionView, TranscriptEntry
from genba.judgement.views.log_text import log_line

if TYPE_CHECKING:
    from pathlib import Path

    from genba.application.dashboard.queries import DashboardQueries
    from genba.domain.fleet.records import FleetSession

_event = reader(Event)
LINES = 500
_LONGEST_TEXT = 512 * 1024


class SessionWindow:
    """Looks at one run at a time: one of a fleet, or one that a person started. Any thread may ask."""

    def __init__(self, queries: DashboardQueries) -> None:
        self.queries = queries
        self._pages = queries.journal_pages

    def picture(self, run: str) -> SessionView:
        session, title = self._session(run)
        journal = self._journal(run, session)
        facts = self._pages.overview(journal) if journal is not None else SessionFacts()
        standing, context = self.queries.standing(), self.queries.context
        if session is not None:
            alive = is_alive(context, session, standing.absent)
            status = _status(session, alive)
            why = session.reason or facts.reason
            asked = tuple(
                each for each in standing.field.escalations if each.status == "open" and each.task == session.task
            )
        else:
            alive = not facts.outcome and bool(facts.branch) and context.is_running(facts.branch)
            status = facts.outcome or ("running" if alive else "cut_off")
            why, asked = facts.reason, ()
        return SessionView(
            run=run,
            status=status,
            alive=alive,
            why=why,
            facts=facts,
            session=session,
            title=title or facts.title,
            asked=asked,
            can_stop=alive,
            has_journal=journal is not None,
        )

    # ── its log ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def last(self, run: str, before: int | None = None, lines: int = LINES) -> LogPage:
        """The end of its log, or what stands before a place in it."""
        journal = self._journal(run, None)
        return _page(self._pages.last_lines(journal, before, lines)) if journal is not None else LogPage()

    def since(self, run: str, after: int) -> LogPage:
        """What was written behind a place in it."""
        journal = self._journal(run, None)
        return _page(self._pages.lines_after(journal, after)) if journal is not None else LogPage()

    def text(self, run: str, at: int) -> TranscriptEntry:
        """The prompt or the reply that stands at a place of the journal."""
        line = self._pages.line_at(self.queries.context.find_journal(run), at)
        try:
            event = _event.decode(line)
        except (ValueError, RecursionError):
            event = None
        match event:
            case IterationStarted(prompt=prompt, prompt_from=source, time=time):
                return TranscriptEntry(kind="prompt", text=prompt[:_LONGEST_TEXT], source=source, time=time)
            case ReplyReceived(text=text, structured=structured, usage=usage, time=time):
                shown = "" if structured is None else msgspec.json.format(msgspec.json.encode(structured)).decode()
                return TranscriptEntry(
                    kind="reply",
                    text=text[:_LONGEST_TEXT],
                    structured=shown[:_LONGEST_TEXT],
                    tokens=usage.tokens,
                    cost_usd=usage.cost_usd,
                    time=time,
                )
        raise NotFoundError("there is no prompt and no reply at this place", hint=f"genba logs {run} --prompts")

    # ── where it is ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _session(self, run: str) -> tuple[FleetSession | None, str]:
        """What the blackboard knows of it; a run without a task is not there."""
        try:
            session = self.queries.fleet.session(run)
        except NotFoundError:
            return None, ""
        title = self.queries.fleet.store.read(lambda tx: task_with_rows(tx, session.task).task.title)
        return session, title

    def _journal(self, run: str, session: FleetSession | None) -> Path | None:
        """Where it writes; None for one that has written nothing here, but is known."""
        try:
            return self.queries.context.find_journal(run)
        except NotFoundError:
            if session is not None or self._session(run)[0] is not None:
                return None
            raise


def _status(session: FleetSession, alive: bool) -> str:
    if session.status == "running":
        return "running" if alive else "suspended"
    return session.outcome or session.status if session.status == "ended" else session.status


def _page(piece: JournalLines) -> LogPage:
    found = []
    for at, line in piece.lines:
        try:
            event = _event.decode(line)
        except (ValueError, RecursionError):
            continue  # a torn or foreign line
        if (result := log_line(event, at)) is not None:
            found.append(result)
    return LogPage(start=piece.start, end=piece.end, lines=tuple(found), more=piece.more)
