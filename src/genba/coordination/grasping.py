"""From what git, the blackboard and the copy of the tracker show to the facts of each issue.

Law: nothing is judged here. What was read before is kept; what is not on the base is seen anew at every look.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from genba.blackboard.field_board import Ground, SessionSeen, TaskSeen
from genba.domain.facilitation import How, IssueFacts, IssueState, Scanned, SeenCommit, SeenSession
from genba.domain.tasks import Priority, TaskStatus
from genba.domain.tracking import TrackedIssue, TrackedPullRequest
from genba.judgement.moments import moment, written

Alive = Callable[[SessionSeen], bool]

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
        if not kept or found.anew:
            return cls(found.reverts, found.reverted_requests)
        before = _kept_reverts.decode(kept)
        return cls({**before.commits, **found.reverts}, {**before.requests, **found.reverted_requests})

    def written(self) -> str:
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


_kept_reverts = msgspec.json.Decoder(_KeptReverts)


class Sight(NamedTuple):
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
    board: tuple[str, int] | None = None


def uniform(text: str) -> str:
    """A time in the one form in which times compare as texts."""
    if len(text) == _PLAIN and text.endswith("Z"):
        return f"{text[:-1]}.000000Z"
    if not text or (len(text) == _PLAIN + 7 and text.endswith("Z")):
        return text
    at = moment(text)
    return written(at) if at is not None else ""


def commits_now(kept: Mapping[int, list[SeenCommit]], scanned: Scanned) -> dict[int, list[SeenCommit]]:
    """By issue and by pull request: the commits on the base that changed at this look, whole."""
    found: dict[int, list[SeenCommit]] = {}
    for part in (scanned.on_base, scanned.of_requests):
        for number, commits in part.items():
            before = found.get(number)
            if before is None:
                before = [] if scanned.anew else list(kept.get(number, ()))
            found[number] = [*before, *commits]
    return found


def stamps_of(ground: Ground) -> dict[int, str]:
    """By issue: what changes with whatever the blackboard and the tracker tell of it."""
    found = {task.number: task.updated_at for task in ground.tasks.values()}
    for number, (_, _, issue) in ground.issues.items():
        found[number] = f"{found.get(number, '')} {issue.updated_at} {issue.state}"
    for number, requests in _requests(ground).items():
        if number in found:
            found[number] += " ".join(f" {each.number} {each.updated_at} {each.state}" for each in requests)
    return found


def settled(ground: Ground, sight: Sight, stamps: Mapping[int, str]) -> frozenset[int]:
    """Issues that were closed and done at the last look, and to which nothing has happened since."""
    scanned = sight.scanned
    if scanned.anew or scanned.reverts or scanned.reverted_requests:
        return frozenset()
    seen = {*scanned.on_base, *scanned.off_base, *scanned.branches, *sight.runs}
    if scanned.of_requests:
        seen |= {n for n, all_ in _requests(ground).items() if any(each.number in scanned.of_requests for each in all_)}
    seen |= {ground.tasks[task].number for task in ground.sessions if task in ground.tasks}
    return frozenset(
        number
        for number, kept in ground.kept.items()
        if kept.assessment is not None
        and kept.assessment.closed
        and kept.assessment.state is IssueState.DONE
        and number not in seen
        and kept.stamp
        and kept.stamp == stamps.get(number)
    )


def facts_of(
    ground: Ground,
    on_base: Mapping[int, list[SeenCommit]],
    sight: Sight,
    but: Collection[int] = (),
) -> dict[int, IssueFacts]:
    """Every issue of the tracker, and every task, with all that was seen of it; of some, only that they ended."""
    by_number = {task.number: task for task in ground.tasks.values()}
    requests = _requests(ground)
    children: dict[int, list[int]] = {}
    for task in ground.tasks.values():
        if task.parent is not None and task.parent in ground.tasks:
            children.setdefault(task.parent, []).append(task.number)
    found: dict[int, IssueFacts] = {}
    for number in sorted({*ground.issues, *by_number}):
        tracked = ground.issues.get(number)
        if number in but:
            found[number] = _ended(number, by_number.get(number), tracked[2] if tracked is not None else None)
            continue
        found[number] = _facts(
            number,
            by_number.get(number),
            tracked[2] if tracked is not None else None,
            requests.get(number, ()),
            children,
            ground,
            on_base,
            sight,
        )
    return found


def _ended(number: int, task: TaskSeen | None, issue: TrackedIssue | None) -> IssueFacts:
    """As much of an issue that ended as others need."""
    status = _STATUSES[task.status] if task is not None else None
    labels = task.labels if task is not None else issue.labels if issue is not None else ()
    dropped = "not_planned" if status is TaskStatus.CANCELLED else ""
    reason = issue.state_reason if issue is not None else dropped
    return IssueFacts(number=number, state="closed", state_reason=reason, status=status, labels=labels)


def _requests(ground: Ground) -> dict[int, list[TrackedPullRequest]]:
    """By issue: the pull requests that close it, that people linked to it, or that its task opened."""
    found: dict[int, dict[int, TrackedPullRequest]] = {}
    by_request = {request.number: request for _, request in ground.requests}
    for task, request in ground.requests:
        if task is not None and task in ground.tasks:
            found.setdefault(ground.tasks[task].number, {})[request.number] = request
        for number in request.closes:
            found.setdefault(number, {})[request.number] = request
    for number, (_, _, issue) in ground.issues.items():
        for linked in issue.pull_requests:
            if linked in by_request:
                found.setdefault(number, {})[linked] = by_request[linked]
    return {number: [all_[each] for each in sorted(all_)] for number, all_ in found.items()}


def _facts(
    number: int,
    task: TaskSeen | None,
    issue: TrackedIssue | None,
    requests: Iterable[TrackedPullRequest],
    children: Mapping[int, list[int]],
    ground: Ground,
    on_base: Mapping[int, list[SeenCommit]],
    sight: Sight,
) -> IssueFacts:
    commits = _commits(number, requests, on_base, sight)
    branches = tuple(sight.scanned.branches.get(number, ()))
    sessions = _sessions(task, ground, sight, number)
    told = _told(task, issue, children, ground)
    kept = ground.kept.get(number)
    times = [told["created_at"], told["closed_at"], kept.last_at if kept is not None else ""]
    if task is not None and (happened := ground.happened.get(task.id)):
        times.append(uniform(happened))
    if commits:
        times.append(commits[-1].time)
    if branches or requests or sessions:
        times += [branch.time for branch in branches]
        times += [uniform(request.updated_at) for request in requests]
        times += [session.last_at for session in sessions]
    if requests:
        requests = tuple(msgspec.structs.replace(each, merged_at=uniform(each.merged_at)) for each in requests)
    facts = IssueFacts(
        number=number,
        commits=commits,
        branches=branches,
        pull_requests=tuple(requests),
        sessions=sessions,
        last_at=max(times),
        card_status=_card(issue, sight.board),
        missing=(),
        **told,
    )
    missing = tuple(_missing(facts, issue, sight)) if issue is not None or sight.horizon else ()
    return msgspec.structs.replace(facts, missing=missing) if missing else facts


def _told(
    task: TaskSeen | None,
    issue: TrackedIssue | None,
    children: Mapping[int, list[int]],
    ground: Ground,
) -> dict[str, Any]:
    """What its tracker and the blackboard say of it."""
    if task is None:
        assert issue is not None  # noqa: S101  (a number is that of a task or of an issue)
        return {**_of_issue(issue), "priority": Priority.MEDIUM}
    status = _STATUSES[task.status]
    ended = status.ended
    told: dict[str, Any] = {
        "title": task.title,
        "body": task.body,
        "labels": task.labels,
        "state": "closed" if ended else "open",
        "state_reason": "not_planned" if status is TaskStatus.CANCELLED else "",
        "created_at": uniform(task.created_at),
        "updated_at": uniform(task.updated_at),
        "closed_at": uniform(task.updated_at) if ended else "",
        "assignees": (task.assignee,) if task.assignee else (),
        "dependencies": _numbers(ground, ground.dependencies.get(task.id, ())),
        "children": tuple(children.get(task.id, ())),
        "parent": ground.tasks[task.parent].number if task.parent in ground.tasks else None,
    }
    if issue is not None:
        told = {**told, **_of_issue(issue), "labels": task.labels, "title": task.title}
        told["dependencies"] = tuple(
            dict.fromkeys((*_numbers(ground, ground.dependencies.get(task.id, ())), *issue.blocked_by))
        )
        told["children"] = tuple(dict.fromkeys((*issue.sub_issues, *children.get(task.id, ()))))
    commit, verdict, reason = ground.verdicts.get(task.id, ("", "", ""))
    question, kind = ground.questions.get(task.id, ("", ""))
    runs = ground.sessions.get(task.id, ())
    return {
        **told,
        "priority": _PRIORITIES[task.priority],
        "status": status,
        "blocker_kind": task.blocker_kind,
        "blocker_reason": task.blocker_reason,
        "question": question if kind not in _ELSEWHERE_DECIDED and not ended else "",
        "reopened_at": max(uniform(ground.reopened.get(task.id, "")), told.get("reopened_at", "")),
        "verified": commit if verdict == "done" else "",
        "rejected": reason if verdict == "rejected" else "",
        "approved": ground.approved.get(task.id, ""),
        "requires_review": task.requires_review,
        "phase_runs": tuple(each.run for each in runs if each.outcome == "completed") if status in _UNFINISHED else (),
    }


def _of_issue(issue: TrackedIssue) -> dict[str, Any]:
    return {
        "title": issue.title,
        "body": issue.body,
        "labels": issue.labels,
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


def _numbers(ground: Ground, rows: Iterable[int]) -> tuple[int, ...]:
    return tuple(ground.tasks[row].number for row in rows if row in ground.tasks)


def _commits(
    number: int, requests: Iterable[TrackedPullRequest], on_base: Mapping[int, list[SeenCommit]], sight: Sight
) -> tuple[SeenCommit, ...]:
    """Oldest first, each once; what was taken back says by which commit."""
    own = on_base.get(number, ())
    if not requests and not sight.reverts and number not in sight.scanned.off_base:
        return _in_order([commit for commit in own if commit.how is not How.PULL_REQUEST])
    found = {commit.sha: commit for commit in own if commit.how is not How.PULL_REQUEST} if own else {}
    gone: dict[str, str] = {}
    for request in requests:
        by = sight.reverts.of_request(request.number) if sight.reverts else ""
        for commit in on_base.get(request.number, ()):
            if commit.how is How.PULL_REQUEST:
                found.setdefault(commit.sha, commit)
                if by:
                    gone[commit.sha] = by
        if by and request.merged_commit in found:
            gone[request.merged_commit] = by
    if sight.reverts:
        for sha, commit in found.items():
            by = gone.get(sha) or sight.reverts.of(sha)
            if by:
                found[sha] = msgspec.structs.replace(commit, reverted_by=by)
    for commit in sight.scanned.off_base.get(number, ()):
        found.setdefault(commit.sha, commit)
    return _in_order(list(found.values()))


def _in_order(commits: list[SeenCommit]) -> tuple[SeenCommit, ...]:
    if len(commits) > 1:
        commits.sort(key=_time_of)
    return tuple(commits)


_time_of = attrgetter("time")


def _sessions(task: TaskSeen | None, ground: Ground, sight: Sight, number: int) -> tuple[SeenSession, ...]:
    seen = ground.sessions.get(task.id, []) if task is not None else []
    if not seen and number not in sight.runs:
        return ()
    found = [_session(each, sight) for each in seen]
    known = {each.run for each in found}
    found += [each for each in sight.runs.get(number, ()) if each.run not in known]
    return tuple(found)


def _session(seen: SessionSeen, sight: Sight) -> SeenSession:
    alive = seen.status == "running" and sight.alive(seen)
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
        dirty_tree="" if alive or seen.status == "waiting" else sight.dirty.get(seen.branch, ""),
    )


def _card(issue: TrackedIssue | None, board: tuple[str, int] | None) -> str:
    if issue is None or not issue.cards:
        return ""
    mine = [card for card in issue.cards if board is None or is_board(card.owner, card.project, board)]
    return mine[0].status if mine else ""


def is_board(owner: str, project: int, board: tuple[str, int]) -> bool:
    return project == board[1] and owner.casefold() == board[0].casefold()


def _missing(facts: IssueFacts, issue: TrackedIssue | None, sight: Sight) -> Iterable[str]:
    """What would have to be known of it, and is not."""
    if issue is not None and not issue.closed and not issue.detailed and facts.status is not None:
        yield "its comments, dependencies and pull requests were not read yet"
    untouched = not (facts.commits or facts.branches or facts.pull_requests or facts.sessions)
    if sight.horizon and facts.state == "open" and untouched and facts.created_at < sight.horizon:
        yield f"the clone is shallow: what was done before {sight.horizon[:10]} is not seen"
