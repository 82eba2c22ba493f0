import contextlib
import sqlite3
import threading

from genba.domain.tasks.task import TaskDraft
from tests.project import until
from tests.web.serving import PERSON, Dashboard

_MANY = 40


def test_pages_are_drawn_while_many_wait_to_write(served: Dashboard) -> None:
    served.board.board.add(TaskDraft(title="Make tea"), PERSON)
    lines: list[int] = []

    def comment() -> None:
        with served.client() as client:
            lines.append(client.post("/api/tasks/1/comments", json={"text": "hello"}).status_code)

    database = served.project.root / ".genba" / "genba.db"
    writers = [threading.Thread(target=comment) for _ in range(_MANY)]
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        try:
            for each in writers:
                each.start()
            until(lambda: sum(each.name.startswith("writer") for each in threading.enumerate()) >= 8)
            with served.client() as client:
                assert client.get("/board").status_code == 200
                assert client.get("/api/tasks/1").status_code == 200
            assert lines == [], "they wait, and the pages do not wait for them"
        finally:
            other.execute("ROLLBACK")
    for each in writers:
        each.join()
    assert set(lines) == {200}
    assert len(served.board.board.comments(1)) == _MANY
