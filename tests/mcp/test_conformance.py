"""The checks that others have written for MCP servers, on the real door: the conformance suite and the inspector.

What our server does not have is listed in conformance-*.yml; an entry that passes fails the run, and is to be removed.
"""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from genba.entrypoints.listeners import bound_port, serving
from genba.entrypoints.mcp.http import HttpTransport, application
from genba.entrypoints.mcp.server import build
from tests.clis import check
from tests.mcp.door import Door
from tests.mcp.fixtures import FIXTURES
from tests.preloaded import GENBA
from tests.project import Project
from tests.workflow.context import House

HERE = Path(__file__).parent
APPLIES_2026 = {
    "caching": (4, 3),
    "dns-rebinding-protection": (2, 0),
    "http-custom-header-server-validation": (10, 0),
    "http-header-validation": (14, 0),
    "server-stateless": (21, 4),
    "tools-call-error": (2, 0),
    "tools-call-simple-text": (2, 0),
    "tools-list": (4, 0),
}
"""How many checks of a scenario pass, and how many are about what is not there."""
APPLIES_2025 = {
    "dns-rebinding-protection": (2, 0),
    "ping": (1, 0),
    "server-initialize": (1, 0),
    "tools-call-error": (1, 0),
    "tools-call-simple-text": (1, 0),
    "tools-list": (1, 0),
}


@pytest.fixture
async def fixtures(context: House) -> AsyncIterator[str]:
    """Our own server with the tools of the suite beside ours."""
    server = build(context.service, HttpTransport("http"), FIXTURES)
    listening = bound_port("127.0.0.1", 0, "genba mcp --http --port=0")
    async with serving(application(context.service, server=server), listening):
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"


async def output(words: list[str], cwd: Path, **environment: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *words,
        cwd=cwd,
        env={**os.environ, "HOME": str(cwd), "NO_COLOR": "1", **environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(300):
            printed, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, printed.decode(errors="replace")


def counted(reply: str) -> dict[str, tuple[int, int]]:
    """By scenario: how many checks passed, and how many failed."""
    summary = re.sub(r"\x1b\[[0-9;]*m", "", reply).partition("SUMMARY")[2]
    found = re.findall(r"([\w-]+): (\d+) passed, (\d+) failed", summary)
    return {name: (int(good), int(bad)) for name, good, bad in found}


@pytest.mark.parametrize(
    ("name", "version", "words", "applies"),
    [
        ("conformance", "2026-07-28", ["--requirements", "2026-07-28"], APPLIES_2026),
        ("conformance-2025", "2025-11-25", [], APPLIES_2025),
    ],
)
async def test_every_scenario_that_applies_passes_and_no_other_is_excused(
    fixtures: str, tmp_path: Path, name: str, version: str, words: list[str], applies: dict[str, tuple[int, int]]
) -> None:
    excused = ["--expected-failures", str(HERE / f"conformance-{version}.yml")]

    code, printed = await output([*check(name), "server", "--url", fixtures, *words, *excused], tmp_path)

    assert code == 0, printed[-6000:]
    found = counted(printed)
    assert {name: found.get(name) for name in applies} == applies, printed[-6000:]


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_every_excused_scenario_says_what_is_not_there(version: str) -> None:
    lines = (HERE / f"conformance-{version}.yml").read_text(encoding="utf-8").splitlines()

    assert [line for line in lines if line.lstrip().startswith("- ") and "  # " not in line] == []


async def test_a_stale_excuse_fails_the_run(fixtures: str, tmp_path: Path) -> None:
    stale = tmp_path / "stale.yml"
    stale.write_text("server:\n  - tools-list\n", encoding="utf-8")
    words = [*check("conformance"), "server", "--url", fixtures, "--scenario", "tools-list"]

    code, printed = await output([*words, "--expected-failures", str(stale)], tmp_path)

    assert code == 1, printed
    assert "tale" in printed


# ── the inspector ────────────────────────────────────────────────────────────────────────────────────────────────────


async def inspected(folder: Path, *words: str, **environment: str) -> tuple[int, Any]:
    code, printed = await output(
        [*check("mcp-inspector"), "--cli", "--connect-timeout", "90000", *words], folder, **environment
    )
    try:
        return code, json.JSONDecoder().raw_decode(printed, printed.index("{"))[0]
    except ValueError:
        return code, printed


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_the_inspector_lists_and_calls_the_tools(door: Door, tmp_path: Path, era: str) -> None:
    caller = await door.context.spawn(door.context.task())
    words = [door.url, "--transport", "http", "--protocol-era", era]
    header = ["--header", f"Authorization: Bearer {caller.token}"]

    code, listed = await inspected(tmp_path, *words, "--method", "tools/list")
    assert code == 0, listed
    assert len(listed["tools"]) == 17

    called = ["--method", "tools/call", "--tool-name", "get_next_action"]
    code, answer = await inspected(tmp_path, *words, *header, *called)
    assert code == 0, answer
    assert answer["structuredContent"]["action"] == "get_task"

    _, refused = await inspected(tmp_path, *words, *called)
    assert refused["structuredContent"]["error"]["code"] == "not_authenticated"


async def test_the_inspector_talks_to_genba_mcp_itself(project: Project) -> None:
    project.issue(1, "Build a kite")
    project.genba("agent", "list", check=0)
    words = [str(GENBA), "mcp", "--method", "tools/list"]

    code, listed = await inspected(project.root, *words)

    assert code == 0, listed
    assert len(listed["tools"]) == 17
