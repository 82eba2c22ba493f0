from genba.domain.fleet.records import Escalation, EscalationKind
from genba.domain.tasks.task import TaskDraft
from tests.web.serving import PERSON, Dashboard


def test_escalations_come_page_by_page(served: Dashboard) -> None:
    for number in range(1, 6):
        served.board.board.add(TaskDraft(title=f"Task {number}"), PERSON)
        served.board.escalate(Escalation(task=number, kind=EscalationKind.QUESTION, question="?"), None)
    served.board.answer(2, "yes", PERSON)
    with served.client() as client:
        first = client.get("/api/escalations?all=true&limit=2").json()
        rest = client.get(f"/api/escalations?all=true&limit=9&after={first[-1]['id']}").json()
        waiting = client.get(f"/api/escalations?after={first[0]['id']}&limit=2").json()
        refused = [
            client.get(f"/api/escalations?{words}").status_code for words in ("limit=1001", "after=-1", "after=x")
        ]
    assert [each["task"] for each in first + rest] == [1, 2, 3, 4, 5]
    assert [each["task"] for each in waiting] == [3, 4]
    assert refused == [400, 400, 400]


def test_the_queue_comes_page_by_page(served: Dashboard) -> None:
    with served.client() as client:
        assert client.get("/api/queue?all=true&limit=1&after=7&target=main").json() == []
        assert client.get("/api/queue?limit=0").status_code == 400


def test_a_task_with_a_long_history_shows_the_end_of_it_and_lists_all(served: Dashboard) -> None:
    board = served.board.board
    board.add(TaskDraft(title="Make tea"), PERSON)
    for number in range(205):
        board.comment(1, f"comment {number}", PERSON)
    with served.client() as client:
        shown = client.get("/api/tasks/1").json()
        events = client.get("/api/tasks/1/events?limit=1000").json()
        comments = client.get("/api/tasks/1/comments?after=203").json()
        missing = client.get("/api/tasks/2/events").status_code
    assert (len(shown["comments"]), shown["older_comments"]) == (200, 5)
    assert shown["comments"][-1]["body"] == "comment 204"
    assert (len(shown["events"]), shown["older_events"]) == (200, len(events) - 200)
    assert shown["events"] == events[-200:]
    assert [each["body"] for each in comments] == ["comment 203", "comment 204"]
    assert missing == 404
