"""A button that is pressed before the page is ready does what it would have done a moment later."""

import threading
import time

from playwright.sync_api import Browser, Dialog, Page, Route, expect

from tests.project import Project
from tests.web.looking import PATIENCE_MS, Looker
from tests.web.serving import dashboard


def begun(looker: Looker, path: str) -> Page:
    looker.page.goto(f"{looker.dashboard.url}{path}", wait_until="commit")
    return looker.page


def printed(page: Page) -> None:
    page.get_by_label("Comment; agents read it with the task").fill("Is there tea?")
    page.get_by_role("button", name="Comment", exact=True).click()


def test_a_form_waits_for_the_scripts_and_the_page_stays(project: Project, chromium: Browser) -> None:
    project.issue(1, "Make tea")
    with dashboard(project) as served, Looker.opened(chromium, served) as looker:
        held: list[Route] = []
        looker.page.route("**/htmx-2*.js", lambda route: held.append(route))  # noqa: PLW0108 (no built-in is taken)
        page = begun(looker, "/tasks/1")
        printed(page)
        assert not served.board.board.comments(1)
        held[0].continue_()
        expect(page.locator("#live").get_by_text("Is there tea?")).to_be_visible()
        assert page.url.endswith("/tasks/1")
        assert len(served.board.board.comments(1)) == 1


def test_a_form_whose_scripts_never_come_is_sent_by_the_browser(project: Project, chromium: Browser) -> None:
    project.issue(1, "Make tea")
    with dashboard(project) as served, Looker.opened(chromium, served, may_complain=True) as looker:
        looker.page.route("**/htmx-2*.js", lambda route: route.abort())
        page = begun(looker, "/tasks/1")
        printed(page)
        expect(page.get_by_role("heading", name="Done")).to_be_visible()
        page.get_by_role("link", name="Go on").click()
        expect(page.get_by_text("Is there tea?")).to_be_visible()


def test_a_form_that_has_just_come_asks_before_it_acts(project: Project, chromium: Browser) -> None:
    project.issue(1, "Make tea")
    with dashboard(project) as served, Looker.opened(chromium, served) as looker:
        page = looker.go("/tasks/1")
        asked = threading.Event()

        def refuse(dialog: Dialog) -> None:
            asked.set()
            dialog.dismiss()

        page.on("dialog", refuse)
        page.evaluate(
            """() => {
                const form = document.querySelector('form[hx-post$="/comment"]').cloneNode(true);
                form.id = "fresh";
                form.setAttribute("hx-confirm", "Really?");
                document.querySelector("#main").append(form);
                form.querySelector("textarea").value = "Is there tea?";
                form.requestSubmit(form.querySelector("button[type=submit]"));
            }"""
        )
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while not asked.is_set():
            assert time.monotonic() < deadline, "nobody was asked"
            page.wait_for_timeout(50)
        page.wait_for_timeout(300)
        assert page.url.endswith("/tasks/1")
        assert not served.board.board.comments(1)
