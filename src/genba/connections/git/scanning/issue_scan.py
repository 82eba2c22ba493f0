"""What git shows of issues: which commits and branches are about which one, what is on the base, what was taken back.

The base is read once, and then only what is new on it. What is not on the base is read again at every scan, since
branches come and go. A commit names its issue by a trailer, a closing keyword, the branch it was merged from, or the
pull request it was; a mere mention is kept as that.
"""

import asyncio
import itertools
import re
from collections.abc import Iterable, Iterator

import msgspec

from genba.connections.git.repository.commands import Git
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.scanning.session_commits import brought_by_sessions, signature
from genba.domain.errors import GitError
from genba.domain.facilitation import How, Scanned, ScanPosition, SeenBranch, SeenCommit
from genba.domain.tracker.branch_names import numbered
from genba.domain.tracker.commit_time import WITHIN, Hours, commit_time

_ISSUE, _AGENT, _SESSION = b"\nIssue:", b"\nAgent:", b"\nSession:"
_OURS = re.compile(
    r"([0-9a-f]+) ([0-9]{1,11})\n([^\n]{0,120})\n(?:.*\n)?"
    r"Issue: ?([0-9]{1,9})\nAgent: ?(\S{0,200})\nSession: ?(\S{0,200})\n*",
    re.DOTALL,
)
"""A commit with the trailers that Genba writes at its end, and a subject that is not cut."""
_REVERTS = re.compile(rb"This reverts commit ([0-9a-f]{7,64})")
_REVERTS_REQUEST = re.compile(rb"^Reverts (?:[\w.-]+/[\w.-]+)?#(\d{1,9})\b", re.MULTILINE)
_KEYWORD = re.compile(rb"(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+#(\d{1,9})\b(?!\.\d)")
_MENTION = re.compile(rb"(?<![\w/&#])#(\d{1,9})\b(?!\.\d)")
_REQUEST = re.compile(rb"\(#(\d{1,9})\)\s*$")
_MERGED_REQUEST = re.compile(rb"^Merge pull request #(\d{1,9}) from [^/\s]+/(\S+)")
_MERGED_BRANCH = re.compile(rb"^Merge (?:remote-tracking )?branch(?:es)? '([^']+)'")
_HEADS, _REMOTES = "refs/heads/", "refs/remotes/"
_PLAIN = ("-z", "--encoding=UTF-8", "--no-color", "--no-follow", "--no-show-signature")
_FORMAT = "--format=%H %ct%n%B"
_SOURCED = "--format=%H %ct %S%n%B"
_LONGEST = 64 * 1024
"""What a message says after so many bytes is not read."""
_LONGEST_SUBJECT = 120
_MOST_TRIED = 200
"""Branches that are tried on the base in one look, to see whether their work is there by another name."""
_MOST_PATHS = 200
_MOST_PATCHES = 200
_MOST_PIECES = 16
_PATCH = ("-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index")
_NEAR = 500
"""How far before the trailer of the issue the others are looked for."""
"""The moments of an hour, by its seconds."""
_BY_TRAILER = How.TRAILER


