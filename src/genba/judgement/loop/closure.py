"""What is done to the issue, and the words that say so in the prompt."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from genba.definitions.agent.agent_json import IssueIntegration
from genba.definitions.agent.definition import AgentDefinition
from genba.domain.sessions.loop_state import ClosureChoice
from genba.domain.sessions.outcomes import ClosureAction
from genba.domain.tracker.issues import IssueChange
from genba.judgement.language.sentences import in_language
from genba.judgement.language.wording import say

if TYPE_CHECKING:
    from genba.domain.tasks.task import Task


class ClosureWording(msgspec.Struct, frozen=True):
    """The prompt speaks the same language as the action."""

    criteria: str
    instruction: str
    word: str


def wording(action: ClosureAction, issue: int, language: str = "en") -> ClosureWording:
    kept = action is ClosureAction.LABEL_ONLY
    result = say(language, action.replace("-", "_"), issue=issue)
    instruction = say(language, "label_only_instruction" if kept else "close_instruction")
    return ClosureWording(result, instruction, "complete" if kept else "close")


def chosen_action(settings: IssueIntegration, choice: ClosureChoice) -> ClosureAction:
    """Structured output, then the agent's default."""
    return choice.action or settings.default_closure_action


def ending_a_phase(definition: AgentDefinition) -> AgentDefinition:
    """The definition of an agent whose stage is not the last one: its prompts speak of its phase alone."""
    runner = definition.file.runner
    github = replace(runner.integrations.github, default_closure_action=ClosureAction.LABEL_ONLY)
    runner = replace(runner, integrations=replace(runner.integrations, github=github))
    return replace(definition, file=replace(definition.file, runner=runner))


def change_on_start(settings: IssueIntegration) -> IssueChange:
    label = settings.labels.in_progress
    blocked = settings.labels.blocked
    if not settings.enabled:
        return IssueChange()
    return IssueChange(add_labels=_one(label), remove_labels=_one(blocked))


def ends_task(action: ClosureAction | None) -> bool:
    """True when an action ends the task; without one, or with labels alone, it stays open."""
    return action is not None and action is not ClosureAction.LABEL_ONLY


def action_in_fleet(settings: IssueIntegration, choice: ClosureChoice, moves_on: bool) -> ClosureAction:
    """What becomes of a task whose work landed in a fleet. Without the integration a task ends by its verified work."""
    if moves_on:
        return ClosureAction.LABEL_ONLY
    return chosen_action(settings, choice) if settings.enabled else ClosureAction.CLOSE


def stage_of(stages: tuple[str, ...], task: Task) -> str:
    """The agent whose stage a task is at; empty when it has no stages, or all of them are complete."""
    return stage_after(stages, {phase.agent for phase in task.phases})


def stage_after(stages: tuple[str, ...], complete: Collection[str]) -> str:
    """The first agent whose stage is not complete; empty when there is none."""
    return next((agent for agent in stages if agent not in complete), "")


def moves_on(stages: tuple[str, ...], task: Task, agent: str) -> bool:
    """True when another stage follows that of this agent. The answer stays the same once its stage is complete."""
    complete = {phase.agent for phase in task.phases} | {agent}
    return any(stage not in complete for stage in stages)


def change_on_completion(
    settings: IssueIntegration, choice: ClosureChoice, action: ClosureAction | None = None
) -> IssueChange:
    """What is done to the issue; by default what was chosen."""
    if not settings.enabled:
        return IssueChange()
    labels = settings.labels
    return IssueChange(
        add_labels=tuple(dict.fromkeys((*labels.completion.add, *choice.add_labels))),
        remove_labels=tuple(
            dict.fromkeys((*labels.completion.remove, *choice.remove_labels, *_one(labels.in_progress)))
        ),
        close=ends_task(action or chosen_action(settings, choice)),
    )


def change_on_block(settings: IssueIntegration, reason: str, language: str = "en") -> IssueChange:
    if not settings.enabled:
        return IssueChange()
    return IssueChange(
        add_labels=_one(settings.labels.blocked),
        remove_labels=_one(settings.labels.in_progress),
        comment=say(language, "blocked_comment", reason=in_language(language, reason)),
    )


def change_on_stop(settings: IssueIntegration) -> IssueChange:
    return IssueChange(remove_labels=_one(settings.labels.in_progress)) if settings.enabled else IssueChange()


def _one(label: str | None) -> tuple[str, ...]:
    return (label,) if label else ()
