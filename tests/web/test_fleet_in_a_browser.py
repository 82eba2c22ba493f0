"""The pages of the fleet in a real browser: drawn, alive, by the keyboard, on a phone, and without a complaint."""

import pytest
from playwright.sync_api import Browser, expect

from genba.domain.fleet.records import EntryStatus, SegmentEnd
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.tasks.task import StatusChange, TaskStatus
from tests.web.fleet_scenes import FLEET, add, begun, executor, queued, red, settled, spent
from tests.web.looking import Looker
from tests.web.scenes import HOSTILE
from tests.web.serving import Dashboard

PAGES = (
    "/", "/board", "/approvals", "/workers", "/workers?reach=7d&by=agent", "/queue", "/graph", "/graph?show=all",
    "/graph?around=1", "/agents", "/agents/worker", "/agents/broken", "/cost", "/cost?days=90", "/tasks/1",
)  # fmt: skip


def furnished(served: Dashboard) -> None:
    """A field with something on every page, and hostile words in all of them."""
    served.project.agent("worker", commit=False)
    served.project.write(".agent/broken/agent.json", '{"name": "broken"}')
    settled(served, queued(served, add(served, HOSTILE)), EntryStatus.CONFLICT, paths=("app.py",), detail=HOSTILE)
    add(served, f"{HOSTILE} again", dependencies=(1,))
    failed = begun(served, add(served, "Make tea"))
    spent(served, failed.run, 1, 41_000, 0.4)
    served.board.end_part(SegmentEnd(run=failed.run, part=1, outcome="failed", reason=HOSTILE))
    served.board.board.change_status(3, StatusChange(to=TaskStatus.OPEN, actor=FLEET))
    begun(served, add(served, "Fill the cup"))


def test_no_page_makes_the_browser_complain_and_none_is_wider_than_a_phone(
    chromium: Browser, served: Dashboard
) -> None:
    furnished(served)
    with Looker.opened(chromium, served, width=400) as looker:
        for path in PAGES:
            page = looker.go(path)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 400, (path, wide)
            assert not looker.complaints, (path, looker.complaints)


def test_a_conflict_is_seen_when_it_happens_with_its_paths(looker: Looker, served: Dashboard) -> None:
    entry = queued(served, add(served, "Make tea"))
    page = looker.go("/queue")
    expect(page.locator(".entry .state").first).to_have_text("queued")

    settled(served, entry, EntryStatus.CONFLICT, paths=("app.py", "tests/test_app.py"))

    expect(page.locator(".paths li")).to_have_text(["app.py", "tests/test_app.py"])
    page.locator(".entry-title").click()
    expect(page).to_have_url(f"{served.url}/tasks/1")


def test_the_log_of_a_goal_that_failed_at_the_gate_is_read_where_it_is_named(looker: Looker, served: Dashboard) -> None:
    result = CheckResult("tests_pass", CheckStatus.FAILED, "1 failed: test_pot", output="the whole story of the pot")
    log = served.site.queries.context.results().keep("a" * 64, result, reusable=False)
    red(served, queued(served, add(served, "Make tea")), "1 failed: test_pot", log=log)
    page = looker.go("/queue")
    page.locator(".goals details summary").click()
    expect(page.locator(".goals .held")).to_contain_text("the whole story of the pot")


def test_the_graph_is_drawn_and_follows_without_losing_its_place(looker: Looker, served: Dashboard) -> None:
    add(served, "Boil water")
    add(served, "Make tea", dependencies=(1,))
    page = looker.go("/graph")
    expect(page.locator("#graph[data-drawn='2']")).to_be_visible()
    assert page.evaluate("genbaGraph.edges().length") == 1
    assert page.evaluate("genbaGraph.$('#n1').position('x') < genbaGraph.$('#n2').position('x')")
    page.evaluate("genbaGraph.zoom(0.7)")

    add(served, "Fill the cup", dependencies=(2,))

    expect(page.locator("#graph[data-drawn='3']")).to_be_visible()
    assert page.evaluate("genbaGraph.zoom()") == 0.7
    canvas = page.locator("#graph canvas").first
    assert canvas.evaluate("each => each.width > 0 && each.height > 0")


def test_the_graph_can_be_walked_by_the_keyboard_alone(looker: Looker, served: Dashboard) -> None:
    add(served, "Boil water")
    add(served, "Make tea", dependencies=(1,))
    page = looker.go("/board")
    looker.keys("g", "g", "**/graph")
    expect(page.locator("#graph[data-drawn='2']")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("#node-2 a[data-entry]")).to_be_focused()
    assert page.evaluate("genbaGraph.nodes('.near').map(each => each.id()).join()") == "n2"
    page.keyboard.press("Enter")
    page.wait_for_url("**/tasks/2")


def test_what_was_spent_is_drawn_and_grows(looker: Looker, served: Dashboard) -> None:
    session = begun(served, add(served, "Make tea"))
    spent(served, session.run, 1, 1000, 0.5)
    page = looker.go("/cost")
    expect(page.locator("#chart canvas")).to_be_visible()
    drawn = page.locator("#chart canvas").evaluate("each => each.toDataURL()")
    page.locator("details summary").first.click()

    spent(served, session.run, 2, 9000, 2.5)

    expect(page.locator(".tile .big").first).to_have_text("$3.00")
    expect(page.locator("#days tr").last).to_contain_text("10.0k")
    expect(page.locator("#days")).to_be_visible()
    page.wait_for_function("before => document.querySelector('#chart canvas').toDataURL() !== before", arg=drawn)


def test_the_bars_of_the_timeline_are_reached_one_by_one(looker: Looker, served: Dashboard) -> None:
    with executor(served):
        for title in ("Boil water", "Make tea"):
            session = begun(served, add(served, title))
            served.board.end_part(SegmentEnd(run=session.run, part=1, outcome="completed"))
        page = looker.go("/workers?reach=1h")
        expect(page.locator("#gantt .bar[tabindex='0']")).to_have_count(1)
        page.locator("#gantt .bar[tabindex='0']").focus()
        page.keyboard.press("Home")
        expect(page.locator("#bar-text")).to_contain_text("#1 Boil water · worker · completed")
        page.keyboard.press("ArrowRight")
        expect(page.locator("#bar-text")).to_contain_text("#2 Make tea")
        page.keyboard.press("Enter")
        page.wait_for_url("**/sessions/worker-2-1-abcdef")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_drawings_follow_light_and_dark(chromium: Browser, served: Dashboard, scheme: str) -> None:
    add(served, "Boil water")
    with Looker.opened(chromium, served) as looker:
        looker.page.emulate_media(color_scheme="dark" if scheme == "light" else "light")
        page = looker.go("/graph")
        expect(page.locator("#graph[data-drawn='1']")).to_be_visible()
        before = page.evaluate("genbaGraph.$('#n1').style('background-color')")
        page.keyboard.press("t")
        page.wait_for_function("before => genbaGraph.$('#n1').style('background-color') !== before", arg=before)
