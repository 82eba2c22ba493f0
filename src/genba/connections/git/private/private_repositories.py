"""The private repository of a sandboxed instance.

The working tree is a git worktree of the user's repository like any other, with its folder in `.git/worktrees`. The
instance never sees that folder: a private repository is laid over it in the sandbox. It borrows the objects that its
base leads to (see `packs`), read-only, and has nothing else of the user's: one branch, its base, no remote, no reflog,
no hook but the one that signs commits, no setting but how files are read. What the instance does to it is brought back
by `bundles`; what Genba does to the branch is sent by `send`.

Law: nothing in the private repository is run, followed or trusted by the host. It is only ever replaced.
"""

import asyncio
import hashlib
import os
import stat
from pathlib import Path

import msgspec

from genba.connections.git.private.commit_hook import SIGNING, SIGNING_HOOK
from genba.connections.git.private.packs import Packs
from genba.connections.git.private.repository_state import PrivateState, read_state, write_state
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.worktrees.trash import delete_later, throw_away
from genba.connections.untrusted_files import read_file
from genba.domain.errors import GitError
from genba.domain.sessions.sandbox import Bind, PrivateBinds
from genba.domain.sessions.workspaces import Workspace

_HEAD_REF = "ref: "
_MOST_REFS = 20_000
_LARGEST_HEAD = 4096


def private_binds(layout: RepositoryLayout, workspace: Workspace) -> PrivateBinds:
    """The private repository in the place of the real one, and the pointer to it that no instance can change."""
    private_dir = layout.private_dir(workspace.git_dir)
    return PrivateBinds(
        binds=(
            Bind(source=str(private_dir / "repository"), target=workspace.git_dir, writable=True),
            Bind(source=str(private_dir / "pointer"), target=str(Path(workspace.path) / ".git")),
            borrowed_objects(layout, workspace),
        ),
        readable=(),
        overlay=workspace.overlay,
    )


def borrowed_objects(layout: RepositoryLayout, workspace: Workspace) -> Bind:
    """The pack that a private repository borrows, in the place of the objects of the user."""
    state = read_state(layout.private_dir(workspace.git_dir))
    source = Packs(layout).objects(borrowed_commit(workspace, state))
    return Bind(source=str(source), target=str(layout.common / "objects"))


def borrowed_commit(workspace: Workspace, state: PrivateState | None) -> str:
    return workspace.base if state is None else state.borrowed or state.tip


def is_behind(private_dir: Path) -> bool:
    """Whether the private repository may have work that was not brought back."""
    state = read_state(private_dir)
    return state is not None and state.ready and state.refs != refs_seen(private_dir / "repository")


def set_aside(layout: RepositoryLayout, git_dir: Path) -> None:
    """Clear the place for a new private repository: what may still hold work stays, under another name."""
    private_dir = layout.private_dir(git_dir)
    if is_behind(private_dir):
        private_dir.rename(private_dir.with_name(f"{private_dir.name}.left-{os.urandom(4).hex()}"))
    else:
        delete_later(throw_away(layout, private_dir, f"{private_dir.name}.cell"))


def read_plain(path: Path, largest: int) -> bytes | None:
    """A file that an instance may have put there: a plain one that is not too long, or None. No link is followed."""
    return read_file(path, largest)


def private_head(private_dir: Path) -> tuple[str, str]:
    """The branch and the commit that HEAD of a private repository names: one of them, or none."""
    output = (read_plain(private_dir / "repository" / "HEAD", _LARGEST_HEAD) or b"").decode("utf-8", "replace").strip()
    if output.startswith(_HEAD_REF):
        name = output.removeprefix(_HEAD_REF).strip()
        return (name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else "", "")
    return "", output if is_name_of_object(output) else ""


def is_name_of_object(text: str) -> bool:
    return len(text) in (40, 64) and set(text) <= set("0123456789abcdef")


def refs_seen(repository: Path) -> str:
    """A sum over all that the refs of a private repository are kept in; it changes whenever one of them does.

    Only names, sizes and times that no instance can set are looked at, and nothing is opened.
    """
    seen = hashlib.sha256()
    count = 0
    for name in ("HEAD", "packed-refs", "refs", "reftable"):
        for path, entry in _below(repository / name):
            seen.update(f"{path}\0{entry.st_ino}\0{entry.st_ctime_ns}\0{entry.st_size}\0".encode("utf-8", "replace"))
            count += 1
            if count > _MOST_REFS:
                return f"more than {_MOST_REFS}, seen at {os.urandom(8).hex()}"
    return seen.hexdigest()


