"""A tiny agent that speaks the Agent Client Protocol and does what a script says. Run as a program; needs nothing.

The script is the JSON in the variable ACP_SCRIPT. All of its input is written to ACP_LOG.
"""

import json
import os
import sys
import time
from typing import Any

SCRIPT: dict[str, Any] = json.loads(os.environ.get("ACP_SCRIPT", "{}"))
LOG = open(os.environ.get("ACP_LOG", os.devnull), "a")  # noqa: SIM115, PTH123


def out(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def log(what: str, value: Any) -> None:
    LOG.write(json.dumps([what, value]) + "\n")
    LOG.flush()


def read() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        log("end", None)
        sys.exit(SCRIPT.get("exit", 0))
    message: dict[str, Any] = json.loads(line)
    return message


def update(session: str, result: dict[str, Any]) -> None:
    out({"method": "session/update", "params": {"sessionId": session, "update": result}})


def act(session: str, turn: dict[str, Any], ask_id: Any) -> bool:
    """Do one act; whether the turn is over."""
    if "say" in turn:
        update(session, {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": turn["say"]}})
    if "update" in turn:
        update(session, turn["update"])
    if "raw" in turn:
        sys.stdout.buffer.write(bytes.fromhex(turn["raw"]) + b"\n")
        sys.stdout.flush()
    if "ask" in turn:
        out(
            {
                "id": turn.get("id", 9000),
                "method": turn.get("method", "session/request_permission"),
                "params": turn["ask"],
            }
        )
        log("permission", read())
    if "result" in turn:
        out({"id": ask_id, "result": turn["result"]})
        return True
    if "error" in turn:
        out({"id": ask_id, "error": turn["error"]})
        return True
    if "die" in turn:
        sys.stderr.write("the agent has had enough\n")
        sys.stderr.flush()
        os._exit(turn["die"])
    if "hang" in turn:
        time.sleep(600)
    return False


def main() -> None:
    log("environment", dict(os.environ))
    log("argv", sys.argv[1:])
    while True:
        message = read()
        method, params = message.get("method"), message.get("params") or {}
        log(str(method), params)
        answer = SCRIPT.get(str(method))
        if method == "session/prompt":
            for turn in SCRIPT.get("turns", [{"say": "hello"}, {"result": {"stopReason": "end_turn"}}]):
                if act(params["sessionId"], turn, message["id"]):
                    break
        elif isinstance(answer, dict) and "error" in answer:
            out({"id": message["id"], "error": answer["error"]})
        elif method == "initialize":
            abilities = {"loadSession": True, "mcpCapabilities": {"http": True}, **SCRIPT.get("abilities", {})}
            out({"id": message["id"], "result": answer or {"protocolVersion": 1, "agentCapabilities": abilities}})
        elif method == "session/new":
            out({"id": message["id"], "result": {"sessionId": "session-1", **(answer or {})}})
        else:
            for text in SCRIPT.get("repeats", []):
                update(params["sessionId"], text)
            out({"id": message["id"], "result": answer or {}})
            for text in SCRIPT.get("repeats afterwards", []):
                update(params["sessionId"], text)


main()
