"""The page of approvals: whatever waits for a person is there with what it takes to decide it, and can be decided."""

from genba.domain.fleet.records import Escalation, EscalationKind, Plan, SegmentEnd, SegmentOrder, Subtask, WaitsFor
from genba.domain.goals.goal import TestsPass
from genba.domain.tasks.task import Blocker, BlockerKind, TaskDraft, TaskStatus
from tests.blackboard.fleets import begin, to_review
from tests.web.scenes import HOSTILE, asked, posted
from tests.web.serving import PERSON, Dashboard

COMMIT = "3f9c2ab0d1e2f3a4b5c6d7e8f90a1b2c3d4e5f60"


def shown(served: Dashboard) -> str:
    with served.client() as client:
        answer = client.get("/approvals")
    assert answer.status_code == 200, answer.text
    return answer.text


def escalated(served: Dashboard, number: int, kind: EscalationKind, **more: object) -> None:
    question = f"{kind} of {number}"
    escalation = Escalation(task=number, kind=kind, question=question, evidence=dict(more))
    served.board.escalate(escalation, Blocker(BlockerKind.FAILED, question))


def test_where_nothing_waits_it_says_so(served: Dashboard) -> None:
    message = shown(served)
    assert "Nothing waits for you." in message
    assert "Nothing was decided yet." in message


def test_every_kind_is_shown_with_the_ways_to_decide_it(served: Dashboard) -> None:
    ways = {
        EscalationKind.ATTEMPTS: ("Let it be tried again", "answer"),
        EscalationKind.CONFLICT: ("One more round", "answer"),
        EscalationKind.FAILED: ("One more round", "answer"),
        EscalationKind.BUDGET: ("Let it go over its budget", "approve"),
        EscalationKind.STOPPED: ("Let it go on", "resume"),
    }
    for number, kind in enumerate(ways, 1):
        served.board.board.add(TaskDraft(title=f"Task {number}"), PERSON)
        escalated(served, number, kind, conflicts=["src/tea.py", HOSTILE])

    message = shown(served)

    assert "<script>alert" not in message
    assert "src/tea.py" in message
    for number, (kind, (button, way)) in enumerate(ways.items(), 1):
        card = message.partition(f"{kind} of {number}")[2].partition("</article>")[0]
        assert button in card, kind
        assert f'action="/tasks/{number}/{way}"' in card, kind


def test_a_question_is_answered_and_then_stands_below(served: Dashboard) -> None:
    served.board.board.add(TaskDraft(title="Make tea"), PERSON)
    run = asked(served)
    message = shown(served)
    assert "Which pot?" in message
    assert f'href="/sessions/{run}"' in message
    assert "$0.25" in message

    with served.visitor() as client:
        assert posted(client, "/tasks/1/answer", text="The blue one.").status_code == 200

    message = shown(served)
    assert "Nothing waits for you." in message
    below = message.partition("Decided last")[2]
    assert "The blue one." in below
    assert "by tester" in below
    assert served.board.board.get(1).status is TaskStatus.OPEN


def test_a_commit_is_approved_or_sent_back_with_the_reason(served: Dashboard) -> None:
    for number in (1, 2):
        served.board.board.add(TaskDraft(title=f"Task {number}", requires_review=True), PERSON)
        to_review(served.board.board, served.board, begin(served.board, number), COMMIT)
        escalation = Escalation(task=number, kind=EscalationKind.REVIEW, question="Approve it?", commit=COMMIT)
        served.board.escalate(escalation)
    message = shown(served)
    assert message.count("Approve this commit") == 2
    assert 'href="/tasks/1/diff"' in message

    with served.visitor() as client:
        other = posted(client, "/tasks/1/approve", commit="0" * 40)
        assert other.status_code == 409, "a yes to a commit is a yes to that one only"
        assert posted(client, "/tasks/1/approve", commit=COMMIT).status_code == 200
        assert posted(client, "/tasks/2/reject", reason=" ").status_code == 400
        assert posted(client, "/tasks/2/reject", reason="Too hot.").status_code == 200

    assert served.board.board.get(1).approved == COMMIT
    assert served.board.escalation(2).status == "rejected"
    assert "Too hot." in shown(served).partition("Decided last")[2]


def test_a_plan_is_shown_part_by_part(served: Dashboard) -> None:
    served.board.board.add(TaskDraft(title="Make tea", decompose=True), PERSON)
    parts = (
        Subtask(key="water", title="Boil water", goals=(TestsPass(command="make test"),), scope=("src/kettle/**",)),
        Subtask(key="pour", title=HOSTILE, depends_on=("water",), assignee="worker"),
    )
    plan = served.board.propose(Plan(task=1, subtasks=parts, summary="Water first."))
    served.board.escalate(Escalation(task=1, kind=EscalationKind.PLAN, question="Create 2 parts?"))
    message = shown(served)

    assert "Water first." in message
    assert "Boil water" in message
    assert "after water" in message
    assert "src/kettle/**" in message
    assert "make test" in message
    assert "<script>alert" not in message
    with served.visitor() as client:
        assert posted(client, "/tasks/1/reject", reason="Too many parts.").status_code == 200
    assert served.board.store.read(lambda _: plan.id)
    assert "Too many parts." in shown(served)


def test_of_several_questions_about_a_task_the_newest_is_decided_first(served: Dashboard) -> None:
    served.board.board.add(TaskDraft(title="Make tea"), PERSON)
    order = SegmentOrder(run="worker-1-1-abcdef", task=1, agent="worker", attempt=1)
    served.board.start(order, executor="laptop", base_branch="main")
    served.board.end_part(SegmentEnd(run=order.run, part=1, waits_for=WaitsFor.BUDGET))
    served.board.escalate(Escalation(task=1, kind=EscalationKind.BUDGET, question="More money?"))
    served.board.escalate(Escalation(task=1, kind=EscalationKind.QUESTION, question="Which pot?"))

    message = shown(served)

    assert message.index("Which pot?") < message.index("More money?")
    assert "A newer question about this task is decided first." in message
    assert 'action="/tasks/1/answer"' in message
    assert 'action="/tasks/1/approve"' not in message
