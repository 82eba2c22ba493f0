"""The trailers of commits: which issue, which agent, which session. They tell who made what, and prove nothing."""

ISSUE, AGENT, SESSION = "Issue", "Agent", "Session"


def trailers(issue: int | None, agent: str, session: str) -> str:
    """The last paragraph of a commit message, with the end of its line; nothing where nothing is known."""
    lines = [(ISSUE, "" if issue is None else str(issue)), (AGENT, agent), (SESSION, session)]
    return "".join(f"{name}: {value}\n" for name, value in lines if value)
