"""The scripted model: its dialects over plain HTTP, its troubles, and what it keeps."""

import json
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from http.client import HTTPConnection, HTTPException, IncompleteRead
from pathlib import Path
from typing import Any

import pytest

from tests.standins.model_server import Answer, Call, Fail, Hang, Mcp, ModelServer, Run, Say, Together, Tokens, Write

MESSAGES, RESPONSES, CHAT = "/v1/messages", "/v1/responses", "/v1/chat/completions"
GEMINI, GEMINI_STREAM = "/v1beta/models/g:generateContent", "/v1beta/models/g:streamGenerateContent"
HELLO: dict[str, dict[str, Any]] = {
    MESSAGES: {"model": "m", "messages": [{"role": "user", "content": "hello"}]},
    RESPONSES: {"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "hello"}]}]},
    CHAT: {"model": "m", "messages": [{"role": "user", "content": "hello"}]},
    GEMINI: {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]},
}
WITH_TOOLS: dict[str, dict[str, Any]] = {
    MESSAGES: {"tools": [{"name": "Write"}, {"name": "Bash"}]},
    RESPONSES: {"tools": [{"type": "function", "name": "exec_command"}, {"type": "custom", "name": "apply_patch"}]},
    CHAT: {"tools": [{"type": "function", "function": {"name": "write"}}, {"function": {"name": "bash"}}]},
    GEMINI: {"tools": [{"functionDeclarations": [{"name": "write_file"}, {"name": "run_shell_command"}]}]},
}


def post(url: str, body: dict[str, Any], **headers: str) -> Any:
    """The answer to a request, as JSON."""
    return json.loads(posted(url, body, **headers))


def posted(url: str, body: dict[str, Any], **headers: str) -> bytes:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=30) as answer:
        read: bytes = answer.read()
        return read


def streamed(url: str, body: dict[str, Any]) -> list[Any]:
    """The data of the events, in order."""
    lines = posted(url, {**body, "stream": True}).decode().splitlines()
    datas = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [json.loads(data) if data != "[DONE]" else data for data in datas]


