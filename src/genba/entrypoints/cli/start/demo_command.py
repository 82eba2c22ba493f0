"""`genba demo`: a small repository, five issues, four workers, and a story that is counted in the end."""

import asyncio
import contextlib
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

from genba.domain.errors import GenbaError, GitError
from genba.domain.fleet.progress import FleetEvent, FleetEventKind, WorkEndReason
from genba.domain.goals.goal import CustomScript
from genba.domain.tasks.task import TaskDraft
from genba.entrypoints.cli.failures import show_hint
from genba.entrypoints.cli.project_lookup import run_async
from genba.entrypoints.cli.rendering.json_output import print_json
from genba.entrypoints.cli.rendering.progress import Progress
from genba.entrypoints.cli.rendering.work_view import ending_line
from genba.entrypoints.cli.start.demo_agents import CUSTOM, REAL, Cast, real_cast, recast
from genba.entrypoints.cli.work.work_command import Working, drive, watching
from genba.wiring import ProjectContext
from genba.wiring.project.demo_repository import do_git

_FILES = Path(__file__).parent / "demo_files"
_BRANCH = "main"
_WORKERS = 4
_DATABASE = "GENBA_DATABASE_URL"
_STEPS = (
    ("init", "-q", "-b", _BRANCH),
    ("config", "user.name", "You"),
    ("config", "user.email", "you@localhost"),
    ("config", "commit.gpgsign", "false"),
    ("add", "--", "."),
    ("commit", "-q", "-m", "Helpers for titles"),
)
_TASKS = (
    TaskDraft(
        title="Add slugify()",
        body='An article needs an address. `slugify("Tea, at 5!")` in `slugs.py` is `"tea-at-5"`: small letters and '
        "digits, joined by single dashes. With tests in `tests/test_slugs.py`.",
        type="feature",
        goals=(
            CustomScript(
                script="""python3 -c 'from slugs import slugify as s; assert s("Go, 2 see!") == "go-2-see"'"""
            ),
        ),
    ),
    TaskDraft(
        title="Fix the empty title",
        body='`initial("")` in `titles.py` ends with an IndexError. An empty title belongs under `"#"`.',
        type="bug",
    ),
    TaskDraft(
        title="Speed up slugify()",
        body="It looks at each sign by itself. Its tests say what must stay.",
        type="refactor",
        assignee="liar",
        dependencies=(1, 2),
    ),
    TaskDraft(
        title="Rename LONGEST",
        body="The longest what? Call it `LONGEST_TITLE`, in all of `titles.py`.",
        type="refactor",
    ),
    TaskDraft(title="Choose a licence", body="Without one, others may not use this.", type="docs"),
)
_ANSWERS = {5: "MIT"}
_COLOURS = {"● done": "green", "✗ rejected": "red", "? waits": "magenta"}
_SLOW, _QUICK = 4, 2
"""The issue whose work takes until the other one has landed, so that both change the same lines."""


