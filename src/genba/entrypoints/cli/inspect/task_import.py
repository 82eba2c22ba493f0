"""`genba task import`: tasks that were kept by another tool."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from genba.definitions.task_import.source import KINDS, fitted, read_source
from genba.domain.errors import StateConflictError
from genba.domain.goals.goal import what_it_runs
from genba.domain.tasks.task import Actor, ActorKind
from genba.domain.tasks.task_import import ImportedTask, ImportNote, ImportOutcome, TaskSource
from genba.entrypoints.cli.failures import show_hint
from genba.entrypoints.cli.project_lookup import project_here
from genba.entrypoints.cli.rendering.json_output import print_json
from genba.entrypoints.cli.rendering.tables import table
from genba.entrypoints.cli.rendering.task_view import goal_line
from genba.execution.verification.policy import known_types
from genba.wiring import ProjectContext


@click.command("import")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--from", "kind", type=click.Choice(KINDS), help="The tool; by default what PATH holds.")
@click.option("--dry-run", is_flag=True, help="Show what would be created; write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def import_tasks(path: Path, kind: str | None, dry_run: bool, as_json: bool) -> None:
    """Import tasks of another tool, from PATH.

    PATH is the SQLite database of agentmine, a folder with one, or a folder of Markdown files with front matter. A task
    that was imported before is not created again. The source is only read.
    """
    context = project_here()
    actor = context.actor()
    if actor.kind is not ActorKind.HUMAN:
        raise StateConflictError(
            "an agent may not import tasks",
            unchanged="nothing was changed.",
            hint='genba task add "what is to be done"',
        )
    types = {name: context.task_type(name) for name in known_types(context.project.rules)}
    source = fitted(read_source(path, kind or "", context.layout.main), types, _agents(context))
    done = _written(context, source, actor, dry_run)
    if as_json:
        print_json({"from": source.kind, "dry_run": dry_run, "tasks": done, "notes": source.notes})
        return
    for line in _lines(source, done, dry_run):
        click.echo(line)
    show_hint("without --dry-run the tasks are created" if dry_run else "genba task list")


def _written(context: ProjectContext, source: TaskSource, actor: Actor, dry_run: bool) -> tuple[ImportedTask, ...]:
    if not dry_run or context.has_board():
        return context.board().import_tasks(source.tasks, actor, keep=not dry_run)
    from genba.blackboard.tasks.board import Blackboard  # noqa: PLC0415  (only a dry run without a blackboard)

    with (
        tempfile.TemporaryDirectory(prefix="genba-import-") as folder,
        Blackboard.open(str(Path(folder) / "genba.db"), "dry-run") as board,
    ):
        return board.import_tasks(source.tasks, actor, keep=False)


def _agents(context: ProjectContext) -> frozenset[str]:
    names = set(context.registry.folders())
    if context.has_board():
        from genba.application.project.agent_registration import registered  # noqa: PLC0415  (only where agents can have registered)

        names |= {each.name for each in registered(context)}
    return frozenset(names)


def _lines(source: TaskSource, done: tuple[ImportedTask, ...], dry_run: bool) -> Iterator[str]:
    created = [each for each in done if each.outcome is ImportOutcome.CREATED]
    verb = "would be created" if dry_run else "created"
    yield from table(
        (f"#{each.task.number}", verb if each in created else "was here already", each.task.status, each.task.priority,
         each.task.type, f"{each.task.title}  ({each.source_id})")
        for each in done
    )  # fmt: skip
    goals = [(each.task.number, goal) for each in created for goal in each.task.goals]
    if goals:
        yield ""
        yield "goals:"
        yield from table(
            (f"  #{number}", "runs a program" if what_it_runs(goal) else "", goal_line(goal)) for number, goal in goals
        )
    lines = [("", note) for note in source.notes] + [(f"{e.source_id}: ", note) for e in created for note in e.notes]
    if lines:
        yield ""
        yield from table(
            _note(name, note) for name, note in sorted(lines, key=lambda each: not each[1].needs_attention)
        )
    attention = sum(note.needs_attention for _, note in lines)
    yield ""
    skipped = f"{len(done) - len(created)} here already"
    yield f"from {source.kind}: {len(created)} {verb}, {skipped}, {attention} notes need attention"


def _note(name: str, note: ImportNote) -> tuple[str, str, str]:
    return "needs attention" if note.needs_attention else "note", f"{name}{note.key}", note.detail