def refused(url: str, body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
    with pytest.raises(urllib.error.HTTPError) as caught:
        posted(url, body)
    with caught.value as error:
        return error.code, {name.lower(): value for name, value in error.headers.items()}, json.loads(error.read())


def test_each_dialect_says_the_same_whole(model: ModelServer) -> None:
    url = model.scenario("greet", Say("good day", usage=Tokens(7, 3, 2)))

    message, response, chat, gemini = (post(url + path, HELLO[path]) for path in HELLO)

    assert message["content"] == [{"type": "text", "text": "good day"}]
    assert message["usage"]["cache_read_input_tokens"] == 2
    assert response["output"][0]["content"][0]["text"] == "good day"
    assert response["usage"]["input_tokens"] == 7
    assert chat["choices"][0]["message"] == {"role": "assistant", "content": "good day"}
    assert chat["usage"]["total_tokens"] == 10
    assert "".join(part["text"] for part in gemini["candidates"][0]["content"]["parts"]) == "good day"


def test_each_dialect_streams_the_words_in_more_than_one_piece(model: ModelServer) -> None:
    url = model.scenario("greet", Say("good day"))

    messages = streamed(url + MESSAGES, HELLO[MESSAGES])
    responses = streamed(url + RESPONSES, HELLO[RESPONSES])
    chats = streamed(url + CHAT, HELLO[CHAT])
    geminis = streamed(url + GEMINI_STREAM, HELLO[GEMINI])

    assert [each["delta"]["text"] for each in messages if each["type"] == "content_block_delta"] == ["good", " day"]
    assert messages[-1] == {"type": "message_stop"}
    assert [each["delta"] for each in responses if each["type"].endswith("text.delta")] == ["good", " day"]
    assert responses[-1]["response"]["status"] == "completed"
    assert [each["sequence_number"] for each in responses] == list(range(len(responses)))
    assert [each["choices"][0]["delta"].get("content") for each in chats[:3]] == ["", "good", " day"]
    assert chats[-2]["usage"]["prompt_tokens"] == 1200
    assert chats[-1] == "[DONE]"
    assert [each["candidates"][0]["content"]["parts"][0]["text"] for each in geminis] == ["good", " day", ""]


def test_one_scenario_uses_the_tool_that_each_client_offers(model: ModelServer) -> None:
    url = model.scenario("work", Together((Write("a b.txt", "it's"), Run("make"))))

    message, response, chat, gemini = (post(url + path, {**HELLO[path], **WITH_TOOLS[path]}) for path in HELLO)
    calls = [call["function"] for call in chat["choices"][0]["message"]["tool_calls"]]

    assert [(block["name"], block["input"]) for block in message["content"]] == [
        ("Write", {"file_path": "a b.txt", "content": "it's"}),
        ("Bash", {"command": "make", "description": "a command of the scenario"}),
    ]
    assert message["stop_reason"] == "tool_use"
    assert [json.loads(item["arguments"])["cmd"] for item in response["output"]][1] == "make"
    assert json.loads(response["output"][0]["arguments"])["cmd"].endswith("""> 'a b.txt'""")
    assert [
        (call["name"], json.loads(call["arguments"])["command" if call["name"] == "bash" else "filePath"])
        for call in calls
    ] == [
        ("write", "a b.txt"),
        ("bash", "make"),
    ]
    parts = gemini["candidates"][0]["content"]["parts"]
    assert [part["functionCall"]["name"] for part in parts] == ["write_file", "run_shell_command"]


def test_the_words_of_a_file_that_is_written_by_a_shell_arrive_as_they_are(model: ModelServer, tmp_path: Path) -> None:
    text = 'it\'s\n"100%" $HOME `x` \\n\n'
    url = model.scenario("work", Write("a folder/it's.txt", text))

    response = post(url + RESPONSES, {**HELLO[RESPONSES], **WITH_TOOLS[RESPONSES]})
    command = json.loads(response["output"][0]["arguments"])["cmd"]
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)

    assert (tmp_path / "a folder/it's.txt").read_text() == text


def test_a_tool_that_takes_free_text_gets_it(model: ModelServer) -> None:
    url = model.scenario("patch", Call("apply_patch", "*** Begin Patch"))

    events = streamed(url + RESPONSES, {**HELLO[RESPONSES], **WITH_TOOLS[RESPONSES]})
    item = events[-1]["response"]["output"][0]

    assert (item["type"], item["input"]) == ("custom_tool_call", "*** Begin Patch")