@click.command("demo")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to make the repository; by default a new one.")
@click.option(
    "--agent", "adapter", type=click.Choice([*REAL, CUSTOM]), help="Let a real agent work on the first issue."
)
@click.option("--command", default="", metavar="LINE", help="With --agent custom: the line of shell that works.")
@click.option("--serve", "serves", is_flag=True, help="Open the dashboard of the repository at the end.")
@click.option("--plain", is_flag=True, help="One line per event, also in a terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def demo(folder: Path | None, adapter: str | None, command: str, serves: bool, plain: bool, as_json: bool) -> int:
    """Watch agents work in a new repository.

    One lies, two conflict, one asks you. It needs no model and no key.
    """
    cast = real_cast(adapter, command) if adapter is not None else None
    home = _repository(folder, cast)
    what = "five issues, four workers, no model and no key" if cast is None else f"one issue, {adapter}"
    click.echo(f"genba demo · a small repository, {what}\n{home}\n", err=True)
    elsewhere = os.environ.pop(_DATABASE, "")  # what is played here is no business of the tasks there
    context = run_async(ProjectContext.find(home))
    click.get_current_context().call_on_close(context.close)
    for draft in _TASKS if cast is None else _TASKS[:1]:
        context.board().add(draft, context.actor())
    if not _work(context, plain):
        return 1
    code = _tell(context, as_json, cast is not None, bool(elsewhere))
    if serves:
        _serve(home)
    return code


def _serve(home: Path) -> None:
    """Serve the dashboard until ctrl-c."""
    from genba.entrypoints.cli.inspect.serve_command import serve  # noqa: PLC0415  (only who asks for it)

    os.chdir(home)
    click.get_current_context().invoke(serve, port=0, open_browser=True)


def _work(context: ProjectContext, plain: bool) -> bool:
    """The same as `genba work --workers 4 --until-empty`. False where it was stopped before."""

    def open_fleet(listener: Callable[[FleetEvent], None]) -> contextlib.AbstractAsyncContextManager[Working]:
        from genba.wiring.sessions.fleet import Fleet  # noqa: PLC0415  (the engine is slow to import)

        def on_event(event: FleetEvent) -> None:
            _lead(context.layout.main, event)
            listener(event)

        return Fleet.open(context, workers=_WORKERS, listener=on_event)

    with watching(plain) as view:
        summary = asyncio.run(drive(open_fleet, view, until_empty=True))
    if summary.ended is not WorkEndReason.EMPTY:
        click.echo(ending_line(summary), err=True)
        show_hint(f"cd {shlex.quote(str(context.layout.main))} && genba work --until-empty   goes on")
        return False
    return True


def _lead(home: Path, event: FleetEvent) -> None:
    """The slow agent waits for a file in its worktree, until the quick one has landed."""
    if event.kind is FleetEventKind.MERGED and event.task == _QUICK:
        for tree in home.glob(f".worktrees/genba-{_SLOW}-*"):
            (tree / ".landed").touch()


def _tell(context: ProjectContext, as_json: bool, is_real: bool, elsewhere: bool) -> int:
    from genba.entrypoints.cli.start.demo_story import gather  # noqa: PLC0415  (only when there is something to tell)
    from genba.entrypoints.cli.start.demo_view import next_lines, story_lines  # noqa: PLC0415

    with Progress("looking at every commit of main again", quiet=as_json):
        story = run_async(gather(context, _BRANCH))
    if as_json:
        print_json(story)
        return 0 if story.holds else 1
    click.echo("")
    for line in (*story_lines(story, _ANSWERS), "", *next_lines(_next(story.folder, is_real, elsewhere))):
        click.echo(_coloured(line), color=False if os.environ.get("NO_COLOR") else None)
    return 0 if story.holds else 1


def _coloured(line: str) -> str:
    """The same line; what became of each issue is seen at a glance, where there are colours."""
    for status, colour in _COLOURS.items():
        line = line.replace(f"  {status}", f"  {click.style(status, fg=colour, bold=True)}", 1)
    return line


def _next(folder: str, is_real: bool, elsewhere: bool) -> list[tuple[str, str]]:
    """What to type next, and what for."""
    from genba.entrypoints.cli.commands import COMMANDS  # noqa: PLC0415  (it names this module)

    program = _unfound_program()
    link = f"mkdir -p ~/.local/bin && ln -sf {shlex.quote(program)} ~/.local/bin/genba"
    lines = [(link, "links genba into your PATH")] if program else []
    if elsewhere:
        lines.append((f"unset {_DATABASE}", "the tasks of the demo are in a file of its own"))
    lines.append((f"cd {shlex.quote(folder)} && genba status", "look around"))
    if is_real:
        lines.append(('genba task add "…" && genba work', "give it another one"))
    else:
        lines.append(("genba work --until-empty", "goes on, once you have answered"))
    if "serve" in COMMANDS:
        lines.append(("genba serve", "the same in a browser"))
    return [*lines, ("genba init", "in your own repository")]


def _repository(folder: Path | None, cast: Cast | None) -> Path:
    """A repository of the demo's own; a folder with something in it is left alone."""
    home = folder
    try:
        home = folder if folder is not None else Path(tempfile.mkdtemp(prefix="genba-demo-"))
        home.mkdir(parents=True, exist_ok=True)
        if any(home.iterdir()):
            raise GenbaError(f"{home} is not empty", unchanged="nothing was changed.", hint="genba demo --folder NEW")
        shutil.copytree(_FILES, home, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        if cast is not None:
            recast(home, cast)
        for words in _STEPS:
            do_git(home, *words)
        return home.resolve()
    except (OSError, ValueError, GitError) as error:
        why = getattr(error, "strerror", None) or str(error)
        where = home or "a temporary folder"
        raise GenbaError(f"the demo cannot be made in {where}: {why}", hint="genba demo --folder NEW") from error


def _unfound_program() -> str:
    """This program, where its name alone would not find it. Its folder has tools that no project should use."""
    here = Path(sys.argv[0]).resolve()
    found = shutil.which("genba")
    return "" if found is not None and Path(found).resolve() == here else str(here)
