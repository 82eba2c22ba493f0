"""The GraphQL door: documents over GitHub's own schema, answered from the same state as REST.

A field that this GitHub has no answer for is an error with a name of its own (NOT_IMPLEMENTED), never an empty value
that a test could take for the truth.
"""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests.standins.github import access, graphql_issues, graphql_people, graphql_projects, graphql_pulls
from tests.standins.github.graphql_asking import Ask, Fields, Session, kind_of
from tests.standins.github.graphql_limits import Measure, measure
from tests.standins.github.graphql_mutations import MUTATIONS
from tests.standins.github.graphql_schema import load
from tests.standins.github.hub import Hub, Refused
from tests.standins.github.state import Project, ProjectField, Token, User

if TYPE_CHECKING:
    from graphql import DocumentNode, GraphQLError, GraphQLResolveInfo, GraphQLSchema, OperationDefinitionNode

_TOLERATED = "OverlappingFieldsCanBeMergedRule"
"""GitHub answers documents that break it."""


@dataclass(slots=True)
class Answer:
    """What goes back, and what is known of the request."""

    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 200
    operation: str = ""
    mutation: bool = False
    cost: int = 0


def answer(hub: Hub, viewer: Token, schema_path: Path, request: bytes) -> Answer:
    try:
        asked = json.loads(request)
        document = asked["query"]
        variables = asked.get("variables") or {}
    except (ValueError, KeyError, TypeError):
        return Answer({"message": "Problems parsing JSON"}, status=400)
    schema = load(schema_path)
    made = _prepared(schema_path, str(document), asked.get("operationName"))
    if isinstance(made, list):
        return Answer({"errors": made}, headers=_headers(hub, viewer))
    parsed, operation = made
    wrong = _wrong_values(schema, operation, variables)
    if wrong:
        return Answer({"errors": wrong}, headers=_headers(hub, viewer))
    known = Answer({}, operation=operation.name.value if operation.name else "")
    known.mutation = operation.operation.value == "mutation"
    weight = _weigh(schema, parsed, operation, variables)
    known.cost = weight.cost
    if not _pay(hub, viewer, known.cost):
        output = f"API rate limit already exceeded for user ID {viewer.user.id}."
        known.body = {"errors": [{"type": "RATE_LIMITED", "code": "graphql_rate_limit", "message": output}]}
    elif weight.errors:
        known.body = {"errors": weight.errors}
    else:
        session = Session(hub=hub, viewer=viewer, cost=known.cost, nodes=weight.nodes)
        known.body = _execute(schema, parsed, operation, variables, session)
    known.headers = _headers(hub, viewer)
    return known


@lru_cache(maxsize=64)
def _prepared(
    schema_path: Path, text: str, name: str | None
) -> "tuple[DocumentNode, OperationDefinitionNode] | list[dict[str, Any]]":
    """The document and its operation, or what is wrong with it: judged once, however often it is sent."""
    from graphql import GraphQLError, parse, specified_rules, validate
    from graphql.utilities import get_operation_ast

    try:
        parsed = parse(text)
    except GraphQLError as error:
        return [_plain(error)]
    rules = [rule for rule in specified_rules if rule.__name__ != _TOLERATED]
    errors = validate(load(schema_path), parsed, rules)
    if errors:
        return [_plain(error) for error in errors]
    operation = get_operation_ast(parsed, name)
    if operation is None:
        return [{"message": "An operation name is required"}]
    return parsed, operation


def _wrong_values(
    schema: "GraphQLSchema", operation: "OperationDefinitionNode", variables: dict[str, Any]
) -> list[dict[str, Any]]:
    from graphql.execution.values import get_variable_values

    made = get_variable_values(schema, operation.variable_definitions or (), variables)
    return [_plain(error) for error in made] if isinstance(made, list) else []


def _plain(error: "GraphQLError") -> dict[str, Any]:
    places = [{"line": one.line, "column": one.column} for one in error.locations or ()]
    return {"message": error.message, "locations": places}


def _weigh(
    schema: "GraphQLSchema", parsed: "DocumentNode", operation: "OperationDefinitionNode", variables: dict[str, Any]
) -> Measure:
    from graphql import FragmentDefinitionNode, value_from_ast_untyped

    fragments = {one.name.value: one for one in parsed.definitions if isinstance(one, FragmentDefinitionNode)}
    defaults = {
        one.variable.name.value: value_from_ast_untyped(one.default_value)
        for one in operation.variable_definitions or ()
        if one.default_value is not None
    }
    return measure(schema, operation, fragments, {**defaults, **variables})


# what it costs


def _pay(hub: Hub, viewer: Token, cost: int) -> bool:
    """Take the points of a request; False where there are not enough left in this hour."""
    access.new_window(hub, viewer)
    if viewer.graphql_used + cost > viewer.limit:
        return False
    viewer.graphql_used += cost
    return True


