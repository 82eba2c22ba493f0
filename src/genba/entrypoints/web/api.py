"""The API: JSON under `/api`, described at `/api/openapi.json`. A request in, one call, its answer out."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from genba.domain.decoding import fitted
from genba.domain.errors import ConfigurationError, GenbaError, UsageError, kind_of
from genba.entrypoints.web.api_fleet import FLEET
from genba.entrypoints.web.api_tasks import TASKS
from genba.entrypoints.web.api_views import PICTURES
from genba.entrypoints.web.openapi import described
from genba.entrypoints.web.operations import Failure, FailureAnswer, Given, Operation
from genba.entrypoints.web.security import CSRF_HEADER, csrf_fits, visitor_of
from genba.entrypoints.web.site import Site, status_of

OPERATIONS: tuple[Operation, ...] = (*TASKS, *FLEET, *PICTURES)
_JSON = "application/json"


def routes(site: Site) -> list[BaseRoute]:
    description = msgspec.json.encode(described(OPERATIONS, site.queries.project))

    async def openapi(_: Request) -> Response:
        return Response(description, media_type=_JSON)

    async def docs(request: Request) -> Response:
        return await site.page(request, "api.html", "", operations=OPERATIONS)

    by_path: dict[str, list[Operation]] = {}
    for each in OPERATIONS:
        by_path.setdefault(each.path, []).append(each)
    found: list[BaseRoute] = [
        Route("/api/openapi.json", endpoint=openapi, methods=["GET"]),
        Route("/api/docs", endpoint=docs, methods=["GET"]),
    ]
    for path, here in by_path.items():
        found.append(Route(path, endpoint=_answering(site, here), methods=[each.method for each in here]))
    return found


def _answering(site: Site, operations: list[Operation]) -> Callable[[Request], Awaitable[Response]]:
    known = {each.method: each for each in operations}

    async def answer(request: Request) -> Response:
        operation = known["GET" if request.method == "HEAD" else request.method]
        try:
            given = await _given(request, operation)
            answered = await operation.call(site, given)
        except GenbaError as error:
            return failed(error)
        if operation.changes:
            site.hub.wake()
        return Response(_encoded(answered), media_type=_JSON)

    return answer


def failed(error: GenbaError) -> Response:
    """An error as a program reads it."""
    result = Failure(
        kind=kind_of(error),
        message=error.message,
        problems=tuple(error.problems) if isinstance(error, ConfigurationError) else (),
        unchanged=error.unchanged,
        hint=error.hint,
        exit_code=error.exit_code,
    )
    return Response(_encoded(FailureAnswer(error=result)), status_of(error), media_type=_JSON)


async def _given(request: Request, operation: Operation) -> Given:
    """What came with the request; refused where it does not fit what is described."""
    if operation.changes and not csrf_fits(visitor_of(request), request.headers.get(CSRF_HEADER, "")):
        raise UsageError("the page that asks is too old", unchanged="nothing was changed.", hint="load it again")
    path = {name: _fitting(kind, request.path_params[name], name) for name, kind in operation.parameters.items()}
    return Given(path=path, query=_query(request, operation), body=await _body(request, operation))


def _query(request: Request, operation: Operation) -> Any:
    known = set(operation.query.__struct_fields__)
    named = request.query_params.multi_items()
    if len({name for name, _ in named}) != len(named):
        raise _unfit("a parameter is there more than once", operation)
    strange = [name for name, _ in named if name not in known]
    if strange:
        raise _unfit(f'there is no parameter "{strange[0][:80]}"', operation)
    return _fitting(operation.query, dict(named), "")


async def _body(request: Request, operation: Operation) -> Any:
    if operation.body is None:
        return None
    if request.headers.get("content-type", _JSON).partition(";")[0].strip().lower() != _JSON:
        raise _unfit("the body is not JSON: say Content-Type: application/json", operation)
    raw = await request.body()
    try:
        return fitted(_counted(msgspec.json.decode(raw)), operation.body)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
        raise _unfit(f"the body does not fit: {error}", operation) from error


def _counted(value: Any) -> Any:
    """The same value; a whole number is one, however it is written: 3.0 is 3 in JSON."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _counted(inner) for key, inner in value.items()}
    return [_counted(inner) for inner in value] if isinstance(value, list) else value


def _fitting(kind: Any, value: Any, name: str) -> Any:
    try:
        return fitted(value, kind, strict=False)
    except msgspec.ValidationError as error:
        message = f"{name}: {error}" if name else str(error)
        raise UsageError(message, unchanged="nothing was changed.", hint="see /api/docs") from error


def _unfit(message: str, operation: Operation) -> UsageError:
    return UsageError(message, unchanged="nothing was changed.", hint=f"see {operation.path} in /api/docs")


def _encoded(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_whole(msgspec.to_builtins(value)))


def _whole(value: Any) -> Any:
    """The same value; what is half a character is shown as its number."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_whole(key): _whole(inner) for key, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list | tuple) else value
