"""Tools that the conformance suite asks for by name, behind the door of our own: without them it checks nothing."""

from typing import Any

import msgspec
from pydantic import Field

from genba.coordination.workflow.answers import Caller
from genba.coordination.workflow.service import WorkflowService
from genba.domain.workflow.actions import ErrorCode, WorkflowError
from genba.entrypoints.mcp.arguments import SessionArguments, Word
from genba.entrypoints.mcp.tools import TOOLS, ToolEntry


class Output(msgspec.Struct, frozen=True):
    text: str


class Region(SessionArguments):
    region: Word = Field(default="", description="Sent in a header too.", json_schema_extra={"x-mcp-header": "Region"})


async def _say(_: WorkflowService, __: Caller, ___: SessionArguments) -> Output:
    return Output("This is a simple text response for testing.")


async def _refuse(_: WorkflowService, __: Caller, ___: SessionArguments) -> Output:
    raise WorkflowError(ErrorCode.CONFLICT, "This tool intentionally returns an error for testing")


async def _region(_: WorkflowService, __: Caller, taken: Region) -> Output:
    return Output(taken.region)


def _entry(name: str, call: Any, takes: Any = SessionArguments) -> ToolEntry[Any]:
    return ToolEntry(name=name, title=name, description="Of the tests.", takes=takes, answers=Output, call=call)


FIXTURES = (
    *TOOLS,
    _entry("test_simple_text", _say),
    _entry("test_error_handling", _refuse),
    _entry("test_header_annotated", _region, Region),
)
