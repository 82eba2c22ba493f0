"""The instructions that a project writes itself: `.genba/instructions/NAME.md`, or `NAME.ja.md` for one language.

A file that has no effect, or that leaves out what its action is about, is refused before anything runs.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from genba.domain.problems import Problem, did_you_mean
from genba.domain.workflow.actions import ActionKind

FOLDER = ".genba/instructions"
LANGUAGES = ("en", "ja")
LONGEST = 20_000
"""Characters of one file."""

PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
PLACEHOLDERS = (
    "task",
    "title",
    "body",
    "subtask",
    "subtask_title",
    "subtask_body",
    "assignee",
    "subtasks",
    "evidence",
    "choices",
    "reason",
    "tools",
    "key",
)
"""What a text may name in braces."""

NAMES = (
    *(str(kind) for kind in ActionKind),
    "create_subtasks-manager",
    "execute_subtask-task",
    "handle_blocked-person",
    "rework-subtask",
    "rework-manager",
    "rework-full",
)
"""Every text: one for each action, and more where an action means something else to others.

A project's text for an action also stands for the further ones of that action, unless it writes those as well.
"""

_WANTED = {
    "start_subtask": ("subtask",),
    "execute_subtask": ("subtask",),
    "delegate": ("subtasks",),
    "handle_blocked": ("choices",),
    "rework": ("evidence",),
}
"""The placeholders that the text of an action must have."""


def read_instructions(root: Path) -> tuple[Mapping[str, str], tuple[Problem, ...]]:
    """The texts of the project at `root` by name, such as `wait` or `wait.ja`; and everything that is wrong there."""
    folder = root / FOLDER
    if not folder.is_dir():
        return {}, ()
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        return {}, (Problem(FOLDER, "", f"cannot be read: {error.strerror}"),)
    texts: dict[str, str] = {}
    problems: list[Problem] = []
    for path in paths:
        shown = f"{FOLDER}/{path.name}"
        if wrong := _name_problem(path.name, shown):
            problems.append(wrong)
            continue
        text, found = _text(path, shown, root)
        problems += found
        if text is not None:
            problems += text_problems(path.name.removesuffix(".md"), text, shown)
            texts[path.name.removesuffix(".md")] = text
    return MappingProxyType(texts), tuple(problems)


def text_problems(key: str, text: str, shown: str) -> Iterator[Problem]:
    """What is wrong with one text: braces that name nothing, or nothing of what its action is about."""
    if not text.strip():
        yield Problem(shown, "", "is empty", "write what to do, or remove the file")
        return
    used = {found.group(1): found.start() for found in reversed(list(PLACEHOLDER.finditer(text)))}
    for name, at in sorted(used.items(), key=lambda one: one[1]):
        if name not in PLACEHOLDERS:
            line = text.count("\n", 0, at) + 1
            hint = did_you_mean(name, PLACEHOLDERS)
            yield Problem(shown, f"line {line}", f"{{{name}}} is no placeholder", hint)
    action = key.partition(".")[0].partition("-")[0]
    missing = [f"{{{name}}}" for name in _WANTED.get(action, ()) if name not in used]
    if missing and key.partition(".")[0] != "handle_blocked-person":
        yield Problem(shown, "", f"does not name {', '.join(missing)}", f"the instruction of {action} needs it")


def _name_problem(name: str, shown: str) -> Problem | None:
    stem, dot, ending = name.rpartition(".")
    if not dot or ending != "md":
        return Problem(shown, "", "is no .md file", f"known: {NAMES[0]}.md, {NAMES[0]}.ja.md and so on")
    known, dot, language = stem.partition(".")
    if known not in NAMES:
        return Problem(shown, "", f'"{known}" is no action', did_you_mean(known, NAMES))
    if dot and language not in LANGUAGES:
        return Problem(shown, "", f'"{language}" is no language', did_you_mean(language, LANGUAGES))
    return None


def _text(path: Path, shown: str, root: Path) -> tuple[str | None, tuple[Problem, ...]]:
    try:
        target = path.resolve()
        if not target.is_relative_to(root.resolve()):
            return None, (Problem(shown, "", "leaves the repository"),)
        if not target.is_file():
            return None, (Problem(shown, "", "is not a file"),)
        with target.open("rb") as file:
            raw = file.read(LONGEST * 4 + 1)
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if len(raw) > LONGEST * 4:
            return None, (_too_long(shown),)
        return None, (Problem(shown, f"byte {error.start}", "cannot be read: it is not UTF-8"),)
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        return None, (Problem(shown, "", f"cannot be read: {why}"),)
    if len(text) > LONGEST:
        return None, (_too_long(shown),)
    return text, ()


def _too_long(shown: str) -> Problem:
    return Problem(shown, "", f"is longer than {LONGEST} characters", "instructions are short")
