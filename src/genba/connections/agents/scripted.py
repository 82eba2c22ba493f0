"""An agent that plays a script: deterministic, needs no model, and does real work in a real process."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import yaml
from msgspec import Meta

from genba.connections.agents.one_shot import OneShotAdapter, OneShotInstance, reply_from_exit
from genba.connections.agents.player import UNEXPECTED
from genba.domain.convert import LARGEST_YAML, file_text, read_plain, shape
from genba.domain.errors import ConfigurationError, RateLimited, UnrecoverableError
from genba.domain.ports import AgentInstance
from genba.domain.problems import Problem
from genba.domain.processes import Command, OutputListener
from genba.domain.safe_yaml import load_yaml
from genba.domain.sessions.replies import AgentSession, Ask, Reply, Usage

_DEEPEST = 500


class _Node(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class FileText(_Node, frozen=True):
    path: str
    text: str


class Replacement(_Node, frozen=True):
    path: str
    old: str
    new: str


class ScriptedAction(_Node, frozen=True):
    """One thing that the agent does. Exactly one key is set."""

    write: FileText | None = None
    append: FileText | None = None
    replace: Replacement | None = None
    delete: str | None = None
    commit: Annotated[str | None, Meta(description="Commit everything, with this message.")] = None
    run: Annotated[str | None, Meta(description="A shell line.")] = None
    print: Annotated[str | None, Meta(description="A line of output.")] = None
    sleep: Annotated[float, Meta(ge=0, description="Seconds of silence.")] | None = None
    crash: Annotated[int, Meta(ge=1, le=64, description="Die by this signal.")] | None = None
    exit: Annotated[int, Meta(ge=0, le=255, description="End at once with this code.")] | None = None


class Turn(_Node, frozen=True):
    """What the agent does and says when it is asked once."""

    expect: Annotated[str | tuple[str, ...], Meta(description="Texts that the prompt must contain.")] = ()
    model: Annotated[str | None, Meta(description="The model that must have been asked for.")] = None
    do: tuple[ScriptedAction, ...] = ()
    reply: Annotated[
        str | dict[str, Any], Meta(description="Text, or an object that is sent as structured output.")
    ] = ""
    usage: Usage = Usage()
    tools: Annotated[tuple[str, ...], Meta(description="The tools it reports to have used.")] = ()
    session: Annotated[str | None, Meta(description="The session id it reports.")] = None
    rate_limit: Annotated[float, Meta(gt=0, description="Refuse, and name these seconds to wait.")] | None = None


class Part(_Node, frozen=True):
    """Turns for the run as a whole, or for each step."""

    turns: tuple[Turn, ...] = ()
    steps: dict[str, tuple[Turn, ...]] = {}
    repeat: Annotated[bool, Meta(description="Play the last turn again when there are no more.")] = False


class Script(Part, frozen=True):
    """What one agent plays; an issue may have turns of its own."""

    issues: Annotated[dict[str, Part], Meta(description="By issue, what is played in place of the rest.")] = {}


class ScriptedSettings(_Node, frozen=True):
    """What `runner.adapter` takes with the type `scripted`."""

    type: str
    script: Annotated[str, Meta(min_length=1, description="A YAML file in the agent's folder.")]


class ScriptedAdapter(OneShotAdapter):
    """Plays one turn per question, in a process of its own."""

    settings_type = ScriptedSettings

    def __init__(self, settings: ScriptedSettings, folder: Path) -> None:
        self.script = read_script(folder, settings.script)

    async def start(self, session: AgentSession) -> AgentInstance:
        return OneShotInstance(session)

    async def execute(self, instance: AgentInstance, ask: Ask, on_output: OutputListener) -> Reply:
        shot = OneShotInstance.of(instance)
        turn = self._turn(ask)
        if turn.rate_limit is not None:
            raise RateLimited("the provider's rate limit is reached", retry_after=turn.rate_limit)
        part = {"expect": turn.expect, "model": turn.model, "do": turn.do, "asked_model": ask.model}
        part["prompt"] = f"{ask.system_prompt}\n\n{ask.prompt}"
        with shot.running():
            done = await shot.session.processes.run(
                Command(
                    argv=(sys.executable, "-P", "-m", "genba.connections.agents.player"),
                    workdir=shot.session.workdir,
                    environment=shot.session.environment,
                    stdin=msgspec.json.encode(part).decode(),
                    timeout_seconds=ask.timeout_seconds,
                    idle_seconds=ask.idle_seconds,
                    output_bytes=ask.output_bytes,
                    mark=ask.run,
                ),
                on_output,
            )
        if done.code == UNEXPECTED:
            raise UnrecoverableError(f"the script expected another prompt: {done.stderr.strip()}")
        plain = reply_from_exit(done)
        return msgspec.structs.replace(
            plain,
            text=turn.reply if isinstance(turn.reply, str) else msgspec.json.encode(turn.reply).decode(),
            structured=turn.reply if isinstance(turn.reply, dict) else None,
            session_id=turn.session,
            usage=turn.usage,
            tools_used=turn.tools,
        )

    def _turn(self, ask: Ask) -> Turn:
        part = self.script.issues.get(str(ask.issue), self.script)
        by_step = ask.step in part.steps
        turns = part.steps[ask.step] if by_step else part.turns
        number = ask.number_in_step if by_step else ask.number
        if number > len(turns) and part.repeat and turns:
            return turns[-1]
        if number > len(turns):
            raise UnrecoverableError(
                f"the script has no turn {number} for the step {ask.step}", hint="add a turn, or repeat: true"
            )
        return turns[number - 1]


def read_script(folder: Path, name: str) -> Script:
    """The script, or every problem in it."""
    shown = f"{folder.name}/{name}"
    raw, problems = _raw_script(folder, name, shown)
    script = None
    if not problems:
        script, problems = shape({} if raw is None else raw, Script, shown)
    if script is None:
        raise ConfigurationError(problems, hint="genba schema script")
    wrong = [
        Problem(shown, *found)
        for part in (script, *script.issues.values())
        for turns in (part.turns, *part.steps.values())
        for turn in turns
        for found in _turn_problems(turn)
    ]
    if wrong:
        raise ConfigurationError(tuple(dict.fromkeys(wrong)), hint="genba schema script")
    return script


def _raw_script(folder: Path, name: str, shown: str) -> tuple[Any, tuple[Problem, ...]]:
    try:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()):
            return None, (Problem(shown, "", "leaves the agent's folder"),)
        return read_plain(lambda: _parsed(_text(path)), shown, "YAML")
    except OSError as error:
        return None, (Problem(shown[:80], "", f"cannot be read: {error.strerror}"),)
    except RuntimeError as error:
        return None, (Problem(shown[:80], "", f"cannot be read: {error}"),)
    except yaml.YAMLError as error:
        return None, (Problem(shown, "", f"not YAML: {error}"),)


def _text(path: Path) -> str:
    with path.open("rb") as opened:
        return file_text(opened.read(LARGEST_YAML + 1), LARGEST_YAML)


def _parsed(text: str) -> Any:
    """The quick parser reads what is valid; the slow one words the problems of what is not.

    The quick one dies of what is nested too deep, so it gets nothing that could be.
    """
    if sum(map(text.count, "[{-?:")) < _DEEPEST:
        with contextlib.suppress(yaml.YAMLError):
            return load_yaml(text, quick=True)
    return load_yaml(text)


def _turn_problems(turn: Turn) -> Iterator[tuple[str, str]]:
    for deed in turn.do:
        if sum(value is not None for value in msgspec.structs.asdict(deed).values()) != 1:
            yield "do", "each entry has exactly one key"
    if min(turn.usage.input_tokens, turn.usage.output_tokens, turn.usage.cost_usd) < 0:
        yield "usage", "is less than nothing"
