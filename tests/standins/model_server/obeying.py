"""A model that asks the workflow server for the next action, and does it, until it may stop.

Where it stands is read from what its tools returned, as everywhere in this package.
"""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

from tests.standins.model_server.turns import Act, Mcp, Obey, Run, Say, Together

_SERVER = "genba"
_TOKEN = re.compile(r"gbs_[A-Za-z0-9_]+")
_BY_SHELL = ("execute_subtask", "rework")


def obeyed(turn: Obey, results: tuple[str, ...]) -> Act | Together:
    """The next thing to do, after what the tools returned so far."""
    tokens = [found for result in results for found in _TOKEN.findall(result)]
    if not tokens:
        return Mcp(_SERVER, "authenticate") if not results else Say("I was not let in.")
    lines = [_object(result) for result in results]
    order: dict[str, Any] = next((each for each in reversed(lines) if _is_action(each)), {})
    return _Follower(turn, tokens[-1]).next(order, lines[-1])


class _Follower:
    def __init__(self, turn: Obey, token: str) -> None:
        self.turn = turn
        self.token = token

    def next(self, order: dict[str, Any], last: dict[str, Any]) -> Act | Together:
        kind = order.get("action", "")
        if "error" in last and last["error"].get("action") == "exit":
            return Say("I must stop.")
        if _is_action(last):
            return self._begin(kind, order)
        if "workers" in last and kind == "delegate":
            return self._assign(order, [one["name"] for one in last["workers"] if one["hierarchy"] == "worker"])
        if kind in _BY_SHELL and "next" not in last and "error" not in last and "session_token" not in last:
            return self._claim(order)
        return self._call("get_next_action")

    def _begin(self, kind: str, order: dict[str, Any]) -> Act | Together:
        subtask = order.get("subtask") or {}
        match kind:
            case "exit":
                return Say(f"I am done: {order.get('reason', '')}")
            case "get_task":
                return self._call("get_my_task")
            case "create_subtasks" if not self.turn.plan:
                number = order["task"]["number"]
                return self._call("update_task_status", task_id=number, status="in_progress", reason="atomic")
            case "create_subtasks":
                return self._call("create_tasks_batch", tasks=list(self.turn.plan), key="plan")
            case "start_subtask":
                return self._call("update_task_status", task_id=subtask["number"], status="in_progress")
            case "execute_subtask" | "rework":
                title = shlex.quote(str((subtask or order["task"])["title"]))
                return Run(f"TITLE={title}; {self.turn.work}")
            case "delegate":
                return self._call("list_workers")
            case "report_completion":
                return self._call("report_completed", summary="I did it.")
            case "handle_blocked":
                return self._call("report_blocked", reason="I cannot go on.")
        return self._call("get_next_action")

    def _claim(self, order: dict[str, Any]) -> Act:
        subtask = order.get("subtask")
        if subtask:
            return self._call("update_task_status", task_id=subtask["number"], status="done")
        return self._call("report_completed", summary="I did it.")

    def _assign(self, order: dict[str, Any], workers: list[str]) -> Together:
        """One worker for each, and from the first again when there are fewer."""
        return Together(
            tuple(
                self._call("assign_task", task_id=piece["number"], agent=workers[at % len(workers)])
                for at, piece in enumerate(order["subtasks"])
            )
        )

    def _call(self, tool: str, **arguments: Any) -> Mcp:
        return Mcp(_SERVER, tool, {**arguments, "session_token": self.token})


def _is_action(output: dict[str, Any]) -> bool:
    return "action" in output and "instruction" in output


def _object(text: str) -> dict[str, Any]:
    """What a tool answered, out of whatever the client put around it."""
    for found in _objects(text):
        inner = found.get("structuredContent") or found.get("structured_content")
        if isinstance(inner, dict):
            return inner
        content = found.get("content")
        if isinstance(content, list) and content and isinstance(content[0], dict):
            return _object(str(content[0].get("text", "")))
        return found
    return {}


def _objects(text: str) -> Iterator[dict[str, Any]]:
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
        except ValueError:
            at = text.find("{", at + 1)
            continue
        if isinstance(found, dict):
            yield found
        at = text.find("{", end)
