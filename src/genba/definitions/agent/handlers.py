"""Code that a user brings: a completion handler or an action handler, named in agent.json."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from genba.domain.errors import ConfigurationError, UnrecoverableError
from genba.domain.problems import Problem

_BY_USER_CODE = (Exception, SystemExit)
"""Whatever the code of a user may raise, and its wish to end the program."""


def load_callable(reference: str, folder: Path, default_name: str) -> Callable[..., Any]:
    """`module:name` from the Python path, or `file.py:name` from the agent's folder."""
    where, _, name = reference.partition(":")
    name = name or default_name
    try:
        module = _from_file(folder, where) if where.endswith(".py") else importlib.import_module(where)
        found = getattr(module, name)
    except _BY_USER_CODE as error:
        raise _refused(reference, folder, _why(error)) from error
    if not callable(found):
        raise _refused(reference, folder, f"{name} is not callable")
    return found  # type: ignore[no-any-return]


def load_action(reference: str, folder: Path) -> Callable[[Any], Any]:
    """An action handler. One that ends the program fails, and ends nothing."""
    handle = load_callable(reference, folder, "handle")

    def guarded(content: Any) -> Any:
        try:
            return handle(content)
        except SystemExit as error:
            raise UnrecoverableError(f"the handler {reference} failed: {_why(error)}") from error

    return guarded


class CompletionHandler:
    """What a factory made. An exception of the user's code is a failure of that code."""

    def __init__(self, reference: str, folder: Path, options: dict[str, Any]) -> None:
        factory = load_callable(reference, folder, "factory")
        try:
            self._made = factory(options)
        except _BY_USER_CODE as error:
            raise _refused(reference, folder, _why(error)) from error
        if not callable(getattr(self._made, "judge", None)):
            raise _refused(reference, folder, "what the factory returns has no judge()")
        self.reference = reference

    def judge(self, seen: Any) -> Any:
        try:
            return self._made.judge(seen)
        except _BY_USER_CODE as error:
            raise UnrecoverableError(f"the handler {self.reference} failed: {_why(error)}") from error


@contextmanager
def _without_compiled_files() -> Iterator[None]:
    """Reading a definition leaves nothing behind in the user's folder."""
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _from_file(folder: Path, relative: str) -> Any:
    path = (folder / relative).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ValueError(f"{relative} leaves the agent's folder")
    module_name = f"genba_agent_{folder.name}_{path.stem}".replace("-", "_")
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(relative)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    with _without_compiled_files():
        spec.loader.exec_module(module)
    return module


def _why(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"it calls sys.exit({error.code!r})"
    return f"{type(error).__name__}: {error}"


def _refused(reference: str, folder: Path, why: str) -> ConfigurationError:
    problem = Problem(f"{folder.name}/agent.json", reference, f"the handler cannot be loaded: {why}")
    return ConfigurationError((problem,), hint=f"genba agent check {folder.name}")
