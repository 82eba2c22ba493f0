"""What to do next in the whole field: the moves of all issues, the best first, and why nothing where nothing fits."""

import shlex
from collections.abc import Collection, Mapping, Sequence

import msgspec

from genba.domain.facilitation import (
    AvailableAgent,
    IssueAssessment,
    IssueFacts,
    IssueState,
    RecommendAction,
    Suggestion,
)
from genba.domain.sessions.session import SessionStatus
from genba.domain.tasks.task import TaskStatus
from genba.judgement.scheduling.assignment import Assignment, NoAgent, PhaseCompleted, assign_next
from genba.judgement.triage.suggestions import (
    NO_AGENT,
    WORK,
    SuggestedCommand,
    TriageContext,
    can_be_called,
    can_be_staged,
    closing_command,
    deadline_of,
    left_lying,
    looking_command,
    move_of_assignee,
    move_of_person,
    move_of_phase,
    move_of_stage,
    score_of,
    success_of,
    suggestion_of_agent,
    suggestion_of_person,
)
from genba.judgement.triage.text_similarity import fit, words_of

__all__ = ["IN_WORK", "NO_AGENT", "Recommender", "TriageContext", "closing_command", "recommend"]

IN_WORK = "everything that can go on is in work"
FACILITATOR = "facilitator"
_FACILITATES = "facilitate-action"
_WORKS = "issue-action"
_PLANNER = "planner"
_MOST_SUGGESTIONS = 20
_MOST_WAITING = 100
"""How many issues that wait for one are counted at most."""
_LEAST_FIT, _MOST_FIT = 0.5, 1.0
_MOST_NAMED = 5


class _Candidate(msgspec.Struct, frozen=True):
    agent: AvailableAgent
    words: frozenset[str]


class _Way(msgspec.Struct, frozen=True):
    """How an issue can go on: by a person, or by one of some agents. `most` is the best score it can come to."""

    number: int
    move: SuggestedCommand | None
    most: float