def test_where_the_model_writes_programs_it_uses_the_tools_in_one(model: ModelServer) -> None:
    url = model.scenario("code", Together((Run("make"), Call("apply_patch", "a patch"), Mcp("orch", "echo"))))
    offered = {"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}
    given = [{"type": "additional_tools", "tools": [offered]}, *HELLO[RESPONSES]["input"]]

    items = post(url + RESPONSES, {"input": given})["output"]
    programs = [item["input"].splitlines()[-1] for item in items]

    assert {(item["type"], item["namespace"], item["name"]) for item in items} == {
        ("custom_tool_call", "functions", "exec")
    }
    assert programs[0].startswith('text(await tools.exec_command({"cmd": "make"')
    assert programs[1:] == ['text(await tools.apply_patch("a patch"))', "text(await tools.mcp__orch__echo({}))"]


def test_an_answer_comes_by_the_tool_for_it_or_as_text(model: ModelServer) -> None:
    url = model.scenario("answer", Answer({"status": "done"}))

    by_tool = post(url + MESSAGES, {**HELLO[MESSAGES], "tools": [{"name": "StructuredOutput"}]})
    as_text = post(url + CHAT, HELLO[CHAT])

    assert by_tool["content"][0]["input"] == {"status": "done"}
    assert json.loads(as_text["choices"][0]["message"]["content"]) == {"status": "done"}


def test_a_tool_of_a_server_is_used_under_the_name_that_the_client_gives_to_it(model: ModelServer) -> None:
    url = model.scenario("ask", Mcp("orch", "echo", {"text": "hi"}))
    listed = {"tools": [{"function": {"name": "bash"}}, {"function": {"name": "orch_echo"}}]}

    message = post(url + MESSAGES, {**HELLO[MESSAGES], **WITH_TOOLS[MESSAGES]})
    response = post(url + RESPONSES, {**HELLO[RESPONSES], **WITH_TOOLS[RESPONSES]})
    chat = post(url + CHAT, {**HELLO[CHAT], **listed})

    assert message["content"][0]["name"] == "mcp__orch__echo"
    assert (response["output"][0]["namespace"], response["output"][0]["name"]) == ("mcp__orch", "echo")
    assert chat["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "orch_echo"


def test_where_a_conversation_stands_is_read_from_it(model: ModelServer) -> None:
    url = model.rounds("two", (Run("first"), Say("got {last_result}")), (Say("welcome back"),))
    called = {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "Bash", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "ok"}]}
    begun = [{"role": "user", "content": "hello"}, called, result]
    values = {"role": "assistant", "content": "got ok"}

    second = post(url + MESSAGES, {"messages": begun, **WITH_TOOLS[MESSAGES]})
    resumed = post(url + MESSAGES, {"messages": [*begun, values, {"role": "user", "content": "again"}]})
    first = post(url + MESSAGES, {**HELLO[MESSAGES], **WITH_TOOLS[MESSAGES]})

    assert second["content"][0]["text"] == "got ok"
    assert resumed["content"][0]["text"] == "welcome back"
    assert first["content"][0]["input"]["command"] == "first"


def test_a_new_text_that_comes_with_the_last_results_begins_a_new_round(model: ModelServer) -> None:
    url = model.rounds("two", (Run("first"),), (Say("welcome back"),))
    reminder = {"type": "text", "text": "<system-reminder>\nbe brief\n</system-reminder>"}
    called = {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "Bash", "input": {}}]}
    result = {"type": "tool_result", "tool_use_id": "1", "content": "ok"}
    begun = [{"role": "user", "content": [reminder, {"type": "text", "text": "hello"}]}, called]

    goes_on = post(url + MESSAGES, {"messages": [*begun, {"role": "user", "content": [result, reminder]}]})
    resumed = post(
        url + MESSAGES, {"messages": [*begun, {"role": "user", "content": [result, {"type": "text", "text": "again"}]}]}
    )

    assert goes_on["content"][0]["text"] == "done"
    assert resumed["content"][0]["text"] == "welcome back"
    assert [request.prompt for request in model.asked("two")] == ["hello", "again"]


def test_a_round_can_begin_with_what_the_user_says(model: ModelServer) -> None:
    url = model.answers("words", {"close": (Say("closed"),), "work": (Say("worked"),)})
    talks: list[list[str]] = [["please work"], ["please work", "now close it"], ["please close", "and again"], ["hm"]]

    lines = [
        post(url + CHAT, {"messages": [{"role": "user", "content": text} for text in texts]})["choices"][0]["message"]
        for texts in talks
    ]

    assert [message["content"] for message in lines] == ["worked", "closed", "closed", "worked"]


def test_two_results_of_one_turn_are_one_step(model: ModelServer) -> None:
    url = model.scenario("both", Together((Run("a"), Run("b"))), Say("{last_result}"))
    calls = [{"type": "function_call", "call_id": each, "name": "x", "arguments": "{}"} for each in "ab"]
    results = [{"type": "function_call_output", "call_id": each, "output": f"result {each}"} for each in "ab"]

    response = post(url + RESPONSES, {"input": [*HELLO[RESPONSES]["input"], *calls, *results]})

    assert response["output"][0]["content"][0]["text"] == "result b"


