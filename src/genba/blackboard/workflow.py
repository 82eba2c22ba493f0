"""The blackboard as the state-driven workflow sees it: agents, credentials, seats, snapshots, subtasks, messages.

Every call is one transaction: it happens whole, or it raises and nothing was changed. Any thread may call. Each verb
may be repeated: whoever died before they knew that it had happened says it again, and nothing happens twice.
"""

from collections.abc import Mapping, Sequence

from genba.blackboard.board import Blackboard
from genba.blackboard.pulse import Pulse
from genba.blackboard.seat_values import LIMITS, Credential, KnownSeat, Limits
from genba.domain.fleet import Escalation
from genba.domain.tasks import Actor, ActorKind, TaskStatus
from genba.domain.workflow import (
    ExitReason,
    Hierarchy,
    Message,
    Note,
    Phase,
    Piece,
    RegisteredAgent,
    Seat,
    Snapshot,
    Standing,
    SubtaskDraft,
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
        raise NotImplementedError

    def agents(self) -> tuple[RegisteredAgent, ...]:
        raise NotImplementedError

    def agent(self, id_or_name: str) -> RegisteredAgent | None:
        raise NotImplementedError

    def passkey_hash(self, agent_id: str) -> str:
        """The hash of the passkey of an active agent; empty when there is none."""
        raise NotImplementedError

    def set_passkey(self, agent_id: str, hash: str, actor: Actor = GENBA) -> RegisteredAgent:  # noqa: A002
        """Give an agent a new passkey, or none; whoever came with the old one has no seat any more."""
        raise NotImplementedError

    def workers(self) -> tuple[Worker, ...]:
        """Every active agent, and what it has to do already."""
        raise NotImplementedError

    # Credentials and seats

    def issue(self, id: str, run: str, secret_hash: str, expires_at: str) -> None:  # noqa: A002
        """A credential for the next instance of a run; older ones of that run that nobody used are good no more.

        A run whose work was verified, and that is asked once more, has something left to do.
        """
        raise NotImplementedError

    def credential(self, id: str) -> Credential | None:  # noqa: A002
        raise NotImplementedError

    def take_seat(self, seat: Seat, token_hash: str, expires_at: str, credential: str = "") -> Seat:
        """Seat an instance. Uses up its credential, and closes the other seats of its run."""
        raise NotImplementedError

    def seat(self, id: str) -> KnownSeat | None:  # noqa: A002
        raise NotImplementedError

    def bind(self, seat_id: str, run: str, task: int) -> Seat:
        """A guest works in that session now; the other seats of the session are closed."""
        raise NotImplementedError

    def unbind(self, seat_id: str) -> Seat:
        """A guest has left its task, and keeps its seat."""
        raise NotImplementedError

    def send_home(self, seat_id: str, reason: ExitReason, said: str = "") -> None:
        """An instance is told to stop, or says itself that it cannot go on. The first reason counts."""
        raise NotImplementedError

    def close_seat(self, id: str, why: str) -> None:  # noqa: A002
        raise NotImplementedError

    def leave(self, run: str, why: str) -> None:
        """Close every seat of a run, and take back the credential that nobody used."""
        raise NotImplementedError

    def beat(self, signs: Mapping[str, tuple[str, int, str]]) -> None:
        """Signs of life by seat: until when its lease lasts, the calls it made in all, its last action."""
        raise NotImplementedError

    def expired(self, now: str = "") -> tuple[Seat, ...]:
        """Active seats whose lease, or whose token, has run out."""
        raise NotImplementedError

    # What is next

    def snapshot(
        self, seat_id: str, limits: Limits = LIMITS, *, waited_seconds: float = 0.0, repeats: int = 0
    ) -> Snapshot:
        """Everything that the next action of a seat is decided on, seen at one moment."""
        raise NotImplementedError

    def standing(self, run: str) -> Standing:
        """What the blackboard says of a run whose instance has ended."""
        raise NotImplementedError

    def mark(self, task: int, run: str, agent: str, phase: Phase) -> None:
        """Write down how far a session has come. The same phase twice is written once."""
        raise NotImplementedError

    def mark_atomic(self, task: int, run: str, agent: str) -> None:
        """Write down that a task needs no subtasks, as the session on it says."""
        raise NotImplementedError

    def changes(self) -> int:
        """The newest event of this project: another number means that something happened."""
        raise NotImplementedError

    def pulse(self) -> Pulse:
        """A cheap look at whether anything was written, over a connection of its own. The caller closes it."""
        raise NotImplementedError

    # Subtasks

    def piece(self, number: int) -> Piece:
        raise NotImplementedError

    def pieces(self, parent: int) -> tuple[Piece, ...]:
        """Everything right below a task but its reviews, in the order in which it was made."""
        raise NotImplementedError

    def below(self, task: int) -> frozenset[int]:
        """The numbers of everything below a task, however deep."""
        raise NotImplementedError

    def create_subtasks(
        self,
        parent: int,
        drafts: Sequence[SubtaskDraft],
        *,
        in_plan: bool,
        actor: Actor,
        key: str = "",
        limits: Limits = LIMITS,
        status: TaskStatus | None = None,
        more: bool = False,
        run: str = "",
    ) -> tuple[Piece, ...]:
        """Make all of them, or none. The same key and the same request: the same subtasks, however often.

        Without a status steps of a plan are open, and parts are in the backlog. Raises `WorkflowError` with every
        problem of the request at once (validation, limit), `StateConflictError` for a key that was used for another
        request, `PlannedAlreadyError` for a parent that has subtasks, unless there may be `more`.
        """
        raise NotImplementedError

    def start_step(self, parent: int, number: int, *, run: str, actor: Actor, version: int | None = None) -> Piece:
        """Begin a step of a plan. One is in progress at a time; beginning it again changes nothing."""
        raise NotImplementedError

    def finish_step(
        self, parent: int, number: int, *, run: str, actor: Actor, commit: str = "", version: int | None = None
    ) -> Piece:
        """End a step of a plan. One with goals of its own needs the commit that was verified for it."""
        raise NotImplementedError

    def assign(
        self, number: int, agent: str, *, actor: Actor, note: str = "", run: str = "", version: int | None = None
    ) -> Piece:
        """Give a part to an agent: out of the backlog, or once more when it was blocked."""
        raise NotImplementedError

    def cancel(
        self, number: int, *, actor: Actor, reason: str = "", run: str = "", version: int | None = None
    ) -> Piece:
        """Give a part up, and everything below it. Cancelling it again changes nothing."""
        raise NotImplementedError

    def ask_human(self, number: int, reason: str, *, run: str, actor: Actor) -> Escalation:
        """The manager of a part, in its run, gives the matter to a person."""
        raise NotImplementedError

    # Notes and messages

    def save_note(self, task: int, run: str, agent: str, note: Note) -> Note:
        raise NotImplementedError

    def notes(self, task: int, limit: int = 20) -> tuple[Note, ...]:
        """What was written down on a task, newest last."""
        raise NotImplementedError

    def send_message(self, seat_id: str, to: int, content: str, type: str = "instruction") -> Message:  # noqa: A002
        """Tell those who work on a task something. The same twice, while it is unread, is told once."""
        raise NotImplementedError

    def messages(self, seat_id: str, mark_read: bool = True) -> tuple[Message, ...]:
        """What a seat was told and has not read, oldest first."""
        raise NotImplementedError
