"""How long the texts may be that agents say."""

LONGEST = 4_000
"""Characters of a reason, a question, a finding: enough for a page."""
_MARK = 40
"""Room for the mark: what was cut once is not cut again."""


def cut(text: str, most: int = LONGEST) -> str:
    """The beginning of a text that is too long, with a mark that says how much is missing."""
    if len(text) <= most:
        return text
    kept = most - _MARK
    return f"{text[:kept]}… ({len(text) - kept} characters are left out)"
