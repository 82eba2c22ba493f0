"""What a scripted model does, in words that fit every tool: one scenario drives them all.

A scenario is rounds of turns. A round begins with the user's text; a turn is one answer of the model. Where a
conversation stands is read from the conversation itself, so that resuming and running side by side need no memory.
"""

from typing import Any

import msgspec


class Tokens(msgspec.Struct, frozen=True):
    input: int = 1200
    output: int = 42
    cached: int = 800


class _Turn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="do", tag=str.lower):
    usage: Tokens = Tokens()
    pause: float = 0.0
    """How many seconds the answer takes, spread over its events."""


class Say(_Turn, frozen=True):
    """Answer with text. `{last_result}` stands for what the last tool returned."""

    text: str


class Write(_Turn, frozen=True):
    """Write a new file, with the tool for that among those on offer, or else with a shell."""

    path: str
    text: str


class Run(_Turn, frozen=True):
    """Run a command of the shell."""

    command: str


class Answer(_Turn, frozen=True):
    """Give structured output: by the tool for it where there is one, else as text."""

    value: dict[str, Any]


class Call(_Turn, frozen=True):
    """Use a tool by its exact name, whether it was offered or not. Some tools take text as input."""

    tool: str
    input: dict[str, Any] | str = {}
    namespace: str = ""


class Mcp(_Turn, frozen=True):
    """Use a tool of an MCP server, under the name that the client gives to it."""

    server: str
    tool: str
    input: dict[str, Any] = {}


class Obey(_Turn, frozen=True):
    """Ask the server of the workflow what is next and do it, turn by turn, until there is nothing left."""

    work: str = 'echo done > "$TITLE.txt"; git add -A; git commit -qm "$TITLE"'
    """The shell line that does a subtask, or the task itself; `$TITLE` is what it is called."""
    plan: tuple[dict[str, Any], ...] = ()
    """The subtasks to make; none: the task is done in one go."""


class Together(_Turn, frozen=True):
    """Do several things in one turn."""

    acts: tuple["Say | Write | Run | Answer | Call | Mcp", ...]


class _Trouble(_Turn, frozen=True, kw_only=True):
    times: int = 0
    """How often it happens before the next turn gets its chance; 0: always."""


class Fail(_Trouble, frozen=True):
    """Answer with an error, as the provider would word it."""

    status: int
    message: str = ""
    kind: str = ""
    """The name of the error in the body; empty: the provider's name for this status."""
    retry_after: float | None = None
    detail: dict[str, Any] = {}
    """Put into the error of the body."""
    headers: dict[str, str] = {}
    in_stream: bool = False
    """Begin well, and tell of the error inside the stream."""


class Hang(_Trouble, frozen=True):
    """Take the request and never answer; with words, begin to say them and stop in the middle."""

    text: str = ""


class Cut(_Trouble, frozen=True):
    """Begin to say something and drop the connection in the middle."""

    text: str = "this answer is never finished"


Act = Say | Write | Run | Answer | Call | Mcp | Obey
Trouble = Fail | Hang | Cut
Turn = Act | Together | Trouble


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rounds of turns, in order or by what the user says. The last round is repeated for every further text."""

    rounds: tuple[tuple[Turn, ...], ...]
    when: tuple[str, ...] = ()
    """For each round the words in the user's text that call for it; empty: in order."""

    def round_for(self, place: int, prompts: tuple[str, ...]) -> int:
        """Which round the user's texts have begun; a text without any of the words goes on with the one before."""
        if not self.when:
            return min(place, len(self.rounds) - 1)
        found = (number for prompt in reversed(prompts) for number, word in enumerate(self.when) if word in prompt)
        return next(found, len(self.rounds) - 1)

    def at(self, round_number: int, step: int) -> tuple[list[tuple[int, Trouble]], Turn | None]:
        """The passing troubles before a turn, each with its place in the round, and the turn; None past the end."""
        turns = self.rounds[round_number]
        passing: list[tuple[int, Trouble]] = []
        for place, turn in enumerate(turns):
            if isinstance(turn, Trouble) and turn.times:
                passing.append((place, turn))
            elif step == 0 or isinstance(turn, Obey):
                return passing, turn
            else:
                step -= 1
                passing = []
        ended_with_a_tool = bool(turns) and not isinstance(turns[-1], Say | Trouble)
        return passing, Say("done") if step == 0 and ended_with_a_tool else None


def scenarios_from_json(text: bytes) -> dict[str, Scenario]:
    """Named scenarios, each a list of turns, a list of rounds, or rounds by words in the user's text."""
    given = msgspec.json.decode(text, type=dict[str, list[Any] | dict[str, list[Any]]])
    return {name: _scenario(value) for name, value in given.items()}


def _scenario(value: list[Any] | dict[str, list[Any]]) -> Scenario:
    if isinstance(value, dict):
        return msgspec.convert({"rounds": list(value.values()), "when": list(value)}, Scenario)
    rounds = value if value and all(isinstance(each, list) for each in value) else [value]
    return msgspec.convert({"rounds": rounds}, Scenario)


STANDARD: dict[str, tuple[Turn, ...]] = {
    "write": (Write("hello.txt", "hello from the model\n"), Say("wrote hello.txt")),
    "run": (Run("echo run by the model > ran.txt"), Say("ran it")),
    "text": (Say("hello"),),
    "answer": (Answer({"status": "completed", "summary": "done"}),),
    "big": (Say("that was much", usage=Tokens(900_000, 100_000, 0)),),
    "slow": (Say("slow but steady", pause=2.0),),
    "hang": (Hang(),),
    "stall": (Hang("these words are the last that"),),
    "cut": (Cut(),),
    "cut-once": (Cut(times=1), Say("whole at the second time")),
    "400": (Fail(400),),
    "401": (Fail(401),),
    "403": (Fail(403),),
    "429": (Fail(429, retry_after=30),),
    "500": (Fail(500),),
    "529": (Fail(529),),
    "529x2": (Fail(529, times=2), Say("up again")),
}
"""There on every server, under these names."""
