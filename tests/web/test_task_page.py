"""The page of a task: what is true of it, the evidence for that, and buttons that do what they say."""

import pytest

from genba.blackboard.database.store import Statement
from genba.domain.fleet.records import Escalation, EscalationKind
from genba.domain.tasks.task import Blocker, BlockerKind, StatusChange, TaskDraft, TaskStatus
from tests.project import Project, until
from tests.web.scenes import FAILS, HOSTILE, KEEPS, asked, failing_run, opened, posted, settled, waiting_agent
from tests.web.serving import PERSON, VIEWER, Dashboard, dashboard

_VERDICTS = Statement("SELECT id FROM verifications ORDER BY id")


def text(served: Dashboard, path: str, token: str = "") -> str:
    with served.client(token) if token else served.client() as client:
        answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


def test_a_task_says_what_it_is_about_and_why_it_is_where_it_is(served: Dashboard) -> None:
    board = served.board.board
    board.add(TaskDraft(title="Boil water"), PERSON)
    board.add(TaskDraft(title="Make tea", body="Line one.\nSee https://tea.example/a?b=1.", dependencies=(1,)), PERSON)
    board.add(TaskDraft(title="Fill the cup", parent=2), PERSON)
    board.comment(2, "With milk, please.", PERSON)

    shown = text(served, "/tasks/2")

    assert "waits for #1" in shown
    assert 'href="/tasks/1"' in shown
    assert "Fill the cup" in shown
    assert "With milk, please." in shown
    assert '<a href="https://tea.example/a?b=1" rel="noopener noreferrer nofollow">' in shown
    assert "It has no session yet." in shown
    assert "Waited for by" in text(served, "/tasks/1")


def test_text_of_others_is_text_and_nothing_else(served: Dashboard) -> None:
    body = f'{HOSTILE} javascript:alert(1) data:text/html,x [x](javascript:alert(2)) https://ok.example/"onclick=x'
    served.board.board.add(TaskDraft(title=HOSTILE, body=body, labels=(HOSTILE[:40],), goals=(FAILS,)), PERSON)
    served.board.board.comment(1, HOSTILE, PERSON)
    served.board.board.change_status(
        1, StatusChange(to=TaskStatus.BLOCKED, actor=PERSON, blocker=Blocker(BlockerKind.NEEDS_INPUT, HOSTILE))
    )

    for path in ("/tasks/1", "/approvals", "/tasks/1/diff"):
        shown = text(served, path)
        assert "<script>alert" not in shown
        assert "<img" not in shown
        assert 'href="javascript' not in shown
        assert "onclick=x" not in shown.replace("&#34;onclick=x", "")


@pytest.mark.parametrize("path", ["/tasks/9", "/tasks/x", "/tasks/0", f"/tasks/{'9' * 5000}", "/tasks/-1", "/tasks/१"])
def test_a_task_that_is_not_there_is_reported(served: Dashboard, path: str) -> None:
    with served.client() as client:
        answer = client.get(path)
    assert answer.status_code == 404
    assert "there is no such page" in answer.text or "there is no task" in answer.text


def test_the_evidence_of_a_failed_goal_is_there_with_its_log(project: Project) -> None:
    run = failing_run(project)
    with dashboard(project) as served:
        shown = text(served, "/tasks/1")
        log = shown.partition('hx-get="/tasks/1/goals/')[2].partition('"')[0]

        assert "goals not met" in shown
        assert "custom_script" in shown
        assert f'href="/sessions/{run}"' in shown
        assert "the tea is cold" in text(served, f"/tasks/1/goals/{log}")
        with served.client() as client:
            for name in ("000000000000", "..%2f..%2fserve.json", "%00"):
                assert client.get(f"/tasks/1/goals/{name}").status_code == 404
        verdicts = served.board.store.read(lambda tx: tx.all(_VERDICTS))
        assert "custom_script" in text(served, f"/tasks/1/verdicts/{verdicts[0][0]}")
        with served.client() as client:
            assert client.get("/tasks/1/verdicts/999").status_code == 404


