"""What a run puts into a pull request: its words, and what it is held to once it is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from genba.domain.sessions.outcomes import ClosureAction
from genba.domain.tracker.issues import IssueChange
from genba.domain.tracker.quoting import harmless
from genba.domain.tracker.remote import Terms
from genba.execution.delivery.finalize import Delivery
from genba.execution.delivery.pull_request_text import PullRequestFacts, body_of, title_of
from genba.judgement.loop.closure import change_on_completion, ends_task

if TYPE_CHECKING:
    from genba.execution.delivery.session_delivery import FinishedWork
    from genba.execution.delivery.task_updates import TaskKeeper
    from genba.execution.run_values import RunPlan
    from genba.execution.session_context import SessionContext


def proposed(
    plan: RunPlan,
    context: SessionContext,
    tasks: TaskKeeper | None,
    work: FinishedWork,
    delivery: Delivery,
    action: ClosureAction | None,
) -> Delivery:
    """The delivery of a session that opens a pull request."""
    issue, redact = work.issue, context.redact
    facts = PullRequestFacts(
        issue=plan.issue,
        title=issue.title if issue else "",
        asked=issue.body if issue else "",
        agent=plan.definition.name,
        run=plan.run,
        iterations=work.state.iterations,
        action=action,
        evidence=work.proof.evidence if work.proof is not None else None,
        trailers=delivery.trailers.rpartition("\n\n")[2],
        language=plan.definition.language,
    )
    awaited = tasks is not None and (ends_task(action) or tasks.moves_on)
    followed = awaited and context.tracker.follows_pull_requests and plan.issue is not None
    terms = _terms(plan, work, delivery, facts) if followed else None
    return msgspec.structs.replace(
        delivery,
        issue=plan.issue,
        title=redact(title_of(facts, delivery.subject)),
        body=redact(body_of(facts)),
        terms=terms,
    )


def _terms(plan: RunPlan, work: FinishedWork, delivery: Delivery, facts: PullRequestFacts) -> Terms:
    settings = plan.definition.file.runner
    finalize, integration = settings.execution.finalize, settings.integrations.github
    workspace, proof = work.workspace, work.proof
    closure = change_on_completion(integration, work.state.closure, facts.action)
    if not integration.enabled and facts.action is not None:  # a fleet ends a task, whatever its agent does to issues
        closure = IssueChange(close=ends_task(facts.action))
    return Terms(
        task=facts.issue or 0,
        run=facts.run,
        agent=facts.agent,
        branch=workspace.branch,
        target=finalize.pr_target or workspace.base_branch,
        remote=finalize.remote,
        commit=proof.held if proof is not None and proof.done else "",
        closure=closure,
        merge=finalize.pr_merge,
        method=finalize.pr_merge_method,
        title=harmless(delivery.subject),
        body=facts.trailers,
    )
