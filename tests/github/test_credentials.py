import os
import stat
import traceback
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from genba.connections.git.repository.access import origin_of
from genba.connections.github.access.credentials import (
    AppCredentials,
    Credentials,
    RunGh,
    TokenCredentials,
    find_credentials,
    gh_by,
)
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.definitions.project.tracker_section import AppSettings, GitHubSettings
from genba.domain.errors import AccessRefusedError
from tests.github.offices import SHOP, TOKEN, connected, named, settings, settle
from tests.standins.github.server import GitHub

SECRET = "ghp_averysecrettoken"


def gh_says(text: str, asked: list[tuple[str, ...]] | None = None) -> RunGh:
    async def run(words: tuple[str, ...]) -> str:
        if asked is not None:
            asked.append(words)
        return text

    return run


async def found(environ: Mapping[str, str], gh: str = "", wanted: GitHubSettings | None = None) -> Credentials:
    return await find_credentials(wanted or GitHubSettings(repository=SHOP), environ, gh_says(gh))


async def test_the_variable_of_genba_comes_before_all_others() -> None:
    every = {"GENBA_GITHUB_TOKEN": "one", "GITHUB_TOKEN": "two", "GH_TOKEN": "three"}
    order = []
    for name in list(every):
        one = await found(every, "four\n")
        assert isinstance(one, TokenCredentials)
        order.append((one.source, one.token))
        every.pop(name)
    last = await found(every, "four\n")
    assert isinstance(last, TokenCredentials)
    assert [*order, (last.source, last.token)] == [
        ("GENBA_GITHUB_TOKEN", "one"),
        ("GITHUB_TOKEN", "two"),
        ("GH_TOKEN", "three"),
        ("gh auth token", "four"),
    ]


async def test_gh_is_asked_for_the_host_of_the_api() -> None:
    asked: list[tuple[str, ...]] = []
    wanted = GitHubSettings(repository=SHOP, url="https://github.acme.example/api/v3")
    await find_credentials(wanted, {"GH_TOKEN": "of another host"}, gh_says("tok", asked))
    assert asked == [("auth", "token", "--hostname", "github.acme.example")]
    of_ghe = GitHubSettings(repository=SHOP, url="https://api.acme.ghe.com")
    await find_credentials(of_ghe, {}, gh_says("tok", asked))
    assert asked[1:] == [("auth", "token", "--hostname", "acme.ghe.com")]


@pytest.mark.parametrize(
    ("environ", "goes"),
    [({}, False), ({"GITHUB_SERVER_URL": "https://ghe.example"}, True), ({"GH_HOST": "ghe.example"}, True)],
)
async def test_a_token_that_many_share_goes_to_no_server_that_only_a_file_names(
    environ: dict[str, str], goes: bool
) -> None:
    wanted = GitHubSettings(repository=SHOP, url="https://ghe.example/api/v3")
    with_it = {"GITHUB_TOKEN": SECRET, **environ}
    if goes:
        assert (await found(with_it, wanted=wanted)).source == "GITHUB_TOKEN"
        return
    for more in ({}, {"GENBA_GITHUB_TOKEN": "mine"}, {"GH_ENTERPRISE_TOKEN": "of another"}, {"GH_TOKEN": "x"}):
        with pytest.raises(AccessRefusedError, match=r"ghe\.example gets no GitHub token") as raised:
            await found({**with_it, **more}, wanted=wanted)
        assert raised.value.hint == "if you trust it: export GENBA_GITHUB_HOST=ghe.example"


@pytest.mark.parametrize(
    ("api", "origin"),
    [
        ("https://api.github.com", "https://github.com"),
        ("https://api.acme.ghe.com/", "https://acme.ghe.com"),
        ("https://ghe.example:8443/api/v3", "https://ghe.example:8443"),
        ("https://api.example/api/v3", "https://api.example"),
    ],
)
def test_the_repositories_lie_beside_the_api(api: str, origin: str) -> None:
    assert origin_of(api) == origin


async def test_a_secret_in_the_address_is_refused_and_not_shown() -> None:
    with pytest.raises(AccessRefusedError) as raised:
        async with connected(settings(f"https://me:{SECRET}@ghe.example/api/v3")):
            raise AssertionError("nobody gets here")
    assert SECRET not in str(raised.value)


async def test_without_any_all_four_ways_are_named() -> None:
    with pytest.raises(AccessRefusedError) as raised:
        await found({})
    for way in ("GENBA_GITHUB_TOKEN", "GITHUB_TOKEN", "gh auth token", "tracker.github.app"):
        assert way in raised.value.message
    assert raised.value.hint == "gh auth login --hostname github.com"


@pytest.mark.parametrize("value", ["two words", "line\nbreak", "tok\x00en", "tökén", "x" * 20_000])
async def test_what_is_no_token_is_refused_and_not_shown(value: str) -> None:
    with pytest.raises(AccessRefusedError) as raised:
        await found({"GITHUB_TOKEN": value})
    assert value not in str(raised.value)
    assert "GITHUB_TOKEN" in raised.value.message


