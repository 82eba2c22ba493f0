"""What lies in files is read as git would tell it, and whatever is odd is left to git."""

import zlib
from pathlib import Path

import pytest

from genba.connections.git.repository.commands import Git
from genba.connections.git.repository.history import GitHistory
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.repository.loose_objects import read_blob, read_changes, read_commit, read_span
from genba.connections.git.repository.object_cache import Memory
from genba.connections.git.scanning.commit_range import parse_changes, parse_rows
from tests.project import Project

LOG = ("log", "-z", "--boundary", "--format=%m%x00%H%x00%T%x00%P%x00%s")
DIFF = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--abbrev=64")


async def git_of(project: Project) -> Git:
    return (await RepositoryLayout.find(project.root)).git


def place_of(project: Project, name: str) -> Path:
    return project.root / ".git" / "objects" / name[:2] / name[2:]


async def in_every_way(project: Project) -> tuple[str, str]:
    """A base, and a commit that changes files in every way there is."""
    for name in (
        "kept",
        "gone",
        "deep/a/b/one",
        "deep/a/two",
        "turns/into/file",
        "becomes",
        "run.sh",
        "far.away",
        "far",
    ):
        project.write(name if name != "far" else "far-off", f"{name}\n")
    base = project.commit("one")
    for name in ("gone", "deep/a/b/one", "turns/into/file", "becomes"):
        (project.root / name).unlink()
    (project.root / "turns" / "into").rmdir()
    (project.root / "turns").rmdir()
    project.write("turns", "a file now\n")
    project.write("becomes/a/folder", "of files\n")
    project.write("far/away", "between the others\n")
    project.write("ein Name mit ä", "ö\n")
    (project.root / "run.sh").chmod(0o755)
    (project.root / "kept").unlink()
    (project.root / "kept").symlink_to("run.sh")
    return base, project.commit("two")


async def test_every_kind_of_file_change_is_listed_as_git_lists_it(project: Project) -> None:
    base, tip = await in_every_way(project)
    git = await git_of(project)

    for old, new in ((base, tip), (tip, base)):
        result = read_changes(git.git_dir, Memory(), old, new)
        asked = await git.run(*DIFF, old, new)
        assert result is not None
        assert parse_changes(result) == parse_changes(asked.stdout)
        assert {change.status for change in parse_changes(result)} == {"A", "D", "M", "T"}


@pytest.mark.parametrize(
    "message", ["plain", "two\nlines \n\nand a body\n", "\n\n  late\n", "ä ö\n\nü", "tab\there", "trailing  \nnext"]
)
async def test_the_commits_of_a_line_are_listed_as_git_lists_them(project: Project, message: str) -> None:
    base = project.commit("one")
    for number in range(3):
        project.write("file", f"{number}\n")
        project.git("add", "--all")
        project.git("commit", "--quiet", "--cleanup=verbatim", "--message", message)
    tip, git = project.git("rev-parse", "HEAD"), await git_of(project)

    result = read_span(git.git_dir, Memory(), base, tip)

    asked = (await git.run(*LOG, f"{base}..{tip}")).stdout
    assert result is not None
    assert [row for row in parse_rows(result) if row.is_own] == [row for row in parse_rows(asked) if row.is_own]
    assert [row[:4] for row in parse_rows(result)] == [row[:4] for row in parse_rows(asked)]


async def test_a_merge_and_a_base_that_is_no_ancestor_are_left_to_git(project: Project) -> None:
    base = project.commit("one")
    project.git("switch", "--quiet", "--create", "side")
    project.write("side", "side\n")
    side = project.commit("side")
    project.git("switch", "--quiet", "main")
    project.write("main", "main\n")
    main = project.commit("main")
    project.git("merge", "--quiet", "--no-ff", "--message", "both", "side")
    merge, git = project.git("rev-parse", "HEAD"), await git_of(project)

    assert read_span(git.git_dir, Memory(), base, merge) is None
    assert read_span(git.git_dir, Memory(), main, side) is None
    assert read_span(git.git_dir, Memory(), base, base) is None
    assert [change.path for change in parse_changes(read_changes(git.git_dir, Memory(), main, merge) or "")] == ["side"]


async def landed(project: Project, name: str, base: str) -> tuple[str, str, str]:
    """A branch that began at a base and is merged into main: main before it, its commit, and the merge."""
    before = project.git("rev-parse", "main")
    project.git("switch", "--quiet", "--create", name, base)
    for number in range(2):
        project.write(name, f"{number}\n")
        project.commit(f"{name} {number}")
    tip = project.git("rev-parse", "HEAD")
    project.git("switch", "--quiet", "main")
    project.git("merge", "--quiet", "--no-ff", "--message", f"Merge {name}", name)
    return before, tip, project.git("rev-parse", "main")


