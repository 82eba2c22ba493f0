"""What an instance reads: the instruction of an action, and the prompt that it is started with.

Text of Genba and text of others differ in the first character: foreign text stands
behind `>`, on lines of its own, or in quotes on one line. A text is filled in one pass, so that nothing in a title, a
body or an output is ever read as a placeholder, as the end of a block, or as a rule.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType

import msgspec

from genba.definitions.project.instructions import PLACEHOLDER, PLACEHOLDERS
from genba.domain.text_limits import cut
from genba.domain.workflow.actions import Action, ActionKind, Evidence, ExitReason, SubtaskView, Tool
from genba.judgement.workflow import instruction_texts_en, instruction_texts_ja

WORDS: dict[str, ModuleType] = {"en": instruction_texts_en, "ja": instruction_texts_ja}
SEPARATOR = "\n\n---\n\n"

_BODY, _TITLE, _LINE = 6_000, 300, 400
_PIECES, _GOALS = 20, 10
_BLOCKS = ("body", "subtask_body", "subtasks", "evidence", "choices")
_K = ActionKind


def write(action: Action, language: str = "en", overrides: Mapping[str, str] | None = None) -> str:
    """The instruction of an action. A text of the project wins over the built-in one."""
    words = WORDS.get(language, instruction_texts_en)
    values = _Values(action, words)
    name = text_name(action)
    own = _own(name, language, overrides) if overrides else None
    lines = _fill(own or words.TEXTS[name], values).strip().splitlines()
    if own is None:
        lines = [line for line in lines if line.strip()]
    if any(line.startswith("> ") for line in lines):
        lines.append(words.MARKED)
    if action.warning:
        lines.append(words.WARNING)
    if action.messages:
        lines.append(words.MESSAGES.replace("{count}", str(action.messages)))
    lines.append(words.LAST if action.action is _K.EXIT else words.TAIL)
    return "\n".join(lines)


def control_prompt(
    language: str,
    agent_id: str,
    project_id: str,
    system_prompt: str,
    has_passkey_in_prompt: bool = False,
) -> str:
    """What an instance is started with: how to authenticate and to ask, then who it is. No secret stands in it.

    By default the connection carries the credential. Where it cannot, the caller tells it in a way of its own.
    """
    words = WORDS.get(language, instruction_texts_en)
    values = {
        "agent_id": _quoted(agent_id),
        "project_id": _quoted(project_id),
        "passkey": words.SEPARATELY if has_passkey_in_prompt else words.CARRIED,
    }
    control = PLACEHOLDER.sub(lambda found: values[found.group(1)], words.CONTROL)
    system = system_prompt.strip()
    return f"{control}{SEPARATOR}{system}\n" if system else f"{control}\n"


def text_name(action: Action) -> str:
    """Which of the texts of an action fits: the same action means something else to a worker and to a manager."""
    kind, tools = action.action, action.tools
    if kind is _K.CREATE_SUBTASKS and Tool.LIST_WORKERS in tools:
        return "create_subtasks-manager"
    if kind is _K.EXECUTE_SUBTASK and action.subtask is None:
        return "execute_subtask-task"
    if kind is _K.HANDLE_BLOCKED and Tool.UPDATE_TASK_STATUS not in tools:
        return "handle_blocked-person"
    if kind is _K.REWORK and action.subtask is not None:
        return "rework-subtask"
    if kind is _K.REWORK and action.subtasks:
        return "rework-manager" if Tool.CREATE_TASK in tools else "rework-full"
    return str(kind)


def _own(name: str, language: str, overrides: Mapping[str, str]) -> str | None:
    """The text of the project: the nearer name first, and the language before all languages."""
    for wanted in dict.fromkeys((name, name.partition("-")[0])):
        for key in (f"{wanted}.{language}", wanted):
            if key in overrides:
                return overrides[key]
    return None


def _fill(template: str, values: "_Values") -> str:
    """The text with its values. What has lines of its own begins and ends on a line of its own."""

    def value(found: re.Match[str]) -> str:
        result = values.of(found.group(1))
        if found.group(1) not in _BLOCKS or not result:
            return result
        before, after = template[: found.start()], template[found.end() :]
        opening = "\n" if before and not before.endswith("\n") else ""
        return f"{opening}{result}" + ("\n" if after and not after.startswith("\n") else "")

    return PLACEHOLDER.sub(value, template)


class _Values:
    """What the names in braces stand for; only what a text names is worked out."""

    def __init__(self, action: Action, words: ModuleType) -> None:
        self.action = action
        self.words = words

    def of(self, name: str) -> str:
        return str(getattr(self, f"_{name}")()) if name in PLACEHOLDERS else f"{{{name}}}"

    def _task(self) -> str:
        return str(self.action.task.number) if self.action.task else ""

    def _title(self) -> str:
        return _quoted(self.action.task.title) if self.action.task else ""

    def _body(self) -> str:
        return _block(_details(self.action.task)) if self.action.task else ""

    def _subtask(self) -> str:
        about = self.action.subtask or self.action.task
        return str(about.number) if about else ""

    def _subtask_title(self) -> str:
        about = self.action.subtask or self.action.task
        return _quoted(about.title) if about else ""

    def _subtask_body(self) -> str:
        about = self.action.subtask or self.action.task
        return _block(_details(about)) if about else ""

    def _assignee(self) -> str:
        about = self.action.subtask
        return _quoted(about.assignee if about and about.assignee else "NAME")

    def _subtasks(self) -> str:
        lines = [_subtask_line(piece) for piece in self.action.subtasks[:_PIECES]]
        more = len(self.action.subtasks) - len(lines)
        return _block([*lines, *([f"… {more}"] if more > 0 else [])])

    def _evidence(self) -> str:
        return _block(_reasons(self.action.evidence)) if self.action.evidence else ""

    def _choices(self) -> str:
        lines = [f"- {self.words.CHOICES[choice]}" for choice in self.action.choices]
        return PLACEHOLDER.sub(lambda found: self.of(found.group(1)), "\n".join(lines))

    def _reason(self) -> str:
        reason, reasons = self.action.reason, self.words.REASONS
        if self.action.action is not _K.EXIT:
            own = f"person-{reason}" if text_name(self.action) == "handle_blocked-person" else reason
            return str(reasons.get(own, reasons.get(reason, "")))
        word = "reworks" if reason == ExitReason.NO_PROGRESS and self.action.evidence else reason
        return str(reasons.get(f"exit-{word}", reasons["exit"]))

    def _tools(self) -> str:
        return ", ".join(self.action.tools)

    def _key(self) -> str:
        """A name for one call, so that it makes nothing twice when it is repeated."""
        kind = self.action.action
        if kind is _K.HANDLE_BLOCKED:
            about = self.action.subtask
            return f"split-{about.number}-{about.attempts}" if about else f"split-{self._task()}"
        word = "rework" if kind is _K.REWORK else "plan"
        return f"{word}-{self._task()}-{len(self.action.subtasks)}"


def _details(piece: SubtaskView) -> Iterator[str]:
    yield from cut(piece.body, _BODY).splitlines()
    yield from (f"goal: {goal}" for goal in piece.goals[:_GOALS])
    if piece.scope:
        yield f"scope: {' '.join(piece.scope)}"


def _subtask_line(piece: SubtaskView) -> str:
    """A subtask in one line."""
    lines = [f"#{piece.number} {piece.status} {_quoted(piece.title)}"]
    if piece.assignee:
        lines.append(piece.assignee)
    if piece.dependencies:
        lines.append(f"← {' '.join(f'#{number}' for number in piece.dependencies)}")
    if piece.blocker is not None:
        lines.append(f"{piece.blocker.kind}: {_quoted(piece.blocker.reason)}")
    if piece.attempts:
        lines.append(f"attempts: {piece.attempts}")
    return " · ".join(lines)


def _reasons(evidence: Evidence) -> Iterator[str]:
    commit = f" {evidence.commit[:7]}" if evidence.commit else ""
    rounds = f"/{evidence.rounds}" if evidence.rounds else ""
    yield f"#{evidence.task}{commit} · {evidence.verdict or 'failed'} · round {evidence.round}{rounds}"
    if evidence.summary:
        yield evidence.summary
    yield from (f"✗ {goal}" for goal in evidence.failing[:_GOALS])


def _block(lines: Sequence[str] | Iterator[str]) -> str:
    """The words of others, each line behind `>`: no line of them can stand alone."""
    found = (_clean(part) for line in lines for part in (line.splitlines() or [""]))
    return "\n".join(f"> {line[:_LINE]}" for line in found if line.strip())


def _quoted(text: str) -> str:
    """The words of others on one line, with a beginning and an end that they cannot write themselves."""
    return msgspec.json.encode(cut(" ".join(_clean(text).split()), _TITLE)).decode()


def _clean(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else " " for letter in text)
