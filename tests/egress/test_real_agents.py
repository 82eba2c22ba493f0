"""Real agents through the broker: they hold a word, and the provider sees the key."""

import asyncio
from pathlib import Path

import pytest

from genba.connections.egress.broker import Broker
from genba.connections.egress.model_calls import calls_of
from genba.connections.egress.session_token import new_token
from genba.domain.sessions.egress import Verdict
from tests.clis import cli, path_with_clis
from tests.egress.places import Diary, listening
from tests.standins.model_server import Cut, Fail, ModelServer, Say, Write

KEY = "sk-ant-the-real-key-4f9d"
PATIENCE = 90.0


async def run(argv: list[str], folder: Path, environment: dict[str, str]) -> tuple[int | None, str]:
    """Run an agent in a folder of its own, with its prompt on stdin and nothing else in its environment."""
    home = folder.parent / "home"
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=folder,
        env={"PATH": path_with_clis(), "HOME": str(home), "TMPDIR": str(home / "tmp"), **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            output, _ = await process.communicate(b"Write hello.txt")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, output.decode(errors="replace")


async def claude(folder: Path, port: int, token: str) -> tuple[int | None, str]:
    words = ["-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits"]
    environment = {
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
        "ANTHROPIC_API_KEY": token,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
    }
    return await run([str(cli("claude")), *words, "--model", "claude-sonnet-4-5"], folder, environment)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


async def test_claude_works_through_the_broker_and_never_holds_the_key(folder: Path) -> None:
    cli("claude")
    token, diary = new_token(), Diary()
    async with ModelServer() as server:
        url = server.scenario("fix", Write("hello.txt", "hello"), Say("done"))
        broker = Broker(url, "x-api-key", KEY, token, diary.told, calls=calls_of("anthropic", {}))
        async with listening(broker.serve) as port:
            code, output = await claude(folder, port, token)

        assert code == 0, output
        assert (folder / "hello.txt").read_text() == "hello"
        asked = server.asked("fix")
    assert len(asked) >= 2
    assert {request.key for request in asked} == {KEY}
    assert token not in str([request.headers for request in asked])
    assert KEY not in output
    assert diary.of(Verdict.DENIED) == []
    assert diary.of(Verdict.FAILED) == []


@pytest.mark.parametrize(
    ("turn", "sign"), [(Fail(429), '"api_error_status":429'), (Fail(401), '"api_error_status":401')]
)
async def test_claude_hears_the_errors_of_the_provider_as_they_are(folder: Path, turn: Fail, sign: str) -> None:
    cli("claude")
    token = new_token()
    async with ModelServer() as server:
        broker = Broker(
            server.scenario("bad", turn), "x-api-key", KEY, token, Diary().told, calls=calls_of("anthropic", {})
        )
        async with listening(broker.serve) as port:
            code, output = await claude(folder, port, token)

    assert code == 1
    assert sign in output.replace(" ", "")


async def test_claude_notices_an_answer_that_was_cut(folder: Path) -> None:
    cli("claude")
    token, diary = new_token(), Diary()
    async with ModelServer() as server:
        broker = Broker(
            server.scenario("cut", Cut()), "x-api-key", KEY, token, diary.told, calls=calls_of("anthropic", {})
        )
        async with listening(broker.serve) as port:
            await claude(folder, port, token)

        assert len(server.asked("cut")) >= 1
    assert diary.of(Verdict.FAILED)


async def test_codex_works_through_the_broker_and_falls_back_from_its_websocket_at_once(folder: Path) -> None:
    codex = cli("codex")
    token, diary = new_token(), Diary()
    codex_home = folder.parent / "codex"
    codex_home.mkdir()
    async with ModelServer() as server:
        url = server.scenario("fix", Write("hello.txt", "hello"), Say("done"))
        broker = Broker(f"{url}/v1", "authorization", KEY, token, diary.told, calls=calls_of("openai", {}))
        async with listening(broker.serve) as port:
            words = ["exec", "--json", "--skip-git-repo-check", "-m", "gpt-5.5"]
            words += ["--dangerously-bypass-approvals-and-sandbox"]
            words += ["-c", f"openai_base_url=http://127.0.0.1:{port}", "--disable", "plugins", "--disable", "apps"]
            words += ["-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false", "-"]
            code, output = await run(
                [str(codex), *words], folder, {"CODEX_HOME": str(codex_home), "CODEX_API_KEY": token}
            )

        assert code == 0, output
        assert (folder / "hello.txt").read_text().strip() == "hello"
        asked = server.asked("fix")
    assert {request.key for request in asked} == {KEY}
    assert len([event for event in diary.events if "WebSocket" in event.detail]) == 1
