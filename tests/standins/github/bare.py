"""A real bare repository: what GitHub has on its disks."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

_SHA = re.compile(r"[0-9a-f]{40}")
_IDENTITY = {
    "GIT_AUTHOR_NAME": "GitHub",
    "GIT_AUTHOR_EMAIL": "noreply@github.com",
    "GIT_COMMITTER_NAME": "GitHub",
    "GIT_COMMITTER_EMAIL": "noreply@github.com",
}
_DATES = "--date=format-local:%Y-%m-%dT%H:%M:%SZ"


class GitFailed(Exception):
    """Git refused; the message is its output."""


@dataclass(frozen=True, slots=True)
class Merge:
    """What merging two commits comes to: the tree, and the paths in conflict."""

    tree: str
    conflicts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommitFacts:
    sha: str
    tree: str
    parents: tuple[str, ...]
    author: str
    email: str
    date: str
    committer: str
    committer_email: str
    committed: str
    message: str


def environment() -> dict[str, str]:
    """What git gets to know of this machine: nothing but where to find programs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C", "TZ": "UTC"}


class BareRepository:
    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def make(cls, path: Path) -> "BareRepository":
        """A new one with a first commit on `main`."""
        path.mkdir(parents=True)
        repository = cls(path)
        repository.run("init", "-q", "--bare", "--template=", "-b", "main", ".")
        with (path / "config").open("a") as config:
            config.write("[http]\n\treceivepack = true\n[gc]\n\tauto = 0\n[receive]\n\tautogc = false\n")
            config.write("[uploadpack]\n\tallowAnySHA1InWant = true\n")
        repository.commit("main", {"README.md": f"# {path.stem}\n"}, "Initial commit")
        return repository

    def run(self, *arguments: str, stdin: bytes | None = None, codes: tuple[int, ...] = (0,)) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            env=environment() | _IDENTITY,
            check=False,
        )
        if done.returncode not in codes:
            raise GitFailed(done.stderr.decode(errors="replace").strip())
        return done.stdout.decode(errors="replace")

    # refs are read from the files: a look costs no process

    def refs(self) -> dict[str, str]:
        """All branches and tags, and the commits that they are at."""
        found: dict[str, str] = {}
        packed = self.path / "packed-refs"
        if packed.exists():
            for line in packed.read_text().splitlines():
                sha, _, name = line.partition(" ")
                if _SHA.fullmatch(sha):
                    found[name] = sha
        root = str(self.path)
        for folder, _, files in os.walk(f"{root}/refs"):
            for file in files:
                place = f"{folder}/{file}"
                if file.endswith(".lock"):
                    continue
                try:
                    with open(place) as content:  # noqa: PTH123  (this runs at every request)
                        sha = content.read().strip()
                except FileNotFoundError:
                    continue
                if _SHA.fullmatch(sha):
                    found[place[len(root) + 1 :]] = sha
        return found

    def resolve(self, name: str) -> str:
        """The commit of a branch, a tag, a whole ref or a commit (shortened or not); empty where there is none."""
        refs = self.refs()
        for ref in (f"refs/heads/{name}", f"refs/tags/{name}", name, f"refs/{name}"):
            if ref in refs:
                return refs[ref]
        if not re.fullmatch(r"[0-9a-f]{4,40}", name):
            return ""
        return self.run("rev-parse", "-q", "--verify", f"{name}^{{commit}}", codes=(0, 1, 128)).strip()

    def set_ref(self, ref: str, sha: str, old: str | None = None) -> None:
        self.run("update-ref", ref, sha, *([] if old is None else [old]))

    def drop_ref(self, ref: str) -> None:
        self.run("update-ref", "-d", ref)

    # history

    def commit(
        self,
        branch: str,
        files: dict[str, str | None],
        message: str,
        *,
        start: str = "",
        author: str = "GitHub",
        email: str = "noreply@github.com",
    ) -> str:
        """Put a commit on a branch: None deletes a file. The branch is made from `start` where it is not there."""
        ref = f"refs/heads/{branch}"
        parent = self.refs().get(ref) or (self.resolve(start) if start else "")
        text = message.encode()
        out = [f"commit {ref}\n", f"committer {author} <{email}> now\n", f"data {len(text)}\n"]
        stream = "".join(out).encode() + text + b"\n"
        if parent:
            stream += f"from {parent}\n".encode()
        for path, content in files.items():
            if content is None:
                stream += f"D {path}\n".encode()
                continue
            blob = content.encode()
            stream += f"M 100644 inline {path}\ndata {len(blob)}\n".encode() + blob + b"\n"
        self.run("fast-import", "--quiet", "--date-format=now", "--force", stdin=stream)
        return self.refs()[ref]

    def merge(self, ours: str, theirs: str) -> Merge:
        """What merging comes to, made in no working tree."""
        output = self.run(
            "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs, codes=(0, 1)
        )
        tree, *paths = [part for part in output.split("\0") if part]
        return Merge(tree=tree, conflicts=tuple(paths))

    def commit_tree(self, tree: str, parents: tuple[str, ...], message: str, who: "CommitFacts | None" = None) -> str:
        arguments = ["commit-tree", tree]
        for parent in parents:
            arguments += ["-p", parent]
        stamp = {} if who is None else {"GIT_AUTHOR_NAME": who.author, "GIT_AUTHOR_EMAIL": who.email}
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            input=message.encode(),
            capture_output=True,
            env=environment() | _IDENTITY | stamp,
            check=False,
        )
        if done.returncode:
            raise GitFailed(done.stderr.decode(errors="replace").strip())
        return done.stdout.decode().strip()

    def is_ancestor(self, ancestor: str, descendant: str) -> bool:
        done = subprocess.run(
            ["git", "merge-base", "--is-ancestor", ancestor, descendant],
            cwd=self.path,
            capture_output=True,
            env=environment(),
            check=False,
        )
        return done.returncode == 0

    def merge_base(self, one: str, other: str) -> str:
        return self.run("merge-base", one, other, codes=(0, 1)).strip()

    def commits(self, base: str, head: str) -> list[CommitFacts]:
        """Those of `head` that `base` has not, oldest first."""
        return self._log("--reverse", "--topo-order", f"{base}..{head}")

    def history(self, sha: str) -> list[CommitFacts]:
        """Everything that a commit has behind it, newest first."""
        return self._log(sha)

    def facts(self, sha: str) -> CommitFacts:
        return self._log("-1", sha)[0]

    def _log(self, *arguments: str) -> list[CommitFacts]:
        form = "%H%x00%T%x00%P%x00%an%x00%ae%x00%ad%x00%cn%x00%ce%x00%cd%x00%B%x01"
        found = []
        for entry in self.run("log", _DATES, f"--format={form}", *arguments).split("\x01"):
            if not entry.strip():
                continue
            sha, tree, parents, author, email, date, committer, address, committed, message = entry.strip("\n").split(
                "\0"
            )
            found.append(
                CommitFacts(
                    sha=sha,
                    tree=tree,
                    parents=tuple(parents.split()),
                    author=author,
                    email=email,
                    date=date,
                    committer=committer,
                    committer_email=address,
                    committed=committed,
                    message=message.strip("\n"),
                )
            )
        return found

    def changed(self, base: str, head: str) -> list[tuple[str, int, int]]:
        """The paths that differ since the two parted, with the lines added and removed."""
        found = []
        for line in self.run("diff", "--numstat", f"{base}...{head}", codes=(0, 128)).splitlines():
            added, removed, path = line.split("\t", 2)
            found.append((path, int(added) if added.isdigit() else 0, int(removed) if removed.isdigit() else 0))
        return found

    def show(self, ref: str, path: str) -> str | None:
        """What a file has at a commit; None where there is no such file."""
        try:
            return self.run("cat-file", "blob", f"{ref}:{path}")
        except GitFailed:
            return None
