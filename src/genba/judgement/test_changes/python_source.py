"""Python sources as far as tests are concerned: their tests, what each name is bound to, and what runs on import.

The law: hostile text never raises and is never run. Line numbers, docstrings and annotations do not count, so that
formatting changes nothing.
"""

import ast
import warnings
from collections.abc import Iterable, Iterator

import msgspec

Fingerprint = tuple[str, ...]
Function = ast.FunctionDef | ast.AsyncFunctionDef

_IGNORED_FIELDS = frozenset({"annotation", "returns", "type_comment", "ctx", "kind", "type_params", "type_ignores"})
_DEEPEST = 30
"""Conditions within conditions; what stands deeper is no test that anyone would find."""

_COMPOUND = (ast.If, ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.For, ast.AsyncFor, ast.While, ast.Match)


class TestFunction(msgspec.Struct, frozen=True):
    """A test, with everything around it that decides whether it is run."""

    name: str
    """With its classes: `TestTitle.test_empty`."""
    node: Function
    around: Fingerprint
    """The conditions and the heads of the classes that it stands in, without their names."""
    whole: Fingerprint
    """All that it does and what marks it, without its name."""
    owners: tuple[ast.ClassDef, ...] = ()
    conditions: tuple[ast.stmt, ...] = ()


class Binding(msgspec.Struct, frozen=True):
    """One statement that gives a name its value."""

    fingerprint: Fingerprint
    node: ast.stmt


class PythonSource(msgspec.Struct, frozen=True):
    tests: tuple[TestFunction, ...]
    bindings: dict[str, tuple[Binding, ...]]
    """Names of the module, and as `TestTitle.setUp` those of its classes, in order.

    A class without tests that has a parent counts as a whole: what it adds may stand in for what it inherits.
    """
    effects: tuple[ast.stmt, ...]
    """Statements of the module that do more than give a name to something."""
    module: ast.Module

    def fingerprints(self, name: str) -> tuple[Fingerprint, ...]:
        return tuple(binding.fingerprint for binding in self.bindings.get(name, ()))

    def nodes(self, name: str) -> list[ast.stmt]:
        return [binding.node for binding in self.bindings.get(name, ())]

    def members(self, owner: str) -> frozenset[str]:
        """The names in a class, tests included."""
        return frozenset(name for name in self.bindings if name.startswith(f"{owner}."))


