"""The documents that we send to GitHub's GraphQL.

What they cost (GitHub's formula): every connection inside of a list counts once per element of the list; the sum by
100, rounded, is the number of points. So the details of an issue have four connections and no more, with a fifth where
its cards are asked for; what few issues have (dependencies, parts, many comments, a reopening) is asked for in a
second document.
"""

from collections.abc import Sequence

MOST_COMMENTS = 50
LAST_COMMENTS = 100

_SPENT = "rateLimit { cost }"

_PULL_FIELDS = """
  id number url title state isDraft isCrossRepository headRefName headRefOid baseRefName
  author { login } mergedAt mergedBy { login } mergeCommit { oid } createdAt updatedAt
  repository { nameWithOwner }
"""

_ISSUE_FIELDS = f"""
fragment IssueFields on Issue {{
  id number title body state stateReason(enableDuplicate: true)
  author {{ login }} authorAssociation issueType {{ name }} milestone {{ title dueOn }}
  url createdAt updatedAt closedAt repository {{ nameWithOwner }}
  parent {{ number state url repository {{ nameWithOwner }} }}
  issueDependenciesSummary {{ totalBlockedBy }}
  subIssuesSummary {{ total }}
  labels(first: 100) {{ nodes {{ name }} }}
  assignees(first: 20) {{ nodes {{ login }} }}
  comments(first: {MOST_COMMENTS}) {{
    nodes {{ id databaseId author {{ login }} authorAssociation body createdAt updatedAt }}
    pageInfo {{ hasNextPage endCursor }}
  }}
  closedByPullRequestsReferences(first: 10, includeClosedPrs: true) {{ nodes {{ {_PULL_FIELDS} }} }}
%s
}}
"""

_CARDS = """
  projectItems(first: 20, includeArchived: false) {
    nodes {
      id isArchived updatedAt
      project { id number owner { ... on User { login } ... on Organization { login } } }
      fieldValueByName(name: $field) { ... on ProjectV2ItemFieldSingleSelectValue { name } }
    }
  }
"""

_REPOSITORY = "repository(owner: $owner, name: $name)"


def details(cards: bool) -> str:
    """Issues by their node ids, and under which name the repository goes now."""
    return f"""
query Details($owner: String!, $name: String!, $ids: [ID!]!{", $field: String!" if cards else ""}) {{
  {_SPENT}
  {_REPOSITORY} {{ nameWithOwner }}
  nodes(ids: $ids) {{ __typename ...IssueFields }}
}}
{_ISSUE_FIELDS % (_CARDS if cards else "")}
"""


def issue(cards: bool) -> str:
    """One issue by its number."""
    return f"""
query OneIssue($owner: String!, $name: String!, $number: Int!{", $field: String!" if cards else ""}) {{
  {_SPENT}
  {_REPOSITORY} {{
    nameWithOwner
    issueOrPullRequest(number: $number) {{ __typename ...IssueFields }}
  }}
}}
{_ISSUE_FIELDS % (_CARDS if cards else "")}
"""


LINKS = f"""
query Links($ids: [ID!]!) {{
  {_SPENT}
  nodes(ids: $ids) {{
    ... on Issue {{
      id
      blockedBy(first: 100) {{ nodes {{ number state url repository {{ nameWithOwner }} }} }}
      subIssues(first: 100) {{ nodes {{ number state url repository {{ nameWithOwner }} }} }}
    }}
  }}
}}
"""

REOPENED = f"""
query Reopened($ids: [ID!]!) {{
  {_SPENT}
  nodes(ids: $ids) {{
    ... on Issue {{
      id
      timelineItems(itemTypes: [REOPENED_EVENT], last: 1) {{ nodes {{ ... on ReopenedEvent {{ createdAt }} }} }}
    }}
  }}
}}
"""

TALK = f"""
query Talk($ids: [ID!]!) {{
  {_SPENT}
  nodes(ids: $ids) {{
    ... on Issue {{
      id
      comments(last: {LAST_COMMENTS}) {{
        nodes {{ id databaseId author {{ login }} authorAssociation body createdAt updatedAt }}
        pageInfo {{ hasPreviousPage startCursor }}
      }}
    }}
  }}
}}
"""

