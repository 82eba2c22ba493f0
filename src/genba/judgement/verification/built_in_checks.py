"""Guards against gaming: the branch leaves alone what judges it, keeps the tests, and points nowhere outside.

The law: a branch is judged by what it changes as a whole, so what was undone again does not count. What a task says
that it may change is never held against it. Hostile names and texts never raise.
"""

import re
from collections.abc import Mapping

from genba.domain.goals.verification import BranchFacts, FileChange
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.judgement.test_changes.added_tests import REGULAR, new_text, old_text
from genba.judgement.test_changes.makefiles import NAMES as MAKEFILES
from genba.judgement.test_changes.makefiles import differing_targets
from genba.judgement.test_changes.python_source import read_python
from genba.judgement.test_changes.python_tests import PythonChange, python_losses
from genba.judgement.test_changes.test_bypass import changes_runners, ends_by_import
from genba.judgement.test_changes.test_regressions import Loss, described
from genba.judgement.test_changes.text_tests import TextChange, cases_of, text_losses
from genba.judgement.verification.links import LINK, REPOSITORY, colliding_names, strange_name, way_out
from genba.judgement.verification.paths import (
    PROTECTED,
    in_test_folder,
    is_documentation,
    is_test,
    matches,
    matches_any,
    shadowed_module,
    shown,
    some,
)
from genba.judgement.verification.settings_sections import differing_parts

_NOTHING = "000000"
_TAKING_ALL = (
    (ends_by_import, "a call that ends the whole run on import"),
    (changes_runners, "a change to what runs the tests"),
)
_NATIVE = (".so", ".pyd")
_AHEAD = re.compile(r"(?s)(.+)/__init__(?:\.[\w-]+)*\.(?:py|pyc|so|pyd)|(.+?)(?:\.[\w-]+)*\.(?:so|pyd)")
"""What Python imports rather than the module of the same name beside it: a package, and a native module."""
_PLAIN_DOCUMENTS = ("readme", "changelog", "contributing", "license")


def judge_protected_paths(
    facts: BranchFacts,
    blobs: Mapping[str, str],
    base_files: tuple[str, ...],
    may_change: tuple[str, ...],
    protected: tuple[str, ...] = PROTECTED,
    judges: tuple[str, ...] = (),
) -> CheckResult:
    """Whether the branch leaves alone what judges it. `judges` are the files that the goals run."""
    guard = _Guard(facts, blobs, base_files, protected, judges)
    found: list[tuple[str, str]] = []
    for change in facts.changes:
        if not matches_any(change.path, may_change):
            found += [(change.path, part) for part in guard.parts(change)]
    if not found:
        return _passed("protected_paths")
    lines = [f"{shown(path)} {shown(part)}".rstrip() for path, part in found]
    return _failed("protected_paths", f"changes what judges it: {some(lines)}", lines, [path for path, _ in found])


