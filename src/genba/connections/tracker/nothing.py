"""No tracker: a project without a blackboard has no issues."""

from genba.domain.errors import NotFoundError
from genba.domain.tracker.issues import Issue, IssueChange


class NoTracker:
    """Every issue that is asked for is not there."""

    async def read(self, number: int) -> Issue:
        raise NotFoundError(
            f"there is no task #{number}: this project has no tasks yet", hint='genba task add "what is to be done"'
        )

    async def labelled(self, label: str) -> tuple[Issue, ...]:  # noqa: ARG002  (there is none with any label)
        return ()

    async def change(self, number: int, change: IssueChange) -> None:  # noqa: ARG002  (there is nothing to change)
        await self.read(number)
