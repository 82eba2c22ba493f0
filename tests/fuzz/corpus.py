"""What is valid: the files that spoiling begins with."""

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

from genba.definitions.agent.registry import BUILTIN_FOLDER
from genba.definitions.agent.scaffold import TEMPLATES, scaffold
from genba.definitions.schemas import FILES, json_schema

TRANSCRIPTS = Path(__file__).parents[1] / "agents" / "transcripts"

CONFIG: dict[str, Any] = {
    "project": {"name": "A project"},
    "agent_discovery_path": ".agent/",
    "agents": {
        "default": {"adapter": "scripted", "model": "sonnet", "timeout": 60000, "tools": ["Read", "Bash"]},
        "worker": {"adapter": {"type": "custom", "command": ["true"], "env": {"A": "b"}}},
    },
    "limits": {"max_iterations": 5, "wall_time_seconds": 60.5, "tokens": 1000, "retries": 1},
    "tracker": {"type": "local"},
    "forge": {"open": ["gh", "pr", "create", "{branch}"], "find": ["gh", "pr", "view"], "timeout_seconds": 10},
    "database": {"url": ".genba/genba.db", "busy_seconds": 5},
    "models": {"codex": {"opus": "gpt-5"}},
    "dod": ["tests_pass:pytest -q", {"type": "no_secrets"}, {"lint_clean": "ruff check"}],
    "task_types": {"bug": {"goals": ["tests_pass", {"endpoint_responds": "POST /api/login → 200"}]}},
    "work": {"workers": 2},
    "merge": {},
    "budget": {},
}

SCRIPT: dict[str, Any] = {
    "turns": [
        {
            "expect": ["work"],
            "do": [{"write": {"path": "a", "text": "b"}}, {"run": "true"}, {"sleep": 0.1}],
            "reply": "x",
        },
        {
            "reply": {"status": "completed"},
            "usage": {"input_tokens": 1, "cost_usd": 0.5},
            "tools": ["Bash"],
            "session": "s",
        },
    ],
    "steps": {"work": [{"reply": "y", "rate_limit": 3}]},
    "issues": {"3": {"turns": [{"do": [{"commit": "x"}]}]}},
    "repeat": True,
}


@cache
def agents() -> tuple[dict[str, dict[str, Any]], ...]:
    """Agents that pass their check: by file, what is in it. Prompts are texts, all else is JSON."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for template in TEMPLATES:
            scaffold(Path(folder), template, template)
        for home in (*sorted(Path(folder).iterdir()), *sorted(BUILTIN_FOLDER.iterdir())):
            if (home / "agent.json").is_file():
                found.append(
                    {str(path.relative_to(home)): _content(path) for path in home.rglob("*") if path.is_file()}
                )
    return tuple(found)


def _content(path: Path) -> Any:
    text = path.read_text("utf-8")
    return json.loads(text) if path.suffix == ".json" else text


@cache
def words() -> tuple[str, ...]:
    """Every word that a schema of a file knows: keys and choices."""
    found: set[str] = set()
    waiting: list[Any] = [json_schema(kind, "x") for kind, _ in FILES.values()]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            found.update(node.get("properties", {}))
            found.update(each for each in node.get("enum", ()) if isinstance(each, str))
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return tuple(sorted(found))


@cache
def transcripts(tool: str) -> tuple[tuple[Any, ...], ...]:
    return tuple(
        tuple(msgspec.json.decode(line) for line in path.read_bytes().splitlines() if line)
        for path in sorted((TRANSCRIPTS / tool).glob("*.jsonl"))
    )


def config_text() -> str:
    return yaml.safe_dump(CONFIG)
