"""Histories of git, whatever they hold: read, or refused, and never believed where git itself says otherwise."""

import asyncio

import msgspec

from genba.connections.git.merging.diff import file_diff, files_changed
from genba.connections.git.repository.branches import branches_beside
from genba.connections.git.repository.history import GitHistory
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.scanning.issue_scan import GitScan
from genba.domain.errors import GenbaError
from genba.domain.goals.verification import BranchFacts
from tests.fuzz.histories import BASE, HistoryPlan, Repository, histories
from tests.fuzz.targets import Target, folder, report


def feed_history(plan: HistoryPlan) -> None:
    with folder() as root:
        repository = Repository(root, plan)
        asyncio.run(_read_all(repository))


async def _read_all(repository: Repository) -> None:
    layout = RepositoryLayout(repository.root, repository.git_dir, repository.git_dir)
    await _scan(layout, repository)
    first, last = repository.commits[0], repository.commits[-1]
    plain = await _facts(layout, first, last)
    try:
        for path in (await GitHistory(layout.git).files(last))[:3]:
            await GitHistory(layout.git).read((f"{last}:{path}",))
        found = files_changed(layout.git, first, last)
        for file in found.files[:2]:
            file_diff(layout.git, first, last, file.path)
    except GenbaError as error:
        report(error)
    branches_beside(repository.git_dir, "genba/")
    if plain is not None and not repository.plan.spoils:
        repository.git("repack", "-qad")
        fresh = RepositoryLayout(repository.root, repository.git_dir, repository.git_dir)
        asked = await _facts(fresh, first, last)
        assert asked == plain, "what was read from files is not what git says"


async def _scan(layout: RepositoryLayout, repository: Repository) -> None:
    try:
        found = await GitScan(layout).scan(BASE)
        msgspec.json.encode(found)
        for commits in (*found.on_base.values(), *found.off_base.values()):
            for commit in commits:
                assert commit.time[4] == "-", commit.time
                assert commit.time.endswith("Z")
        again = await GitScan(layout).scan(BASE, found.position)
        assert again.position == found.position
        await GitScan(layout).again(repository.commits)
    except GenbaError as error:
        report(error)


async def _facts(layout: RepositoryLayout, base: str, commit: str) -> BranchFacts | None:
    history = GitHistory(layout.git)
    try:
        await history.fork_point(base, commit)
        return await history.facts(base, commit)
    except GenbaError as error:
        report(error)
        return None


GIT_TARGETS: tuple[Target, ...] = (Target("git-history", histories(), feed_history, share=12),)
