"""What came onto the target: read in git alone, in the merge queue alone, and held against each other."""

import re
from collections import Counter
from collections.abc import Iterator

from tests.chaos.checker.findings import Finding, Law
from tests.chaos.checker.repository import Commit, Repository
from tests.chaos.checker.rows import Board, Row
from tests.chaos.plan import End, Kind, Part, Plan

_TASK = re.compile(r"task-(\d+)\.txt")
_CHECKED = ("task-", "shared-")
_CLASHING = re.compile(r"(clash-\d+-\d+)-\d+\.txt")
_MARKERS = ("<<<<<<<", "=======", ">>>>>>>")
_SHORT = 10


def right_ends(board: Board, repository: Repository, plan: Plan) -> Iterator[Finding]:
    """Each task is where the plan says, and who waits for a person says so."""
    asked = board.by_task("escalations")
    ever = {path for commit in _history(repository) for path in repository.files(commit.tree)}
    for part in plan.parts:
        row = board.tasks.get(part.number)
        wanted = "done" if part.end is End.MERGED else "blocked"
        if row is None:
            yield Finding(Law.RIGHT_END, f"#{part.number} is not on the blackboard")
            continue
        if row["status"] != wanted:
            yield Finding(Law.RIGHT_END, f"#{part.number} ({part.kind}) is {row['status']}, not {wanted}")
        is_open = any(each["status"] == "open" for each in asked[part.number])
        if is_open is not (part.end is End.BLOCKED):
            yield Finding(Law.RIGHT_END, f"#{part.number} has {'an' if is_open else 'no'} open escalation")
        if part.end is End.BLOCKED and (there := sorted(path for path in ever if path.endswith(f"-{part.number}.txt"))):
            yield Finding(Law.RIGHT_END, f"#{part.number} is to be blocked, and the target had {', '.join(there)}")
    for number, row in board.tasks.items():
        if number not in _numbers(plan) and row["status"] not in ("done", "cancelled"):
            yield Finding(Law.RIGHT_END, f"#{number}, which is no task of the plan, is {row['status']}")


def merged_once(board: Board, repository: Repository, plan: Plan) -> Iterator[Finding]:
    """By git, by the queue, and the same by both."""
    if repository.target not in repository.refs:
        yield Finding(Law.MERGED_ONCE, f"there is no {repository.target}")
    yield from _only_forward(repository)
    by_git = _came(repository)
    output = Counter(commit.issue for commit in repository.line if commit.issue)
    entries = board.by_task("merge_entries")
    for part in plan.parts:
        times = 1 if part.end is End.MERGED else 0
        came = by_git.get(part.path, [])
        if len(came) != times:
            shown = ", ".join(f"{how} by {_short(commit.id)}" for how, commit in came) or "never"
            yield Finding(Law.MERGED_ONCE, f"{part.path} came onto the target {times and 'not once'}: {shown}")
        if output[part.number] != times:
            yield Finding(
                Law.MERGED_ONCE, f"{output[part.number]} commits of the target say that they land #{part.number}"
            )
        merged = [entry for entry in entries[part.number] if entry["status"] == "merged"]
        if len(merged) != times:
            yield Finding(Law.MERGED_ONCE, f"the queue merged #{part.number} {len(merged)} times")
        yield from _agree(part, came, merged, repository)
    yield from _unasked(repository)
    for number in sorted(set(output) - _numbers(plan)):
        yield Finding(Law.MERGED_ONCE, f"a commit of the target says that it lands #{number}, which nobody asked for")


def _unasked(repository: Repository) -> Iterator[Finding]:
    """Once the first task has landed, nothing comes onto the target but what says which task it lands."""
    landed = [commit.issue for commit in repository.line]
    first = next((place for place, issue in enumerate(landed) if issue), len(landed))
    for commit in repository.line[first:]:
        if not commit.issue:
            yield Finding(Law.MERGED_ONCE, f"{_short(commit.id)} came onto the target, and lands no task")


def _history(repository: Repository) -> Iterator[Commit]:
    """Everything that the target has in it, also what was merged into it."""
    waiting, known = [repository.refs.get(repository.target, "")], set()
    while waiting:
        name = waiting.pop()
        if name in repository.commits and name not in known:
            known.add(name)
            yield repository.commits[name]
            waiting += repository.commits[name].parents


def _only_forward(repository: Repository) -> Iterator[Finding]:
    """Git's own log of the target: it never was anything that is not on its way to where it is now."""
    places = {commit.id: place for place, commit in enumerate(repository.line)}
    if repository.moves is None:
        yield Finding(Law.MERGED_ONCE, f"git has no log of {repository.target}")
    at = -1
    for name in repository.moves or ():
        place = places.get(name, -1)
        if place <= at:
            message = "is not on its way to where it is now" if place < 0 else "was left behind before"
            yield Finding(Law.MERGED_ONCE, f"the target was moved to {_short(name)}, which {message}")
        at = max(at, place)


def _came(repository: Repository) -> dict[str, list[tuple[str, Commit]]]:
    """By path of a task: each time that it came, changed or went."""
    found: dict[str, list[tuple[str, Commit]]] = {}
    before: dict[str, str] = {}
    for commit in repository.line:
        files = {path: blob for path, blob in repository.files(commit.tree).items() if _TASK.fullmatch(path)}
        for path in sorted({*before, *files}):
            if before.get(path) != files.get(path):
                how = "gone" if path not in files else "changed" if path in before else "brought"
                found.setdefault(path, []).append((how, commit))
        before = files
    return found


