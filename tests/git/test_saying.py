from pathlib import Path

import pytest

from genba.connections.git.repository.git_errors import error_line, verb
from genba.connections.git.repository.layout import RepositoryLayout
from genba.domain.errors import GitError
from tests.project import Project

GRAFTS = """\
hint: Support for <GIT_DIR>/info/grafts is deprecated
hint: and will be removed in a future Git version.
hint:
fatal: refusing to merge unrelated histories
hint: Turn this message off by running
hint: "git config advice.graftFileDeprecated false"
"""


@pytest.mark.parametrize(
    ("output", "result"),
    [
        (GRAFTS, "refusing to merge unrelated histories"),
        (
            "error: cannot lock ref 'refs/heads/main'\nfatal: it is held",
            "it is held: cannot lock ref 'refs/heads/main'",
        ),
        ("warning: slow\nsomething odd\n", "something odd"),
        ("hint: try again\n", "try again"),
        ("", "git gave no reason"),
    ],
)
def test_one_line_says_what_is_wrong(output: str, result: str) -> None:
    assert error_line(output) == result


def test_a_command_is_known_by_its_verb() -> None:
    assert (
        verb(["git", "-c", "core.x=1", "--git-dir", "/somewhere/.git", "--no-pager", "merge-tree", "a", "b"])
        == "merge-tree"
    )


async def test_an_error_of_git_is_one_sentence_and_keeps_the_rest_for_who_looks(project: Project) -> None:
    layout = await RepositoryLayout.find(Path(project.root))
    with pytest.raises(GitError) as raised:
        await layout.git.run("merge-tree", "--write-tree", "HEAD", "no-such-commit")
    assert raised.value.message == "git merge-tree: no-such-commit - not something we can merge"
    assert "--write-tree HEAD no-such-commit" in raised.value.__notes__[0]
