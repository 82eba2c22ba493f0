"""What a GraphQL document costs, and which documents are too large to be answered: GitHub's published rules.

Each connection is read once for each thing that the lists above it can bring. All these reads, divided by a hundred,
are the points of the document, and at least one. What all lists together can bring is limited too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphql import FieldNode, FragmentDefinitionNode, GraphQLSchema, OperationDefinitionNode, SelectionSetNode
    from graphql.type import GraphQLNamedType

MOST_PER_PAGE = 100
MOST_NODES = 500_000


@dataclass(slots=True)
class Measure:
    """What a document comes to, and what GitHub refuses it for."""

    requests: int = 0
    nodes: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)

    @property
    def cost(self) -> int:
        return max(1, round(self.requests / 100))


@dataclass(slots=True)
class _Reader:
    schema: "GraphQLSchema"
    fragments: "Mapping[str, FragmentDefinitionNode]"
    variables: Mapping[str, Any]
    measure: Measure

    def read(self, parent: "GraphQLNamedType | None", chosen: "SelectionSetNode", factor: int, path: list[str]) -> None:
        """Read the fields of a type of which there can be `factor` things."""
        from graphql import FieldNode, FragmentSpreadNode, InlineFragmentNode

        for selection in chosen.selections:
            if isinstance(selection, FieldNode):
                self._field(parent, selection, factor, path)
            elif isinstance(selection, InlineFragmentNode):
                condition = selection.type_condition
                kind = self.schema.get_type(condition.name.value) if condition else parent
                self.read(kind, selection.selection_set, factor, path)
            elif isinstance(selection, FragmentSpreadNode):
                fragment = self.fragments[selection.name.value]
                kind = self.schema.get_type(fragment.type_condition.name.value)
                self.read(kind, fragment.selection_set, factor, path)

    def _field(self, parent: "GraphQLNamedType | None", node: "FieldNode", factor: int, path: list[str]) -> None:
        from graphql import get_named_type

        described = getattr(parent, "fields", {}).get(node.name.value)
        if described is None or node.selection_set is None:
            return
        here = [*path, node.alias.value if node.alias else node.name.value]
        kind = get_named_type(described.type)
        if kind.name.endswith("Connection") and {"first", "last"} <= described.args.keys():
            self.measure.requests += factor
            factor *= self._size(node, here)
            self.measure.nodes += factor
        elif node.name.value == "nodes" and "ids" in described.args:
            self.measure.requests += factor
            factor *= max(1, len(self._argument(node, "ids") or ()))
        self.read(kind, node.selection_set, factor, here)

    def _size(self, node: "FieldNode", path: list[str]) -> int:
        from graphql import FieldNode

        name = node.name.value
        first, last = self._argument(node, "first"), self._argument(node, "last")
        wanted = first if first is not None else last
        which = "first" if first is not None else "last"
        assert node.selection_set is not None
        brings = any(
            not isinstance(one, FieldNode) or one.name.value in ("nodes", "edges")
            for one in node.selection_set.selections
        )
        if wanted is None:
            if brings:
                output = f"You must provide a `first` or `last` value to properly paginate the `{name}` connection."
                self._refuse("MISSING_PAGINATION_BOUNDARIES", output, path)
            return 0
        if wanted > MOST_PER_PAGE:
            output = (
                f"Requesting {wanted} records on the `{name}` connection exceeds the `{which}` limit "
                f"of {MOST_PER_PAGE} records."
            )
            self._refuse("EXCESSIVE_PAGINATION", output, path)
        if wanted < 0:
            output = f"`{which}` on the `{name}` connection cannot be less than zero."
            self._refuse("INVALID_CURSOR_ARGUMENTS", output, path)
        return max(int(wanted), 0)

    def _argument(self, node: "FieldNode", name: str) -> Any:
        from graphql import Undefined, value_from_ast_untyped

        for argument in node.arguments or ():
            if argument.name.value == name:
                value = value_from_ast_untyped(argument.value, dict(self.variables))
                return None if value is Undefined else value
        return None

    def _refuse(self, kind: str, message: str, path: list[str]) -> None:
        self.measure.errors.append({"type": kind, "path": path, "message": message})


def measure(
    schema: "GraphQLSchema",
    operation: "OperationDefinitionNode",
    fragments: "Mapping[str, FragmentDefinitionNode]",
    variables: Mapping[str, Any],
) -> Measure:
    """Weigh a document that is known to be valid."""
    made = Measure()
    root = schema.get_root_type(operation.operation)
    start = operation.operation.value
    name = f"{start} {operation.name.value}" if operation.name else start
    _Reader(schema, fragments, variables, made).read(root, operation.selection_set, 1, [name])
    if made.nodes > MOST_NODES:
        output = (
            f"This query requests up to {made.nodes:,} possible nodes which exceeds the maximum limit "
            f"of {MOST_NODES:,}."
        )
        made.errors.append({"type": "MAX_NODE_LIMIT_EXCEEDED", "message": output})
    return made
