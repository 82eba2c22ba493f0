"""The scripted model server: one loopback port, every scenario under its own path, every request kept."""

import asyncio
import contextlib
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import msgspec

from tests.standins.model_server import http
from tests.standins.model_server.anthropic import Anthropic
from tests.standins.model_server.chat import ChatCompletions
from tests.standins.model_server.conversations import Asked, NoSuchTool, Text, pieces
from tests.standins.model_server.dialects import Dialect
from tests.standins.model_server.gemini import Gemini
from tests.standins.model_server.responses import Responses
from tests.standins.model_server.turns import STANDARD, Cut, Fail, Hang, Scenario, Turn

_NAME = re.compile(r"[\w.-]+")
_PLACE = re.compile(r"/s/([\w.-]+)(/.*)?")
_DIALECTS: dict[str, Dialect] = {
    "/messages": Anthropic(),
    "/responses": Responses(),
    "/chat/completions": ChatCompletions(),
}
_GEMINI = re.compile(r"/models/[^/:]+:(stream)?[gG]enerateContent")
_MODELS = ("claude-sonnet-4-5", "gpt-5.5", "stub-model", "gemini-2.5-flash")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A question that a tool has sent."""

    scenario: str
    dialect: str
    """anthropic, responses, chat or gemini; empty for a request that asks no model."""
    method: str
    path: str
    """Behind the name of the scenario."""
    headers: dict[str, str]
    body: Any
    asked: Asked | None

    @property
    def key(self) -> str:
        """The key of the provider that came along."""
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        return self.headers.get("x-api-key") or self.headers.get("x-goog-api-key") or bearer

    @property
    def model(self) -> str:
        return self.asked.model if self.asked else ""

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools on offer."""
        return tuple(tool.name for tool in self.asked.tools) if self.asked else ()

    @property
    def system(self) -> str:
        return self.asked.system if self.asked else ""

    @property
    def prompt(self) -> str:
        """The last text of the user."""
        return self.asked.prompts[-1] if self.asked and self.asked.prompts else ""

    @property
    def results(self) -> tuple[str, ...]:
        """What the tools returned, all through the conversation."""
        return self.asked.results if self.asked else ()


