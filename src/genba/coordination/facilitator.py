"""The facilitator: it looks at the field, says how each issue stands, and what to do next.

Law: it decides nothing and does none of the work. All that it is given are eyes and its place on the blackboard: it
cannot start an agent, close an issue, touch a branch, run a test or merge. What it says goes out by the outbox.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

import msgspec

from genba.blackboard.field_board import FACILITATOR, FieldBoard, Ground, Kept, SessionSeen
from genba.coordination.grasping import Reverts, Sight, commits_now, facts_of, is_board
from genba.domain.errors import StateConflictError
from genba.domain.facilitation import (
    AgentOnOffer,
    FacilitateAction,
    FieldReport,
    Freshness,
    IssueAssessment,
    IssueFacts,
    IssueState,
    Scanned,
    ScanPosition,
    SeenCommit,
    SeenSession,
)
from genba.judgement.assessing import assess_all
from genba.judgement.health import health_of
from genba.judgement.maintaining import Keeping, Said, actions, digest_of
from genba.judgement.moments import hours_between
from genba.judgement.recommending import Surroundings, recommend
from genba.judgement.stranding import stranded

_position = msgspec.json.Decoder(ScanPosition)
_COMMENTS = ("comment", "update")


class Journals(msgspec.Struct, frozen=True, kw_only=True):
    """What the journals of runs tell, and how far they were read."""

    runs: dict[int, list[SeenSession]] = {}
    position: str = ""


class Discovered(msgspec.Struct, frozen=True, kw_only=True):
    """The agents of the project."""

    agents: tuple[AgentOnOffer, ...] = ()
    broken: dict[str, str] = {}


class Eyes(Protocol):
    """All that the facilitator sees of the outside. Nothing here changes anything."""

    def discover(self) -> Discovered: ...

    async def scan(self, position: ScanPosition | None) -> Scanned:
        """What git shows of issues."""
        ...

    async def around(self, branches: frozenset[str]) -> tuple[Mapping[str, str], str]:
        """Which of these branches have a working tree with changes, and from when on the clone knows history."""
        ...

    def alive(self, session: SessionSeen) -> bool: ...

    def journals(self, position: str) -> Journals: ...


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Which issues are looked at."""

    label: str = ""
    board: tuple[str, int] | None = None
    """The owner and the number of a board."""
    numbers: frozenset[int] | None = None
    """The issues on that board, where it was read."""


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How it is done here."""

    project: str
    repository: str = ""
    """owner/name, where the issues live on GitHub."""
    everything: bool = True
    """Whether every issue of the tracker is in the field, or only those that became tasks."""
    active_hours: float = 24
    stale_days: float = 7
    keeping: Keeping = Keeping()


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """A report, and what it was made from."""

    report: FieldReport
    field: dict[int, IssueFacts]


class Facilitator:
    """Looks, judges, proposes, recommends; and says what it proposes where it is told to."""

    def __init__(self, board: FieldBoard, eyes: Eyes, manner: Manner, now: Callable[[], str]) -> None:
        self.board = board
        self.eyes = eyes
        self.manner = manner
        self.now = now

    async def look(self, scope: Scope = Scope(), notes: tuple[str, ...] = ()) -> Look:  # noqa: B008  (a frozen value)
        """One look at the whole field, and a report on the part of it that was asked for."""
        positions = await asyncio.to_thread(self.board.positions)
        last = _position.decode(positions["git"]) if positions.get("git") else None
        scanning = asyncio.create_task(self.eyes.scan(last))
        try:
            ground = await asyncio.to_thread(self.board.read)
        finally:
            scanned = await scanning
        journals = await asyncio.to_thread(self.eyes.journals, positions.get("journals", ""))
        found, on_base, positions = await self._grasp(ground, scanned, journals, scope)
        now = self.now()
        before = {number: kept.assessment for number, kept in ground.kept.items() if kept.assessment is not None}
        judged = self._dated(assess_all(_without_own_labels(found, ground.kept), now, before), now)
        kept = await asyncio.to_thread(self._keep, ground, found, judged, on_base, positions, scanned.anew)
        shown = [number for number in found if self._is_shown(found[number], ground, scope)]
        field = {number: found[number] for number in shown}
        assessments = {number: judged[number] for number in shown}
        report = self._report(ground, field, assessments, now, scope, (*notes, *scanned.notes, *kept))
        return Look(report=report, field=field)

    async def apply(self, look: Look, words: Mapping[tuple[str, int], str] = MappingProxyType({})) -> FieldReport:
        """Say what was proposed. Whoever dies in between leaves the rest to the next look, and nothing twice.

        `words` by action and issue are better ones for the same; what counts as said is what was to be said.
        """
        by_issue: dict[int, list[FacilitateAction]] = {}
        for action in look.report.actions:
            by_issue.setdefault(action.issue, []).append(action)
        states = {each.issue: str(each.state) for each in look.report.assessments}
        ground = await asyncio.to_thread(self.board.read)
        for issue, wanted in by_issue.items():
            kept = ground.kept.get(issue)
            said = [digest_of(action.body) for action in wanted if action.action in _COMMENTS]
            digest = said[-1] if said else (kept.said if kept is not None else "")
            spoken = [msgspec.structs.replace(each, body=words.get((each.action, issue), each.body)) for each in wanted]
            await asyncio.to_thread(self.board.say, issue, spoken, states[issue], digest)
        report = msgspec.structs.replace(look.report, applied=True)
        if len(look.report.actions) < self.manner.keeping.most_actions:
            return msgspec.structs.replace(report, incomplete=tuple(_incomplete(report, waiting=0)))
        return msgspec.structs.replace(report, incomplete=(*_incomplete(report, waiting=0), _REST))

    async def _grasp(
        self, ground: Ground, scanned: Scanned, journals: Journals, scope: Scope
    ) -> tuple[dict[int, IssueFacts], dict[int, list[SeenCommit]], dict[str, str]]:
        new = commits_now(ground.commits, scanned)
        on_base = new if scanned.anew else {**ground.commits, **new}
        reverts = Reverts.read(ground.positions.get("reverts", ""), scanned)
        resting = (each for sessions in ground.sessions.values() for each in sessions if each.status != "waiting")
        dirty, horizon = await self.eyes.around(frozenset(each.branch for each in resting if each.branch))
        sight = Sight(
            scanned=scanned,
            reverts=reverts,
            alive=self.eyes.alive,
            horizon=horizon,
            dirty=dirty,
            runs=journals.runs,
            board=scope.board,
        )
        positions = {
            "git": msgspec.json.encode(scanned.position).decode(),
            "reverts": reverts.written() if reverts else "",
            "event": str(ground.newest_event),
            "journals": journals.position,
        }
        changed = {name: value for name, value in positions.items() if ground.positions.get(name, "") != value}
        return facts_of(ground, on_base, sight), new, changed

    def _keep(
        self,
        ground: Ground,
        found: Mapping[int, IssueFacts],
        judged: Mapping[int, IssueAssessment],
        commits: Mapping[int, list[SeenCommit]],
        positions: Mapping[str, str],
        anew: bool,
    ) -> tuple[str, ...]:
        """Write down what is new. Where nobody may write, the look is as good, and only the next one is no quicker."""
        changed = {number: each for number, each in judged.items() if not _is_kept(each, ground.kept.get(number))}
        gone = [number for number in ground.kept if number not in found]
        if not (changed or positions or gone or anew):
            return ()
        try:
            self.board.keep(found, changed, commits, positions, anew=anew, gone=gone)
        except StateConflictError as error:
            return (f"what was seen cannot be kept: {error.message}",)
        return ()

    def _dated(self, judged: dict[int, IssueAssessment], now: str) -> dict[int, IssueAssessment]:
        """How fresh each issue is, by the hours and days of the settings."""
        manner = self.manner
        if (manner.active_hours, manner.stale_days) == (24, 7):
            return judged
        found = {}
        for number, each in judged.items():
            hours = hours_between(each.last_at, now)
            fresh = Freshness.ACTIVE if hours <= manner.active_hours else Freshness.RECENT
            fresh = Freshness.STALE if hours > max(manner.active_hours, manner.stale_days * 24) else fresh
            found[number] = msgspec.structs.replace(each, freshness=fresh)
        return found

    def _is_shown(self, facts: IssueFacts, ground: Ground, scope: Scope) -> bool:
        tracked = ground.issues.get(facts.number)
        if tracked is not None and facts.status is None and not self.manner.everything and not tracked[1]:
            return False
        if scope.label and scope.label.casefold() not in (label.casefold() for label in facts.labels):
            return False
        if scope.numbers is not None:
            return facts.number in scope.numbers
        if scope.board is not None:
            cards = tracked[2].cards if tracked is not None else ()
            return any(is_board(card.owner, card.project, scope.board) for card in cards)
        return True

    def _report(
        self,
        ground: Ground,
        field: Mapping[int, IssueFacts],
        assessments: Mapping[int, IssueAssessment],
        now: str,
        scope: Scope,
        notes: tuple[str, ...],
    ) -> FieldReport:
        discovered = self.eyes.discover()
        offered = tuple(
            msgspec.structs.replace(
                agent,
                succeeded=ground.ends.get(agent.name, (0, 0))[0],
                failed=ground.ends.get(agent.name, (0, 0))[1],
            )
            for agent in discovered.agents
        )
        around = Surroundings(
            repository=self.manner.repository,
            label=scope.label,
            project=scope.board[1] if scope.board is not None else None,
            project_owner=scope.board[0] if scope.board is not None else "",
        )
        others = tuple(agent for agent in offered if agent.name != FACILITATOR)
        recommendation = recommend(assessments, field, others, around)
        said = {number: Said(digest=kept.said, state=kept.said_state) for number, kept in ground.kept.items()}
        report = FieldReport(
            project=self.manner.repository or self.manner.project,
            looked_at=now,
            agents=offered,
            broken=discovered.broken,
            assessments=tuple(assessments.values()),
            actions=actions(assessments, field, recommendation, said, self.manner.keeping),
            recommendation=recommendation,
            health=health_of(assessments, recommendation),
            stranded=stranded(assessments, field, around),
            notes=notes,
        )
        return msgspec.structs.replace(report, incomplete=tuple(_incomplete(report, len(report.actions))))


_REST = "more is to be said than one look says: genba facilitate --apply"


def _incomplete(report: FieldReport, waiting: int) -> Iterable[str]:
    """What keeps the field from being ready, in words."""
    unknown = [each.issue for each in report.assessments if each.state is IssueState.UNKNOWN]
    if unknown:
        shown = ", ".join(f"#{number}" for number in unknown[:10])
        yield f"the state of {shown}{' and others' if len(unknown) > 10 else ''} is not known"  # noqa: PLR2004
    following = next(each for each in report.health if each.name == "next_clear")
    if not following.holds:
        yield f"no next action is known: {following.detail}"
    if waiting:
        yield f"{waiting} {'action is' if waiting == 1 else 'actions are'} not carried out: genba facilitate --apply"


def _without_own_labels(field: dict[int, IssueFacts], kept: Mapping[int, Kept]) -> dict[int, IssueFacts]:
    """What the facilitator itself has put on an issue is no reason why it is blocked."""
    own = {
        number: msgspec.structs.replace(
            facts, labels=tuple(label for label in facts.labels if label.casefold() != IssueState.BLOCKED)
        )
        for number, facts in field.items()
        if facts.labels and number in kept and _labelled(kept[number])
    }
    return {**field, **own} if own else field


def _labelled(kept: Kept) -> bool:
    """Whether it said of an issue that it is blocked, by something else than somebody's label."""
    blockers = kept.assessment.blockers if kept.assessment is not None else ()
    return kept.said_state == IssueState.BLOCKED and all(each.kind != "label" for each in blockers)


def _is_kept(judged: IssueAssessment, kept: Kept | None) -> bool:
    """Whether the last look saw the same."""
    before = kept.assessment if kept is not None else None
    if before is None:
        return False
    return msgspec.structs.replace(judged, changed=False) == msgspec.structs.replace(before, changed=False)
