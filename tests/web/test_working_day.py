"""A person's day at the browser: watch a run, read why a goal failed, answer, approve, reject, stop."""

from playwright.sync_api import Browser, Dialog, expect

from genba.domain import events as report
from genba.domain.fleet.records import Escalation, EscalationKind
from genba.domain.tasks.task import TaskDraft, TaskStatus
from tests.blackboard.fleets import begin, to_review
from tests.project import Project, until
from tests.web.journals import AT, RUN, begun, journal, turn
from tests.web.looking import Looker
from tests.web.scenes import HOSTILE, asked, failing_run, opened, settled, waiting_agent
from tests.web.serving import PERSON, Dashboard, dashboard

COMMIT = "3f9c2ab0d1e2f3a4b5c6d7e8f90a1b2c3d4e5f60"
_STARTED_MS = 60_000


def test_a_person_starts_a_run_watches_it_live_and_sees_it_done(project: Project, chromium: Browser) -> None:
    gate = waiting_agent(project)
    project.issue(1, "Make tea")
    with dashboard(project) as served, Looker.opened(chromium, served) as looker, opened(gate):
        page = looker.go("/tasks/1")
        page.get_by_role("button", name="Run", exact=True).click()
        page.wait_for_url("**/sessions/worker-*", timeout=_STARTED_MS)
        log = page.get_by_role("log")
        expect(log).to_contain_text("warming the pot")
        expect(page.locator(".standing .s-running")).to_be_visible()
        prompt = page.locator("details", has_text="Prompt").first
        prompt.locator("summary").click()
        expect(prompt.locator("pre")).to_contain_text("Make tea")

        gate.touch()

        expect(log).to_contain_text("pouring", timeout=_STARTED_MS)
        expect(log).to_contain_text("ended: completed", timeout=_STARTED_MS)
        expect(page.locator(".standing .s-completed")).to_be_visible(timeout=_STARTED_MS)
        assert log.locator("li", has_text="warming the pot").count() == 1, "no line is there twice"
        expect(prompt.locator("pre")).to_be_visible()
        settled(served, 1)
        page.get_by_role("link", name="#1 Make tea").click()
        expect(page.locator(".standing .s-done")).to_be_visible()
        page.locator(".files details").first.locator("summary").click()
        expect(page.locator(".d-added")).to_contain_text("tea")


def test_a_person_reads_why_a_goal_failed(project: Project, chromium: Browser) -> None:
    failing_run(project)
    with dashboard(project) as served, Looker.opened(chromium, served, width=400) as looker:
        page = looker.go("/tasks/1")
        goal = page.locator(".goal.missed")
        expect(goal).to_contain_text("custom_script")
        goal.locator("summary").click()
        expect(goal.locator("pre")).to_contain_text("the tea is cold")
        served.board.board.comment(1, "Who is on it?", PERSON)
        expect(page.get_by_text("Who is on it?")).to_be_visible()
        expect(goal.locator("pre")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= 400"), "nothing hangs over at 400 pixels"


def test_a_person_answers_with_the_keyboard_alone_while_the_page_updates(served: Dashboard, looker: Looker) -> None:
    served.board.board.add(TaskDraft(title="Make tea"), PERSON)
    asked(served)
    page = looker.go("/approvals")
    box = page.get_by_label("Your answer")
    box.focus()
    page.keyboard.type("The blue ")
    served.board.board.add(TaskDraft(title="Another"), PERSON)
    asked(served, 2, "Which cup?")
    expect(page.locator("article", has_text="Which cup?")).to_be_visible()
    expect(box.first.or_(box.last)).to_have_count(2)
    assert page.evaluate("document.activeElement.value") == "The blue ", "what is being written stays"
    page.keyboard.type("one.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").get_by_text("#1 is answered")).to_be_visible()
    expect(page.get_by_text("Which pot?").first).to_be_visible()
    expect(page.locator("article", has_text="Which pot?")).to_have_count(0)
    assert served.board.escalation(1).answer == "The blue one."


def test_a_person_approves_one_commit_and_rejects_another_with_a_reason(served: Dashboard, looker: Looker) -> None:
    for number in (1, 2):
        served.board.board.add(TaskDraft(title=f"Task {number}", requires_review=True), PERSON)
        to_review(served.board.board, served.board, begin(served.board, number), COMMIT)
        served.board.escalate(
            Escalation(task=number, kind=EscalationKind.REVIEW, question="Approve it?", commit=COMMIT)
        )
    page = looker.go("/approvals")
    expect(page.locator("#needs")).to_have_text("2")
    page.locator("article", has_text="Task 1").get_by_role("button", name="Approve this commit").click()
    expect(page.locator("article")).to_have_count(1)
    expect(page.locator("#needs")).to_have_text("1")
    page.get_by_text("Reject, and say why").click()
    page.get_by_label("What must be different").fill("Too hot.")
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    expect(page.locator("#needs")).to_be_hidden()
    assert served.board.board.get(1).approved == COMMIT
    assert served.board.escalation(2).answer == "Too hot."


def test_a_person_stops_a_run(project: Project, chromium: Browser) -> None:
    gate = waiting_agent(project)
    project.issue(1, "Make tea")
    with dashboard(project) as served, Looker.opened(chromium, served) as looker, opened(gate):
        page = looker.go("/tasks/1")
        page.get_by_role("button", name="Run", exact=True).click()
        page.wait_for_url("**/sessions/worker-*", timeout=_STARTED_MS)
        expect(page.get_by_role("log")).to_contain_text("warming the pot", timeout=_STARTED_MS)
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("status").get_by_text("is suspended")).to_be_visible(timeout=_STARTED_MS)
        expect(page.get_by_role("button", name="Stop")).to_have_count(0)
        until(lambda: not served.site.queries.context.is_running(served.board.sessions(1)[0].branch))
        assert served.board.board.get(1).status is not TaskStatus.DONE


def test_hostile_text_runs_no_script_on_these_pages(served: Dashboard, looker: Looker) -> None:
    served.board.board.add(TaskDraft(title=HOSTILE, body=HOSTILE), PERSON)
    served.board.board.comment(1, HOSTILE, PERSON)
    run = asked(served, 1, HOSTILE)
    journal(served, [begun(), *turn(1, HOSTILE, HOSTILE), report.AgentOutput(time=AT, stream="stdout", text=HOSTILE)])
    dialogs: list[str] = []

    def heard(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    looker.page.on("dialog", heard)
    for path in ("/tasks/1", "/approvals", f"/sessions/{run}", "/tasks/1/diff", f"/sessions/{RUN}"):
        page = looker.go(path)
        expect(page.locator("main script, main img")).to_have_count(0)
    for each in page.locator(".opens summary").all():
        each.click()
    expect(page.locator(".opens pre").last).to_contain_text("<script>")
    expect(page.locator("main script, main img")).to_have_count(0)
    assert not dialogs
