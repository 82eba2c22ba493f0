"""Reviews in `genba run`: a reviewer that judges the commit of a task, and work that is reviewed on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from genba.entrypoints.cli.failures import show_warning
from genba.entrypoints.cli.project_lookup import run_async
from genba.entrypoints.cli.rendering.printable import printable

if TYPE_CHECKING:
    from genba.definitions.agent.definition import AgentDefinition
    from genba.definitions.agent.layers import Layer
    from genba.execution.run_values import ReviewOrder, RunPlan, RunResult
    from genba.wiring import ProjectContext


def order_of(
    context: ProjectContext, definition: AgentDefinition, number: Any, commit: str | None
) -> ReviewOrder | None:
    """The review that a reviewer performs for a task; warns where its verdict is not recorded."""
    if number is None or not context.has_board():
        return None
    from genba.application.sessions.reviews import NotRecorded, review_order  # noqa: PLC0415  (a run without a task needs none)

    order = run_async(review_order(context, definition, int(number), commit))
    if isinstance(order, NotRecorded):
        show_warning(order.why)
        return None
    return order


def held_to(layers: list[Layer]) -> list[Layer]:
    from genba.application.sessions import reviews as review_runs  # noqa: PLC0415  (see order_of)

    return review_runs.held_to(layers)


def as_review(context: ProjectContext, plan: RunPlan, order: ReviewOrder) -> RunPlan:
    from genba.application.sessions import reviews as review_runs  # noqa: PLC0415  (see order_of)

    return review_runs.as_review(context, plan, order)


def check_review(context: ProjectContext, plan: RunPlan) -> None:
    """Refuse --review before anything starts where no agent decides on the work."""
    from genba.application.sessions.reviews import check_requested  # noqa: PLC0415  (see order_of)

    check_requested(context, plan.issue)


def reviewed(context: ProjectContext, result: RunResult, carry_out: Callable[[RunPlan], RunResult]) -> RunResult:
    """Review the work until it is approved and has landed, or a person must decide.

    The author goes on with what a reviewer requests, at most `review.rounds` times.
    """
    from genba.application.sessions.reviews import review_plan, waits_for_agent  # noqa: PLC0415  (see order_of)
    from genba.application.sessions.session_record import resumed_plan  # noqa: PLC0415

    run = result.run
    while waits_for_agent(context, result.issue):
        verdict = carry_out(run_async(review_plan(context, int(result.issue or 0), run)))
        if verdict.review is None:
            return verdict
        result = carry_out(resumed_plan(context, run, {}))
    return result


def show_verdict(result: RunResult) -> None:
    """Print the verdict of a session that reviewed."""
    found = result.review
    if found is None:
        return
    how = found.verdict.replace("_", " ")
    advice = "" if found.recorded else ": advice, a person decides"
    click.echo(printable(f"#{found.task} {how} on {found.commit[:7]} by {found.reviewer}{advice}"))
    for line in (*found.findings, *found.summary.splitlines()):
        click.echo(f"  {printable(line)}")