def test_a_question_without_tools_is_answered_with_a_title(model: ModelServer) -> None:
    chat = post(model.url("write") + CHAT, HELLO[CHAT])

    assert chat["choices"][0]["message"] == {"role": "assistant", "content": "A title"}


def test_what_no_scenario_knows_is_refused_and_kept(model: ModelServer) -> None:
    url = model.scenario("short", Say("the only turn"))
    body = {"messages": [*HELLO[CHAT]["messages"], {"role": "assistant", "content": "", "tool_calls": [{}]}]}

    beyond = refused(url + CHAT, body)
    without = refused(model.url("run") + CHAT, {**HELLO[CHAT], "tools": [{"function": {"name": "read"}}]})
    nowhere = refused(f"http://127.0.0.1:{model.port}/s/unknown/v1/messages", HELLO[MESSAGES])

    assert (beyond[0], beyond[2]["error"]["message"]) == (400, '"short" has no turn 2')
    assert (without[0], without[2]["error"]["message"]) == (400, "none of the tools on offer runs a command: read")
    assert nowhere[0] == 404
    assert len(model.unexpected) == 3
    model.unexpected.clear()


@pytest.mark.parametrize("status", [400, 401, 403, 429, 500, 529])
def test_an_error_is_worded_as_the_provider_words_it(model: ModelServer, status: int) -> None:
    url = model.url(str(status))

    anthropic, openai = refused(url + MESSAGES, HELLO[MESSAGES]), refused(url + RESPONSES, HELLO[RESPONSES])

    assert anthropic[0] == openai[0] == status
    assert anthropic[2]["type"] == "error"
    assert anthropic[2]["error"]["type"].endswith("error")
    assert openai[2]["error"]["message"]


def test_a_rate_limit_says_in_the_headers_of_the_provider_when_it_is_lifted(model: ModelServer) -> None:
    url = model.scenario("limit", Fail(429, retry_after=30, detail={"resets_at": 1}, headers={"x-extra": "yes"}))

    anthropic, openai = refused(url + MESSAGES, HELLO[MESSAGES]), refused(url + CHAT, HELLO[CHAT])

    assert anthropic[1]["retry-after"] == openai[1]["retry-after"] == "30"
    assert anthropic[1]["anthropic-ratelimit-requests-reset"].endswith("Z")
    assert openai[1]["x-ratelimit-reset-requests"] == "30s"
    assert openai[1]["x-extra"] == "yes"
    assert (openai[2]["error"]["code"], openai[2]["error"]["resets_at"]) == ("rate_limit_exceeded", 1)


def test_a_trouble_that_passes_lets_the_next_turn_through(model: ModelServer) -> None:
    url = model.scenario("busy", Fail(529, times=2), Say("up again"))

    codes = [refused(url + MESSAGES, HELLO[MESSAGES])[0] for _ in range(2)]
    answer = post(url + MESSAGES, HELLO[MESSAGES])

    assert codes == [529, 529]
    assert answer["content"][0]["text"] == "up again"


def test_an_error_can_come_inside_a_stream(model: ModelServer) -> None:
    url = model.scenario("late", Fail(529, in_stream=True))

    assert streamed(url + MESSAGES, HELLO[MESSAGES])[-1]["error"]["type"] == "overloaded_error"
    assert streamed(url + RESPONSES, HELLO[RESPONSES])[-1]["response"]["error"]["code"] == "server_is_overloaded"


@pytest.mark.parametrize("path", [MESSAGES, RESPONSES, CHAT])
def test_a_cut_ends_the_connection_in_the_middle(model: ModelServer, path: str) -> None:
    with pytest.raises((ConnectionError, HTTPException, IncompleteRead)):
        streamed(model.url("cut") + path, HELLO[path])


