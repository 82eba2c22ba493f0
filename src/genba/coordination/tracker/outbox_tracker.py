"""The tracker of a project whose issues live elsewhere: it reads the copy, and changes the copy and the outbox at once.

Law: what is to be changed on the outside is on the blackboard before anybody hears of it, in the transaction of the
change itself. Words of people who do not belong to the repository reach no agent unless the settings say so; what Genba
itself wrote there reaches none either.
"""

import asyncio
import hashlib
from collections.abc import Callable

from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.tasks.task_rows import hold, task_with_rows
from genba.blackboard.tracker import outbox
from genba.blackboard.tracker.local_tracker import BlackboardTracker, carry_out
from genba.coordination.tracker.outbox_sender import Sender
from genba.domain.tasks.task import Task
from genba.domain.text_limits import cut
from genba.domain.tracker.issues import Issue, IssueChange
from genba.domain.tracker.outbox import CloseIssue, PostComment, Relabel, SendResult
from genba.domain.tracker.quoting import harmless

_COMMENTS = Statement("""
SELECT author, body, remote_id, trusted FROM comments WHERE task_id = :task ORDER BY id
""")
_IS_CLOSED = Statement("""
SELECT state FROM tracked_issues WHERE project_id = :project AND number = :number
""")
_OWN = "<!-- genba:"
_PATIENCE = 5.0
_LONGEST_TALK = 60_000
"""Characters of comments that an agent gets to read."""


class OutboxTracker:
    """Reads tasks as issues. What it changes of an issue of the tracker goes out by the outbox."""

    def __init__(
        self,
        board: Blackboard,
        sender: Sender,
        run: str = "",
        patience: float = _PATIENCE,
        on_result: Callable[[SendResult], None] | None = None,
    ) -> None:
        self.board = board
        self.sender = sender
        self.run = run
        self.on_result = on_result
        """Gets the result of each attempt to send, such as refused credentials."""
        self.patience = patience
        """How long a change waits for what is sent; what is left then goes out later."""
        self._copy = BlackboardTracker(board)

    async def read(self, number: int) -> Issue:
        return await asyncio.to_thread(self.board.store.read, lambda tx: self._read(tx, number))

    async def labelled(self, label: str) -> tuple[Issue, ...]:
        return await self._copy.labelled(label)

    async def change(self, number: int, change: IssueChange) -> None:
        asked = await asyncio.to_thread(self.board.store.write, lambda tx: self._change(tx, number, change))
        if asked and self.sender.settings.send:
            result = await self.sender.send(self.patience)
            if self.on_result is not None:
                self.on_result(result)

    def _read(self, tx: Transaction, number: int) -> Issue:
        task = task_with_rows(tx, number).task
        everyone = self.sender.settings.comments_from == "everyone"
        lines = [
            f"{author} wrote:\n\n{body}"
            for author, body, remote, trusted in tx.all(_COMMENTS, task=task.id)
            if remote is None or ((trusted or everyone) and _OWN not in body)
        ]
        return Issue(
            number=task.number,
            title=task.title,
            body="\n\n".join([task.body, *_newest(lines)]).strip() if lines else task.body,
            state="closed" if task.status.ended else "open",
            labels=task.labels,
        )

    def _change(self, tx: Transaction, number: int, change: IssueChange) -> bool:
        """Change the copy, and write down what that means for the tracker; whether it means anything."""
        before = hold(tx, number).task
        result = len(tx.all(_COMMENTS, task=before.id))
        carry_out(tx, number, change)
        after = task_with_rows(tx, number).task
        if after.tracker == "local":
            return False
        is_new_comment = bool(change.comment) and len(tx.all(_COMMENTS, task=before.id)) > result
        return self._record(tx, before, after, change, is_new_comment)

    def _record(self, tx: Transaction, before: Task, after: Task, change: IssueChange, is_new_comment: bool) -> bool:
        number, asked = after.number, False
        added = tuple(label for label in after.labels if label not in before.labels)
        removed = tuple(label for label in before.labels if label not in after.labels)
        if added or removed:
            relabel = Relabel(issue=number, add=added, remove=removed)
            outbox.record(tx, f"labels:{number}:{after.version}", relabel, run=self.run)
            asked = True
        if is_new_comment:
            key = f"comment:{number}:{hashlib.sha256(change.comment.encode()).hexdigest()[:16]}"
            # Others' words mention no user there and carry no marker of ours.
            outbox.record(tx, key, PostComment(issue=number, body=harmless(change.comment)), run=self.run)
            asked = True
        if change.close and not _is_closed(tx, number):
            outbox.record(tx, f"close:{number}:{after.version}", CloseIssue(issue=number), run=self.run)
            asked = True
        return asked


def _newest(comments: list[str]) -> list[str]:
    """As many of the newest comments as fit, in their order."""
    room, kept = _LONGEST_TALK, list[str]()
    for words in reversed(comments):
        if len(words) > room and kept:
            break
        kept.insert(0, cut(words, _LONGEST_TALK))
        room -= len(words)
    left_out = len(comments) - len(kept)
    return [f"({left_out} earlier comments are left out)", *kept] if left_out else kept


def _is_closed(tx: Transaction, number: int) -> bool:
    """Whether the tracker shows the issue as closed already."""
    row = tx.one(_IS_CLOSED, project=tx.project, number=number)
    return row is not None and row[0] == "closed"
