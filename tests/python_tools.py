"""A Python with pytest on a PATH of its own: what a project is tested with. Genba's own tools are not on its PATH."""

import atexit
import functools
import os
import sys
import tempfile
from pathlib import Path

from tests.preloaded import GENBA


@functools.cache
def python_tools() -> str:
    """A folder with `python3`, `python` and `pytest`."""
    kept = tempfile.TemporaryDirectory(prefix="genba-python-")
    atexit.register(kept.cleanup)
    folder = Path(kept.name) / "bin"
    folder.mkdir()
    folder.parent.chmod(0o755)
    for name, words in (("python3", ""), ("python", ""), ("pytest", " -m pytest")):
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable}{words} "$@"\n')
        (folder / name).chmod(0o755)
    return str(folder)


@functools.cache
def linked_genba() -> Path:
    """A folder with `genba` alone: a link, as the README makes it."""
    kept = tempfile.TemporaryDirectory(prefix="genba-link-")
    atexit.register(kept.cleanup)
    folder = Path(kept.name)
    folder.chmod(0o755)
    (folder / "genba").symlink_to(GENBA)
    return folder


def path_with_python() -> str:
    """The PATH of a user whose project has its tools."""
    return f"{python_tools()}{os.pathsep}{os.environ['PATH']}"