def _below(path: Path) -> list[tuple[str, os.stat_result]]:
    try:
        entry = path.lstat()
    except OSError:
        return []
    found = [(str(path), entry)]
    if stat.S_ISDIR(entry.st_mode):
        for folder, names, files in os.walk(path):
            for name in (*names, *files):
                inner = os.path.join(folder, name)  # noqa: PTH118  (many of them, and none is opened)
                try:
                    found.append((inner, os.lstat(inner)))
                except OSError:
                    continue
            if len(found) > _MOST_REFS:
                break
    return found


async def send(layout: RepositoryLayout, workspace: Workspace, *, keep: bool = False) -> None:
    """Make the private repository again from what the branch and the tree are on now.

    Whatever was in it must have been brought back before; where that is not known, `keep` sets it aside. The
    folder itself stays, since a sandbox may have it mounted.
    """
    git_dir, private_dir = Path(workspace.git_dir), layout.private_dir(workspace.git_dir)
    tip, settings = await asyncio.gather(
        layout.git.commit_of(f"refs/heads/{workspace.branch}"), layout.git.settings_of_files()
    )
    if tip is None:
        raise GitError(f'the branch "{workspace.branch}" is gone', hint="git reflog   shows where it was")
    on = (git_dir / "HEAD").read_text(encoding="utf-8").strip()
    attached = on == f"{_HEAD_REF}refs/heads/{workspace.branch}"
    head = "" if attached else await layout.git.commit_of_head(git_dir) or tip
    (private_dir / "repository").mkdir(parents=True, exist_ok=True)
    (private_dir / "pointer").write_text(f"gitdir: {git_dir}\n", encoding="utf-8")
    state = PrivateState(
        workspace=workspace, tip=tip, head=head, strayed="no branch" if head else "", borrowed=workspace.base
    )
    write_state(private_dir, msgspec.structs.replace(state, ready=False))
    fresh = private_dir / f"fresh-{os.getpid()}-{os.urandom(4).hex()}"
    packs = Packs(layout)
    await asyncio.gather(
        hold(layout, workspace.run, workspace.base, tip),
        asyncio.to_thread(_build, layout, workspace, fresh, state, settings),
        packs.ensure(workspace.base),
    )
    beyond = tuple(commit for commit in dict.fromkeys((tip, head)) if commit not in ("", workspace.base))
    if beyond:
        await packs.pack(fresh / "objects" / "pack", beyond, workspace.base)
    old = await asyncio.to_thread(_replace_content, layout, private_dir / "repository", fresh, workspace.run, keep)
    (private_dir / "config").write_text(_config(workspace, state, settings), encoding="utf-8")
    write_state(private_dir, msgspec.structs.replace(state, refs=refs_seen(private_dir / "repository")))
    await asyncio.to_thread(delete_later, old)


def _build(layout: RepositoryLayout, workspace: Workspace, target: Path, state: PrivateState, settings: str) -> None:
    """A repository by hand: what `git init` would write, without templates and hooks."""
    for folder in ("objects/info", "objects/pack", "refs/heads", "info"):
        (target / folder).mkdir(parents=True)
    (target / "objects/info/alternates").write_text(f"{layout.common / 'objects'}\n", encoding="utf-8")
    branch = f"refs/heads/{workspace.branch}"
    refs = {f"refs/heads/{workspace.base_branch}": workspace.base, branch: state.tip}
    lines = [f"{refs[name]} {name}\n" for name in sorted(refs, key=str.encode)]
    (target / "packed-refs").write_text("".join(["# pack-refs with: sorted \n", *lines]), encoding="utf-8")
    (target / "config").write_text(_config(workspace, state, settings), encoding="utf-8")
    (target / "hooks").mkdir()
    (target / SIGNING).write_text(SIGNING_HOOK, encoding="utf-8")
    (target / SIGNING).chmod(0o755)
    for name in ("info/exclude", "info/attributes", "shallow"):
        if (layout.common / name).is_file():
            (target / name).write_bytes((layout.common / name).read_bytes())
    index = Path(workspace.git_dir) / "index"
    if index.is_file():
        (target / "index").write_bytes(index.read_bytes())
        # As old as the original: a file that was written after it must not look older than it.
        entry = index.stat()
        os.utime(target / "index", ns=(entry.st_atime_ns, entry.st_mtime_ns))
    (target / "HEAD").write_text(f"{state.head}\n" if state.head else f"{_HEAD_REF}{branch}\n", encoding="utf-8")


