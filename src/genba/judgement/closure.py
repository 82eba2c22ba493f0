"""What is done to the issue, and the words that say so in the prompt."""

import msgspec

from genba.definitions.agent_file import IssueIntegration
from genba.domain.issues import IssueChange
from genba.domain.loop_state import ClosureChoice
from genba.domain.outcomes import ClosureAction


class ClosureWording(msgspec.Struct, frozen=True):
    """The prompt speaks the same language as the action."""

    criteria: str
    instruction: str
    word: str


def wording(action: ClosureAction, issue: int) -> ClosureWording:
    match action:
        case ClosureAction.CLOSE:
            return ClosureWording(f"Close Issue #{issue}", "close it when done", "close")
        case ClosureAction.LABEL_ONLY:
            return ClosureWording(f"Complete phase for Issue #{issue}", "Do NOT close the issue", "complete")
        case ClosureAction.LABEL_AND_CLOSE:
            return ClosureWording(f"Issue #{issue} labeled and closed", "close it when done", "close")


def chosen_action(settings: IssueIntegration, choice: ClosureChoice) -> ClosureAction:
    """Structured output, then the agent's default."""
    return choice.action or settings.default_closure_action


def change_on_start(settings: IssueIntegration) -> IssueChange:
    label = settings.labels.in_progress
    blocked = settings.labels.blocked
    if not settings.enabled:
        return IssueChange()
    return IssueChange(add_labels=_one(label), remove_labels=_one(blocked))


def change_on_completion(settings: IssueIntegration, choice: ClosureChoice) -> IssueChange:
    if not settings.enabled:
        return IssueChange()
    action = chosen_action(settings, choice)
    labels = settings.labels
    relabel = action is not ClosureAction.CLOSE
    add = (*labels.completion.add, *choice.add_labels) if relabel else ()
    remove = (*labels.completion.remove, *choice.remove_labels) if relabel else ()
    return IssueChange(
        add_labels=tuple(dict.fromkeys(add)),
        remove_labels=tuple(dict.fromkeys((*remove, *_one(labels.in_progress)))),
        close=action is not ClosureAction.LABEL_ONLY,
    )


def change_on_block(settings: IssueIntegration, reason: str) -> IssueChange:
    if not settings.enabled:
        return IssueChange()
    return IssueChange(
        add_labels=_one(settings.labels.blocked),
        remove_labels=_one(settings.labels.in_progress),
        comment=f"Blocked: {reason}",
    )


def change_on_stop(settings: IssueIntegration) -> IssueChange:
    return IssueChange(remove_labels=_one(settings.labels.in_progress)) if settings.enabled else IssueChange()


def _one(label: str | None) -> tuple[str, ...]:
    return (label,) if label else ()
