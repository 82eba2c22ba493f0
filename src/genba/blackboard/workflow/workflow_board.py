"""The blackboard as the state-driven workflow sees it: agents, credentials, connections, snapshots, subtasks, messages.

Every call is one transaction: it happens whole, or it raises and nothing was changed. Any thread may call. Each verb
may be repeated: a caller that died before it saw the result calls it again, and nothing happens twice.
"""

from collections.abc import Mapping, Sequence

from genba.blackboard.database import change_counter as pulse
from genba.blackboard.database import sanitize
from genba.blackboard.database.change_counter import ChangeCounter
from genba.blackboard.fleet.fleet_board import NO_REVIEWERS
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.workflow import agent_connections, agents, messages, phases, snapshots, subtask_changes, subtasks
from genba.blackboard.workflow import subtask_views as pieces
from genba.blackboard.workflow.connection_values import LIMITS, Credential, StoredConnection, WorkflowLimits
from genba.blackboard.workflow.subtasks import SubtaskRequest
from genba.domain.fleet.records import Escalation
from genba.domain.tasks.task import Actor, ActorKind, TaskStatus
from genba.domain.workflow.actions import (
    AgentConnection,
    BroadcastScope,
    ExitReason,
    Hierarchy,
    Message,
    Note,
    Phase,
    RegisteredAgent,
    SessionResult,
    Snapshot,
    SubtaskDraft,
    SubtaskView,
    Worker,
)

GENBA = Actor(ActorKind.ORCHESTRATOR, "genba")


