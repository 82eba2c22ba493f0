"""The field and the board: what needs you comes first, every card says why it is there, and large ones stay small."""

import re

import httpx

from genba.domain.fleet.records import Escalation, EscalationKind
from genba.domain.tasks.task import Blocker, BlockerKind, StatusChange, TaskDraft, TaskStatus
from tests.web.serving import PERSON, VIEWER, Dashboard

ANSWERING = {"type": "custom", "command": "cat > /dev/null"}


def text_of(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.text))


def test_a_field_without_issues_says_what_to_type(served: Dashboard) -> None:
    with served.client() as client:
        result = text_of(client.get("/"))
    assert "There are no issues yet." in result
    assert "genba task add" in result


def test_what_needs_you_comes_before_what_is_next(served: Dashboard) -> None:
    board = served.board.board
    board.add(TaskDraft(title="Choose a licence"), PERSON)
    board.add(TaskDraft(title="Write it down", dependencies=(1,)), PERSON)
    served.board.escalate(
        Escalation(task=1, kind=EscalationKind.QUESTION, question="MIT or Apache?"),
        Blocker(BlockerKind.NEEDS_INPUT, "MIT or Apache?"),
    )
    with served.client() as client:
        result = text_of(client.get("/"))
        counted = client.get("/board").text
    assert result.index("Needs you") < result.index("MIT or Apache?") < result.index("At work now")
    assert result.index("Next") < result.index("2 issues")
    assert "waits for #1" in result
    assert re.search(r'id="needs"\s*>1<', counted)


def test_a_button_starts_what_the_command_beside_it_says_and_nothing_else(served: Dashboard) -> None:
    served.project.agent("writer", adapter=ANSWERING, parameters={"issue": {"type": "number", "required": True}})
    served.board.board.add(TaskDraft(title="Write about tea", assignee="writer"), PERSON)
    with served.client() as client:
        page = client.get("/").text
    for form in re.findall(r'<form class="deed"[^>]*action="/tasks/(\d+)/run".*?</form>', page, re.DOTALL):
        assert f"genba run writer --issue {form}" in page
    started = re.findall(r'name="agent" value="([^"]+)"', page)
    commands = re.findall(r"<code>genba run (\S+) --issue \d+</code>", page)
    assert started == commands == ["writer"]


def test_a_viewer_sees_no_button_on_either(served: Dashboard) -> None:
    served.board.board.add(TaskDraft(title="Make tea"), PERSON)
    with served.client(VIEWER) as viewer:
        for path in ("/", "/board"):
            assert 'class="deed"' not in viewer.get(path).text


def test_every_card_says_why_it_is_where_it_is(served: Dashboard) -> None:
    board = served.board.board
    for draft in (
        TaskDraft(title="Boil water"),
        TaskDraft(title="Make tea", dependencies=(1,)),
        TaskDraft(title="Choose a cup"),
        TaskDraft(title="Some day", status=TaskStatus.BACKLOG),
    ):
        board.add(draft, PERSON)
    blocked = StatusChange(
        to=TaskStatus.BLOCKED, actor=PERSON, blocker=Blocker(BlockerKind.NEEDS_INPUT, "which colour?")
    )
    board.change_status(3, blocked)
    with served.client() as client:
        columns = {
            each["status"]: {card["number"]: card["why"] for card in each["cards"]}
            for each in client.get("/api/board").json()["columns"]
        }
        result = text_of(client.get("/board"))
    assert columns["open"] == {1: "ready to begin", 2: "waits for #1"}
    assert columns["blocked"] == {3: "needs input: which colour?"}
    assert columns["backlog"] == {4: "it is in the backlog"}
    assert all(why in result for cards in columns.values() for why in cards.values())


def test_of_a_large_column_the_first_cards_are_drawn_and_the_rest_on_demand(served: Dashboard) -> None:
    board = served.board.board
    for number in range(120):
        board.add(TaskDraft(title=f"Cup {number}"), PERSON)
    with served.client() as client:
        first = client.get("/board").text
        assert len(re.findall(r'id="card-\d+"', first)) == 50
        assert "70 more" in first
        second = client.get("/board/open?skip=50").text
        third = client.get("/board/open?skip=100").text
    shown = [int(number) for part in (first, second, third) for number in re.findall(r'id="card-(\d+)"', part)]
    assert shown == list(range(1, 121))
    assert "more" not in text_of(httpx.Response(200, text=third))


def test_titles_are_found_word_by_word_and_no_sign_is_special(served: Dashboard) -> None:
    board = served.board.board
    for title in ("100% tea", "100 cups", "Under_score", "underXscore"):
        board.add(TaskDraft(title=title), PERSON)
    with served.client() as client:
        for text, numbers in (("100%", [1]), ("r_s", [3]), ("TEA", [1]), ("nothing", [])):
            found = client.get("/board", params={"text": text}).text
            assert [int(number) for number in re.findall(r'id="card-(\d+)"', found)] == numbers, text
        assert client.get("/board/nothing").status_code == 404
        assert client.get("/board/open?skip=x").status_code == 200