async def test_what_prints_credentials_shows_no_secret() -> None:
    token = await found({"GITHUB_TOKEN": SECRET})
    app = AppCredentials(AppSettings(id="12", installation=3), SECRET, "a file", token.destination)
    for one in (token, app):
        for text in (repr(one), str(one), f"{one}", repr([one]), repr(vars(one) if hasattr(one, "__dict__") else "")):
            assert SECRET not in text


async def test_the_gh_of_the_user_is_run_and_its_failure_is_no_token(tmp_path: Path) -> None:
    gh = tmp_path / "gh"
    gh.write_text(f'#!/bin/sh\ntest "$3" = "--hostname" && test "$4" = github.com && echo {SECRET} && exit 0\nexit 1\n')
    gh.chmod(gh.stat().st_mode | stat.S_IXUSR)
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    run = gh_by(ProcessSupervisor(), environ, tmp_path)
    assert (await run(("auth", "token", "--hostname", "github.com"))).strip() == SECRET
    assert await run(("auth", "token", "--hostname", "other.example")) == ""
    nowhere = gh_by(ProcessSupervisor(), {"PATH": str(tmp_path / "empty")}, tmp_path)
    assert await nowhere(("auth", "token")) == ""


async def test_the_key_of_an_app_is_in_a_file_or_in_a_variable(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("the key")
    app = AppSettings(id="12", installation=3, key_file=str(tmp_path / "key.pem"))
    wanted = GitHubSettings(repository=SHOP, app=app)
    by_file = await found({"GITHUB_TOKEN": "not this"}, wanted=wanted)
    assert isinstance(by_file, AppCredentials)
    assert (by_file.key, by_file.id, by_file.installation) == ("the key", "12", 3)
    by_variable = await found({"GENBA_GITHUB_APP_KEY": "a\\nb"}, wanted=wanted)
    assert isinstance(by_variable, AppCredentials)
    assert by_variable.key == "a\nb"


async def test_an_app_whose_key_cannot_be_read_says_so_and_takes_no_other_identity(tmp_path: Path) -> None:
    for key_file, output in ((str(tmp_path / "nothing.pem"), "No such file"), ("", "GENBA_GITHUB_APP_KEY is not set")):
        app = AppSettings(id="12", installation=3, key_file=key_file)
        with pytest.raises(AccessRefusedError, match=output):
            await found({"GITHUB_TOKEN": "not this"}, wanted=GitHubSettings(repository=SHOP, app=app))


@pytest.fixture
def hub_with_app(hub: GitHub) -> tuple[GitHub, AppCredentials]:
    settle(hub)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    hub.add_app("genba-app", public.decode(), "acme", app_id=12, installation_id=3)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return hub, AppCredentials(AppSettings(id="12", installation=3), private.decode(), "a file", named(hub.url))


async def test_an_app_gets_one_token_and_a_new_one_when_that_expires(
    hub_with_app: tuple[GitHub, AppCredentials],
) -> None:
    hub, app = hub_with_app
    number = hub.add_issue(SHOP, title="One")
    async with connected(hub, credentials=app) as client:
        for _ in range(3):
            await client.get(client.repository("issues", number))
        first = await client.token()
        assert [one.line for one in hub.requests].count("POST /app/installations/3/access_tokens") == 1
        hub.expire(first)
        await client.change("POST", client.repository("issues", number, "comments"), {"body": "Hello."})
        assert await client.token() != first
    assert [comment.body for comment in hub.issue(SHOP, number).comments] == ["Hello."]
    assert [one.line for one in hub.requests].count("POST /app/installations/3/access_tokens") == 2


async def test_an_app_with_a_wrong_key_is_refused_and_the_key_is_in_no_text(hub: GitHub) -> None:
    settle(hub)
    key = "-----BEGIN KEY-----\nsecretkeytext\n"
    app = AppCredentials(AppSettings(id="12", installation=3), key, "a file", named(hub.url))
    async with connected(hub, credentials=app) as client:
        with pytest.raises(AccessRefusedError) as raised:
            await client.get(client.repository())
    assert "secretkeytext" not in "".join(traceback.format_exception(raised.value))
    assert "a file" in raised.value.message


async def test_a_token_that_expires_in_mid_run_is_reported_and_nothing_was_sent_twice(hub: GitHub) -> None:
    settle(hub)
    number = hub.add_issue(SHOP, title="One")
    async with connected(hub) as client:
        await client.get(client.repository("issues", number))
        hub.expire(TOKEN)
        for sending in (
            client.get(client.repository("issues", number)),
            client.change("POST", client.repository("issues", number, "comments"), {"body": "x"}),
            client.query("query One { viewer { login } }", {}),
        ):
            with pytest.raises(AccessRefusedError) as raised:
                await sending
            assert "GENBA_GITHUB_TOKEN" in raised.value.hint
            assert TOKEN not in "".join(traceback.format_exception(raised.value))
    assert hub.issue(SHOP, number).comments == []


async def test_a_token_goes_out_encrypted_or_stays_on_this_machine() -> None:
    with pytest.raises(AccessRefusedError, match="not encrypted"):
        async with connected(settings("http://github.example/api/v3")):
            raise AssertionError("nobody gets here")