def ordinary(layout: RepositoryLayout, private_dir: Path) -> dict[str, bytes]:
    """The files of a private repository that tell how the others are to be read, as they were when it was made."""
    settings = private_dir / "config"
    borrowed = f"{layout.common / 'objects'}\n".encode()
    return {"config": settings.read_bytes() if settings.is_file() else b"", "objects/info/alternates": borrowed}


def _config(workspace: Workspace, state: PrivateState, settings: str) -> str:
    sha256 = len(state.tip) == 64  # noqa: PLR2004  (the length of the other kind of name)
    lines = ["[core]", f"\trepositoryformatversion = {int(sha256)}", "\tbare = false", "\tlogAllRefUpdates = true"]
    if workspace.overlay is not None:
        lines += ["\tcheckStat = minimal", "\ttrustctime = false"]
    if sha256:
        lines += ["[extensions]", "\tobjectFormat = sha256"]
    lines += ["[gc]", "\tauto = 0", "[maintenance]", "\tauto = false"]
    for entry in settings.split("\0"):
        name, result, value = entry.partition("\n")
        section, _, key = name.rpartition(".")
        first, _, rest = section.partition(".")
        if key:
            lines.append(f"[{first} {_quoted(rest)}]" if rest else f"[{first}]")
            lines.append(f"\t{key} = {_quoted(value)}" if result else f"\t{key}")
    return "\n".join([*lines, ""])


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def make_writable(folder: Path) -> None:
    """An instance may close its folders to everybody; they are Genba's to move all the same. No link is followed."""
    descriptor = os.open(folder, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
            Path(f"/proc/self/fd/{descriptor}").chmod(0o700)
    finally:
        os.close(descriptor)


def _replace_content(layout: RepositoryLayout, repository: Path, fresh: Path, run: str, keep: bool) -> Path | None:
    """Names are moved, whole, and nothing that lies behind one of them is opened. Returns what may be deleted."""
    old = repository.with_name(f"old-{os.urandom(4).hex()}")
    old.mkdir()
    make_writable(repository)
    for name in os.listdir(repository):  # noqa: PTH208  (names, not paths)
        make_writable(repository / name)
        (repository / name).rename(old / name)
    for name in sorted(os.listdir(fresh), key=lambda name: name == "HEAD"):  # noqa: PTH208
        (fresh / name).rename(repository / name)
    fresh.rmdir()
    if next(old.iterdir(), None) is None:
        old.rmdir()
        return None
    if keep and (old / "HEAD").is_file():
        old.rename(repository.parent.with_name(f"{repository.parent.name}.left-{os.urandom(4).hex()}"))
        return None
    return throw_away(layout, old, f"{run}.repository")


async def hold(layout: RepositoryLayout, run: str, base: str, tip: str) -> None:
    """Refs for what the private repository borrows: as long as it lives, nothing of that is garbage."""
    wanted = held_refs(run, base, tip)
    lines = [f"update {name} {commit}\n" for name, commit in wanted.items() if layout.git.loose(name) != commit]
    if lines:
        await layout.git.run("update-ref", "--stdin", stdin="".join(lines))


def held_refs(run: str, base: str, tip: str) -> dict[str, str]:
    """What `hold` makes, where it is to be made together with something else."""
    return {f"{_held_refs(run)}/base": base, f"{_held_refs(run)}/tip": tip}


async def no_longer_needed(layout: RepositoryLayout, workspace: Workspace) -> list[str]:
    """The refs that go with a private repository: those that it borrowed from, and those of work that has arrived."""
    gone = loosely_held(layout, workspace.run)
    if not gone:  # they may have been packed meanwhile
        gone = (await layout.git.text("for-each-ref", "--format=%(refname)", _held_refs(workspace.run))).splitlines()
    kept = (workspace.branch, workspace.base_branch) if (layout.common / kept_refs(workspace.run)).is_dir() else ()
    for branch in kept:
        arrived = ("for-each-ref", "--format=%(refname)", f"--merged=refs/heads/{branch}")
        done = await layout.git.run(*arrived, kept_refs(workspace.run), allow=(0, 128, 129))
        gone += done.stdout.splitlines()
    return list(dict.fromkeys(gone))


def loosely_held(layout: RepositoryLayout, run: str) -> list[str]:
    """The refs of `hold` that lie there as files."""
    names = (f"{_held_refs(run)}/{name}" for name in ("base", "tip"))
    return [name for name in names if (layout.common / name).is_file()]


def _held_refs(run: str) -> str:
    return f"refs/genba/base/{run}"


def kept_refs(run: str) -> str:
    """The folder of the refs that hold what a run left beside its branch."""
    return f"refs/genba/private/{run}"