def test_the_changes_of_a_task_are_shown_file_by_file(project: Project) -> None:
    evil = project.root.parent / "evil"
    script = project.write("../driver.sh", f"#!/bin/sh\ntouch {evil}\n")
    script.chmod(0o755)
    for key in ("diff.evil.command", "diff.evil.textconv"):
        project.git("config", key, str(script))
    project.write("old.txt", "".join(f"line {each}\n" for each in range(20)))
    project.write(".gitattributes", "*.txt diff=evil\n")
    project.commit("Before")
    name = "<b>&'\" ä.txt"
    work = (
        "git mv old.txt new.txt; echo tea >> new.txt; printf 'a\\0b' > cup.bin; "
        "printf '%s\\n' '<script>alert(1)</script>' > \"$NAME\"; git add -A; git commit -qm '<i>Make</i> tea'"
    )
    script_ = {"turns": [{"do": [{"run": f"NAME={_quoted(name)}; {work}"}], "reply": "done"}]}
    project.agent("worker", script=script_, **KEEPS)
    project.issue(1, "Make tea")
    project.run("worker", "--issue", "1", "--no-merge", check=None)

    with dashboard(project) as served:
        shown = text(served, "/tasks/1/diff")
        with served.client() as client:
            lines = client.get("/tasks/1/diff/file", params={"path": name}).text
            moved = client.get("/tasks/1/diff/file", params={"path": "new.txt"}).text
            nothing = client.get("/tasks/1/diff/file", params={"path": "../../etc/passwd"})
            option = client.get("/tasks/1/diff/file", params={"path": "--output=/tmp/x"})

    assert "3 files" in shown
    assert "cup.bin" in shown
    assert "binary" in shown
    assert "old.txt" in shown
    assert "&lt;b&gt;" in shown
    assert "<i>Make" not in shown
    assert "&lt;script&gt;alert(1)" in lines
    assert "d-added" in moved
    assert moved.count("d-removed") == 0, "a file that was moved is compared with itself"
    assert (nothing.status_code, option.status_code) == (404, 404), "only what the work changes is shown"
    assert not evil.exists(), "no program of the settings draws a difference"


def test_a_task_without_work_has_nothing_to_compare(served: Dashboard) -> None:
    served.board.board.add(TaskDraft(title="Make tea"), PERSON)
    assert "There is nothing to compare" in text(served, "/tasks/1/diff")


def test_the_buttons_of_a_task_do_what_the_commands_do(served: Dashboard) -> None:
    board = served.board.board
    board.add(TaskDraft(title="Make tea"), PERSON)
    with served.visitor() as client:
        assert "is paused" in posted(client, "/tasks/1/pause").text
        assert 1 in served.board.field().held
        assert "goes on" in posted(client, "/tasks/1/resume").text
        assert 1 not in served.board.field().held
        assert "has your comment" in posted(client, "/tasks/1/comment", text="With milk.").text
        assert [each.body for each in board.comments(1)] == ["With milk."]
        assert posted(client, "/tasks/1/comment", text="  ").status_code == 400
        assert "is cancelled" in posted(client, "/tasks/1/cancel").text
        assert posted(client, "/tasks/1/cancel").status_code == 409
        assert posted(client, "/tasks/1/unblock").status_code == 409
        assert "is open" in posted(client, "/tasks/1/reopen").text
        assert 'href="/tasks/1"' in posted(client, "/tasks/1/pause").text, "there is a way back without a script"
        assert client.post("/tasks/1/resume").status_code == 409, "a form without its sign does nothing"
    assert 1 in served.board.field().held


def test_a_viewer_sees_no_buttons_and_cannot_press_them(served: Dashboard) -> None:
    served.board.board.add(TaskDraft(title="Make tea"), PERSON)
    asked(served)
    for path in ("/tasks/1", "/approvals"):
        shown = text(served, path, VIEWER)
        assert "Which pot?" in shown
        assert "<form" not in shown.partition("<main")[2].partition("</main>")[0]
    with served.visitor(VIEWER) as client:
        for name in ("run", "stop", "pause", "answer", "approve", "reject", "cancel", "comment"):
            assert posted(client, f"/tasks/1/{name}", text="x", reason="x", agent="worker").status_code == 403
    assert served.board.escalation(1).status == "open"


