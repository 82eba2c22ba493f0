"""Text of others is text on every page: it runs nothing, leads nowhere, breaks nothing."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from genba.domain import events as report
from genba.domain.fleet.records import EntryStatus
from genba.domain.tasks.task import Blocker, BlockerKind, StatusChange, TaskDraft, TaskStatus
from genba.entrypoints import web
from tests.project import Project
from tests.web.fleet_scenes import FLEET, executor, queued, red, settled, spent
from tests.web.journals import AT, RUN, begun, journal, turn
from tests.web.looking import Looker
from tests.web.scenes import asked
from tests.web.serving import PERSON, Dashboard, dashboard

HOSTILE = (
    "<script>window.ran = 1</script><img src=x onerror='window.ran = 2'>\"'`&{{ 7 * 7 }}{% if x %}"
    '<a href="javascript:window.ran = 3">press</a> onclick=window.ran=4 x=\'" javascript:window.ran=5 '
    "\u202eesrever\u202c \u0000\x1b[31m\r\nevent: changed\ndata: <svg onload=window.ran=6>\n\n]]>--></style></script>"
)
LONG = "w" * 3000
_FOLDER = Path(web.__file__).parent
_PAGES = ("/", "/board", "/approvals", "/workers", "/queue", "/graph", "/agents", "/cost", "/tasks/1", "/tasks/2",
          "/tasks/3", "/tasks/4/diff", "/graph?around=1", "/board?text=%3Cscript%3E", f"/sessions/{RUN}")  # fmt: skip


def hostile(served: Dashboard) -> None:
    text = HOSTILE.replace("\0", "")
    title = " ".join(text.split())
    board = served.board.board
    for number in range(1, 6):
        draft = TaskDraft(title=title if number < 5 else LONG, body=text + LONG, labels=("<b>x</b>", "'\"><i>"))
        board.add(draft, PERSON)
        board.comment(number, text, PERSON)
    run = asked(served, 1, text)
    spent(served, run, 1, 1000, 0.5)
    conflict = queued(served, 2)
    settled(served, conflict, EntryStatus.CONFLICT, detail=text, paths=("<img src=x onerror=window.ran=7>", LONG))
    red(served, queued(served, 3), text)
    board.change_status(
        4, StatusChange(to=TaskStatus.BLOCKED, actor=FLEET, blocker=Blocker(BlockerKind.NEEDS_INPUT, text))
    )
    output = report.AgentOutput(time=AT, stream="stdout", text=text)
    endless = report.AgentOutput(time=AT, stream="stdout", text="x" * 100_000)
    journal(served, [begun(), *turn(1, text, text), output, endless])


@pytest.mark.parametrize("width", [1280, 400])
def test_no_text_of_others_does_anything_on_any_page(project: Project, chromium: Browser, width: int) -> None:
    project.agent("evil", prompts={"system.md": HOSTILE.replace("\0", "")})
    with dashboard(project) as served, executor(served), Looker.opened(chromium, served, width=width) as looker:
        hostile(served)
        for path in _PAGES:
            page = looker.go(path)
            page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            expect(page.locator(".htmx-request")).to_have_count(0)
            found = page.evaluate("""() => ({
              ran: window.ran || 0,
              made: document.querySelectorAll("main script, main img, main iframe, main i, main style").length,
              leads: [...document.querySelectorAll("a[href], form[action]")]
                .map((each) => new URL(each.getAttribute("href") || each.getAttribute("action"), location.href))
                .filter((each) => !/^https?:$/.test(each.protocol)).length,
              wide: document.documentElement.scrollWidth,
            })""")
            assert found == {"ran": 0, "made": 0, "leads": 0, "wide": found["wide"]}, (path, found)
            assert found["wide"] <= width, (path, found)
            assert not looker.complaints, (path, looker.complaints)


def _templates() -> list[Path]:
    return sorted((_FOLDER / "templates").glob("*.html"))


@pytest.mark.parametrize(
    "forbidden",
    [r"\|\s*safe\b", r"\sstyle=", r"\son[a-z]+=", r"<script(?![^>]*\bsrc=)", r"<style", r"javascript:", r"autoescape",
     r"(?:src|href)=\"(?:https?:)?//", r"hx-on", r"hx-vals=['\"]js"],
)  # fmt: skip
def test_no_template_has_what_the_policy_forbids(forbidden: str) -> None:
    found = [path.name for path in _templates() if re.search(forbidden, path.read_text("utf-8"))]
    assert not found


def test_no_script_of_ours_makes_markup_of_text() -> None:
    words = re.compile(r"\.(?:inner|outer)HTML\s*=|insertAdjacentHTML|document\.write|\beval\(|new Function")
    found = [path.name for path in sorted((_FOLDER / "static").glob("*.js")) if words.search(path.read_text("utf-8"))]
    assert not found
