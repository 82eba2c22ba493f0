"""What completes the issues of a field: the goals that their work is held to, and what of them held."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from genba.connections.git.repository.history import GitHistory
from genba.domain.errors import NotFoundError
from genba.execution.verification.policy import PolicyResolver
from genba.judgement.loop.completion_conditions import completion_conditions

if TYPE_CHECKING:
    from collections.abc import Collection

    from genba.domain.facilitation import CompletionCondition
    from genba.domain.goals.verification import Verification
    from genba.domain.tasks.task import Task
    from genba.wiring.project.project_context import ProjectContext


async def conditions_of(
    context: ProjectContext, base: str, numbers: Collection[int]
) -> dict[int, tuple[CompletionCondition, ...]]:
    """By issue: its artifacts and goals, by the settings of the base; nothing where there is no base."""
    tip = await context.layout.git.commit_of(f"refs/heads/{base}")
    if tip is None:
        return {}
    rules = await PolicyResolver(GitHistory(context.layout.git), context.project.rules, context.project.source).read(
        tip, base
    )
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
