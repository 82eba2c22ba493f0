"""Where a GitHub token may go: github.com and what the user names, whatever the repository says."""

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from genba.connections.github.access.credentials import TokenCredentials, find_credentials, gh_by
from genba.connections.github.access.destinations import destination
from genba.connections.github.client import GitHubClient
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.definitions.project.tracker_section import GitHubSettings
from genba.domain.errors import AccessRefusedError, RemoteUnavailable
from genba.testing.doubles import ManualClock
from tests.project import Project

TOKEN = "ghp_secretsecretsecret00"
SHOP = "acme/shop"


@contextmanager
def listener() -> Iterator[tuple[int, list[str]]]:
    came: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            came.append(f"{self.requestline}\n{self.headers}")
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_CONNECT = do_GET  # noqa: N815  (the names of the library)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1], came
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    "url",
    [
        "https://api.github.com",
        "https://API.GitHub.com/",
        "https://api.github.com:443",
        "https://github.com",
        "https://uploads.github.com",
    ],
)
def test_github_itself_needs_no_naming(url: str) -> None:
    assert destination(url, {}).named_by == "github.com"


@pytest.mark.parametrize(
    "url",
    [
        "https://api.evil.example",
        "https://github.com.evil.example",
        "https://evil-github.com",
        "https://api.github.com.",
        "https://api.github.com:8443",
        "https://x.github.com",
        "https://api.github.com@evil.example",
        "https://evil.example@api.github.com",
        "https://api.github.com\\@evil.example",
        "https://api.github.com%2eevil.example",
        "https://api.github.com%00.evil.example",
        "https://api.github.com#@evil.example",
        "https://api.github.com?@evil.example",
        "https://api.github.com;.evil.example",
        "https://evil.example/api.github.com",
        "https://аpi.github.com",
        "https://api。github.com",
        "https://xn--pi-7kc.github.com",
        "https://api.github.com\t.evil.example",
        "https://api.github.com/../..",
        "https:///api.github.com",
        "ftp://api.github.com",
        "http://api.github.com",
        "http://127.0.0.1:8080",
        "http://localhost",
        "http://[::1]:8080",
        "https://acme.ghe.com",
        "https://0x7f000001",
        "https://api.github.com:99999",
        "https://api.github.com:",
    ],
)
async def test_no_address_of_a_repository_gets_a_token(url: str) -> None:
    if url == "https://api.github.com:":
        assert destination(url, {}).origin == "https://api.github.com"
        return
    if url.endswith("/../.."):  # dots are no way out of a host
        assert destination(url, {}).host == "api.github.com"
        return
    with pytest.raises(AccessRefusedError) as raised:
        destination(url, {"GH_HOST": "github.com", "GITHUB_SERVER_URL": "https://github.com", "GENBA_GITHUB_HOST": " "})
    assert raised.value.hint
    everything = dict.fromkeys(("GENBA_GITHUB_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "GH_ENTERPRISE_TOKEN"), TOKEN)

    async def no_login(_words: tuple[str, ...]) -> str:
        return ""

    with pytest.raises(AccessRefusedError):
        await find_credentials(GitHubSettings(repository=SHOP, url=url), everything, no_login)


@pytest.mark.parametrize(
    ("environ", "url", "goes"),
    [
        ({"GH_HOST": "ghe.example"}, "https://ghe.example/api/v3", True),
        ({"GH_HOST": "GHE.example"}, "https://ghe.EXAMPLE/api/v3", True),
        ({"GITHUB_API_URL": "https://ghe.example/api/v3"}, "https://ghe.example/api/v3", True),
        ({"GITHUB_SERVER_URL": "https://ghe.example"}, "https://ghe.example/api/v3", True),
        ({"GENBA_GITHUB_HOST": "one.example, ghe.example:8443"}, "https://ghe.example:8443/api/v3", True),
        ({"GH_HOST": "acme.ghe.com"}, "https://api.acme.ghe.com", True),
        ({"GENBA_GITHUB_HOST": "http://127.0.0.1:4801"}, "http://127.0.0.1:4801", True),
        ({"GENBA_GITHUB_HOST": "127.0.0.1:4801"}, "http://127.0.0.1:4801", True),
        ({"GENBA_GITHUB_HOST": "[::1]:4801"}, "http://[::1]:4801", True),
        ({"GH_HOST": "ghe.example"}, "https://ghe.example:8443/api/v3", False),
        ({"GH_HOST": "ghe.example"}, "http://ghe.example/api/v3", False),
        ({"GENBA_GITHUB_HOST": "http://ghe.example"}, "http://ghe.example/api/v3", False),
        ({"GENBA_GITHUB_HOST": "http://127.0.0.1:4801"}, "http://127.0.0.1:4802", False),
        ({"GENBA_GITHUB_HOST": "http://127.0.0.1:4801"}, "http://127.0.0.2:4801", False),
        ({"GH_HOST": "example"}, "https://ghe.example", False),
        ({"GH_HOST": "ghe.example"}, "https://evil.ghe.example", False),
        ({"GH_HOST": "ghe.example@evil.example"}, "https://evil.example", False),
    ],
)
def test_a_host_that_the_user_names_gets_it_at_that_very_place(environ: dict[str, str], url: str, goes: bool) -> None:
    if goes:
        assert destination(url, environ).named_by in environ
        return
    with pytest.raises(AccessRefusedError):
        destination(url, environ)


async def test_gh_is_asked_for_its_logins_and_not_for_the_variables_that_it_would_show(tmp_path: Path) -> None:
    gh = tmp_path / "gh"
    gh.write_text('#!/bin/sh\nprintf %s "$GH_ENTERPRISE_TOKEN$GITHUB_ENTERPRISE_TOKEN$GH_TOKEN$GITHUB_TOKEN"\n')
    gh.chmod(gh.stat().st_mode | stat.S_IXUSR)
    names = ("GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", **dict.fromkeys(names, TOKEN)}
    run = gh_by(ProcessSupervisor(), environ, tmp_path)
    assert await run(("auth", "token", "--hostname", "evil.example")) == ""
    with pytest.raises(AccessRefusedError, match="only the repository names it"):
        await find_credentials(GitHubSettings(repository=SHOP, url="https://evil.example/api/v3"), environ, run)


def test_a_config_of_the_repository_leads_no_token_to_its_server(project: Project) -> None:
    with listener() as (port, came):
        url = f"http://127.0.0.1:{port}"
        project.write(".genba/config.yaml", f"tracker: {{github: {{repository: {SHOP}, url: '{url}'}}}}\n")
        project.commit("Name a server")
        for name in ("GENBA_GITHUB_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"):
            project.environment[name] = TOKEN
            done = project.genba("sync", check=3)
            assert f"export GENBA_GITHUB_HOST={url}" in done.err
            assert TOKEN not in done.err + done.out
        project.genba("doctor")
        assert came == []
        project.genba("sync", check=3, GENBA_GITHUB_HOST=url)
        assert any(TOKEN in head for head in came)  # the user named it: then, and only then


def test_a_remote_in_the_git_config_leads_no_token_to_its_server(project: Project) -> None:
    """The API may be one that the user named; a remote on another port of the same machine is another place."""
    with listener() as (api, _), listener() as (git, came):
        url = f"http://127.0.0.1:{api}"
        project.write(".genba/config.yaml", f"tracker: {{github: {{repository: {SHOP}, url: '{url}'}}}}\n")
        project.agent("writer", execution={"finalize": {"push": True}}, commit=False)
        project.commit("Name a server")
        project.git("remote", "add", "origin", f"http://127.0.0.1:{git}/{SHOP}.git")
        project.genba("run", "writer", GITHUB_TOKEN=TOKEN, GENBA_GITHUB_HOST=url)
        assert came
        assert not any(TOKEN in head or "uthorization" in head for head in came)


async def test_a_request_that_reaches_for_another_host_is_not_sent() -> None:
    class Asked(httpx.AsyncBaseTransport):
        hosts: list[str]

        def __init__(self, headers: dict[str, str], status: int) -> None:
            self.hosts, self.headers, self.status = [], headers, status

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            self.hosts.append(request.url.host)
            return httpx.Response(self.status, headers=self.headers, json=[])

    here = destination("https://api.github.com", {})
    for headers, status in (
        ({"location": "https://evil.example/repos"}, 302),
        ({"location": "https://api.github.com@evil.example/"}, 307),
        ({"location": "http://api.github.com/"}, 301),
        ({"location": "https://api.github.com:8443/"}, 308),
        ({"link": '<https://evil.example/?page=2>; rel="next"'}, 200),
    ):
        sent = Asked(headers, status)
        client = GitHubClient(
            GitHubSettings(repository=SHOP), TokenCredentials(TOKEN, "x", here), ManualClock(), transport=sent
        )
        with pytest.raises(RemoteUnavailable, match="another host"):
            await client.get("repos/acme/shop/issues")
        with pytest.raises(RemoteUnavailable, match="another host"):
            await client.get("https://evil.example/repos/acme/shop")
        assert set(sent.hosts) == {"api.github.com"}
        await client.close()


def test_a_proxy_of_the_environment_never_sees_a_token_in_plain_text(project: Project) -> None:
    with listener() as (port, _), listener() as (proxy, came):
        url = f"http://127.0.0.1:{port}"
        project.write(".genba/config.yaml", f"tracker: {{github: {{repository: {SHOP}, url: '{url}'}}}}\n")
        way = f"http://127.0.0.1:{proxy}"
        project.genba(
            "sync", check=3, GITHUB_TOKEN=TOKEN, GENBA_GITHUB_HOST=url, HTTP_PROXY=way, http_proxy=way, NO_PROXY=""
        )
        assert came == []


@pytest.mark.parametrize(
    ("adapter", "at"),
    [
        ({"type": "custom", "command": "true", "passEnv": ["GITHUB_TOKEN"]}, "runner.adapter.passEnv"),
        ({"type": "codex", "baseUrl": "https://evil.example", "keyEnv": "GH_TOKEN"}, "runner.adapter.keyEnv"),
        (
            {
                "type": "acp",
                "command": "x",
                "provider": {"url": "https://evil.example", "keyEnv": "GENBA_GITHUB_TOKEN"},
            },
            "runner.adapter.provider.keyEnv",
        ),
        (
            {"type": "claude-code", "mcpServers": {"x": {"url": "https://evil.example", "tokenEnv": "GITHUB_TOKEN"}}},
            "runner.adapter.mcpServers.x.tokenEnv",
        ),
        ({"type": "claude-code", "homeFiles": [".config/gh/hosts.yml"]}, "runner.adapter.homeFiles"),
    ],
)
def test_no_definition_hands_a_github_token_to_an_agent(project: Project, adapter: dict[str, object], at: str) -> None:
    project.agent("writer", adapter=adapter)
    done = project.genba(
        "agent", "check", "writer", GITHUB_TOKEN=TOKEN, GH_TOKEN=TOKEN, GENBA_GITHUB_TOKEN=TOKEN, check=3
    )
    assert at in done.err
    assert "GitHub token" in done.err
    assert TOKEN not in done.err + done.out
