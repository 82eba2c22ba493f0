"""Git over HTTP: the real `git http-backend`, behind the same tokens."""

import asyncio
import os
from typing import Protocol

from tests.standins.github import access, push_rules
from tests.standins.github.bare import environment
from tests.standins.github.hub import Hub, Refused
from tests.standins.github.state import Repository, Token

Answered = tuple[int, bytes, dict[str, str]]


class Asked(Protocol):
    headers: dict[str, str]
    query_string: str
    content: bytes


async def answer(hub: Hub, method: str, path: str, asked: Asked) -> Answered:
    """Clone, fetch and push. What was pushed is taken in before the answer goes out."""
    full_name, _, service = path.strip("/").partition(".git/")
    pushing = "git-receive-pack" in service or "git-receive-pack" in asked.query_string
    try:
        with hub.lock:
            viewer, repository = _allowed(hub, full_name, asked.headers.get("authorization", ""), pushing=pushing)
    except Refused as refused:
        challenge = {"www-authenticate": 'Basic realm="GitHub"'} if refused.status == 401 else {}
        return refused.status, refused.message.encode(), {"content-type": "text/plain", **challenge}
    done = await _backend(hub, repository, viewer, method, service, asked)
    if service == "git-receive-pack":
        with hub.lock:
            push_rules.look(hub, repository, viewer.user if viewer else None)
    return done


def _allowed(hub: Hub, full_name: str, authorization: str, *, pushing: bool) -> tuple[Token | None, Repository]:
    viewer = access.viewer(hub, authorization)
    if viewer is None and pushing:
        raise Refused(401, "No anonymous write access.")
    try:
        repository = hub.visible(viewer, full_name)
    except Refused as refused:
        raise Refused(401 if viewer is None else 404, "Repository not found.") from refused
    if pushing and viewer is not None:
        try:
            hub.need(viewer, repository, "write", "contents")
        except Refused as refused:
            output = f"Permission to {full_name}.git denied to {viewer.user.login}."
            raise Refused(403, output) from refused
    return viewer, repository


async def _backend(
    hub: Hub, repository: Repository, viewer: Token | None, method: str, service: str, asked: Asked
) -> Answered:
    admin = viewer is not None and hub.rank(viewer.user, repository) >= 4
    guarded = [] if admin else [f"refs/heads/{name}" for name in repository.protection]
    variables = environment() | {
        "GIT_PROJECT_ROOT": str(repository.git.path),
        "GIT_HTTP_EXPORT_ALL": "1",
        "REQUEST_METHOD": method,
        "PATH_INFO": f"/{service}",
        "QUERY_STRING": asked.query_string,
        "CONTENT_TYPE": asked.headers.get("content-type", ""),
        "CONTENT_LENGTH": str(len(asked.content)),
        "REMOTE_USER": viewer.user.login if viewer else "",
        "REMOTE_ADDR": "127.0.0.1",
        "GITHUB_PROTECTED": " ".join(guarded),
        "PATH": os.environ.get("PATH", os.defpath),
    }
    if "content-encoding" in asked.headers:
        variables["HTTP_CONTENT_ENCODING"] = asked.headers["content-encoding"]
    if "git-protocol" in asked.headers:
        variables["GIT_PROTOCOL"] = asked.headers["git-protocol"]
    process = await asyncio.create_subprocess_exec(
        "git",
        "http-backend",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=variables,
    )
    out, _ = await process.communicate(asked.content)
    return _read(out)


def _read(out: bytes) -> Answered:
    """The answer of a CGI program: its headers, a blank line, the rest."""
    head, _, body = out.partition(b"\r\n\r\n")
    status, headers = 200, {}
    for line in head.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(":")
        if name.casefold() == "status":
            status = int(value.split()[0])
        elif name:
            headers[name.casefold()] = value.strip()
    return status if out else 500, body, headers
