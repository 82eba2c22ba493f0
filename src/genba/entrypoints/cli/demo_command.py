"""`genba demo`: a small repository, an agent that is caught once, and a merged commit."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from genba.domain.errors import GenbaError
from genba.domain.tasks import TaskDraft
from genba.entrypoints.cli.houses import run_async
from genba.entrypoints.cli.run_command import execute, exit_code
from genba.execution.running import RunPlan, RunResult
from genba.wiring import House, new_run_id

_FILES = Path(__file__).parent / "demo_files"
_STEPS = (
    ("init", "-q", "-b", "main"),
    ("config", "user.name", "You"),
    ("config", "user.email", "you@localhost"),
    ("config", "commit.gpgsign", "false"),
    ("add", "--", "."),
    ("commit", "-q", "-m", "Helpers for titles"),
)


_TASK = TaskDraft(
    title="Add slugify()",
    body='An article needs an address. `slugify("Tea, at 5!")` is `"tea-at-5"`: small letters and digits, joined by '
    "single dashes.",
    type="feature",
    labels=("feature",),
)


@click.command("demo")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to make the repository; by default a new one.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def demo(folder: Path | None, as_json: bool) -> int:
    """Watch an agent work, be judged, be caught once, and be merged. No model, no key."""
    home = _repository(folder)
    click.echo(f"genba demo · a small repository, one issue, one agent, no model and no key\n{home}\n", err=True)
    house = run_async(House.find(home))
    definition = house.registry.load("builder")
    task = house.board().add(_TASK, house.actor())
    plan = RunPlan(
        run=new_run_id("builder"), definition=definition, parameters={"issue": task.number}, process=os.getpid()
    )
    result = execute(house, plan, as_json, quiet=False)
    if result.merged and not as_json:
        _story(home, result)
    return exit_code(result)


def _repository(folder: Path | None) -> Path:
    """A repository of the demo's own; a folder with something in it is left alone."""
    home = folder
    try:
        home = folder if folder is not None else Path(tempfile.mkdtemp(prefix="genba-demo-"))
        home.mkdir(parents=True, exist_ok=True)
        if any(home.iterdir()):
            raise GenbaError(f"{home} is not empty", unchanged="nothing was changed.", hint="genba demo --folder NEW")
        shutil.copytree(_FILES, home, dirs_exist_ok=True)
        for words in _STEPS:
            subprocess.run(["git", *words], cwd=home, check=True)
        return home.resolve()
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        why = getattr(error, "strerror", None) or str(error)
        where = home or "a temporary folder"
        raise GenbaError(f"the demo cannot be made in {where}: {why}", hint="genba demo --folder NEW") from error


def _story(home: Path, result: RunResult) -> None:
    words = ["log", "--graph", "--format=%h %<(52,trunc)%s %an", "main"]
    log = subprocess.run(["git", *words], cwd=home, check=True, capture_output=True, text=True).stdout
    click.echo("\n what git shows\n")
    for line in log.splitlines():
        click.echo(f"   {line}")
    genba = _own_name()
    click.echo(
        "\n The agent said that all tests pass. Genba looked, showed it the gap, and merged only what held.\n"
        f"\n next   cd {home}"
        f"\n        {genba} verify 1     what was checked, on which commit"
        f"\n        {genba} task show 1"
        f"\n        {genba} logs {result.run} --prompts"
        f"\n        {genba} agent list   in a repository of your own"
    )


def _own_name() -> str:
    """What to type to get this program again: its name, or its path where the name would not be found."""
    here = Path(sys.argv[0]).resolve()
    found = shutil.which("genba")
    return "genba" if found is not None and Path(found).resolve() == here else str(here)
