"""`genba help`: the help of a command, found as people of git look for it."""

import click

from genba.domain.errors import UsageError


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def help_(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a command."""
    context = ctx.find_root()
    command = context.command
    for word in words:
        found = command.get_command(context, word) if isinstance(command, click.Group) else None
        if found is None:
            raise UsageError(f'{context.command_path} has no command "{word}"', hint=f"{context.command_path} --help")
        context = click.Context(found, info_name=word, parent=context)
        command = found
    click.echo(command.get_help(context))
