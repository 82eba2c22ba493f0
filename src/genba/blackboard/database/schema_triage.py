"""The tables of the facilitator: what it saw of each issue, what it posted, and how far it has read."""

from sqlalchemy import BigInteger, Column, ForeignKey, Table, Text

from genba.blackboard.database.schema_columns import metadata, prose, structured

field_issues = Table(
    "field_issues",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    prose("state"),
    prose("last_at"),
    prose("stamp"),
    structured("assessment", "{}"),
    prose("posted"),
    prose("posted_state"),
)
"""An issue as it was judged last.

`stamp` is what it was judged by: a digest of its facts or, where it rests, when the blackboard and the tracker last
recorded of it. `posted` is the digest of the comment that is kept.
"""

field_commits = Table(
    "field_commits",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    structured("commits", "[]"),
)
"""The names of the commits on the base that name an issue, or that say they are a pull request: both share numbers."""

field_positions = Table(
    "field_positions",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    prose("value"),
    prose("updated_at"),
)
