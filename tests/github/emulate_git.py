"""Git for emulate, which has none: a bare repository whose pushes are made again there, object by object.

`EmulateGit.make` copies what emulate has into a bare repository and puts a hook there. What anybody pushes into it,
from whatever process, is in emulate before the push ends; what was merged in emulate comes back by `pull`. Commits have
the same names on both sides, or it fails. Only the standard library: the hook starts with each push.
"""

import base64
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

_SETTINGS = "emulate.json"
_NOTHING = "0" * 40
_HEADERS = ("tree", "parent", "author", "committer")


class EmulateGit:
    def __init__(self, path: Path) -> None:
        """A repository that `make` has made."""
        self.path = path
        known = json.loads((path / _SETTINGS).read_text())
        self._url: str = known["url"]
        self._token: str = known["token"]

    @classmethod
    def make(cls, path: Path, port: int, repository: str, token: str) -> "EmulateGit":
        path.mkdir(parents=True)
        _git(path, "init", "-q", "--bare", "--template=", "-b", "main", ".")
        settings = path / _SETTINGS
        settings.touch(0o600)
        settings.write_text(json.dumps({"url": f"http://127.0.0.1:{port}/repos/{repository}", "token": token}))
        made = cls(path)
        made.pull()
        hook = path / "hooks" / "post-receive"
        hook.parent.mkdir()
        hook.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{Path(__file__).resolve()}" "$PWD"\n')
        hook.chmod(0o755)
        return made

    # from emulate

    def pull(self) -> None:
        """Take over the branches of emulate as they are."""
        for ref in self._ask("GET", "/git/matching-refs/heads"):
            sha = ref["object"]["sha"]
            self._fetch(sha)
            _git(self.path, "update-ref", ref["ref"], sha)

    def _fetch(self, sha: str) -> None:
        """A commit and everything behind it that is not here yet."""
        waiting = [sha]
        found: list[dict[str, Any]] = []
        while waiting:
            wanted = waiting.pop()
            if self._has(wanted) or any(one["sha"] == wanted for one in found):
                continue
            commit = self._ask("GET", f"/git/commits/{wanted}")
            found.append(commit)
            waiting += [parent["sha"] for parent in commit["parents"]]
        for commit in reversed(found):
            self._fetch_tree(commit["tree"]["sha"])
            lines = [f"tree {commit['tree']['sha']}", *(f"parent {one['sha']}" for one in commit["parents"])]
            lines += [f"{role} {_signed(commit[role])}" for role in ("author", "committer")]
            message = commit["message"] if commit["message"].endswith("\n") else commit["message"] + "\n"
            self._write("commit", "\n".join([*lines, "", message]).encode(), commit["sha"])

    def _fetch_tree(self, sha: str) -> None:
        if self._has(sha):
            return
        rows = []
        for entry in self._ask("GET", f"/git/trees/{sha}")["tree"]:
            if entry["type"] == "tree":
                self._fetch_tree(entry["sha"])
            elif entry["type"] == "blob" and not self._has(entry["sha"]):
                blob = self._ask("GET", f"/git/blobs/{entry['sha']}")
                self._write("blob", base64.b64decode(blob["content"]), entry["sha"])
            rows.append(f"{entry['mode']} {entry['type']} {entry['sha']}\t{entry['path']}")
        made = _git(self.path, "mktree", "-z", stdin="".join(f"{row}\0" for row in rows).encode()).strip()
        _same(sha, made, "tree")

    def _write(self, kind: str, content: bytes, sha: str) -> None:
        _same(sha, _git(self.path, "hash-object", "-t", kind, "-w", "--stdin", stdin=content).strip(), kind)

    def _has(self, sha: str) -> bool:
        done = subprocess.run(
            ["git", "cat-file", "-e", sha], cwd=self.path, env=_environment(), capture_output=True, check=False
        )
        return done.returncode == 0

    # to emulate

    def push(self, ref: str, sha: str) -> None:
        """Make a branch in emulate what it is here; a name of nothing deletes it."""
        there = {one["ref"]: one["object"]["sha"] for one in self._ask("GET", "/git/matching-refs/heads")}
        if sha == _NOTHING:
            if ref in there:
                self._ask("DELETE", f"/git/{ref}")
            return
        known = [f"^{one}" for one in there.values() if self._has(one)]
        for line in _git(self.path, "rev-list", "--objects", "--no-object-names", sha, *known).split():
            if _git(self.path, "cat-file", "-t", line).strip() == "blob":
                self._send_blob(line)
        for commit in _git(self.path, "rev-list", "--reverse", "--topo-order", sha, *known).split():
            self._send_commit(commit)
        if ref not in there:
            self._ask("POST", "/git/refs", {"ref": ref, "sha": sha})
        elif there[ref] != sha:
            self._ask("PATCH", f"/git/{ref}", {"sha": sha, "force": True})

    def _send_blob(self, sha: str) -> None:
        content = _git_bytes(self.path, "cat-file", "blob", sha)
        sent = {"content": base64.b64encode(content).decode(), "encoding": "base64"}
        _same(sha, self._ask("POST", "/git/blobs", sent)["sha"], "blob")

    def _send_commit(self, sha: str) -> None:
        head, _, message = _git(self.path, "cat-file", "commit", sha).partition("\n\n")
        fields = [line.partition(" ")[::2] for line in head.split("\n")]
        for name, _ in fields:
            if name not in _HEADERS:
                raise RuntimeError(f"emulate has no commits with {name}: {sha}")
        values = dict(fields)
        entries = []
        for row in _git(self.path, "ls-tree", "-r", "-z", sha).split("\0"):
            if row:
                mode, kind, rest = row.split(" ", 2)
                name, _, path = rest.partition("\t")
                entries.append({"path": path, "mode": mode, "type": kind, "sha": name})
        _same(values["tree"], self._ask("POST", "/git/trees", {"tree": entries})["sha"], "tree")
        sent = {
            "message": message,
            "tree": values["tree"],
            "parents": [value for name, value in fields if name == "parent"],
            "author": _person(values["author"]),
            "committer": _person(values["committer"]),
        }
        _same(sha, self._ask("POST", "/git/commits", sent)["sha"], "commit")

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"authorization": f"Bearer {self._token}", "content-type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as answer:
                content = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                raise RuntimeError(f"emulate: {method} {path}: {error.code} {error.read().decode()}") from None
        return json.loads(content) if content else None


