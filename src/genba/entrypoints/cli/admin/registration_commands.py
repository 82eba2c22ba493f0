"""`genba agent register` and `genba agent passkey`: agents that come by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from genba.domain.errors import UsageError
from genba.entrypoints.cli.project_lookup import project_here
from genba.entrypoints.cli.rendering.json_output import print_json
from genba.entrypoints.cli.rendering.printable import printable
from genba.entrypoints.cli.rendering.tables import table

if TYPE_CHECKING:
    from genba.application.project.agent_registration import Registration


@click.command("register")
@click.argument("name")
@click.option("--manager/--worker", default=None, help="Has others work, or works itself. By default a worker.")
@click.option("--role", default="developer", show_default=True, help="What it is good at, in a word.")
@click.option("--capability", "capabilities", multiple=True, metavar="WORD", help="A type or label of tasks it takes.")
@click.option("--prompt", type=click.Path(path_type=Path), help="A file with its system prompt.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def register(
    name: str, manager: bool | None, role: str, capabilities: tuple[str, ...], prompt: Path | None, as_json: bool
) -> None:
    """Register an external agent: print its id and its passkey.

    The passkey is shown once.
    """
    from genba.application.project import agent_registration as registering  # noqa: PLC0415
    from genba.application.verification.decisions import people_only  # noqa: PLC0415  (only this command needs the blackboard)

    text = _read(prompt) if prompt is not None else ""
    context = project_here()
    people_only(context, "let agents in")
    welcome = registering.register(
        context, name, manager=manager, role=role, capabilities=capabilities, system_prompt=text
    )
    _show(welcome, f"{name} can come now, as a {welcome.agent.hierarchy}.", as_json)


@click.group("passkey")
def passkey() -> None:
    """Replace or revoke the passkey of an external agent."""


@passkey.command("rotate")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def rotate(name: str, as_json: bool) -> None:
    """Replace the passkey, and end the old connections."""
    from genba.application.project import agent_registration as registering  # noqa: PLC0415
    from genba.application.verification.decisions import people_only  # noqa: PLC0415  (only this command needs the blackboard)

    context = project_here()
    people_only(context, "change a passkey")
    _show(registering.rotate(context, name), f"{name} has a new passkey; the old one is good no more.", as_json)


@passkey.command("revoke")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def revoke(name: str, as_json: bool) -> None:
    """Revoke the passkey, and end its connections."""
    from genba.application.project import agent_registration as registering  # noqa: PLC0415
    from genba.application.verification.decisions import people_only  # noqa: PLC0415  (only this command needs the blackboard)

    context = project_here()
    people_only(context, "take a passkey away")
    agent = registering.revoke(context, name)
    if as_json:
        print_json({"agent": agent})
        return
    click.echo(printable(f"{name} cannot come any more. What it has committed is kept, and its tasks are free."))


def _show(welcome: Registration, message: str, as_json: bool) -> None:
    if as_json:
        print_json({"agent": welcome.agent, "project_id": welcome.project, "passkey": welcome.passkey})
        return
    click.echo(printable(message))
    click.echo()
    rows = [
        ("agent id", welcome.agent.id),
        ("project id", welcome.project),
        ("passkey", f"{welcome.passkey}   shown once: keep it"),
    ]
    for line in table(rows):
        click.echo(f"  {line}")
    click.echo()
    click.echo("next: let your agent know it, and connect it")
    click.echo(f"  export GENBA_AGENT_ID={welcome.agent.id} GENBA_PASSKEY={welcome.passkey}")
    click.echo("  genba mcp install claude-code")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"{path} cannot be read: {why}", unchanged="nothing was changed.") from error
