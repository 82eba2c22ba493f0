"""What completes the issues of a field: the goals that their work is held to, and what of them held."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from genba.application.verification.policies import policy_resolver
from genba.domain.errors import NotFoundError
from genba.judgement.loop.completion_conditions import completion_conditions

if TYPE_CHECKING:
    from collections.abc import Collection

    from genba.application.project.project_context import ProjectContext
    from genba.domain.facilitation import CompletionCondition
    from genba.domain.goals.verification import Verification
    from genba.domain.tasks.task import Task


async def conditions_of(
    context: ProjectContext, base: str, numbers: Collection[int]
) -> dict[int, tuple[CompletionCondition, ...]]:
    """By issue: its artifacts and goals, by the settings of the base; nothing where there is no base."""
    tip = await context.layout.git.commit_of(f"refs/heads/{base}")
    if tip is None:
        return {}
    rules = await policy_resolver(context).read(tip, base)
    tasks = await asyncio.to_thread(_tasks, context, numbers)
    found = {}
    for number in numbers:
        task, last = tasks.get(number, (None, None))
        policy = rules.policy(task)
        found[number] = completion_conditions(policy.goals, policy.artifacts, last)
    return found


def _tasks(context: ProjectContext, numbers: Collection[int]) -> dict[int, tuple[Task, Verification | None]]:
    """The issues that are tasks, each with its last verdict."""
    board, found = context.board(), {}
    for number in numbers:
        try:
            found[number] = (board.get(number), board.last_verification(number))
        except NotFoundError:
            continue
    return found
