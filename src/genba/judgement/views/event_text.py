"""What happened to a task, in one sentence each. Pure: an event of the blackboard in, words out."""

from genba.domain.tasks.task import TaskEvent

_SHORT = 7
_PLAIN = {
    "created": "was written down",
    "edited": "was changed",
    "commented": "has a comment",
    "approved": "was approved",
    "review_asked": "a review was asked for",
    "held": "was paused",
    "released": "goes on after a pause",
    "handed_over": "was handed over",
    "agent_connected": "an agent connected",
    "noted": "a note was written",
    "messaged": "a message was written",
    "parts_created": "its parts were created",
    "plan_rejected": "its plan was rejected",
}


def event_sentence(event: TaskEvent) -> str:  # noqa: PLR0912  (one line for each kind of event)
    """What happened, without who did it and when."""
    data = event.data
    reason = f": {data['reason']}" if data.get("reason") else ""
    if "from" in data and "to" in data:
        return f"{data['from']} → {data['to']}{reason}".replace("_", " ", 2)
    match event.kind:
        case "verified":
            why = f", {str(data['reason']).replace('_', ' ')}" if data.get("reason") else ""
            return f"verified: {data.get('status', '')}{why} on {str(data.get('commit', ''))[:_SHORT]}"
        case "escalated":
            return f"a person is asked ({data.get('kind', '')}): {data.get('question', '')}"
        case "decided":
            output = f": {data['answer']}" if data.get("answer") else ""
            return f"{data.get('kind', '')} {data.get('status', 'decided')}{output}"
        case "part_began":
            return f"part {data.get('part', '')} begins: {data.get('cause', '')}".strip()
        case "part_ended":
            waits = data.get("waits_for") or data.get("outcome") or ""
            return f"part {data.get('part', '')} is over: {str(waits).replace('_', ' ')}{reason}"
        case "merge_queued":
            return f"waits to land on {data.get('target', 'its target')}"
        case "merge_settled":
            return f"merge queue: {data.get('status', '')}{reason}"
        case "taken_over":
            return f"{data.get('run', 'another run')} goes on with it"
        case "planned":
            return f"a plan of {data.get('parts', 'some')} parts is there"
        case "reviewed":
            return f"was reviewed: {data.get('status') or data.get('verdict') or ''}".rstrip(": ")
        case "dependency_added" | "dependency_removed":
            verb = "waits for" if event.kind == "dependency_added" else "no longer waits for"
            return f"{verb} #{data.get('on', '')}"
        case "phase_reached":
            return str(data.get("phase", "")).replace("_", " ") or "a phase was reached"
    return _PLAIN.get(event.kind, event.kind.replace("_", " ")) + reason
