"""What a run puts into a pull request: its words, and what it is held to once it is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from genba.domain.sessions.outcomes import ClosureAction
from genba.domain.tracker.issues import Issue, IssueChange
from genba.domain.tracker.quoting import harmless
from genba.domain.tracker.remote import Terms
from genba.execution.delivery.finalize import Delivery
from genba.execution.delivery.pull_request_text import Told, body_of, title_of
from genba.judgement.loop.closure import change_on_completion, ends_task

if TYPE_CHECKING:
    from genba.execution.run import Run


def proposed(run: Run, delivery: Delivery, issue: Issue | None, action: ClosureAction | None) -> Delivery:
    """The delivery of a run that opens a pull request."""
    plan, state, redact = run.plan, run.state, run.world.redact
    result = Told(
        issue=plan.issue,
        title=issue.title if issue else "",
        asked=issue.body if issue else "",
        agent=run.definition.name,
        run=plan.run,
        iterations=state.iterations,
        action=action,
        evidence=run.proof.evidence if run.proof is not None else None,
        trailers=delivery.trailers.rpartition("\n\n")[2],
        language=run.definition.language,
    )
    awaited = run.tasks is not None and (ends_task(action) or run.tasks.moves_on)
    followed = awaited and run.world.follows and plan.issue is not None
    terms = _terms(run, delivery, result) if followed else None
    return msgspec.structs.replace(
        delivery,
        issue=plan.issue,
        title=redact(title_of(result, delivery.subject)),
        body=redact(body_of(result)),
        terms=terms,
    )


def _terms(run: Run, delivery: Delivery, told: Told) -> Terms:
    finalize, integration = run.settings.execution.finalize, run.settings.integrations.github
    workspace, proof = run.workspace, run.proof
    closure = change_on_completion(integration, run.state.closure, told.action)
    if not integration.enabled and told.action is not None:  # a fleet ends a task, whatever its agent does to issues
        closure = IssueChange(close=ends_task(told.action))
    return Terms(
        task=told.issue or 0,
        run=told.run,
        agent=told.agent,
        branch=workspace.branch if workspace is not None else "",
        target=finalize.pr_target or (workspace.base_branch if workspace is not None else ""),
        remote=finalize.remote,
        commit=proof.held if proof is not None and proof.done else "",
        closure=closure,
        merge=finalize.pr_merge,
        method=finalize.pr_merge_method,
        title=harmless(delivery.subject),
        body=told.trailers,
    )
