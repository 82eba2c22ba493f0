"""The page of the graph: which task needs which, drawn and listed."""

import pytest

from genba.domain.fleet.records import Executor
from genba.domain.tasks.task import Blocker, BlockerKind, StatusChange, TaskStatus
from genba.domain.views.graph import EdgeKind, GraphView
from tests.web.fleet_scenes import add, shown
from tests.web.scenes import HOSTILE
from tests.web.serving import PERSON, Dashboard


def ties(picture: GraphView) -> set[tuple[int, int, str]]:
    return {(edge.first, edge.later, str(edge.kind)) for edge in picture.edges}


def test_what_is_needed_stands_on_the_left_of_what_needs_it(served: Dashboard) -> None:
    add(served, "Boil water")
    add(served, "Make tea", dependencies=(1,))
    add(served, "Find the pot", parent=2)
    add(served, "Fill the cup", dependencies=(2,))
    blocker = Blocker(BlockerKind.DEPENDENCY, "no cup", task=3)
    served.board.board.change_status(4, StatusChange(to=TaskStatus.BLOCKED, actor=PERSON, blocker=blocker))

    picture = served.site.queries.graph()

    assert ties(picture) == {(1, 2, "waits_for"), (3, 2, "part_of"), (2, 4, "waits_for"), (3, 4, "blocked_by")}
    column = {node.number: node.x for node in picture.nodes}
    assert column[1] < column[2] < column[4]
    assert column[3] < column[2]
    page = shown(served, "/graph")
    assert "is blocked by" in page
    assert "has the part" in page


def test_open_tasks_are_shown_and_all_where_that_is_asked_for(served: Dashboard) -> None:
    add(served, "Boil water")
    add(served, "Make tea")
    served.board.board.change_status(1, StatusChange(to=TaskStatus.CANCELLED, actor=PERSON))
    assert [node.number for node in served.site.queries.graph().nodes] == [2]
    assert [node.number for node in served.site.queries.graph(ended_too=True).nodes] == [1, 2]
    assert "#1 Boil water" not in shown(served, "/graph")
    assert "#1 Boil water" in shown(served, "/graph?show=all")


def test_around_a_task_stands_what_is_tied_to_it(served: Dashboard) -> None:
    add(served, "Boil water")
    add(served, "Make tea", dependencies=(1,))
    add(served, "Fill the cup", dependencies=(2,))
    add(served, "Feed the cat")
    assert "#4 Feed the cat" not in shown(served, "/graph?around=1&depth=6")
    assert [node.number for node in served.site.queries.graph(around=1, depth=1).nodes] == [1, 2]
    assert shown(served, "/graph?around=%231&depth=1").count('id="node-') == 2


@pytest.mark.parametrize("around", ["99", "0", "999999999"])
def test_an_empty_neighbourhood_is_reported(served: Dashboard, around: str) -> None:
    with served.client() as client:
        assert client.get(f"/graph?around={around}").status_code == 404
        assert client.get(f"/graph/data?around={around}").status_code == 404


@pytest.mark.parametrize("query", ["around=x&depth=0", "around=१", f"around={'9' * 4000}", "show=%00&depth=99"])
def test_an_unclear_request_shows_the_open_tasks(served: Dashboard, query: str) -> None:
    add(served, "Boil water")
    assert "#1 Boil water" in shown(served, f"/graph?{query}")


def test_a_circle_is_drawn_and_named(served: Dashboard) -> None:
    add(served, "Chicken")
    add(served, "Egg", dependencies=(1,))
    served.project.sql("INSERT INTO task_dependencies (task_id, depends_on_id) VALUES (1, 2)")
    served.board.register(Executor(id="x", host="h", process=1, workers=1))
    picture = served.site.queries.graph(ended_too=True)
    assert picture.circles == ((1, 2),)
    assert {edge.kind for edge in picture.edges} == {EdgeKind.WAITS_FOR}
    assert "wait for each other in a circle" in shown(served, "/graph?show=all")


def test_a_thousand_tasks_are_shown_as_far_as_one_can_see_and_the_tied_ones_first(served: Dashboard) -> None:
    with served.board.board.store.engine.connect():
        pass
    served.project.sql(
        """
        INSERT INTO projects (id, name, created_at) SELECT 'none', 'none', '' WHERE NOT EXISTS (SELECT 1 FROM projects);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
        INSERT INTO tasks (project_id, number, title, created_at, updated_at)
        SELECT (SELECT id FROM projects LIMIT 1), i, 'Task ' || i, '2026-01-01', '2026-01-01' FROM n;
        INSERT INTO task_dependencies (task_id, depends_on_id)
        SELECT t.id, o.id FROM tasks t JOIN tasks o ON o.number = t.number - 1 WHERE t.number > 900;
        """
    )
    picture = served.site.queries.graph()
    assert (len(picture.nodes), picture.total) == (500, 1000)
    assert {node.number for node in picture.nodes} >= set(range(900, 1001))
    page = shown(served, "/graph")
    assert "of 1000: those that are tied to others come first" in page
    assert len(page) < 600_000


def test_titles_are_text_and_nothing_else(served: Dashboard) -> None:
    add(served, HOSTILE)
    page = shown(served, "/graph")
    assert "<script>alert" not in page
    assert "<img" not in page
    with served.client() as client:
        answer = client.get("/graph/data")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["nodes"][0]["title"] == HOSTILE