class GitScan:
    """Reads the whole repository, and writes nothing."""

    def __init__(self, layout: RepositoryLayout) -> None:
        self.git: Git = layout.git

    async def scan(self, base: str, position: ScanPosition | None = None) -> Scanned:
        """What is new on the base since a position, and all that is not on it."""
        tip = await self.git.commit_of(f"{_HEADS}{base}")
        shallow = (self.git.git_dir / "shallow").exists()
        now = ScanPosition(base=base, tip=tip or "", shallow=shallow)
        if tip is None:
            some = await self.git.text("rev-list", "--max-count=1", "--all")
            note = f"there is no branch {base}, or it has no commit"
            return Scanned(position=now, full=True, unread=bool(some), notes=(note,))
        off_base = asyncio.create_task(asyncio.to_thread(self._read_branches, tip))
        try:
            found = await self._go_on(position, now)
            if found is None:
                found = await asyncio.to_thread(self._read, now, "")
        finally:
            found_off_base = await off_base
        found.off_base, found.branches = found_off_base.off_base, found_off_base.branches
        found.remotes = await self.remotes()
        await self._believe_sessions(found)
        await self._look_for_landed(found, tip)
        await self._revert_requests(found, tip)
        await self._revert_merges(found)
        if shallow:
            found.notes = ("the clone is shallow: what is older is not seen",)
        return found

    async def remotes(self) -> tuple[str, ...]:
        """The addresses of all remotes."""
        done = await self.git.run("config", "--get-regexp", r"^remote\..*\.url$", allow=(0, 1))
        return tuple(line.partition(" ")[2] for line in done.stdout.splitlines())

    async def naming(self, base: str, number: int) -> list[SeenCommit]:
        """The commits of the base whose messages name an issue, newest first. A cheap look for one issue."""
        tip = await self.git.commit_of(f"{_HEADS}{base}") or await self.git.commit_of(base)
        if tip is None:
            return []
        asked = ("--fixed-strings", "--regexp-ignore-case", f"--grep=#{number}", f"--grep=issue: {number}")
        more = (f"--grep=issue:{number}",)
        names = await self.git.text("log", "--format=%H", *asked, *more, tip, "--")
        found = await self.again(names.split())
        await asyncio.to_thread(self._leave_out_claims, found, tip)
        return sorted(found.on_base.get(number, ()), key=lambda each: (each.time, each.sha), reverse=True)

    async def _go_on(self, last: ScanPosition | None, now: ScanPosition) -> Scanned | None:
        """What is new since the base was read last, if it only grew; nothing where all must be read."""
        if last is None or not last.tip or (last.base, last.shallow) != (now.base, now.shallow):
            return None
        if last.tip == now.tip:
            return Scanned(position=now)
        reading = asyncio.create_task(asyncio.to_thread(self._read, now, last.tip))
        try:
            grew = await self.git.is_ancestor(last.tip, now.tip)
        except GitError:
            grew = False  # it is gone
        try:
            found = await reading
        except GitError:
            return None
        return found if grew else None

    async def again(self, commits: Iterable[str]) -> Scanned:
        """What some commits of the base say, that were read before. One that is not there any more says nothing."""
        found = Scanned(position=ScanPosition(base="", tip=""))
        asked = "".join(f"{sha}\n" for sha in sorted(set(commits)))
        if asked:
            args = ("log", *_PLAIN, _FORMAT, "--no-walk=unsorted", "--ignore-missing", "--stdin", "--")
            await asyncio.to_thread(lambda: _read_base(found, self.git.chunks(*args, stdin=asked)))
        return found

    def _read(self, now: ScanPosition, since: str) -> Scanned:
        found = Scanned(position=now, full=not since)
        span = f"{since}..{now.tip}" if since else now.tip
        _read_base(found, self.git.chunks("log", *_PLAIN, _FORMAT, span, "--"))
        self._leave_out_claims(found, span)
        return found

    def _leave_out_claims(self, found: Scanned, span: str) -> None:
        """Of what the merge of a session brought, nothing counts for an issue that is not its own."""
        if not (found.on_base or found.of_requests or found.reverts or found.reverted_requests):
            return
        brought = brought_by_sessions(self.git, span)
        for part in (found.on_base, found.of_requests) if brought else ():
            for number, commits in list(part.items()):
                part[number] = [each for each in commits if brought.get(each.sha, number) == number]
                if not part[number]:
                    del part[number]
        for taken, by in list(found.reverts.items()):
            if by in brought:
                found.claimed_reverts[taken] = found.reverts.pop(taken)
        found.reverted_requests = {each: by for each, by in found.reverted_requests.items() if by not in brought}

    def _read_branches(self, tip: str) -> Scanned:
        found = Scanned(position=ScanPosition(base="", tip=tip))
        ahead: dict[str, list[tuple[bytes, bytes]]] = {}
        args = ("log", *_PLAIN, "--source", _SOURCED, "--branches", "--remotes", "--not", tip, "--")
        for head, message in _records(self.git.chunks(*args)):
            ahead.setdefault(head.split(b" ", 2)[2].decode("utf-8", "replace"), []).append((head, message))
        for ref, commits in ahead.items():
            branch = branch_name(ref)
            named = numbered(branch)
            by_name = named[0] if named is not None else None
            for head, message in commits:
                for number, commit in _named(head, message, on_base=False, branch=branch):
                    found.off_base.setdefault(number, []).append(commit)
            if by_name is not None:
                (newest, message), *_ = commits
                sha, at = newest.split(b" ", 2)[:2]
                seen = SeenBranch(
                    name=branch,
                    tip=sha.decode(),
                    time=commit_time(at),
                    ahead=len(commits),
                    remote=ref.startswith(_REMOTES),
                    run=signature(message).run,
                )
                _add_branch(found.branches.setdefault(by_name, []), seen)
        return found

    async def _look_for_landed(self, found: Scanned, tip: str) -> None:
        """Branches whose work is on the base, though none of their commits is."""
        tried = 0
        for branches in found.branches.values():
            for at, branch in enumerate(branches):
                tried += 1
                if tried > _MOST_TRIED:
                    return
                if await self._has_landed(branch.tip, tip):
                    branches[at] = msgspec.structs.replace(branch, landed=True)

    async def _has_landed(self, branch: str, base: str) -> bool:
        """Merging it would change nothing; or the whole of it is one commit of the base, which went on from there."""
        done = await self.git.run("merge-tree", "--write-tree", base, branch, allow=(0, 1, 128))
        merged = done.stdout.split("\n", 1)[0].strip() if done.returncode == 0 else ""
        if merged and merged == await self.git.text("rev-parse", f"{base}^{{tree}}"):
            return await self._brings_something(branch, base)
        return await self._is_one_commit(branch, base, merged)

    async def _brings_something(self, branch: str, base: str) -> bool:
        """Whether anything on a branch could have landed. Empty commits and what it took back itself are nothing.

        A branch that the base was merged into is compared commit by commit, since it forked only there.
        """
        fork = (await self.git.run("merge-base", base, branch, allow=(0, 1))).stdout.strip()
        if not fork or (await self.git.run("diff", "--quiet", fork, branch, allow=(0, 1))).returncode:
            return True
        span = f"{base}..{branch}"
        if not await self.git.text("rev-list", "--merges", "--max-count=1", span, "--"):
            return False
        return bool(await self.git.text("rev-list", "--full-history", "--no-merges", "--max-count=1", span, "--", ":/"))

    async def _is_one_commit(self, branch: str, base: str, merged: str) -> bool:
        """Whether some commit of the base since the fork is the whole of a branch, and was not taken back."""
        fork = (await self.git.run("merge-base", base, branch, allow=(0, 1))).stdout.strip()
        if not fork:
            return False
        names = (await self.git.run("diff", "--name-only", "-z", "--no-renames", fork, branch)).stdout.split("\0")
        paths = [f":(literal){name}" for name in names if name]
        if not paths or len(paths) > _MOST_PATHS:
            return False
        whole = await self._patches(("diff", *_PATCH, fork, branch))
        span = f"{fork}..{base}"
        most = f"--max-count={_MOST_PATCHES}"
        there = await self._patches(("log", *_PATCH, "--no-merges", most, "--format=commit %H", span, "--", *paths))
        same = {commit for patch in whole for commit in there.get(patch, ())}
        if not same:
            return False
        if merged and whole.keys() == (await self._patches(("diff", *_PATCH, base, merged))).keys():
            return False  # all of it would come again: none of it is there
        back = await self._taken_back(span)
        return any(not _is_taken_back(commit, back) for commit in same)

    async def is_reverted(self, commit: str, base: str) -> bool:
        """True when the base reverted a commit. What a session says of a commit counts only where it undoes that."""
        return _is_taken_back(commit, await self._taken_back(f"{commit}..{base}"))

    async def _taken_back(self, span: str) -> dict[str, str]:
        """By commit: the one within a span that says that it takes it back."""
        args = ("log", *_PLAIN, _FORMAT, "--fixed-strings", "--grep=This reverts commit", span, "--")
        found: dict[str, str] = {}
        records = await asyncio.to_thread(lambda: list(_records(self.git.chunks(*args))))
        brought = await asyncio.to_thread(brought_by_sessions, self.git, span) if records else {}
        for head, message in records:
            by = head.split(b" ", 1)[0].decode()
            is_claim = by in brought or bool(signature(message).run)
            for match in _REVERTS.finditer(message, 0, _LONGEST):
                sha = match[1].decode()
                if not is_claim or await self._undoes(by, sha):
                    found[sha] = by
        return found

    async def _believe_sessions(self, found: Scanned) -> None:
        """A session that says that it took a commit back is believed where its commit undoes that one."""
        for sha, by in list(found.claimed_reverts.items())[:_MOST_TRIED]:
            if await self._undoes(by, sha):
                found.reverts.setdefault(sha, by)

    async def _undoes(self, by: str, sha: str) -> bool:
        """Whether a commit changes what another one changed, the other way round."""
        made, undone = await asyncio.gather(
            self.git.run("rev-parse", "--verify", "--quiet", f"{by}^", allow=(0, 1)),
            self.git.run("rev-parse", "--verify", "--quiet", f"{sha}^", allow=(0, 1, 128)),
        )
        if made.returncode or undone.returncode:
            return False
        does = await self._patches(("diff", *_PATCH, f"{by}^", by))
        back = await self._patches(("diff", *_PATCH, sha, f"{sha}^"))
        return bool(back) and does.keys() == back.keys()

    async def _patches(self, args: tuple[str, ...]) -> dict[str, list[str]]:
        """What changes have in common that are the same, wherever they are made; and the commits that made them."""
        output = await asyncio.to_thread(lambda: b"".join(itertools.islice(self.git.chunks(*args), _MOST_PIECES)))
        if not output.startswith(b"commit "):
            output = b"commit " + b"0" * 40 + b"\n" + output
        result = await self.git.run("patch-id", "--stable", stdin=output.decode("utf-8", "surrogateescape"))
        found: dict[str, list[str]] = {}
        for line in result.stdout.splitlines():
            patch, _, commit = line.partition(" ")
            found.setdefault(patch, []).append(commit)
        return found

    async def _revert_requests(self, found: Scanned, tip: str) -> None:
        """A revert of a pull request reverts the commits that it was, also those that were read before."""
        for number, by in found.reverted_requests.items():
            known = [commit.sha for commit in found.of_requests.get(number, ())]
            if not known and not found.full:
                message = rf"--grep=\(#{number}\)$|^Merge pull request #{number} from "
                known = (await self.git.text("log", "--format=%H", "-E", message, "--max-count=1", tip, "--")).split()
            for sha in known:
                found.reverts.setdefault(sha, by)

    async def _revert_merges(self, found: Scanned) -> None:
        """A revert of a merge reverts everything that it brought."""
        for sha, by in list(found.reverts.items()):
            done = await self.git.run("rev-list", "--parents", "-1", sha, allow=(0, 128))
            names = done.stdout.split()
            if done.returncode == 0 and len(names) > 2:  # noqa: PLR2004  (itself and one parent: no merge)
                brought = await self.git.text("rev-list", f"{names[1]}..{sha}", "--")
                for commit in brought.split():
                    found.reverts.setdefault(commit, by)


