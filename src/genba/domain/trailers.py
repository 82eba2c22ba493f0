"""The trailers of commits: which issue, which agent, which session. They tell who made what, and prove nothing."""

import msgspec

ISSUE, AGENT, SESSION = "Issue", "Agent", "Session"


class CommitOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """What a commit says of where it comes from; what it does not say is empty."""

    commit: str
    issue: int | None = None
    agent: str = ""
    session: str = ""


def trailers(issue: int | None, agent: str, session: str) -> str:
    """The last paragraph of a commit message, with the end of its line; nothing where nothing is known."""
    told = [(ISSUE, "" if issue is None else str(issue)), (AGENT, agent), (SESSION, session)]
    return "".join(f"{name}: {value}\n" for name, value in told if value)
