"""A dashboard that is kept open: by several people, in many tabs, with the keyboard alone, through restarts."""

import itertools

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from genba.domain.tasks.task import Priority, TaskDraft
from tests.project import Project, until
from tests.web.looking import Looker
from tests.web.scenes import asked
from tests.web.serving import OPERATOR, PERSON, Dashboard, dashboard

_HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def add(served: Dashboard, *titles: str) -> None:
    for title in titles:
        served.board.board.add(TaskDraft(title=title), PERSON)


def test_two_browsers_see_what_one_of_them_does(looker: Looker, served: Dashboard, chromium: Browser) -> None:
    with Looker.opened(chromium, served) as other:
        pages = [looker.go("/board"), other.go("/board")]
        pages[0].get_by_role("button", name="Pause").click()
        for page in pages:
            expect(page.locator(".sum strong")).to_have_text("paused")
        add(served, "Make tea")
        for page in pages:
            expect(page.locator("#card-1")).to_be_visible()


def test_a_hidden_page_holds_no_connection_and_catches_up_when_it_is_shown(looker: Looker, served: Dashboard) -> None:
    page = looker.go("/board")
    until(lambda: served.hub.listeners == 1)

    page.evaluate(_HIDE, True)

    until(lambda: served.hub.listeners == 0)
    expect(page.locator(".htmx-request")).to_have_count(0)  # what it had asked before may still be on its way
    add(served, "Make tea")
    expect(page.locator("#card-1")).to_have_count(0)
    page.evaluate(_HIDE, False)
    expect(page.locator("#card-1")).to_be_visible()
    expect(page.locator("#line")).to_have_attribute("data-state", "live")
    add(served, "Drink it")
    expect(page.locator("#card-2")).to_be_visible()
    until(lambda: served.hub.listeners == 1)


def test_a_click_does_not_wait_for_a_page_reload(looker: Looker, served: Dashboard) -> None:
    page = looker.go("/board")
    page.route("**/board", lambda _route: None)  # it is held
    with page.expect_request("**/board"):
        add(served, "Make tea")

    page.get_by_role("button", name="Pause").click()

    expect(page.locator("#messages")).to_contain_text("paused")
    assert served.board.field().paused
    expect(page.get_by_role("button", name="Pause")).to_be_enabled()
    page.unroute("**/board")
    expect(page.locator(".sum strong")).to_have_text("paused")


def test_the_button_of_a_submitted_form_stays_disabled_when_the_page_is_redrawn(
    looker: Looker, served: Dashboard
) -> None:
    page = looker.go("/board")
    held: list[Route] = []
    page.route("**/pause", lambda route: held.append(route))  # noqa: PLW0108 (no built-in is taken)
    page.get_by_role("button", name="Pause").click()
    add(served, "Make tea")
    expect(page.locator("#card-1")).to_be_visible()
    expect(page.get_by_role("button", name="Pause")).to_be_disabled()

    held[0].continue_()

    expect(page.locator("#messages")).to_contain_text("paused")
    expect(page.locator(".sum strong")).to_have_text("paused")


def test_what_was_asked_for_before_a_column_was_unfolded_does_not_fold_it(looker: Looker, served: Dashboard) -> None:
    add(served, *(f"Task {number}" for number in range(1, 61)))
    page = looker.go("/board")
    page.route("**/board", lambda _route: None)  # it is held
    with page.expect_request("**/board"):
        add(served, "One more")
    cards = page.locator(".cards[data-status=open] .card-item")
    page.locator(".cards[data-status=open] .more button").click()
    expect(cards).to_have_count(61)

    page.unroute("**/board")

    expect(page.locator("#column-open .count")).to_have_text("61")
    expect(cards).to_have_count(61)


def test_what_needs_you_is_counted_on_pages_that_show_nothing_else_of_it(looker: Looker, served: Dashboard) -> None:
    add(served, "Make tea")
    page = looker.go("/agents")
    expect(page.locator("#needs")).to_be_hidden()
    asked(served)
    expect(page.locator("#needs")).to_have_text("1")


def test_a_column_that_the_user_unfolded_stays_unfolded(looker: Looker, served: Dashboard) -> None:
    add(served, *(f"Task {number}" for number in range(1, 121)))
    page = looker.go("/board")
    cards = page.locator(".cards[data-status=open] .card-item")
    expect(cards).to_have_count(50)
    page.get_by_role("button", name="70 more").click()
    expect(cards).to_have_count(100)
    served.board.board.add(TaskDraft(title="At once", priority=Priority.CRITICAL), PERSON)
    expect(cards.first).to_contain_text("At once")
    expect(cards).to_have_count(100)
    add(served, "The last")
    expect(page.locator("#column-open .count")).to_have_text("122")
    expect(cards).to_have_count(100)
    page.get_by_role("button", name="22 more").click()
    expect(cards).to_have_count(122)


