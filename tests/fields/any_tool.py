"""Stands in for each of the command-line tools: takes its words, writes down what it was given, answers as it would.

Run as a program: `any_tool.py FOLDER WORDS…`. What it was given goes to FOLDER/seen.jsonl, in the same shape for all
tools; FOLDER/plan.json says what it is to do beyond that. It leaves a file in the working tree, and never commits.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path
from typing import Any

FOLDER, WORDS = Path(sys.argv[1]), sys.argv[2:]
PLAN: dict[str, Any] = json.loads((FOLDER / "plan.json").read_text())
TOKENS = {"input": 1000, "cached": 400, "output": 100}


def tell(event: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def after(word: str) -> str:
    return WORDS[WORDS.index(word) + 1] if word in WORDS else ""


def noted(**seen: Any) -> None:
    """Write down a question, and do what one does in a working tree."""
    home = Path(os.environ["HOME"])
    files = {name: (home / name).read_text() for name in PLAN.get("look for", []) if (home / name).is_file()}
    whole = {"argv": WORDS, "environment": dict(os.environ), "home": files, **seen}
    with (FOLDER / "seen.jsonl").open("a") as file:
        file.write(json.dumps(whole) + "\n")
    Path("work.txt").write_text("work\n")
    if PLAN.get("ask the model"):
        request = urllib.request.Request(f"{seen['url']}/v1/models", headers={"authorization": f"Bearer {seen['key']}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()


def started(words: list[str], environment: dict[str, str]) -> str:
    """What a server of tools says when it is started."""
    done = subprocess.run(words, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def from_environment(text: str, pattern: str) -> str:
    return re.sub(pattern, lambda found: os.environ.get(found[1], ""), text)


def claude() -> None:
    prompt = sys.stdin.read()
    servers: dict[str, Any] = {}
    if "--mcp-config" in WORDS:
        for name, entry in json.loads(Path(after("--mcp-config")).read_text())["mcpServers"].items():
            if "url" in entry:
                bearer = from_environment(entry["headers"].get("Authorization", ""), r"\$\{(\w+)\}")
                servers[name] = {"url": entry["url"], "bearer": bearer}
            else:
                servers[name] = {"says": started([entry["command"], *entry["args"]], entry["env"])}
    url, key = os.environ.get("ANTHROPIC_BASE_URL", ""), os.environ.get("ANTHROPIC_API_KEY", "")
    noted(prompt=prompt, model=after("--model"), url=url, key=key, servers=servers)
    state = "failed" if PLAN.get("servers fail") else "connected"
    listed = [{"name": name, "status": state} for name in servers]
    tell({"type": "system", "subtype": "init", "session_id": "s-1", "mcp_servers": listed})
    tell({"type": "result", "subtype": "success", "is_error": False, "result": "done", "session_id": "s-1"})


def codex() -> None:
    prompt = sys.stdin.read()
    given = [WORDS[place + 1].partition("=") for place, word in enumerate(WORDS) if word == "-c"]
    config = {name: tomllib.loads(f"value = {value}")["value"] for name, _, value in given}
    servers: dict[str, Any] = {}
    for name, entry in config.get("mcp_servers", {}).items():
        if "url" in entry:
            token = os.environ.get(entry.get("bearer_token_env_var", ""), "")
            servers[name] = {"url": entry["url"], "bearer": f"Bearer {token}"}
        else:
            servers[name] = {"says": started([entry["command"], *entry["args"]], {})}
        if PLAN.get("servers fail") and entry["required"]:
            sys.stderr.write(f"Error: required MCP servers failed to initialize: {name}\n")
            sys.exit(1)
    provider = config.get("model_providers.genba", {})
    key = os.environ.get(provider.get("env_key", ""), "")
    noted(prompt=prompt, model=after("-m"), url=provider.get("base_url", ""), key=key, servers=servers, config=config)
    tell({"type": "thread.started", "thread_id": "0199a213-81c0-7800-8aa1-bbab2a035a53"})
    tell({"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "done"}})
    usage = {"input_tokens": TOKENS["input"], "cached_input_tokens": TOKENS["cached"]}
    tell({"type": "turn.completed", "usage": {**usage, "output_tokens": TOKENS["output"]}})


def opencode() -> None:
    prompt = sys.stdin.read()
    config = json.loads(os.environ["OPENCODE_CONFIG_CONTENT"])
    whose, _, model = after("-m").partition("/")
    servers: dict[str, Any] = {}
    for name, entry in config["mcp"].items():
        if entry["type"] == "remote":
            bearer = from_environment(entry["headers"].get("Authorization", ""), r"\{env:(\w+)\}")
            servers[name] = {"url": entry["url"], "bearer": bearer}
        else:
            servers[name] = {"says": started(entry["command"], entry["environment"])}
    provider = config["provider"][whose]
    key = from_environment(provider["options"].get("apiKey", ""), r"\{env:(\w+)\}")
    url = provider["options"].get("baseURL", "")
    noted(prompt=prompt, model=model, provider=whose, url=url, key=key, servers=servers, npm=provider["npm"])
    plugin = Path(config["plugin"][0].removeprefix("file://")).read_text()
    required = json.loads(plugin.splitlines()[0].removeprefix("const given = "))["required"]
    if PLAN.get("servers fail"):
        for name in servers:
            tell({"type": "genba", "server": name, "state": "failed"})
        if required:
            sys.exit(70)
    price = provider["models"][model].get("cost", {"input": 0, "output": 0, "cache_read": 0})
    fresh = TOKENS["input"] - TOKENS["cached"]
    counted = (fresh * price["input"], TOKENS["cached"] * price["cache_read"], TOKENS["output"] * price["output"])
    tell({"type": "text", "sessionID": "ses_1", "part": {"messageID": "m1", "text": "done"}})
    tokens = {"input": fresh, "output": TOKENS["output"], "cache": {"read": TOKENS["cached"], "write": 0}}
    part = {"messageID": "m1", "reason": "stop", "tokens": tokens, "cost": sum(counted) / 1_000_000}
    tell({"type": "step_finish", "sessionID": "ses_1", "part": part})


def acp() -> None:
    models = [{"modelId": name, "name": name} for name in ("first", "second")]
    modes = [{"id": name, "name": name} for name in ("default", "careful")]
    session: dict[str, Any] = {"model": "first", "mode": "default"}
    offers = {
        "models": {"availableModels": models, "currentModelId": "first"},
        "modes": {"availableModes": modes, "currentModeId": "default"},
    }
    abilities = {} if PLAN.get("servers fail") else {"http": True}
    for line in sys.stdin:
        asked = json.loads(line)
        params = asked.get("params", {})
        result: dict[str, Any] = {}
        match asked["method"]:
            case "initialize":
                result = {"protocolVersion": 1, "agentCapabilities": {"mcpCapabilities": abilities}}
            case "session/new":
                session["servers"] = {server["name"]: acp_server(server) for server in params["mcpServers"]}
                result = {"sessionId": "session-1", **offers}
            case "session/set_model":
                session["model"] = params["modelId"]
            case "session/set_mode":
                session["mode"] = params["modeId"]
            case "session/prompt":
                key, url = os.environ.get("FIELD_KEY", ""), os.environ.get("FIELD_URL", "")
                noted(prompt=params["prompt"][0]["text"], key=key, url=url, **session)
                values = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "done"}}
                update = {"sessionId": "session-1", "update": values}
                tell({"jsonrpc": "2.0", "method": "session/update", "params": update})
                result = {"stopReason": "end_turn"}
        if "id" in asked:
            tell({"jsonrpc": "2.0", "id": asked["id"], "result": result})


def acp_server(server: dict[str, Any]) -> dict[str, Any]:
    if "url" in server:
        return {"url": server["url"], "bearer": "".join(header["value"] for header in server["headers"])}
    variables = {each["name"]: each["value"] for each in server["env"]}
    return {"says": started([server["command"], *server["args"]], variables)}


TOOLS = {"-p": claude, "exec": codex, "run": opencode}
TOOLS.get(WORDS[0] if WORDS else "", acp)()
