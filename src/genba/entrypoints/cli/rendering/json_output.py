"""Answers for programs: one JSON value on stdout."""

from typing import Any

import click
import msgspec


def print_json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