class Recommender:
    """The next moves of a field. The facilitator itself is one of them only where it is the stage of a task.

    `shown` are the issues that are asked for; without it, all of them. The others count by how many of them wait for
    one that is shown, and are suggested only where they stand in its way.
    """

    def __init__(
        self,
        assessments: Mapping[int, IssueAssessment],
        field: Mapping[int, IssueFacts],
        agents: Sequence[AvailableAgent],
        around: TriageContext,
        shown: Collection[int] | None = None,
    ) -> None:
        self.assessments = assessments
        self.shown = assessments.keys() if shown is None else shown
        self.field = field
        self.agents = tuple(agent for agent in agents if agent.name != FACILITATOR)
        self.by_name = {agent.name: agent for agent in agents}
        self.around = around
        self.waiting = _waiting_for(assessments, field)
        self.candidates = _by_capability(agents, around.worker)
        self.callable = tuple(agent for agent in self.agents if _works(agent))
        self.answering = tuple(agent for agent in self.callable if agent.answers)
        workers = {each.agent.name for each in self.candidates.get(_WORKS, ())}
        self.worker = around.worker if around.worker in workers else ""
        self._takers: dict[tuple[str, tuple[str, ...]], Assignment | NoAgent | PhaseCompleted] = {}

    def for_issue(self, number: int) -> Suggestion | None:
        """The next command for one issue, unless that is under way."""
        way = self._way(number)
        return self._suggestion(way) if way is not None else None

    def command_for(self, number: int) -> str:
        """What to type about one issue: its own move, a look at who works on it, or the move of what it waits for."""
        seen: set[int] = set()
        at: int | None = number
        while at is not None and at not in seen and at in self.assessments:
            seen.add(at)
            found = self.for_issue(at)
            if found is not None:
                return found.command
            alive = sorted(session.run for session in self.field[at].sessions if session.alive)
            if alive:
                return f"genba logs {shlex.quote(alive[0])}"
            at = self._before(at)
        return ""

    def for_comment(self, number: int) -> str:
        """A command for a comment: where nothing can be done by one, a look at the issue."""
        return self.command_for(number) or looking_command(self.field[number], self.around)

    def _before(self, number: int) -> int | None:
        """What has to go on before an issue can: the root of what it waits for, or the first of its parts."""
        for blocker in self.assessments[number].blockers:
            if blocker.chain:
                return blocker.chain[-1]
        left = (each for child in self.field[number].children if (each := self.assessments.get(child)) is not None)
        return next((each.issue for each in left if each.state is not IssueState.DONE), None)

    def recommend(self) -> RecommendAction:
        ways = [way for number in self._asked_for() if (way := self._way(number)) is not None]
        ways.sort(key=lambda way: (-way.most, way.number))
        found = self._best(ways)
        startable = [each for each in found if each.agent != NO_AGENT]
        by_agents = sum(way.move is None for way in ways)
        shown = found[:_MOST_SUGGESTIONS]
        if by_agents > 1:
            shown.append(self._whole_project(startable, by_agents))
        first = startable[0].agent if startable else NO_AGENT
        targets = [each.issue for each in startable if each.agent == first and each.issue is not None]
        return RecommendAction(
            next_agent=first,
            target_issues=tuple(targets[:_MOST_SUGGESTIONS]),
            reason=self._reason(first, targets, found, by_agents),
            available_agents=tuple(agent.name for agent in self.agents),
            suggestions=tuple(shown),
        )

    def _asked_for(self) -> list[int]:
        """The issues that are shown, and what those wait for in the end that is not."""
        if len(self.shown) == len(self.assessments):
            return [*self.shown]
        shown = frozenset(self.shown)
        left = (number for number in shown if self.assessments[number].state is not IssueState.DONE)
        roots = {self._before(number) for number in left} - shown
        return [*self.shown, *sorted(root for root in roots if root is not None and root in self.assessments)]

    def _best(self, ways: Sequence[_Way]) -> list[Suggestion]:
        """The best suggestions, in order. How well texts fit is asked only where it can matter."""
        found: list[Suggestion] = []
        lowest = 0.0
        for way in ways:
            if len(found) >= _MOST_SUGGESTIONS and way.most < lowest:
                break
            found.append(self._suggestion(way))
            if len(found) % _MOST_SUGGESTIONS == 0:
                lowest = sorted((each.score for each in found), reverse=True)[_MOST_SUGGESTIONS - 1]
            if len(found) >= 10 * _MOST_SUGGESTIONS:
                break
        return sorted(found, key=lambda each: (-each.score, each.issue or 0, each.command))

    def _way(self, number: int) -> _Way | None:
        assessment = self.assessments[number]
        if assessment.state is IssueState.DONE and assessment.closed:
            return None
        facts = self.field[number]
        if any(session.alive for session in facts.sessions):
            return None
        waiting = self.waiting.get(number, 0)
        move = move_of_person(assessment, facts, self.around)
        if move is not None:
            return _Way(number, move, score_of(assessment, facts, waiting, 1.0, 0.5, self.around.today))
        able = self._able(assessment, facts)
        if assessment.required_capability is None or self._has_parts_left(facts):
            return None
        if not able:
            move = self._move_without_agent(assessment, facts)
            if move is None:
                return None
            return _Way(number, move, score_of(assessment, facts, waiting, 1.0, 0.5, self.around.today))
        best = max(success_of(each.agent) for each in able) if len(able) > 1 else success_of(able[0].agent)
        return _Way(number, None, score_of(assessment, facts, waiting, 1.0, best, self.around.today))

    def _able(self, assessment: IssueAssessment, facts: IssueFacts) -> Sequence[_Candidate]:
        """Who can be called for an issue. Where its type has stages, that is the agent of the stage it is at.

        Else it is the one whom a fleet would start. Where that is none, and no one has the task, it is the one that can
        do it.
        """
        able = self.candidates.get(assessment.required_capability or "", ())
        if facts.status is TaskStatus.REVIEW:
            return able
        if facts.stage is None:
            return self._able_to_work(facts, able) if assessment.required_capability == _WORKS else able
        agent = self.by_name.get(facts.stage)
        if agent is None or assessment.required_capability != _WORKS:
            return [each for each in able if each.agent.name == facts.stage]
        return [_Candidate(agent, frozenset())] if can_be_staged(agent) else ()

    def _able_to_work(self, facts: IssueFacts, able: Sequence[_Candidate]) -> Sequence[_Candidate]:
        session = left_lying(facts)
        if session is not None:  # it continues, whichever agent would begin now
            agent = self.by_name.get(session.agent)
            return [_Candidate(agent, frozenset())] if agent is not None else able
        found = self._taker(facts)
        if isinstance(found, Assignment):
            return [_Candidate(self.by_name[found.agent], frozenset())]
        return () if facts.assignee or facts.phases else able

    def _taker(self, facts: IssueFacts) -> Assignment | NoAgent | PhaseCompleted:
        if facts.assignee or facts.phases:
            return assign_next(facts, self.callable if facts.assignee else self.answering, self.worker)
        key = (facts.type, facts.labels)
        if key not in self._takers:
            self._takers[key] = assign_next(facts, self.answering, self.worker)
        return self._takers[key]

    def _move_without_agent(self, assessment: IssueAssessment, facts: IssueFacts) -> SuggestedCommand | None:
        """What a person does about an issue for which no agent can be called."""
        if facts.stage is not None:
            return self._move_at_stage(assessment, facts)
        if assessment.required_capability != _WORKS:
            return None
        if isinstance(found := self._taker(facts), PhaseCompleted):
            return move_of_phase(facts, found)
        return move_of_assignee(facts, self.around) if facts.assignee else None

    def _move_at_stage(self, assessment: IssueAssessment, facts: IssueFacts) -> SuggestedCommand:
        if assessment.state is IssueState.REVIEW_PENDING:
            return SuggestedCommand(looking_command(facts, self.around), f"Review #{facts.number}")
        return move_of_stage(facts, self.around)

    def _has_parts_left(self, facts: IssueFacts) -> bool:
        """Whether its parts are to be worked on, and not the whole."""
        others = (self.assessments.get(child) for child in facts.children)
        return any(each is not None and each.state is not IssueState.DONE for each in others)

    def _suggestion(self, way: _Way) -> Suggestion:
        assessment, facts = self.assessments[way.number], self.field[way.number]
        waiting = self.waiting.get(way.number, 0)
        if way.move is not None:
            return suggestion_of_person(assessment, facts, waiting, way.move, self.around.today)
        agent, fits = _chosen(self._able(assessment, facts), facts)
        return suggestion_of_agent(assessment, facts, waiting, agent, fits, self.around.today)

    def _whole_project(self, startable: Sequence[Suggestion], issues: int) -> Suggestion:
        """All that can go on, by many agents at once."""
        around = self.around
        label = f" --label {shlex.quote(around.label)}" if around.label else ""
        board = f" --project {around.project}" if around.project is not None else ""
        owner = f" --project-owner {shlex.quote(around.project_owner)}" if board and around.project_owner else ""
        scores = [each.score for each in startable] or [0.5]
        return Suggestion(
            agent=startable[0].agent if startable else NO_AGENT,
            command=f"{WORK}{label}{board}{owner}",
            description=f"All {issues} issues that can go on",
            priority="medium",
            score=round(sum(scores) / len(scores), 2),
            rationale=f"{issues} issues can go on at once",
        )

    def _reason(self, agent: str, targets: Sequence[int], found: Sequence[Suggestion], able: int) -> str:
        if targets:
            shown = targets[:_MOST_NAMED]
            states = ", ".join(f"#{number} is {self._state(number)}" for number in shown)
            more = f", and {able - len(shown)} more can go on" if able > len(shown) else ""
            return f"{states}{more}: {agent} {self._why(agent, targets[0])}"
        nothing = self._nothing()
        return f"{found[0].description} ({nothing})" if found else nothing

    def _state(self, number: int) -> str:
        deadline = deadline_of(self.field[number], self.around.today)
        return f"{self.assessments[number].state}{f' and {deadline}' if deadline else ''}"

    def _why(self, agent: str, number: int) -> str:
        """Why an agent is the one for an issue."""
        if self.field[number].stage == agent:
            return "is the agent of its stage"
        if self.field[number].assignee == agent:
            return "is its assignee"
        wanted = self.assessments[number].required_capability
        return f"has the capability {wanted}" if wanted in self.by_name[agent].capabilities else "works here"

    @property
    def in_work(self) -> bool:
        """True while an agent works on an issue that is left."""
        left = (number for number in self.shown if self.assessments[number].state is not IssueState.DONE)
        return any(session.alive for number in left for session in self.field[number].sessions)

    def _nothing(self) -> str:
        """Why no agent is recommended."""
        left = [each for number in self.shown if (each := self.assessments[number]).state is not IssueState.DONE]
        if not left and self.around.unread:
            return f"not known: {self.around.unread[0]}"
        if not self.shown and not self.around.resting:
            return "there are no issues"
        if not left:
            return "everything is done"
        free = [each for each in left if self.field[each.issue].stage is None]
        wanted = {each.required_capability for each in free if each.required_capability}
        lacking = sorted(name for name in wanted if not self.candidates.get(name))
        if self.in_work:
            return IN_WORK
        if lacking:
            return f"no agent that can be called with an issue has the capability {', '.join(lacking)}"
        return "nothing that is left can go on by an agent"


