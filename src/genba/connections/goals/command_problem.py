"""Whether a command could be run on this machine."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from genba.connections.own_processes import own_environment


def command_problem(command: str, folder: Path, environment_path: str | None) -> str:
    """Why a command could not be run on this machine, as far as a look along a PATH tells; empty when it could."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    if not words:
        return ""
    program = words[0]
    if "/" in program:
        return "" if os.access(folder / program, os.X_OK) else f"{program} is no program"
    found = shutil.which(program, path=environment_path)
    if found is None:
        return f"{program} is not installed" if _is_a_program(program) else ""
    if program.startswith("python") and words[1:2] == ["-m"] and words[2:]:
        look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({words[2].partition('.')[0]!r}) is None)"
        own = {"PATH": environment_path or os.defpath}
        try:
            result = subprocess.run(
                [found, "-I", "-c", look],
                check=False,
                capture_output=True,
                cwd=folder,
                env=own_environment(own),
                timeout=60,
            )
        except subprocess.TimeoutExpired:
            return f"{program} does not start"
        return "" if result.returncode == 0 else f"{program} has no module {words[2]}"
    return ""


def _is_a_program(word: str) -> bool:
    """Whether a word names a program, and is none of the shell's own."""
    builtins = ("cd", "export", "set", "test", "[", "exec", "eval", "source", ".", "if", "for", "while", "!", "(", "{")
    return "=" not in word and "$" not in word and word not in builtins
