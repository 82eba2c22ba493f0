"""`genba schema NAME`: the JSON Schema of a file that users write."""

import click
import msgspec

from genba.definitions.schemas import FILES, json_schema
from genba.domain.errors import NotFoundError
from genba.domain.problems import did_you_mean
from genba.entrypoints.cli.rendering.tables import table
from genba.wiring import adapter_files


@click.command("schema")
@click.argument("name", required=False)
def schema(name: str | None) -> None:
    """Print the JSON Schema NAME; without NAME, list them."""
    schemas = {**FILES, **adapter_files()}
    if name is None:
        for line in table((key, message) for key, (_, message) in sorted(schemas.items())):
            click.echo(line)
        return
    if name not in schemas:
        raise NotFoundError(f'there is no schema "{name}"', hint=did_you_mean(name, schemas))
    kind, title = schemas[name]
    click.echo(msgspec.json.format(msgspec.json.encode(json_schema(kind, title)), indent=2).decode())
