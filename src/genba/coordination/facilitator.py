"""The facilitator: it looks at the field, says how each issue stands, and what to do next.

Law: it decides nothing and does none of the work. All that it is given are eyes and its place on the blackboard: it
cannot start an agent, close an issue, touch a branch, run a test or merge. What it says goes out by the outbox.
"""

import asyncio
import gc
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

import msgspec

from genba.blackboard.field_board import FACILITATOR, FieldBoard, Ground, Kept, SessionSeen
from genba.coordination.grasping import Reverts, Sight, commits_now, facts_of, is_board, settled, stamps_of
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
from genba.judgement.freshness import Ages, Clock
from genba.judgement.health import health_of
from genba.judgement.maintaining import Keeping, Said, actions, digest_of
from genba.judgement.recommending import Surroundings, recommend
from genba.judgement.stranding import stranded

_position = msgspec.json.Decoder(ScanPosition)
_COMMENTS = ("comment", "update")
_GIT = "git:2"
"""The place that git was read to, with the number of the form in which its commits are kept: another form, and all is
read anew."""


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
    whole: bool = False
    """Whether all facts are wanted, also of what ended and was left alone since."""


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


class _Grasp(msgspec.Struct, kw_only=True):
    """What one look saw, and what of it is new."""

    facts: dict[int, IssueFacts]
    ended: frozenset[int]
    commits: dict[int, list[SeenCommit]]
    positions: dict[str, str]
    stamps: dict[int, str]


class Facilitator:
    """Looks, judges, proposes, recommends; and says what it proposes where it is told to."""

    def __init__(self, board: FieldBoard, eyes: Eyes, manner: Manner, now: Callable[[], str]) -> None:
        self.board = board
        self.eyes = eyes
        self.manner = manner
        self.now = now

    async def look(self, scope: Scope = Scope(), notes: tuple[str, ...] = ()) -> Look:  # noqa: B008  (a frozen value)
        """One look at the whole field, and a report on the part of it that was asked for."""
        collects = gc.isenabled()
        gc.disable()  # a look makes many things, and none of them is garbage before it ends
        try:
            return await self._looked(scope, notes)
        finally:
            if collects:
                gc.enable()

    async def _looked(self, scope: Scope, notes: tuple[str, ...]) -> Look:
        positions = await asyncio.to_thread(self.board.positions)
        last = _position.decode(positions[_GIT]) if positions.get(_GIT) else None
        scanning = asyncio.create_task(self.eyes.scan(last))
        try:
            ground = await asyncio.to_thread(self.board.read)
        finally:
            scanned = await scanning
        journals = await asyncio.to_thread(self.eyes.journals, positions.get("journals", ""))
        grasp = await self._grasp(ground, scanned, journals, scope)
        found, now = grasp.facts, self.now()
        judged = self._judge(grasp, ground.kept, now, scanned.position.base)
        kept = await asyncio.to_thread(self._keep, ground, grasp, judged, scanned.anew)
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

    async def _grasp(self, ground: Ground, scanned: Scanned, journals: Journals, scope: Scope) -> "_Grasp":
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
            _GIT: msgspec.json.encode(scanned.position).decode(),
            "reverts": reverts.written() if reverts else "",
            "event": str(ground.newest_event),
            "journals": journals.position,
        }
        changed = {name: value for name, value in positions.items() if ground.positions.get(name, "") != value}
        stamps = stamps_of(ground)
        ended = settled(ground, sight, stamps) if not scope.whole else frozenset()
        if not scanned.anew:
            wanted = {*stamps, *(request.number for _, request in ground.requests)} - ended
            wanted |= {*scanned.on_base, *scanned.of_requests}
            ground.commits = await asyncio.to_thread(self.board.commits, wanted)
        new = commits_now(ground.commits, scanned)
        on_base: Mapping[int, list[SeenCommit]] = new if scanned.anew else ChainMap(new, ground.commits)  # type: ignore[arg-type]
        facts = facts_of(ground, on_base, sight, ended)
        return _Grasp(facts=facts, ended=ended, commits=new, positions=changed, stamps=stamps)

    def _judge(self, grasp: "_Grasp", kept: Mapping[int, Kept], now: str, base: str) -> dict[int, IssueAssessment]:
        """Judge what may have changed. What ended and was left alone since is as it was, but for its age."""
        facts, ended = grasp.facts, grasp.ended
        before = {number: each.assessment for number, each in kept.items() if each.assessment is not None}
        left = {number: each for number, each in facts.items() if number not in ended} if ended else facts
        beside = {n for each in left.values() for n in (*each.dependencies, *each.children) if n in ended}
        part = {**left, **{number: facts[number] for number in beside}} if beside else left
        ages = Ages(active_hours=self.manner.active_hours, stale_days=self.manner.stale_days)
        judged = assess_all(_without_own_labels(part, kept), now, before, base=base, ages=ages)
        if not ended:
            return judged
        clock = Clock(now, ages)
        return {number: _aged(before[number], clock) if number in ended else judged[number] for number in facts}

    def _keep(
        self, ground: Ground, grasp: "_Grasp", judged: Mapping[int, IssueAssessment], anew: bool
    ) -> tuple[str, ...]:
        """Write down what is new. Where nobody may write, the look is as good, and only the next one is no quicker."""
        changed = {
            number: each
            for number, each in judged.items()
            if number not in grasp.ended and not _is_kept(each, ground.kept.get(number), grasp.stamps.get(number, ""))
        }
        gone = [number for number in ground.kept if number not in judged]
        if not (changed or grasp.positions or gone or anew):
            return ()
        try:
            self.board.keep(grasp.stamps, changed, grasp.commits, grasp.positions, anew=anew, gone=gone)
        except StateConflictError as error:
            return (f"what was seen cannot be kept: {error.message}",)
        return ()

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
            actions=actions(assessments, field, said, self.manner.keeping),
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


def _aged(assessment: IssueAssessment, clock: Clock) -> IssueAssessment:
    """The same, as fresh as it is now; what is stale stays so."""
    fresh = assessment.freshness if assessment.freshness is Freshness.STALE else clock.freshness_of(assessment.last_at)
    if fresh is assessment.freshness and not assessment.changed:
        return assessment
    return msgspec.structs.replace(assessment, freshness=fresh, changed=False)


def _is_kept(judged: IssueAssessment, kept: Kept | None, stamp: str) -> bool:
    """Whether the last look saw the same."""
    before = kept.assessment if kept is not None and kept.stamp == stamp else None
    if before is None:
        return False
    return msgspec.structs.replace(judged, changed=False) == msgspec.structs.replace(before, changed=False)