def _is_taken_back(commit: str, back: dict[str, str]) -> bool:
    """Whether a commit was reverted, and that revert was not."""
    taken, seen = False, {""}
    while True:
        commit = next((by for sha, by in back.items() if commit.startswith(sha)), "")
        if commit in seen:
            return taken
        seen.add(commit)
        taken = not taken


def _lists(chunks: Iterator[bytes]) -> Iterator[list[bytes]]:
    """The commits, as many at a time as came in one piece."""
    rest = b""
    for chunk in chunks:
        whole = (rest + chunk if rest else chunk).split(b"\0")
        rest = whole.pop()
        yield whole
    if rest:
        yield [rest]


def _records(chunks: Iterator[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Each commit as its first line and its message."""
    for whole in _lists(chunks):
        for record in whole:
            head, _, message = record.partition(b"\n")
            yield head, message


def _read_base(found: Scanned, chunks: Iterator[bytes]) -> None:
    """All commits of the base, a hundred thousand of them: what most say, and nothing else, is read at once."""
    on_base, ours, hours, within = found.on_base, _OURS.fullmatch, Hours(), WITHIN
    for whole in _lists(chunks):
        for record in whole:
            if b"#" in record or b"everts" in record or b"\nMerge" in record:
                head, _, message = record.partition(b"\n")
                _read_on_base(found, head, message)
                continue
            if _ISSUE not in record:
                continue
            result = ours(record.decode("utf-8", "replace"))
            if result is None:
                head, _, message = record.partition(b"\n")
                at = message.rfind(_ISSUE)
                number, commit = _number(_value(message, at + len(_ISSUE))), _trailed(head, message, at)
            else:
                sha, at_, subject, digits, agent, run = result.groups()
                number, (hour, rest) = int(digits), divmod(int(at_), 3600)
                commit = SeenCommit(
                    sha=sha, time=hours[hour] + within[rest], how=_BY_TRAILER, subject=subject, on_base=True,
                    agent=agent, run=run,
                )  # fmt: skip
            if number in on_base:
                on_base[number].append(commit)
            elif number:
                on_base[number] = [commit]


def _read_on_base(found: Scanned, head: bytes, message: bytes) -> None:
    """A commit that says more than whose it is."""
    if b"everts" in message and _read_revert(found, head, message):
        return
    for number, commit in _named(head, message, on_base=True):
        if commit.how is How.PULL_REQUEST:
            found.of_requests.setdefault(number, []).append(commit)
        else:
            found.on_base.setdefault(number, []).append(commit)


def _read_revert(found: Scanned, head: bytes, message: bytes) -> bool:
    """Whether a commit takes another one back. What else it names is what it takes back, and no work."""
    sha = head[: head.index(b" ")].decode()
    if signature(message).run:
        claimed = [match[1].decode() for match in _REVERTS.finditer(message, 0, _LONGEST)]
        found.claimed_reverts.update(dict.fromkeys(claimed, sha))
        return bool(claimed)
    commits = [match[1].decode() for match in _REVERTS.finditer(message, 0, _LONGEST)]
    requests = [int(match[1]) for match in _REVERTS_REQUEST.finditer(message, 0, _LONGEST)]
    found.reverts.update(dict.fromkeys(commits, sha))
    found.reverted_requests.update(dict.fromkeys(requests, sha))
    if commits or requests:
        subject, _, _ = message.partition(b"\n")
        itself = _REQUEST.search(subject)
        if itself:  # so that it is known when this one is reverted
            own = SeenCommit(sha=sha, time=commit_time(head.split(b" ")[1]), how=How.PULL_REQUEST, on_base=True)
            found.of_requests.setdefault(int(itself[1]), []).append(own)
    return bool(commits or requests)


def _trailed(head: bytes, message: bytes, at: int) -> SeenCommit:
    """A commit that says by trailers whose it is, and nothing else."""
    sha, _, seconds = head.decode().partition(" ")
    subject, _, _ = message.partition(b"\n")
    tail = message[max(0, at - _NEAR) :]
    return SeenCommit(
        sha=sha,
        time=commit_time(seconds),
        how=How.TRAILER,
        subject=subject[: _LONGEST_SUBJECT * 4].decode("utf-8", "replace")[:_LONGEST_SUBJECT],
        on_base=True,
        agent=_trailer(tail, _AGENT),
        run=_trailer(tail, _SESSION),
    )


def _named(head: bytes, message: bytes, *, on_base: bool, branch: str = "") -> Iterator[tuple[int, SeenCommit]]:
    """Each issue that a commit names, by the surest way in which it does; and each pull request that it is.

    What a session writes is a claim: of its text nothing counts but the trailer of its issue.
    """
    ways: dict[int, How] = {}
    agent, run, _ = signature(message)
    is_of_session = bool(run)
    at = message.rfind(_ISSUE)
    if at >= 0:
        number = _number(_value(message, at + len(_ISSUE)))
        if number:
            ways[number] = How.TRAILER
            agent, run = agent or _trailer(message, _AGENT), run or _trailer(message, _SESSION)
    if not is_of_session and message.startswith(b"Merge") and (not branch or numbered(branch) is None):
        branch = _merged(message)
    by_name, certain, _ = (branch and numbered(branch)) or (0, False, "")
    if certain:
        ways.setdefault(by_name, How.BRANCH)
    request = _in_text(message, {} if is_of_session else ways) if b"#" in message else 0
    if by_name and ways.get(by_name) in (None, How.MENTION):
        ways[by_name] = How.BRANCH
    if not ways and not request:
        return
    fields = head.split(b" ", 2)
    sha, time = fields[0].decode(), commit_time(fields[1])
    first = message[: message.find(b"\n")] if b"\n" in message else message
    subject_text = first[: _LONGEST_SUBJECT * 4].decode("utf-8", "replace")[:_LONGEST_SUBJECT]
    for number, how in ways.items():
        by = branch if number == by_name or not on_base else ""
        commit = SeenCommit(
            sha=sha, time=time, how=how, subject=subject_text, on_base=on_base, agent=agent, run=run, branch=by
        )
        yield number, commit
    if request and on_base:
        yield (
            request,
            SeenCommit(
                sha=sha, time=time, how=How.PULL_REQUEST, subject=subject_text, on_base=True, agent=agent, run=run
            ),
        )


def _in_text(message: bytes, ways: dict[int, How]) -> int:
    """Add what the text of a message names; returns the pull request that the commit is."""
    subject = message[: message.find(b"\n")] if b"\n" in message else message
    squashed = _REQUEST.search(subject) or _MERGED_REQUEST.match(subject)
    request = int(squashed[1]) if squashed else 0
    for match in _KEYWORD.finditer(message, 0, _LONGEST):
        ways.setdefault(int(match[1]), How.KEYWORD)
    for match in _MENTION.finditer(message, 0, _LONGEST):
        if int(match[1]) != request:
            ways.setdefault(int(match[1]), How.MENTION)
    return request


def _merged(message: bytes) -> str:
    """The branch that a merge names."""
    request = _MERGED_REQUEST.match(message)
    branch = request[2] if request else None
    if branch is None and (match := _MERGED_BRANCH.match(message)):
        branch = match[1]
    return branch.decode("utf-8", "replace") if branch else ""


def _value(message: bytes, at: int) -> bytes:
    end = message.find(b"\n", at)
    return message[at : end if end >= 0 else None].strip()


def _number(value: bytes) -> int:
    arg = value.removeprefix(b"#")
    return int(arg) if arg.isdigit() and len(arg) < 10 else 0  # noqa: PLR2004  (no tracker has more digits)


def _trailer(message: bytes, name: bytes) -> str:
    at = message.rfind(name)
    return _value(message, at + len(name)).decode("utf-8", "replace")[:200] if at >= 0 else ""


def branch_name(ref: str) -> str:
    """A branch without where it lies: `origin/12-x` and `12-x` are the same work."""
    if ref.startswith(_REMOTES):
        return ref.removeprefix(_REMOTES).partition("/")[2]
    return ref.removeprefix(_HEADS)


def _add_branch(branches: list[SeenBranch], seen: SeenBranch) -> None:
    """The same branch here and on a remote is one: what is here counts, unless the remote is further."""
    for at, other in enumerate(branches):
        if other.name == seen.name:
            if seen.ahead > other.ahead:
                branches[at] = seen
            return
    branches.append(seen)