def recommend(
    assessments: Mapping[int, IssueAssessment],
    field: Mapping[int, IssueFacts],
    agents: Sequence[AvailableAgent],
    around: TriageContext = TriageContext(),  # noqa: B008  (a frozen value)
) -> RecommendAction:
    """The next moves, the best first."""
    return Recommender(assessments, field, agents, around).recommend()


def _waiting_for(assessments: Mapping[int, IssueAssessment], field: Mapping[int, IssueFacts]) -> dict[int, int]:
    """By issue: how many others wait for it, through others too."""
    behind: dict[int, list[int]] = {}
    for number, facts in field.items():
        if facts.dependencies and (mine := assessments.get(number)) and mine.state is not IssueState.DONE:
            for other in facts.dependencies:
                if (its := assessments.get(other)) and its.state is not IssueState.DONE:
                    behind.setdefault(other, []).append(number)
    return {number: _behind(number, behind) for number in behind}


def _behind(number: int, behind: Mapping[int, Sequence[int]]) -> int:
    seen = {number}
    ahead = [number]
    while ahead and len(seen) <= _MOST_WAITING:
        for other in behind.get(ahead.pop(), ()):
            if other not in seen:
                seen.add(other)
                ahead.append(other)
    return min(len(seen) - 1, _MOST_WAITING)


