import re

import httpx
import pytest

from genba.domain.fleet.records import Escalation, EscalationKind
from genba.domain.tasks.task import TaskDraft, TaskStatus
from tests.blackboard.fleets import begin, to_review
from tests.web.serving import PERSON, Dashboard

COMMIT = "3f9c2ab0d1e2f3a4b5c6d7e8f90a1b2c3d4e5f60"
_FORM = re.compile(r'<form[^>]* action="([^"]+/(?:answer|approve|reject))".*?</form>', re.DOTALL)
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')


def forms(client: httpx.Client, page: str) -> dict[str, dict[str, str]]:
    """What the forms of a page would send, by the last word of their addresses."""
    text = client.get(page).text
    found = {each.group(1).rpartition("/")[2]: dict(_HIDDEN.findall(each.group())) for each in _FORM.finditer(text)}
    assert found, text
    return found


def escalated(served: Dashboard, kind: EscalationKind, commit: str = "") -> None:
    served.board.escalate(Escalation(task=1, kind=kind, question=f"{kind}?", commit=commit), None)


@pytest.mark.parametrize("page", ["/approvals", "/tasks/1"])
def test_an_answer_goes_to_the_question_that_was_read(served: Dashboard, page: str) -> None:
    served.board.board.add(TaskDraft(title="Make tea"), PERSON)
    escalated(served, EscalationKind.QUESTION)
    with served.visitor() as client:
        shown = forms(client, page)["answer"]
        escalated(served, EscalationKind.FAILED)
        answer = client.post("/tasks/1/answer", data={**shown, "text": "The blue one."})
        assert answer.status_code == 409
        assert "waits for something else by now" in answer.text
    assert {each.status for each in served.board.escalations()} == {"open"}


def test_a_yes_to_another_try_approves_no_commit(served: Dashboard) -> None:
    served.board.board.add(TaskDraft(title="Make tea", requires_review=True), PERSON)
    run = begin(served.board, 1)
    escalated(served, EscalationKind.BUDGET)
    with served.visitor() as first, served.visitor() as second:
        shown, same = forms(first, "/approvals")["approve"], forms(second, "/approvals")["approve"]
        assert first.post("/tasks/1/approve", data=shown).status_code == 200
        to_review(served.board.board, served.board, run, COMMIT)
        assert second.post("/tasks/1/approve", data=same).status_code == 409, "nobody asked for the commit"
        escalated(served, EscalationKind.REVIEW, COMMIT)
        assert second.post("/tasks/1/approve", data=same).status_code == 409, "the commit was not what was shown"
    task = served.board.board.get(1)
    assert (task.status, task.approved) == (TaskStatus.REVIEW, "")
    assert served.board.escalation(1).status == "open"


def test_the_button_of_a_task_in_review_names_the_commit_that_it_shows(served: Dashboard) -> None:
    served.board.board.add(TaskDraft(title="Make tea", requires_review=True), PERSON)
    to_review(served.board.board, served.board, begin(served.board, 1), COMMIT)
    with served.visitor() as client:
        assert forms(client, "/tasks/1")["approve"]["commit"] == COMMIT


def test_of_two_simultaneous_decisions_one_is_refused(served: Dashboard) -> None:
    served.board.board.add(TaskDraft(title="Make tea", requires_review=True), PERSON)
    to_review(served.board.board, served.board, begin(served.board, 1), COMMIT)
    escalated(served, EscalationKind.REVIEW, COMMIT)
    with served.visitor() as first, served.visitor() as second:
        yes, no = forms(first, "/approvals")["approve"], forms(second, "/approvals")["reject"]
        assert first.post("/tasks/1/approve", data=yes).status_code == 200
        assert second.post("/tasks/1/reject", data={**no, "reason": "Too hot."}).status_code == 409
    assert served.board.escalation(1).status == "approved"


def test_programs_can_name_what_they_have_read(served: Dashboard) -> None:
    served.board.board.add(TaskDraft(title="Make tea"), PERSON)
    escalated(served, EscalationKind.QUESTION)
    with served.client() as client:
        read = client.get("/api/escalations").json()[0]["id"]
        escalated(served, EscalationKind.FAILED)
        answer = client.post("/api/tasks/1/answer", json={"text": "Yes.", "asked": read})
        assert answer.status_code == 409
        newest = client.get("/api/escalations").json()[-1]["id"]
        assert client.post("/api/tasks/1/answer", json={"text": "Yes.", "asked": newest}).status_code == 200