async def test_a_line_merged_into_its_base_is_listed_as_git_lists_it(project: Project) -> None:
    begin = project.commit("one")
    first, second = await landed(project, "a", begin), await landed(project, "b", begin)
    third = await landed(project, "c", first[2])
    git, memory = await git_of(project), Memory()

    for before, tip, merge in (first, second, third):
        result = read_span(git.git_dir, memory, before, merge)
        asked = (await git.run(*LOG, f"{before}..{merge}")).stdout
        rows = parse_rows(result or "")
        assert [row for row in rows if row.is_own] == [row for row in parse_rows(asked) if row.is_own]
        assert {row[:4] for row in rows} == {row[:4] for row in parse_rows(asked)}
        assert [row.sha for row in rows[:2]] == [merge, tip]
        for row in rows:
            memory.know(row.sha, row.tree, tuple(row.parents.split()))


async def test_the_files_touched_by_a_merge_are_listed_as_git_lists_them(project: Project) -> None:
    begin = project.commit("one")
    first, second = await landed(project, "a", begin), await landed(project, "b", begin)
    git = await git_of(project)
    history = GitHistory(git)

    for before, _, merge in (first, second):
        facts = await history.facts(before, merge)
        words = ("log", "-z", "--diff-merges=separate", "--name-only", "--format=", f"{before}..{merge}")
        names = (await git.run(*words)).stdout.split("\0")
        assert facts.touched == tuple(sorted({name for name in names if name.strip("\n")}))
        assert [commit.subject[:5] for commit in facts.commits][:1] == ["Merge"]


async def test_a_line_of_unknown_origin_is_left_to_git(project: Project) -> None:
    begin = project.commit("one")
    _, tip, merge = await landed(project, "a", begin)
    project.write("more", "more\n")
    project.commit("more")
    git, memory = await git_of(project), Memory()
    memory.know(begin, project.git("rev-parse", f"{begin}^{{tree}}"), ())

    assert read_span(git.git_dir, memory, merge, tip) is None


async def test_what_is_packed_is_left_to_git_and_comes_to_the_same(project: Project) -> None:
    base, tip = await in_every_way(project)
    before = await GitHistory(await git_of(project)).facts(base, tip)
    project.git("repack", "-a", "-d", "--quiet")
    git = await git_of(project)

    assert read_commit(git.git_dir, tip) is None
    assert read_changes(git.git_dir, Memory(), base, tip) is None
    assert await GitHistory(git).facts(base, tip) == before
    blob = project.git("rev-parse", f"{tip}:far/away")
    assert await GitHistory(git).read((blob,)) == {blob: "between the others\n"}


async def test_an_object_that_is_not_what_its_name_says_is_not_believed(project: Project) -> None:
    project.write("file", "true\n")
    tip, git = project.commit("one"), await git_of(project)
    blob = project.git("rev-parse", f"{tip}:file")
    assert read_blob(git.git_dir, blob) == b"true\n"

    for content in (zlib.compress(b"blob 6\0false\n"), zlib.compress(b"blob 5\0true"), b"no object", b""):
        place_of(project, blob).chmod(0o600)
        place_of(project, blob).write_bytes(content)
        assert read_blob(git.git_dir, blob) is None


async def test_no_link_and_nothing_large_is_read(project: Project, tmp_path: Path) -> None:
    project.write("small", "small\n")
    project.write("large", "a" * 600_000)
    tip, git = project.commit("one"), await git_of(project)
    small, large = (project.git("rev-parse", f"{tip}:{name}") for name in ("small", "large"))
    moved = place_of(project, small).rename(tmp_path / "object")
    place_of(project, small).symlink_to(moved)

    assert read_blob(git.git_dir, small) is None
    assert read_blob(git.git_dir, large) is None
    assert read_blob(git.git_dir, tip) is None
    assert read_commit(git.git_dir, large) is None
    assert await GitHistory(git).read((large,)) == {large: "a" * 600_000}


async def test_a_commit_tells_its_author(project: Project) -> None:
    project.write("file", "one\n")
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "one", "--author", "Worker <worker@agents.invalid>")
    git = await git_of(project)

    found = read_commit(git.git_dir, project.git("rev-parse", "HEAD"))

    assert found is not None
    assert (found.author, found.subject) == ("worker@agents.invalid", "one")
