"""Two executors hold the same work to its goals, one of them held for dead: neither ends what the other runs."""

import asyncio

from genba.application.verification.merge_verification import Proving
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.connections.git.repository.layout import RepositoryLayout
from genba.definitions.project.project import load_project
from genba.domain.fleet.records import MergeEntry
from genba.domain.goals.verification import Subject
from genba.wiring.project.project_context import ProjectContext
from tests.project import Project


async def test_the_goals_of_one_outlive_the_end_of_the_other(project: Project) -> None:
    project.write(".genba/config.yaml", "dod: [{custom_script: 'sleep 1'}]\nverification: {sandbox: false}\n")
    base = project.commit("Say what done means")
    project.git("switch", "-qc", "work")
    project.write("work.txt", "work\n")
    commit = project.commit("Work")
    project.git("switch", "-q", "main")
    project.genba("task", "add", "One", check=0)
    layout = await RepositoryLayout.find(project.root)
    entry = MergeEntry(task=1, run="worker-1", branch="work", commit=commit, target="main", title="One", agent="worker")
    subject = Subject(commit=commit, base=base, branch="work", base_branch="main")

    async def verify(after: float) -> object:
        context = ProjectContext(layout, load_project(layout.top))
        await asyncio.sleep(after)
        return await Proving(context, FleetBoard(context.board())).verify(entry, subject)

    assert list(await asyncio.gather(verify(0), verify(0.5))) == [None, None]
