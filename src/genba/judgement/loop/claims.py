"""What a reply says about itself. A claim is never evidence."""

from enum import StrEnum
from typing import Any

import msgspec

from genba.domain.sessions.loop_state import ClosureChoice
from genba.domain.sessions.outcomes import ClosureAction
from genba.domain.text_limits import cut
from genba.judgement.loop.structured_output import field

_COMPLETE_STATUSES = frozenset({"completed", "complete", "done"})
_COMPLETE_ACTIONS = frozenset({"complete", "close", "closing", "done"})
_BLOCKED = frozenset({"blocked", "needs_input"})


class ClaimKind(StrEnum):
    NONE = "none"
    IN_PROGRESS = "in_progress"
    COMPLETE = "complete"
    BLOCKED = "blocked"


class Claim(msgspec.Struct, frozen=True):
    kind: ClaimKind
    text: str = ""


def read_claim(structured: dict[str, Any] | None) -> Claim:
    """The claim in a structured output: its status decides, and its action where it has no status."""
    if structured is None:
        return Claim(ClaimKind.NONE)
    status = _word(structured.get("status"))
    action = _word(field(structured, "next_action.action")) or _word(structured.get("action"))
    word = status or action
    if word in _BLOCKED:
        return Claim(ClaimKind.BLOCKED, explanation(structured) or word)
    complete = word in _COMPLETE_STATUSES if status else word in _COMPLETE_ACTIONS
    if complete or structured.get("complete") is True:
        return Claim(ClaimKind.COMPLETE, word or "complete")
    return Claim(ClaimKind.IN_PROGRESS, word)


def read_closure(structured: dict[str, Any] | None) -> ClosureChoice:
    """What the structured output chooses for the issue; an unknown word is kept apart, and chooses nothing."""
    if structured is None:
        return ClosureChoice()
    chosen = structured.get("closure_action") or field(structured, "closure.action")
    known = {str(action): action for action in ClosureAction}
    return ClosureChoice(
        action=known.get(str(chosen)),
        unknown="" if chosen is None or str(chosen) in known else cut(str(chosen)),
        add_labels=_words(field(structured, "closure.labels.add")),
        remove_labels=_words(field(structured, "closure.labels.remove")),
    )


def explanation(structured: dict[str, Any]) -> str:
    """Why, in the words of the reply; empty when it gives no reason."""
    for place in ("question", "reason", "blocker", "next_action.reason", "summary"):
        value = field(structured, place)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def _word(value: Any) -> str:
    return value.strip().lower() if isinstance(value, str) else ""


def _words(value: Any) -> tuple[str, ...]:
    return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list) else ()
