"""The facilitator: it looks at the field, says how each issue stands, and what to do next.

It only reads the repository and writes its own rows of the blackboard: it cannot start an agent, close an issue, touch
a branch, run a test or merge. Its comments go out by the outbox.
"""

import asyncio
import gc
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Protocol

import msgspec

from genba import __version__
from genba.blackboard.triage.triage_board import ENDED, BoardRecords, Ended, FieldBoard, Keeps, Kept, SessionSeen
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
    recorded_facts,
    requests_of,
    rests,
    settled,
    stamps_of,
    together,
)
from genba.domain.decoding import reader
from genba.domain.errors import StateConflictError
from genba.domain.facilitation import (
    AvailableAgent,
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
from genba.judgement.triage.maintenance import Keeping, Known, Posted, actions, digest_of
from genba.judgement.triage.orphaned_work import orphaned
from genba.judgement.triage.recommendations import Recommender, TriageContext
from genba.judgement.triage.suggestions import reviewer_on_offer

_position = reader(ScanPosition)
_COMMENTS = ("comment", "update")
_GIT, _GIT_BEFORE = "git", "git:2"
"""The place that git was read to, and the one that another version kept, in another form."""
_FORM = f"7 {__version__}"
"""The form in which things are kept, and the version that judges: after another version, everything is read again."""


class Journals(msgspec.Struct, frozen=True, kw_only=True):
    """What the journals of runs tell, and how far they were read."""

    runs: dict[int, list[SeenSession]] = {}
    position: str = ""


class Discovered(msgspec.Struct, frozen=True, kw_only=True):
    """The agents of the project."""

    agents: tuple[AvailableAgent, ...] = ()
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
    """The agent that works on issues without an assignee."""
    reviewer: str = "reviewer"
    """The agent that reviews."""
    everything: bool = True
    """Whether every issue of the tracker is in the field, or only those that became tasks."""
    stages: Mapping[str, tuple[str, ...]] = {}
    """By type of task: the agents that work on it one after the other."""
    active_hours: float = 24
    stale_days: float = 7
    keeping: Keeping = Keeping()


class TriageResult:
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

    def after(self, brief: FieldReport) -> "TriageResult":
        """The same look, with what was done upon it."""
        return TriageResult(brief, self.field, self.moves, self._ended)


class _PassState(msgspec.Struct, kw_only=True):
    """What one look saw."""

    records: BoardRecords
    inputs: ScanInputs
    recorded: dict[int, IssueFacts]
    """What the tracker and the blackboard say."""
    facts: dict[int, IssueFacts]
    ended: frozenset[int]
    stamps: dict[int, str]
    judged_by: dict[int, str] = {}
    """By issue: what it is judged by now."""
    judged: dict[int, IssueAssessment] = {}
    judged_again: set[int] = set()
    """Those that were judged at this look."""
    conditions: Mapping[int, tuple[CompletionCondition, ...]] = {}
    """By issue that is in progress: what completes it."""
    names: dict[int, list[str]] = {}
    """By issue and by pull request of which git shows something new: its commits."""


class Facilitator:
    """Assesses issues, proposes actions and recommends commands; applies its actions on request."""

    def __init__(
        self, board: FieldBoard, repository: RepositoryReader, settings: FacilitationMode, now: Callable[[], str]
    ) -> None:
        self.board = board
        self.repository = repository
        self.settings = settings
        self.now = now

    async def look(self, scope: Scope = Scope(), notes: tuple[str, ...] = ()) -> TriageResult:  # noqa: B008  (a frozen value)
        """One look at the whole field, and a report on the part of it that was asked for."""
        collects = gc.isenabled()
        gc.disable()  # a look makes many things, and none of them is garbage before it ends
        try:
            return await self._looked(scope, notes)
        finally:
            if collects:
                gc.enable()

    async def _looked(self, scope: Scope, notes: tuple[str, ...]) -> TriageResult:
        positions, branches = await asyncio.to_thread(self.board.before)
        last = None if scope.whole else _last(positions)
        discovering = asyncio.create_task(asyncio.to_thread(self.repository.discover))
        try:
            state = await self._read_all(scope, positions, branches, last)
            await self._judge(state, now := self.now())
            state.conditions = await self._conditions(state, scope)
        finally:
            discovered = await discovering
        # What was judged is written down while the report on it is made: neither needs the other.
        keeping = asyncio.create_task(asyncio.to_thread(self._keep, state))
        try:
            report, shown, moves = await asyncio.to_thread(self._reported, state, discovered, now, scope)
        finally:
            kept = await keeping
        lines = (*_project_warnings(state.records), *_silent(report))
        resting = report.resting
        report = msgspec.structs.replace(report, notes=(*lines, *notes, *state.inputs.scanned.notes, *kept))
        return TriageResult(report, shown, moves, lambda: self._as_kept(resting, now))

    def _reported(
        self, state: _PassState, discovered: Discovered, now: str, scope: Scope
    ) -> tuple[FieldReport, dict[int, IssueFacts], Recommender]:
        """The report, the facts of all issues that were asked for, and the next command of each."""
        records, ended, ends = state.records, state.ended, state.records.ends
        whole = {number: each for number, each in state.facts.items() if self._is_in_field(each, records)}
        shown = {number: each for number, each in whole.items() if self._is_asked_for(each, records, scope)}
        field = {number: each for number, each in whole.items() if number not in ended} if ended else whole
        judged = {number: state.judged[number] for number in field}
        agents = tuple(_with_past(agent, *ends.get(agent.name, (0, 0))) for agent in discovered.agents)
        resting = self._resting(state, scope)
        around = msgspec.structs.replace(self._around(scope, len(resting), agents), today=now[:10])
        moves = Recommender(judged, field, agents, around, [n for n in shown if n in field])
        known = Known(conditions=state.conditions, command_for=moves.for_comment)
        report = self._report(records, moves, known, agents, resting, now)
        return msgspec.structs.replace(report, broken=discovered.broken), shown, moves

    async def apply(
        self, look: TriageResult, words: Mapping[tuple[str, int], str] = MappingProxyType({})
    ) -> FieldReport:
        """Apply the proposed actions. A pass that dies leaves the rest to the next one, and nothing twice.

        `words` replaces the text of an action of an issue; the digest is that of the original text.
        """
        by_issue: dict[int, list[FacilitateAction]] = {}
        for action in look.brief.actions:
            by_issue.setdefault(action.issue, []).append(action)
        states = {each.issue: str(each.state) for each in look.brief.assessments}
        known = await asyncio.to_thread(self.board.kept, by_issue)
        for issue, wanted in by_issue.items():
            kept = known.get(issue)
            lines = [digest_of(action.body) for action in wanted if action.action in _COMMENTS]
            digest = lines[-1] if lines else (kept.posted if kept is not None else "")
            spoken = [msgspec.structs.replace(each, body=words.get((each.action, issue), each.body)) for each in wanted]
            await asyncio.to_thread(self.board.say, issue, spoken, states[issue], digest)
        report = msgspec.structs.replace(look.brief, applied=True)
        if len(look.brief.actions) < self.settings.keeping.most_actions:
            return msgspec.structs.replace(report, incomplete=tuple(_incomplete(report, waiting=0)))
        return msgspec.structs.replace(report, incomplete=(*_incomplete(report, waiting=0), _REST))

    async def _read_all(
        self, scope: Scope, positions: Mapping[str, str], branches: frozenset[str], last: ScanPosition | None
    ) -> _PassState:
        """The facts of the field; of its issues on the base as yet only what is new."""
        whole = last is None or bool(scope.label or scope.board or scope.numbers is not None)
        scanning = asyncio.create_task(self._scan(last))
        records = result = None
        try:
            dirty, horizon = await self.repository.around(branches)
            journals = await asyncio.to_thread(self.repository.journals, positions.get("journals", ""))
            if whole:
                records = await asyncio.to_thread(self.board.read)
            if records is not None and last is None:  # git takes its time meanwhile
                result = await asyncio.to_thread(recorded_facts, records, (), self.settings.stages)
        finally:
            scanned = await scanning
        if records is None:
            named = None if scanned.full else {*scanned.on_base, *scanned.off_base, *scanned.branches, *journals.runs}
            records = await asyncio.to_thread(self.board.read, named, dirty)
        inputs = ScanInputs(
            scanned=scanned,
            reverts=Reverts.read(records.positions.get("reverts", ""), scanned),
            alive=self.repository.alive,
            horizon=horizon,
            dirty=dirty,
            runs=journals.runs,
            journals=journals.position,
            board=scope.board,
            repository=self.settings.repository,
        )
        stamps = stamps_of(records)
        ended = settled(records, inputs, stamps)
        result = result if result is not None else recorded_facts(records, ended, self.settings.stages)
        on_base = together(scanned) if scanned.full else {}
        inputs = await self._with_sessions(records, inputs, on_base)
        facts = facts_of(records, result, on_base, inputs, ended)
        return _PassState(records=records, inputs=inputs, recorded=result, facts=facts, ended=ended, stamps=stamps)

    async def _with_sessions(
        self, records: BoardRecords, inputs: ScanInputs, on_base: Mapping[int, list[SeenCommit]]
    ) -> ScanInputs:
        """With the tasks of the sessions that git names in work on others. Only those are asked for."""
        names = named_elsewhere(records, inputs.scanned, on_base) - inputs.tasks_of.keys()
        if not names:
            return inputs
        return inputs._replace(tasks_of={**inputs.tasks_of, **await asyncio.to_thread(self.board.tasks_of, names)})

    async def _scan(self, last: ScanPosition | None) -> Scanned:
        """What git shows. After a revert everything is read: any issue may be concerned."""
        scanned = await self.repository.scan(last)
        if not scanned.full and (scanned.reverts or scanned.reverted_requests):
            return await self.repository.scan(None)
        return scanned

    async def _judge(self, state: _PassState, now: str) -> None:
        """Judge what may have changed, with all that it depends on. What is as it was only grows older."""
        records, inputs, facts = state.records, state.inputs, state.facts
        ages = Ages(active_hours=self.settings.active_hours, stale_days=self.settings.stale_days)
        if inputs.scanned.full:
            state.names = names_now({}, inputs.scanned)
            before = {number: was for number, kept in records.kept.items() if (was := kept.assessment) is not None}
            state.judged_again = set(facts)
            state.judged = assess_all(facts, now, before, base=inputs.scanned.position.base, ages=ages)
            return
        state.judged_by = {n: judged_by(each, records, inputs) for n, each in facts.items() if n not in state.ended}
        moved = moved_in(records, inputs, facts, state.judged_by)
        gone = [number for number in records.kept if number not in facts]
        concerned = those_behind(facts, {*moved, *gone}) - state.ended
        before, clock = {}, Clock(now, ages)
        for number in state.judged_by:
            was = records.kept[number].assessment if number in records.kept else None
            if was is None:
                concerned |= those_behind(facts, {number})
            else:
                before[number] = was
                state.judged[number] = _aged(was, clock)
        part = needed_by(facts, concerned)
        wanted = {*part, *requests_of(facts, part), *inputs.scanned.on_base, *inputs.scanned.of_requests} - state.ended
        names = await asyncio.to_thread(self.board.commits, wanted) if wanted else {}
        state.names, state.judged_again = names_now(names, inputs.scanned), concerned
        if concerned:
            on_base = together(inputs.scanned, await self.repository.commits(names_of(names, but=inputs.scanned)))
            bare = {number: state.recorded[number] for number in part}
            inputs = await self._with_sessions(records, inputs, on_base)
            facts.update(facts_of(records, bare, on_base, inputs, state.ended))
            part_of_it = {number: facts[number] for number in part}
            judged = assess_all(part_of_it, now, before, base=inputs.scanned.position.base, ages=ages)
            state.judged.update((number, judged[number]) for number in concerned)
        state.judged = {number: state.judged[number] for number in state.judged_by}

    async def _conditions(self, state: _PassState, scope: Scope) -> Mapping[int, tuple[CompletionCondition, ...]]:
        """The completion conditions of issues in progress whose comment may change."""
        begun = [number for number, each in state.judged.items() if each.state is IssueState.IN_PROGRESS]
        facts = [state.facts[number] for number in begun]
        wanted = [
            each.number
            for each in facts
            if self._is_asked_for(each, state.records, scope) and not any(session.alive for session in each.sessions)
        ]
        return await self.repository.conditions(wanted) if wanted else {}

    def _keep(self, state: _PassState) -> tuple[str, ...]:
        """Write down what is new. On a read-only database the report is the same, and the next pass is no quicker."""
        records, inputs = state.records, state.inputs
        changed: dict[int, tuple[str, IssueAssessment]] = {}
        moving: set[int] = set()
        for number, judged in state.judged.items():
            kept = records.kept.get(number)
            stamp = self._stamp(number, state)
            if stamp != state.stamps.get(number):
                moving.add(number)
            if kept is None or kept.stamp != stamp or (number in state.judged_again and not _is_same(judged, kept)):
                changed[number] = (stamp, judged)
        positions = {
            _GIT: msgspec.json.encode(msgspec.structs.replace(inputs.scanned.position, form=_FORM)).decode(),
            _GIT_BEFORE: "",
            "reverts": inputs.reverts.encoded() if inputs.reverts else "",
            "event": str(records.newest_event),
            "journals": inputs.journals,
        }
        moved = {name: message for name, message in positions.items() if records.positions.get(name, "") != message}
        ended = _ended_now(records, moving)
        if changed or records.positions.get(ENDED, "") != ended:  # a pass that saw more meanwhile has to look again
            moved[ENDED] = ended
        gone = tuple(number for number in records.kept if number not in state.facts)
        names, full = state.names, inputs.scanned.full
        if not (changed or moved or gone or full or names):
            return ()
        try:
            self.board.keep(Keeps(assessments=changed, commits=names, positions=moved, full=full, gone=gone))
        except StateConflictError as error:
            return (f"what was seen cannot be kept: {error.message}",)
        return ()

    def _stamp(self, number: int, state: _PassState) -> str:
        """What an issue was judged by; where it rests, what changes with it."""
        facts, judged = state.facts[number], state.judged[number]
        if rests(facts, judged, state.inputs) and (touched := state.stamps.get(number, "")):
            kept = state.records.kept.get(number)
            values = {number: _posted(kept)} if kept is not None and kept.posted else {}
            if not values or not actions({number: judged}, {number: facts}, values, self.settings.keeping, Known()):
                return touched  # no comment begins on a closed issue
        return state.judged_by.get(number) or judged_by(facts, state.records, state.inputs)

    def _resting(self, state: _PassState, scope: Scope) -> tuple[int, ...]:
        """The issues that rest, as far as they were asked for."""
        ended = {each: state.facts[each] for each in state.ended}
        in_field = {number for number, each in ended.items() if self._is_in_field(each, state.records)}
        shown = {number for number in in_field if self._is_asked_for(ended[number], state.records, scope)}
        return tuple(sorted(shown | state.records.resting))

    def _as_kept(self, numbers: tuple[int, ...], now: str) -> dict[int, IssueAssessment]:
        """Issues that rest, as they were judged, and as fresh as they are now."""
        clock = Clock(now, Ages(active_hours=self.settings.active_hours, stale_days=self.settings.stale_days))
        found = ((number, kept.assessment) for number, kept in self.board.kept(numbers).items())
        return {number: _aged(was, clock) for number, was in found if was is not None}

    def _is_in_field(self, facts: IssueFacts, records: BoardRecords) -> bool:
        tracked = records.issues.get(facts.number)
        return tracked is None or facts.status is not None or self.settings.everything or tracked[1]

    def _is_asked_for(self, facts: IssueFacts, records: BoardRecords, scope: Scope) -> bool:
        if scope.label and scope.label.casefold() not in (label.casefold() for label in facts.labels):
            return False
        if scope.numbers is not None:
            return facts.number in scope.numbers
        if scope.board is not None:
            tracked = records.issues.get(facts.number)
            cards = tracked[2].cards if tracked is not None else ()
            return any(is_board(card.owner, card.project, scope.board) for card in cards)
        return True

    def _around(self, scope: Scope, resting: int, offered: tuple[AvailableAgent, ...]) -> TriageContext:
        owner, project = scope.board or ("", None)
        own = self.settings.repository.partition("/")[0]
        return TriageContext(
            repository=self.settings.repository,
            worker=self.settings.worker,
            reviewer=reviewer_on_offer(self.settings.reviewer, offered),
            label=scope.label,
            project=project,
            project_owner=owner if owner.casefold() != own.casefold() else "",
            resting=resting,
            unread=scope.unread,
        )

    def _report(
        self,
        records: BoardRecords,
        moves: Recommender,
        known: Known,
        agents: tuple[AvailableAgent, ...],
        resting: tuple[int, ...],
        now: str,
    ) -> FieldReport:
        field = {number: moves.field[number] for number in moves.shown}
        assessments = {number: moves.assessments[number] for number in moves.shown}
        recommendation = moves.recommend()
        values = {number: _posted(kept) for number, kept in records.kept.items() if number in field}
        report = FieldReport(
            project=self.settings.repository or self.settings.project,
            looked_at=now,
            agents=agents,
            assessments=tuple(assessments.values()),
            resting=resting,
            actions=actions(assessments, field, values, self.settings.keeping, known),
            recommendation=recommendation,
            health=health_of(assessments, recommendation, moves.around.unread, in_work=moves.in_work),
            orphaned=orphaned(assessments, field, moves.around),
            unread=moves.around.unread,
        )
        return msgspec.structs.replace(report, incomplete=tuple(_incomplete(report, len(report.actions))))


_REST = "more comments are due than one pass posts: genba facilitate --apply"


def unready(report: FieldReport) -> tuple[str, ...]:
    """What keeps the field from being ready, besides comments that are due: a dry run posts none."""
    return tuple(_incomplete(report, waiting=0))


def unready_for(look: TriageResult, issue: int) -> tuple[str, ...]:
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


def _project_warnings(records: BoardRecords) -> Iterable[str]:
    """Warnings about a paused or stopping project."""
    if records.stopping:
        yield "the project is stopping: no session continues   genba resume"
    elif records.paused:
        yield "the project is paused: nothing new begins   genba resume"


def _silent(report: FieldReport) -> Iterable[str]:
    """Agents that are named as the next ones, and would not answer."""
    named = {each.agent for each in report.recommendation.suggestions}
    for agent in report.agents:
        if agent.name in named and not agent.answers:
            yield f"agent {agent.name} has no adapter   genba doctor"


def _last(positions: Mapping[str, str]) -> ScanPosition | None:
    """How far git was read, where this version of Genba did it."""
    try:
        last = _position.decode(positions.get(_GIT) or "{}")
    except msgspec.MsgspecError:
        return None
    return last if last.form == _FORM else None


def _ended_now(records: BoardRecords, moving: Collection[int]) -> str:
    """Which of the tasks that ended rest after a look, and which do not."""
    all_ = sorted({*records.ended.resting, *records.ended.moving})
    resting, others = [n for n in all_ if n not in moving], [n for n in all_ if n in moving]
    return msgspec.json.encode(Ended(mark=records.ended.mark, resting=resting, moving=others)).decode()


def _with_past(agent: AvailableAgent, succeeded: int, failed: int) -> AvailableAgent:
    return msgspec.structs.replace(agent, succeeded=succeeded, failed=failed)


def _posted(kept: Kept) -> Posted:
    return Posted(digest=kept.posted, state=kept.posted_state)


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