def _headers(hub: Hub, viewer: Token) -> dict[str, str]:
    access.new_window(hub, viewer)
    scopes = ", ".join(sorted(viewer.scopes))
    return {**access.limits(viewer, "graphql"), "x-oauth-scopes": scopes, "x-accepted-oauth-scopes": "repo"}


# answering


def _execute(
    schema: "GraphQLSchema",
    parsed: "DocumentNode",
    operation: "OperationDefinitionNode",
    variables: dict[str, Any],
    session: Session,
) -> dict[str, Any]:
    from graphql import execute_sync

    done = execute_sync(
        schema,
        parsed,
        context_value=session,
        variable_values=variables,
        operation_name=operation.name.value if operation.name else None,
        field_resolver=_resolve,
        type_resolver=_type_of,
    )
    body: dict[str, Any] = {"data": done.data}
    if done.errors:
        body["errors"] = [_error(error) for error in done.errors]
    return body


def _resolve(source: Any, info: "GraphQLResolveInfo[Session]", **args: Any) -> Any:
    ask = Ask(info.context, args)
    kind, name = info.parent_type.name, info.field_name
    if kind == "Mutation":
        return _mutate(ask, name)
    found = _TYPES.get(kind, {}).get(name)
    if found is not None:
        return found(ask, source)
    if isinstance(source, dict) and name in source:
        return source[name]
    raise Refused(200, f"the GitHub of the tests has no {kind}.{name}", kind="NOT_IMPLEMENTED")


def _mutate(ask: Ask, name: str) -> dict[str, Any]:
    change = MUTATIONS.get(name)
    if change is None:
        raise Refused(200, f"the GitHub of the tests has no Mutation.{name}", kind="NOT_IMPLEMENTED")
    given = ask.args["input"]
    return {"clientMutationId": given.get("clientMutationId"), **change(ask, given)}


def _type_of(value: Any, _info: Any, _kind: Any) -> str:
    return kind_of(value)


def _error(error: "GraphQLError") -> dict[str, Any]:
    made = {**_plain(error), "path": error.path}
    refused = error.original_error
    if isinstance(refused, Refused):
        lines = [one if isinstance(one, str) else one.get("message") for one in refused.errors]
        made["message"] = ", ".join(one for one in lines if one) or refused.message
        made["type"] = refused.kind
    elif refused is not None:
        raise refused  # a mistake of ours is no answer of GitHub's
    return made


# the roots


def _viewer(ask: Ask, _: Any) -> User:
    return ask.user


def _nodes(ask: Ask, _: Any) -> list[Any]:
    """Each thing by its id; one that is nowhere is an error of its own, and the others come all the same."""
    found: list[Any] = []
    for node in ask.args["ids"]:
        try:
            found.append(_shown(ask, ask.session.node(node)))
        except Refused as refused:
            found.append(refused)
    return found


def _shown(ask: Ask, thing: Any) -> Any:
    """A thing as the tables have it: fields of boards know their board."""
    if isinstance(thing, ProjectField):
        for user in ask.hub.users.values():
            for project in user.projects.values():
                if thing in project.fields:
                    return graphql_projects.Placed(thing, project)
    if isinstance(thing, Project):
        graphql_projects.may_see(ask, thing)
    return thing


def _resource(ask: Ask, _: Any) -> Any:
    parts = urlsplit(str(ask.args["url"])).path.strip("/").split("/")
    if len(parts) == 1:
        return graphql_people.owner_of(ask, parts[0])
    repository = ask.session.repository("/".join(parts[:2]))
    if len(parts) == 4 and parts[2] in ("issues", "pull") and parts[3].isdigit():
        return repository.issues.get(int(parts[3]))
    return repository if len(parts) == 2 else None


def _rate(ask: Ask, _: Any) -> dict[str, Any]:
    viewer = ask.session.viewer
    reset = datetime.fromtimestamp(viewer.reset, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "__typename": "RateLimit",
        "cost": ask.session.cost,
        "limit": viewer.limit,
        "remaining": viewer.limit - viewer.graphql_used,
        "used": viewer.graphql_used,
        "resetAt": reset,
        "nodeCount": ask.session.nodes,
    }


_QUERY: Fields = {
    "viewer": _viewer,
    "rateLimit": _rate,
    "node": lambda ask, _: _shown(ask, ask.session.node(str(ask.args["id"]))),
    "nodes": _nodes,
    "repository": lambda ask, _: ask.session.repository(f"{ask.args['owner']}/{ask.args['name']}"),
    "repositoryOwner": lambda ask, _: graphql_people.owner_of(ask, ask.args["login"]),
    "organization": lambda ask, _: graphql_people.person(ask, ask.args["login"], "Organization"),
    "user": lambda ask, _: graphql_people.person(ask, ask.args["login"], "User"),
    "resource": _resource,
    "search": graphql_projects.search,
}

_TYPES: dict[str, Fields] = {
    "Query": _QUERY,
    **graphql_people.TYPES,
    **graphql_issues.TYPES,
    **graphql_pulls.TYPES,
    **graphql_projects.TYPES,
}