def _agree(part: Part, came: list[tuple[str, Commit]], merged: list[Row], repository: Repository) -> Iterator[Finding]:
    if len(came) != 1 or len(merged) != 1:
        return
    commit, entry = came[0][1], merged[0]
    if entry["landed"] != commit.id:
        message = f"git says {_short(commit.id)}, the queue says {_short(entry['landed'])}"
        yield Finding(Law.MERGED_ONCE, f"#{part.number} landed: {message}")
    if commit.issue != part.number:
        yield Finding(
            Law.MERGED_ONCE, f"{_short(commit.id)} brought {part.path}, and says that it lands #{commit.issue}"
        )
    if commit.session != entry["run"]:
        yield Finding(Law.MERGED_ONCE, f"{_short(commit.id)} is of {commit.session}, the queue says {entry['run']}")
    if len(commit.parents) > 1 and entry["commit"] not in commit.parents[1:]:
        yield Finding(Law.MERGED_ONCE, f"{_short(commit.id)} merged another commit than {_short(entry['commit'])}")


def no_false_done(board: Board, repository: Repository, plan: Plan) -> Iterator[Finding]:
    """What is done is on the target, was verified as what it is, and is green."""
    tip = repository.files(repository.line[-1].tree) if repository.line else {}
    parts = {part.number: part for part in plan.parts}
    entries, verdicts, sessions = map(board.by_task, ("merge_entries", "verifications", "sessions"))
    for number, row in board.tasks.items():
        if row["status"] != "done" or row["in_plan"] or row["review_of"]:
            continue
        if number in parts and parts[number].end is End.BLOCKED:
            yield Finding(Law.NO_FALSE_DONE, f"#{number} is done, and nobody can have done it")
        if number in parts and parts[number].path not in tip:
            yield Finding(Law.NO_FALSE_DONE, f"#{number} is done, and {parts[number].path} is not on the target")
        lines = [each for each in board.events_of[number] if _is_done(each)]
        commit = lines[-1]["data"].get("commit", "") if lines else ""
        landed = [entry for entry in entries[number] if entry["status"] == "merged" and entry["commit"] == commit]
        if lines and not landed:
            yield Finding(Law.NO_FALSE_DONE, f"#{number} is done with {_short(commit)}, which the queue never merged")
        if lines and not any(each["commit"] == commit and each["status"] == "done" for each in verdicts[number]):
            yield Finding(Law.NO_FALSE_DONE, f"#{number} is done with {_short(commit)}, which was never verified")
        ended = [row["verified"] for row in sessions[number] if row["outcome"] == "completed"]
        if lines and commit not in ended:
            yield Finding(
                Law.NO_FALSE_DONE, f"#{number} is done with {_short(commit)}, and no session completed with it"
            )
        if commit in repository.commits:
            for why in red(repository, repository.commits[commit].tree):
                yield Finding(Law.NO_FALSE_DONE, f"#{number} is done with {_short(commit)}, and that is red: {why}")


def _is_done(event: Row) -> bool:
    return bool(event["kind"] == "status_changed" and event["data"].get("to") == "done")


def green(repository: Repository, plan: Plan) -> Iterator[Finding]:
    parts = {part.number: part for part in plan.parts}
    before: dict[str, str] = {}
    kept: dict[str, set[str]] = {}
    for commit in repository.line:
        for why in red(repository, commit.tree):
            yield Finding(Law.GREEN, f"{_short(commit.id)} is red: {why}")
        files = repository.files(commit.tree)
        part = parts.get(commit.issue)
        if part is not None:
            changed = sorted(path for path in {*before, *files} if before.get(path) != files.get(path))
            foreign = [path for path in changed if path not in _own(part) and not path.endswith(f"-{part.number}.txt")]
            if foreign:
                message = ", ".join(foreign)
                yield Finding(
                    Law.GREEN, f"{_short(commit.id)} lands #{part.number} and changes what is not its own: {message}"
                )
            if part.kind is Kind.CONFLICTING:
                kept.setdefault(_shared(part), set()).add(f"by-{part.number}")
        for path, lines in kept.items():
            there = repository.text(files[path]).split() if path in files else []
            if missing := lines - set(there):
                message = ", ".join(sorted(missing))
                yield Finding(Law.GREEN, f"{_short(commit.id)} has {path} without {message}")
        before = files


def red(repository: Repository, tree: str) -> list[str]:
    """Why a tree does not pass; nothing when it does."""
    found = []
    for path, blob in repository.files(tree).items():
        if path.startswith(_CHECKED) and (why := _wrong(path, repository.text(blob))):
            found.append(why)
    result = Counter(pair[1] for path, blob in repository.files(tree).items()
                   if (pair := _CLASHING.fullmatch(path)) and repository.text(blob).split() == ["alone"])  # fmt: skip
    return found + [f"{pair} is green alone, and there are {times}" for pair, times in result.items() if times > 1]


def _wrong(path: str, text: str) -> str:
    number = _TASK.fullmatch(path)
    if number and text.partition("\n")[0] != number[1]:
        return f"{path} does not hold its number"
    if path.startswith("shared-") and any(line.startswith(_MARKERS) for line in text.splitlines()):
        return f"{path} has the markers of a conflict"
    return ""


def _own(part: Part) -> tuple[str, ...]:
    return (part.path, _shared(part))


def _shared(part: Part) -> str:
    first, second = sorted((part.number, part.partner))
    return f"shared-{first}-{second}.txt"


def _numbers(plan: Plan) -> set[int]:
    return {part.number for part in plan.parts}


def _short(commit: str) -> str:
    return commit[:_SHORT] or "nothing"
