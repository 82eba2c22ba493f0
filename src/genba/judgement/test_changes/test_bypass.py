"""Code in Python tests that ends the run early, chooses which tests are run, or judges in the place of pytest.

The law: it counts in every test file that a branch touches, new ones too, unless the base had it already. A file
that only has the name of a test is still imported by pytest, so what it does on import counts there as well.
"""

import ast
import re

from genba.judgement.test_changes.python_source import PythonSource, body_of, dotted, fingerprint, run_on_import
from genba.judgement.test_changes.test_regressions import Loss
from genba.judgement.test_changes.vacuous_tests import skips
from genba.judgement.verification.paths import in_test_folder

CHOOSING = frozenset({"pytestmark", "__test__", "collect_ignore", "collect_ignore_glob", "load_tests", "__getattr__"})
"""Names by which a module chooses which of its tests are run."""

_BENIGN_HOOKS = frozenset(
    {"pytest_addoption", "pytest_report_header", "pytest_assertrepr_compare", "pytest_make_parametrize_id"}
)
_ENDING = frozenset({"sys.exit", "os._exit", "os.abort", "os.kill", "exit", "quit", "pytest.exit"})
_SKIPPING_ALL = frozenset({"pytest.skip", "pytest.importorskip", "skip", "unittest.SkipTest", "SkipTest"})
_RUNNERS = frozenset({"pytest", "_pytest", "unittest"})
_JUDGES = re.compile(r"(?:_?pytest|unittest|builtins|__builtins__|sys\.modules)\b")


def ways_out(path: str, old: PythonSource | None, new: PythonSource | None, changed: frozenset[str]) -> list[Loss]:
    """What a branch adds to a test file to get around it. `changed` are Python files changed outside the tests."""
    if new is None:
        return []
    losses = []
    tests = in_test_folder(path) or bool(new.tests or (old is not None and old.tests))
    if tests and _names_exit(new.module) and not (old is not None and _names_exit(old.module)):
        losses.append(Loss("adds", "a call that ends the whole run", path))
    elif _ends_import(new, old is not None) and not (old is not None and _ends_import(old, True)):
        losses.append(Loss("adds", "a way out on import", path))
    if not tests and path.rpartition("/")[2] != "conftest.py":
        return losses
    had = old.fingerprints if old is not None else lambda _name: ()
    hooks = [name for name in new.bindings if _is_hook(name, new) and new.fingerprints(name) != had(name)]
    losses += [Loss("adds", name, path) for name in sorted(hooks)]
    if old is None and path.rpartition("/")[2] == "conftest.py":
        losses += [Loss("adds", name, path) for name in sorted(CHOOSING.intersection(new.bindings))]
        losses += [Loss("skips by", name, path) for name in sorted(new.bindings) if _stops_all(name, new)]
    if _patches_judges(old, new):
        losses.append(Loss("adds", "a change to what runs the tests", path))
    losses += [Loss("adds", f"the plugin {name}", path) for name in _foreign_plugins(new, changed)]
    return losses


def is_autouse(node: ast.AST) -> bool:
    """Whether this is a fixture that every test gets."""
    marks = getattr(node, "decorator_list", [])
    return any(key.arg == "autouse" for mark in marks if isinstance(mark, ast.Call) for key in mark.keywords)


def leaves(node: ast.AST) -> bool:
    """Whether something in here would end the whole run."""
    return any(_ends(part) for part in ast.walk(node)) or _names_exit(node)


def _ends(node: ast.AST) -> bool:
    match node:
        case ast.Call():
            return dotted(node) in _ENDING
        case ast.Raise(exc=exc):
            return dotted(exc) == "SystemExit"
    return False


def ends_by_import(source: PythonSource) -> bool:
    """Whether importing a module of the code ends the process, or sets how it will end, so that no test can fail."""
    named = (part for part in run_on_import(source.module) if isinstance(part, ast.Attribute | ast.Name))
    return any((part.attr if isinstance(part, ast.Attribute) else part.id) == "_exit" for part in named)


