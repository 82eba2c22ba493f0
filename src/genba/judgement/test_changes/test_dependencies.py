"""What Python tests use and what runs beside them: helpers, fixtures, imports, and the code of the module.

The law: what a kept test uses means the same as before. In a file of helpers or fixtures everything that was there is
used. New names are ordinary unless they take the place of something, or keep tests from being run.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable

from genba.judgement.test_changes.python_source import (
    Binding,
    PythonSource,
    TestFunction,
    body_of,
    dotted,
    fingerprint,
    grown,
    is_main_guard,
)
from genba.judgement.test_changes.test_bypass import CHOOSING, is_autouse, leaves
from genba.judgement.test_changes.test_regressions import Loss
from genba.judgement.test_changes.vacuous_tests import skips
from genba.judgement.verification.paths import in_test_folder, is_test_name

_PREPARING = re.compile(r"set_?up\w*|tear_?down\w*|async(?:SetUp|TearDown)", re.IGNORECASE)
_MEDDLING = re.compile(r"__\w+__|assert\w*|fail\w*|run|debug|id|skipTest|subTest|pytestmark|defaultTestResult|<\w+>")
"""Members by which a class of tests changes what they mean; in angles, a statement that is no definition."""

_MEDDLING_IN_HELPERS = re.compile(r"__\w+__|<\w+>")

_BENIGN_CALLS = re.compile(
    r"sys\.path\.\w+|logging(?:\.\w+)+|warnings\.\w+|(?:(?:np|numpy)\.)?random\.seed|os\.environ(?:\.\w+)?"
    r"|django\.setup|(?:hypothesis\.)?settings\.\w+|pytest\.register_assert_rewrite|(?:dotenv\.)?load_dotenv"
    r"|faulthandler\.\w+|locale\.setlocale|(?:matplotlib|mpl)\.use"
)


def names_used(test: TestFunction, source: PythonSource) -> frozenset[str]:
    """The names of the module that a test depends on, through helpers and fixtures too."""
    around = [part for owner in test.owners for part in (*owner.bases, *owner.decorator_list)]
    members = [
        part for owner in test.owners for part in body_of(owner) if not getattr(part, "name", "").startswith("test")
    ]
    return _closure([test.node, *around, *members], source)


def surrounding_losses(
    path: str, kept: list[TestFunction], old: PythonSource, new: PythonSource, changed: frozenset[str]
) -> list[Loss]:
    """What changed its meaning around the kept tests of a file. `changed`: Python files that the branch changes."""
    support = not old.tests and (in_test_folder(path) or path.endswith("conftest.py"))
    if not kept and not support:
        return []
    tests = {test.name for test in old.tests}
    owners = {test.owners[0].name for test in kept if test.owners}
    own = {name for name in old.bindings if _counts_by_itself(name, old, everything=support)}
    members = {name for owner in owners for name in old.members(owner)} - tests
    roots: list[ast.AST] = [node for name in own | members for node in old.nodes(name)]
    roots += [part for test in kept for owner in test.owners for part in (*owner.bases, *owner.decorator_list)]
    in_bodies = _closure([*roots, *(_unmarked(test) for test in kept)], old)
    in_marks = _closure([mark for test in kept for mark in test.node.decorator_list], old)
    helpers = {name for name in in_bodies | in_marks | own if name not in owners and _is_class(name, old)}
    members |= {name for helper in helpers for name in old.members(helper)}
    losses = []
    for name in sorted((in_bodies | in_marks | own | members) - tests):
        may_grow = name in in_marks and name not in in_bodies
        if not _same_binding(name, old, new, may_grow, changed):
            losses.append(Loss("changes", name, path))
    losses += _taken_places(path, roots + [test.node for test in kept], old, new)
    losses += _newcomers_that_meddle(path, owners, helpers, old, new)
    return losses + _changed_code(path, old, new)


def _is_class(name: str, source: PythonSource) -> bool:
    return any(isinstance(node, ast.ClassDef) for node in source.nodes(name))


def _counts_by_itself(name: str, source: PythonSource, *, everything: bool) -> bool:
    """What counts without being named by a test: fixtures that are always used, preparations, hooks, and choices."""
    if name in CHOOSING or name.startswith("pytest_") or _PREPARING.fullmatch(name):
        return name != "pytest_plugins"
    nodes = source.nodes(name)
    if any(is_autouse(node) for node in nodes):
        return True
    return (
        everything and name != "pytest_plugins" and not any(isinstance(n, ast.Import | ast.ImportFrom) for n in nodes)
    )


def _unmarked(test: TestFunction) -> ast.AST:
    """The test without what marks it."""
    return ast.FunctionDef(name=test.node.name, args=test.node.args, body=body_of(test.node), decorator_list=[])


def _closure(nodes: Iterable[ast.AST], source: PythonSource) -> frozenset[str]:
    """Every name that is bound in the module and reached from these nodes."""
    found: set[str] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        for name in _read_names(node) | _arguments(node):
            if name in source.bindings and name not in found:
                found.add(name)
                stack += source.nodes(name)
    return frozenset(found)


def _read_names(node: ast.AST) -> frozenset[str]:
    """Names that are read here and not made here, and fixtures that are asked for by name."""
    read: set[str] = set()
    local: set[str] = set()
    makes = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    stack: list[ast.AST] = [node]
    while stack:
        part = stack.pop()
        match part:
            case ast.Name(id=name, ctx=ast.Load()):
                read.add(name)
            case ast.Name(id=name) if makes:
                local.add(name)
            case ast.Call(args=words) if dotted(part).endswith("usefixtures"):
                read |= {str(word.value) for word in words if isinstance(word, ast.Constant)}
        for field, value in ast.iter_fields(part):
            if field not in ("annotation", "returns"):
                stack += [
                    child for child in (value if isinstance(value, list) else [value]) if isinstance(child, ast.AST)
                ]
    return frozenset(read - local - _arguments(node))


def _arguments(node: ast.AST) -> frozenset[str]:
    """Arguments of a function: in tests and fixtures they are names of fixtures."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return frozenset()
    given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    return frozenset(argument.arg for argument in given)


