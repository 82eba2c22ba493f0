"""What a connection may see: its task, what is below it, and the tools that it may call."""

from genba.coordination.workflow.agent_connections import AgentConnections
from genba.coordination.workflow.answers import Help, TaskBrief, TaskDetails, TaskList
from genba.coordination.workflow.boards import Boards, refused
from genba.coordination.workflow.work_verifier import WorkVerifier
from genba.domain.errors import GenbaError
from genba.domain.problems import did_you_mean
from genba.domain.tasks.task import TaskStatus
from genba.domain.workflow.actions import ALWAYS, AgentConnection, ErrorCode, Phase, SubtaskView, Tool, WorkflowError
from genba.judgement.language.sentences import tool_text
from genba.judgement.language.wording import say
from genba.judgement.workflow.next_action import TOOLS, decide

ABOUT: dict[Tool, str] = {
    Tool.AUTHENTICATE: "Get a session token. Called once, before everything else.",
    Tool.GET_NEXT_ACTION: "The one thing to do next. Call it after each thing that you did.",
    Tool.GET_MY_TASK: "Everything that is known of your task: text, goals, branch, notes, subtasks.",
    Tool.CREATE_TASK: "Add one subtask to the plan of your task.",
    Tool.CREATE_TASKS_BATCH: "Make the whole plan of your task at once; with a key it can be sent again safely.",
    Tool.UPDATE_TASK_STATUS: "Workers begin and end steps of their plan. Managers cancel a subtask.",
    Tool.ASSIGN_TASK: "Managers give a subtask to a worker, with a note if you like.",
    Tool.REPORT_COMPLETED: "Say that your task is done. It is verified, and you get what is missing.",
    Tool.REPORT_BLOCKED: "Say that you cannot go on, and why. Managers can name a subtask for a person to decide on.",
    Tool.SAVE_CONTEXT: "Write down where you are, for the next session.",
    Tool.SEND_MESSAGE: "Tell something to the agent above you, to one below, or to all with the type broadcast.",
    Tool.GET_MESSAGES: "Messages to you, each once.",
    Tool.LIST_TASKS: "Your task and everything below it.",
    Tool.GET_TASK: "One of those tasks.",
    Tool.LIST_WORKERS: "Who a subtask can be given to, and how much they have to do.",
    Tool.HELP: "This.",
    Tool.LOGOUT: "You stop here. Only when the next action is exit, or you cannot continue.",
}
_NOTES = 20


class TaskLists:
    def __init__(self, boards: Boards, connections: AgentConnections, desk: WorkVerifier) -> None:
        self._boards = boards
        self._board = boards.board
        self._connections = connections
        self._desk = desk

    async def my_task(self, connection: AgentConnection) -> TaskBrief:
        snapshot, task = await self._boards.permitted(connection, Tool.GET_MY_TASK)
        try:
            place = await self._desk.place(connection)
        except GenbaError as error:
            raise refused(error) from error
        notes = await self._boards.read(lambda: self._board.notes(task.number, _NOTES))
        messages = await self._boards.read(lambda: self._board.open_messages(connection.run))
        if place.note or any(message.status == "pending" for message in messages):
            last = messages[-1].id if messages else 0
            await self._boards.write(lambda: self._board.deliver(connection.run, last))
        if snapshot.phase is Phase.NEW:
            await self._boards.write(
                lambda: self._board.mark(task.number, connection.run, connection.agent, Phase.FETCHED)
            )
        await self._connections.fetched(connection)
        return TaskBrief(
            task=task,
            hierarchy=connection.hierarchy,
            branch=place.branch,
            base_branch=place.base_branch,
            path=place.path,
            goals=place.goals,
            note=place.note,
            notes=notes,
            messages=messages,
            subtasks=snapshot.pieces,
        )

    async def tasks(self, connection: AgentConnection, status: TaskStatus | None) -> TaskList:
        if connection.task is None:
            return TaskList(tasks=())
        number = connection.task
        found = [await self._boards.read(lambda: self._board.piece(number))]
        await self._gather(number, found)
        return TaskList(tasks=tuple(piece for piece in found if status is None or piece.status is status))

    async def task(self, connection: AgentConnection, number: int) -> TaskDetails:
        piece = await self._boards.own(connection, number)
        notes = await self._boards.read(lambda: self._board.notes(number, _NOTES))
        last = await self._boards.read(lambda: self._board.board.last_verification(number))
        parent = await self._boards.parent_of(number)
        return TaskDetails(
            task=piece,
            parent=parent if number != connection.task else None,
            notes=notes,
            evidence=f"{last.verdict} on {last.subject.commit[:12]}" if last else "",
        )

    async def help(self, connection: AgentConnection, tool: str) -> Help:
        snapshot = await self._boards.snapshot(connection)
        action = decide(snapshot)
        now = tuple(dict.fromkeys((*action.tools, *ALWAYS)))
        language = self._boards.settings.workflow.language
        about = {one: tool_text(language, ABOUT[one]) for one in now}
        if not tool:
            text = say(language, "help_role", role=connection.hierarchy, action=action.action)
            return Help(hierarchy=connection.hierarchy, action=action.action, tools=about, text=text)
        if tool not in {one.value for one in Tool}:
            hint = did_you_mean(tool, [one.value for one in Tool]) or "help without a tool lists them"
            raise WorkflowError(ErrorCode.NOT_FOUND, f'there is no tool "{tool[:40]}"', hint=hint)
        asked = Tool(tool)
        ever = asked in ALWAYS or asked in TOOLS[connection.hierarchy]
        when = "help_now" if asked in now else "help_later" if ever else "help_never"
        purpose = tool_text(language, ABOUT[asked])
        text = f"{asked}: {purpose} {say(language, when, role=connection.hierarchy)}"
        return Help(hierarchy=connection.hierarchy, action=action.action, tools={asked: purpose}, text=text)

    async def _gather(self, number: int, found: list[SubtaskView]) -> None:
        for piece in await self._boards.read(lambda: self._board.pieces(number)):
            found.append(piece)
            await self._gather(piece.number, found)
