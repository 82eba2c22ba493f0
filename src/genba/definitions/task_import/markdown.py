"""Tasks as Markdown files: what the front matter says, and the text below it."""

import datetime
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from genba.definitions.task_import.fields import criteria_of, priority_of, status_of, title_of, with_criteria, words_of
from genba.domain.convert import file_text, read_plain
from genba.domain.errors import ConfigurationError, NotFoundError
from genba.domain.problems import Problem, limited
from genba.domain.safe_yaml import load_yaml
from genba.domain.tasks.task import TaskDraft
from genba.domain.tasks.task_import import ImportableTask, ImportNote, TaskSource
from genba.domain.text_limits import cut

ENDS = (".md", ".markdown")
_TOOL = "the source"
_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^# +(.+)$", re.MULTILINE)
_LARGEST = 1024 * 1024
_LONGEST_FRONT_MATTER = 16 * 1024
_MOST_FILES = 5_000
_MOST_ENTRIES = 50_000
_GOALS = ("goals", "acceptance_criteria", "acceptance", "criteria")
_WAITS = ("depends_on", "dependencies", "blocked_by")
_KEYS = {
    *_GOALS, *_WAITS, "title", "id", "labels", "tags", "priority", "type", "status", "parent", "assignee", "scope",
    "requires_review", "reviewer_type",
}  # fmt: skip
_NO_EFFECT = {"created", "created_at", "updated", "updated_at", "date", "author"}


_Index = dict[str, set[str]]


class _File(msgspec.Struct, frozen=True):
    name: str
    """Its path below the folder that is imported."""
    fields: dict[str, Any]
    body: str
    reference: str


def read_markdown(path: Path, top: Path) -> TaskSource:
    """The tasks of a folder, or of one file. A file below `top` is known by its path there, whatever was imported."""
    root = (path if path.is_dir() else path.parent).resolve()
    names = _names(root) if path.is_dir() else [path.name]
    found, without, problems = [], [], []
    for name in names:
        text, wrong = _text(root / name, name)
        problems += wrong
        front = _FRONT_MATTER.match(text)
        if wrong or front is None:
            without += [] if wrong else [name]
            continue
        fields, wrong = _fields(front[1], name)
        problems += wrong
        found.append(_File(name, fields, text[front.end() :].strip("\n"), _reference(root / name, root, top, fields)))
    if not problems:
        problems += _twice(found)
    if problems:
        raise ConfigurationError(limited(problems), hint="fix these files, then run the same command again")
    if not found:
        raise NotFoundError(f"{path} has no Markdown file with front matter", hint="a task begins with ---")
    notes = [ImportNote(name, "has no front matter: it is no task", needs_attention=False) for name in without]
    index = _index(found)
    return TaskSource(kind="markdown", tasks=tuple(_task(each, index) for each in found), notes=tuple(notes))


def _names(root: Path) -> list[str]:
    """The Markdown files of a folder. Hidden ones are left out; links that lead out of it are refused."""
    names: list[str] = []
    seen = 0
    for above, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        seen += len(folders) + len(files)
        for each in (Path(above, name) for name in (*folders, *sorted(files))):
            shown = each.relative_to(root).as_posix()
            if each.is_symlink() and not each.resolve().is_relative_to(root):
                raise ConfigurationError((Problem(shown, "", "is a link out of the folder"),), hint="remove the link")
            if each.suffix.lower() in ENDS and each.is_file() and not each.is_symlink() and each.name[0] != ".":
                names.append(shown)
        if seen > _MOST_ENTRIES or len(names) > _MOST_FILES:
            most = f"more than {_MOST_FILES} Markdown files, or {_MOST_ENTRIES} files"
            raise ConfigurationError((Problem(str(root), "", f"has {most}"),), hint="import a folder in it")
    return names


def _text(path: Path, name: str) -> tuple[str, list[Problem]]:
    try:
        with path.open("rb") as file:
            return file_text(file.read(_LARGEST + 1), _LARGEST), []
    except UnicodeDecodeError as error:
        return "", [Problem(name, f"byte {error.start}", "cannot be read: it is not UTF-8")]
    except (OSError, ValueError) as error:
        return "", [Problem(name, "", f"cannot be read: {error}")]