def test_an_answer_is_given_from_the_page_of_the_task(served: Dashboard) -> None:
    served.board.board.add(TaskDraft(title="Make tea"), PERSON)
    asked(served)
    shown = text(served, "/tasks/1")
    assert 'action="/tasks/1/answer"' in shown
    assert "blue" in shown
    with served.visitor() as client:
        assert "is answered" in posted(client, "/tasks/1/answer", text="The blue one.").text
        assert posted(client, "/tasks/1/answer", text="The red one.").status_code == 409
    assert served.board.escalation(1).answer == "The blue one."


def test_a_stopped_task_can_be_let_go_on(served: Dashboard) -> None:
    served.board.board.add(TaskDraft(title="Make tea"), PERSON)
    served.board.hold(1, True, PERSON)
    served.board.escalate(Escalation(task=1, kind=EscalationKind.STOPPED, question="stopped by tester"), None)
    assert "Let it go on" in text(served, "/tasks/1")
    with served.visitor() as client:
        assert posted(client, "/tasks/1/resume").status_code == 200
    assert not served.board.escalations()


def test_the_run_button_starts_a_run_that_outlives_the_press(project: Project) -> None:
    gate = waiting_agent(project)
    project.issue(1, "Make tea")
    with dashboard(project) as served, served.visitor() as client, opened(gate):
        assert '<option value="worker"' in text(served, "/tasks/1")
        result = posted(client, "/tasks/1/run", agent="worker")
        assert "worker works on #1" in result.text
        (session,) = served.board.sessions(1)
        assert f'href="/sessions/{session.run}"' in result.text
        refused = posted(client, "/tasks/1/run", agent="worker")
        assert refused.status_code == 409
        assert f"{session.run} works on #1 already" in refused.text
        shown = text(served, "/tasks/1")
        assert 'action="/tasks/1/run"' not in shown
        assert 'action="/tasks/1/stop"' in shown
        gate.touch()
        settled(served, 1)
        assert served.board.board.get(1).status is TaskStatus.DONE
    assert (project.root / "tea.txt").is_file()


def test_a_run_that_does_not_begin_says_why(project: Project) -> None:
    project.agent("worker", **KEEPS)
    project.agent("broken", **KEEPS, adapter={"type": "scripted", "script": "missing.yaml"})
    project.agent("alone")
    project.issue(1, "Make tea")
    project.issue(2, "Drink it", state="closed")
    with dashboard(project) as served, served.visitor() as client:
        for agent, status in (("nobody", 404), ("", 400), ("--help", 400), ("alone", 400), ("../x", 404)):
            assert posted(client, "/tasks/1/run", agent=agent).status_code == status, agent
        result = posted(client, "/tasks/2/run", agent="worker")
        assert result.status_code == 409
        assert "issue #2 is closed" in result.text
        assert "did not begin on #1" in posted(client, "/tasks/1/run", agent="broken").text
        assert posted(client, "/tasks/99/run", agent="worker").status_code == 404
        assert not served.board.sessions(1)
    assert len(list((project.root / ".git" / "genba" / "started").glob("*.log"))) <= 20


def test_a_run_of_its_own_is_stopped_by_the_button_of_its_task(project: Project) -> None:
    gate = waiting_agent(project)
    project.issue(1, "Make tea")
    with dashboard(project) as served, served.visitor() as client, opened(gate):
        posted(client, "/tasks/1/run", agent="worker")
        (session,) = served.board.sessions(1)
        until(lambda: served.site.queries.context.is_running(served.board.sessions(1)[0].branch))
        result = posted(client, "/tasks/1/stop")
        assert result.status_code == 200, result.text
        assert "is suspended" in result.text
        assert f"genba run --resume {session.run}" in result.text
        assert not served.site.queries.context.is_running(served.board.sessions(1)[0].branch)


def _quoted(name: str) -> str:
    return "'" + name.replace("'", "'\\''") + "'"
