"""`genba completion`: the script that teaches a shell the words of Genba, and the answers that it asks for.

Pressing the tab key never shows an error.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem, ShellComplete

VARIABLE = "_GENBA_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")
_PLACES = {
    "bash": "~/.local/share/bash-completion/completions/genba",
    "zsh": "a folder of your $fpath, as _genba",
    "fish": "~/.config/fish/completions/genba.fish",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print the completion script of a shell."""
    from genba.entrypoints.cli.failures import show_hint  # noqa: PLC0415  (beside its use)

    click.echo(script(shell), nl=False)
    if sys.stdout.isatty():
        show_hint(f"genba completion {shell} > {_PLACES[shell]}")


def script(shell: str) -> str:
    """What click writes for a shell."""
    complete = _complete_class(shell)
    from click.shell_completion import ShellComplete  # noqa: PLC0415  (only here)

    return ShellComplete.source(complete(click.Group("genba"), {}, "genba", VARIABLE))


def answer() -> int:
    """Tell a shell what could come next. It is silent about everything else."""
    try:
        shell, _, instruction = os.environ[VARIABLE].partition("_")
        if instruction == "source":
            sys.stdout.write(script(shell))
        elif instruction == "complete":
            sys.stdout.write(_completions(shell))
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001  (an error would garble the prompt)
        return 0
    return 0


def _completions(shell: str) -> str:
    from click.shell_completion import CompletionItem  # noqa: PLC0415  (only here)

    from genba.entrypoints.cli.admin.completion_values import complete  # noqa: PLC0415

    made = _complete_class(shell)(click.Group("genba"), {}, "genba", VARIABLE)
    words, incomplete = made.get_completion_args()
    found = complete(words, incomplete, Path.cwd())
    if found is not None:
        items = [CompletionItem(value, help=_short(message)) for value, message in found]
    else:
        items = list(_words(shell, words, incomplete))
    return "".join(f"{made.format_completion(item)}\n" for item in items)


def _words(shell: str, words: list[str], incomplete: str) -> "list[CompletionItem[str]]":
    """Commands and options, as click knows them. No command is imported for it."""
    from genba.entrypoints.cli.commands import SUMMARIES, cli  # noqa: PLC0415  (not needed for most values)

    if not words and not incomplete.startswith("-"):
        from click.shell_completion import CompletionItem  # noqa: PLC0415  (only here)

        return [
            CompletionItem(name, help=message) for name, message in SUMMARIES.items() if name.startswith(incomplete)
        ]
    return _complete_class(shell)(cli, {}, "genba", VARIABLE).get_completions(words, incomplete)


def _complete_class(shell: str) -> "type[ShellComplete]":
    from click.shell_completion import get_completion_class  # noqa: PLC0415  (only here)

    found = get_completion_class(shell) if shell in _SHELLS else None
    if found is None:
        raise LookupError(shell)
    return found


def _short(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[:60]
