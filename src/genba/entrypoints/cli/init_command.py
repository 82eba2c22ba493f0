"""`genba init`: the first settings of a project."""

import click

from genba.entrypoints.cli.failures import show_hint, show_warning
from genba.entrypoints.cli.houses import house_here, run_async
from genba.entrypoints.cli.json_output import print_json
from genba.entrypoints.cli.printable import in_one_line
from genba.entrypoints.cli.tables import table
from genba.wiring.founding import Founded, found, repository_of

_HERE = "."


@click.command("init")
@click.option(
    "--github",
    "repository",
    is_flag=False,
    flag_value=_HERE,
    metavar="[OWNER/NAME]",
    help="The issues are those of this repository on GitHub; without a name, of the remote origin.",
)
@click.option("--name", default="", help="The name of the project; by default that of its folder.")
@click.option("--adapter", default="", metavar="TYPE", help="Who works: claude-code, codex, opencode, …")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def init(repository: str | None, name: str, adapter: str, as_json: bool) -> None:
    """Write the settings of this project, made of what is found here. Nothing that is there is changed."""
    house = house_here()
    named = None if repository is None else repository_of(house, "" if repository == _HERE else repository)
    founded = found(house, name=name, adapter=adapter, repository=named)
    problem, seen, hint = "", "", ""
    if named is not None:
        from genba.wiring.access import try_access  # noqa: PLC0415  (only who joins GitHub needs it)

        access = run_async(try_access(house_here()))
        problem, seen, hint = access.problem, access.seen, access.hint
    if as_json:
        print_json({"founded": founded, "access": {"problem": problem, "seen": seen}})
        return
    click.echo(f"{'added the tracker to' if founded.added else 'wrote'} {founded.path}")
    for line in table(_rows(founded, seen)):
        click.echo(f" {in_one_line(line)}")
    if problem:
        show_warning(f"{founded.repository} cannot be worked on yet: {problem}")
    show_hint(f"{hint}\n{_next(founded, True)}" if hint else _next(founded, bool(problem)))


def _rows(founded: Founded, seen: str) -> list[tuple[str, str, str]]:
    rows = [("project", founded.project, "")]
    if not founded.added:
        who = founded.adapter or "nobody yet"
        rows.append(("works", who, "" if founded.adapter else "name a tool under `agents`"))
        goals = " · ".join(f"{goal} ({command})" for goal, command in founded.goals)
        rows.append(("done means", goals or "nothing yet: name goals under `dod`", ""))
    if founded.repository:
        rows.append(("issues", f"{founded.repository}{f' at {founded.url}' if founded.url else ' on GitHub'}", seen))
    return rows


def _next(founded: Founded, problem: bool) -> str:
    if not founded.repository:
        return 'commit it, then: genba task add "what is to be done"'
    return "commit it, then: genba doctor" if problem else "commit it, then: genba sync"
