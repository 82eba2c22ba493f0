"""The state of a loop whose finished work failed a check on its way out."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from genba.domain.sessions.evidence import CheckResult, TreeFacts
from genba.domain.sessions.loop_state import LoopState
from genba.judgement.language.sentences import detail_in
from genba.judgement.language.wording import say
from genba.judgement.loop.claims import ClaimKind, read_claim
from genba.judgement.loop.verdicts import Judge

_OF_ANSWERS = ("plan", "review")
"""Checks of a structured output, not of a commit."""
_VERIFICATION = "verification"


def after_failed_delivery(
    judge: Judge, state: LoopState, failed: CheckResult, facts: TreeFacts, redact: Callable[[str], str]
) -> LoopState:
    """Another attempt with the failed check as feedback; ended when no attempt is left."""
    language = judge.definition.language
    message, denied = failed, state.denied
    if failed.name in _OF_ANSWERS:
        denied = ()
    elif failed.name != _VERIFICATION:
        alone = say(language, "committed_alone", detail=detail_in(language, failed.name, failed.detail))
        message = msgspec.structs.replace(failed, detail=alone)
    again = state.last_failure if failed.name == _VERIFICATION else None
    # The judge adds the iteration that is under way, and here none is.
    before = msgspec.structs.replace(state, last_failure=again, iterations=state.iterations - 1)
    claim = read_claim(state.output)
    verdict = judge.failed(before, claim.text if claim.kind is ClaimKind.COMPLETE else "", message, facts, denied)
    reason = verdict.reason
    if verdict.outcome is not None and failed.name in _OF_ANSWERS and failed.output:
        reason = f"{reason}: {failed.output.splitlines()[0]}"
    return msgspec.structs.replace(
        state,
        gap=verdict.gap,
        attempts=state.with_failed_attempt(),
        last_failure=verdict.failure or state.last_failure,
        outcome=verdict.outcome,
        reason=redact(reason),
        judged="",
    )