def _same(here: str, there: str, kind: str) -> None:
    if here != there:
        raise RuntimeError(f"emulate has another name for the {kind} {here}: {there}")


def _person(line: str) -> dict[str, str]:
    """`A <a@x> 1731760000 +0100`, as the API wants it."""
    who, _, when = line.rpartition("> ")
    name, _, email = who.partition(" <")
    seconds, zone = when.split()
    shift = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:5])) * (-1 if zone[0] == "-" else 1)
    date = datetime.fromtimestamp(int(seconds), timezone(shift)).isoformat()
    return {"name": name, "email": email, "date": date}


def _signed(person: dict[str, str]) -> str:
    """As a commit has it, from what the API says."""
    moment = datetime.fromisoformat(person["date"].replace("Z", "+00:00"))
    zone = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).strftime("%z")
    return f"{person['name']} <{person['email']}> {int(moment.timestamp())} {zone}"


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}


def _git(path: Path, *arguments: str, stdin: bytes = b"") -> str:
    return _git_bytes(path, *arguments, stdin=stdin).decode()


def _git_bytes(path: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    done = subprocess.run(
        ["git", *arguments], cwd=path, input=stdin, env=_environment(), capture_output=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr.decode().strip())
    return done.stdout


def _hook(path: Path) -> None:
    """What git calls after a push: a line for each ref."""
    bridge = EmulateGit(path)
    for line in sys.stdin:
        _, new, ref = line.split()
        if ref.startswith("refs/heads/"):
            bridge.push(ref, new)


if __name__ == "__main__":
    _hook(Path(sys.argv[1]))