def test_changes_without_end_starve_no_page(looker: Looker, served: Dashboard) -> None:
    """Each answer takes longer than the next change: what is asked is answered, and then asked again."""

    def late(route: Route) -> None:
        page.wait_for_timeout(700)
        route.continue_()

    page = looker.go("/board")
    page.route("**/board", late)
    for number in itertools.count(1):
        add(served, f"Task {number}")
        page.wait_for_timeout(100)
        if page.locator("#card-1").count():
            break
        assert number < 200, "it never got to draw"
    page.unroute_all(behavior="ignoreErrors")


def test_it_says_that_it_lost_the_server_and_finds_it_again(project: Project, chromium: Browser) -> None:
    with dashboard(project) as served:
        port = httpx.URL(served.url).port
        context = chromium.new_context()
        page = context.new_page()
        page.goto(f"{served.url}/enter#token={OPERATOR}")
        page.wait_for_url(lambda url: "/enter" not in url)
        page.goto(f"{served.url}/board")
        line = page.locator("#line")
        expect(line).to_have_attribute("data-state", "live")
    expect(line).to_have_text("reconnecting")
    with project.board() as board:
        board.add(TaskDraft(title="Make tea"), PERSON)
    with dashboard(project, port=port or 0):
        expect(line).to_have_text("live")
        expect(page.locator("#card-1")).to_be_visible()
        context.close()


# ── the keyboard alone ───────────────────────────────────────────────────────────────────────────────────────────────


def at(page: Page) -> str:
    """What has the focus, and whether one can see that it has."""
    return str(
        page.evaluate("""() => {
          const here = document.activeElement, style = getComputedStyle(here);
          const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
          return `${seen ? "" : "unseen "}${here.id || here.getAttribute("href") || here.textContent.trim()}`;
        }""")
    )


def test_pages_are_reached_and_walked_by_keys(looker: Looker, served: Dashboard) -> None:
    add(served, "One", "Two", "Three")
    page = looker.go("/")
    for key, path in (("b", "/board"), ("a", "/approvals"), ("w", "/workers"), ("q", "/queue"), ("b", "/board")):
        looker.keys("g", key, f"**{path}")
        expect(page.locator("#line[data-state=live]")).to_be_visible()
    page.keyboard.press("Tab")
    assert at(page) == "#main", "the first is the way past the navigation"
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert at(page) == "/tasks/2"
    add(served, "Four")
    expect(page.locator("#card-4")).to_be_visible()
    assert at(page) == "/tasks/2", "the focus stays where it was when the page is drawn anew"
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_url("**/tasks/1")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    looker.go("/board")
    page.keyboard.press("/")
    page.keyboard.type("two")
    page.keyboard.press("Enter")
    page.wait_for_url("**/board?text=two")
    expect(page.locator(".task-card")).to_have_count(1)


@pytest.mark.parametrize("width", [1280, 400])
def test_everything_one_can_press_is_reached_by_tab_and_seen_there(
    chromium: Browser, served: Dashboard, width: int
) -> None:
    add(served, "One", "Two")
    asked(served)
    with Looker.opened(chromium, served, width=width) as looker:
        for path in ("/", "/board", "/approvals", "/tasks/1", "/agents", "/queue", "/workers", "/cost"):
            page = looker.go(path)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, (path, wide)
            unseen = page.evaluate("""() => {
              const can = "a[href], button, input:not([type=hidden]), textarea, select, summary, [tabindex='0']";
              const found = [];
              for (const each of document.querySelectorAll(can)) {
                if (!each.checkVisibility() || each.disabled || each.closest("dialog")) continue;
                each.focus({ focusVisible: true });
                const style = getComputedStyle(each), box = each.getBoundingClientRect();
                const drawn = each.querySelector("rect");
                const marked = drawn ? parseFloat(getComputedStyle(drawn).strokeWidth) >= 2
                  : style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
                const inside = box.right <= innerWidth + 1 && box.left >= -1;
                if (document.activeElement !== each || !marked || !inside)
                  found.push(`${each.outerHTML.slice(0, 120)} marked=${marked} inside=${inside}`);
              }
              return found;
            }""")
            assert not unseen, (path, unseen)
