"""New commits that come out of a sandbox bear the identity that Genba gave the agent, and claim nothing else."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from genba.connections.git.private.identity import Identity
from genba.connections.git.private.sandboxed_worktrees import SandboxedWorktrees
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.sandbox.bubblewrap.bubblewrap import BubblewrapSandbox
from tests.git.conftest import AGENT, Floor
from tests.project import Project

GIVEN = f"{AGENT} <{AGENT}@agents.invalid>"
SHOWN = ("log", "--format=%an <%ae> / %cn <%ce> / %s", "main..genba/work")
FORGED = """
echo one > one.txt && git add -A
GIT_AUTHOR_NAME=Boss GIT_AUTHOR_EMAIL=boss@example.com git commit -qm One
echo two > two.txt && git add -A
GIT_COMMITTER_NAME=Genba GIT_COMMITTER_EMAIL=genba@localhost git commit -qm Two
git -c core.hooksPath=/dev/null commit -q --allow-empty -m 'Three

Said by the agent.

Issue: 77
Agent: reviewer
Session: reviewer-1
Genba-Commit: 0123456789012345678901234567890123456789
Co-authored-by: Somebody <somebody@example.com>'
"""


@pytest.fixture
async def floor(project: Project, sandbox: BubblewrapSandbox, tmp_path: Path) -> AsyncIterator[Floor]:
    identity = Identity(name=AGENT, email=f"{AGENT}@agents.invalid", agent=AGENT, issue=5)
    trees = SandboxedWorktrees(await RepositoryLayout.find(project.root), sandbox, identity=identity)
    yield Floor(project, trees, sandbox, tmp_path)
    trees.release()


async def test_commits_under_another_name_come_in_under_that_of_the_agent(floor: Floor) -> None:
    workspace = await floor.open()

    await floor.inside(workspace, FORGED)
    facts = await floor.trees.observe(workspace)

    assert [commit.subject for commit in facts.commits] == ["Three", "Two", "One"]
    assert (facts.dirty, facts.strayed, facts.changed_files) == ((), "", ("one.txt", "two.txt"))
    assert floor.project.git(*SHOWN).splitlines() == [f"{GIVEN} / {GIVEN} / {name}" for name in ("Three", "Two", "One")]
    message = floor.project.git("log", "-1", "--format=%B", "genba/work")
    assert message == (
        "Three\n\nSaid by the agent.\n\nCo-authored-by: Somebody <somebody@example.com>\n"
        f"Issue: 5\nAgent: {AGENT}\nSession: {workspace.run}"
    )
    assert floor.project.git("fsck", "--no-dangling") == ""


async def test_the_agent_goes_on_from_what_came_in(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, FORGED)
    first = await floor.trees.observe(workspace)

    seen = await floor.inside(workspace, "git status --porcelain; git rev-parse HEAD")
    await floor.inside(workspace, "echo more > more.txt && git add -A && git commit -qm More")
    facts = await floor.trees.observe(workspace)

    assert seen.stdout == f"{first.head}\n"
    assert [commit.subject for commit in facts.commits] == ["More", "Three", "Two", "One"]
    assert floor.project.git("rev-parse", "genba/work~1") == first.head


async def test_the_trailers_of_the_session_itself_stay(floor: Floor) -> None:
    workspace = await floor.open()
    message = f"Work\n\nIssue: 5\nAgent: {AGENT}\nSession: {workspace.run}"

    await floor.inside(workspace, f"git commit -q --allow-empty -m '{message}' && git rev-parse HEAD > head.txt")
    made = Path(workspace.path, "head.txt").read_text().strip()  # noqa: ASYNC240
    await floor.trees.observe(workspace)

    assert floor.project.git("rev-parse", "genba/work") == made
    assert floor.project.git("log", "-1", "--format=%B", made) == message


async def test_sentences_that_only_look_like_trailers_stay(floor: Floor) -> None:
    workspace = await floor.open()
    message = "Work\n\nIssue: the parser reads too much\nSession: it ends too soon"

    await floor.inside(workspace, f"git commit -q --allow-empty -m '{message}'")
    await floor.trees.observe(workspace)

    signed = f"\nIssue: 5\nAgent: {AGENT}\nSession: {workspace.run}"
    assert floor.project.git("log", "-1", "--format=%B", "genba/work") == message + signed


@pytest.mark.parametrize("claim", ["Issue:\r77", "Issue: 77\r", "Session:\x0breviewer-1", "issue :\x0c#77"])
async def test_a_claim_with_another_kind_of_space_is_removed(floor: Floor, claim: str) -> None:
    workspace = await floor.open()
    Path(workspace.path, "message").write_bytes(f"Work\n\n{claim}\n".encode())  # noqa: ASYNC240

    await floor.inside(workspace, "git commit -q --allow-empty --cleanup=verbatim -F message")
    await floor.trees.observe(workspace)

    message = floor.project.git("log", "-1", "--format=%B", "genba/work")
    assert message == f"Work\n\nIssue: 5\nAgent: {AGENT}\nSession: {workspace.run}"


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        ("ISO-2022-JP", b"Work\n\nIss\x1b(Bue: 77\nSess\x1b(Bion: other-1"),
        ("IBM037", "Work\n\nIssue: 77\nSession: other-1".encode("cp037")),
        ("no-such-encoding", b"Work\n\nIssue: 77"),
    ],
)
async def test_an_encoding_hides_no_claim(floor: Floor, encoding: str, message: bytes) -> None:
    workspace = await floor.open()
    Path(workspace.path, "message").write_bytes(message)  # noqa: ASYNC240

    words = f"git -c i18n.commitEncoding={encoding} commit -q --allow-empty --cleanup=verbatim -F message"
    await floor.inside(workspace, words)
    await floor.trees.observe(workspace)

    raw = floor.project.git("cat-file", "commit", "genba/work")
    assert "encoding" not in raw.partition("\n\n")[0]
    assert floor.project.git("log", "-1", "--format=%(trailers:only)", "genba/work").split("\n") == [
        "Issue: 5", f"Agent: {AGENT}", f"Session: {workspace.run}",
    ]  # fmt: skip
    assert "Issue: 77" not in floor.project.git("log", "-1", "--format=%B", "genba/work")


async def test_commits_that_are_on_a_ref_already_stay_as_they_are(floor: Floor) -> None:
    project = floor.project
    workspace = await floor.open()
    await floor.inside(workspace, "echo work > work.txt && git add -A && git commit -qm Work")
    await floor.trees.observe(workspace)
    project.write("theirs.txt", "theirs\n")
    theirs = project.commit("Theirs")
    tree = project.git("merge-tree", "--write-tree", "main", "genba/work")
    merged = project.git("commit-tree", tree, "-p", "genba/work", "-p", "main", "-m", "Merge")
    project.git("update-ref", "refs/heads/genba/work", merged)
    project.git("update-ref", "refs/heads/given", merged)
    floor.trees.plain.release()
    again = await floor.trees.reopen(workspace)

    await floor.inside(again, "git commit -q --allow-empty -m More")
    await floor.trees.observe(again)

    assert project.git("rev-parse", "genba/work~1") == merged
    assert project.git("log", "-1", "--format=%an", theirs) == "Test User"
