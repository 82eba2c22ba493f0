"""Translates GitHub's answers to domain values. Every text is cut at a limit."""

from collections.abc import Iterable
from typing import TypeVar

from genba.connections.github import responses
from genba.domain.tasks.task import is_day
from genba.domain.tracker.remote import (
    BoardItem,
    PullRequestState,
    RemoteCheck,
    RemoteComment,
    RemoteReview,
    ReviewVerdict,
    TrackedIssue,
    TrackedPullRequest,
)

T = TypeVar("T")

LONGEST_TEXT = 65_536
_LONGEST_TITLE = 1_000
_LONGEST_DETAIL = 4_000

_TRUSTED = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
_CHECKS = {"success": "passed", "neutral": "skipped", "skipped": "skipped", "pending": "pending", "expected": "pending"}


def trusted(association: str) -> bool:
    return association.upper() in _TRUSTED


def same(one: str, other: str) -> bool:
    """Whether two names of a repository, a user or a label are the same one: GitHub does not tell case apart."""
    return one.casefold() == other.casefold()


def there(nodes: Iterable[T | None]) -> list[T]:
    return [node for node in nodes if node is not None]


def cut(text: str | None, limit: int = LONGEST_TEXT) -> str:
    text = text or ""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _login(user: responses.User | responses.Actor | None) -> str:
    return user.login if user is not None else "ghost"


def _due(milestone: responses.Milestone | responses.MilestoneNode | None) -> str:
    """The day on which a milestone is due. GitHub keeps a time of that day."""
    day = (milestone.due_on or "")[:10] if milestone is not None else ""
    return day if is_day(day) else ""


# ----------------------------------------------------------------------------------------------------------- of REST


def issue_of_row(row: responses.Issue) -> TrackedIssue:
    """What a row of the list of issues says; nothing of it is detailed."""
    return TrackedIssue(
        number=row.number,
        reference=row.node_id or f"#{row.number}",
        title=cut(row.title, _LONGEST_TITLE),
        body=cut(row.body),
        state=_issue_state(row.state),
        state_reason=(row.state_reason or "").lower(),
        labels=tuple(label if isinstance(label, str) else label.name for label in row.labels),
        assignees=tuple(user.login for user in row.assignees or ()),
        author=_login(row.user),
        trusted=trusted(row.author_association),
        type=row.type.name if row.type else "",
        milestone=row.milestone.title if row.milestone else "",
        due=_due(row.milestone),
        url=row.html_url,
        created_at=row.created_at,
        updated_at=row.updated_at,
        closed_at=row.closed_at or "",
    )


# -------------------------------------------------------------------------------------------------------- of GraphQL


def issue_of_node(
    node: responses.IssueNode,
    links: responses.Links | None,
    talk: responses.Talk | None,
    again: responses.Reopened | None = None,
) -> TrackedIssue:
    home = node.repository.name_with_owner

    def here(issues: Iterable[responses.LinkedIssue]) -> tuple[int, ...]:
        return tuple(issue.number for issue in issues if same(issue.repository.name_with_owner, home))

    blocking = there(links.blocked_by.nodes) if links else []
    pulls = node.closed_by_pull_requests_references or responses.Pulls()
    return TrackedIssue(
        number=node.number,
        reference=node.id,
        title=cut(node.title, _LONGEST_TITLE),
        body=cut(node.body),
        state=_issue_state(node.state),
        state_reason=(node.state_reason or "").lower(),
        labels=tuple(label.name for label in there(node.labels.nodes if node.labels else ())),
        assignees=tuple(actor.login for actor in there(node.assignees.nodes)),
        author=_login(node.author),
        trusted=trusted(node.author_association),
        type=node.issue_type.name if node.issue_type else "",
        milestone=node.milestone.title if node.milestone else "",
        due=_due(node.milestone),
        url=node.url,
        created_at=node.created_at,
        updated_at=node.updated_at,
        closed_at=node.closed_at or "",
        detailed=True,
        reopened_at=max((each.created_at for each in there(again.timeline_items.nodes)), default="") if again else "",
        comments=_comments([*there(node.comments.nodes), *there(talk.comments.nodes if talk else ())]),
        blocked_by=here(blocking),
        blocked_elsewhere=tuple(
            issue.url
            for issue in blocking
            if not same(issue.repository.name_with_owner, home) and issue.state.upper() == "OPEN"
        ),
        parent=next(iter(here([node.parent] if node.parent else [])), None),
        sub_issues=here(there(links.sub_issues.nodes)) if links else (),
        pull_requests=tuple(pull.number for pull in there(pulls.nodes) if same(pull.repository.name_with_owner, home)),
        cards=tuple(
            card_of_node(card, card.project.owner.login, card.project.number)
            for card in there(node.project_items.nodes if node.project_items else ())
            if not card.is_archived
        ),
    )


