"""Python tests that can never fail, and code that keeps tests from being run.

The law: what is not certain is taken as a real test; must_fail_on_base looks closer.
"""

import ast
from collections.abc import Iterable

from genba.judgement.test_changes.python_source import (
    Function,
    PythonSource,
    TestFunction,
    body_of,
    dotted,
    fingerprint,
)

_SKIPPING = frozenset(
    {"skip", "skipIf", "skipUnless", "skipif", "xfail", "skipTest", "SkipTest", "importorskip", "todo"}
)
_ALWAYS_SKIPPING = frozenset({"skip", "skipTest", "SkipTest", "xfail", "exit", "_exit"})
_SILENT = frozenset({"print", "id", "type", "repr", "str"})
_BROAD = frozenset({"Exception", "BaseException", "AssertionError"})


def skips(node: ast.AST) -> bool:
    """Whether something in here names a way not to run a test."""
    return any(_last(part) in _SKIPPING for part in ast.walk(node) if isinstance(part, ast.Attribute | ast.Name))


def is_skipped(test: TestFunction, source: PythonSource) -> bool:
    """Whether a mark on the test, on its class or on its module, or its own code, keeps it from counting."""
    marks = [*test.node.decorator_list]
    for owner in test.owners:
        marks += owner.decorator_list
        marks += [part.value for part in owner.body if isinstance(part, ast.Assign) and _is_mark(part)]
    marks += [b.node.value for b in source.bindings.get("pytestmark", ()) if isinstance(b.node, ast.Assign)]
    return any(_always(mark) for mark in marks) or any(_stops(part) for part in body_of(test.node)[:1])


def _is_mark(node: ast.Assign) -> bool:
    return any(dotted(target) == "pytestmark" for target in node.targets)


def _always(mark: ast.expr) -> bool:
    if isinstance(mark, ast.List | ast.Tuple):
        return any(_always(part) for part in mark.elts)
    name = dotted(mark).rpartition(".")[2]
    if name in ("skipif", "skipIf"):
        return isinstance(mark, ast.Call) and bool(mark.args) and _truth(mark.args[0]) is True
    if name == "skipUnless":
        return isinstance(mark, ast.Call) and bool(mark.args) and _truth(mark.args[0]) is False
    strict = isinstance(mark, ast.Call) and any(key.arg == "strict" and _truth(key.value) for key in mark.keywords)
    return name == "skip" or (name == "xfail" and not strict)


def _stops(node: ast.stmt) -> bool:
    """Whether nothing after this statement is reached."""
    match node:
        case ast.Return():
            return True
        case ast.Raise(exc=exc):
            return dotted(exc).rpartition(".")[2] in _ALWAYS_SKIPPING
        case ast.Expr(value=ast.Call() as call):
            return dotted(call).rpartition(".")[2] in _ALWAYS_SKIPPING
    return False


def is_hollow(test: TestFunction, source: PythonSource) -> bool:
    """Whether a test can never fail: skipped without a condition, or without anything that could go wrong."""
    never = any(isinstance(part, ast.If) and _truth(part.test) is False for part in test.conditions)
    try:
        return never or is_skipped(test, source) or not _can_fail(body_of(test.node), _constants(test.node))
    except RecursionError:
        return False


def _constants(node: Function) -> frozenset[str]:
    """Local names that only ever hold constants."""
    stored: dict[str, bool] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.targets[0], ast.Name):
            name = part.targets[0].id
            stored[name] = stored.get(name, True) and isinstance(part.value, ast.Constant)
    rebound = [
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and part.id not in stored
    ]
    return frozenset(name for name, constant in stored.items() if constant) - frozenset(rebound)


def _can_fail(statements: Iterable[ast.stmt], constants: frozenset[str]) -> bool:
    for node in statements:
        if _statement_can_fail(node, constants):
            return True
        if _stops(node):
            return False
    return False


def _statement_can_fail(node: ast.stmt, constants: frozenset[str]) -> bool:
    match node:
        case ast.Assert(test=test):
            return not _always_true(test, constants)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Pass():
            return False
        case ast.If(test=test, body=body, orelse=orelse):
            branches = [*([] if _truth(test) is False else [body]), *([] if _truth(test) is True else [orelse])]
            return _calls(test) or any(_can_fail(branch, constants) for branch in branches)
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
            swallowed = any(_swallows(handler, constants) for handler in handlers)
            parts = [orelse, final, *(handler.body for handler in handlers), *([] if swallowed else [body])]
            return any(_can_fail(part, constants) for part in parts)
        case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
            if any(_suppresses(item.context_expr) for item in items):
                return False
            return any(_calls(item.context_expr) for item in items) or _can_fail(body, constants)
        case ast.For(body=body) | ast.AsyncFor(body=body) | ast.While(body=body):
            heads = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
            return any(_calls(part) for part in heads) or _can_fail(body, constants)
        case ast.Raise() | ast.Expr() if _stops(node):
            return False
        case ast.Raise():
            return True
    return _calls(node)


def _calls(node: ast.AST) -> bool:
    """Whether something is called or looked up that could go wrong."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and dotted(part) not in _SILENT:
            return True
        if isinstance(part, ast.Await | ast.Yield | ast.Import | ast.ImportFrom):
            return True
    return False


def _swallows(handler: ast.ExceptHandler, constants: frozenset[str]) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    broad = any(kind is None or dotted(kind) in _BROAD for kind in kinds)
    return broad and not _can_fail(handler.body, constants)


def _suppresses(node: ast.expr) -> bool:
    broad = isinstance(node, ast.Call) and any(dotted(argument) in _BROAD for argument in node.args)
    return broad and dotted(node).rpartition(".")[2] == "suppress"


def _always_true(test: ast.expr, constants: frozenset[str]) -> bool:
    match test:
        case ast.Tuple(elts=[_, *_]):
            return True
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is() | ast.LtE() | ast.GtE()], comparators=[right]) if (
            fingerprint(left) == fingerprint(right) and not _calls(left)
        ):
            return True
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(_truth(value) is True for value in values) or not _varies(test, constants)
    return not _varies(test, constants)


def _varies(node: ast.expr, constants: frozenset[str]) -> bool:
    parts = [part for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute | ast.Call | ast.Await)]
    return any(not (isinstance(part, ast.Name) and part.id in constants) for part in parts)


def _truth(node: ast.expr) -> bool | None:
    match node:
        case ast.Constant(value=value):
            return bool(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _truth(operand)
            return None if inner is None else not inner
    return None


def _last(node: ast.Attribute | ast.Name) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id