class WorkflowBoard:
    """What the doors of the workflow, and the runs whose agents ask, read and write."""

    def __init__(self, board: Blackboard) -> None:
        self.board = board
        self.store = board.store

    # Agents

    def register(
        self,
        name: str,
        *,
        hierarchy: Hierarchy = Hierarchy.WORKER,
        role: str = "developer",
        capabilities: tuple[str, ...] = (),
        system_prompt: str = "",
        passkey_hash: str = "",
        actor: Actor = GENBA,
    ) -> RegisteredAgent:
        """Write an agent down. Refused when an active one of that name has a passkey already."""
        return self.store.write(
            lambda tx: agents.register(
                tx,
                name,
                hierarchy=hierarchy,
                role=role,
                capabilities=capabilities,
                system_prompt=system_prompt,
                passkey_hash=passkey_hash,
                actor=actor,
            )
        )

    def agents(self) -> tuple[RegisteredAgent, ...]:
        return self.store.read(agents.agents)

    def agent(self, id_or_name: str) -> RegisteredAgent | None:
        return self.store.read(lambda tx: agents.agent(tx, id_or_name))

    def passkey_hash(self, agent_id: str) -> str:
        """The hash of the passkey of an active agent; empty when there is none."""
        return self.store.read(lambda tx: agents.passkey_hash(tx, agent_id))

    def set_passkey(self, agent_id: str, hash: str, actor: Actor = GENBA) -> RegisteredAgent:  # noqa: A002
        """Give an agent a new passkey, or none. Closes the connections of the old one."""
        return self.store.write(lambda tx: agents.set_passkey(tx, agent_id, hash, actor))

    def workers(self) -> tuple[Worker, ...]:
        """Every active agent, and what it has to do already."""
        return self.store.read(agents.workers)

    # Credentials and connections

    def issue(self, id: str, run: str, secret_hash: str, expires_at: str) -> None:  # noqa: A002
        """Issue a credential for the next instance of a session. Revokes older unused ones of that session."""
        self.store.write(lambda tx: agent_connections.issue(tx, id, run, secret_hash, expires_at))

    def credential(self, id: str) -> Credential | None:  # noqa: A002
        return self.store.read(lambda tx: agent_connections.credential(tx, id))

    def open_connection(
        self,
        connection: AgentConnection,
        token_hash: str,
        expires_at: str,
        credential: str = "",
        passkey_hash: str | None = None,
    ) -> AgentConnection:
        """Connection an instance. Uses up its credential, and closes the other connections of its run.

        With `passkey_hash` the connection is refused when the agent has another passkey by now.
        A run whose work was verified, and for which another instance comes, has something left to do.
        """
        return self.store.write(
            lambda tx: agent_connections.open_connection(
                tx, connection, token_hash, expires_at, credential, passkey_hash
            )
        )

    def connection(self, id: str) -> StoredConnection | None:  # noqa: A002
        return self.store.read(lambda tx: agent_connections.known(tx, id))

    def bind(self, connection_id: str, run: str, task: int) -> AgentConnection:
        """An external agent works in that session now; the other connections of the session are closed."""
        return self.store.write(lambda tx: agent_connections.bind(tx, connection_id, run, task))

    def unbind(self, connection_id: str) -> AgentConnection:
        """An external agent has left its task, and keeps its connection."""
        return self.store.write(lambda tx: agent_connections.unbind(tx, connection_id))

    def stop_instance(self, connection_id: str, reason: ExitReason, message: str = "") -> None:
        """Record why an instance stops. The first reason counts."""
        self.store.write(lambda tx: agent_connections.stop_instance(tx, connection_id, reason, message))

    def close_connection(self, id: str, why: str) -> None:  # noqa: A002
        self.store.write(lambda tx: agent_connections.close_connection(tx, id, why))

    def leave(self, run: str, why: str) -> None:
        """Close every connection of a session, and revoke its unused credential."""
        self.store.write(lambda tx: agent_connections.leave(tx, run, why))

    def beat(self, signs: Mapping[str, tuple[str, int, str]]) -> None:
        """Signs of life by connection: until when its lease lasts, the calls it made in all, its last action."""
        self.store.write(lambda tx: agent_connections.beat(tx, signs))

    def expired(self, now: str = "") -> tuple[AgentConnection, ...]:
        """Active connections whose lease, or whose token, has run out."""
        return self.store.read(lambda tx: agent_connections.expired(tx, now or sanitize.now()))

    # What is next

    def snapshot(
        self, connection_id: str, limits: WorkflowLimits = LIMITS, *, waited_seconds: float = 0.0, repeats: int = 0
    ) -> Snapshot:
        """Everything that the next action of a connection is decided on, seen at one moment."""
        return self.store.read(lambda tx: snapshots.snapshot(tx, connection_id, limits, waited_seconds, repeats))

    def standing(self, run: str) -> SessionResult:
        """What the blackboard says of a run whose instance has ended."""
        return self.store.read(lambda tx: snapshots.session_result(tx, run))

    def mark(self, task: int, run: str, agent: str, phase: Phase) -> None:
        """Write down how far a session has come. The same phase twice is written once."""
        self.store.write(lambda tx: phases.mark(tx, task, run, agent, str(phase)))

    def mark_atomic(self, task: int, run: str, agent: str) -> None:
        """Write down that a task needs no subtasks, as the session on it says."""
        self.store.write(lambda tx: phases.mark(tx, task, run, agent, phases.ATOMIC))

    def changes(self) -> int:
        """The newest event of this project: another number means that something happened."""
        return self.store.read(pulse.changes)

    def pulse(self) -> ChangeCounter:
        """A cheap look at whether anything was written, over a connection of its own. The caller closes it."""
        return ChangeCounter(self.store)

    # Subtasks

    def piece(self, number: int) -> SubtaskView:
        return self.store.read(lambda tx: pieces.subtask_view(tx, number))

    def pieces(self, parent: int) -> tuple[SubtaskView, ...]:
        """Everything right below a task but its reviews, in the order in which it was made."""
        return self.store.read(lambda tx: pieces.subtask_views(tx, parent))

    def below(self, task: int) -> frozenset[int]:
        """The numbers of everything below a task but its reviews, however deep."""
        return self.store.read(lambda tx: pieces.below(tx, task))

    def create_subtasks(
        self,
        parent: int,
        drafts: Sequence[SubtaskDraft],
        *,
        in_plan: bool,
        actor: Actor,
        key: str = "",
        limits: WorkflowLimits = LIMITS,
        status: TaskStatus | None = None,
        more: bool = False,
        run: str = "",
        reviewed: Mapping[str, str] = NO_REVIEWERS,
    ) -> tuple[SubtaskView, ...]:
        """Make all of them, or none. The same key and the same request: the same subtasks, however often.

        `reviewed` says by type who reviews a part. Without a status steps of a plan are open, and parts are in the
        backlog. Raises `WorkflowError` with every problem of the request at once (validation, limit),
        `StateConflictError` for a key that was used for another request, `PlannedAlreadyError` for a parent that has
        subtasks, unless there may be `more`.
        """
        wanted = SubtaskRequest(
            parent=parent,
            drafts=tuple(drafts),
            in_plan=in_plan,
            key=key,
            status=status or (TaskStatus.OPEN if in_plan else TaskStatus.BACKLOG),
            more=more,
            run=run,
        )
        return self.store.write(lambda tx: subtasks.create_subtasks(tx, wanted, limits, actor, reviewed))

    def start_step(
        self, parent: int, number: int, *, run: str, actor: Actor, version: int | None = None
    ) -> SubtaskView:
        """Begin a step of a plan. One is in progress at a time; beginning it again changes nothing."""
        return self.store.write(lambda tx: subtask_changes.start_step(tx, parent, number, run, actor, version))

    def finish_step(
        self, parent: int, number: int, *, run: str, actor: Actor, commit: str = "", version: int | None = None
    ) -> SubtaskView:
        """End a step of a plan. One with goals of its own needs the commit that was verified for it."""
        return self.store.write(lambda tx: subtask_changes.finish_step(tx, parent, number, run, actor, commit, version))

    def assign(
        self, number: int, agent: str, *, actor: Actor, note: str = "", run: str = "", version: int | None = None
    ) -> SubtaskView:
        """Give a part to an agent: out of the backlog, or once more when it was blocked."""
        return self.store.write(lambda tx: subtask_changes.assign(tx, number, agent, actor, note, run, version))

    def cancel(
        self, number: int, *, actor: Actor, reason: str = "", run: str = "", version: int | None = None
    ) -> SubtaskView:
        """Give a part up, and everything below it. Cancelling it again changes nothing."""
        return self.store.write(lambda tx: subtask_changes.cancel(tx, number, actor, reason, run, version))

    def ask_human(self, number: int, reason: str, *, run: str, actor: Actor) -> Escalation:
        """The manager of a part, in its run, gives the matter to a person."""
        return self.store.write(lambda tx: subtask_changes.ask_human(tx, number, reason, run, actor))

    # Notes and messages

    def save_note(self, task: int, run: str, agent: str, note: Note) -> Note:
        return self.store.write(lambda tx: phases.save_note(tx, task, run, agent, note))

    def notes(self, task: int, limit: int = 20) -> tuple[Note, ...]:
        """What was written down on a task, newest last."""
        return self.store.read(lambda tx: phases.notes(tx, task, limit))

    def send_message(self, connection_id: str, to: int, content: str) -> Message:
        """Send a message to the agents of a task. A repeated unread message is stored once."""
        return self.store.write(lambda tx: messages.send_message(tx, connection_id, to, content))

    def broadcast(self, connection_id: str, content: str, scope: BroadcastScope) -> tuple[int, ...]:
        """Tell everybody something, each once: the numbers of the tasks whose agents get it."""
        return self.store.write(lambda tx: messages.broadcast(tx, connection_id, content, scope))

    def messages(self, connection_id: str, mark_read: bool = True) -> tuple[Message, ...]:
        """The messages that the session of a connection has not fetched, oldest first."""
        read = self.store.write if mark_read else self.store.read
        return read(lambda tx: messages.messages(tx, connection_id, mark_read))

    def open_messages(self, run: str) -> tuple[Message, ...]:
        """The unresolved messages to the task of a session, oldest first."""
        return self.store.read(lambda tx: messages.open_messages(tx, run))

    def deliver(self, run: str, last: int) -> None:
        """Everything up to this message has reached the session of a run, and the handovers of its task with it."""
        self.store.write(lambda tx: messages.deliver(tx, run, last))