class _Guard:
    """What is protected in one branch, and which part of it a change touches."""

    def __init__(
        self,
        facts: BranchFacts,
        blobs: Mapping[str, str],
        base_files: tuple[str, ...],
        protected: tuple[str, ...],
        judges: tuple[str, ...],
    ) -> None:
        self.blobs = blobs
        self.protected = tuple(pattern.lower() for pattern in protected)
        self.judges = frozenset(judges)
        self.make_folders = {path.rpartition("/")[0] for path in judges if path.rpartition("/")[2] in MAKEFILES}
        self.base_files = frozenset(base_files)
        gone = {change.path for change in facts.changes if change.new_mode == _NOTHING}
        there = {change.path for change in facts.changes if change.new_mode != _NOTHING}
        self.files = (self.base_files - gone) | there
        self.modules = {name for path in base_files if not is_test(path) and (name := _root_module(path))}
        beside = sorted({f"{path.rpartition('/')[0]}/" for path in judges if path.endswith(".py") and "/" in path})
        self.roots = tuple(dict.fromkeys(("", *(() if "src/__init__.py" in self.base_files else ("src/",)), *beside)))
        """The folders from which Python imports, beside those of tests: a script imports from its own folder first."""
        self.python_folders = {path.rpartition("/")[0] for path in self.files if path.endswith(".py")}

    def parts(self, change: FileChange) -> tuple[str, ...]:
        """The protected parts that a change touches; an empty string stands for the whole file."""
        path = change.path
        turned = {change.old_mode, change.new_mode} - {_NOTHING} - REGULAR
        old, new = old_text(change, self.blobs), new_text(change, self.blobs)
        if self._is_makefile(path):
            first = change.old_mode == _NOTHING and path.rpartition("/")[2] in MAKEFILES
            return ("",) if first or turned or self._unread(change, old, new) else differing_targets(old, new)
        parts = differing_parts(path, old, new)
        if parts is not None and not matches_any(path.lower(), self.protected):
            unread = bool(turned) or self._unread(change, old, new)
            return ("",) if unread else parts
        return ("",) if path in self.judges or self._is_protected(path, change) or self._shadows(change) else ()

    def _unread(self, change: FileChange, old: str | None, new: str | None) -> bool:
        had, has = change.old_mode != _NOTHING, change.new_mode != _NOTHING
        return (had and old is None) or (has and new is None)

    def _is_protected(self, path: str, change: FileChange) -> bool:
        if matches_any(path.lower(), self.protected):
            return True
        folder = f"{path.lower()}/"
        linked = change.new_mode not in REGULAR and change.new_mode != _NOTHING
        return linked and any(pattern.lstrip("/").startswith(folder) for pattern in self.protected)

    def _is_makefile(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return bool(self.make_folders) and ((name in MAKEFILES and folder in self.make_folders) or name.endswith(".mk"))

    def _shadows(self, change: FileChange) -> bool:
        """Whether a file takes the place of a tool, a test or the project itself when tests are imported."""
        if change.new_mode == _NOTHING:
            return False
        linked = () if change.new_mode in REGULAR else (f"{change.path}/__init__.py",)  # it can lead to a package
        return any(
            self._takes_the_place(path) or self._is_native(path) or self._is_a_new_module_in_the_way(change, path)
            for path in (change.path, *linked)
        )

    def _takes_the_place(self, path: str) -> bool:
        """Whether Python imports this package or native module in place of a kept test, or of a file that judges."""
        found = _AHEAD.fullmatch(path)
        module = f"{found[1] or found[2]}.py" if found else ""
        if module not in self.files:
            return False
        judges = module in self.base_files and (is_test(module) or module in self.judges)
        return judges or module.rpartition("/")[2] == "conftest.py"

    def _is_native(self, path: str) -> bool:
        """Whether it is a native module at an import root, or beside Python files of tests."""
        if not path.endswith(_NATIVE):
            return False
        folder = path.rpartition("/")[0]
        return f"{folder}/".lstrip("/") in self.roots or (in_test_folder(path) and folder in self.python_folders)

    def _is_a_new_module_in_the_way(self, change: FileChange, path: str) -> bool:
        """An empty package can be in the way too, but nothing passes by it."""
        if change.path in self.base_files or not self.blobs.get(change.new_blob, "?").strip():
            return False
        if shadowed_module(path, self.roots):
            return True
        folder = self._folder_of_imports(path)
        if not folder:
            return False
        module = _root_module(path.removeprefix(folder))
        return bool(shadowed_module(path, (folder,))) or module in self.modules

    def _folder_of_imports(self, path: str) -> str:
        """The folder that pytest puts on the import path for tests beside this file: the first without `__init__`."""
        words = path.removesuffix("/__init__.py").split("/")[:-1]
        folder = "/".join(words)
        if not words or not in_test_folder(f"{folder}/x") or f"{folder}/__init__.py" in self.files:
            return ""
        return f"{folder}/"


def _root_module(path: str) -> str:
    """The module or package that a path makes importable from the root or from `src`."""
    rest = path.removeprefix("src/")
    if rest.endswith("/__init__.py") and rest.count("/") == 1:
        return rest.partition("/")[0]
    return rest.removesuffix(".py") if rest.endswith(".py") and "/" not in rest else ""


def judge_tests_kept(
    facts: BranchFacts, blobs: Mapping[str, str], may_change: tuple[str, ...], pattern: str | None = None
) -> CheckResult:
    """Whether every test of the base goes on. A pattern says which files are tests, beside the usual names."""
    python: list[PythonChange] = []
    others: list[TextChange] = []
    losses: list[Loss] = []
    for change in facts.changes:
        if not (is_test(change.path) or (pattern is not None and matches(change.path, pattern))):
            continue
        judged = not matches_any(change.path, may_change)
        old, new = old_text(change, blobs), new_text(change, blobs)
        if change.old_mode != _NOTHING and old is None:
            losses += _unread_loss(change) if judged else []
        elif change.path.endswith(".py"):
            python.append(PythonChange(change.path, old, new, judged))
        elif not (is_documentation(change.path) and _is_plain_document(change.path)):
            others.append(TextChange(change.path, old, new, judged))
    modules = frozenset(change.path for change in facts.changes if change.path.endswith(".py"))
    losses += python_losses(tuple(python), modules - {change.path for change in python})
    losses += text_losses(tuple(others))
    losses += _inline_losses(facts, blobs, may_change)
    losses += _code_losses(facts, blobs, may_change)
    losses = list(dict.fromkeys(losses))
    if not losses:
        return _passed("tests_kept")
    lines = [f"{shown(loss.path)}: {loss}" for loss in losses]
    return _failed("tests_kept", described(losses), lines, [loss.path for loss in losses])


def _unread_loss(change: FileChange) -> list[Loss]:
    """Data of tests that is no text; a link among the tests counts as what it is."""
    if change.old_mode not in REGULAR and change.new_mode == change.old_mode:
        return []
    verb = "removes" if change.new_mode == _NOTHING else "changes"
    return [Loss(verb, change.path.rpartition("/")[2], change.path)] if change.old_blob != change.new_blob else []


def _is_plain_document(path: str) -> bool:
    return path.rpartition("/")[2].lower().startswith(_PLAIN_DOCUMENTS)


def _inline_losses(facts: BranchFacts, blobs: Mapping[str, str], may_change: tuple[str, ...]) -> list[Loss]:
    """Rust writes tests beside the code: there they are kept by their names."""
    sources = [change for change in facts.changes if change.path.endswith(".rs") and not is_test(change.path)]
    now = {
        case.name: case.hollow
        for change in facts.changes
        if change.path.endswith(".rs")
        for case in cases_of(change.path, new_text(change, blobs) or "")
    }
    losses = []
    for change in sources:
        if matches_any(change.path, may_change):
            continue
        for case in cases_of(change.path, old_text(change, blobs) or ""):
            if case.name not in now:
                losses.append(Loss("removes", case.name, change.path))
            elif now[case.name] and not case.hollow:
                losses.append(Loss("skips", case.name, change.path))
    return losses


def _code_losses(facts: BranchFacts, blobs: Mapping[str, str], may_change: tuple[str, ...]) -> list[Loss]:
    """Code that ends its importer, or changes what runs the tests, disables all tests."""
    losses = []
    for change in facts.changes:
        if not change.path.endswith(".py") or is_test(change.path) or matches_any(change.path, may_change):
            continue
        old, new = (read_python(text or "") for text in (old_text(change, blobs), new_text(change, blobs)))
        for finds, what in _TAKING_ALL:
            if new is not None and finds(new) and not (old is not None and finds(old)):
                losses.append(Loss("adds", what, change.path))
    return losses


def judge_links_inside(facts: BranchFacts, blobs: Mapping[str, str], files: tuple[str, ...] = ()) -> CheckResult:
    """Whether everything that the branch adds is inside the repository, and there once: links, repositories, names.

    `files` are all paths of the commit.
    """
    made = [change for change in facts.changes if change.new_mode != _NOTHING]
    links = {change.path: blobs.get(change.new_blob, "") for change in made if change.new_mode == LINK}
    declared = _declared_modules(made, blobs)
    lines = colliding_names([change.path for change in made if change.old_mode == _NOTHING], files)
    for change in made:
        why = strange_name(change.path)
        if change.new_mode == LINK and not (change.old_mode == LINK and change.old_blob == change.new_blob):
            why = why or way_out(change.path, links[change.path], links)
        elif change.new_mode == REPOSITORY and change.old_mode != REPOSITORY and change.path not in declared:
            why = why or "is a repository of its own, and no commit contains its files"
        if why:
            lines.append(f"{shown(change.path)} {shown(why)}")
    if not lines:
        return _passed("links_inside")
    return CheckResult("links_inside", CheckStatus.FAILED, some(lines, 3), "\n".join(lines))


def _declared_modules(made: list[FileChange], blobs: Mapping[str, str]) -> frozenset[str]:
    """Paths that `.gitmodules` declares. That file is protected: a task must allow it."""
    texts = [new_text(change, blobs) or "" for change in made if change.path == ".gitmodules"]
    lines = [line.partition("=") for text in texts for line in text.splitlines()]
    return frozenset(value.strip() for key, _, value in lines if key.strip() == "path")


def _passed(name: str) -> CheckResult:
    return CheckResult(name, CheckStatus.PASSED)


def _failed(name: str, detail: str, lines: list[str], paths: list[str]) -> CheckResult:
    """With how to allow it: only a person who wants the change can."""
    allowed = [f"the task must allow it: --may-change {_quoted(path)}" for path in dict.fromkeys(paths)]
    return CheckResult(name, CheckStatus.FAILED, detail, "\n".join([*lines, *allowed]))


def _quoted(path: str) -> str:
    return "'" + shown(path).replace("'", "'\\''") + "'"
