"""How long the texts may be that agents and people say, and how they stand in one line."""

LONGEST = 4_000
"""Characters of a reason, a question, a finding: enough for a page."""
LONGEST_SUBJECT = 72 - len("Merge ")
"""Characters of the first line of a commit, where it is a merge."""
PARAGRAPH = "\n\n"
"""What stands between two paragraphs."""
_MARK = 40
"""Room for the mark: what was cut once is not cut again."""


def cut(text: str, most: int = LONGEST) -> str:
    """The beginning of a text that is too long, with a mark that says how much is missing."""
    if len(text) <= most:
        return text
    kept = most - _MARK
    return f"{text[:kept]}… ({len(text) - kept} characters are left out)"


def one_line(title: str) -> str:
    """A title as the first line of a message: it can forge neither a second line nor a trailer."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in title).split())


def subject_of(title: str, number: int) -> tuple[str, str]:
    """What stands first in a commit that lands the work on a task, and the paragraph with the whole title, if need be.

    Both are empty for a title without a letter.
    """
    whole, end = one_line(title), f" (#{number})"
    if not whole:
        return "", ""
    if len(whole) + len(end) <= LONGEST_SUBJECT:
        return f"{whole}{end}", ""
    return f"{whole[: LONGEST_SUBJECT - len(end) - 1].rstrip()}…{end}", f"{cut(whole)}\n\n"
