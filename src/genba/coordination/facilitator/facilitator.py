"""The facilitator: it looks at the field, says how each issue stands, and what to do next.

Law: it decides nothing and does none of the work. All that it is given are eyes and its place on the blackboard: it
cannot start an agent, close an issue, touch a branch, run a test or merge. What it says goes out by the outbox.
"""

import asyncio
import gc
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Protocol

import msgspec

from genba import __version__
from genba.blackboard.triage.triage_board import ENDED, Ended, FieldBoard, Ground, Keeps, Kept, SessionSeen
from genba.coordination.facilitator.issue_facts import (
    Reverts,
    ScanInputs,
    facts_of,
    is_board,
    judged_by,
    moved_in,
    named_elsewhere,
    names_now,
    names_of,
    requests_of,
    rests,
    settled,
    stamps_of,
    together,
    told_of,
)
from genba.domain.decoding import reader
from genba.domain.errors import StateConflictError
from genba.domain.facilitation import (
    AgentOnOffer,
    CompletionCondition,
    FacilitateAction,
    FieldReport,
    IssueAssessment,
    IssueFacts,
    IssueState,
    Scanned,
    ScanPosition,
    SeenCommit,
    SeenSession,
)
from genba.judgement.triage.assessment import assess_all
from genba.judgement.triage.dependency_cycles import needed_by, those_behind
from genba.judgement.triage.freshness import Ages, Clock
from genba.judgement.triage.health import health_of
from genba.judgement.triage.maintenance import Keeping, Known, Said, actions, digest_of
from genba.judgement.triage.orphaned_work import stranded
from genba.judgement.triage.recommendations import Recommender, Surroundings
from genba.judgement.triage.suggestions import reviewer_on_offer

_position = reader(ScanPosition)
_COMMENTS = ("comment", "update")
_GIT, _GIT_BEFORE = "git", "git:2"
"""The place that git was read to, and the one that another version kept, in another form."""
_FORM = f"6 {__version__}"
"""The form in which things are kept, and the version that judges: where another one did, all is read anew."""


class Journals(msgspec.Struct, frozen=True, kw_only=True):
    """What the journals of runs tell, and how far they were read."""

    runs: dict[int, list[SeenSession]] = {}
    position: str = ""


class Discovered(msgspec.Struct, frozen=True, kw_only=True):
    """The agents of the project."""

    agents: tuple[AgentOnOffer, ...] = ()
    broken: dict[str, str] = {}


