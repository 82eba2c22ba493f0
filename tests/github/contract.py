"""The contract of GitHub: every request and answer of the tests is held to GitHub's OpenAPI and its GraphQL schema."""

import json
import threading
from functools import cached_property
from pathlib import Path
from typing import Any

from graphql import GraphQLError, parse, validate
from graphql.execution.values import get_variable_values
from graphql.language import DocumentNode, OperationDefinitionNode

from tests.github.openapi import RestContract, rest_contract
from tests.standins.github.graphql_schema import load
from tests.standins.github.recorded import Exchange

_Document = tuple[DocumentNode | None, tuple[str, ...]]
"""A document, where it is one, and what is wrong with it."""


class Contract:
    def __init__(self, openapi: Path, sdl: Path) -> None:
        self._openapi = openapi
        self._sdl = sdl
        self._lock = threading.Lock()
        self._documents: dict[str, _Document] = {}
        self.violations: list[str] = []
        self.checked = 0

    def read(self) -> None:
        load(self._sdl)
        _ = self._rest

    def check(self, exchange: Exchange) -> list[str]:
        """Judge one exchange and keep what is wrong with it."""
        path = exchange.target.partition("?")[0]
        with self._lock:
            found = self._graphql(exchange) if path.endswith("/graphql") else list(self._rest.violations(exchange))
            self.violations += found
            self.checked += 1
        return found

    def watch(self, exchange: Exchange) -> None:
        """Judge what a server tells of."""
        self.check(exchange)

    def check_graphql(self, document: str, variables: dict[str, Any] | None = None) -> list[str]:
        """What is wrong with a document, and with the values that go with it."""
        known = self._documents.get(document) or self._read_document(document)
        self._documents[document] = known
        parsed, wrong = known
        if parsed is None or wrong:
            return list(wrong)
        values: list[str] = []
        for definition in parsed.definitions:
            if isinstance(definition, OperationDefinitionNode):
                made = get_variable_values(load(self._sdl), definition.variable_definitions or (), variables or {})
                if isinstance(made, list):
                    values += [f"GraphQL: {error.message}" for error in made]
        return values

    def _read_document(self, document: str) -> _Document:
        try:
            parsed = parse(document)
        except GraphQLError as error:
            return None, (f"GraphQL: {error.message}",)
        return parsed, tuple(f"GraphQL: {error.message}" for error in validate(load(self._sdl), parsed))

    def take(self) -> list[str]:
        """What was wrong since the last time, without saying it twice."""
        with self._lock:
            found, self.violations = self.violations, []
        return list(dict.fromkeys(found))

    @cached_property
    def _rest(self) -> RestContract:
        return rest_contract(self._openapi)

    def _graphql(self, exchange: Exchange) -> list[str]:
        try:
            sent = json.loads(exchange.sent)
        except ValueError as error:
            return [f"GraphQL: the request is no JSON: {error}"]
        found = self.check_graphql(sent.get("query", ""), sent.get("variables"))
        if exchange.status == 200 and not exchange.struck:
            answered = json.loads(exchange.answered)
            if not answered.keys() <= {"data", "errors", "extensions"}:
                found.append(f"GraphQL: the answer has {sorted(answered)}")
        return found
