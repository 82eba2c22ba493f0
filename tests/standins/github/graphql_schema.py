"""GitHub's GraphQL schema, from the file that `make clis` fetched."""

import gc
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphql import GraphQLSchema

_DESCRIPTION = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"""')


@lru_cache(maxsize=2)
def load(path: Path) -> "GraphQLSchema":
    """The schema without its descriptions, once for each process: half a second, a third of what it takes with them."""
    try:
        from graphql import build_ast_schema, parse
    except ImportError as error:
        raise RuntimeError(
            "the GraphQL of the GitHub for tests needs graphql-core: pip install graphql-core"
        ) from error
    text = _DESCRIPTION.sub("", path.read_text(encoding="utf-8"))
    collecting = gc.isenabled()
    gc.disable()  # nothing of a million small nodes is garbage before the end
    try:
        return build_ast_schema(parse(text, no_location=True), assume_valid=True)
    finally:
        if collecting:
            gc.enable()
