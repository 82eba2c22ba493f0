import sqlite3
import subprocess
from contextlib import closing

import pytest

from tests.project import GENBA, Project, ordinary_environment, until

FOREVER = "(WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1e15) SELECT max(x) FROM n)"
POINTS = {
    "at the first comment": "INSERT ON comments",
    "at the third comment": "INSERT ON comments WHEN (SELECT count(*) FROM comments) = 3",
    "at a label": "UPDATE ON tasks",
    "where it notes what was said": "UPDATE OF posted ON field_issues WHEN new.number = 4",
    "while it keeps what it saw": "INSERT ON field_issues WHEN new.number = 2",
}


def connected(project: Project) -> sqlite3.Connection:
    return sqlite3.connect(project.root / ".genba" / "genba.db", timeout=0, isolation_level=None)


def is_writing(project: Project) -> bool:
    with closing(connected(project)) as board:
        try:
            board.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        board.execute("ROLLBACK")
        return False


def comments(project: Project) -> list[int]:
    with project.board() as board:
        return [len(board.comments(task.number)) for task in board.find()]


@pytest.mark.parametrize("point", POINTS)
def test_a_death_during_a_comment_posts_nothing_twice(project: Project, point: str) -> None:
    for number in range(1, 6):
        project.issue(number, f"Page {number}")
    project.genba("task", "depend", "2", "--on", "1", check=0)
    with closing(connected(project)) as board:
        board.execute(f"CREATE TRIGGER forever AFTER {POINTS[point]} BEGIN SELECT {FOREVER}; END")
    dying = subprocess.Popen(
        [str(GENBA), "facilitate", "--apply"],
        cwd=project.root,
        env={**ordinary_environment(), **project.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: is_writing(project) and is_writing(project), 60)
    finally:
        dying.kill()
        assert dying.wait() == -9
    with closing(connected(project)) as board:
        board.execute("DROP TRIGGER forever")
    assert sum(comments(project)) < 5

    project.genba("facilitate", "--apply", check=0)
    assert comments(project) == [1, 1, 1, 1, 1]
    assert project.task(2).labels == ("blocked",)
    assert project.genba("facilitate", "--json", check=0).json["actions"] == []
