"""Messages and notes of agents."""

from genba.coordination.workflow.answers import ContextSaved, Inbox, MessageSent
from genba.coordination.workflow.boards import Boards
from genba.coordination.workflow.reports import held, plain
from genba.domain.workflow.actions import AgentConnection, BroadcastScope, ErrorCode, Note, Tool, WorkflowError

LONGEST_MESSAGE, LONGEST_NOTE = 10_000, 10_000


class MessageTools:
    def __init__(self, boards: Boards) -> None:
        self._boards = boards
        self._board = boards.board

    async def save_context(self, connection: AgentConnection, note: Note) -> ContextSaved:
        values = {"progress": note.progress, "findings": note.findings, "blockers": note.blockers}
        values["next_steps"] = note.next_steps
        for what, text in values.items():
            held(text, LONGEST_NOTE, what, empty=True)
        if not any(text.strip() for text in values.values()):
            raise WorkflowError(ErrorCode.VALIDATION, "there is nothing to keep", hint="say progress, or next_steps")
        _, task = await self._boards.permitted(connection, Tool.SAVE_CONTEXT)
        kept = Note(
            progress=plain(note.progress), findings=note.findings, blockers=note.blockers, next_steps=note.next_steps
        )
        await self._boards.write(lambda: self._board.save_note(task.number, connection.run, connection.agent, kept))
        return ContextSaved(task=task.number)

    async def broadcast(self, connection: AgentConnection, content: str, scope: BroadcastScope) -> MessageSent:
        """To everybody at work, and to those for whom a task is kept, each once."""
        held(content, LONGEST_MESSAGE, "content")
        await self._boards.permitted(connection, Tool.SEND_MESSAGE)
        tasks = await self._boards.write(lambda: self._board.broadcast(connection.id, content, scope))
        return MessageSent(to="everybody", tasks=tasks)

    async def send(self, connection: AgentConnection, content: str, to: str, number: int | None) -> MessageSent:
        held(content, LONGEST_MESSAGE, "content")
        await self._boards.permitted(connection, Tool.SEND_MESSAGE)
        whose = await self._addressee(connection, to, number)
        await self._boards.write(lambda: self._board.send_message(connection.id, whose, content))
        return MessageSent(to=f"#{whose}")

    async def received(self, connection: AgentConnection, mark_read: bool) -> Inbox:
        def read() -> Inbox:
            return Inbox(messages=self._board.messages(connection.id, mark_read))

        return await (self._boards.write(read) if mark_read else self._boards.read(read))

    async def _addressee(self, connection: AgentConnection, to: str, number: int | None) -> int:
        """The task whose agent is meant: the one above, or one below; by its number, or by who has it."""
        task = await self._boards.task_of(connection)
        above = await self._boards.parent_of(task)
        if number is not None:
            if number != above:
                await self._boards.own(connection, number)
            return number
        if to:
            return await self._whose(task, above, to)
        if above is None:
            raise WorkflowError(ErrorCode.VALIDATION, "there is no agent above you", hint="say task_id, or to")
        return above

    async def _whose(self, task: int, above: int | None, to: str) -> int:
        for piece in await self._boards.read(lambda: self._board.pieces(task)):
            if piece.assignee == to and not piece.status.ended:
                return piece.number
        if above is not None:
            for session in await self._boards.read(lambda: self._boards.fleet.sessions(above)):
                if session.agent == to and session.status != "ended":
                    return above
        raise WorkflowError(
            ErrorCode.NOT_FOUND,
            f'no agent named "{to[:80]}" works above or below you',
            hint="list_tasks shows who does",
        )
