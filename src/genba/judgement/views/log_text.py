"""An event of a journal in one sentence. Pure: an event in, words out."""

from genba.domain import events
from genba.domain.events import Event
from genba.domain.processes import left_out_line
from genba.domain.sessions.evidence import CheckStatus
from genba.domain.sessions.workspaces import MergeStatus
from genba.domain.views.session import LogLine

_SHORT = 7
_LONGEST = 4000


def log_line(event: Event, at: int) -> LogLine | None:
    """How an event stands in a log; None for one that says nothing to who reads along."""
    words = sentence(event)
    if not words:
        return None
    return LogLine(
        at=at,
        time=event.time,
        event=str(type(event).__struct_config__.tag),
        text=words if len(words) <= _LONGEST else f"{words[:_LONGEST]} …",
        step=event.step or "",
        iteration=event.iteration,
    )


def sentence(event: Event) -> str:  # noqa: PLR0912  (one line for each kind of event)
    """What happened, in words; empty for events that a log leaves out."""
    match event:
        case events.AgentOutput(text=text):
            return text or " "
        case events.OutputLeftOut(stream=stream, bytes=size, lines=lines):
            return left_out_line(stream, size, lines)
        case events.ToolUsed(tool=tool, target=target):
            return f"{tool} {target}".strip()
        case events.Notice(message=message):
            return message
        case events.RunStarted(adapter=adapter, model=model, workspace=place):
            return f"begins on {place.branch}: {' '.join(word for word in (adapter, model) if word)}"
        case events.RunResumed():
            return "goes on"
        case events.IterationStarted(iteration=number, step=step, prompt_from=source):
            return f"iteration {number}, step {step}: asked with {source or 'its prompt'}"
        case events.AgentStarted(process=process):
            return f"the agent is there, as process {process}"
        case events.AgentEnded(exit_code=code, seconds=seconds):
            return f"the agent ended with {code} after {seconds:.1f} s"
        case events.ReplyReceived(text=text):
            return f"replied: {text}" if text else "replied"
        case events.AskRetried(reason=reason, wait_seconds=wait):
            return f"asks again in {wait:.0f} s: {reason}"
        case events.ReplyRefused(reason=reason, again=again):
            return f"the reply does not fit{', and is asked for again' if again else ''}: {reason}"
        case events.ActionHandled(type=kind, handler=handler):
            return f"action {kind}: {handler}"
        case events.ActionRefused(type=kind, reason=reason):
            return f"action {kind} is refused: {reason}"
        case events.EgressUsed(port=port, verdict=verdict, target=target, detail=detail):
            return f"{port} {verdict}: {target}" + (f" ({detail})" if detail else "")
        case events.CheckFinished(result=result):
            return _checked(f"check {result.name}", result.status, result.detail)
        case events.GoalChecked(goal=goal, result=result):
            return _checked(f"goal {goal}", result.status, result.detail)
    return _of_work(event)


def _of_work(event: Event) -> str:
    """What became of the work."""
    match event:
        case events.VerificationFinished(status=status, commit=commit, reason=reason):
            return f"{commit[:_SHORT]} is {status}" + (f": {reason.replace('_', ' ')}" if reason else "")
        case events.IterationFinished(iteration=number, intent=intent, verdict=verdict, reason=reason):
            return f"iteration {number} is over: it says {intent or 'nothing'}, {verdict}: {reason}"
        case events.WorkSentBack(reason=reason):
            return f"goes back to its author: {reason}"
        case events.LoopEnded(outcome=outcome, reason=reason):
            return f"the loop is over: {outcome}: {reason}"
        case events.EffectDone(effect=effect):
            return f"done: {effect.replace('_', ' ')}"
        case events.MergeFinished(status=MergeStatus.MERGED, commit=commit):
            return f"merged as {commit[:_SHORT]}"
        case events.MergeFinished(status=MergeStatus.CONFLICT, paths=paths):
            return f"conflict in {', '.join(paths)}"
        case events.MergeFinished(status=status, detail=detail):
            return f"{status.replace('_', ' ')}{f': {detail}' if detail else ''}"
        case events.WorkspaceClosed(removed=False, path=path, reason=reason):
            return f"its working tree stays at {path}: {reason}"
        case events.RunEnded(outcome=outcome, reason=reason):
            return f"ended: {outcome}: {reason}"
    return ""


def _checked(what: str, status: CheckStatus, detail: str) -> str:
    return f"{what} {status}" + (f": {detail}" if detail else "")
