"""What we read of GitHub's answers. Whatever else is in them is left aside; what is missing has a default."""

from typing import Annotated

import msgspec
from msgspec import Meta

Whole = Annotated[int, Meta(ge=-(2**53), le=2**53)]
"""A number that every database keeps."""
Stamp = Annotated[str, Meta(pattern=r"^$|^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")]
"""A time that orders rows: another text would break the next sync."""


class _Rest(msgspec.Struct, frozen=True, kw_only=True):
    pass


class User(_Rest, frozen=True):
    login: str = "ghost"
    """Whose account is gone is called so."""


class Named(_Rest, frozen=True):
    name: str = ""


class Milestone(_Rest, frozen=True):
    title: str = ""
    due_on: str | None = None


class PullMark(_Rest, frozen=True):
    """Only a pull request has it."""


class Issue(_Rest, frozen=True):
    """An issue of REST; a pull request is one too, and says so."""

    number: Whole
    id: Whole = 0
    node_id: str = ""
    title: str = ""
    body: str | None = None
    state: str = "open"
    state_reason: str | None = None
    labels: list[Named | str] = []
    assignees: list[User] | None = None
    user: User | None = None
    author_association: str = "NONE"
    type: Named | None = None
    milestone: Milestone | None = None
    html_url: str = ""
    created_at: str = ""
    updated_at: Stamp = ""
    closed_at: str | None = None
    comments: Whole = 0
    pull_request: PullMark | None = None


class Comment(_Rest, frozen=True):
    id: Whole
    user: User | None = None
    body: str | None = None
    created_at: str = ""
    updated_at: Stamp = ""
    author_association: str = "NONE"
    html_url: str = ""


class Repository(_Rest, frozen=True):
    full_name: str = ""
    url: str = ""


class Side(_Rest, frozen=True):
    ref: str = ""
    sha: str = ""
    repo: Repository | None = None


class Team(_Rest, frozen=True):
    slug: str = ""


class Pull(_Rest, frozen=True):
    number: Whole
    node_id: str = ""
    html_url: str = ""
    title: str = ""
    body: str | None = None
    head: Side = Side()
    base: Side = Side()
    user: User | None = None
    state: str = "open"
    draft: bool | None = False
    merged: bool | None = None
    merged_at: str | None = None
    merge_commit_sha: str | None = None
    requested_reviewers: list[User] | None = None
    requested_teams: list[Team] | None = None


class Review(_Rest, frozen=True):
    id: Whole
    node_id: str = ""
    user: User | None = None
    state: str = ""
    body: str | None = None
    commit_id: str | None = None
    submitted_at: str | None = None
    author_association: str = "NONE"


class Merged(_Rest, frozen=True):
    sha: str = ""
    merged: bool = False