COMMENTS_BACKWARDS = f"""
query CommentsBackwards($owner: String!, $name: String!, $number: Int!, $before: String) {{
  {_SPENT}
  {_REPOSITORY} {{
    issueOrPullRequest(number: $number) {{
      __typename
      ... on Issue {{ ...Talked }}
      ... on PullRequest {{ ...TalkedAbout }}
    }}
  }}
}}
fragment Talked on Issue {{
  comments(last: 100, before: $before) {{
    nodes {{ databaseId authorAssociation body url viewerDidAuthor }}
    pageInfo {{ hasPreviousPage startCursor }}
  }}
}}
fragment TalkedAbout on PullRequest {{
  comments(last: 100, before: $before) {{
    nodes {{ databaseId authorAssociation body url viewerDidAuthor }}
    pageInfo {{ hasPreviousPage startCursor }}
  }}
}}
"""

_PULL = f"""
fragment PullFields on PullRequest {{
  {_PULL_FIELDS}
  mergeable mergeStateStatus reviewDecision
  latestOpinionatedReviews(first: 50) {{
    nodes {{ id author {{ login }} authorAssociation state body submittedAt commit {{ oid }} }}
  }}
  writers: latestOpinionatedReviews(first: 50, writersOnly: true) {{ nodes {{ id }} }}
  statusCheckRollup {{
    state
    contexts(first: 100) {{
      totalCount
      pageInfo {{ hasNextPage endCursor }}
      nodes {{
        ... on CheckRun {{ name status conclusion title summary detailsUrl }}
        ... on StatusContext {{ context state description targetUrl }}
      }}
    }}
  }}
  closingIssuesReferences(first: 20) {{ nodes {{ number state url repository {{ nameWithOwner }} }} }}
}}
"""


def pull_requests(numbers: Sequence[int]) -> str:
    """Pull requests by their numbers, as p12, p13."""
    wanted = "\n".join(
        f"    p{int(number)}: pullRequest(number: {int(number)}) {{ ...PullFields }}" for number in numbers
    )
    return f"""
query PullRequests($owner: String!, $name: String!) {{
  {_SPENT}
  {_REPOSITORY} {{
    nameWithOwner
{wanted}
  }}
}}
{_PULL}
"""


REVIEW_LINES = f"""
query ReviewLines($ids: [ID!]!) {{
  {_SPENT}
  nodes(ids: $ids) {{
    ... on PullRequestReview {{
      id
      comments(first: 100) {{ nodes {{ path line originalLine body }} }}
    }}
  }}
}}
"""

CARDS = f"""
query Cards(
  $home: String!, $name: String!, $owner: String!, $project: Int!, $field: String!, $after: String, $query: String
) {{
  {_SPENT}
  repository(owner: $home, name: $name) {{ nameWithOwner }}
  repositoryOwner(login: $owner) {{
    ... on ProjectV2Owner {{
      projectV2(number: $project) {{
        id
        items(first: 100, after: $after, query: $query) {{
          pageInfo {{ hasNextPage endCursor }}
          nodes {{
            id isArchived updatedAt
            content {{ ... on Issue {{ number repository {{ nameWithOwner }} }} }}
            fieldValueByName(name: $field) {{ ... on ProjectV2ItemFieldSingleSelectValue {{ name }} }}
          }}
        }}
      }}
    }}
  }}
}}
"""

BOARD = f"""
query Board($owner: String!, $project: Int!, $field: String!) {{
  {_SPENT}
  repositoryOwner(login: $owner) {{
    ... on ProjectV2Owner {{
      projectV2(number: $project) {{
        id
        field(name: $field) {{ ... on ProjectV2SingleSelectField {{ id options {{ id name }} }} }}
      }}
    }}
  }}
}}
"""

ISSUE_ON_BOARDS = f"""
query IssueOnBoards($owner: String!, $name: String!, $number: Int!, $field: String!) {{
  {_SPENT}
  {_REPOSITORY} {{
    issue(number: $number) {{
      id url
{_CARDS.replace("first: 20", "first: 100")}
    }}
  }}
}}
"""

ADD_CARD = """
mutation AddCard($project: ID!, $issue: ID!) {
  addProjectV2ItemById(input: {projectId: $project, contentId: $issue}) { item { id } }
}
"""

MOVE_CARD = """
mutation MoveCard($project: ID!, $item: ID!, $field: ID!, $option: String!) {
  updateProjectV2ItemFieldValue(
    input: {projectId: $project, itemId: $item, fieldId: $field, value: {singleSelectOptionId: $option}}
  ) { projectV2Item { id } }
}
"""

READY = """
mutation Ready($id: ID!) {
  markPullRequestReadyForReview(input: {pullRequestId: $id}) { pullRequest { id } }
}
"""
