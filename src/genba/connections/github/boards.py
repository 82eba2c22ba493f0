"""Cards of issues on boards (projects) of GitHub."""

from genba.connections.github import documents, responses
from genba.connections.github.client import GitHubClient
from genba.connections.github.errors import NoGraphQL
from genba.connections.github.issues import no_board
from genba.connections.github.translation import same, there
from genba.domain.errors import NotFoundError, RemoteUnavailable, UnrecoverableError
from genba.domain.tracker.outbox import DeliveryReceipt, SetCardStatus


class Boards:
    def __init__(self, client: GitHubClient) -> None:
        self.client = client

    async def made(self, deed: SetCardStatus) -> DeliveryReceipt | None:
        issue = await self._issue(deed)
        card = _card_on(issue, deed)
        value = card.field_value_by_name if card is not None else None
        if value is None or not same(value.name or "", deed.status):
            return None
        return DeliveryReceipt(address=issue.url, number=deed.issue, found=True)

    async def move(self, deed: SetCardStatus) -> DeliveryReceipt:
        board, field, option = await self._option(deed)
        issue = await self._issue(deed)
        card = _card_on(issue, deed)
        item = card.id if card is not None else await self._add(board, issue.id)
        values = {"project": board, "item": item, "field": field, "option": option}
        await self.client.mutate(documents.MOVE_CARD, values)
        return DeliveryReceipt(address=issue.url, number=deed.issue)

    async def _issue(self, deed: SetCardStatus) -> responses.IssueOnBoards:
        variables = {
            "owner": self.client.owner,
            "name": self.client.name,
            "number": deed.issue,
            "field": deed.field,
        }
        try:
            result = await self.client.query(documents.ISSUE_ON_BOARDS, variables, bearable=frozenset({"NOT_FOUND"}))
        except NoGraphQL as error:
            raise UnrecoverableError(
                "the board cannot be changed: this server has no GraphQL for boards",
                hint="take `board` out of tracker.github in .genba/config.yaml",
            ) from error
        issue = result.part(responses.IssueOnBoards, "repository", "issue")
        if issue is None:
            raise NotFoundError(f"there is no issue #{deed.issue} in {self.client.settings.repository}")
        return issue

    async def _option(self, deed: SetCardStatus) -> tuple[str, str, str]:
        """The ids of the board, of the field, and of the status in it. Boards change: they are asked for each time."""
        variables = {"owner": deed.owner, "project": deed.project, "field": deed.field}
        result = await self.client.query(documents.BOARD, variables, bearable=frozenset({"NOT_FOUND"}))
        board = result.part(responses.Board, "repositoryOwner", "projectV2")
        if board is None:
            raise no_board(deed.owner, deed.project)
        field = board.field
        if field is None or field.id is None or field.options is None:
            raise UnrecoverableError(
                f"project {deed.project} of {deed.owner} has no field {deed.field} with options to choose from",
                hint="check tracker.github.board.field in .genba/config.yaml",
            )
        chosen = next((option for option in field.options if same(option.name, deed.status)), None)
        if chosen is None:
            names = ", ".join(option.name for option in field.options)
            raise UnrecoverableError(
                f"the field {deed.field} of project {deed.project} has no {deed.status}; it has: {names}",
                hint="check tracker.github.board.statuses in .genba/config.yaml",
            )
        return board.id, field.id, chosen.id

    async def _add(self, board: str, issue: str) -> str:
        result = await self.client.mutate(documents.ADD_CARD, {"project": board, "issue": issue})
        added = result.part(responses.Card, "addProjectV2ItemById", "item")
        if added is None:
            raise RemoteUnavailable("GitHub did not say which card it made")
        return added.id


def _card_on(issue: responses.IssueOnBoards, deed: SetCardStatus) -> responses.Card | None:
    cards = there(issue.project_items.nodes) if issue.project_items else []
    for card in cards:
        if card.project.number == deed.project and same(card.project.owner.login, deed.owner):
            return card
    return None
