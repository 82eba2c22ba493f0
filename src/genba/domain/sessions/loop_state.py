"""The state of one run's loop. It only moves forward, and it is all that a resumed run needs."""

from typing import Any

import msgspec

from genba.domain.long_text import shortened
from genba.domain.sessions.outcomes import ClosureAction, Outcome
from genba.domain.sessions.replies import Usage

ANSWER = "the answer of a person"
"""The check of a gap that is no failure: `detail` is what a person answered to the question in `claim`."""

CONFLICT = "conflict"
"""The check of a gap whose work cannot be merged into its target."""


_LONGEST_DETAIL, _LONGEST_OUTPUT = 20_000, 20_000


class Feedback(msgspec.Struct, frozen=True, kw_only=True):
    """The distance between what a reply claimed and what Genba saw. It goes into the next prompt."""

    check: str
    detail: str
    output: str
    claim: str
    attempt: int
    max_attempts: int
    pattern: str | None = None
    """The failure pattern that chooses the retry prompt."""

    def bounded(self) -> "Feedback":
        """The same, short enough for a prompt and a journal, however much was printed or claimed."""
        return msgspec.structs.replace(
            self,
            detail=shortened(self.detail, _LONGEST_DETAIL),
            output=shortened(self.output, _LONGEST_OUTPUT),
            claim=shortened(self.claim, _LONGEST_DETAIL),
        )


class Failure(msgspec.Struct, frozen=True):
    """What failed on which tree: the same twice means that nothing moves."""

    check: str
    tree: str


class ClosureChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What a structured output chose for the issue."""

    action: ClosureAction | None = None
    unknown: str = ""
    """What it named in place of an action, where there is no such action."""
    add_labels: tuple[str, ...] = ()
    remove_labels: tuple[str, ...] = ()


class LoopState(msgspec.Struct, frozen=True, kw_only=True):
    step: str
    iterations: int = 0
    """Finished iterations."""
    iterations_before: int = 0
    """Those of them that were finished when its work last came back from others: the cap counts from there."""
    checks: int = 0
    asks: int = 0
    asks_by_step: dict[str, int] = {}
    attempts: dict[str, int] = {}
    """Failed attempts at the conditions of each step."""
    context: dict[str, dict[str, Any]] = {}
    """What each step handed over: step, then key."""
    session_id: str | None = None
    usage: Usage = Usage()
    seconds: float = 0.0
    seconds_before: float = 0.0
    """Like `iterations_before`."""
    gap: Feedback | None = None
    denied: tuple[str, ...] = ()
    """Tools that the last reply was not allowed to use."""
    last_failure: Failure | None = None
    seen: str = ""
    """The commit and the tree at the end of the last iteration."""
    structured: bool = False
    """Whether a reply of this session had structured output. One that never has any is judged by its work alone."""
    judged: str = ""
    """The tree on which the run was judged complete; empty when it had uncommitted changes."""
    previous_summary: str = ""
    output: dict[str, Any] | None = None
    """The structured output of the last reply."""
    closure: ClosureChoice = ClosureChoice()
    outcome: Outcome | None = None
    reason: str = ""
    hint: str = ""
    """What the error that ended it says about the way on."""
    reviewed: str = ""
    """The request for changes that the loop was given last, by its key."""
    suspended: str = ""
    """Why it had to stop asking, although nothing is wrong with it."""
    waits_for_subtasks: bool = False
    """True when it stopped asking until the subtasks of its task have ended."""

    @property
    def ended(self) -> bool:
        return self.outcome is not None

    def with_failed_attempt(self) -> dict[str, int]:
        """The failed attempts of each step, with one more at this one."""
        return self.attempts | {self.step: self.attempts.get(self.step, 0) + 1}

    def again(self, gap: Feedback) -> "LoopState":
        """Go on with what others found, with the iterations and the time of a beginning."""
        return msgspec.structs.replace(
            self,
            gap=gap.bounded(),
            iterations_before=self.iterations,
            seconds_before=self.seconds,
            outcome=None,
            reason="",
            hint="",
            last_failure=None,
            attempts={},
            judged="",
        )

    def end(self, outcome: Outcome, reason: str, hint: str = "") -> "LoopState":
        return msgspec.structs.replace(self, outcome=outcome, reason=reason, hint=hint)