def _same_binding(name: str, old: PythonSource, new: PythonSource, may_grow: bool, changed: frozenset[str]) -> bool:
    before, after = old.bindings.get(name, ()), new.bindings.get(name, ())
    if old.fingerprints(name) == new.fingerprints(name):
        return True
    if len(before) != len(after):
        return False
    pairs = list(zip(before, after, strict=True))
    if may_grow and all(_grown_constant(had.node, has.node) for had, has in pairs):
        return True
    return all(_import_follows(had, has, changed) for had, has in pairs)


def _grown_constant(old: ast.stmt, new: ast.stmt) -> bool:
    match old, new:
        case ast.Assign(value=had), ast.Assign(value=has):
            return grown(had, has)
    return False


def _import_follows(old: Binding, new: Binding, gone: frozenset[str]) -> bool:
    """An import of a module that the branch takes away may name another one that is no test."""
    before, after = old.fingerprint, new.fingerprint
    if before == after:
        return True
    if before[:1] != ("from",) or after[:1] != ("from",) or before[3] != after[3]:
        return False
    left = before[2].replace(".", "/")
    ends = tuple(end for name in (f"{left}.py", f"{left}/__init__.py") for end in (f"/{name}",))
    here = after[2].replace(".", "/") + ".py"
    moved = any(f"/{path}".endswith(ends) for path in gone)
    return bool(left) and moved and not in_test_folder(here) and not is_test_name(here)


def _taken_places(path: str, roots: list[ast.AST], old: PythonSource, new: PythonSource) -> list[Loss]:
    """New names of the module that take the place of a builtin, or of a fixture from elsewhere."""
    reached = [*roots, *(node for name in _closure(roots, old) for node in old.nodes(name))]
    read = {name for node in reached for name in _read_names(node)}
    asked = {name for node in reached for name in _arguments(node)}
    losses = []
    for name in sorted((read | asked) & (set(new.bindings) - set(old.bindings))):
        fixture = any(_is_fixture(node) for node in new.nodes(name))
        if name in read or fixture:
            losses.append(Loss("replaces", name, path))
    return losses


def _is_fixture(node: ast.AST) -> bool:
    return any(dotted(mark).rpartition(".")[2] == "fixture" for mark in getattr(node, "decorator_list", []))


def _newcomers_that_meddle(
    path: str, owners: set[str], helpers: set[str], old: PythonSource, new: PythonSource
) -> list[Loss]:
    """New names that choose tests, or prepare them by not running them."""
    losses = []
    for name in sorted(set(new.bindings) - set(old.bindings)):
        owner, _, member = name.rpartition(".")
        nodes = new.nodes(name)
        prepares = _PREPARING.fullmatch(member) is not None or any(is_autouse(node) for node in nodes)
        stops = prepares and any(skips(node) or leaves(node) for node in nodes)
        if owner and owner.partition(".")[0] not in owners | helpers:
            continue
        known = _MEDDLING if owner.partition(".")[0] in owners else _MEDDLING_IN_HELPERS
        chooses = known.fullmatch(member) is not None if owner else name in CHOOSING
        if stops or (chooses and not any(isinstance(node, ast.ClassDef) for node in nodes)):
            losses.append(Loss("skips by" if stops or any(map(skips, nodes)) else "adds", name, path))
    return losses


def _changed_code(path: str, old: PythonSource, new: PythonSource) -> list[Loss]:
    before = Counter(fingerprint(node) for node in old.effects if not _is_benign(node))
    after = Counter(fingerprint(node) for node in new.effects if not _is_benign(node))
    if before == after:
        return []
    return [Loss("adds" if after - before else "removes", "code that runs beside the tests", path)]


def _is_benign(node: ast.stmt) -> bool:
    """Code beside tests that prepares where they run, and reaches into none of them."""
    match node:
        case ast.If(test=test, body=body, orelse=[]):
            imports = all(isinstance(part, ast.Import | ast.ImportFrom | ast.Pass) for part in body)
            checking = dotted(test).rpartition(".")[2] == "TYPE_CHECKING" and imports
            return is_main_guard(node) or checking or all(isinstance(p, ast.Expr) and _is_benign(p) for p in body)
        case ast.Try(body=body, handlers=handlers, finalbody=[]):
            parts = [*body, *(part for handler in handlers for part in handler.body), *node.orelse]
            simple = (ast.Import, ast.ImportFrom, ast.Assign, ast.Pass)
            return all(isinstance(part, simple) and not leaves(part) for part in parts)
        case ast.Expr(value=ast.Call() as call):
            return _BENIGN_CALLS.fullmatch(dotted(call)) is not None
        case ast.Assign(targets=[ast.Subscript(value=value)]):
            return dotted(value) in ("os.environ", "environ")
    return False
