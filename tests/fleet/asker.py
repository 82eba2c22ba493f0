"""An agent that asks what is next and does it, with nothing but what every Python has.

It is copied into the repository of a test and started there as any command is. `CONDUCT` is a JSON object of what it
does otherwise than asked; it prints what it sees into the journal.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 150
OK = 200


def say(*words: object) -> None:
    sys.stdout.write(" ".join(str(word) for word in words) + "\n")
    sys.stdout.flush()


def commit(name: str, text: str) -> None:
    line = f"echo '{text}' > {name} && git add -A && git commit -q --allow-empty -m 'Write {name}'"
    subprocess.run(["sh", "-c", line], check=True)


class Asker:
    """One life."""

    def __init__(self, conduct: dict[str, Any], address: str, credential: str) -> None:
        self.conduct = conduct
        self.address = urllib.parse.urlsplit(address)
        self.credential = credential
        self.token = ""
        self.number = 0
        self.instance_stopped = ""
        """Why it was stopped."""

    def live(self) -> int:
        if self.conduct.get("silent"):
            say("I have nothing to do.")
            return 0
        self.authenticate()
        for _ in range(200):
            action = self.call("get_next_action")
            if "error" in action:
                sys.exit("not answered")
            kind = action["action"]
            say("told", kind, action.get("reason", ""), (action.get("subtask") or {}).get("title", ""))
            if kind == self.conduct.get("stops_at"):
                return 0
            if kind == "exit":
                self.instance_stopped = str(action.get("reason", ""))
                self.wait_for(kind)
                break
            if kind == self.conduct.get("blocked_at"):
                self.call("report_blocked", reason="Which colour?")
            else:
                self.wait_for(kind)
                getattr(self, f"do_{kind}")(action, action.get("subtask"))
        if self.conduct.get("replays"):
            again = self.call("authenticate")
            say("replayed", "let in" if "session_token" in again else again["error"]["code"], again["error"]["action"])
        return int(self.conduct.get("code", 0))

    def authenticate(self) -> None:
        connected = self.call("authenticate", agent_id=os.environ["GENBA_AGENT"])
        if "error" in connected:
            sys.exit("not let in")
        self.token = connected["session_token"]

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        if tool != "authenticate":
            arguments["session_token"] = self.token
        done = self.post({"method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        found: dict[str, Any] = done["structuredContent"]
        if done.get("isError"):
            say("error", tool, json.dumps(found["error"]))
        return found

    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                status, text = self._sent(json.dumps({"jsonrpc": "2.0", "id": self.number, **body}))
                if status == OK:
                    result: dict[str, Any] = json.loads(text)["result"]
                    return result
                say("refused", status, text)
            except (OSError, http.client.HTTPException) as error:
                say("nobody answered", type(error).__name__)
            if time.monotonic() > deadline:
                sys.exit("nobody answers")
            time.sleep(0.2)

    def _sent(self, body: str) -> tuple[int, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-06-18",
            "Authorization": f"Bearer {self.credential}",
        }
        connection = http.client.HTTPConnection(self.address.hostname or "", self.address.port, timeout=120)
        try:
            connection.request("POST", self.address.path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def wait_for(self, name: str) -> None:
        """Stand still until a file is there: the tests do something meanwhile."""
        path = self.conduct.get("wait", {}).get(name)
        if path:
            Path(f"{path}.waiting").touch()
            while not Path(path).exists():
                time.sleep(0.02)

    @property
    def text(self) -> str:
        return "wrong" if self.conduct.get("wrong") else "right"

    def file(self, action: dict[str, Any], subtask: dict[str, Any] | None) -> str:
        named = subtask or (action["task"] if self.conduct.get("by_title") else None)
        return f"{named['title']}.txt" if named else "whole.txt"

    def write(self, name: str, text: str) -> None:
        commit(name, text)

    def do_get_task(self, _action: dict[str, Any], _subtask: dict[str, Any] | None) -> None:
        say("brief", json.dumps(self.call("get_my_task")))

    def do_create_subtasks(self, action: dict[str, Any], _subtask: dict[str, Any] | None) -> None:
        if self.conduct.get("atomic"):
            number = action["task"]["number"]
            self.call("update_task_status", task_id=number, status="in_progress", reason="atomic")
            return
        made = self.call("create_tasks_batch", tasks=self.conduct["plan"], key="plan")
        if self.conduct.get("twice"):
            again = self.call("create_tasks_batch", tasks=self.conduct["plan"], key="plan")
            say("the same", [one["number"] for one in made["subtasks"]] == [one["number"] for one in again["subtasks"]])

    def do_start_subtask(self, _action: dict[str, Any], subtask: dict[str, Any]) -> None:
        self.call("update_task_status", task_id=subtask["number"], status="in_progress")

    def do_execute_subtask(self, action: dict[str, Any], subtask: dict[str, Any] | None) -> None:
        self.write(self.file(action, subtask), self.text)
        self.claim(subtask)

    def do_rework(self, action: dict[str, Any], subtask: dict[str, Any] | None) -> None:
        say("evidence", json.dumps(action["evidence"]))
        self.write(self.file(action, subtask), "right")
        self.claim(subtask)

    def do_report_completion(self, _action: dict[str, Any], _subtask: dict[str, Any] | None) -> None:
        self.claim(None)

    def claim(self, subtask: dict[str, Any] | None) -> None:
        if subtask:
            self.call("update_task_status", task_id=subtask["number"], status="done")
        else:
            self.call("report_completed", summary="it is all there")

    def do_delegate(self, action: dict[str, Any], _subtask: dict[str, Any] | None) -> None:
        workers = [one["name"] for one in self.call("list_workers")["workers"] if one["hierarchy"] == "worker"]
        for at, piece in enumerate(action["subtasks"]):
            self.call("assign_task", task_id=piece["number"], agent=workers[at % len(workers)])

    def do_handle_blocked(self, _action: dict[str, Any], _subtask: dict[str, Any] | None) -> None:
        self.call("report_blocked", reason="somebody must look at this")

    def do_wait(self, _action: dict[str, Any], _subtask: dict[str, Any] | None) -> None:
        """The call was held as long as it made sense."""


if __name__ == "__main__":
    output = json.loads(os.environ.get("CONDUCT", "{}"))
    sys.exit(Asker(output, os.environ["GENBA_MCP_URL"], os.environ["GENBA_CREDENTIAL"]).live())
