"""The validators of an agent, run by the same engine as goals: each is a goal in a working tree."""

import msgspec

from genba.connections.goals.runner import GoalEngine
from genba.domain.goals.goal import CommitsExist, CustomScript, FileExists, FilesChanged, GitClean, Goal, TestsPass
from genba.domain.goals.verification import Place
from genba.domain.sessions.evidence import (
    Check,
    CheckResult,
    CommandCheck,
    CommitsExistCheck,
    FileExistsCheck,
    FilesChangedCheck,
    GitCleanCheck,
    TestsPassCheck,
)
from genba.domain.sessions.workspaces import Workspace


class ValidatorRunner:
    """Runs a validator where the agent works: quick feedback, before the commit is verified."""

    def __init__(self, engine: GoalEngine) -> None:
        self.engine = engine

    async def run(self, name: str, check: Check, workspace: Workspace, mark: str) -> CheckResult:
        place = Place(folder=workspace.path, commit="", base=workspace.base)
        result = await self.engine.run(goal_of(check), place, mark)
        return msgspec.structs.replace(result, name=name)


def goal_of(check: Check) -> Goal:
    """The goal that a validator stands for."""
    match check:
        case CommandCheck(command=command, success_when=when, timeout_seconds=limit):
            return CustomScript(script=command, empty_output=when == "emptyOutput", timeout_seconds=limit)
        case TestsPassCheck(timeout_seconds=limit):
            return TestsPass(timeout_seconds=limit)
        case FileExistsCheck(path=path):
            return FileExists(path=path)
        case FilesChangedCheck(pattern=pattern):
            return FilesChanged(pattern=pattern)
        case GitCleanCheck():
            return GitClean()
        case CommitsExistCheck():
            return CommitsExist()