def test_a_hang_takes_the_request_and_says_nothing(model: ModelServer) -> None:
    url = model.scenario("silent", Hang())
    connection = HTTPConnection("127.0.0.1", model.port, timeout=0.2)
    connection.request("POST", url.partition(str(model.port))[2] + MESSAGES, json.dumps(HELLO[MESSAGES]))

    asked = model.wait("silent")

    assert asked[0].prompt == "hello"
    with pytest.raises(TimeoutError):
        connection.getresponse()
    connection.close()


def test_one_that_waits_for_an_answer_is_let_go_when_the_server_stops() -> None:
    came: list[bytes] = []
    with ModelServer() as server:
        client = socket.create_connection(("127.0.0.1", server.port))
        body = json.dumps(HELLO[MESSAGES]).encode()
        client.sendall(b"POST /s/hang/v1/messages HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        waiting = threading.Thread(target=lambda: came.append(client.recv(100)))
        waiting.start()
        server.wait("hang")
    waiting.join(30)
    client.close()

    assert came == [b""]


def test_every_request_is_kept_with_what_matters_in_it(model: ModelServer) -> None:
    url = model.url("text")
    body = {**HELLO[MESSAGES], **WITH_TOOLS[MESSAGES], "system": [{"type": "text", "text": "be good"}]}

    post(url + MESSAGES, body, **{"x-api-key": "key-1"})
    post(url + CHAT, HELLO[CHAT], authorization="Bearer key-2")
    with urllib.request.urlopen(f"{url}/v1/models", timeout=30) as answer:
        models = json.load(answer)
    tokens = post(f"{url}/v1/messages/count_tokens", body)
    first, second = model.asked("text")

    assert (first.key, first.model, first.tools) == ("key-1", "m", ("Write", "Bash"))
    assert (first.system, first.prompt, first.dialect) == ("be good", "hello", "anthropic")
    assert (second.key, second.dialect) == ("key-2", "chat")
    assert "gpt-5.5" in [each["id"] for each in models["data"]]
    assert tokens["input_tokens"] > 0
    assert len(model.requests) == 4


async def test_it_serves_asynchronous_tests_too() -> None:
    async with ModelServer() as server:
        answer = post(server.url("text") + CHAT, HELLO[CHAT])

    assert answer["choices"][0]["message"]["content"] == "hello"


def test_a_request_in_chunks_and_one_that_is_none_are_survived(model: ModelServer) -> None:
    body = json.dumps(HELLO[CHAT]).encode()
    with socket.create_connection(("127.0.0.1", model.port)) as nonsense:
        nonsense.sendall(b"\x00\xff\n\n")
        assert nonsense.recv(100) == b""
    connection = HTTPConnection("127.0.0.1", model.port, timeout=30)
    connection.request("POST", f"/s/text{CHAT}", iter([body[:10], body[10:]]), encode_chunked=True)

    assert json.load(connection.getresponse())["choices"][0]["message"]["content"] == "hello"
    connection.close()


def test_people_start_it_with_a_file(tmp_path: Path) -> None:
    file = tmp_path / "scenarios.json"
    file.write_text(
        json.dumps({"mine": [{"do": "fail", "status": 529, "times": 1}, {"do": "say", "text": "from a file"}]})
    )
    words = [sys.executable, "-m", "tests.standins.model_server", str(file)]

    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = json.loads(process.stdout.readline())["url"]
        code = refused(f"{url}mine{CHAT}", HELLO[CHAT])[0]
        answer = post(f"{url}mine{CHAT}", HELLO[CHAT])
        process.send_signal(signal.SIGTERM)
    file.write_text('{"mine": [{"do": "sing"}]}')
    wrong = subprocess.run(words, capture_output=True, text=True, check=False)

    assert code == 529
    assert answer["choices"][0]["message"]["content"] == "from a file"
    assert process.returncode == 0
    assert (wrong.returncode, "sing" in wrong.stderr) == (2, True)
