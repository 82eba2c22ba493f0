"""Who takes a task: its assignee, else an agent with a capability that it names, else whom the project names.

Law: the fleet that starts an agent and the facilitator that suggests one ask here.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec

from genba.domain.problems import did_you_mean
from genba.domain.tasks.task import PERSON, Phase
from genba.judgement.loop.closure import stage_after
from genba.judgement.scheduling.actions import Agent

_NONE = "there is no such agent, or no adapter is chosen for it (agents in .genba/config.yaml)"


class Assignable(Protocol):
    """What decides who takes a task."""

    @property
    def number(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def labels(self) -> tuple[str, ...]: ...
    @property
    def assignee(self) -> str: ...
    @property
    def phases(self) -> tuple[Phase, ...]: ...


class Capable(Protocol):
    """What decides whether an agent takes a task."""

    @property
    def name(self) -> str: ...
    @property
    def capabilities(self) -> tuple[str, ...]: ...


class Assignment(msgspec.Struct, frozen=True):
    agent: str
    why: str


class NoAgent(msgspec.Struct, frozen=True):
    """There is no agent for it."""

    why: str


class LeftToPerson(NoAgent, frozen=True):
    """A person has it, and no agent takes it."""


class PhaseCompleted(msgspec.Struct, frozen=True):
    """An agent completed its phase and left the task open, and no other agent takes it until a person names one."""

    why: str
    command: str


def assign_next(
    task: Assignable, agents: Sequence[Capable], default: str, stages: tuple[str, ...] = ()
) -> Assignment | NoAgent | PhaseCompleted:
    """The next agent of a task: the one that `assign` names, but none that has completed its phase of it."""
    found = assign(task, agents, default, stages)
    if isinstance(found, NoAgent):
        waits = task.phases and not task.assignee and not stages
        return _left_open(task, task.phases[-1]) if waits else found
    return phase_completed_by(task, found.agent) or found


def phase_completed_by(task: Assignable, agent: str) -> PhaseCompleted | None:
    """Why an agent does not go on with a task: it has completed its phase of it, and the task stayed open."""
    last = next((phase for phase in reversed(task.phases) if phase.agent == agent), None)
    return None if last is None else _left_open(task, last)


def _left_open(task: Assignable, last: Phase) -> PhaseCompleted:
    why = f"{last.agent} completed its phase with {last.commit[:7]} and left it open"
    return PhaseCompleted(why, f"genba task edit {task.number} --assignee AGENT")


def assign(
    task: Assignable, agents: Sequence[Capable], default: str, stages: tuple[str, ...] = ()
) -> Assignment | NoAgent:
    """The first agent to try a task. Where its type has stages, that is the agent of the stage it is at."""
    names = [agent.name for agent in agents]
    if stages:
        return _at_stage(task, stages, names)
    if task.assignee.startswith(PERSON):
        why = f"it is assigned to {task.assignee}, a person: an agent takes it once it is assigned to one"
        return LeftToPerson(f"{why}  genba task edit {task.number} --assignee AGENT")
    if task.assignee:
        if task.assignee in names:
            return Assignment(task.assignee, "it is assigned to it")
        why = f'it is assigned to "{task.assignee}", and {_NONE}'
        return NoAgent(f"{why}  genba agent check {task.assignee}")
    best = max(agents, key=lambda agent: (_fit(agent, task), agent.name == default), default=None)
    if best is not None and _fit(best, task):
        fits = [word for word in dict.fromkeys((task.type, *task.labels)) if word in best.capabilities]
        return Assignment(best.name, f"it can do {', '.join(fits)}")
    return named(default, names, "work.agent")


def _at_stage(task: Assignable, stages: tuple[str, ...], names: Collection[str]) -> Assignment | NoAgent:
    stage = stage_after(stages, {phase.agent for phase in task.phases})
    if not stage:
        return NoAgent(f"all of its stages are complete, and the last one left it open  genba task show {task.number}")
    if stage in names:
        return Assignment(stage, f"stage {stages.index(stage) + 1} of {len(stages)} is its own")
    return NoAgent(f'it is at the stage of "{stage}", and {_NONE}  genba agent check {stage}')


def named(agent: str, names: Collection[str], setting: str) -> Assignment | NoAgent:
    """The agent that a setting names, if there is one."""
    if agent in names:
        return Assignment(agent, f"{setting} says so")
    near = did_you_mean(agent, names)
    return NoAgent(f'{setting} names "{agent}", and {_NONE}{f"; {near}" if near else ""}  genba agent check {agent}')


def reviewers(wanted: str, configured: str, agents: Sequence[Agent], authors: Collection[str]) -> tuple[str, ...]:
    """Who may review, best first: whom the task names, whom the project names, who can review. Never an author."""
    able = [agent.name for agent in agents if "review" in agent.capabilities]
    names = {agent.name for agent in agents}
    return tuple(name for name in dict.fromkeys((wanted, configured, *able)) if name in names and name not in authors)


def no_reviewer(configured: str, agents: Sequence[Agent]) -> str:
    """Why no agent may review: `reviewers` finds only authors."""
    able = reviewers("", configured, agents, ())
    if able:
        return f"only {', '.join(able)} could review it, and has worked on it"
    return f'review.agent names "{configured}", {_NONE}, and no other agent can do "review"'


def _fit(agent: Capable, task: Assignable) -> int:
    """How many words of a task are capabilities of an agent."""
    return len({task.type, *task.labels} & set(agent.capabilities))
