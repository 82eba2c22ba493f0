"""From what git, the blackboard and the copy of the tracker show to the facts of each issue.

Law: nothing is judged here. What was read before is kept; what is not on the base is read again at every pass.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from genba.blackboard.triage.task_facts import BoardRecords, Kept, SessionSeen, TaskSeen
from genba.domain.decoding import reader
from genba.domain.facilitation import (
    How,
    IssueAssessment,
    IssueBlockerKind,
    IssueFacts,
    IssueState,
    Scanned,
    SeenCommit,
    SeenSession,
)
from genba.domain.sessions.session import SessionStatus
from genba.domain.tasks.task import Priority, TaskStatus
from genba.domain.timestamps import format_time, parse_time
from genba.domain.tracker.remote import TrackedIssue, TrackedPullRequest
from genba.judgement.loop.closure import stage_after
from genba.judgement.triage.evidence_ownership import (
    Owner,
    is_newer,
    own_branches,
    own_commits,
    own_sessions,
    texts_are_ours,
)

Alive = Callable[[SessionSeen], bool]
Stages = Mapping[str, tuple[str, ...]]

_STATUSES = {str(status): status for status in TaskStatus}
_PRIORITIES = {str(priority): priority for priority in Priority}
_UNFINISHED = (TaskStatus.BACKLOG, TaskStatus.OPEN, TaskStatus.IN_PROGRESS, TaskStatus.BLOCKED)
_ELSEWHERE_DECIDED = ("review", "plan")
_PLAIN = len("2026-01-01T00:00:00Z")


class Reverts:
    """What was taken back on the base, and by which commit. Who reverts may name a commit in short."""

    def __init__(self, commits: Mapping[str, str], requests: Mapping[int, str]) -> None:
        self.commits = commits
        self.requests = requests
        self._short = tuple((sha, by) for sha, by in commits.items() if len(sha) < len(by))

    @classmethod
    def read(cls, kept: str, found: Scanned) -> "Reverts":
        """What was known before, and what is new."""
        if not kept or found.full:
            return cls(found.reverts, found.reverted_requests)
        before = _kept_reverts.decode(kept)
        return cls({**before.commits, **found.reverts}, {**before.requests, **found.reverted_requests})

    def encoded(self) -> str:
        return msgspec.json.encode(_KeptReverts(dict(self.commits), dict(self.requests))).decode()

    def of(self, sha: str) -> str:
        """The commit that took another one back; empty, too, where that one was taken back itself."""
        first = by = self._by(sha)
        seen: set[str] = set()
        taken_back = False
        while by and by not in seen:
            seen.add(by)
            taken_back = not taken_back
            by = self._by(by)
        return first if taken_back else ""

    def of_request(self, number: int) -> str:
        by = self.requests.get(number, "")
        return by if by and not self.of(by) else ""

    def _by(self, sha: str) -> str:
        found = self.commits.get(sha)
        if found is not None:
            return found
        return next((by for short, by in self._short if sha.startswith(short)), "")

    def __bool__(self) -> bool:
        return bool(self.commits or self.requests)


class _KeptReverts(msgspec.Struct, frozen=True):
    commits: dict[str, str]
    requests: dict[int, str]


_kept_reverts = reader(_KeptReverts)


class ScanInputs(NamedTuple):
    """What is needed besides the blackboard to tell the facts."""

    scanned: Scanned
    reverts: Reverts
    alive: Alive
    horizon: str = ""
    """What happened before is not in the clone."""
    dirty: Mapping[str, str] = {}
    """By branch: a working tree that has changes."""
    runs: Mapping[int, list[SeenSession]] = {}
    """By issue: runs that only their journals tell of."""
    journals: str = ""
    """How far the journals were read."""
    board: tuple[str, int] | None = None
    repository: str = ""
    """owner/name of the tracker on GitHub; empty where issues are local tasks alone."""
    tasks_of: Mapping[str, frozenset[int]] = {}
    """By session, and by branch of sessions: the numbers of their tasks, where git names them in work on others."""


def uniform(text: str) -> str:
    """A time in the one form in which times compare as texts."""
    if len(text) == _PLAIN and text.endswith("Z"):
        return f"{text[:-1]}.000000Z"
    if not text or (len(text) == _PLAIN + 7 and text.endswith("Z")):
        return text
    at = parse_time(text)
    return format_time(at) if at is not None else ""


def names_now(kept: Mapping[int, list[str]], scanned: Scanned) -> dict[int, list[str]]:
    """By issue and by pull request of which something is new: the names of all its commits on the base, each once."""
    found: dict[int, list[str]] = {}
    for part in (scanned.on_base, scanned.of_requests):
        for number, commits in part.items():
            before = found.get(number) or kept.get(number)
            new = [commit.sha for commit in commits]
            found[number] = list(dict.fromkeys((*before, *new))) if before else new
    return found


def names_of(kept: Mapping[int, list[str]], but: Scanned) -> set[str]:
    """The commits that are known from before."""
    new = {commit.sha for part in (but.on_base, but.of_requests) for all_ in part.values() for commit in all_}
    return {name for names in kept.values() for name in names} - new


def together(*scans: Scanned) -> Mapping[int, list[SeenCommit]]:
    """By issue and by pull request: what was read of it on the base."""
    parts = [part for scanned in scans for part in (scanned.on_base, scanned.of_requests) if part]
    if len(parts) == 1:
        return parts[0]
    found: dict[int, list[SeenCommit]] = {}
    for part in parts:
        for number, commits in part.items():
            found[number] = [*found[number], *commits] if number in found else commits
    return found


def stamps_of(records: BoardRecords) -> dict[int, str]:
    """By issue: what changes with whatever the blackboard and the tracker tell of it."""
    found = {task.number: task.updated_at for task in records.tasks.values()}
    for number, (_, _, issue) in records.issues.items():
        found[number] = f"{found.get(number, '')} {issue.updated_at} {issue.state}"
    for number, requests in _requests(records).items():
        if number in found:
            found[number] += " ".join(f" {each.number} {each.updated_at} {each.state}" for each in requests)
    return found


def settled(records: BoardRecords, inputs: ScanInputs, stamps: Mapping[int, str]) -> frozenset[int]:
    """Issues that came to rest at an earlier look, and to which nothing has happened since."""
    scanned = inputs.scanned
    if scanned.full:
        return frozenset()
    seen = {*scanned.on_base, *scanned.off_base, *scanned.branches, *inputs.runs}
    if scanned.of_requests:
        seen |= {
            n for n, all_ in _requests(records).items() if any(each.number in scanned.of_requests for each in all_)
        }
    for task, sessions in records.sessions.items():
        if task in records.tasks and any(
            each.status != SessionStatus.ENDED or each.branch in inputs.dirty for each in sessions
        ):
            seen.add(records.tasks[task].number)
    for task, at in records.happened.items():
        number = records.tasks[task].number if task in records.tasks else 0
        if number in records.kept and uniform(at) > records.kept[number].last_at:
            seen.add(number)
    return frozenset(
        number
        for number, kept in records.kept.items()
        if kept.stamp and number not in seen and kept.stamp == stamps.get(number)
    )


def rests(facts: IssueFacts, assessment: IssueAssessment, inputs: ScanInputs) -> bool:
    """Whether an issue stays as it is until it changes on the tracker or the blackboard."""
    if not assessment.closed or assessment.state is not IssueState.DONE or facts.number in inputs.runs:
        return False
    if facts.branches or facts.number in inputs.scanned.off_base:
        return False
    return all(each.status == SessionStatus.ENDED and not each.dirty_tree for each in facts.sessions)


def recorded_facts(
    records: BoardRecords, but: Collection[int] = (), stages: Stages = MappingProxyType({})
) -> dict[int, IssueFacts]:
    """What the tracker and the blackboard say of every issue, in the order of their numbers.

    Of the issues in `but`, only that they ended. `stages` by type of task.
    """
    by_number = {task.number: task for task in records.tasks.values()}
    children: dict[int, list[int]] = {}
    for task in records.tasks.values():
        if task.parent is not None and task.parent in records.tasks:
            children.setdefault(task.parent, []).append(task.number)
    found: dict[int, IssueFacts] = {}
    for number in sorted({*records.issues, *by_number}):
        tracked = records.issues.get(number)
        issue = tracked[2] if tracked is not None else None
        task_ = by_number.get(number)
        if number in but:
            found[number] = _ended(number, task_, issue)
            continue
        facts = _recorded(number, task_, issue, children, records)
        if task_ is not None and (staged := stages.get(task_.type)):
            facts = msgspec.structs.replace(facts, stage=stage_after(staged, {phase.agent for phase in task_.phases}))
        found[number] = facts
    return found


def facts_of(
    records: BoardRecords,
    recorded: Mapping[int, IssueFacts],
    on_base: Mapping[int, list[SeenCommit]],
    inputs: ScanInputs,
    but: Collection[int] = (),
) -> dict[int, IssueFacts]:
    """Every recorded issue with what git and journals show; some are left as they are."""
    rows = {task.number: task.id for task in records.tasks.values()}
    requests = _requests(records)
    known = inputs.scanned.full or not on_base  # what is read again may be the commit of a pull request
    known = known and not inputs.scanned.unread
    plain = known and not (inputs.reverts or inputs.horizon or requests or records.issues or inputs.scanned.of_requests)
    elsewhere = {*inputs.scanned.off_base, *inputs.scanned.branches, *inputs.runs}
    found: dict[int, IssueFacts] = {}
    for number, facts in recorded.items():
        if number in but:
            found[number] = facts
        elif plain and number not in elsewhere and rows.get(number) not in records.sessions:
            commits = own_commits(on_base[number], _owner(facts, None, records, inputs)) if number in on_base else None
            found[number] = _landed(facts, commits) if commits else facts
        else:
            found[number] = _facts(facts, rows.get(number), requests.get(number, ()), records, on_base, inputs)
    return found


def _owner(facts: IssueFacts, task: int | None, records: BoardRecords, inputs: ScanInputs) -> Owner:
    """What decides which commits and branches are about an issue: its tracker, its age and its sessions."""
    sessions = records.sessions.get(task, ()) if task is not None else ()
    journals = own_sessions(inputs.runs.get(facts.number, []), facts.created_at)
    own = {each.branch for each in sessions} | {each.branch for each in journals}
    repository = inputs.repository if facts.number in records.issues else ""
    ours = (
        texts_are_ours(inputs.scanned.remotes, repository) if repository or facts.number not in records.issues else True
    )
    return Owner(
        number=facts.number,
        title=facts.title,
        created_at=facts.created_at,
        texts=ours,
        runs=frozenset({each.run for each in sessions} | {each.run for each in journals}),
        branches=frozenset(own - {""}),
        tasks_of=inputs.tasks_of,
    )


def named_elsewhere(records: BoardRecords, scanned: Scanned, on_base: Mapping[int, list[SeenCommit]]) -> set[str]:
    """The sessions and branches that git names in work on an issue, and that are none of its own sessions."""
    own: dict[int, set[str]] = {}
    for row, task in records.tasks.items():
        own[task.number] = {name for each in records.sessions.get(row, ()) for name in (each.run, each.branch)}
    found: set[str] = set()
    for part in (on_base, scanned.off_base):
        for number, commits in part.items():
            names = {name for each in commits for name in (each.run, each.branch)}
            found |= names - own.get(number, set())
    for number, branches in scanned.branches.items():
        found |= {name for each in branches for name in (each.run, each.name)} - own.get(number, set())
    return found - {""}


def _landed(facts: IssueFacts, commits: list[SeenCommit]) -> IssueFacts:
    """An issue of which there is nothing but commits on the base."""
    in_order = _in_order(commits[::-1])
    return msgspec.structs.replace(facts, commits=in_order, last_at=max(facts.last_at, in_order[-1].time))


def judged_by(facts: IssueFacts, records: BoardRecords, inputs: ScanInputs) -> str:
    """What changes with everything that an issue is judged by, but for its commits on the base."""
    tracked = records.issues.get(facts.number)
    bare = msgspec.structs.replace(
        facts,
        commits=tuple(commit for commit in facts.commits if not commit.on_base),
        last_at="",
        card_status="",
        missing=(inputs.horizon, str(tracked is None or tracked[2].detailed)),
    )
    return hashlib.blake2b(msgspec.json.encode(bare), digest_size=12).hexdigest()


def moved_in(
    records: BoardRecords, inputs: ScanInputs, facts: Mapping[int, IssueFacts], judged_by: Mapping[int, str]
) -> set[int]:
    """Issues of which something is other than at the last look."""
    scanned = inputs.scanned
    moved = {number for number in scanned.on_base if number in judged_by}
    for number, stamp in judged_by.items():
        kept, each = records.kept.get(number), facts[number]
        requests = scanned.of_requests and any(one.number in scanned.of_requests for one in each.pull_requests)
        if kept is None or kept.stamp != stamp or each.last_at > kept.last_at or requests:
            moved.add(number)
    return moved


def requests_of(facts: Mapping[int, IssueFacts], numbers: Iterable[int]) -> set[int]:
    """The pull requests of some issues."""
    return {request.number for number in numbers for request in facts[number].pull_requests}


def _ended(number: int, task: TaskSeen | None, issue: TrackedIssue | None) -> IssueFacts:
    """As much of an issue that ended as others need."""
    status = _STATUSES[task.status] if task is not None else None
    labels = task.labels if task is not None else issue.labels if issue is not None else ()
    dropped = "not_planned" if status is TaskStatus.CANCELLED else ""
    reason = issue.state_reason if issue is not None else dropped
    title = task.title if task is not None else issue.title if issue is not None else ""
    return IssueFacts(number=number, title=title, state="closed", state_reason=reason, status=status, labels=labels)


def _requests(records: BoardRecords) -> dict[int, list[TrackedPullRequest]]:
    """By issue: the pull requests that close it, that people linked to it, or that its task opened."""
    found: dict[int, dict[int, TrackedPullRequest]] = {}
    by_request = {request.number: request for _, request in records.requests}
    for task, request in records.requests:
        if task is not None and task in records.tasks:
            found.setdefault(records.tasks[task].number, {})[request.number] = request
        for number in request.closes:
            found.setdefault(number, {})[request.number] = request
    for number, (_, _, issue) in records.issues.items():
        for linked in issue.pull_requests:
            if linked in by_request:
                found.setdefault(number, {})[linked] = by_request[linked]
    return {number: [all_[each] for each in sorted(all_)] for number, all_ in found.items()}


def _facts(
    recorded: IssueFacts,
    task: int | None,
    requests: Iterable[TrackedPullRequest],
    records: BoardRecords,
    on_base: Mapping[int, list[SeenCommit]],
    inputs: ScanInputs,
) -> IssueFacts:
    number = recorded.number
    tracked = records.issues.get(number)
    issue = tracked[2] if tracked is not None else None
    owner = _owner(recorded, task, records, inputs)
    commits = _commits(owner, requests, on_base, inputs)
    branches = tuple(own_branches(inputs.scanned.branches.get(number, []), owner))
    sessions = _sessions(task, records, inputs, recorded)
    times = [recorded.last_at, *(branch.time for branch in branches), *(session.last_at for session in sessions)]
    if commits:
        times.append(commits[-1].time)
    if requests:
        times += [uniform(request.updated_at) for request in requests]
        requests = tuple(msgspec.structs.replace(each, merged_at=uniform(each.merged_at)) for each in requests)
    facts = msgspec.structs.replace(
        recorded,
        commits=commits,
        branches=branches,
        pull_requests=tuple(requests),
        sessions=sessions,
        last_at=max(times),
        card_status=_card(issue, inputs.board),
    )
    asked = issue is not None or inputs.horizon or inputs.scanned.unread
    missing = tuple(_missing(facts, issue, inputs)) if asked else ()
    return msgspec.structs.replace(facts, missing=missing) if missing else facts


def _recorded(
    number: int,
    task: TaskSeen | None,
    issue: TrackedIssue | None,
    children: Mapping[int, list[int]],
    records: BoardRecords,
) -> IssueFacts:
    """What its tracker and the blackboard record of an issue, and when it last changed."""
    output = _facts_of(task, issue, children, records)
    kept = records.kept.get(number)
    last = max(output["created_at"], output["closed_at"], kept.last_at if kept is not None else "")
    if task is not None and (happened := records.happened.get(task.id)):
        last = max(last, uniform(happened))
    own = _own_labels(output["labels"], kept) if output["labels"] else ()
    return IssueFacts(number=number, last_at=last, own_labels=own, **output)


def _facts_of(
    task: TaskSeen | None,
    issue: TrackedIssue | None,
    children: Mapping[int, list[int]],
    records: BoardRecords,
) -> dict[str, Any]:
    if task is None:
        assert issue is not None  # noqa: S101  (a number is that of a task or of an issue)
        return {**_of_issue(issue), "priority": Priority.MEDIUM}
    status = _STATUSES[task.status]
    ended = status.ended
    values: dict[str, Any] = {
        "title": task.title,
        "body": task.body,
        "labels": task.labels,
        "state": "closed" if ended else "open",
        "state_reason": "not_planned" if status is TaskStatus.CANCELLED else "",
        "created_at": uniform(task.created_at),
        "updated_at": uniform(task.updated_at),
        "closed_at": uniform(task.updated_at) if ended else "",
        "assignees": (task.assignee,) if task.assignee else (),
        "dependencies": _numbers(records, records.dependencies.get(task.id, ())),
        "children": tuple(children.get(task.id, ())),
        "parent": records.tasks[task.parent].number if task.parent in records.tasks else None,
    }
    if issue is not None:
        values = {**values, **_of_issue(issue), "labels": task.labels, "title": task.title}
        values["dependencies"] = tuple(
            dict.fromkeys((*_numbers(records, records.dependencies.get(task.id, ())), *issue.blocked_by))
        )
        values["children"] = tuple(dict.fromkeys((*issue.sub_issues, *children.get(task.id, ()))))
    commit, verdict, reason = records.verdicts.get(task.id, ("", "", ""))
    question, kind = records.questions.get(task.id, ("", ""))
    runs = records.sessions.get(task.id, ())
    values |= {
        "type": task.type,
        "assignee": task.assignee,
        "phases": task.phases,
        "priority": _PRIORITIES[task.priority],
        "due": task.due,
        "status": status,
        "blocker_kind": task.blocker_kind,
        "blocker_reason": task.blocker_reason,
        "question": question if kind not in _ELSEWHERE_DECIDED and not ended else "",
        "reopened_at": max(uniform(records.reopened.get(task.id, "")), values.get("reopened_at", "")),
        "verified": commit if verdict == "done" else "",
        "rejected": reason if verdict == "rejected" else "",
        "approved": records.approved.get(task.id, ""),
        "requires_review": task.requires_review,
        "reviewer_type": task.reviewer_type,
        "asks_person": kind == "review",
        "phase_runs": tuple(each.run for each in runs if each.outcome == "completed") if status in _UNFINISHED else (),
    }
    return values


def _of_issue(issue: TrackedIssue) -> dict[str, Any]:
    return {
        "title": issue.title,
        "body": issue.body,
        "labels": issue.labels,
        "due": issue.due,
        "state": issue.state,
        "state_reason": issue.state_reason,
        "created_at": uniform(issue.created_at),
        "updated_at": uniform(issue.updated_at),
        "closed_at": uniform(issue.closed_at),
        "reopened_at": uniform(issue.reopened_at),
        "parent": issue.parent,
        "children": issue.sub_issues,
        "dependencies": issue.blocked_by,
        "blocked_elsewhere": issue.blocked_elsewhere,
        "assignees": issue.assignees,
    }


def _numbers(records: BoardRecords, rows: Iterable[int]) -> tuple[int, ...]:
    return tuple(records.tasks[row].number for row in rows if row in records.tasks)


def _commits(
    owner: Owner, requests: Iterable[TrackedPullRequest], on_base: Mapping[int, list[SeenCommit]], inputs: ScanInputs
) -> tuple[SeenCommit, ...]:
    """Oldest first, each once; what was taken back says by which commit."""
    number = owner.number
    own = own_commits(on_base[number], owner) if number in on_base else []
    if not requests and not inputs.reverts and number not in inputs.scanned.off_base:
        return _in_order([commit for commit in own if commit.how is not How.PULL_REQUEST])
    found = {commit.sha: commit for commit in own if commit.how is not How.PULL_REQUEST} if own else {}
    gone: dict[str, str] = {}
    for request in requests:
        by = inputs.reverts.of_request(request.number) if inputs.reverts else ""
        for commit in on_base.get(request.number, ()):
            if commit.how is not How.PULL_REQUEST or owner.is_elsewhere(commit.run):
                continue
            if is_newer(commit.time, uniform(request.created_at)):
                found.setdefault(commit.sha, commit)
                if by:
                    gone[commit.sha] = by
        if by and request.merged_commit in found:
            gone[request.merged_commit] = by
    if inputs.reverts:
        for sha, commit in found.items():
            by = gone.get(sha) or inputs.reverts.of(sha)
            if by:
                found[sha] = msgspec.structs.replace(commit, reverted_by=by)
    for commit in own_commits(inputs.scanned.off_base.get(number, []), owner):
        found.setdefault(commit.sha, commit)
    return _in_order(list(found.values()))


def _in_order(commits: list[SeenCommit]) -> tuple[SeenCommit, ...]:
    if len(commits) > 1:
        commits.sort(key=_time_of)
    return tuple(commits)


_time_of = attrgetter("time")


def _sessions(
    task: int | None, records: BoardRecords, inputs: ScanInputs, recorded: IssueFacts
) -> tuple[SeenSession, ...]:
    seen = records.sessions.get(task, []) if task is not None else []
    journals = own_sessions(inputs.runs.get(recorded.number, []), recorded.created_at)
    if not seen and not journals:
        return ()
    found = [_session(each, inputs) for each in seen]
    known = {each.run for each in found}
    found += [each for each in journals if each.run not in known]
    return tuple(found)


def _session(seen: SessionSeen, inputs: ScanInputs) -> SeenSession:
    alive = seen.status == SessionStatus.RUNNING and inputs.alive(seen)
    return SeenSession(
        run=seen.run,
        agent=seen.agent,
        status=seen.status,
        alive=alive,
        waits_for=seen.waits_for,
        outcome=seen.outcome,
        reason=seen.reason,
        branch=seen.branch,
        verified=seen.verified,
        started_at=uniform(seen.started_at),
        last_at=uniform(seen.heartbeat_at),
        dirty_tree="" if alive or seen.status == SessionStatus.WAITING else inputs.dirty.get(seen.branch, ""),
    )


def _own_labels(labels: tuple[str, ...], kept: Kept | None) -> tuple[str, ...]:
    """What the facilitator itself has put on an issue, that it called blocked by something else than a label."""
    if kept is None or kept.posted_state != IssueState.BLOCKED:
        return ()
    judged = kept.assessment
    if judged is not None and any(blocker.kind == IssueBlockerKind.LABEL for blocker in judged.blockers):
        return ()
    return tuple(label for label in labels if label.casefold() == IssueState.BLOCKED)


def _card(issue: TrackedIssue | None, board: tuple[str, int] | None) -> str:
    if issue is None or not issue.cards:
        return ""
    mine = [card for card in issue.cards if board is None or is_board(card.owner, card.project, board)]
    return mine[0].status if mine else ""


def is_board(owner: str, project: int, board: tuple[str, int]) -> bool:
    return project == board[1] and owner.casefold() == board[0].casefold()


def _missing(facts: IssueFacts, issue: TrackedIssue | None, inputs: ScanInputs) -> Iterable[str]:
    """What would have to be known of it, and is not."""
    if issue is not None and not issue.closed and not issue.detailed and facts.status is not None:
        yield "its comments, dependencies and pull requests were not read yet"
    if inputs.scanned.unread and facts.state == "open":
        yield f"there is no branch {inputs.scanned.position.base}: what has landed is not seen"
    untouched = not (facts.commits or facts.branches or facts.pull_requests or facts.sessions)
    if inputs.horizon and facts.state == "open" and untouched and facts.created_at < inputs.horizon:
        yield f"the clone is shallow: what was done before {inputs.horizon[:10]} is not seen"