def _fields(text: str, name: str) -> tuple[dict[str, Any], list[Problem]]:
    import yaml  # noqa: PLC0415  (only an import pays for it)

    if len(text) > _LONGEST_FRONT_MATTER:
        return {}, [Problem(name, "", f"its front matter is larger than {_LONGEST_FRONT_MATTER // 1024} KiB")]
    try:
        value, problems = read_plain(lambda: _dates_as_text(load_yaml(text)), name, "YAML")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 2}" if mark is not None else ""
        return {}, [Problem(name, line, f"not YAML: {getattr(error, 'problem', None) or error}")]
    if not problems and value is not None and not isinstance(value, dict):
        return {}, [Problem(name, "", "its front matter is not a list of keys and values")]
    return value or {}, list(problems)


def _dates_as_text(value: Any) -> Any:
    """YAML reads `created: 2026-01-31` as a date, which no task needs."""
    if not isinstance(value, dict):
        return value
    return {key: each.isoformat() if isinstance(each, datetime.date) else each for key, each in value.items()}


def _reference(path: Path, root: Path, top: Path, fields: dict[str, Any]) -> str:
    own = title_of(fields.get("id"))
    if own:
        return f"markdown:{own}"
    below = path.relative_to(top) if path.is_relative_to(top) else path.relative_to(root.parent)
    return f"markdown:{below.as_posix()}"


def _twice(files: list[_File]) -> list[Problem]:
    seen: dict[str, str] = {}
    return [
        Problem(each.name, "id", f"{seen[each.reference]} has the same id")
        for each in files
        if seen.setdefault(each.reference, each.name) != each.name
    ]


def _task(file: _File, index: _Index) -> ImportableTask:
    fields, notes = file.fields, list[ImportNote]()
    status, reason = status_of(fields.get("status"), _TOOL, notes)
    parents = _others(file, words_of(fields.get("parent"))[:1], "parent", index, notes)
    wanted = [word for key in _WAITS for word in words_of(fields.get(key))]
    heading = _HEADING.search(file.body)
    title = title_of(fields.get("title")) or title_of(heading[1] if heading else "")
    for key in sorted(set(fields) - _KEYS):
        known = key in _NO_EFFECT
        what = "Genba keeps its own" if known else "is not known and was left out"
        notes.append(ImportNote(key, what, needs_attention=not known))
    draft = TaskDraft(
        title=title or Path(file.name).stem,
        body=file.body,
        type=title_of(fields.get("type")) or "task",
        priority=priority_of(fields.get("priority"), notes),
        labels=tuple(dict.fromkeys([*words_of(fields.get("labels")), *words_of(fields.get("tags"))])),
        assignee=title_of(fields.get("assignee")),
        requires_review=fields.get("requires_review") is True,
        reviewer_type="ai" if fields.get("reviewer_type") == "ai" else "human",
        scope=words_of(fields.get("scope")),
    )
    task = ImportableTask(
        reference=file.reference,
        source_id=title_of(fields.get("id")) or file.name,
        draft=draft,
        status=status,
        reason=reason,
        parent=parents[0] if parents else "",
        dependencies=_others(file, wanted, "depends_on", index, notes),
        notes=tuple(notes),
    )
    criteria = [each for key in _GOALS if key in fields for each in _listed(fields[key])]
    return with_criteria(task, criteria_of(criteria))


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [line.strip().removeprefix("- ") for line in value.splitlines() if line.strip()]
    return value if isinstance(value, list) else [] if value is None else [value]


def _others(file: _File, words: Iterable[str], key: str, index: _Index, notes: list[ImportNote]) -> tuple[str, ...]:
    """The tasks that a file names by id, by path, by the name of the file or by title."""
    found: list[str] = []
    for word in words:
        beside = os.path.normpath(Path(file.name).parent / word)
        fits = index.get(word.removeprefix("#"), set()) or index.get(beside, set())
        if len(fits) == 1:
            found += fits
        else:
            why = "names several tasks" if fits else "names no task"
            notes.append(ImportNote(key, f"{cut(word, 80)!r} {why}: it was left out"))
    return tuple(dict.fromkeys(found))


def _index(files: list[_File]) -> _Index:
    """The references of the tasks by everything that others may call them."""
    index: _Index = {}
    for each in files:
        path = Path(each.name)
        names = {each.name, path.with_suffix("").as_posix(), path.name, path.stem}
        names |= {title_of(each.fields.get("id")), title_of(each.fields.get("title"))} - {""}
        for name in names:
            index.setdefault(name, set()).add(each.reference)
    return index
