"""Events as lines of text: the same words for the live view, the plain view and `genba logs`."""

from genba.domain.events import (
    ActionHandled,
    ActionRefused,
    AskRetried,
    EffectDone,
    EgressUsed,
    Event,
    GoalChecked,
    IterationFinished,
    MergeFinished,
    Notice,
    OutputLeftOut,
    ReplyRefused,
    RunEnded,
    RunResumed,
    RunStarted,
    VerificationFinished,
    WorkSentBack,
    WorkspaceClosed,
)
from genba.domain.processes import left_out_line
from genba.domain.sessions.evidence import CheckStatus
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.replies import Usage
from genba.domain.sessions.workspaces import MergeStatus

_MARKS = {"complete": "✓", "continue": "✓", "retry": "✗", "stop": "■"}
_SHORT = 7
_MINUTE, _HOUR = 60, 3600
_THOUSAND = 1000


def duration(seconds: float) -> str:
    if seconds < 10:  # noqa: PLR2004  (below ten seconds tenths are worth a look)
        return f"{seconds:.1f} s"
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < _HOUR:
        return f"{int(seconds // 60)}:{int(seconds % 60):02d} m"
    return f"{int(seconds // 3600)}:{int(seconds % 3600 // 60):02d} h"


def tokens(usage: Usage) -> str:
    if not usage.tokens:
        return ""
    count = f"{usage.tokens / 1000:.1f}k" if usage.tokens >= _THOUSAND else str(usage.tokens)
    return f"{count} tokens"


def header(event: RunStarted) -> str:
    """In which project, who works on what, by which adapter and model, on which branch."""
    parts = [event.project, event.agent] if event.project else [event.agent]
    if event.issue is not None:
        parts.append(f'#{event.issue} "{event.title}"' if event.title else f"#{event.issue}")
    kind = (event.sandbox or "worktree") if event.workspace.isolated else "your checkout"
    parts += [f"{event.adapter} {event.model}".strip(), kind, event.workspace.branch]
    return " · ".join(parts)


def settled(event: IterationFinished, changed: str = "") -> str:
    """One finished iteration."""
    mark = _MARKS[event.verdict]
    why = event.reason if event.verdict == "retry" else changed
    spent = f"{duration(event.seconds):>7}  {tokens(event.usage):>11}"
    return f" {mark} {event.step or '':<12} {event.iteration:>3}  {event.intent:<8} {spent}   {why}".rstrip()


def change_text(event: IterationFinished, commits_before: int) -> str:
    """What an iteration added to the branch."""
    new = len(event.commits) - commits_before
    if new <= 0:
        return ""
    files = f"{event.files} file{'' if event.files == 1 else 's'}"
    return f"{files}, {new} commit{'' if new == 1 else 's'}"


def aside(event: Event) -> str:
    """What happened beside the iterations and is worth a line; an empty string for the rest."""
    match event:
        case Notice(message=message):
            return f"   note     {message}"
        case AskRetried(reason=reason, wait_seconds=wait):
            return f"   waiting  {duration(wait)}: {reason}"
        case ReplyRefused(reason=reason, again=again):
            return f"   {'again' if again else 'unfit':<8} {reason}"
        case ActionRefused(type=kind, reason=reason):
            return f"   action   {kind} refused: {reason}"
        case ActionHandled(type=kind, handler=handler):
            return f"   action   {kind} → {handler}"
        case GoalChecked() | VerificationFinished() | EgressUsed() | OutputLeftOut():
            return _seen(event)
        case WorkSentBack(reason=reason):
            return f"   back     {reason}"
        case RunResumed():
            return "   resumed"
        case EffectDone(effect="push", detail=detail):
            return f"   pushed   {detail['branch']} to {detail['remote']}"
        case EffectDone(effect="pull_request", detail=detail):
            return f"   pull request  {detail['address']}"
        case EffectDone(effect="issue", detail=detail):
            return f"   issue    #{detail['issue']}: {_issue_change(detail)}"
        case WorkspaceClosed(removed=False, path=path, reason=reason):
            return f"   kept     {path}: {reason}"
    return ""


def _seen(event: GoalChecked | VerificationFinished | EgressUsed | OutputLeftOut) -> str:
    """What was seen of the work: goals that were missed, the verdict, a way out that was refused, output left out."""
    match event:
        case OutputLeftOut(stream=stream, bytes=size, lines=lines):
            return f"   {left_out_line(stream, size, lines)}"
        case EgressUsed(verdict=verdict, port=port, target=target):
            return f"   denied   {port}: {target}" if verdict == "denied" else ""
        case GoalChecked(result=result, goal=goal, required=required):
            if result.passed:
                return ""
            mark = "error" if result.status is CheckStatus.ERROR else ("missed" if required else "noted")
            return f"   {mark:<8} {goal}: {result.detail}"
        case VerificationFinished(status="done", commit=commit):
            return f"   verified {commit[:_SHORT]}"
        case VerificationFinished(status=status, commit=commit, reason=reason, findings=findings):
            message = "; ".join([reason, *findings[:1]])
            return f"   {status:<8} {commit[:_SHORT]}: {message}" if message else f"   {status:<8} {commit[:_SHORT]}"


def _issue_change(detail: dict[str, object]) -> str:
    parts = []
    for key, sign in (("add_labels", "+"), ("remove_labels", "-")):
        labels = detail.get(key)
        parts += [f"{sign}{label}" for label in labels] if isinstance(labels, list) else []
    if detail.get("close"):
        parts.append("closed")
    if detail.get("comment"):
        parts.append("commented")
    return " ".join(parts)


def merged(event: MergeFinished, into: str) -> str:
    match event.status:
        case MergeStatus.MERGED:
            return f"   merged   {event.commit[:_SHORT]} into {into}"
        case MergeStatus.NOTHING_TO_MERGE:
            return "   merged   nothing: the branch has no commit of its own"
        case MergeStatus.CONFLICT:
            return f"   conflict with {into} in {', '.join(event.paths)}"
        case MergeStatus.CHECKOUT_IN_THE_WAY:
            return f"   not merged: {event.detail}"


def ending(event: RunEnded) -> str:
    """The last line of a run."""
    mark = "●" if event.outcome is Outcome.COMPLETED else "■"
    parts = [f" {mark} {event.outcome}"]
    parts.append(f"{event.iterations} iteration{'' if event.iterations == 1 else 's'}")
    parts.append(duration(event.seconds))
    if event.usage.tokens:
        parts.append(tokens(event.usage))
    if event.usage.cost_usd:
        parts.append(f"${event.usage.cost_usd:.2f}")
    if event.merged:
        parts.append(f"merged {event.merged[:_SHORT]}")
    line = " · ".join(parts)
    return line if event.outcome is Outcome.COMPLETED else f"{line}\n   {event.reason}"