class RepositoryReader(Protocol):
    """All that the facilitator sees of the outside. Nothing here changes anything."""

    def discover(self) -> Discovered: ...

    async def scan(self, position: ScanPosition | None) -> Scanned:
        """What git shows of issues."""
        ...

    async def commits(self, names: Iterable[str]) -> Scanned:
        """What some commits of the base say, that were read before."""
        ...

    async def around(self, branches: frozenset[str]) -> tuple[Mapping[str, str], str]:
        """Which of these branches have a working tree with changes, and from when on the clone knows history."""
        ...

    def alive(self, session: SessionSeen) -> bool: ...

    def journals(self, position: str) -> Journals: ...

    async def conditions(self, numbers: Collection[int]) -> Mapping[int, tuple[CompletionCondition, ...]]:
        """What completes each of some issues, and what of it holds."""
        ...


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Which issues are looked at."""

    label: str = ""
    board: tuple[str, int] | None = None
    """The owner and the number of a board."""
    numbers: frozenset[int] | None = None
    """The issues on that board, where it was read."""
    unread: tuple[str, ...] = ()
    """What of it was never read, in words with the next command: no issues in it does not mean that there are none."""
    whole: bool = False
    """Whether all facts are wanted, also of what ended and was left alone since."""


class FacilitationMode(msgspec.Struct, frozen=True, kw_only=True):
    """How it is done here."""

    project: str
    repository: str = ""
    """owner/name, where the issues live on GitHub."""
    worker: str = ""
    """Who works on issues where nobody is named."""
    reviewer: str = "reviewer"
    """The agent that reviews."""
    everything: bool = True
    """Whether every issue of the tracker is in the field, or only those that became tasks."""
    stages: Mapping[str, tuple[str, ...]] = {}
    """By type of task: the agents that work on it one after the other."""
    active_hours: float = 24
    stale_days: float = 7
    keeping: Keeping = Keeping()


class Look:
    """What was seen, and the report on it."""

    def __init__(
        self,
        brief: FieldReport,
        field: dict[int, IssueFacts],
        moves: Recommender,
        ended: Callable[[], Mapping[int, IssueAssessment]],
    ) -> None:
        self.brief = brief
        """The report without the assessments of issues that rest: of ten thousand issues, most do."""
        self.field = field
        """The facts of the issues that were asked for."""
        self.moves = moves
        """The next command of each issue."""
        self._ended = ended

    @cached_property
    def report(self) -> FieldReport:
        """The report with the assessments of all issues. Those that rest are read now."""
        if not self.brief.resting:
            return self.brief
        found = {**self._ended(), **{each.issue: each for each in self.brief.assessments}}
        all_ = tuple(found[number] for number in sorted(found))
        return msgspec.structs.replace(self.brief, assessments=all_, resting=())

    def after(self, brief: FieldReport) -> "Look":
        """The same look, with what was done upon it."""
        return Look(brief, self.field, self.moves, self._ended)


class _Grasp(msgspec.Struct, kw_only=True):
    """What one look saw."""

    ground: Ground
    sight: ScanInputs
    told: dict[int, IssueFacts]
    """What the tracker and the blackboard say."""
    facts: dict[int, IssueFacts]
    ended: frozenset[int]
    stamps: dict[int, str]
    judged_by: dict[int, str] = {}
    """By issue: what it is judged by now."""
    judged: dict[int, IssueAssessment] = {}
    anew: set[int] = set()
    """Those that were judged at this look."""
    conditions: Mapping[int, tuple[CompletionCondition, ...]] = {}
    """By issue that is in progress: what completes it."""
    names: dict[int, list[str]] = {}
    """By issue and by pull request of which git shows something new: its commits."""


class Facilitator:
    """Looks, judges, proposes, recommends; and says what it proposes where it is told to."""

    def __init__(
        self, board: FieldBoard, eyes: RepositoryReader, manner: FacilitationMode, now: Callable[[], str]
    ) -> None:
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
        positions, branches = await asyncio.to_thread(self.board.before)
        last = None if scope.whole else _last(positions)
        discovering = asyncio.create_task(asyncio.to_thread(self.eyes.discover))
        try:
            grasp = await self._grasp(scope, positions, branches, last)
            await self._judge(grasp, now := self.now())
            grasp.conditions = await self._conditions(grasp, scope)
        finally:
            discovered = await discovering
        # What was judged is written down while the report on it is made: neither needs the other.
        keeping = asyncio.create_task(asyncio.to_thread(self._keep, grasp))
        try:
            report, shown, moves = await asyncio.to_thread(self._reported, grasp, discovered, now, scope)
        finally:
            kept = await keeping
        lines = (*_told_to(grasp.ground), *_silent(report))
        resting = report.resting
        report = msgspec.structs.replace(report, notes=(*lines, *notes, *grasp.sight.scanned.notes, *kept))
        return Look(report, shown, moves, lambda: self._as_kept(resting, now))

    def _reported(
        self, grasp: _Grasp, discovered: Discovered, now: str, scope: Scope
    ) -> tuple[FieldReport, dict[int, IssueFacts], Recommender]:
        """The report, the facts of all issues that were asked for, and the next command of each."""
        ground, ended, ends = grasp.ground, grasp.ended, grasp.ground.ends
        whole = {number: each for number, each in grasp.facts.items() if self._is_in_field(each, ground)}
        shown = {number: each for number, each in whole.items() if self._is_asked_for(each, ground, scope)}
        field = {number: each for number, each in whole.items() if number not in ended} if ended else whole
        judged = {number: grasp.judged[number] for number in field}
        agents = tuple(_with_past(agent, *ends.get(agent.name, (0, 0))) for agent in discovered.agents)
        resting = self._resting(grasp, scope)
        around = msgspec.structs.replace(self._around(scope, len(resting), agents), today=now[:10])
        moves = Recommender(judged, field, agents, around, [n for n in shown if n in field])
        known = Known(conditions=grasp.conditions, command_for=moves.for_comment)
        report = self._report(ground, moves, known, agents, resting, now)
        return msgspec.structs.replace(report, broken=discovered.broken), shown, moves

    async def apply(self, look: Look, words: Mapping[tuple[str, int], str] = MappingProxyType({})) -> FieldReport:
        """Say what was proposed. Whoever dies in between leaves the rest to the next look, and nothing twice.

        `words` by action and issue are better ones for the same; what counts as said is what was to be said.
        """
        by_issue: dict[int, list[FacilitateAction]] = {}
        for action in look.brief.actions:
            by_issue.setdefault(action.issue, []).append(action)
        states = {each.issue: str(each.state) for each in look.brief.assessments}
        known = await asyncio.to_thread(self.board.kept, by_issue)
        for issue, wanted in by_issue.items():
            kept = known.get(issue)
            lines = [digest_of(action.body) for action in wanted if action.action in _COMMENTS]
            digest = lines[-1] if lines else (kept.said if kept is not None else "")
            spoken = [msgspec.structs.replace(each, body=words.get((each.action, issue), each.body)) for each in wanted]
            await asyncio.to_thread(self.board.say, issue, spoken, states[issue], digest)
        report = msgspec.structs.replace(look.brief, applied=True)
        if len(look.brief.actions) < self.manner.keeping.most_actions:
            return msgspec.structs.replace(report, incomplete=tuple(_incomplete(report, waiting=0)))
        return msgspec.structs.replace(report, incomplete=(*_incomplete(report, waiting=0), _REST))

    async def _grasp(
        self, scope: Scope, positions: Mapping[str, str], branches: frozenset[str], last: ScanPosition | None
    ) -> _Grasp:
        """The facts of the field; of its issues on the base as yet only what is new."""
        whole = last is None or bool(scope.label or scope.board or scope.numbers is not None)
        scanning = asyncio.create_task(self._scan(last))
        ground = result = None
        try:
            dirty, horizon = await self.eyes.around(branches)
            journals = await asyncio.to_thread(self.eyes.journals, positions.get("journals", ""))
            if whole:
                ground = await asyncio.to_thread(self.board.read)
            if ground is not None and last is None:  # git takes its time meanwhile
                result = await asyncio.to_thread(told_of, ground, (), self.manner.stages)
        finally:
            scanned = await scanning
        if ground is None:
            named = None if scanned.anew else {*scanned.on_base, *scanned.off_base, *scanned.branches, *journals.runs}
            ground = await asyncio.to_thread(self.board.read, named, dirty)
        sight = ScanInputs(
            scanned=scanned,
            reverts=Reverts.read(ground.positions.get("reverts", ""), scanned),
            alive=self.eyes.alive,
            horizon=horizon,
            dirty=dirty,
            runs=journals.runs,
            journals=journals.position,
            board=scope.board,
            repository=self.manner.repository,
        )
        stamps = stamps_of(ground)
        ended = settled(ground, sight, stamps)
        result = result if result is not None else told_of(ground, ended, self.manner.stages)
        on_base = together(scanned) if scanned.anew else {}
        sight = await self._with_sessions(ground, sight, on_base)
        facts = facts_of(ground, result, on_base, sight, ended)
        return _Grasp(ground=ground, sight=sight, told=result, facts=facts, ended=ended, stamps=stamps)

    async def _with_sessions(
        self, ground: Ground, sight: ScanInputs, on_base: Mapping[int, list[SeenCommit]]
    ) -> ScanInputs:
        """With the tasks of the sessions that git names in work on others. Only those are asked for."""
        names = named_elsewhere(ground, sight.scanned, on_base) - sight.tasks_of.keys()
        if not names:
            return sight
        return sight._replace(tasks_of={**sight.tasks_of, **await asyncio.to_thread(self.board.tasks_of, names)})

    async def _scan(self, last: ScanPosition | None) -> Scanned:
        """What git shows. Where work was taken back, everything: who is concerned nobody knows before."""
        scanned = await self.eyes.scan(last)
        if not scanned.anew and (scanned.reverts or scanned.reverted_requests):
            return await self.eyes.scan(None)
        return scanned

    async def _judge(self, grasp: _Grasp, now: str) -> None:
        """Judge what may have changed, with all that it depends on. What is as it was only grows older."""
        ground, sight, facts = grasp.ground, grasp.sight, grasp.facts
        ages = Ages(active_hours=self.manner.active_hours, stale_days=self.manner.stale_days)
        if sight.scanned.anew:
            grasp.names = names_now({}, sight.scanned)
            before = {number: was for number, kept in ground.kept.items() if (was := kept.assessment) is not None}
            grasp.anew = set(facts)
            grasp.judged = assess_all(facts, now, before, base=sight.scanned.position.base, ages=ages)
            return
        grasp.judged_by = {n: judged_by(each, ground, sight) for n, each in facts.items() if n not in grasp.ended}
        moved = moved_in(ground, sight, facts, grasp.judged_by)
        gone = [number for number in ground.kept if number not in facts]
        concerned = those_behind(facts, {*moved, *gone}) - grasp.ended
        before, clock = {}, Clock(now, ages)
        for number in grasp.judged_by:
            was = ground.kept[number].assessment if number in ground.kept else None
            if was is None:
                concerned |= those_behind(facts, {number})
            else:
                before[number] = was
                grasp.judged[number] = _aged(was, clock)
        part = needed_by(facts, concerned)
        wanted = {*part, *requests_of(facts, part), *sight.scanned.on_base, *sight.scanned.of_requests} - grasp.ended
        names = await asyncio.to_thread(self.board.commits, wanted) if wanted else {}
        grasp.names, grasp.anew = names_now(names, sight.scanned), concerned
        if concerned:
            on_base = together(sight.scanned, await self.eyes.commits(names_of(names, but=sight.scanned)))
            bare = {number: grasp.told[number] for number in part}
            sight = await self._with_sessions(ground, sight, on_base)
            facts.update(facts_of(ground, bare, on_base, sight, grasp.ended))
            part_of_it = {number: facts[number] for number in part}
            judged = assess_all(part_of_it, now, before, base=sight.scanned.position.base, ages=ages)
            grasp.judged.update((number, judged[number]) for number in concerned)
        grasp.judged = {number: grasp.judged[number] for number in grasp.judged_by}

    async def _conditions(self, grasp: _Grasp, scope: Scope) -> Mapping[int, tuple[CompletionCondition, ...]]:
        """What completes the issues in progress about which something may be said."""
        begun = [number for number, each in grasp.judged.items() if each.state is IssueState.IN_PROGRESS]
        facts = [grasp.facts[number] for number in begun]
        wanted = [
            each.number
            for each in facts
            if self._is_asked_for(each, grasp.ground, scope) and not any(session.alive for session in each.sessions)
        ]
        return await self.eyes.conditions(wanted) if wanted else {}

    def _keep(self, grasp: _Grasp) -> tuple[str, ...]:
        """Write down what is new. Where nobody may write, the look is as good, and only the next one is no quicker."""
        ground, sight = grasp.ground, grasp.sight
        changed: dict[int, tuple[str, IssueAssessment]] = {}
        moving: set[int] = set()
        for number, judged in grasp.judged.items():
            kept = ground.kept.get(number)
            stamp = self._stamp(number, grasp)
            if stamp != grasp.stamps.get(number):
                moving.add(number)
            if kept is None or kept.stamp != stamp or (number in grasp.anew and not _is_same(judged, kept)):
                changed[number] = (stamp, judged)
        positions = {
            _GIT: msgspec.json.encode(msgspec.structs.replace(sight.scanned.position, form=_FORM)).decode(),
            _GIT_BEFORE: "",
            "reverts": sight.reverts.written() if sight.reverts else "",
            "event": str(ground.newest_event),
            "journals": sight.journals,
        }
        moved = {name: message for name, message in positions.items() if ground.positions.get(name, "") != message}
        ended = _ended_now(ground, moving)
        if changed or ground.positions.get(ENDED, "") != ended:  # whoever saw more meanwhile has to look again
            moved[ENDED] = ended
        gone = tuple(number for number in ground.kept if number not in grasp.facts)
        names, anew = grasp.names, sight.scanned.anew
        if not (changed or moved or gone or anew or names):
            return ()
        try:
            self.board.keep(Keeps(assessments=changed, commits=names, positions=moved, anew=anew, gone=gone))
        except StateConflictError as error:
            return (f"what was seen cannot be kept: {error.message}",)
        return ()

    def _stamp(self, number: int, grasp: _Grasp) -> str:
        """What an issue was judged by; where it rests, what changes when somebody touches it."""
        facts, judged = grasp.facts[number], grasp.judged[number]
        if rests(facts, judged, grasp.sight) and (touched := grasp.stamps.get(number, "")):
            kept = grasp.ground.kept.get(number)
            values = {number: _said(kept)} if kept is not None and kept.said else {}
            if not values or not actions({number: judged}, {number: facts}, values, self.manner.keeping, Known()):
                return touched  # of what is closed nothing is said first
        return grasp.judged_by.get(number) or judged_by(facts, grasp.ground, grasp.sight)

    def _resting(self, grasp: _Grasp, scope: Scope) -> tuple[int, ...]:
        """The issues that rest, as far as they were asked for."""
        ended = {each: grasp.facts[each] for each in grasp.ended}
        in_field = {number for number, each in ended.items() if self._is_in_field(each, grasp.ground)}
        shown = {number for number in in_field if self._is_asked_for(ended[number], grasp.ground, scope)}
        return tuple(sorted(shown | grasp.ground.resting))

    def _as_kept(self, numbers: tuple[int, ...], now: str) -> dict[int, IssueAssessment]:
        """Issues that rest, as they were judged, and as fresh as they are now."""
        clock = Clock(now, Ages(active_hours=self.manner.active_hours, stale_days=self.manner.stale_days))
        found = ((number, kept.assessment) for number, kept in self.board.kept(numbers).items())
        return {number: _aged(was, clock) for number, was in found if was is not None}

    def _is_in_field(self, facts: IssueFacts, ground: Ground) -> bool:
        tracked = ground.issues.get(facts.number)
        return tracked is None or facts.status is not None or self.manner.everything or tracked[1]

    def _is_asked_for(self, facts: IssueFacts, ground: Ground, scope: Scope) -> bool:
        if scope.label and scope.label.casefold() not in (label.casefold() for label in facts.labels):
            return False
        if scope.numbers is not None:
            return facts.number in scope.numbers
        if scope.board is not None:
            tracked = ground.issues.get(facts.number)
            cards = tracked[2].cards if tracked is not None else ()
            return any(is_board(card.owner, card.project, scope.board) for card in cards)
        return True

    def _around(self, scope: Scope, resting: int, offered: tuple[AgentOnOffer, ...]) -> Surroundings:
        owner, project = scope.board or ("", None)
        own = self.manner.repository.partition("/")[0]
        return Surroundings(
            repository=self.manner.repository,
            worker=self.manner.worker,
            reviewer=reviewer_on_offer(self.manner.reviewer, offered),
            label=scope.label,
            project=project,
            project_owner=owner if owner.casefold() != own.casefold() else "",
            resting=resting,
            unread=scope.unread,
        )

    def _report(
        self,
        ground: Ground,
        moves: Recommender,
        known: Known,
        agents: tuple[AgentOnOffer, ...],
        resting: tuple[int, ...],
        now: str,
    ) -> FieldReport:
        field = {number: moves.field[number] for number in moves.shown}
        assessments = {number: moves.assessments[number] for number in moves.shown}
        recommendation = moves.recommend()
        values = {number: _said(kept) for number, kept in ground.kept.items() if number in field}
        report = FieldReport(
            project=self.manner.repository or self.manner.project,
            looked_at=now,
            agents=agents,
            assessments=tuple(assessments.values()),
            resting=resting,
            actions=actions(assessments, field, values, self.manner.keeping, known),
            recommendation=recommendation,
            health=health_of(assessments, recommendation, moves.around.unread),
            stranded=stranded(assessments, field, moves.around),
            unread=moves.around.unread,
        )
        return msgspec.structs.replace(report, incomplete=tuple(_incomplete(report, len(report.actions))))


_REST = "more is to be said than one look says: genba facilitate --apply"


def unready(report: FieldReport) -> tuple[str, ...]:
    """What keeps the field from being ready, besides what is not said yet: a dry run says nothing."""
    return tuple(_incomplete(report, waiting=0))


def unready_for(look: Look, issue: int) -> tuple[str, ...]:
    """What keeps one issue from being ready: its own state, and those of its parts and of what it waits for."""
    needed = needed_by(look.field, (issue,))
    return tuple(_unknown(each for each in look.report.assessments if each.issue in needed))


def _incomplete(report: FieldReport, waiting: int) -> Iterable[str]:
    """What keeps the field from being ready, in words."""
    yield from report.unread
    yield from _unknown(report.assessments)
    following = next(each for each in report.health if each.name == "next_clear")
    if not following.holds and not report.unread:
        yield f"no next action is known: {following.detail}"
    if waiting:
        yield f"{waiting} {'action is' if waiting == 1 else 'actions are'} not carried out: genba facilitate --apply"


def _unknown(assessments: Iterable[IssueAssessment]) -> Iterable[str]:
    unknown = [each.issue for each in assessments if each.state is IssueState.UNKNOWN]
    if unknown:
        shown = ", ".join(f"#{number}" for number in unknown[:10])
        yield f"the state of {shown}{' and others' if len(unknown) > 10 else ''} is not known"  # noqa: PLR2004


def _told_to(ground: Ground) -> Iterable[str]:
    """What somebody told the whole project: whoever forgot it would wait for what does not begin."""
    if ground.stopping:
        yield "everybody was told to stop: nothing goes on   genba resume"
    elif ground.paused:
        yield "the project is paused: nothing new begins   genba resume"


def _silent(report: FieldReport) -> Iterable[str]:
    """Agents that are named as the next ones, and would not answer."""
    named = {each.agent for each in report.recommendation.suggestions}
    for agent in report.agents:
        if agent.name in named and not agent.answers:
            yield f"no adapter is chosen for {agent.name}: nobody would answer   genba doctor"


def _last(positions: Mapping[str, str]) -> ScanPosition | None:
    """How far git was read, where this version of Genba did it."""
    try:
        last = _position.decode(positions.get(_GIT) or "{}")
    except msgspec.MsgspecError:
        return None
    return last if last.form == _FORM else None


def _ended_now(ground: Ground, moving: Collection[int]) -> str:
    """Which of the tasks that ended rest after a look, and which do not."""
    all_ = sorted({*ground.ended.resting, *ground.ended.moving})
    resting, others = [n for n in all_ if n not in moving], [n for n in all_ if n in moving]
    return msgspec.json.encode(Ended(mark=ground.ended.mark, resting=resting, moving=others)).decode()


def _with_past(agent: AgentOnOffer, succeeded: int, failed: int) -> AgentOnOffer:
    return msgspec.structs.replace(agent, succeeded=succeeded, failed=failed)


def _said(kept: Kept) -> Said:
    return Said(digest=kept.said, state=kept.said_state)


def _aged(assessment: IssueAssessment, clock: Clock) -> IssueAssessment:
    """The same, as fresh as it is now."""
    fresh = clock.freshness_of(assessment.last_at)
    if fresh is assessment.freshness and not assessment.changed:
        return assessment
    return msgspec.structs.replace(assessment, freshness=fresh, changed=False)


def _is_same(judged: IssueAssessment, kept: Kept) -> bool:
    """Whether the last look saw the same."""
    before = kept.assessment
    if before is None:
        return False
    return msgspec.structs.replace(judged, changed=False) == msgspec.structs.replace(before, changed=False)