def changes_runners(source: PythonSource) -> bool:
    """Whether code sets something of pytest or unittest, by whatever name it imports them: no test does so."""
    names = set()
    for part in ast.walk(source.module):
        match part:
            case ast.Import(names=aliases):
                found = [alias for alias in aliases if alias.name.partition(".")[0] in _RUNNERS]
                names |= {alias.asname or alias.name.partition(".")[0] for alias in found}
            case ast.ImportFrom(module=str(module), level=0, names=aliases) if module.partition(".")[0] in _RUNNERS:
                names |= {alias.asname or alias.name for alias in aliases}
    return bool(names) and any(_sets(part, names) for part in ast.walk(source.module))


def _sets(node: ast.AST, names: set[str]) -> bool:
    """Whether a statement sets an attribute of something that one of these names leads to."""
    match node:
        case ast.Assign(targets=targets):
            set_here: list[ast.expr] = targets
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            set_here = [target]
        case ast.Call(func=ast.Name(id="setattr"), args=[thing, name, *_]):
            return dotted(thing).partition(".")[0] in names and not isinstance(name, ast.Starred)
        case _:
            return False
    return any(isinstance(part, ast.Attribute) and dotted(part).partition(".")[0] in names for part in set_here)


def _names_exit(node: ast.AST) -> bool:
    """`os._exit` in any guise: it needs no call of its own to be carried out, and no pytest sees it coming."""
    for part in ast.walk(node):
        match part:
            case ast.Attribute(attr="_exit") | ast.Name(id="_exit") | ast.alias(name="_exit"):
                return True
            case ast.Constant(value="_exit"):
                return True
            case ast.Call() if dotted(part) == "pytest.exit":
                return True
    return False


def _ends_import(source: PythonSource, had_tests: bool) -> bool:
    """Whether importing the module ends the run, or skips all tests of a file that was there before."""
    for part in run_on_import(source.module):
        name = dotted(part.exc if isinstance(part, ast.Raise) else part)
        if _ends(part) or (had_tests and isinstance(part, ast.Call | ast.Raise) and name in _SKIPPING_ALL):
            return True
    return False


def _is_hook(name: str, source: PythonSource) -> bool:
    nodes = source.nodes(name)
    marks = [mark for node in nodes for mark in getattr(node, "decorator_list", [])]
    implements = any(dotted(mark).rpartition(".")[2] == "hookimpl" for mark in marks)
    if name == "pytest_plugins" or not (name.startswith("pytest_") or implements):
        return False
    fixture = any(dotted(mark).rpartition(".")[2] == "fixture" for mark in marks)
    benign = name in _BENIGN_HOOKS and not any(skips(node) or leaves(node) for node in nodes)
    declares = name == "pytest_configure" and all(_only_declares(node) for node in nodes)
    return not (fixture or benign or declares)


def _only_declares(node: ast.AST) -> bool:
    """Whether `pytest_configure` does nothing but name markers."""
    if not isinstance(node, ast.FunctionDef):
        return False
    calls = [part.value for part in body_of(node) if isinstance(part, ast.Expr)]
    return len(calls) == len(body_of(node)) and all(dotted(call).endswith(".addinivalue_line") for call in calls)


def _stops_all(name: str, source: PythonSource) -> bool:
    return any(is_autouse(node) and (skips(node) or leaves(node)) for node in source.nodes(name))


def _patches_judges(old: PythonSource | None, new: PythonSource) -> bool:
    """Whether a module sets something of pytest, unittest or the builtins when it is imported."""
    had = {fingerprint(node) for node in old.effects} if old is not None else set()
    for node in new.effects:
        targets = node.targets if isinstance(node, ast.Assign) else []
        roots = [dotted(part.value if isinstance(part, ast.Subscript) else part) for part in targets]
        if any(_JUDGES.match(root) for root in roots) and fingerprint(node) not in had:
            return True
    return False


def _foreign_plugins(source: PythonSource, changed: frozenset[str]) -> list[str]:
    """Plugins that the file loads and the branch wrote, outside the tests where they would be judged."""
    words = [
        part.value
        for node in source.nodes("pytest_plugins")
        for part in ast.walk(node)
        if isinstance(part, ast.Constant)
    ]
    names = [word for word in words if isinstance(word, str)]
    return [name for name in names if any(f"/{path}".endswith(f"/{name.replace('.', '/')}.py") for path in changed)]
