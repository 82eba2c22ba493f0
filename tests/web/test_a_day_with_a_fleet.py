"""A day at the dashboard beside a real fleet: everything that happens is seen without loading a page again."""

import signal

from playwright.sync_api import Browser, Page, expect

from genba.domain.tasks.task import TaskStatus
from tests.fleet.test_conflicts import meeting
from tests.fleet.test_questions import asks_once
from tests.fleet.yard import Yard
from tests.project import Project
from tests.web.looking import Looker
from tests.web.serving import dashboard

_LONG_MS = 120_000
"""A fleet starts here, on a machine on which others work too."""


def agents(yard: Yard) -> None:
    """One writes what another writes too, one asks, one wants its work looked at, one takes long."""
    resolved = yard.project.root.parent / "resolve"
    late = f"until [ -e {resolved} ]; do sleep 0.05; done; echo both > shared.txt"
    writes = f"if grep -q '<<<<<<<' shared.txt; then {late}; else {meeting(yard)}; echo $GENBA_ISSUE > shared.txt; fi"
    gate = yard.project.root.parent / "go"
    yard.project.write("shared.txt", "begin\n")
    yard.agent(script=writes)
    asks_once(yard)
    yard.agent("author")
    slow = f"echo warming the pot; until [ -e {gate} ]; do sleep 0.05; done; echo tea > tea.txt"
    yard.agent("slow", script=slow)
    yard.task(1, "Write the left half")
    yard.task(2, "Write the right half")
    yard.task(3, "Choose a port", assignee="asker")
    yard.task(4, "Change the price", assignee="author", requires_review=True)
    yard.task(5, "Make tea", assignee="slow")


def column(page: Page, status: str, number: int) -> None:
    """The card of a task stands in a column by now."""
    shown = page.locator(".column", has=page.locator(f"#column-{status}")).locator(f"#card-{number}")
    expect(shown).to_be_visible(timeout=_LONG_MS)


def test_a_person_leads_a_fleet_through_its_day(project: Project, chromium: Browser) -> None:
    with Yard(project) as yard:
        yard.set(work={"workers": 5})
        agents(yard)
        with dashboard(project) as served, Looker.opened(chromium, served) as looker:
            board = looker.go("/board")
            fleet = yard.start("--workers", "5")

            # What runs is seen as it begins, and a run is watched.
            expect(board.locator("#card-5 .badge.live")).to_be_visible(timeout=_LONG_MS)
            column(board, "blocked", 3)
            expect(board.locator("#card-3")).to_contain_text("Which port shall it listen on?")
            column(board, "review", 4)
            page = looker.go("/tasks/5")
            page.locator("a[href^='/sessions/slow-5']").first.click()
            page.wait_for_url("**/sessions/slow-5*")
            expect(page.locator("#line[data-state=live]")).to_be_visible()
            expect(page.get_by_role("log")).to_contain_text("warming the pot", timeout=_LONG_MS)

            # It is stopped, and goes on when a person lets it.
            page.on("dialog", lambda dialog: dialog.accept())
            page.get_by_role("button", name="Stop", exact=True).click()
            expect(page.locator(".standing .s-waiting")).to_be_visible(timeout=_LONG_MS)
            (yard.project.root.parent / "go").touch()
            page = looker.go("/tasks/5")
            page.get_by_role("button", name="Resume", exact=True).click()
            expect(page.locator(".standing .s-done")).to_be_visible(timeout=_LONG_MS)

            # The conflict is seen with its paths while its author works on it.
            page = looker.go("/queue")
            expect(page.locator(".paths li")).to_have_text(["shared.txt"], timeout=_LONG_MS)
            (yard.project.root.parent / "resolve").touch()
            expect(page.locator(".paths li")).to_have_count(0, timeout=_LONG_MS)

            # A question is answered, a commit approved; both land.
            page = looker.go("/approvals")
            expect(page.locator("#needs")).to_have_text("2")
            page.get_by_label("Your answer").fill("Take 8080.")
            page.get_by_role("button", name="Answer", exact=True).click()
            page.get_by_role("button", name="Approve this commit").click()
            expect(page.get_by_text("Nothing waits for you.")).to_be_visible(timeout=_LONG_MS)
            page = looker.go("/board")
            for number in range(1, 6):
                column(page, "done", number)
            yard.kill(fleet, signal.SIGTERM)
        assert set(yard.statuses().values()) == {TaskStatus.DONE}
        assert project.git("show", "main:shared.txt") == "both"
        assert not yard.left_running()
