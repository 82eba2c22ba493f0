"""Cards of issues on boards (projects) of GitHub."""

from genba.connections.github import documents, responses
from genba.connections.github.client import GitHubClient
from genba.connections.github.issues import no_board
from genba.connections.github.translation import same, there
from genba.domain.errors import NotFoundError, RemoteUnavailable, UnrecoverableError
from genba.domain.tracker.outbox import DeliveryReceipt, SetCardStatus


class Boards:
    def __init__(self, client: GitHubClient) -> None:
        self.client = client

    async def find(self, change: SetCardStatus) -> DeliveryReceipt | None:
        issue = await self._issue(change)
        card = _card_on(issue, change)
        value = card.field_value_by_name if card is not None else None
        if value is None or not same(value.name or "", change.status):
            return None
        return DeliveryReceipt(address=issue.url, number=change.issue, existed=True)

    async def move(self, change: SetCardStatus) -> DeliveryReceipt:
        board, field, option = await self._option(change)
        issue = await self._issue(change)
        card = _card_on(issue, change)
        item = card.id if card is not None else await self._add(board, issue.id)
        values = {"project": board, "item": item, "field": field, "option": option}
        await self.client.mutate(documents.MOVE_CARD, values)
        return DeliveryReceipt(address=issue.url, number=change.issue)

    async def _issue(self, change: SetCardStatus) -> responses.IssueOnBoards:
        variables = {
            "owner": self.client.owner,
            "name": self.client.name,
            "number": change.issue,
            "field": change.field,
        }
        result = await self.client.query(documents.ISSUE_ON_BOARDS, variables, bearable=frozenset({"NOT_FOUND"}))
        issue = result.part(responses.IssueOnBoards, "repository", "issue")
        if issue is None:
            raise NotFoundError(f"there is no issue #{change.issue} in {self.client.settings.repository}")
        return issue

    async def _option(self, change: SetCardStatus) -> tuple[str, str, str]:
        """The ids of the board, of the field, and of the status in it. Boards change: they are asked for each time."""
        variables = {"owner": change.owner, "project": change.project, "field": change.field}
        result = await self.client.query(documents.BOARD, variables, bearable=frozenset({"NOT_FOUND"}))
        board = result.part(responses.Board, "repositoryOwner", "projectV2")
        if board is None:
            raise no_board(change.owner, change.project)
        field = board.field
        if field is None or field.id is None or field.options is None:
            raise UnrecoverableError(
                f"project {change.project} of {change.owner} has no field {change.field} with options to choose from",
                hint="check tracker.github.board.field in .genba/config.yaml",
            )
        chosen = next((option for option in field.options if same(option.name, change.status)), None)
        if chosen is None:
            names = ", ".join(option.name for option in field.options)
            raise UnrecoverableError(
                f"the field {change.field} of project {change.project} has no {change.status}; it has: {names}",
                hint="check tracker.github.board.statuses in .genba/config.yaml",
            )
        return board.id, field.id, chosen.id

    async def _add(self, board: str, issue: str) -> str:
        result = await self.client.mutate(documents.ADD_CARD, {"project": board, "issue": issue})
        added = result.part(responses.Card, "addProjectV2ItemById", "item")
        if added is None:
            raise RemoteUnavailable("GitHub did not say which card it made")
        return added.id


def _card_on(issue: responses.IssueOnBoards, change: SetCardStatus) -> responses.Card | None:
    cards = there(issue.project_items.nodes) if issue.project_items else []
    for card in cards:
        if card.project.number == change.project and same(card.project.owner.login, change.owner):
            return card
    return None