def _comments(nodes: Iterable[responses.CommentNode]) -> tuple[RemoteComment, ...]:
    """In the order in which they were made, each once."""
    found = {
        node.id: RemoteComment(
            id=str(node.database_id or node.id),
            author=_login(node.author),
            body=cut(node.body),
            created_at=node.created_at,
            updated_at=node.updated_at,
            trusted=trusted(node.author_association),
        )
        for node in nodes
    }
    return tuple(found.values())


def card_of_node(card: responses.Card, owner: str, project: int) -> BoardItem:
    value = card.field_value_by_name
    return BoardItem(
        owner=owner,
        project=project,
        item=card.id,
        status=(value.name or "") if value else "",
        updated_at=card.updated_at,
    )


def pull_of_node(node: responses.PullNode, lines: dict[str, responses.ReviewLines]) -> TrackedPullRequest:
    """A pull request with as much as was asked for of it."""
    home = node.repository.name_with_owner
    reviews = node.latest_opinionated_reviews or responses.Reviews()
    writers = {review.id for review in there((node.writers or responses.Reviews()).nodes)}
    closes = node.closing_issues_references or responses.LinkedIssues()
    return TrackedPullRequest(
        number=node.number,
        reference=node.id,
        url=node.url,
        title=cut(node.title, _LONGEST_TITLE),
        branch="" if node.is_cross_repository else node.head_ref_name,
        commit=node.head_ref_oid,
        target=node.base_ref_name,
        author=_login(node.author),
        state=_state(node.state),
        draft=node.is_draft,
        merged_commit=node.merge_commit.oid if node.merge_commit and node.merged_at else "",
        merged_by=_login(node.merged_by) if node.merged_by else "",
        merged_at=node.merged_at or "",
        mergeable=node.mergeable.lower(),
        merge_state=node.merge_state_status.lower(),
        decision=(node.review_decision or "").lower(),
        reviews=tuple(
            sorted(
                (_review(review, lines.get(review.id), review.id in writers) for review in there(reviews.nodes)),
                key=lambda review: review.submitted_at,
            )
        ),
        checks=_checks(node.status_check_rollup),
        closes=tuple(issue.number for issue in there(closes.nodes) if same(issue.repository.name_with_owner, home)),
        created_at=node.created_at,
        updated_at=node.updated_at,
    )


def _review(node: responses.ReviewNode, lines: responses.ReviewLines | None, may_write: bool) -> RemoteReview:
    return RemoteReview(
        id=node.id,
        author=_login(node.author),
        verdict=_verdict(node.state),
        body=cut(node.body),
        commit=node.commit.oid if node.commit else "",
        submitted_at=node.submitted_at or "",
        trusted=may_write or trusted(node.author_association),  # a private member may write as well
        may_write=may_write,
        findings=tuple(_finding(line) for line in there(lines.comments.nodes)) if lines else (),
    )


def _issue_state(state: str) -> str:
    return "closed" if state.lower() == "closed" else "open"


def _verdict(state: str) -> ReviewVerdict:
    """An unknown state counts as a comment."""
    known = state.lower()
    return ReviewVerdict(known) if known in list(ReviewVerdict) else ReviewVerdict.COMMENTED


def _state(state: str) -> PullRequestState:
    """An unknown state counts as open."""
    known = state.lower()
    return PullRequestState(known) if known in list(PullRequestState) else PullRequestState.OPEN


def _finding(line: responses.LineComment) -> str:
    where = line.line if line.line is not None else line.original_line
    place = f"{line.path}:{where}" if where is not None else line.path
    return f"{place}: {cut(line.body, _LONGEST_DETAIL).strip()}"


def _checks(rollup: responses.Rollup | None) -> tuple[RemoteCheck, ...]:
    if rollup is None:
        return ()
    found = [_check(node) for node in there(rollup.contexts.nodes)]
    if rollup.contexts.page_info.has_next_page:
        # What is not listed counts as well: nothing is green because there is too much of it.
        rest = rollup.contexts.total_count - len(rollup.contexts.nodes)
        found.append(RemoteCheck(name=f"{rest} more checks", state=_check_state(rollup.state)))
    return tuple(found)


def _check(node: responses.CheckNode) -> RemoteCheck:
    if node.context is not None:
        state, detail = _check_state(node.state), _detail(node.description)
        return RemoteCheck(name=node.context, state=state, detail=detail, url=node.target_url or "")
    done = (node.status or "").upper() == "COMPLETED"
    return RemoteCheck(
        name=node.name or "",
        state=_check_state(node.conclusion if done else "pending"),
        detail=_detail(node.title, node.summary),
        url=node.details_url or "",
    )


def _check_state(state: str | None) -> str:
    """Whatever is neither passed, nor skipped, nor still to come has failed."""
    return _CHECKS.get((state or "").lower(), "failed")


def _detail(*parts: str | None) -> str:
    return cut("\n".join(part.strip() for part in parts if part and part.strip()), _LONGEST_DETAIL)