def read_python(text: str) -> PythonSource | None:
    """The source, or None when it is not Python that this interpreter can read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(text.removeprefix("\ufeff"))
        reader = _Reader()
        reader.block(module.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    bindings = {name: tuple(found) for name, found in reader.bindings.items()}
    return PythonSource(tuple(reader.tests), bindings, tuple(reader.effects), module)


def fingerprint(*things: object) -> Fingerprint:
    """What a piece of code says, without where and how it is written."""
    found: list[str] = []
    stack: list[object] = [*reversed(things)]
    while stack:
        thing = stack.pop()
        match thing:
            case ast.AnnAssign(target=target, value=ast.AST() as value):
                found.append("Assign")
                stack += [value, [target]]
            case ast.AST():
                found.append(type(thing).__name__)
                stack += [_field(thing, name) for name in reversed(thing._fields) if name not in _IGNORED_FIELDS]
            case list() | tuple():
                found.append(f"[{len(thing)}]")
                stack += reversed(thing)
            case int():
                found.append(f"{type(thing).__name__} {thing:x}")
            case _:
                found.append(repr(thing))
    return tuple(found)


def _field(node: ast.AST, name: str) -> object:
    value = getattr(node, name, None)
    return body_of(node) if name == "body" and isinstance(node, Function | ast.ClassDef | ast.Module) else value


def body_of(node: Function | ast.ClassDef | ast.Module) -> list[ast.stmt]:
    """The statements without the docstring."""
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return node.body[1:]
    return node.body


def grown(old: ast.expr, new: ast.expr) -> bool:
    """Whether a literal still has all that it had, in order, and perhaps more."""
    if fingerprint(old) == fingerprint(new):
        return True
    match old, new:
        case (ast.List(elts=had), ast.List(elts=has)) | (ast.Tuple(elts=had), ast.Tuple(elts=has)):
            return _in_order([fingerprint(part) for part in had], [fingerprint(part) for part in has])
        case ast.Dict(), ast.Dict():
            had_pairs = [fingerprint(*pair) for pair in zip(old.keys, old.values, strict=True)]
            has_pairs = [fingerprint(*pair) for pair in zip(new.keys, new.values, strict=True)]
            keys = [fingerprint(key) for key in new.keys]
            return None not in new.keys and len(set(keys)) == len(keys) and _in_order(had_pairs, has_pairs)
    return False


def _in_order(had: Iterable[object], has: Iterable[object]) -> bool:
    rest = iter(has)
    return all(part in rest for part in had)


def is_test_class(node: ast.ClassDef) -> bool:
    """By its name, as pytest sees it, or because it has a parent that may be a `TestCase`."""
    return node.name.startswith("Test") or bool(node.bases)


def dotted(node: ast.AST | None) -> str:
    """`pytest.mark.skip` of an expression such as `pytest.mark.skip(reason="")`; empty for anything else."""
    words: list[str] = []
    while node is not None:
        match node:
            case ast.Call(func=func):
                node = func
            case ast.Attribute(value=value, attr=attr):
                words.append(attr)
                node = value
            case ast.Name(id=name):
                return ".".join([name, *reversed(words)])
            case _:
                return ""
    return ""


def run_on_import(module: ast.Module) -> Iterator[ast.AST]:
    """Every node that is evaluated when the module is imported: no bodies of functions, no `__main__` part."""
    stack: list[ast.AST] = [*reversed(module.body)]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.If) and is_main_guard(node):
            continue
        yield node
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                stack += [*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d)]
            case ast.Lambda():
                continue
            case _:
                stack += ast.iter_child_nodes(node)


def is_main_guard(node: ast.If) -> bool:
    return any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test)) and any(
        isinstance(part, ast.Constant) and part.value == "__main__" for part in ast.walk(node.test)
    )


def bound_names(node: ast.stmt) -> tuple[str, ...]:
    """The names that a statement of a module binds, compound statements included."""
    found: list[str] = []
    stack: list[ast.AST] = [node]
    while stack:
        part = stack.pop()
        match part:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.append(part.name)
                continue
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                found += [named.target.id for named in ast.walk(part) if isinstance(named, ast.NamedExpr)]
                continue
            case ast.Import(names=aliases):
                found += [alias.asname or alias.name.partition(".")[0] for alias in aliases]
            case ast.ImportFrom(names=aliases):
                found += [alias.asname or alias.name for alias in aliases]
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.append(name)
            case ast.ExceptHandler(name=str(name)):
                found.append(name)
        stack += ast.iter_child_nodes(part)
    return tuple(dict.fromkeys(found))


class _Reader:
    """Walks the statements of a module once."""

    def __init__(self) -> None:
        self.tests: list[TestFunction] = []
        self.bindings: dict[str, list[Binding]] = {}
        self.effects: list[ast.stmt] = []

    def block(self, statements: list[ast.stmt]) -> None:
        for node in statements:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._bind(node.name, fingerprint(node), node)
                    self._test(node, (), ())
                case ast.ClassDef():
                    self._class(node, (), ())
                case ast.Import() | ast.ImportFrom():
                    self._import(node)
                case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                    self._assignment(node)
                case ast.Pass() | ast.Expr(value=ast.Constant()):
                    continue
                case _:
                    self.effects.append(node)
                    self._bind_all(node)
                    self._inside(node, (), (node,))

    def _inside(self, node: ast.stmt, owners: tuple[ast.ClassDef, ...], conditions: tuple[ast.stmt, ...]) -> None:
        """Tests that stand in a compound statement: they are only there when it lets them."""
        if not isinstance(node, _COMPOUND) or len(conditions) > _DEEPEST:
            return
        blocks = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
        blocks += [part.body for name in ("handlers", "cases") for part in getattr(node, name, [])]
        for child in (child for block in blocks for child in block):
            match child:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._test(child, owners, conditions)
                case ast.ClassDef():
                    self._class(child, owners, conditions, bound=False)
                case _:
                    self._inside(child, owners, (*conditions, child))

    def _test(self, node: Function, owners: tuple[ast.ClassDef, ...], conditions: tuple[ast.stmt, ...]) -> None:
        if node.name.startswith("test"):
            name = ".".join([*(owner.name for owner in owners), node.name])
            around = fingerprint([_head(owner) for owner in owners], [_condition(part) for part in conditions])
            whole = fingerprint(type(node).__name__, node.args, node.decorator_list, body_of(node))
            self.tests.append(TestFunction(name, node, around, whole, owners, conditions))

    def _class(
        self,
        node: ast.ClassDef,
        owners: tuple[ast.ClassDef, ...],
        conditions: tuple[ast.stmt, ...],
        *,
        bound: bool = True,
    ) -> None:
        known = len(self.tests)
        inner = (*owners, node)
        if is_test_class(node):
            for child in node.body:
                match child:
                    case ast.FunctionDef() | ast.AsyncFunctionDef():
                        self._test(child, inner, conditions)
                    case ast.ClassDef():
                        self._class(child, inner, conditions, bound=False)
                    case _:
                        self._inside(child, inner, (*conditions, child))
        if not bound:
            return
        if len(self.tests) == known and (node.bases or node.keywords):
            self._bind(node.name, fingerprint(node), node)
            return
        self._bind(node.name, fingerprint(_head(node)), node)
        self._members(node, node.name)

    def _members(self, node: ast.ClassDef, prefix: str) -> None:
        for child in body_of(node):
            if isinstance(child, ast.ClassDef) and is_test_class(child):
                self._bind(f"{prefix}.{child.name}", fingerprint(_head(child)), child)
                self._members(child, f"{prefix}.{child.name}")
                continue
            names = self._bind_all(child, f"{prefix}.")
            if not names and not isinstance(child, ast.Pass | ast.AnnAssign):
                self._bind(f"{prefix}.<{type(child).__name__}>", fingerprint(child), child)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            name = alias.asname or (alias.name if isinstance(node, ast.ImportFrom) else alias.name.partition(".")[0])
            whole = alias.name if isinstance(node, ast.Import) and alias.asname else name
            source = (
                ("from", "." * node.level, node.module or "", alias.name) if isinstance(node, ast.ImportFrom) else ()
            )
            self._bind(name, source or ("import", whole), node)
            if alias.name == "*":
                self.effects.append(node)

    def _assignment(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        parts = [part for target in targets for part in ast.walk(target)]
        if any(isinstance(part, ast.Attribute | ast.Subscript) for part in parts):
            self.effects.append(node)
        if isinstance(node, ast.AnnAssign) and node.value is None:
            return
        self._bind_all(node)

    def _bind_all(self, node: ast.stmt, prefix: str = "") -> tuple[str, ...]:
        names = bound_names(node)
        made = fingerprint(node) if names else ()
        for name in names:
            self._bind(f"{prefix}{name}", made, node)
        return names

    def _bind(self, name: str, made: Fingerprint, node: ast.stmt) -> None:
        found = self.bindings.setdefault(name, [])
        repeated = made[:1] in (("from",), ("import",)) and any(binding.fingerprint == made for binding in found)
        if not repeated:
            found.append(Binding(made, node))


def _head(node: ast.ClassDef) -> list[object]:
    return [node.bases, node.keywords, node.decorator_list]


def _condition(node: ast.stmt) -> list[object]:
    """What a compound statement asks before it lets its body run."""
    asked = ("test", "items", "iter", "target", "subject")
    return [type(node).__name__, *(getattr(node, name, None) for name in asked)]