def _by_capability(agents: Sequence[AvailableAgent], worker: str) -> dict[str, list[_Candidate]]:
    """Who can be called for what.

    An agent without an adapter is not called where another one has one. An agent that says nothing of what it can works
    on issues where the project names it, or where no agent that declares it has an adapter.
    """
    found: dict[str, list[_Candidate]] = {}
    others: list[_Candidate] = []
    for agent in sorted(agents, key=lambda each: each.name):
        if not _works(agent):
            continue
        candidate = _Candidate(agent, words_of(agent.name, agent.display_name, agent.description))
        for capability in dict.fromkeys(agent.capabilities):
            found.setdefault(capability, []).append(candidate)
        if agent.answers and agent.name != _PLANNER and not agent.capabilities:
            others.append(candidate)
    able = {name: [each for each in all_ if each.agent.answers] or all_ for name, all_ in found.items()}
    workers = [each for each in able.get(_WORKS, ()) if each.agent.answers]
    named = [each for each in others if each.agent.name == worker]
    if workers or others:
        able[_WORKS] = [*workers, *named] or others
    return able


def _works(agent: AvailableAgent) -> bool:
    """Whether it can work on an issue: a facilitator does not."""
    facilitates = agent.name == FACILITATOR or _FACILITATES in agent.capabilities
    return not facilitates and can_be_called(agent)


def _chosen(able: Sequence[_Candidate], facts: IssueFacts) -> tuple[AvailableAgent, float]:
    """The best fit; then the one that succeeded more often, then the first by name.

    An agent with a waiting session of the issue continues it.
    """
    if len(able) == 1:
        return able[0].agent, _MOST_FIT
    waiting = {session.agent for session in facts.sessions if session.status == SessionStatus.WAITING}
    for each in able:
        if each.agent.name in waiting:
            return each.agent, _MOST_FIT
    words = words_of(facts.title, " ".join(facts.labels), facts.body)
    scored = [(fit(each.words, words), success_of(each.agent), -at) for at, each in enumerate(able)]
    best = max(scored)
    return able[-best[2]].agent, round(_LEAST_FIT + (_MOST_FIT - _LEAST_FIT) * best[0], 3)
