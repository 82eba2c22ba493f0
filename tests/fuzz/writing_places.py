"""Where a source writes files: every call that opens one to write, found in its syntax and not in its lines."""

import ast
from collections.abc import Iterator
from pathlib import Path

_WRITING_FLAGS = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC")
_WRITING_MODES = frozenset("wax+")
_MODE_LETTERS = frozenset("rwaxbt+")
_COPIES = ("shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree", "shutil.move")


def writes(path: Path) -> list[str]:
    """Each call in a module that writes a file, as it stands there."""
    tree = ast.parse(path.read_text("utf-8"))
    known = dict(_constants(tree))
    return [ast.unparse(call) for call in ast.walk(tree) if isinstance(call, ast.Call) and _is_write(call, known)]


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for line in tree.body:
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            yield line.targets[0].id, ast.unparse(line.value)


def _is_write(call: ast.Call, known: dict[str, str]) -> bool:
    called = ast.unparse(call.func)
    match called.rpartition(".")[2]:
        case "write_text" | "write_bytes":
            return True
        case "open" if called == "os.open":
            return _flags_write(call.args[1], known)
        case "open" | "fdopen" if called in ("open", "os.fdopen"):
            return _mode_writes(_argument(call, 1))
        case "open":
            mode = _argument(call, 0)
            return _is_mode(mode) and _mode_writes(mode)
    return called in _COPIES


def _argument(call: ast.Call, place: int) -> ast.expr | None:
    named = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    return named[0] if named else call.args[place] if len(call.args) > place else None


def _is_mode(value: ast.expr | None) -> bool:
    """Whether this is a mode: other things than files are opened too, with other words."""
    return isinstance(value, ast.Constant) and isinstance(value.value, str) and set(value.value) <= _MODE_LETTERS


def _mode_writes(mode: ast.expr | None) -> bool:
    """Without a mode a file is read; one that cannot be read here may be any."""
    return mode is not None and (not _is_mode(mode) or bool(_WRITING_MODES & set(ast.literal_eval(mode))))


def _flags_write(flags: ast.expr, known: dict[str, str]) -> bool:
    """Whether one of the flags writes; what cannot be read here may be any."""
    words = ast.unparse(flags).split(" | ")
    lines = " | ".join(known.get(word, word) for word in words).split(" | ")
    return any(not word.startswith("os.O_") or word.removeprefix("os.") in _WRITING_FLAGS for word in lines)