class _Node(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A shape of GraphQL. Lists may hold nothing in place of what we may not see."""


class PageInfo(_Node, frozen=True):
    has_next_page: bool = False
    end_cursor: str | None = None


class Actor(_Node, frozen=True):
    login: str = "ghost"


class Actors(_Node, frozen=True):
    nodes: list[Actor | None] = []


class Label(_Node, frozen=True):
    name: str = ""


class Labels(_Node, frozen=True):
    nodes: list[Label | None] = []


class Commit(_Node, frozen=True):
    oid: str = ""


class Home(_Node, frozen=True):
    """The repository that something is in."""

    name_with_owner: str = ""


class CommentNode(_Node, frozen=True):
    id: str = ""
    database_id: Whole | None = None
    author: Actor | None = None
    author_association: str = "NONE"
    body: str = ""
    url: str = ""
    created_at: str = ""
    updated_at: Stamp = ""
    viewer_did_author: bool = False


class CommentNodes(_Node, frozen=True):
    nodes: list[CommentNode | None] = []
    page_info: PageInfo = PageInfo()


class PreviousPage(_Node, frozen=True):
    has_previous_page: bool = False
    start_cursor: str | None = None


class LastComments(_Node, frozen=True):
    nodes: list[CommentNode | None] = []
    page_info: PreviousPage = PreviousPage()


class LinkedIssue(_Node, frozen=True):
    number: Whole = 0
    state: str = "OPEN"
    url: str = ""
    repository: Home = Home()


class LinkedIssues(_Node, frozen=True):
    nodes: list[LinkedIssue | None] = []


class ReviewNode(_Node, frozen=True):
    id: str = ""
    author: Actor | None = None
    author_association: str = "NONE"
    state: str = ""
    body: str = ""
    submitted_at: str | None = None
    commit: Commit | None = None


class Reviews(_Node, frozen=True):
    nodes: list[ReviewNode | None] = []


class CheckNode(_Node, frozen=True):
    """A check run, or a status of the commit: each has its own names."""

    name: str | None = None
    status: str | None = None
    conclusion: str | None = None
    title: str | None = None
    summary: str | None = None
    details_url: str | None = None
    context: str | None = None
    state: str | None = None
    description: str | None = None
    target_url: str | None = None


class Contexts(_Node, frozen=True):
    total_count: Whole = 0
    nodes: list[CheckNode | None] = []
    page_info: PageInfo = PageInfo()


class Rollup(_Node, frozen=True):
    state: str = ""
    contexts: Contexts = Contexts()


class PullNode(_Node, frozen=True):
    id: str = ""
    number: Whole = 0
    url: str = ""
    title: str = ""
    state: str = "OPEN"
    is_draft: bool = False
    is_cross_repository: bool = False
    head_ref_name: str = ""
    head_ref_oid: str = ""
    base_ref_name: str = ""
    author: Actor | None = None
    merged_at: str | None = None
    merged_by: Actor | None = None
    merge_commit: Commit | None = None
    created_at: str = ""
    updated_at: Stamp = ""
    repository: Home = Home()
    mergeable: str = ""
    merge_state_status: str = ""
    review_decision: str | None = None
    latest_opinionated_reviews: Reviews | None = None
    writers: Reviews | None = None
    """Those of them whose authors may write."""
    status_check_rollup: Rollup | None = None
    closing_issues_references: LinkedIssues | None = None


class Pulls(_Node, frozen=True):
    nodes: list[PullNode | None] = []


class ProjectOwner(_Node, frozen=True):
    login: str = ""


class ProjectNode(_Node, frozen=True):
    id: str = ""
    number: Whole = 0
    owner: ProjectOwner = ProjectOwner()


class FieldValue(_Node, frozen=True):
    name: str | None = None


class CardContent(_Node, frozen=True):
    number: Whole | None = None
    repository: Home = Home()


class Card(_Node, frozen=True):
    id: str = ""
    is_archived: bool = False
    updated_at: Stamp = ""
    project: ProjectNode = ProjectNode()
    content: CardContent | None = None
    field_value_by_name: FieldValue | None = None


class Cards(_Node, frozen=True):
    nodes: list[Card | None] = []
    page_info: PageInfo = PageInfo()


class DependencyCount(_Node, frozen=True):
    total_blocked_by: Whole = 0


class SubIssueCount(_Node, frozen=True):
    total: Whole = 0


class MilestoneNode(_Node, frozen=True):
    title: str = ""
    due_on: str | None = None


class IssueNode(_Node, frozen=True):
    id: str = ""
    number: Whole = 0
    title: str = ""
    body: str = ""
    state: str = "OPEN"
    state_reason: str | None = None
    author: Actor | None = None
    author_association: str = "NONE"
    issue_type: Label | None = None
    milestone: MilestoneNode | None = None
    url: str = ""
    created_at: str = ""
    updated_at: Stamp = ""
    closed_at: str | None = None
    repository: Home = Home()
    parent: LinkedIssue | None = None
    labels: Labels | None = None
    assignees: Actors = Actors()
    comments: CommentNodes = CommentNodes()
    issue_dependencies_summary: DependencyCount = DependencyCount()
    sub_issues_summary: SubIssueCount = SubIssueCount()
    closed_by_pull_requests_references: Pulls | None = None
    project_items: Cards | None = None


class Links(_Node, frozen=True):
    """What stands in the way of an issue, and what it is made of."""

    id: str = ""
    blocked_by: LinkedIssues = LinkedIssues()
    sub_issues: LinkedIssues = LinkedIssues()


class Moment(_Node, frozen=True):
    created_at: str = ""


class Moments(_Node, frozen=True):
    nodes: list[Moment | None] = []


class Reopened(_Node, frozen=True):
    """When an issue was opened again last."""

    id: str = ""
    timeline_items: Moments = Moments()


class Talk(_Node, frozen=True):
    id: str = ""
    comments: LastComments = LastComments()


class LineComment(_Node, frozen=True):
    path: str = ""
    line: Whole | None = None
    original_line: Whole | None = None
    body: str = ""


class LineComments(_Node, frozen=True):
    nodes: list[LineComment | None] = []


class ReviewLines(_Node, frozen=True):
    id: str = ""
    comments: LineComments = LineComments()


class FieldOption(_Node, frozen=True):
    id: str = ""
    name: str = ""


class Field(_Node, frozen=True):
    id: str | None = None
    options: list[FieldOption] | None = None


class Board(_Node, frozen=True):
    id: str = ""
    field: Field | None = None
    items: Cards = Cards()


class IssueOnBoards(_Node, frozen=True):
    id: str = ""
    url: str = ""
    project_items: Cards | None = None
