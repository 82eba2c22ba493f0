import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from genba.domain.workflow.actions import ErrorCode, Tool, WorkflowError
from genba.entrypoints.mcp.schemas import lean, listed
from genba.entrypoints.mcp.tools import TOOLS
from tests.mcp.door import MODES, Door

FILE = Path(__file__).with_name("tools.json")


def everything() -> list[dict[str, Any]]:
    return [listed(entry).model_dump(by_alias=True, mode="json", exclude_none=True) for entry in TOOLS]


def test_the_tools_are_those_that_are_written_down() -> None:
    found = everything()
    if os.environ.get("GENBA_REWRITE") == "1":
        lines = ",\n".join(json.dumps(tool, ensure_ascii=False) for tool in found)
        FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")

    assert found == json.loads(FILE.read_text(encoding="utf-8"))


def test_every_tool_of_the_workflow_is_there_once() -> None:
    assert [entry.name for entry in TOOLS] == [str(tool) for tool in Tool]


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_gets_the_same(door: Door, mode: str) -> None:
    async with door.client(mode) as client:
        found = (await client.list_tools()).tools
        assert client.instructions is not None
        assert "get_next_action" in client.instructions

    assert [tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in found] == everything()


@pytest.mark.parametrize("tool", everything(), ids=lambda tool: tool["name"])
def test_every_text_and_every_list_that_is_taken_has_an_end(tool: dict[str, Any]) -> None:
    schema = tool["inputSchema"]
    jsonschema_rs.validator_for(schema)
    endless = []
    for where, part in _parts(schema, tool["name"]):
        if part.get("type") == "string" and "enum" not in part and "maxLength" not in part:
            endless.append(where)
        if part.get("type") == "array" and "maxItems" not in part:
            endless.append(where)
        if part.get("type") == "object" and part.get("additionalProperties") is not False and "goals" not in where:
            endless.append(where)

    assert endless == []


@pytest.mark.parametrize("tool", everything(), ids=lambda tool: tool["name"])
def test_every_argument_is_described(tool: dict[str, Any]) -> None:
    places = [tool["inputSchema"], *tool["inputSchema"].get("$defs", {}).values()]
    bare = [
        name for place in places for name, part in place.get("properties", {}).items() if not part.get("description")
    ]

    assert bare == []
    assert tool["description"]
    assert tool["outputSchema"]["type"] == "object"


@pytest.mark.parametrize("tool", everything(), ids=lambda tool: tool["name"])
def test_a_refusal_fits_the_schema_and_an_answer_of_nothing_does_not(tool: dict[str, Any]) -> None:
    holds = jsonschema_rs.validator_for(tool["outputSchema"])

    assert holds.is_valid({"error": WorkflowError(ErrorCode.LIMIT, "too much").as_dict()})
    assert not holds.is_valid({})
    assert not holds.is_valid({"error": {"code": "other", "message": "", "hint": "", "action": ""}})


@pytest.mark.parametrize("tool", everything(), ids=lambda tool: tool["name"])
def test_the_page_of_the_tools_names_every_argument_and_every_answer(tool: dict[str, Any]) -> None:
    page = (Path(__file__).parents[2] / "docs/reference/mcp-tools.md").read_text(encoding="utf-8")
    section = page.partition(f"### {tool['name']}\n")[2].partition("\n### ")[0]
    taken = [f"| `{name}` | " for name in tool["inputSchema"]["properties"] if name != "session_token"]
    answered = [f"`{name}`" for name in tool["outputSchema"]["properties"] if name != "error"]

    assert [name for name in taken if name not in section] == []
    assert [name for name in answered if name not in section.partition("Answers:")[2]] == []


def test_every_code_of_a_refusal_is_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/mcp-tools.md").read_text(encoding="utf-8")

    assert [code for code in ErrorCode if f"| `{code}` | " not in page] == []


def test_what_says_nothing_is_left_out_and_what_is_required_is_not() -> None:
    from genba.coordination.workflow.answers import Inbox, TaskList
    from genba.domain.workflow.actions import Action, ActionKind, SubtaskView

    action = Action(action=ActionKind.EXIT, tools=(), task=SubtaskView(number=1, title="Build a kite"))

    assert lean(Inbox(messages=())) == {"messages": []}
    assert lean(TaskList(tasks=())) == {"tasks": []}
    assert lean(action) == {
        "action": "exit",
        "tools": [],
        "task": {
            "number": 1,
            "title": "Build a kite",
            "type": "task",
            "status": "open",
            "priority": "medium",
            "attempts": 0,
            "with_human": False,
            "version": 1,
        },
        "retry_after": 0.0,
        "messages": 0,
    }


def _parts(schema: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        yield where, schema
        for key, inner in schema.items():
            if key not in ("default", "enum", "required"):
                yield from _parts(inner, f"{where}.{key}")
    elif isinstance(schema, list):
        for at, inner in enumerate(schema):
            yield from _parts(inner, f"{where}[{at}]")