class ModelServer:
    """Answers in a thread of its own, so that a test may wait as it likes. `with` and `async with` both do."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self.requests: list[Request] = []
        self.unexpected: list[str] = []
        """What was asked and no scenario knows an answer to."""
        self._scenarios = {name: Scenario((turns,)) for name, turns in STANDARD.items()}
        self._troubles: Counter[tuple[str, int, int]] = Counter()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._live, name="model server", daemon=True)
        self._listening = threading.Event()
        self._stop: Callable[[], object] = lambda: None
        self._failure: OSError | None = None

    def scenario(self, name: str, *turns: Turn) -> str:
        """Make a scenario of one round, and say its address."""
        return self.rounds(name, turns)

    def rounds(self, name: str, *rounds: tuple[Turn, ...]) -> str:
        """Make a scenario that goes on, differently, when a conversation is resumed."""
        self.add(name, Scenario(rounds))
        return self.url(name)

    def answers(self, name: str, rounds: Mapping[str, tuple[Turn, ...]]) -> str:
        """Make a scenario that begins a round by words in the user's text; the last one is for all other texts."""
        self.add(name, Scenario(tuple(rounds.values()), tuple(rounds)))
        return self.url(name)

    def add(self, name: str, scenario: Scenario) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f'"{name}" cannot be a part of an address')
        self._scenarios[name] = scenario

    def url(self, name: str) -> str:
        """The base URL of a scenario, as Claude Code wants it; the tools of OpenAI want `/v1` behind it."""
        if name not in self._scenarios:
            raise KeyError(f'there is no scenario "{name}"')
        return f"http://127.0.0.1:{self.port}/s/{name}"

    def asked(self, name: str) -> list[Request]:
        """The questions to the model in a scenario, in order."""
        return [request for request in list(self.requests) if request.scenario == name and request.asked]

    def wait(self, name: str, count: int = 1, seconds: float = 30.0) -> list[Request]:
        """The questions in a scenario, as soon as there are so many."""
        with self._changed:
            came = self._changed.wait_for(lambda: len(self.asked(name)) >= count, seconds)
        found = self.asked(name)
        assert came, f'"{name}" was asked {len(found)} times in {seconds:g} seconds, not {count}'
        return found

    def start(self) -> Self:
        self._thread.start()
        self._listening.wait()
        if self._failure:
            raise self._failure
        return self

    def close(self) -> None:
        if self._thread.is_alive():
            self._stop()
            self._thread.join(30)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    def _live(self) -> None:
        try:
            asyncio.run(self._serve())
        except OSError as error:
            self._failure = error
        finally:
            self._listening.set()

    async def _serve(self) -> None:
        open_ones: set[asyncio.Task[None]] = set()

        def opened(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._connection(reader, writer))
            open_ones.add(task)
            task.add_done_callback(open_ones.discard)

        server = await asyncio.start_server(opened, "127.0.0.1", self.port, limit=2**20)
        self.port = server.sockets[0].getsockname()[1]
        end, loop = asyncio.Event(), asyncio.get_running_loop()
        self._stop = lambda: loop.call_soon_threadsafe(end.set)
        self._listening.set()
        await end.wait()
        server.close()
        left = list(open_ones)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while message := await http.read_message(reader):
                if not await self._answer(message, writer):
                    break
                await writer.drain()
        except (OSError, EOFError, ValueError, http.NotHttp):
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, message: http.Message, writer: asyncio.StreamWriter) -> bool:
        """Answer one request. Returns whether the connection can take another."""
        place = _PLACE.fullmatch(message.path.partition("?")[0])
        scenario = self._scenarios.get(place[1]) if place else None
        if not place or not scenario:
            self.unexpected.append(f"{message.method} {message.path}")
            writer.write(http.whole(404, {"error": {"message": f"there is no scenario at {message.path}"}}))
            return True
        path = place[2] or "/"
        dialect = _dialect(path) if message.method == "POST" else None
        request = _request(place[1], path, message, dialect)
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        if dialect and request.asked:
            return await self._model(request, request.asked, dialect, scenario, writer)
        writer.write(_aside(message, path))
        return True

    async def _model(
        self, request: Request, asked: Asked, dialect: Dialect, scenario: Scenario, writer: asyncio.StreamWriter
    ) -> bool:
        turn = self._turn(request.scenario, scenario, asked)
        match turn:
            case None:
                return self._refuse(dialect, writer, f'"{request.scenario}" has no turn {asked.step + 1}')
            case Hang(text) if not text:
                await asyncio.Event().wait()
            case Fail(status=status, in_stream=False):
                headers, body = dialect.error(turn)
                writer.write(http.whole(status, body, {**headers, **turn.headers}))
                return True
            case Fail():
                await _stream(writer, dialect.broken(asked, turn), turn.pause)
                return True
            case Hang(text) | Cut(text):
                events = dialect.events(asked, (Text(text),), turn.usage)
                await _stream(writer, events[: len(events) // 2], turn.pause, finished=False)
                if isinstance(turn, Hang):
                    await asyncio.Event().wait()
                writer.transport.abort()
                return False
            case _:
                try:
                    parts = pieces(turn, asked)
                except NoSuchTool as error:
                    return self._refuse(dialect, writer, str(error))
                if asked.stream:
                    await _stream(writer, dialect.events(asked, parts, turn.usage), turn.pause)
                else:
                    await asyncio.sleep(turn.pause)
                    writer.write(http.whole(200, dialect.whole(asked, parts, turn.usage)))
        return True

    def _turn(self, name: str, scenario: Scenario, asked: Asked) -> Turn | None:
        number = scenario.round_for(asked.round, asked.prompts)
        passing, turn = scenario.at(number, asked.step)
        for place, trouble in passing:
            key = (name, number, place)
            self._troubles[key] += 1
            if self._troubles[key] <= trouble.times:
                return trouble
        return turn

    def _refuse(self, dialect: Dialect, writer: asyncio.StreamWriter, message: str) -> bool:
        self.unexpected.append(message)
        headers, body = dialect.error(Fail(400, message))
        writer.write(http.whole(400, body, headers))
        return True


def _dialect(path: str) -> Dialect | None:
    if _GEMINI.search(path):
        return Gemini()
    return next((dialect for end, dialect in _DIALECTS.items() if path.endswith(end)), None)


def _request(scenario: str, path: str, message: http.Message, dialect: Dialect | None) -> Request:
    try:
        body = json.loads(message.body) if message.body else None
    except ValueError:
        body = message.body.decode("utf-8", "replace")
    return Request(
        scenario=scenario,
        dialect=dialect.name if dialect else "",
        method=message.method,
        path=path,
        headers=message.headers,
        body=body,
        asked=dialect.asked(path, body) if dialect and isinstance(body, dict) else None,
    )


def _aside(message: http.Message, path: str) -> bytes:
    """What the tools ask besides: the models there are, how long a text is, whether anybody is there."""
    if path.endswith(("/count_tokens", ":countTokens")):
        tokens = len(message.body) // 4
        return http.whole(200, {"input_tokens": tokens, "totalTokens": tokens})
    if path.endswith("/models"):
        listed = [{"id": name, "object": "model", "type": "model", "display_name": name} for name in _MODELS]
        return http.whole(200, {"object": "list", "data": listed, "has_more": False})
    if path == "/":
        return http.whole(200, {})
    return http.whole(404, {"error": {"message": f"nothing is at {path}"}})


async def _stream(writer: asyncio.StreamWriter, events: list[bytes], pause: float, *, finished: bool = True) -> None:
    writer.write(http.stream_head())
    for event in events:
        writer.write(http.chunk(event))
        await writer.drain()
        if pause:
            await asyncio.sleep(pause / len(events))
    if finished:
        writer.write(http.chunk(b""))
